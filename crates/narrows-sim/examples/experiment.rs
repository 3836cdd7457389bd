//! Runs every plan of an experiment file and prints what a packet-hop cost, and a digest of the results: what a profiler is pointed at.
//!
//! `cargo run --release -p narrows-sim --example experiment FILE [quick|profile] [THREADS]`: `quick` takes the
//! file's short variant, `profile` that one without the hold loop. With a number of threads the network is cut for
//! them, for two at least.
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use narrows_plan::Plan;
use narrows_results::Results;
use narrows_scenario::Overrides;
use narrows_sim::{Simulation, hold_ns, thread_cpu_ns};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("give an experiment file");
    let (numbers, words): (Vec<_>, Vec<_>) = arguments.partition(|argument| argument.parse::<u32>().is_ok());
    let how = words.into_iter().next();
    let threads = numbers.first().and_then(|number| number.parse().ok());
    let overrides = Overrides { quick: how.is_some(), ..Overrides::default() };
    let experiment = match narrows_scenario::load(Path::new(&file), &overrides, &Default::default()) {
        Ok(experiment) => experiment,
        Err(error) => panic!("{}", error.render()),
    };
    for plan in &experiment.plans {
        let start = Instant::now();
        let (results, cpu) = on_threads(plan, threads);
        let wall = start.elapsed().as_secs_f64();
        let hops = results.packet_hops as f64;
        let hold = if how.as_deref() == Some("profile") { f64::NAN } else { hold_ns() };
        println!(
            "{} {}: {:.1} ns per packet-hop ({:.2} holds of {hold:.1} ns), {wall:.3} s, {hops} hops, {:.3} events per hop, {} flows, digest {:016x}",
            experiment.name,
            plan.arm,
            cpu / hops,
            cpu / hops / hold,
            results.events as f64 / hops,
            results.flows.len(),
            digest(&results),
        );
    }
}

/// The results, and the nanoseconds that they took on processors.
fn on_threads(plan: &Plan, threads: Option<u32>) -> (Results, f64) {
    if let Some(threads) = threads {
        let partitions = narrows_sim::partitions_for(&plan.network, threads.max(2));
        let partition = partitions.first().expect("a network that may be cut");
        let ran = narrows_sim::run_in_parts(plan, 1, partition, threads, |_| ControlFlow::Continue(()));
        let ran = ran.expect("a plan that can be run").expect("nobody ended it");
        return (ran.results, ran.cpu_ns.expect("this system tells its CPU time") as f64);
    }
    let start = thread_cpu_ns().expect("this system tells its CPU time");
    let mut simulation = Simulation::new(plan, 1).expect("a plan that can be run");
    while simulation.advance(1 << 20) {}
    let results = simulation.finish();
    (results, (thread_cpu_ns().expect("as before") - start) as f64)
}

/// A number that changes with any cell of the results.
fn digest(results: &Results) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{results:?}").hash(&mut hasher);
    hasher.finish()
}
