//! What a run holds: a bound for each packet that is out, with and without loss, and for each flow that lives.
#![allow(missing_docs, reason = "tests")]

#[path = "runs/plans.rs"]
#[allow(dead_code, unreachable_pub, reason = "a test uses the part it needs")]
mod plans;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Bytes, Rate, Span};
use narrows_plan::{Pattern, Plan, Sampling};
use narrows_sim::Simulation;
use plans::{Dumbbell, at, flow, smooth};

static LIVE: AtomicUsize = AtomicUsize::new(0);
/// The most that [`LIVE`] has been since it was last set.
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Tests of one process share its heap: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Counting;

// SAFETY: every call is handed to the system's allocator unchanged; counting has no part in memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        grow(size);
        // SAFETY: the caller keeps the contract of `realloc`, and `pointer` came from `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`, and `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn grow(size: usize) {
    let live = LIVE.fetch_add(size, Ordering::Relaxed) + size;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The agenda and what else a run has once.
const BASE: usize = 138_000;
/// A link: its port, its place in the agenda, the first chunk of its ring.
const LINK: usize = 2_000;
/// A connection's two ends and the flow's row; held to it by a test of its own.
const FLOW: usize = 8_000;
/// Memory is not given back: a scoreboard keeps that of its own record, and flows that share a path set theirs at
/// different times. So much of each flow's, on the paths below, is beyond what is out when most is out.
const OWN_RECORD: usize = 50_000;

struct Measured {
    /// Most bytes on the heap.
    peak: usize,
    /// Most packets that were out, looked at every 5,000 events.
    most_out: usize,
    lost: u64,
}

impl Measured {
    fn of(plan: &Plan) -> Measured {
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let mut simulation = Simulation::new(plan, 1).expect("a plan that can be run");
        let mut most_out = 0;
        while simulation.advance(5_000) {
            most_out = most_out.max(simulation.outstanding());
        }
        let peak = PEAK.load(Ordering::Relaxed) - before;
        let lost = simulation.finish().ports.iter().map(|port| port.dropped_limit_packets).sum();
        Measured { peak, most_out: usize::try_from(most_out).expect("packets fit into memory"), lost }
    }
}

/// Long CUBIC flows over 30 ms, with windows that end at `receive_buffer`; a buffer of 10,000 packets per 10 Gbit/s.
fn long_and_fat(pairs: u32, gbps: u64, receive_buffer: u64, end: Span) -> Plan {
    // Whole windows shall be out, in the senders' own ports where they fit nowhere else.
    let profile = Profile { receive_buffer, small_queue_bytes: Bytes::new(1 << 30), ..smooth(Profile::LINUX_4_9) };
    let network = Dumbbell {
        pairs,
        access: Rate::from_gbps(10),
        rate: Rate::from_gbps(gbps),
        rtt: Span::from_ms(30),
        limit: 1_000 * gbps,
        mark_at: None,
        profile,
    };
    let mut plan = without_samples(network.long("cubic", false, end));
    plan.schedule.warmup = Span::ZERO; // losses of slow start count
    plan
}

fn without_samples(mut plan: Plan) -> Plan {
    plan.sampling = Sampling::default();
    plan
}

/// The heap's peak over a whole run, for each packet of the most that were out.
#[test]
fn a_packet_that_is_out_takes_at_most_64_bytes() {
    let _alone = ALONE.lock().unwrap();
    let (large, unbounded) = (40_000_000, 256 << 20);
    for (pairs, gbps, window, own_record, loses) in [
        (1, 10, large, 0, false),
        (2, 10, unbounded, 0, true),
        (4, 10, unbounded, 0, true),
        (8, 10, 5_000_000, 0, false),
        (8, 10, 64 << 20, OWN_RECORD, true),
        (16, 10, 64 << 20, OWN_RECORD, true),
        (64, 100, 7_000_000, 0, false),
        (64, 100, 64 << 20, 0, true),
    ] {
        let end = Span::from_ms(if gbps == 10 { 3_000 } else { 500 });
        let plan = long_and_fat(pairs, gbps, window, end);
        let Measured { peak, most_out, lost } = Measured::of(&plan);
        let what = format!("{pairs} flows, {gbps} Gbit/s, windows of {window} bytes");
        assert!(u64::try_from(most_out).unwrap() > 2_500 * gbps, "{what}: {most_out} packets fill no pipe");
        assert_eq!(lost > 1_000, loses, "{what}: {lost} lost");
        let fixed = BASE + LINK * plan.network.links.len() + (FLOW + own_record) * pairs as usize;
        assert!(peak <= fixed + 64 * most_out, "{what}: {peak} bytes, {fixed} of them fixed, for {most_out} packets");
    }
}

/// Flows of one pair of hosts that all go on at once. Vectors double: the worst is just beyond a power of two.
#[test]
fn a_flow_that_goes_on_takes_at_most_8_kilobytes_beside_its_packets() {
    let _alone = ALONE.lock().unwrap();
    for flows in [1_000, 1_100, 2_100] {
        let network = Dumbbell::default();
        let list = (0..flows).map(|i| flow(Span::from_us(i), 0, 1, None)).collect();
        let plan = without_samples(network.plan("cubic", false, Span::from_ms(200), Pattern::List(list)));
        let Measured { peak, most_out, .. } = Measured::of(&plan);
        let flows = usize::try_from(flows).unwrap();
        assert!(most_out > 5 * flows, "{most_out} packets of {flows} flows: not all go on");
        let each = (peak - BASE - LINK * plan.network.links.len()).saturating_sub(64 * most_out) / flows;
        assert!(each <= FLOW, "{each} bytes for each of {flows} flows");
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
    let plan = without_samples(network.plan("cubic", false, Span::from_secs(3), Pattern::List(flows.collect())));
    let mut simulation = Simulation::new(&plan, 1).unwrap();
    let mut at_time = |span: Span| {
        while simulation.progress().now < at(span) && simulation.advance(500) {}
        LIVE.load(Ordering::Relaxed)
    };
    let (early, late) = (at_time(Span::from_ms(200)), at_time(Span::from_ms(1_800)));
    let each = (late.saturating_sub(early)) / 16_000;
    assert!(each <= 400, "{each} bytes stay of each finished flow");
}
