//! What a run holds: a bound for each packet that is out, with and without loss, and for each flow that lives.
#![allow(missing_docs, reason = "tests")]

#[allow(dead_code, unreachable_pub, reason = "a test uses the part it needs")]
mod plans;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Rate, Span};
use narrows_scenario::plan::{Pattern, Plan, Sampling};
use narrows_sim::Simulation;
use plans::{Dumbbell, at, flow, smooth};

static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Tests of one process share its heap: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Counting;

// SAFETY: every call is handed to the system's allocator unchanged; counting has no part in memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`, and `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Eight long CUBIC flows over 10 Gbit/s × 30 ms: 31,000 packets fill the pipe with its queue.
fn long_and_fat(receive_buffer: u64) -> Plan {
    let profile = Profile { receive_buffer, ..smooth(Profile::LINUX_4_9) };
    let network = Dumbbell {
        pairs: 8,
        access: Rate::from_gbps(10),
        rate: Rate::from_gbps(10),
        rtt: Span::from_ms(30),
        limit: 10_000,
        mark_at: None,
        profile,
    };
    let mut plan = network.long("cubic", false, Span::from_secs(3));
    plan.sampling = Sampling { queues: Span::ZERO, windows: Span::ZERO, goodput: Span::ZERO };
    plan
}

/// Bytes on the heap and packets out, whenever the latter set a record.
fn records(plan: &Plan, until: Span) -> Vec<(usize, u64)> {
    let before = LIVE.load(Ordering::Relaxed);
    let mut simulation = Simulation::new(plan, 1).expect("a plan that can be run");
    let mut records = vec![(LIVE.load(Ordering::Relaxed) - before, 0)];
    while simulation.progress().now < at(until) && simulation.advance(2_000) {
        let out = simulation.outstanding();
        if out > records[records.len() - 1].1 {
            let held = LIVE.load(Ordering::Relaxed) - before - records.capacity() * size_of::<(usize, u64)>();
            records.push((held, out));
        }
    }
    records
}

/// What an empty run of eight flows takes, rounded up generously.
const FIXED: usize = 200_000;

#[test]
fn a_packet_that_is_out_takes_at_most_64_bytes() {
    let _alone = ALONE.lock().unwrap();
    for (window, loses) in [(5_000_000, false), (64 << 20, true)] {
        let plan = long_and_fat(window);
        let records = records(&plan, Span::from_ms(1_500));
        let (_, most) = records[records.len() - 1];
        assert!(most > 25_000, "{most} packets fill no pipe");
        let lost = plans::run(&plan, 1).ports.iter().map(|port| port.dropped_limit_packets).sum::<u64>();
        assert_eq!(lost > 1_000, loses, "{lost} lost");
        for (held, out) in records {
            let allowed = FIXED + 64 * usize::try_from(out).unwrap();
            assert!(held <= allowed, "{held} bytes for {out} packets; lossy: {loses}");
        }
    }
}

#[test]
fn a_flow_that_is_over_leaves_only_its_row() {
    let _alone = ALONE.lock().unwrap();
    // 20,000 flows of two packets, one at a time at each of ten pairs: what lives is ten connections.
    let network = Dumbbell { pairs: 10, rtt: Span::from_us(100), ..Dumbbell::default() };
    let flows = (0..20_000_u32).map(|i| {
        let pair = i % 10;
        flow(Span::from_us(100 * u64::from(i)), pair, 10 + pair, Some(2_000))
    });
    let mut plan = network.plan("cubic", false, Span::from_secs(3), Pattern::List(flows.collect()));
    plan.sampling = Sampling { queues: Span::ZERO, windows: Span::ZERO, goodput: Span::ZERO };
    let mut simulation = Simulation::new(&plan, 1).unwrap();
    let mut at_time = |span: Span| {
        while simulation.progress().now < at(span) && simulation.advance(500) {}
        LIVE.load(Ordering::Relaxed)
    };
    let (early, late) = (at_time(Span::from_ms(200)), at_time(Span::from_ms(1_800)));
    let each = (late.saturating_sub(early)) / 16_000;
    assert!(each <= 400, "{each} bytes stay of each finished flow");
}
