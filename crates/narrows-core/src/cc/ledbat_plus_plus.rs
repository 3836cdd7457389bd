//! LEDBAT++: a background flow that keeps the queueing delay at a target and slows down now and then to measure the path
//! [LEDBAT++ §4].
//!
//! ```text
//! initial slow start ──delay > 3/4 target──▶ steady ──two RTTs later, then nine times as long as the last one took──▶ slowdown
//!                                              ▲                                                        two packets, two RTTs
//!                                              └────────────── at the old window ◀── slow start ◀──────────────┘
//! ```

use super::parts::fractional::{Fractional, ONE, ratio};
use super::parts::windowed::WindowedMin;
use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Limit, Owner, Path, Spec, Value, parameters,
};
use crate::units::{Packets, Span, Time};

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "ledbat-plus-plus",
    title: "LEDBAT++",
    about: "Background traffic: keeps the queueing delay at 60 ms at most, gives way to others, and slows down to measure.",
    source: "LEDBAT++",
    ecn: EcnUse::Optional,
    kernel: Kernel::None,
    needs_delivery_rate: false,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: false,
    ordered: &[],
    parameters: parameters! {
        "target": Kind::Span, Value::Span(Span::from_ms(60)), (Span::from_us(1).as_ps(), Span::from_secs(10).as_ps()),
            "The queueing delay that it keeps; 60 ms [LEDBAT++ §4.5].";
        "slowdowns": Kind::Switch, Value::Switch(true),
            "Whether it slows down after the first slow start and from time to time [LEDBAT++ §4.4].";
    },
};

/// The least gain is 1/16 [LEDBAT++ §4.2].
const MAX_GAIN_DIVISOR: u64 = 16;
/// The window of a slowdown, and the least: two packets [LEDBAT++ §4.4].
const LEAST: u64 = 2 * ONE;
/// A slowdown holds its window for so many RTTs, and the first begins as long after the first slow start.
const HELD_RTTS: u64 = 2;
/// The time between two slowdowns over the time that the last one took [LEDBAT++ §4.4].
const PAUSE: u64 = 9;
/// The delay is the least of so many latest samples.
const SAMPLES: usize = 4;
/// The base delay is the least of ten minutes [RFC 6817 §2.4.2].
const HISTORY: Span = Span::from_secs(600);

/// Where a sender stands between slowdowns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Slow start that ends on delay: until the first slowdown.
    Start,
    /// Around the target; the next slowdown begins at `slowdown_at`.
    Steady { slowdown_at: Time },
    /// Two packets until `until`; it began at `since`.
    Held { since: Time, until: Time },
    /// Slow start up to the threshold, in a slowdown that began at `since`, or after a timeout.
    Ramp { since: Time },
}

/// The state of one LEDBAT++ sender.
#[derive(Clone, Debug)]
pub struct LedbatPlusPlus {
    target: Span,
    slows_down: bool,
    window: Fractional,
    /// Where slow start ends (2^-20 packets).
    threshold: u64,
    mode: Mode,
    /// Threshold and mode before the last cut.
    before: Option<(u64, Mode)>,
    /// RTTs in nanoseconds, of [`HISTORY`].
    base: WindowedMin,
    latest: [u64; SAMPLES],
}

impl LedbatPlusPlus {
    /// A sender in slow start, with two packets [LEDBAT++ §4.1].
    pub fn new(context: &Context<'_>) -> LedbatPlusPlus {
        LedbatPlusPlus {
            target: context.settings.span("target"),
            slows_down: context.settings.switch("slowdowns"),
            window: Fractional::new(context.path.initial_window.min(Packets::new(LEAST / ONE))),
            threshold: u64::MAX,
            mode: Mode::Start,
            before: None,
            base: WindowedMin::new(HISTORY.as_ns()),
            latest: [u64::MAX; SAMPLES],
        }
    }

    fn measure(&mut self, now: Time, rtt: Span) {
        self.base.update(now.as_ns(), rtt.as_ns());
        self.latest.rotate_right(1);
        self.latest[0] = rtt.as_ns();
    }

    /// The least of the latest RTTs above the base RTT.
    fn queueing(&self) -> Span {
        let least = self.latest.iter().copied().min().unwrap_or(u64::MAX);
        Span::from_ns(self.base.value().map_or(0, |base| least.saturating_sub(base)))
    }

    /// 1/min(16, ⌈2·target/base⌉) in 2^-20 [LEDBAT++ §4.2].
    fn gain(&self) -> u64 {
        let base = self.base.value().unwrap_or(u64::MAX).max(1);
        ONE / (2 * self.target.as_ns()).div_ceil(base).clamp(1, MAX_GAIN_DIVISOR)
    }

    /// A slowdown that began at `since` is over: the next one begins nine times as long from now.
    fn settle(&mut self, now: Time, since: Time) {
        self.mode = Mode::Steady { slowdown_at: now + now.since(since).saturating_mul(PAUSE) };
    }

    /// What the time that has passed changes.
    fn advance(&mut self, now: Time, srtt: Span) {
        match self.mode {
            Mode::Steady { slowdown_at } if self.slows_down && now >= slowdown_at => {
                self.threshold = self.window.get();
                self.window.limit(LEAST);
                self.mode = Mode::Held { since: now, until: now + srtt * HELD_RTTS };
            }
            Mode::Held { since, until } if now >= until => self.mode = Mode::Ramp { since },
            _ => {}
        }
    }

    /// For an undo.
    fn remember(&mut self) {
        self.window.forget();
        self.window.remember();
        self.before = Some((self.threshold, self.mode));
    }

    /// The window to come back to: in a slowdown that of before it.
    fn reference(&self) -> u64 {
        if matches!(self.mode, Mode::Held { .. }) { self.threshold } else { self.window.get() }
    }

    /// [LEDBAT++ §4.1 to §4.3]
    fn adapt(&mut self, ack: &Ack, srtt: Span) {
        let (acked, gain) = (ack.acked.get(), self.gain());
        let may_grow = ack.may_grow() && matches!(ack.limited_by, Limit::Window | Limit::Pacing);
        let queueing = self.queueing();
        match self.mode {
            Mode::Start if queueing > self.target.div(4) * 3 => {
                self.threshold = self.window.get();
                self.mode = Mode::Steady { slowdown_at: ack.now + srtt * HELD_RTTS };
            }
            Mode::Start | Mode::Ramp { .. } if may_grow => {
                self.window.raise(acked.saturating_mul(gain));
                self.window.limit(self.threshold.max(LEAST));
                if let Mode::Ramp { since } = self.mode
                    && self.window.get() >= self.threshold
                {
                    self.settle(ack.now, since);
                }
            }
            Mode::Steady { .. } => {
                // The gain less window·(delay/target − 1), but at most half the window less, each RTT.
                let window = self.window.get();
                let excess = ratio(queueing.saturating_sub(self.target), self.target, ONE);
                let lost = u128::from(window) * u128::from(excess) / u128::from(ONE);
                let lost = u64::try_from(lost).unwrap_or(window);
                if lost > gain {
                    self.window.shrink(acked, (lost - gain).min(window / 2), LEAST);
                } else if may_grow {
                    self.window.grow(acked, gain - lost);
                }
            }
            Mode::Start | Mode::Ramp { .. } | Mode::Held { .. } => {}
        }
    }
}

impl CongestionControl for LedbatPlusPlus {
    fn recovery(&self) -> Owner {
        Owner::Transport
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.window.end_probing();
        if let Some(sample) = ack.rtt {
            self.measure(ack.now, sample.span);
        }
        let Some(srtt) = path.srtt else { return };
        self.advance(ack.now, srtt);
        self.adapt(ack, srtt);
    }

    /// Losses and ECE halve the window, as Reno does [LEDBAT++ §4.3]; the first ends slow start.
    fn on_congestion(&mut self, now: Time, _cause: Cause, path: &Path) {
        self.remember();
        self.threshold = (self.reference() / 2).max(LEAST);
        self.window.scale(ONE / 2, LEAST);
        match self.mode {
            Mode::Start => self.mode = Mode::Steady { slowdown_at: now + path.srtt.unwrap_or(path.rto) * HELD_RTTS },
            Mode::Ramp { since } => self.settle(now, since),
            Mode::Steady { .. } | Mode::Held { .. } => {}
        }
    }

    fn on_timeout(&mut self, now: Time, repeated: bool, _path: &Path) {
        if !repeated {
            self.remember();
            self.threshold = (self.reference() / 2).max(LEAST);
        }
        self.window.limit(ONE);
        self.window.probe();
        self.mode = Mode::Ramp { since: now };
    }

    fn on_undo(&mut self) {
        self.window.undo();
        if let Some((threshold, mode)) = self.before.take() {
            self.threshold = self.threshold.max(threshold);
            self.mode = mode;
        }
    }

    fn window(&self) -> Packets {
        self.window.packets()
    }

    fn slow_start_threshold(&self) -> Packets {
        if self.threshold == u64::MAX { Packets::new(u64::MAX) } else { Packets::new((self.threshold / ONE).max(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Phase;
    use crate::cc::harness::{Drive, build, path};

    const BASE: Span = Span::from_ms(30);

    /// In slow start, with twenty packets.
    fn ledbat(changes: &[(&str, Value)]) -> Drive<LedbatPlusPlus> {
        let path = path();
        let mut drive = Drive::new(build(&SPEC, LedbatPlusPlus::new, &path, changes), path);
        assert_eq!(drive.window(), 2);
        drive.cc.window.raise(18 * ONE);
        drive.fill();
        drive.ack(1, Some(BASE), false);
        drive
    }

    fn rounds(drive: &mut Drive<LedbatPlusPlus>, number: usize, rtt: Span) {
        for _ in 0..number {
            drive.round(rtt, false);
        }
    }

    #[test]
    fn the_gain_follows_the_base_rtt() {
        for (base_ms, divisor) in [(1, 16), (10, 12), (30, 4), (50, 3), (120, 1), (500, 1)] {
            let path = path();
            let mut drive = Drive::new(build(&SPEC, LedbatPlusPlus::new, &path, &[]), path);
            drive.ack(1, Some(Span::from_ms(base_ms)), false);
            assert_eq!(drive.cc.gain(), ONE / divisor, "{base_ms} ms");
        }
    }

    #[test]
    fn slow_start_grows_by_the_gain_and_ends_at_three_quarters_of_the_target() {
        let mut drive = ledbat(&[]);
        let before = drive.cc.window.get();
        drive.round(BASE, false);
        assert!(drive.cc.window.get().abs_diff(before + before / 4) <= ONE / 2, "a quarter more per RTT");
        drive.round(BASE + Span::from_ms(44), false);
        assert_eq!(drive.cc.mode, Mode::Start);
        drive.round(BASE + Span::from_ms(46), false);
        assert!(matches!(drive.cc.mode, Mode::Steady { .. }));
    }

    #[test]
    fn after_slow_start_it_slows_down_and_then_nine_times_as_long_it_does_not() {
        let mut drive = ledbat(&[]);
        rounds(&mut drive, 4, BASE);
        drive.round(BASE + Span::from_ms(50), false);
        let reached = drive.cc.window.get();
        let mut least = u64::MAX;
        let mut began = None;
        let mut ended = None;
        for _ in 0..200 {
            drive.round(BASE, false);
            least = least.min(drive.cc.window.get());
            match drive.cc.mode {
                Mode::Held { since, .. } => began = began.or(Some(since)),
                Mode::Steady { slowdown_at } if began.is_some() => {
                    ended = Some((drive.now, slowdown_at));
                    break;
                }
                _ => {}
            }
        }
        let (began, (ended, next)) = (began.expect("it slows down"), ended.expect("and comes back"));
        assert_eq!(least, LEAST);
        assert!(drive.cc.window.get().abs_diff(reached) <= ONE, "back at {reached}, not {}", drive.cc.window.get());
        let (took, pause) = (ended.since(began).as_us() as f64, next.since(ended).as_us() as f64);
        assert!((pause / took - 9.0).abs() < 0.5, "{pause} µs after {took}");
    }

    /// W·(delay/target − 1) less the gain, at most half, per RTT [LEDBAT++ §4.3].
    #[test]
    fn above_the_target_the_window_shrinks_with_the_excess() {
        for (over_ms, part) in [(66, 0.9), (90, 0.5), (600, 0.5)] {
            let mut drive = ledbat(&[("slowdowns", Value::Switch(false))]);
            drive.cc.mode = Mode::Steady { slowdown_at: Time::NEVER };
            drive.cc.window.raise(90 * ONE);
            drive.fill();
            drive.cc.latest = [(BASE + Span::from_ms(over_ms)).as_ns(); SAMPLES];
            let before = drive.cc.window.get() as f64;
            drive.round(BASE + Span::from_ms(over_ms), false);
            let left = drive.cc.window.get() as f64 / before;
            // Each acknowledgement takes its part of a window that is smaller already.
            assert!((left - part).abs() < 0.13, "{over_ms} ms: {left}");
        }
    }

    /// The gain, a quarter of a packet per RTT at this base RTT, is taken off what eight packets lose above the target.
    #[test]
    fn a_small_windows_gain_counts_above_the_target() {
        let mut drive = ledbat(&[("slowdowns", Value::Switch(false))]);
        drive.cc.mode = Mode::Steady { slowdown_at: Time::NEVER };
        drive.cc.window = Fractional::new(Packets::new(8));
        (drive.path.nxt, drive.path.in_flight) = (drive.path.una, Packets::ZERO);
        drive.fill();
        drive.cc.latest = [(BASE + Span::from_ms(66)).as_ns(); SAMPLES];
        drive.round(BASE + Span::from_ms(66), false);
        let left = drive.cc.window.get() as f64 / ONE as f64;
        assert!((left - (8.0 - 0.8 + 0.25)).abs() < 0.05, "{left}");
    }

    #[test]
    fn a_loss_in_a_slowdown_halves_what_it_comes_back_to() {
        let mut drive = ledbat(&[]);
        drive.cc.window.raise(80 * ONE);
        drive.cc.mode = Mode::Steady { slowdown_at: drive.now };
        drive.ack(1, Some(BASE), false);
        assert!(matches!(drive.cc.mode, Mode::Held { .. }));
        let saved = drive.cc.threshold;
        drive.congestion(Cause::Loss);
        assert_eq!(drive.cc.threshold, saved / 2);
        assert_eq!(drive.cc.slow_start_threshold().get(), saved / 2 / ONE);
        for _ in 0..100 {
            drive.round(BASE, false);
        }
        assert!(drive.cc.window.get() >= saved / 2, "{}", drive.cc.window.get());
    }

    #[test]
    fn an_undo_leads_back_to_where_it_was() {
        let mut drive = ledbat(&[]);
        drive.timeout();
        drive.cc.on_undo();
        assert_eq!((drive.window(), drive.cc.threshold, drive.cc.mode), (20, u64::MAX, Mode::Start));
    }

    #[test]
    fn a_loss_halves_the_window() {
        let mut drive = ledbat(&[]);
        drive.cc.window.raise(90 * ONE);
        let before = drive.cc.window.get();
        drive.congestion(Cause::Loss);
        drive.phase = Phase::Recovery;
        drive.round(BASE, false);
        assert_eq!(drive.cc.window.get(), before / 2);
    }
}
