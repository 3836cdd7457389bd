//! Vegas: the packets it keeps queued.

use narrows_core::cc::Value;
use narrows_core::units::{Packets, Rate, Span};
use narrows_plan::Pattern;

use super::measure::{product, queue_mean};
use crate::plans::{Dumbbell, flow, run, set};

/// N flows keep between N·α and N·β packets in the queue [Vegas §3.2] and lose none.
///
/// Linux counts W·(RTT−base)/base, which is the packets queued times RTT/base, and rounds it down: a flow rests with a value
/// from α to less than β+1. The port counts the packet in service, which the base RTT contains: one packet is taken
/// off. Each flow begins when the initial window of the one before has been served, so that every base RTT is that
/// of an empty queue. Slow start leaves a queue that shrinks by one packet per flow and RTT: ten seconds for that.
/// To 3 %: base RTTs are a microsecond or a packet of another flow too long.
#[test]
fn vegas_keeps_between_alpha_and_beta_packets_queued() {
    for (flows, alpha, beta) in [(1, 2, 4), (5, 2, 4), (1, 20, 40), (5, 20, 40)] {
        let network = Dumbbell { pairs: flows, rate: Rate::from_mbps(100), limit: 2_000, ..Dumbbell::default() };
        let starts = (0..flows).map(|pair| flow(Span::from_us(1_500) * u64::from(pair), pair, flows + pair, None));
        let mut plan = network.plan("vegas", false, Span::from_secs(14), Pattern::List(starts.collect()));
        plan.schedule.warmup = Span::from_secs(10);
        set(&mut plan, "alpha", Value::Packets(Packets::new(alpha)));
        set(&mut plan, "beta", Value::Packets(Packets::new(beta)));
        let results = run(&plan, 1);
        let port = &results.ports[network.bottleneck()];
        let queue = queue_mean(port) - 1.0;
        let base = product(&network);
        let value = queue * (base + queue) / base / f64::from(flows);
        assert_eq!(results.flows.iter().map(|flow| flow.retransmitted_bytes).sum::<u64>(), 0);
        assert!(port.utilisation > 0.999, "{}", port.utilisation);
        let range = 0.97 * alpha as f64..=1.03 * (beta + 1) as f64;
        assert!(range.contains(&value), "{flows} flows, α {alpha}, β {beta}: {value}");
    }
}
