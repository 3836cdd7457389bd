use std::path::Path;
fn main() {
    let file = std::env::args().nth(1).unwrap();
    let quick = std::env::args().nth(2).as_deref() == Some("quick");
    let overrides = narrows_scenario::Overrides { quick, ..Default::default() };
    let experiment = narrows_scenario::load(Path::new(&file), &overrides, &Default::default()).map_err(|e| e.render()).unwrap();
    println!("{:10} {:>8} {:>9} {:>9} {:>9} {:>9} | util  plr_dcn plr_wan (1e-5) | ns/hop hops unfinished rto", "arm", "flows", "small", "p99", "large", "all");
    for plan in &experiment.plans {
        let start = narrows_sim::thread_cpu_ns().unwrap();
        let mut simulation = narrows_sim::Simulation::new(plan, 1).unwrap();
        while simulation.advance(1 << 20) {}
        let r = simulation.finish();
        let cpu = narrows_sim::thread_cpu_ns().unwrap() - start;
        let warm = plan.schedule.warmup.as_ns();
        let done: Vec<(u64, f64)> = r.flows.iter().filter(|f| f.start_ns >= warm).filter_map(|f| f.fct_ns.map(|t| (f.size_bytes, t as f64 / 1e6))).collect();
        let of = |from: u64, to: u64| { let mut v: Vec<f64> = done.iter().filter(|d| d.0 >= from && d.0 < to).map(|d| d.1).collect(); v.sort_by(f64::total_cmp); v };
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
        let small = of(0, 100_000); let large = of(10_000_001, u64::MAX); let all = of(0, u64::MAX);
        let p99 = small.get(((small.len() * 99).div_ceil(100)).saturating_sub(1)).copied().unwrap_or(0.0);
        let mut seg = [[0u64; 2]; 2]; let mut util: f64 = 0.0;
        for (p, l) in r.ports.iter().zip(&plan.network.links) {
            use narrows_scenario::plan::Role;
            let d = p.dropped_limit_packets + p.dropped_pool_packets + p.dropped_aqm_packets;
            match l.role { Role::Wan => { seg[1][0] += d; seg[1][1] += p.sent_packets + d; util = util.max(p.utilisation) } Role::Host => {}, _ => { seg[0][0] += d; seg[0][1] += p.sent_packets + d } }
        }
        let plr = |s: [u64; 2]| s[0] as f64 * 1e5 / s[1].max(1) as f64;
        println!("{:10} {:8} {:9.2} {:9.1} {:9.1} {:9.1} | {:.3} {:8.1} {:8.1} | {:.1} {} {} {}", plan.arm, done.len(), mean(&small), p99, mean(&large), mean(&all), util, plr(seg[0]), plr(seg[1]), cpu as f64 / r.packet_hops as f64, r.packet_hops, r.flows.iter().filter(|f| f.fct_ns.is_none()).count(), r.flows.iter().map(|f| f.timeouts as u64).sum::<u64>());
    }
    println!("hold {:.1}", narrows_sim::hold_ns());
}
