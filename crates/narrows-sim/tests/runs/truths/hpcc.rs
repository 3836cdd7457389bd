//! HPCC: what a link is used at, and by whom, in closed form; and queues.

use narrows_core::cc::Value;
use narrows_core::units::{Rate, Span};
use narrows_plan::{NodeKind, Pattern, Plan};
use narrows_results::{PortRow, Results};

use super::measure::{goodputs, jain, queue_mean};
use crate::plans::{Dumbbell, flow, run, set};

const LINE: Rate = Rate::from_gbps(10);
const RTT: Span = Span::from_us(100);

/// So many long flows over one port, of which the last ones' RTT is `longer` more, on switches that write telemetry.
fn plan(flows: u32, longer: &[Span], end: Span) -> (Dumbbell, Plan) {
    let network = Dumbbell { pairs: flows, access: LINE, rate: LINE, rtt: RTT, limit: 20_000, ..Dumbbell::default() };
    let starts = (0..flows).map(|pair| flow(Span::from_us(u64::from(pair) * 137), pair, flows + pair, None));
    let mut plan = network.plan("hpcc", false, end, Pattern::List(starts.collect()));
    plan.schedule.warmup = end.div(2);
    let first = flows as usize - longer.len();
    for (host, longer) in (first..).zip(longer) {
        for link in &mut plan.network.links[2 * host..2 * host + 2] {
            link.delay = longer.div(4) + link.delay;
        }
    }
    write_telemetry(&mut plan);
    (network, plan)
}

fn write_telemetry(plan: &mut Plan) {
    for link in &mut plan.network.links {
        link.telemetry = plan.network.nodes[link.from as usize].kind == NodeKind::Switch;
    }
}

fn bottleneck<'a>(network: &Dumbbell, results: &'a Results) -> &'a PortRow {
    &results.ports[network.bottleneck()]
}

/// Where all windows rest, `W = W·η/U + W_AI`, and together they are `U·W_init`: so `U = η + n·(1 − η)/N` for n flows, and each has
/// an n-th of it. Measured is a little less: windows count IP packets where the line sends frames.
#[test]
fn n_flows_use_as_much_of_the_link_as_the_additive_step_says_and_share_it_evenly() {
    for (flows, expected_of) in [(1, 10), (4, 10), (8, 10), (2, 40)] {
        let (network, mut plan) = plan(flows, &[], Span::from_ms(400));
        set(&mut plan, "flows", Value::Count(expected_of));
        let results = run(&plan, 1);
        let expected = 0.95 + 0.05 * f64::from(flows) / expected_of as f64;
        let port = bottleneck(&network, &results);
        assert!(
            (port.utilisation - expected).abs() < 0.01,
            "{flows} of {expected_of}: {} {expected}",
            port.utilisation
        );
        assert!(jain(&goodputs(&results)) > 0.99, "{:?}", goodputs(&results));
        assert!(queue_mean(port) < 4.0, "{}", queue_mean(port));
    }
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
