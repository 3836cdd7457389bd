//! CUBIC: the curve between two cuts.

use narrows_core::units::{Rate, Span};
use narrows_plan::Pattern;
use narrows_results::Quantity;

use super::measure::series;
use crate::plans::{Dumbbell, flow, run};

/// A stretch of growth: the window before the cut that began it, and the samples until the next cut.
struct Growth {
    before: f64,
    samples: Vec<(f64, f64)>,
}

/// Splits a series of windows at its cuts. A growth begins with the last sample before the window grows: recovery
/// holds it until then.
fn growths(windows: &[(f64, f64)]) -> Vec<Growth> {
    let mut growths: Vec<Growth> = Vec::new();
    let mut peak = 0.0_f64;
    let mut reducing = false;
    for &(time, window) in windows {
        if !reducing && window + 2.0 < peak {
            growths.push(Growth { before: peak, samples: vec![] });
            reducing = true;
        }
        if reducing {
            let growth = growths.last_mut().expect("a cut was seen");
            match growth.samples.last() {
                Some(&(_, least)) if window > least => {
                    growth.samples.push((time, window));
                    (reducing, peak) = (false, window);
                }
                _ => growth.samples = vec![(time, window)],
            }
        } else {
            peak = peak.max(window);
            if let Some(growth) = growths.last_mut() {
                growth.samples.push((time, window));
            }
        }
    }
    growths
}

/// Between two losses W(t) = C·(t−K)³ + W_max, K = ∛((W_max − W(0))/C), C = 0.4 [RFC 9438 §4.2 eq. 1 and 2], where W_max
/// is the window before the cut or, if that was less than the W_max before it, 0.85 of the window [RFC 9438 §4.7]. A second
/// flow joins after a while. With 150 ms the window of Reno stays below the cubic [RFC 9438 §4.3].
///
/// Within 0.5 % and 2 packets: the window is in whole packets, the curve's start is known to a sample of 1 ms (0.1 packets
/// where it is steepest), and the sender aims an RTT ahead by the minimum RTT while its last one was longer by
/// the queue's 40 ms (2 packets where it is steepest).
#[test]
fn cubic_follows_the_curve_between_two_losses() {
    let network = Dumbbell {
        pairs: 2,
        rate: Rate::from_mbps(40),
        rtt: Span::from_ms(150),
        // 0.7 times product and buffer are more than the product: the link never idles.
        limit: 220,
        ..Dumbbell::default()
    };
    let flows = vec![flow(Span::ZERO, 0, 2, None), flow(Span::from_secs(40), 1, 3, None)];
    let results = run(&network.plan("cubic", false, Span::from_secs(120), Pattern::List(flows)), 1);
    let windows = series(&results, Quantity::WindowPackets, 0, 0.0);
    let (mut maximum, mut plain, mut shrunk) = (0.0_f64, 0, 0);
    for (index, growth) in growths(&windows).iter().enumerate() {
        let converging = growth.before < maximum;
        maximum = if converging { growth.before * 0.85 } else { growth.before };
        let (start, least) = growth.samples[0];
        // Slow start's cut comes with many losses, and the window may shrink to less than the threshold meanwhile.
        if index == 0 {
            continue;
        }
        assert!((least / growth.before - 0.7).abs() < 0.01, "cut from {} to {least}", growth.before);
        let flat = ((maximum - least) / 0.4).cbrt();
        for &(time, window) in &growth.samples {
            let curve = 0.4 * (time - start - flat).powi(3) + maximum;
            assert!((window - curve).abs() < 2.0 + 0.005 * curve, "at {time} s: {window}, not {curve}");
        }
        *(if converging { &mut shrunk } else { &mut plain }) += 1;
    }
    assert!(plain >= 2 && shrunk >= 2, "{plain} and {shrunk} curves");
}

/// Classic ECN: a link stays full if what is left of W_max = C·RTT + K is at least C·RTT, and no marked window is lost. Left
/// is 0.49 of it: the packet that announces the cut finds the queue of before and is marked itself, which begins the next
/// window's cut [RFC 3168 §6.1.2]. So K ≥ 1.04·C·RTT, 850 packets.
#[test]
fn cubic_with_classic_ecn_fills_a_marking_link_without_loss() {
    let network = Dumbbell { pairs: 2, limit: 4_000, mark_at: Some(850), ..Dumbbell::default() };
    let results = run(&network.long("cubic", true, Span::from_secs(12)), 1);
    let port = &results.ports[network.bottleneck()];
    assert!(port.marked_packets > 0);
    assert_eq!(port.dropped_limit_packets, 0);
    assert_eq!(results.flows.iter().map(|flow| flow.retransmitted_bytes).sum::<u64>(), 0);
    assert!(port.utilisation > 0.9999, "{}", port.utilisation);
}
