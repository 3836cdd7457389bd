//! Runs every plan of an experiment file on this machine's kernel, beside the simulator, and prints what came of it.
//!
//! `cargo run --release -p narrows-testbed --example experiment FILE [fast] [nice] [nice-hosts]`: `fast` lets plans exceed what is known to be
//! carried faithfully, to see how late packets become; `nice` leaves the real-time class alone, `nice-hosts` for the hosts' applications only. Needs root.
use std::path::Path;

use narrows_core::units::Rate;
use narrows_results::Results;
use narrows_scenario::Overrides;
use narrows_sim::Simulation;
use narrows_testbed::{Options, run};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("give an experiment file");
    let how: Vec<String> = arguments.collect();
    let mut options = Options::default();
    if how.iter().any(|word| word == "fast") {
        options.most_rate = Rate::from_gbps(100);
    }
    if how.iter().any(|word| word == "nice") {
        options.emulator.real_time = None;
        options.agents_real_time = None;
    }
    if how.iter().any(|word| word == "nice-hosts") {
        options.agents_real_time = None;
    }
    let experiment = match narrows_scenario::load(Path::new(&file), &Overrides::default(), &Default::default()) {
        Ok(experiment) => experiment,
        Err(error) => panic!("{}", error.render()),
    };
    for plan in &experiment.plans {
        let mut simulation = Simulation::new(plan, 1).expect("a plan that can be run");
        while simulation.advance(1 << 20) {}
        let simulated = simulation.finish();
        let live = run(plan, 1, &options, None, &mut |_| true).unwrap_or_else(|error| panic!("{error}"));
        let late = |thousandths| live.record.deliveries.percentile(thousandths).as_us();
        println!(
            "{} {}: {:?}, late p50 {} us, p99 {} us, p999 {} us, most {} us; agents late p99 {} us; real-time {}, {} failures, {} times dry",
            experiment.name,
            plan.arm,
            live.validity,
            late(500),
            late(990),
            late(999),
            live.record.deliveries.most().as_us(),
            live.record.agents.percentile(990).as_us(),
            live.real_time,
            live.record.failed,
            live.record.ran_dry,
        );
        for (world, results) in [("live", &live.results), ("simulated", &simulated)] {
            println!("  {world}: {}", summary(results, plan.schedule.end.as_ns() - plan.schedule.warmup.as_ns()));
        }
    }
}

/// Completion times, goodput and queues in a line.
fn summary(results: &Results, measured_ns: u64) -> String {
    let mut fct: Vec<u64> = results.flows.iter().filter_map(|flow| flow.fct_ns).collect();
    fct.sort_unstable();
    let at = |percent: usize| fct.get(fct.len() * percent / 100).map_or(0, |ns| ns / 1_000);
    let delivered: u64 = results.flows.iter().map(|flow| flow.delivered_after_warmup_bytes).sum();
    let busiest = results.ports.iter().filter(|port| port.queue_p50_bytes.is_some());
    let busiest = busiest.max_by_key(|port| port.sent_packets);
    let queue = busiest
        .map(|port| (port.queue_p50_bytes, port.queue_p99_bytes, port.marked_packets, port.dropped_limit_packets));
    format!(
        "{} of {} flows finished, p50 {} us, p99 {} us; {} Mbps; queue p50, p99 bytes, marks, drops {queue:?}",
        fct.len(),
        results.flows.len(),
        at(50),
        at(99),
        delivered * 8_000 / measured_ns,
    )
}
