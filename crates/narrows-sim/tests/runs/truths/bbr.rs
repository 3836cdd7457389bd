//! BBR: the model of the path, and losses.

use narrows_core::units::{Rate, Span};
use narrows_results::Quantity;

use super::measure::{GOODPUT, IP, Loss, base_round_trip, goodputs, median, pacing, product, queue_mean, series};
use crate::plans::{Dumbbell, run};

/// Six of eight phases pace at the bandwidth itself [BBR]: the median of the pacing rate is BtlBw. Outside the dips the
/// window is 2·BtlBw·RTprop and, with segmentation offload off, three packets, made even: that gives RTprop. Within 1 % and
/// 5 %, on a buffer of five products.
///
/// A phase at 5/4 lasts an RTT and queues a quarter of a product, and the next drains it: one round of eight has a
/// mean of an eighth, so the queue's mean is far below half a product, and its greatest below a half.
#[test]
fn bbr_finds_the_bandwidth_and_the_round_trip() {
    let network = Dumbbell { limit: 4_000, ..Dumbbell::default() };
    let plan = network.long("bbr", false, Span::from_secs(6));
    let bandwidth = pacing(&plan) / (1e9 * IP);
    assert!((bandwidth - 1.0).abs() < 0.01, "{bandwidth}");
    let results = run(&plan, 1);
    let window = median(series(&results, Quantity::WindowPackets, 0, 2.0).into_iter().map(|(_, window)| window));
    let round_trip = (window - 3.0) / 2.0 / product(&network);
    assert!((round_trip - 1.0).abs() < 0.05, "{round_trip}");
    let port = &results.ports[network.bottleneck()];
    let goodput = goodputs(&results)[0] / (1e9 * GOODPUT);
    assert!(goodput > 0.999, "{goodput}");
    assert_eq!(port.dropped_limit_packets, 0);
    assert!(queue_mean(port) < product(&network) / 8.0, "{}", queue_mean(port));
    assert!(port.queue_max_bytes as f64 / 1500.0 < product(&network) / 2.0, "{}", port.queue_max_bytes);
}

/// Ten seconds after the minimum RTT was last seen the window falls to four packets for 200 ms and a round [BBR]. On
/// a clean path it is seen again in the dip, and not after. To a quarter of a second: an RTT until four packets are
/// in flight, 200 ms, and another until the window is restored.
#[test]
fn bbr_dips_every_ten_seconds() {
    let network = Dumbbell { rate: Rate::from_mbps(100), limit: 4_000, ..Dumbbell::default() };
    let results = run(&network.long("bbr", false, Span::from_secs(45)), 1);
    let mut dips: Vec<(f64, f64)> = Vec::new();
    for (time, window) in series(&results, Quantity::WindowPackets, 0, 1.0) {
        if window <= 4.0 {
            match dips.last_mut() {
                Some((_, end)) if time - *end < 0.01 => *end = time,
                _ => dips.push((time, time)),
            }
        }
    }
    assert_eq!(dips.len(), 4, "{dips:?}");
    let round_trip = base_round_trip(&network);
    for &(begin, end) in &dips {
        assert!((0.2..0.2 + 3.0 * round_trip).contains(&(end - begin)), "{dips:?}");
    }
    for pair in dips.windows(2) {
        assert!((10.0..10.02).contains(&(pair[1].0 - pair[0].1)), "{dips:?}");
    }
}

/// One flow at 1 Gbit/s and 10 ms whose packets are lost independently with probability p. BBR does not take losses for
/// congestion: what is delivered at most is (1−p)·C, and that is BtlBw, seen while probing at 5/4 fills the link (p < 1/5).
/// It then sends BtlBw on average over the phases, of which 1−p is delivered: (1−p)²·C at least.
///
/// The policer's model takes over where an interval lost at least 50/256 of what it delivered [Linux `tcp_bbr.c`]:
/// p/(1−p) ≥ 0.195, p ≥ 0.163. It paces at what was delivered, of which again 1−p is delivered, and so on.
#[test]
fn bbr_keeps_its_rate_through_random_losses_until_they_look_like_a_policer() {
    for percent in [1, 5, 10, 15, 18, 22, 25, 30] {
        let network = Dumbbell { limit: 4_000, ..Dumbbell::default() };
        let mut plan = network.long("bbr", false, Span::from_secs(4));
        let kept = 1.0 - f64::from(percent) / 100.0;
        plan.lose(network.bottleneck(), 1.0 - kept);
        let goodput = goodputs(&run(&plan, 1))[0] / (1e9 * GOODPUT);
        if percent <= 15 {
            assert!((kept * kept..=kept).contains(&goodput), "{percent} %: {goodput}");
        } else {
            assert!(goodput < kept * kept / 2.0, "{percent} %: {goodput}");
        }
    }
}
