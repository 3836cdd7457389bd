//! Swift: RTTs at the target, and windows of less than a packet.

use narrows_core::cc::Value;
use narrows_core::units::{Rate, Span};
use narrows_plan::{Pattern, Plan};

use super::measure::{GOODPUT, goodputs, jain, packets_per_second, product, queue_mean};
use crate::plans::{Dumbbell, flow, run, set};

const LINE: Rate = Rate::from_gbps(10);

fn network(pairs: u32, limit: u64) -> Dumbbell {
    let access = Rate::from_gbps(40);
    Dumbbell { pairs, access, rate: LINE, rtt: Span::from_us(40), limit, ..Dumbbell::default() }
}

/// Flows that begin `apart`, with an absolute target: the minimum RTT is not the same for all.
fn plan(network: &Dumbbell, controller: &str, apart: Span, end: Span) -> Plan {
    let n = network.pairs;
    let starts = (0..n).map(|pair| flow(apart * u64::from(pair), pair, n + pair, None));
    let mut plan = network.plan(controller, false, end, Pattern::List(starts.collect()));
    plan.schedule.warmup = end.div(2);
    if controller == "swift" {
        set(&mut plan, "base-target", Value::Span(Span::from_us(100)));
    }
    plan
}

/// N flows rest where the RTT is the target of the window C·RTT/N: 100 µs and what flow scaling adds,
/// 100 µs·(1/√w − 1/√100)/(1/√0.1 − 1/√100) [Swift §3.5]. To 10 %: windows are whole packets, and β takes more off than the
/// excess.
#[test]
fn the_rtt_rests_at_the_target_and_flows_are_equal() {
    for flows in [2, 4, 16] {
        let network = network(flows, 2_000);
        let results = run(&plan(&network, "swift", Span::from_ms(2), Span::from_ms(200)), 1);
        let shares = goodputs(&results);
        assert!(jain(&shares) > 0.98, "{flows}: {shares:?}");
        assert!(shares.iter().sum::<f64>() / (GOODPUT * LINE.as_bps() as f64) > 0.99, "{flows}: {shares:?}");
        let rate = packets_per_second(LINE);
        let rtt = (product(&network) + queue_mean(&results.ports[network.bottleneck()])) / rate * 1e6;
        let window = rtt * rate / 1e6 / f64::from(flows);
        let scaling = 100.0 * (1.0 / window.sqrt() - 0.1).max(0.0) / (10f64.sqrt() - 0.1);
        assert!((rtt / (100.0 + scaling) - 1.0).abs() < 0.1, "{flows}: {rtt} µs, {} by the target", 100.0 + scaling);
    }
}

/// More flows than the path and its queue hold packets: windows below one packet leave a queue of the target's length, where
/// windows of two packets each overflow it [Swift §3.4, §3.5].
#[test]
fn hundreds_of_flows_share_a_port_without_a_loss() {
    let network = network(300, 400);
    let lost = |controller: &str| {
        let mut plan = plan(&network, controller, Span::from_us(200), Span::from_ms(300));
        plan.schedule.warmup = Span::from_ms(150);
        let results = run(&plan, 1);
        let port = &results.ports[network.bottleneck()];
        (results.flows.iter().map(|flow| flow.retransmitted_bytes).sum::<u64>(), port.utilisation, goodputs(&results))
    };
    let (retransmitted, utilisation, shares) = lost("swift");
    assert_eq!(retransmitted, 0);
    assert!(utilisation > 0.95, "{utilisation}");
    assert!(jain(&shares) > 0.9, "{}", jain(&shares));
    assert!(lost("newreno").0 > 10_000_000);
}
