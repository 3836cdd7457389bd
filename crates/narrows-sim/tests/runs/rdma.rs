//! Connections of RDMA: closed forms of what losses cost, and networks that drop nothing.

use narrows_core::packet::Mtu;
use narrows_core::transport::rdma::{Config, Recovery};
use narrows_core::units::{Bytes, Rate, Span};
use narrows_plan::{Connections, ControllerChoice, Pattern, Plan, Transport};
use narrows_results::Results;

use crate::lossless::{INPUT, OUTPUT, dropped, incast};
use crate::plans::{Dumbbell, flow, run};
use crate::truths::hpcc::write_telemetry;

const LINE: Rate = Rate::from_gbps(10);
const PAYLOAD: u64 = 1_456;
const TIMEOUT: Span = Span::from_ms(1);

/// A line of one rate from end to end.
fn line(rtt: Span) -> Dumbbell {
    Dumbbell { rate: LINE, access: LINE, rtt, limit: 1_000, ..Dumbbell::default() }
}

/// Flows at the line rate, unless their receivers see marks.
fn plan(network: &Dumbbell, recovery: Recovery, end: Span, pattern: Pattern) -> Plan {
    let mut plan = network.plan("dcqcn", true, end, pattern);
    plan.schedule.warmup = Span::ZERO;
    plan.traffic[0].connections = Connections::FreshEstablished;
    let cnp_interval = Some(Span::from_us(50));
    plan.traffic[0].transport = Transport::Rdma(Config { recovery, timeout: TIMEOUT, ack_every: 1, cnp_interval });
    plan
}

fn sized(bytes: u64) -> Pattern {
    Pattern::List(vec![flow(Span::ZERO, 0, 1, Some(bytes))])
}

fn long() -> Pattern {
    Pattern::List(vec![flow(Span::ZERO, 0, 1, None)])
}

#[test]
fn a_message_takes_its_wire_bytes_at_the_line_rate_and_the_path() {
    for mtu in [576, 1_500, 4_096, 9_000] {
        let mut plan = plan(&line(Span::from_us(100)), Recovery::GoBackN, Span::from_ms(20), sized(1_000_000));
        plan.network.mtu = Mtu::new(mtu).expect("in range");
        let row = run(&plan, 1).flows.remove(0);
        let (full, size) = (u64::from(mtu) - 44, 1_000_000);
        let (packets, last) = (size / full, size % full);
        let wire = |bytes: u64| LINE.time_for(Bytes::new(bytes + 44 + 38));
        // The last packet waits behind a full one at each of two more hops.
        let expected = wire(full) * (packets + 2) + wire(last) + Span::from_us(50);
        assert_eq!((row.fct_ns, row.ideal_fct_ns), (Some(expected.as_ns()), expected.as_ns()), "{mtu}");
        assert_eq!((row.retransmitted_bytes, row.timeouts), (0, 0));
    }
}

/// A share of packets, as a plan has it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shares are below 1")]
fn loss_of(share: f64) -> u32 {
    (share * (1_u64 << 32) as f64) as u32
}

/// Share of the line that arrives in order, and the run.
fn efficiency(recovery: Recovery, rtt: Span, loss: f64) -> (f64, Results) {
    let (network, seconds) = (line(rtt), 1);
    let mut plan = plan(&network, recovery, Span::from_secs(seconds), long());
    plan.network.links[network.bottleneck()].loss = loss_of(loss);
    let results = run(&plan, 3);
    let most = LINE.as_bps() as f64 / 8.0 * seconds as f64 * PAYLOAD as f64 / 1_538.0;
    (results.flows[0].delivered_after_warmup_bytes as f64 / most, results)
}

/// Packets from one that is lost to its repetition: until the next one is there, which begins when it ends and is serialised three
/// times, until the acknowledgement comes back, and two that the host's port holds by then.
fn round(rtt: Span) -> u64 {
    let wire = |ip_bytes: u64| LINE.time_for(Bytes::new(ip_bytes + 38));
    (rtt + wire(1_500) * 4 + wire(48) * 3).as_ps() / wire(1_500).as_ps() + 2
}

/// Each loss costs the packets of a round, N, so that (1 − p)/(1 − p + p·N) of the line is used [Bertsekas 1992 §2.4]. A
/// repetition that is lost, too, costs the timeout: p² of T packets.
#[test]
fn go_back_n_uses_what_the_closed_form_says() {
    for (rtt, loss) in [(20, 1e-3), (100, 1e-3), (100, 1e-4), (400, 1e-4), (400, 1e-3)] {
        let rtt = Span::from_us(rtt);
        let (used, results) = efficiency(Recovery::GoBackN, rtt, loss);
        let each = LINE.time_for(Bytes::new(1_538));
        let round = round(rtt) as f64;
        let timeout = TIMEOUT.as_ps() as f64 / each.as_ps() as f64;
        let expected = (1.0 - loss) / (1.0 - loss + loss * round + loss * loss * timeout);
        assert!((used / expected - 1.0).abs() < 0.02, "{rtt} {loss}: {used} {expected}");
        let row = &results.flows[0];
        let resent = row.retransmitted_bytes as f64 / PAYLOAD as f64;
        let lost = results.ports.iter().map(|port| port.dropped_impairment_packets).sum::<u64>() as f64;
        // What is lost while it is discarded anyway costs nothing more.
        let expected = lost * round * used / (1.0 - loss) + f64::from(row.timeouts) * timeout;
        assert!((resent / expected - 1.0).abs() < 0.05, "{rtt} {loss}: {resent} {expected}");
    }
}

/// Only what is lost goes again: 1 − p of the line is used. What is lost twice waits for a timeout, and meanwhile sending goes on;
/// DCQCN takes that for a notification.
#[test]
fn selective_repeat_loses_what_is_lost() {
    for (rtt, loss) in [(20, 1e-3), (100, 1e-4), (400, 1e-3)] {
        let rtt = Span::from_us(rtt);
        let (used, results) = efficiency(Recovery::SelectiveRepeat, rtt, loss);
        let row = &results.flows[0];
        let lost = results.ports.iter().map(|port| port.dropped_impairment_packets).sum::<u64>();
        let resent = row.retransmitted_bytes / PAYLOAD;
        assert_eq!(resent, lost, "{rtt} {loss}: {} timeouts", row.timeouts);
        let expected = (1.0 - loss) * (1.0 - 2e-4 - 3e-4 * f64::from(row.timeouts));
        assert!(used > expected && used <= 1.0 - loss * 0.9, "{rtt} {loss}: {used} {expected}");
    }
}

/// Responses of adapters at once: with flow control nothing is lost, whatever the recovery; without it what is lost is repaired, and
/// going back to it sends much more again.
#[test]
fn an_incast_is_lossless_with_flow_control_and_repaired_without() {
    let results = |recovery, fabric| {
        let mut plan = incast(16, "256KB", fabric);
        let controller = ControllerChoice::new("dcqcn", true);
        plan.traffic[0].controller = controller;
        plan.traffic[0].connections = Connections::FreshEstablished;
        plan.traffic[0].transport =
            Transport::Rdma(Config { recovery, timeout: TIMEOUT, ack_every: 1, cnp_interval: None });
        run(&plan, 1)
    };
    let resent = |results: &Results| results.flows.iter().map(|flow| flow.retransmitted_bytes).sum::<u64>();
    let mut without = vec![];
    for recovery in [Recovery::GoBackN, Recovery::SelectiveRepeat] {
        for fabric in [INPUT, OUTPUT] {
            let results = results(recovery, fabric);
            assert_eq!((dropped(&results), resent(&results)), (0, 0), "{recovery:?} {fabric}");
            assert!(results.flows.iter().all(|flow| flow.fct_ns.is_some()));
        }
        let results = results(recovery, "limit = \"103KB\"");
        assert!(dropped(&results) > 0 && results.flows.iter().all(|flow| flow.fct_ns.is_some()));
        let lost = results.flows.iter().filter_map(|flow| flow.dropped_bytes).sum::<u64>();
        without.push((resent(&results), lost));
    }
    let [(back, back_lost), (selective, selective_lost)] = without[..] else { unreachable!("two kinds") };
    assert!(back > back_lost && selective >= selective_lost && back > 2 * selective, "{without:?}");
}

/// Controllers of datacenters share a port over RDMA as they do over TCP: most of it is used, nothing is lost, and whoever reads
/// telemetry gets it back with acknowledgements.
#[test]
fn controllers_share_a_port() {
    for (controller, ecn, used) in [
        ("dctcp", true, 0.99),
        ("hpcc", false, 0.93),
        ("timely", false, 0.85),
        ("swift", false, 0.95),
        ("uno", true, 0.8),
    ] {
        let network = Dumbbell { pairs: 2, mark_at: Some(65), ..line(Span::from_us(100)) };
        let flows = (0..2).map(|pair| flow(Span::from_us(137) * u64::from(pair), pair, 2 + pair, None));
        let mut plan = plan(&network, Recovery::SelectiveRepeat, Span::from_ms(400), Pattern::List(flows.collect()));
        plan.traffic[0].controller = ControllerChoice::new(controller, ecn);
        plan.schedule.warmup = Span::from_ms(200);
        if let Transport::Rdma(config) = &mut plan.traffic[0].transport {
            config.cnp_interval = None;
        }
        if controller == "hpcc" {
            write_telemetry(&mut plan);
        }
        let results = run(&plan, 1);
        let goodputs: Vec<f64> = results.flows.iter().map(|flow| flow.delivered_after_warmup_bytes as f64).collect();
        let share = goodputs.iter().sum::<f64>() / (LINE.as_bps() as f64 / 8.0 * 0.2 * PAYLOAD as f64 / 1_538.0);
        assert!(share >= used && share <= 1.001, "{controller}: {share}");
        let jain = goodputs.iter().sum::<f64>().powi(2) / 2.0 / goodputs.iter().map(|it| it * it).sum::<f64>();
        assert!(jain > 0.95, "{controller}: {goodputs:?}");
        let lost: u64 = results.flows.iter().map(|flow| flow.retransmitted_bytes).sum();
        assert_eq!(lost, 0, "{controller}");
    }
}
