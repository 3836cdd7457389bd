//! A run allocates while it warms up, and then only where a window sets a new record.
#![allow(missing_docs, reason = "tests")]

#[path = "runs/plans.rs"]
#[allow(dead_code, unreachable_pub, reason = "a test uses the part it needs")]
mod plans;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use narrows_core::units::Span;
use narrows_plan::{Plan, Sampling};
use narrows_sim::{Partition, Simulation, run_in_parts};
use plans::{Dumbbell, at};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Tests of one process share its heap: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Counting;

// SAFETY: every call is handed to the system's allocator unchanged; counting has no part in memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn eight_long_flows(controller: &str, ecn: bool) -> Plan {
    let network = Dumbbell { pairs: 8, limit: 400, mark_at: Some(80), ..Dumbbell::default() };
    let mut plan = network.long(controller, ecn, Span::from_secs(12));
    plan.sampling = Sampling::default();
    plan
}

#[test]
fn packets_cost_no_allocation_after_the_warmup() {
    let _alone = ALONE.lock().unwrap();
    for (controller, ecn) in [("cubic", false), ("dctcp", true), ("bbr", false), ("gemini", true)] {
        let plan = eight_long_flows(controller, ecn);
        let mut simulation = Simulation::new(&plan, 1).unwrap();
        while simulation.progress().now < at(Span::from_secs(6)) {
            simulation.advance(10_000);
        }
        let (before, hops) = (ALLOCATIONS.load(Ordering::Relaxed), simulation.progress().packet_hops);
        while simulation.progress().now < at(Span::from_secs(8)) {
            simulation.advance(10_000);
        }
        let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert!(simulation.progress().packet_hops - hops > 500_000);
        // A window may still reach a height it never had; what it needs then grows by an eighth. Anything per packet would be 10⁵ times more.
        assert!(made <= 8, "{controller}: {made}");
    }
}

/// What a run of sixteen seconds allocates beyond one of eight: what threads do cannot be stopped at a simulated time.
///
/// How far a part gets ahead of the other, and so how much mail is under way, follows the machine's threads: mail may set
/// records late, but each makes room for more than it needs.
#[test]
fn nor_do_they_on_two_threads() {
    let _alone = ALONE.lock().unwrap();
    let mut plan = eight_long_flows("cubic", false);
    for node in [8..16, 17..18].into_iter().flatten() {
        plan.network.nodes[node].site = 1;
    }
    let partition = Partition::by_site(&plan.network);
    assert_eq!(partition.count(), 2);
    let [(short, short_hops), (long, long_hops)] = [8, 16].map(|seconds| {
        plan.schedule.end = at(Span::from_secs(seconds));
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let ran = run_in_parts(&plan, 1, &partition, 2, |_| ControlFlow::Continue(()));
        let ran = ran.expect("a plan that can be run").expect("not cancelled");
        (ALLOCATIONS.load(Ordering::Relaxed) - before, ran.results.packet_hops)
    });
    assert!(long_hops - short_hops > 2_000_000);
    assert!(long <= short + 100, "{long} allocations for {long_hops} packet-hops, {short} for {short_hops}");
}
