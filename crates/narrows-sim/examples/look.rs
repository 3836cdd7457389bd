use std::path::Path;
use narrows_scenario::Overrides;
use narrows_sim::Simulation;
fn main() {
    let file = std::env::args().nth(1).unwrap();
    let experiment = narrows_scenario::load(Path::new(&file), &Overrides::default(), &Default::default()).map_err(|e| panic!("{}", e.render())).unwrap();
    for plan in &experiment.plans {
        let mut simulation = Simulation::new(plan, 1).unwrap();
        while simulation.advance(1 << 20) {}
        let r = simulation.finish();
        println!("== {} {:?}", plan.arm, plan.axes);
        for p in &r.ports { let l=&plan.network.links[p.port as usize]; if p.dropped_pool_packets+p.marked_packets+p.congestion_samples>0 || l.watched { println!("{} drops {} marks {} samples {} max {} mean {:.0} util {:.3}", l.name, p.dropped_pool_packets, p.marked_packets, p.congestion_samples, p.queue_max_bytes, p.queue_mean_bytes, p.utilisation); } }
        for f in &r.flows { if r.flows.len()<20 { println!("flow {} traffic {} bytes {} cuts {} retx {}", f.flow, plan.traffic[f.traffic as usize].name, f.delivered_after_warmup_bytes, f.near_source_cuts, f.retransmitted_bytes);} }
        if std::env::args().nth(2).is_some() { for s in &r.series { println!("{:.3} {} {} {:.0}", s.time_ns as f64/1e6, s.quantity.name(), s.entity, s.value); } }
    }
}
