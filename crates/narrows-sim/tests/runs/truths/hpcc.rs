//! HPCC: what a link is used at, and by whom, in closed form; and queues.

use narrows_core::cc::Value;
use narrows_core::transport::Transport;
use narrows_core::transport::datagram::{self, SendRate};
use narrows_core::units::{Rate, Span, Time};
use narrows_plan::{Change, Event, NodeKind, Pattern, Plan};
use narrows_results::{PortRow, Results};
use narrows_sim::Simulation;

use super::measure::{goodputs, jain, queue_mean};
use crate::plans::{Dumbbell, flow, run, set};

const LINE: Rate = Rate::from_gbps(10);
const RTT: Span = Span::from_us(100);

/// So many long flows over one port, of which the last ones' RTT is `longer` more, on switches that write telemetry.
fn plan(flows: u32, longer: &[Span], end: Span) -> (Dumbbell, Plan) {
    let network = Dumbbell { pairs: flows, access: LINE, rate: LINE, rtt: RTT, limit: 20_000, ..Dumbbell::default() };
    let mut plan = long(&network, end);
    let first = flows as usize - longer.len();
    for (host, longer) in (first..).zip(longer) {
        for link in &mut plan.network.links[2 * host..2 * host + 2] {
            link.delay += longer.div(2);
        }
    }
    (network, plan)
}

/// A long flow of each pair, that begin one after the other.
fn long(network: &Dumbbell, end: Span) -> Plan {
    let flows = network.pairs;
    let starts = (0..flows).map(|pair| flow(Span::from_us(u64::from(pair) * 137), pair, flows + pair, None));
    let mut plan = network.plan("hpcc", false, end, Pattern::List(starts.collect()));
    plan.schedule.warmup = end.div(2);
    write_telemetry(&mut plan);
    plan
}

/// Every port of a switch does.
pub(crate) fn write_telemetry(plan: &mut Plan) {
    for link in &mut plan.network.links {
        link.telemetry = plan.network.nodes[link.from as usize].kind == NodeKind::Switch;
    }
}

fn bottleneck<'a>(network: &Dumbbell, results: &'a Results) -> &'a PortRow {
    &results.ports[network.bottleneck()]
}

/// In equilibrium `W = W·η/U + W_AI` for each window, and together they are `U·B·T`: so `U = η + n·(1 − η)/N·B_h/B` for n flows from
/// hosts of lines of `B_h`, and each has an n-th of it.
#[test]
fn n_flows_use_as_much_of_the_link_as_the_additive_step_says_and_share_it_evenly() {
    for (flows, expected_of, access) in [(2, 4, LINE), (8, 10, LINE), (4, 20, LINE), (4, 40, Rate::from_gbps(40))] {
        let (mut network, _) = plan(flows, &[], Span::from_ms(400));
        network.access = access;
        let mut plan = long(&network, Span::from_ms(400));
        set(&mut plan, "flows", Value::Count(expected_of));
        let results = run(&plan, 1);
        let ratio = access.as_bps() as f64 / LINE.as_bps() as f64;
        let expected = 0.95 + 0.05 * f64::from(flows) / expected_of as f64 * ratio;
        let port = bottleneck(&network, &results);
        let case = format!("{flows} of {expected_of} at {access}");
        assert!((port.utilisation - expected).abs() < 0.006, "{case}: {} {expected}", port.utilisation);
        assert!(jain(&goodputs(&results)) > 0.99, "{case}: {:?}", goodputs(&results));
        assert!(queue_mean(port) < 4.0, "{case}: {}", queue_mean(port));
    }
}

/// After the line's rate has halved, flows know it by the next packets: they use 0.95 of what is left, without a queue.
#[test]
fn a_line_that_changes_its_rate_is_used_as_before() {
    let (network, mut plan) = plan(2, &[], Span::from_ms(100));
    let at = Time::ZERO + Span::from_ms(30);
    let half = Event { at, change: Change::Rate(Rate::from_gbps(5)) };
    plan.network.links[network.bottleneck()].events = vec![half];
    let results = run(&plan, 1);
    let port = bottleneck(&network, &results);
    assert!(
        (port.utilisation - 0.952).abs() < 0.01 && queue_mean(port) < 4.0,
        "{} {}",
        port.utilisation,
        queue_mean(port)
    );
}

/// Losses on a wire and in a short buffer, at data and at acknowledgements, with SACK and beside datagrams: all of it arrives, and no
/// telemetry is left.
#[test]
fn what_is_lost_leaves_no_telemetry() {
    let network = Dumbbell { pairs: 6, access: LINE, rate: LINE, rtt: RTT, limit: 40, ..Dumbbell::default() };
    let flows = (0..5).map(|pair| flow(Span::from_us(u64::from(pair) * 137), pair, 6 + pair, Some(3_000_000)));
    let mut plan = network.plan("hpcc", false, Span::from_ms(200), Pattern::List(flows.collect()));
    plan.schedule.drain = Span::from_secs(20);
    let mut datagrams = plan.traffic[0].clone();
    datagrams.name = "datagrams".into();
    datagrams.transport = Transport::Datagram(datagram::Config { rate: SendRate::Fixed(Rate::from_gbps(2)) });
    datagrams.pattern = Pattern::List(vec![flow(Span::ZERO, 5, 11, Some(1_000_000))]);
    plan.traffic.push(datagrams);
    for link in &mut plan.network.links {
        link.loss = u32::MAX / 500;
    }
    write_telemetry(&mut plan);
    let mut simulation = Simulation::new(&plan, 1).expect("a plan that can be run");
    while simulation.advance(1_000) {}
    let left = simulation.telemetry_under_way();
    let results = simulation.finish();
    let tcp = || results.flows.iter().filter(|flow| flow.traffic == 0);
    assert!(tcp().all(|flow| flow.fct_ns.is_some()), "all of it arrives");
    assert!(tcp().map(|flow| flow.retransmitted_bytes).sum::<u64>() > 0);
    let dropped: u64 = results.flows.iter().filter_map(|flow| flow.dropped_packets).sum();
    assert!(dropped > 1_000, "{dropped}: a wire loses 1 of 500, the buffer more");
    assert_eq!(left, 0);
}

/// The step of each is in proportion to its own line's window, `B·T`: rates are equal whatever the RTTs.
#[test]
fn flows_of_unequal_rtts_share_evenly() {
    let longer = [Span::from_us(400), Span::from_ms(1)];
    let (network, mut plan) = plan(4, &longer, Span::from_secs(2));
    set(&mut plan, "flows", Value::Count(20));
    let results = run(&plan, 1);
    let shares = goodputs(&results);
    let port = bottleneck(&network, &results);
    assert!(
        (port.utilisation - 0.96).abs() < 0.01 && queue_mean(port) < 4.0,
        "{} {}",
        port.utilisation,
        queue_mean(port)
    );
    assert!(jain(&shares) > 0.98, "{shares:?}");
}

/// Sixteen flows begin within 2 ms, each at its line's rate: where T is known, the queue that this makes is gone after 3 ms, and comes
/// no more. Where T is measured it is too long for those that began behind the queue, and so are their windows.
#[test]
fn the_queue_of_a_burst_of_starts_drains() {
    let (network, mut plan) = plan(16, &[], Span::from_ms(50));
    plan.schedule.warmup = Span::from_ms(5);
    let measured = run(&plan, 1);
    set(&mut plan, "base-rtt", Value::Span(RTT + Span::from_us(6)));
    let given = run(&plan, 1);
    let [measured, given] = [&measured, &given].map(|results| bottleneck(&network, results));
    assert!(queue_mean(given) < 5.0 && given.utilisation > 0.9, "{} {}", queue_mean(given), given.utilisation);
    assert!(queue_mean(measured) > 100.0, "{}", queue_mean(measured));
    assert_eq!(given.dropped_limit_packets, 0);
}
