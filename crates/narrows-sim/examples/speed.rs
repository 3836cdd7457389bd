//! CPU nanoseconds per packet-hop of a dumbbell, printed beside the hold loop.
#![allow(missing_docs, reason = "an example")]
#[path = "../tests/plans/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "an example uses the part it needs")]
mod plans;
use narrows_core::units::Span;
fn main() {
    let controller = std::env::args().nth(1).unwrap_or("newreno".into());
    let network = plans::Dumbbell { pairs: 10, ..plans::Dumbbell::default() };
    let plan = network.long(&controller, false, Span::from_secs(10));
    let start = narrows_sim::thread_cpu_ns().expect("this system tells its CPU time");
    let results = plans::run(&plan, 1);
    let cpu = (narrows_sim::thread_cpu_ns().expect("this system tells its CPU time") - start) as f64
        / results.packet_hops as f64;
    let hold = narrows_sim::hold_ns();
    println!(
        "{cpu:.1} ns per packet-hop, {:.2} holds of {hold:.1} ns; {} hops, {} events",
        cpu / hold,
        results.packet_hops,
        results.events
    );
}
