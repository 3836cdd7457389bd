//! Copa: the packets it keeps queued, and how it competes.

use narrows_core::cc::Value;
use narrows_core::units::{Rate, Span};
use narrows_plan::{ControllerChoice, Pattern, Plan};

use super::measure::{goodputs, jain, queue_mean};
use crate::plans::{Dumbbell, flow, run, set};

fn network(pairs: u32, limit: u64) -> Dumbbell {
    Dumbbell { pairs, rate: Rate::from_mbps(100), rtt: Span::from_ms(20), limit, ..Dumbbell::default() }
}

fn plan(network: &Dumbbell, end: Span) -> Plan {
    let n = network.pairs;
    let starts = (0..n).map(|pair| flow(Span::from_ms(300) * u64::from(pair), pair, n + pair, None));
    let mut plan = network.plan("copa", false, end, Pattern::List(starts.collect()));
    plan.schedule.warmup = end.div(2);
    plan
}

/// N flows are equal, and keep 1/δ packets each in the queue on average. The queue swings between nearly nothing and 2.5·N/δ
/// [Copa §3], so its mean is accepted from a half to 2.5 times N/δ: where it does not quite empty, minimum RTTs are too long.
#[test]
fn flows_are_equal_and_keep_one_over_delta_packets_each() {
    for (flows, inverse) in [(1, 2), (4, 2), (1, 10), (4, 10)] {
        let network = network(flows, 2_000);
        let mut plan = plan(&network, Span::from_secs(60));
        set(&mut plan, "delta", Value::Real((1 << 20) / inverse));
        set(&mut plan, "switches", Value::Switch(false));
        let results = run(&plan, 1);
        let shares = goodputs(&results);
        let port = &results.ports[network.bottleneck()];
        let queue = queue_mean(port) / (u64::from(flows) * inverse) as f64;
        assert!(jain(&shares) > 0.95, "{flows} flows, 1/δ {inverse}: {shares:?}");
        assert!(port.utilisation > 0.97, "{flows} flows, 1/δ {inverse}: {}", port.utilisation);
        assert!((0.5..2.5).contains(&queue), "{flows} flows, 1/δ {inverse}: {queue} of N/δ");
        assert_eq!(results.flows.iter().map(|flow| flow.retransmitted_bytes).sum::<u64>(), 0);
    }
}

/// Beside NewReno, which fills the queue, it gets a part of its share if it competes, and next to nothing if it does not
/// [Copa §2.2, §5.5].
#[test]
fn it_competes_with_newreno_only_if_it_switches() {
    let share = |switches: bool| {
        let network = network(2, 300);
        let mut plan = plan(&network, Span::from_secs(120));
        set(&mut plan, "switches", Value::Switch(switches));
        let mut other = plan.traffic[0].clone();
        other.name = "other".into();
        other.controller = ControllerChoice::new("newreno", false);
        let alone = |pair: u32| Pattern::List(vec![flow(Span::from_ms(300) * u64::from(pair), pair, 2 + pair, None)]);
        (plan.traffic[0].pattern, other.pattern) = (alone(0), alone(1));
        plan.traffic.push(other);
        let shares = goodputs(&run(&plan, 1));
        shares[0] / shares.iter().sum::<f64>()
    };
    let (with, without) = (share(true), share(false));
    assert!((0.25..0.75).contains(&with), "{with}");
    assert!(without < 0.15, "{without}");
}

/// One flow sees its queue empty, so it does not take itself for a buffer filler: N/δ is 2 packets, and 2.5 times that its peak.
#[test]
fn alone_it_does_not_compete() {
    let network = network(1, 2_000);
    let results = run(&plan(&network, Span::from_secs(60)), 1);
    let queue = queue_mean(&results.ports[network.bottleneck()]);
    assert!(queue < 5.0, "{queue}");
}
