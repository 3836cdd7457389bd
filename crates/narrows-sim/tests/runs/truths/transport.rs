//! Loss recovery, whatever the controller.

use narrows_core::cc::Value;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Rate, Span};
use narrows_plan::Connections;

use super::measure::{Loss, product};
use crate::plans::{Dumbbell, run, set, smooth};

/// On a path that keeps the order and loses no acknowledgement, what is retransmitted are the segments that were lost, no
/// more and no less [RFC 6675 §4, RFC 8985 §6.2]: but for losses of the last two RTTs, not yet repaired at the end.
///
/// Recoveries follow each other without a pause here. A retransmission of one of them that arrives in the next once passed
/// for proof that the next was spurious.
#[test]
fn every_retransmission_repairs_a_loss() {
    for profile in [Profile::LINUX_4_9, Profile::LINUX_6] {
        for controller in ["newreno", "cubic", "vegas", "gemini", "bbr"] {
            for loss in [0.001, 0.01, 0.1] {
                let network = Dumbbell {
                    limit: 100_000,
                    rate: Rate::from_mbps(200),
                    profile: smooth(profile),
                    ..Dumbbell::default()
                };
                let mut plan = network.long(controller, false, Span::from_secs(4));
                plan.schedule.warmup = Span::ZERO;
                plan.lose(network.bottleneck(), loss);
                let results = run(&plan, 1);
                let port = &results.ports[network.bottleneck()];
                let lost = port.dropped_impairment_packets + port.dropped_limit_packets;
                let resent = results.flows[0].retransmitted_bytes.div_ceil(1_448);
                if controller != "bbr" && loss > 0.05 {
                    // Windows of a few packets: timeouts rightly send again what was only late.
                    continue;
                }
                assert_eq!(results.flows[0].timeouts, 0, "{controller} at {loss}");
                let pending = lost as f64 - resent as f64;
                let most = 2.0 * 2.0 * product(&network) * loss + 2.0;
                assert!((0.0..=most).contains(&pending), "{controller} at {loss}: {lost} lost, {resent} retransmitted");
            }
        }
    }
}

/// A window that halves at each loss and else grows by one per RTT has a mean of 1.31/√p packets under independent
/// losses of probability p [Mathis 1997 §2]. Within 10 %: two losses in one RTT count once, and the window does not
/// grow in the round of recovery.
#[test]
fn newreno_under_random_losses_has_the_window_of_the_square_root_law() {
    for (loss, seconds) in [(0.001, 200), (0.005, 100), (0.01, 60)] {
        let network = Dumbbell { limit: 100_000, rate: Rate::from_mbps(200), ..Dumbbell::default() };
        let mut plan = network.long("newreno", false, Span::from_secs(seconds));
        plan.lose(network.bottleneck(), loss);
        let port = &run(&plan, 1).ports[network.bottleneck()];
        let per_rtt = port.utilisation * product(&network);
        let bound = 1.31 / loss.sqrt();
        assert!((per_rtt / bound - 1.0).abs() < 0.1, "{loss}: {per_rtt:.2} of {bound:.2}");
    }
}

/// A sender that would fill the line has a receive buffer under way in each RTT, also where 16 bits of KiB do not hold it
/// [RFC 7323 §2.2]: goodput is the buffer over the RTT, and at most the line's.
#[test]
fn the_receive_buffer_is_what_an_rtt_carries() {
    let (rate, rtt, line) = (Rate::from_gbps(1), Span::from_ms(900), 1e9 / 8.0 * 1_448.0 / 1_538.0);
    for buffer in [16 << 20, 64 << 20, 84 << 20, 256 << 20] {
        let profile = Profile { receive_buffer: buffer, ..smooth(Profile::LINUX_4_9) };
        let network = Dumbbell { access: rate, rate, rtt, limit: 200_000, profile, ..Dumbbell::default() };
        let mut plan = network.long("dcqcn", false, Span::from_ms(9_000));
        // Of the line: more than an RTT.
        set(&mut plan, "window", Value::Span(Span::from_secs(1)));
        plan.schedule.warmup = Span::from_ms(4_500);
        plan.traffic[0].connections = Connections::FreshEstablished;
        let goodput = run(&plan, 1).flows[0].delivered_after_warmup_bytes as f64 / 4.5;
        let expected = (buffer as f64 / 0.9).min(line);
        assert!((goodput / expected - 1.0).abs() < 0.02, "{buffer}: {goodput} {expected}");
    }
}
