//! LEDBAT++: the delay it keeps, and whom it gives way to.

use narrows_core::cc::Value;
use narrows_core::units::{Rate, Span};
use narrows_plan::{ControllerChoice, Pattern, Plan};

use super::measure::{goodputs, jain, packets_per_second, queue_mean};
use crate::plans::{Dumbbell, flow, run, set};

/// A port that holds 200 ms.
fn network(pairs: u32) -> Dumbbell {
    Dumbbell { pairs, rate: Rate::from_mbps(50), rtt: Span::from_ms(30), limit: 800, ..Dumbbell::default() }
}

fn plan(network: &Dumbbell, apart: Span, end: Span) -> Plan {
    let n = network.pairs;
    let starts = (0..n).map(|pair| flow(apart * u64::from(pair), pair, n + pair, None));
    let mut plan = network.plan("ledbat-plus-plus", false, end, Pattern::List(starts.collect()));
    plan.schedule.warmup = end.div(3);
    plan
}

/// One flow uses at least 90 % of the link, what slowdowns of a tenth of the time leave [LEDBAT++ §4.4], with a mean queueing
/// delay below the target of 60 ms, and loses nothing.
#[test]
fn alone_it_uses_the_link_and_keeps_to_its_target() {
    let network = network(1);
    let results = run(&plan(&network, Span::ZERO, Span::from_secs(180)), 1);
    let port = &results.ports[network.bottleneck()];
    let delay = queue_mean(port) / packets_per_second(network.rate);
    assert!(port.utilisation > 0.9, "{}", port.utilisation);
    assert!((0.02..=0.06).contains(&delay), "{delay} s");
    assert_eq!(results.flows[0].retransmitted_bytes, 0);
}

/// Beside NewReno, which fills a queue of 200 ms, it keeps less than a tenth of the link [LEDBAT++ §1].
#[test]
fn it_gives_way_to_newreno() {
    let network = network(2);
    let mut plan = plan(&network, Span::ZERO, Span::from_secs(120));
    let mut other = plan.traffic[0].clone();
    other.name = "other".into();
    other.controller = ControllerChoice::new("newreno", false);
    let alone = |pair: u32| Pattern::List(vec![flow(Span::from_secs(5) * u64::from(pair), pair, 2 + pair, None)]);
    (plan.traffic[0].pattern, other.pattern) = (alone(0), alone(1));
    plan.traffic.push(other);
    let shares = goodputs(&run(&plan, 1));
    assert!(shares[0] / shares.iter().sum::<f64>() < 0.1, "{shares:?}");
}

/// A flow that comes later measures the first one's queue as its base delay, and would keep more than its share; slowdowns let
/// it see the empty path [LEDBAT++ §3.1].
#[test]
fn slowdowns_undo_the_latecomers_advantage() {
    let fairness = |slowdowns: bool| {
        let network = network(2);
        let mut plan = plan(&network, Span::from_secs(20), Span::from_secs(600));
        set(&mut plan, "slowdowns", Value::Switch(slowdowns));
        jain(&goodputs(&run(&plan, 1)))
    };
    let (with, without) = (fairness(true), fairness(false));
    assert!(with > 0.9, "{with}");
    assert!(without < with - 0.05, "{without} without slowdowns, {with} with");
}
