//! How flows share a link.

use narrows_core::cc::Value;
use narrows_core::units::{Packets, Rate, Span};

use super::measure::{base_round_trip, goodputs, jain};
use crate::plans::{Dumbbell, run, set};

/// Four equal flows share equally over 45 s [Chiu 1989: additive increase and multiplicative decrease converge to fairness]:
/// a Jain index of 0.95 at least, 0.99 where each event cuts by half.
#[test]
fn equal_flows_share_equally() {
    for (controller, mark_at, least) in
        [("newreno", None, 0.99), ("cubic", None, 0.95), ("dctcp", Some(50), 0.95), ("gemini", Some(20), 0.95)]
    {
        let network = Dumbbell { pairs: 4, rate: Rate::from_mbps(100), limit: 100, mark_at, ..Dumbbell::default() };
        let mut plan = network.long(controller, mark_at.is_some(), Span::from_secs(60));
        if controller == "gemini" {
            set(&mut plan, "capacity", Value::Rate(Rate::from_mbps(100)));
            set(&mut plan, "k", Value::Packets(Packets::new(20)));
        }
        let index = jain(&goodputs(&run(&plan, 1)));
        assert!(index >= least, "{controller}: {index}");
    }
}

/// NewReno gives a flow a share that falls with its RTT r, as r^−a with 1 ≤ a ≤ 2 [Lakshman 1997 §IV]: both see the
/// same losses and grow by one packet per RTT. The RTT is taken with the full queue for a = 1, where the two
/// differ least, and without a queue for a = 2, where they differ most.
#[test]
fn newreno_favours_the_shorter_round_trip() {
    let network = Dumbbell { pairs: 2, rate: Rate::from_mbps(100), limit: 100, ..Dumbbell::default() };
    let mut plan = network.long("newreno", false, Span::from_secs(60));
    for link in &mut plan.network.links[..2] {
        link.delay = Span::from_ms(15);
    }
    let results = run(&plan, 1);
    let shares = goodputs(&results);
    let (source, short) = (results.flows[0].source, base_round_trip(&network));
    assert_eq!(source, 0, "the first flow is the one with the longer path");
    let queue = 100.0 * 1538.0 * 8.0 / 1e8;
    let range = (short + 0.03 + queue) / (short + queue)..=((short + 0.03) / short).powi(2);
    assert!(range.contains(&(shares[1] / shares[0])), "{}, not in {range:?}", shares[1] / shares[0]);
}
