//! The near-source loop as a whole: who is told, what it does to those who are, and to those who are not.

use crate::plans::{Dumbbell, flow, run};
use narrows_core::cc::SPECS;
use narrows_core::link::gilbert_elliott;
use narrows_core::queue::CongestionPointConfig;
use narrows_core::tcp::near_source::ReactionPoint;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Bytes, Rate, Span};
use narrows_plan::{CongestionPoint, FunctionConfig, Pattern, Plan, Scope};
use narrows_results::{Quantity, Results};

const POINT: CongestionPoint = CongestionPoint {
    sampling: CongestionPointConfig { set_point: Bytes::new(33_000), weight: 2, sample_base: Bytes::new(150_000) },
    scope: Scope::Tor,
};

/// Senders on the left at the bottleneck's rate, so that each may fill it alone.
fn shared(pairs: u32, near_source: Option<ReactionPoint>) -> Dumbbell {
    let profile = Profile { near_source, ..Profile::LINUX_4_9 };
    Dumbbell {
        pairs,
        access: Rate::from_gbps(10),
        rate: Rate::from_gbps(10),
        rtt: Span::from_us(30),
        profile,
        ..Dumbbell::default()
    }
}

fn delivered(results: &Results, traffic: u32) -> u64 {
    results.flows.iter().filter(|flow| flow.traffic == traffic).map(|flow| flow.delivered_after_warmup_bytes).sum()
}

#[test]
fn listening_to_nobody_changes_nothing() {
    for spec in SPECS {
        let ecn = spec.ecn.is_needed();
        let of = |near_source| {
            let net = Dumbbell { mark_at: Some(65), limit: 300, ..shared(3, near_source) };
            let plan = net.long(spec.name, ecn, Span::from_ms(40));
            let results = run(&plan, 3);
            format!("{:?} {:?} {:?} {}", results.flows, results.ports, results.series, results.packet_hops)
        };
        let plain = of(None);
        assert_eq!(of(Some(ReactionPoint::SOFTWARE)), plain, "{}", spec.name);
        assert_eq!(of(Some(ReactionPoint::STANDARD)), plain, "{}", spec.name);
    }
}

/// The plan with a congestion point at the bottleneck.
fn with_point(net: &Dumbbell, mut plan: Plan) -> Plan {
    plan.network.links[net.bottleneck()].congestion_point = Some(POINT);
    plan
}

#[test]
fn a_loss_based_flow_is_held_near_the_set_point() {
    // CUBIC alone would fill the thousand packets.
    for (near_source, held) in [(None, false), (Some(ReactionPoint::SOFTWARE), true)] {
        let net = shared(4, near_source);
        let plan = with_point(&net, net.long("cubic", false, Span::from_ms(300)));
        let results = run(&plan, 1);
        let port = &results.ports[net.bottleneck()];
        assert_eq!(port.queue_mean_bytes < 2.0 * 33_000.0, held, "mean {}", port.queue_mean_bytes);
        assert!(port.utilisation > 0.85, "{}", port.utilisation);
        assert_eq!(results.flows.iter().all(|flow| flow.near_source_cuts > 0), held);
        assert!(port.congestion_samples > 0, "the port tells whoever listens or not");
    }
}

#[test]
fn who_stands_behind_another_switch_is_not_told() {
    // The same congestion point on the far switch's port towards a receiver: its senders are not on that switch.
    let net = Dumbbell { access: Rate::from_gbps(1), ..shared(2, Some(ReactionPoint::SOFTWARE)) };
    let mut plan = net.long("cubic", false, Span::from_ms(100));
    let into: Vec<usize> =
        (0..plan.network.links.len()).filter(|&link| plan.network.links[link].to == net.pairs).collect();
    let sampling = CongestionPointConfig { set_point: Bytes::new(3_000), ..POINT.sampling };
    plan.network.links[into[0]].congestion_point = Some(CongestionPoint { sampling, ..POINT });
    plan.network.links[into[0]].rate = Rate::from_mbps(100);
    let results = run(&plan, 1);
    assert!(results.ports[into[0]].congestion_samples > 10);
    assert!(results.flows.iter().all(|flow| flow.near_source_cuts == 0));
}

#[test]
fn a_flow_that_was_held_for_a_moment_takes_up_its_rate_again() {
    // BBR across 10 ms fills the link; for 20 ms, two of its rounds, DCTCP wants all of it.
    let wan = Dumbbell {
        rtt: Span::from_us(20),
        limit: 3_000,
        mark_at: Some(65),
        ..shared(2, Some(ReactionPoint::SOFTWARE))
    };
    let list = Pattern::List(vec![flow(Span::ZERO, 0, 2, None)]);
    let mut plan = with_point(&wan, wan.plan("bbr", false, Span::from_ms(400), list));
    plan.network.links.iter_mut().filter(|link| link.from == 2 || link.to == 2).for_each(|link| {
        link.delay = Span::from_ms(5);
    });
    let mut burst = wan.plan(
        "dctcp",
        true,
        Span::from_ms(400),
        Pattern::List(vec![flow(Span::from_ms(200), 1, 3, Some(12_000_000))]),
    );
    let mut burst = burst.traffic.remove(0);
    burst.name = "burst".into();
    plan.traffic.push(burst);
    plan.sampling.goodput = Span::from_ms(10);
    let results = run(&plan, 1);
    let goodput = results.series.iter().filter(|row| row.quantity == Quantity::GoodputBps);
    let goodput: Vec<f64> = goodput.map(|row| row.value / 1e9).collect();
    let bursts = results.flows.iter().find(|flow| flow.traffic == 1).unwrap();
    let over_ms = (bursts.start_ns + bursts.fct_ns.unwrap()).div_ceil(1_000_000);
    let at = |ms: u64| goodput[usize::try_from(ms / 10).unwrap()];
    assert!(at(190) > 9.0, "alone it fills the link: {goodput:?}");
    assert!(bursts.near_source_cuts > 0 && results.flows[0].near_source_cuts > 0);
    // An RTT and a recovery of the limiter later it is back, with BBR's own model of the path unharmed.
    assert!(at(over_ms + 40) > 8.5, "{goodput:?}, the burst was over at {over_ms} ms");
    assert!(delivered(&results, 0) > 0);
}

/// The wires to two of four senders lose packets, one by one or in bursts, and no notification, as no pause frame. Those of a wire that loses
/// in bursts were lost, and the run panicked.
#[test]
fn a_lossy_wire_loses_no_notification() {
    let chain = gilbert_elliott::Config { p: 1 << 27, r: 1 << 31, loss_bad: 1 << 32, loss_good: 0 };
    let burst = FunctionConfig::GilbertElliott(chain);
    for (loss, functions) in [(0, vec![]), (u32::MAX / 5, vec![]), (0, vec![burst])] {
        let net = Dumbbell { limit: 300, ..shared(4, Some(ReactionPoint::SOFTWARE)) };
        let mut plan = net.long("cubic", false, Span::from_ms(200));
        plan.schedule.warmup = Span::ZERO;
        let often = CongestionPointConfig { set_point: Bytes::new(6_000), weight: 2, sample_base: Bytes::new(15_000) };
        plan.network.links[net.bottleneck()].congestion_point = Some(CongestionPoint { sampling: often, ..POINT });
        // Hosts on the left come first.
        for link in plan.network.links.iter_mut().filter(|link| link.to < 2) {
            (link.loss, link.functions) = (loss, functions.clone());
        }
        let is_lossy = loss > 0 || !functions.is_empty();
        let results = run(&plan, 1);
        let lost: u64 = results.ports.iter().map(|port| port.dropped_impairment_packets).sum();
        assert_eq!(lost > 5, is_lossy, "{lost}");
        let cuts: u64 = results.flows.iter().map(|flow| flow.near_source_cuts).sum();
        let sent = results.ports[net.bottleneck()].congestion_samples;
        assert!(sent > 50 && cuts == sent, "{cuts} of {sent}");
    }
}
