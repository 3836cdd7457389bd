//! TIMELY over TCP: which fixed points it has.

use narrows_core::cc::Value;
use narrows_core::units::{Rate, Span};
use narrows_plan::Pattern;
use narrows_results::Results;

use super::measure::{GOODPUT, goodputs, jain, packets_per_second, product, queue_mean};
use crate::plans::{Dumbbell, flow, run, set};

const LINE: Rate = Rate::from_gbps(10);

fn network(pairs: u32) -> Dumbbell {
    Dumbbell { pairs, access: LINE, rate: LINE, rtt: Span::from_us(20), limit: 5_000, ..Dumbbell::default() }
}

fn results(network: &Dumbbell, patched: bool) -> Results {
    let n = network.pairs;
    let starts = (0..n).map(|pair| flow(Span::from_ms(10) * u64::from(pair), pair, n + pair, None));
    let mut plan = network.plan("timely", false, Span::from_ms(600), Pattern::List(starts.collect()));
    plan.schedule.warmup = Span::from_ms(300);
    set(&mut plan, "patched", Value::Switch(patched));
    set(&mut plan, "t-low", Value::Span(Span::from_us(50)));
    set(&mut plan, "t-high", Value::Span(Span::from_us(500)));
    run(&plan, 1)
}

/// With the patch N flows are equal, and RTTs rest at `t-low`·(1 + N·δ/(β·C)), to 5 % [Zhu 2016 §5].
#[test]
fn the_patched_law_rests_at_its_fixed_point() {
    for flows in [2, 4, 8] {
        let network = network(flows);
        let results = results(&network, true);
        let shares = goodputs(&results);
        assert!(jain(&shares) > 0.98, "{flows}: {shares:?}");
        assert!(shares.iter().sum::<f64>() / (GOODPUT * LINE.as_bps() as f64) > 0.98, "{flows}: {shares:?}");
        let queue = queue_mean(&results.ports[network.bottleneck()]);
        let rtt = (product(&network) + queue) / packets_per_second(LINE) * 1e6;
        let model = 50.0 * (1.0 + f64::from(flows) * 10e6 / (0.008 * 10e9));
        assert!((rtt / model - 1.0).abs() < 0.05, "{flows}: {rtt} µs, {model} by the model");
    }
}

/// Without it there are infinitely many: which rates flows end with depends on how they began [Zhu 2016 §4.2].
#[test]
fn the_original_law_keeps_unequal_rates() {
    let shares = goodputs(&results(&network(4), false));
    assert!(jain(&shares) < 0.8, "{shares:?}");
}
