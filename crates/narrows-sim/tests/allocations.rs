//! A run allocates while it warms up, and then only where a window sets a new record.
#![allow(missing_docs, reason = "tests")]

#[allow(dead_code, unreachable_pub, reason = "a test uses the part it needs")]
mod plans;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use narrows_core::units::Span;
use narrows_scenario::plan::Sampling;
use narrows_sim::Simulation;
use plans::{Dumbbell, at};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

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

#[test]
fn packets_cost_no_allocation_after_the_warmup() {
    for (controller, ecn) in [("cubic", false), ("dctcp", true), ("bbr", false), ("gemini", true)] {
        let network = Dumbbell { pairs: 8, limit: 400, mark_at: Some(80), ..Dumbbell::default() };
        let mut plan = network.long(controller, ecn, Span::from_secs(12));
        plan.sampling = Sampling { queues: Span::ZERO, windows: Span::ZERO, goodput: Span::ZERO };
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
        // A window may still reach a height it never had; its rings then double. Anything per packet would be 10⁵ times more.
        assert!(made <= 8, "{controller}: {made}");
    }
}
