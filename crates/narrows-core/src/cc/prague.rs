//! Prague: DCTCP for the Internet, over L4S queues [Prague §2].
//!
//! As DCTCP it estimates the fraction of marked packets, α, and takes α/2 of the window, but its round is a *virtual* RTT of at
//! least 25 ms: then flows of shorter RTTs take no more than others [Prague §2.4.4]. Its packets are ECT(1), so that a
//! dual queue gives them priority, and always paced. A loss halves the window.
//!
//! With r the RTT and v the virtual one, the window grows by (r/v)² packets per RTT, and shrinks at most once in v. So the rate
//! is that of a DCTCP flow of RTT v: 2/p packets per v where a share p of packets is marked.
//!
//! The draft's accurate ECN feedback is DCTCP's exact echo here [RFC 8257 §3.2], which tells as much where acknowledgements are
//! not lost.

use super::parts::fractional::{Fractional, ONE, ratio};
use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Limit, Owner, Path, Phase, Spec, Value, parameters,
};
use crate::units::{Packets, Rate, Span, Time};

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "prague",
    title: "Prague",
    about: "DCTCP for L4S queues, whose rate does not depend on RTTs below 25 ms.",
    source: "Prague, RFC 9331",
    ecn: EcnUse::L4s,
    kernel: Kernel::None,
    needs_delivery_rate: false,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: false,
    ordered: &[],
    parameters: parameters! {
        "virtual-rtt": Kind::Span, Value::Span(Span::from_ms(25)), (0, Span::from_secs(10).as_ps()),
            "The RTT that flows of shorter ones act as; 25 ms, 0 for none [Prague §2.4.4].";
        "g-shift": Kind::Count, Value::Count(4), (0, 10),
            "α's gain g as a power of one half; 4 is 1/16 [Prague §2.3.2].";
    },
};

/// One, of α: 2^30.
const ALPHA_ONE: u64 = 1 << 30;
/// The smallest window after a reduction.
const LEAST: u64 = 2 * ONE;
/// Packets leave in pieces of at most so long at the pacing rate.
const PIECE: Span = Span::from_us(250);

/// The state of one Prague sender.
#[derive(Clone, Debug)]
pub struct Prague {
    virtual_rtt: Span,
    gain_shift: u64,
    window: Fractional,
    /// In 2^-20 packets.
    threshold: u64,
    /// Before the last loss or timeout.
    threshold_before: u64,
    /// The estimate of the marked fraction, 2^-30; `None` before the first mark.
    alpha: Option<u64>,
    acked: u64,
    marked: u64,
    /// When the fraction is measured next, and from when on a mark may reduce the window.
    measure_at: Time,
    may_cut_at: Time,
    pacing: Option<Rate>,
    burst: u64,
}

impl Prague {
    /// A sender in slow start.
    pub fn new(context: &Context<'_>) -> Prague {
        let mut prague = Prague {
            virtual_rtt: context.settings.span("virtual-rtt"),
            gain_shift: context.settings.count("g-shift"),
            window: Fractional::new(context.path.initial_window),
            threshold: u64::MAX,
            threshold_before: u64::MAX,
            alpha: None,
            acked: 0,
            marked: 0,
            measure_at: Time::ZERO,
            may_cut_at: Time::ZERO,
            pacing: None,
            burst: 1,
        };
        prague.pace(context.path);
        prague
    }

    fn is_in_slow_start(&self) -> bool {
        self.window.get() < self.threshold
    }

    /// α ← (1−g)·α + g·F once per virtual RTT; 1 at the first mark [Prague §2.3.2].
    fn measure(&mut self, ack: &Ack, round: Span) {
        self.acked = self.acked.saturating_add(ack.acked.get());
        self.marked = self.marked.saturating_add(ack.marked.get());
        if ack.now < self.measure_at {
            return;
        }
        if let Some(alpha) = &mut self.alpha {
            let share = self.marked.min(self.acked).saturating_mul(ALPHA_ONE >> self.gain_shift) / self.acked.max(1);
            // Where g·α rounds to nothing, α goes to 0 at once, as DCTCP's.
            let decay = if *alpha >> self.gain_shift == 0 { *alpha } else { *alpha >> self.gain_shift };
            *alpha = (*alpha - decay + share).min(ALPHA_ONE);
        }
        (self.acked, self.marked) = (0, 0);
        self.measure_at = ack.now + round;
    }

    /// Marks take α/2 of the window, at most once per virtual RTT [Prague §2.4.2].
    fn answer_marks(&mut self, ack: &Ack, round: Span) {
        if ack.marked.get() == 0 || ack.now < self.may_cut_at || !matches!(ack.phase, Phase::Open | Phase::EcnReduction)
        {
            return;
        }
        let alpha = *self.alpha.get_or_insert(ALPHA_ONE);
        self.window.forget();
        self.window.scale(ONE - alpha * ONE / (2 * ALPHA_ONE), LEAST);
        self.threshold = self.window.get();
        self.may_cut_at = ack.now + round;
    }

    /// What is not marked lets the window grow [Prague §2.4.3, §2.4.4].
    fn grow(&mut self, ack: &Ack, rtt: Span, round: Span) {
        let may_grow = ack.in_order && !matches!(ack.phase, Phase::Recovery);
        if !may_grow || !matches!(ack.limited_by, Limit::Window | Limit::Pacing) {
            return;
        }
        let unmarked = ack.acked.get().saturating_sub(ack.marked.get());
        if self.is_in_slow_start() {
            self.window.raise(unmarked.saturating_mul(ONE).min(self.threshold - self.window.get()));
        } else {
            let share = ratio(rtt, round, ONE);
            self.window.grow(unmarked, share * share / ONE);
        }
    }

    /// The window per RTT, twice that in slow start [Prague].
    fn pace(&mut self, path: &Path) {
        let Some(rtt) = path.srtt.filter(|rtt| !rtt.is_zero()) else { return };
        let rate = Rate::of(path.packet, self.window.spacing(rtt));
        let rate = if self.is_in_slow_start() { rate.scaled(2, 1) } else { rate };
        self.burst = rate.bytes_in(PIECE).get() / path.packet.get().max(1);
        self.pacing = Some(rate.max(Rate::from_bps(1)));
    }

    /// Marks of the same time have their answer by it, too.
    fn halve(&mut self, now: Time, path: &Path) {
        self.window.forget();
        self.window.remember();
        self.threshold_before = self.threshold;
        self.window.scale(ONE / 2, LEAST);
        self.threshold = self.window.get().max(LEAST);
        self.may_cut_at = now + path.srtt.unwrap_or(self.virtual_rtt).max(self.virtual_rtt);
    }
}

impl CongestionControl for Prague {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        let rtt = path.srtt.unwrap_or(self.virtual_rtt);
        let round = rtt.max(self.virtual_rtt);
        self.measure(ack, round);
        self.answer_marks(ack, round);
        self.grow(ack, rtt, round);
        self.pace(path);
    }

    /// A loss halves the window; marks have had their answer [Prague §2.4.1].
    fn on_congestion(&mut self, now: Time, cause: Cause, path: &Path) {
        if cause == Cause::Loss {
            self.halve(now, path);
            self.pace(path);
        }
    }

    fn on_timeout(&mut self, now: Time, repeated: bool, path: &Path) {
        if !repeated {
            self.halve(now, path);
        }
        self.window.limit(ONE);
        self.pace(path);
    }

    fn on_undo(&mut self) {
        self.window.undo();
        self.threshold = self.threshold.max(self.threshold_before);
    }

    fn window(&self) -> Packets {
        self.window.packets()
    }

    fn slow_start_threshold(&self) -> Packets {
        Packets::new(if self.threshold == u64::MAX { u64::MAX } else { self.threshold / ONE })
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }

    fn burst(&self) -> Option<Packets> {
        Some(Packets::new(self.burst.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::harness::{Drive, build, path};

    fn prague(window: u64, changes: &[(&str, Value)]) -> Drive<Prague> {
        let path = path();
        let mut drive = Drive::new(build(&SPEC, Prague::new, &path, changes), path);
        drive.cc.window = Fractional::new(Packets::new(window));
        drive.cc.threshold = window * ONE;
        drive.fill();
        drive
    }

    /// Marks every `n`th packet for so long, and returns the mean window of the second half, in thousandths of a packet.
    fn mean_window(drive: &mut Drive<Prague>, rtt: Span, n: u64, rounds: u64) -> u64 {
        let (mut sum, mut count, mut sent) = (0, 0, 0);
        for round in 0..rounds {
            let outstanding = drive.path.in_flight.get();
            for _ in 0..outstanding {
                drive.now += rtt.div(outstanding);
                sent += 1;
                drive.ack(1, Some(rtt), sent % n == 0);
            }
            if round >= rounds / 2 {
                sum += drive.cc.window.get();
                count += 1;
            }
        }
        sum / count * 1_000 / ONE
    }

    #[test]
    fn the_first_mark_halves_and_ends_slow_start() {
        let path = path();
        let mut drive = Drive::new(build(&SPEC, Prague::new, &path, &[]), path);
        drive.round(Span::from_ms(30), false);
        assert_eq!(drive.window(), 20);
        drive.ack(1, Some(Span::from_ms(30)), true);
        assert_eq!((drive.window(), drive.cc.slow_start_threshold().get()), (10, 10));
    }

    /// Growth of one packet and a reduction of p/2 of the window in each virtual RTT: 2/p packets, as of DCTCP.
    #[test]
    fn the_window_is_two_over_the_marked_share() {
        for n in [20, 50, 100] {
            let mut drive = prague(2 * n, &[]);
            drive.cc.alpha = Some(ALPHA_ONE / n);
            let mean = mean_window(&mut drive, Span::from_ms(40), n, 2_000);
            assert!(mean.abs_diff(2_000 * n) < 200 * n, "1/{n}: {mean}");
        }
    }

    /// Of RTTs below the virtual one, the rate is the same.
    #[test]
    fn the_rate_does_not_depend_on_short_rtts() {
        let rate = |ms: u64| {
            let mut drive = prague(100 * ms / 25, &[]);
            drive.cc.alpha = Some(ALPHA_ONE / 50);
            mean_window(&mut drive, Span::from_ms(ms), 50, 50_000 / ms) / ms
        };
        let slow = rate(25);
        for ms in [5, 10] {
            assert!(rate(ms).abs_diff(slow) < slow / 7, "{ms} ms: {} and {slow}", rate(ms));
        }
        let of_dctcp = |ms| {
            let mut drive = prague(100, &[("virtual-rtt", Value::Span(Span::ZERO))]);
            drive.cc.alpha = Some(ALPHA_ONE / 50);
            mean_window(&mut drive, Span::from_ms(ms), 50, 50_000 / ms)
        };
        assert!(of_dctcp(5).abs_diff(of_dctcp(25)) < of_dctcp(25) / 10, "windows, not rates, are equal without it");
    }

    #[test]
    fn marks_reduce_once_in_a_virtual_rtt() {
        let mut drive = prague(100, &[]);
        drive.cc.alpha = Some(ALPHA_ONE / 10);
        drive.cc.measure_at = Time::NEVER;
        drive.now += Span::from_ms(100);
        drive.ack(1, Some(Span::from_ms(10)), true);
        assert_eq!(drive.window(), 95);
        drive.now += Span::from_ms(24);
        drive.ack(1, Some(Span::from_ms(10)), true);
        assert_eq!(drive.window(), 95);
        drive.now += Span::from_ms(1);
        drive.ack(1, Some(Span::from_ms(10)), true);
        assert_eq!(drive.window(), 90);
    }

    #[test]
    fn alpha_reaches_both_ends_for_every_gain() {
        for shift in [0, 4, 10] {
            let mut drive = prague(1, &[("g-shift", Value::Count(shift))]);
            drive.cc.alpha = Some(ALPHA_ONE / 3);
            for (marked, end) in [(false, 0), (true, ALPHA_ONE)] {
                for _ in 0..30_000 {
                    drive.now += Span::from_ms(25);
                    drive.cc.window = Fractional::new(Packets::new(1));
                    drive.ack(1, Some(Span::from_ms(25)), marked);
                }
                let alpha = drive.cc.alpha.unwrap();
                assert!(alpha.abs_diff(end) <= ALPHA_ONE >> 18, "{shift}: {alpha}");
            }
        }
    }

    #[test]
    fn a_loss_answers_the_marks_of_its_round_and_thresholds_are_two_packets_at_least() {
        let mut drive = prague(100, &[]);
        drive.cc.alpha = Some(ALPHA_ONE);
        drive.ack(1, Some(Span::from_ms(10)), false);
        drive.congestion(Cause::Loss);
        drive.now += Span::from_ms(24);
        drive.ack(1, Some(Span::from_ms(10)), true);
        assert_eq!(drive.window(), 50);
        drive.timeout();
        drive.congestion(Cause::Loss);
        assert_eq!(drive.cc.slow_start_threshold(), Packets::new(2));
    }

    #[test]
    fn a_loss_after_a_mark_halves_what_the_mark_left() {
        let mut drive = prague(100, &[]);
        drive.cc.alpha = Some(ALPHA_ONE);
        drive.ack(1, Some(Span::from_ms(10)), true);
        let left = drive.window();
        assert!(left < 100);
        drive.congestion(Cause::Loss);
        assert_eq!(drive.window(), left / 2);
    }

    #[test]
    fn a_loss_halves_and_an_undo_restores() {
        let mut drive = prague(100, &[]);
        drive.congestion(Cause::Ecn);
        assert_eq!(drive.window(), 100);
        drive.congestion(Cause::Loss);
        assert_eq!((drive.window(), drive.cc.slow_start_threshold().get()), (50, 50));
        drive.cc.on_undo();
        assert_eq!((drive.window(), drive.cc.slow_start_threshold().get()), (100, 100));
        drive.timeout();
        assert_eq!((drive.window(), drive.cc.slow_start_threshold().get()), (1, 50));
    }

    #[test]
    fn it_is_paced_at_the_window_per_rtt_and_twice_that_in_slow_start() {
        let mut drive = prague(100, &[]);
        drive.ack(0, Some(Span::from_ms(10)), false);
        // 100 packets of 1500 B in 10 ms.
        assert_eq!(drive.cc.pacing(), Some(Rate::from_mbps(120)));
        // 120 Mbit/s for 250 µs are 2.5 packets.
        assert_eq!(drive.cc.burst(), Some(Packets::new(2)));
        drive.cc.threshold = u64::MAX;
        drive.ack(0, Some(Span::from_ms(10)), false);
        assert_eq!(drive.cc.pacing(), Some(Rate::from_mbps(240)));
    }
}
