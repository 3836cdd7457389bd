//! Swift: holds the RTT at a target, with windows of less than a packet where many senders share a port [Swift §3].
//!
//! Below the target the window grows by `ai` packets per RTT; above it, it shrinks in proportion to the excess, at most once
//! per RTT. The target is larger for smaller windows, so that many flows, whose queue is longer, get fair shares [Swift §3.5].
//!
//! The original measures the delay of the fabric apart from the hosts' with timestamps of the adapter, and has a window for
//! each. Here one RTT is measured, so there is one window, and the receivers' delays count.

use super::parts::fractional::{Fractional, ONE, inverse_root, ratio};
use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Limit, Owner, Path, Settings, Spec, Value, parameters,
};
use crate::units::{Bytes, Packets, Rate, Span, Time};

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "swift",
    title: "Swift",
    about: "Holds the RTT at a target that follows the number of flows; windows may be less than a packet.",
    source: "Swift",
    ecn: EcnUse::Optional,
    kernel: Kernel::None,
    needs_delivery_rate: false,
    needs_every_ack: true,
    needs_telemetry: false,
    draws: false,
    ordered: &[],
    parameters: parameters! {
        "base-target": Kind::Span, Value::Auto, (Span::from_us(1).as_ps(), Span::from_secs(10).as_ps()),
            "The target of a flow with a large window, with the delay of the path's hops; left out, minimum RTT plus `queueing`.";
        "queueing": Kind::Span, Value::Auto, (Span::from_us(1).as_ps(), Span::from_secs(10).as_ps()),
            "How much the target exceeds the minimum RTT, where there is no `base-target`; left out, 20 packets' time on the \
            host's line, at least 25 µs.";
        "ai": Kind::Real { bits: 20 }, Value::Real(ONE), (1, 64 * ONE), "Growth in packets per RTT; 1.";
        "beta": Kind::Real { bits: 20 }, Value::Real((ONE * 4).div_ceil(5)), (0, ONE),
            "β: the reduction relative to the share of the RTT that exceeds the target; 0.8.";
        "max-mdf": Kind::Real { bits: 20 }, Value::Real(ONE / 2), (0, ONE * 99 / 100),
            "The largest reduction at once, also the one for a loss; 0.5.";
        "fs-range": Kind::Span, Value::Span(Span::from_us(100)), (0, Span::from_secs(10).as_ps()),
            "What flow scaling adds to the target at most; 100 µs, 0 for none.";
        "fs-min": Kind::Real { bits: 20 }, Value::Real(ONE.div_ceil(10)), (ONE.div_ceil(1_000), ONE),
            "The window in packets at which flow scaling adds all; 0.1 [Swift §3.5].";
        "fs-max": Kind::Real { bits: 20 }, Value::Real(100 * ONE), (2 * ONE, ONE << 20),
            "The window in packets from which flow scaling adds nothing; 100 [Swift §3.5].";
        "min-window": Kind::Real { bits: 20 }, Value::Real(ONE.div_ceil(1_000)), (ONE.div_ceil(10_000), ONE),
            "The smallest window in packets; 0.001.";
    },
};

/// Timeouts in a row after which the window is its smallest [Swift Algorithm 1].
const TIMEOUTS: u32 = 5;

/// What a flow may keep in queues, by default: fewer would be less than the bursts of its own host.
const QUEUEING: Packets = Packets::new(20);
/// The same in time, on fast lines.
const MIN_QUEUEING: Span = Span::from_us(25);

/// What does not change in a connection's life. Factors and windows in 2^-20.
#[derive(Clone, Copy, Debug)]
struct Constants {
    base_target: Option<Span>,
    queueing: Span,
    ai: u64,
    beta: u64,
    max_mdf: u64,
    fs_range: Span,
    /// 1/√`fs-min` and 1/√`fs-max`.
    fs_ends: (u64, u64),
    least: u64,
}

/// The state of one Swift sender.
#[derive(Clone, Debug)]
pub struct Swift {
    constants: Constants,
    window: Fractional,
    /// The latest RTT.
    rtt: Span,
    packet: Bytes,
    /// No reduction before this: at most one per RTT [Swift Algorithm 1].
    may_cut_at: Time,
    timeouts: u32,
}

impl Constants {
    fn of(settings: &Settings<'_>, path: &Path) -> Constants {
        Constants {
            base_target: settings.span_or_auto("base-target"),
            queueing: settings
                .span_or_auto("queueing")
                .unwrap_or_else(|| path.line_rate.time_for(QUEUEING.bytes(path.packet)).max(MIN_QUEUEING)),
            ai: settings.real("ai"),
            beta: settings.real("beta"),
            max_mdf: settings.real("max-mdf"),
            fs_range: settings.span("fs-range"),
            fs_ends: (inverse_root(settings.real("fs-min")), inverse_root(settings.real("fs-max"))),
            least: settings.real("min-window"),
        }
    }

    /// `fs-range`·(1/√w − 1/√`fs-max`)/(1/√`fs-min` − 1/√`fs-max`), from 0 to `fs-range` [Swift §3.5].
    fn flow_scaling(&self, window: u64) -> Span {
        let (most, least) = self.fs_ends;
        let above = u128::from(inverse_root(window).clamp(least, most) - least);
        let scaled = u128::from(self.fs_range.as_ps()) * above / u128::from((most - least).max(1));
        Span::from_ps(u64::try_from(scaled).unwrap_or(u64::MAX)).min(self.fs_range)
    }
}

impl Swift {
    /// A sender with the host's initial window.
    pub fn new(context: &Context<'_>) -> Swift {
        Swift {
            constants: Constants::of(&context.settings, context.path),
            window: Fractional::new(context.path.initial_window),
            rtt: Span::ZERO,
            packet: context.path.packet,
            may_cut_at: Time::ZERO,
            timeouts: 0,
        }
    }

    /// The RTT at which the window neither grows nor shrinks.
    pub fn target(&self, path: &Path) -> Span {
        let Constants { base_target, queueing, .. } = self.constants;
        let base = base_target.unwrap_or_else(|| path.min_rtt.unwrap_or(Span::ZERO) + queueing);
        base + self.constants.flow_scaling(self.window.get())
    }

    /// Reduces the window by `cut` (2^-20), unless it was reduced less than an RTT ago.
    fn reduce(&mut self, now: Time, cut: u64) {
        if now >= self.may_cut_at {
            self.window.scale(ONE - cut, self.constants.least);
            self.may_cut_at = now + self.rtt;
        }
    }
}

impl CongestionControl for Swift {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.window.end_probing();
        self.timeouts = 0;
        self.packet = path.packet;
        let Some(sample) = ack.rtt else { return };
        self.rtt = sample.span;
        let target = self.target(path);
        if sample.span < target {
            if matches!(ack.limited_by, Limit::Window | Limit::Pacing) {
                self.window.grow(ack.acked.get(), self.constants.ai);
            }
        } else {
            let excess = ratio(sample.span - target, sample.span, ONE);
            let Constants { beta, max_mdf, .. } = self.constants;
            // What an undo may restore is from before a loss, and delay has taken from it since.
            self.window.forget();
            self.reduce(ack.now, (beta * excess / ONE).min(max_mdf));
        }
    }

    fn on_congestion(&mut self, now: Time, cause: Cause, _path: &Path) {
        if cause == Cause::Loss {
            self.timeouts = 0;
            self.window.forget();
            self.window.remember();
            self.reduce(now, self.constants.max_mdf);
        }
    }

    fn on_timeout(&mut self, now: Time, repeated: bool, _path: &Path) {
        self.timeouts += 1;
        if !repeated {
            self.window.forget();
        }
        self.window.remember();
        if self.timeouts >= TIMEOUTS {
            self.window.limit(self.constants.least);
        } else {
            self.reduce(now, self.constants.max_mdf);
        }
        self.window.probe();
    }

    fn on_undo(&mut self) {
        self.window.undo();
    }

    fn window(&self) -> Packets {
        self.window.packets()
    }

    /// Only a window of less than a packet is paced: one packet in RTT/window [Swift §3.4].
    fn pacing(&self) -> Option<Rate> {
        let is_paced = self.window.get() < ONE && !self.rtt.is_zero();
        is_paced.then(|| Rate::of(self.packet, self.window.spacing(self.rtt)).max(Rate::from_bps(1)))
    }

    fn burst(&self) -> Option<Packets> {
        (self.window.get() < ONE).then(|| Packets::new(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::harness::{Drive, build, path};

    const BASE: Span = Span::from_us(50);

    fn swift(changes: &[(&str, Value)]) -> Drive<Swift> {
        let path = path();
        let mut drive = Drive::new(build(&SPEC, Swift::new, &path, changes), path);
        drive.ack(1, Some(BASE), false);
        drive
    }

    fn set(drive: &mut Drive<Swift>, window: u64) {
        drive.cc.window = Fractional::new(Packets::new(1));
        drive.cc.window.limit(window);
        drive.cc.window.raise(window.saturating_sub(ONE));
    }

    #[test]
    fn below_the_target_a_packet_is_added_per_rtt() {
        let mut drive = swift(&[]);
        let before = drive.cc.window.get();
        drive.round(BASE, false);
        assert!(drive.cc.window.get().abs_diff(before + ONE) < ONE / 10);
    }

    /// 1 − β·(delay − target)/delay, at least 1 − max-mdf [Swift Algorithm 1].
    #[test]
    fn above_the_target_the_window_shrinks_with_the_excess_once_per_rtt() {
        let no_scaling = ("fs-range", Value::Span(Span::ZERO));
        let queueing = ("queueing", Value::Span(Span::from_us(25)));
        for (delay, percent) in [(100, 80), (150, 60), (7_500, 50)] {
            let mut drive = swift(&[no_scaling, queueing]);
            set(&mut drive, 100 * ONE);
            // The target is 75 µs: β·(100 − 75)/100 = 0.2, and so on.
            drive.ack(1, Some(Span::from_us(delay)), false);
            let expected = percent * ONE;
            assert!(drive.cc.window.get().abs_diff(expected) < ONE / 100, "{delay}: {}", drive.cc.window.get());
            drive.now += Span::from_us(delay - 1);
            drive.ack(1, Some(Span::from_us(delay)), false);
            assert!(drive.cc.window.get().abs_diff(expected) < ONE / 100, "{delay}: twice in one RTT");
            drive.now += Span::from_us(1);
            drive.ack(1, Some(Span::from_us(delay)), false);
            assert!(drive.cc.window.get() < expected - ONE, "{delay}");
        }
    }

    #[test]
    fn the_target_falls_from_a_tenth_of_a_packet_to_a_hundred() {
        let mut drive = swift(&[("queueing", Value::Span(Span::from_us(25)))]);
        let path = drive.path;
        let base = BASE + Span::from_us(25);
        for (window, added) in [(ONE / 100, 100.0), (ONE / 10, 100.0), (100 * ONE, 0.0), (400 * ONE, 0.0)] {
            set(&mut drive, window);
            let target = drive.cc.target(&path).saturating_sub(base).as_ns() as f64 / 1e3;
            assert!((target - added).abs() < 0.1, "{window}: {target}");
        }
        // At one packet: (1 − 0.1)/(√10 − 0.1) of the range.
        set(&mut drive, ONE);
        let target = drive.cc.target(&path).saturating_sub(base).as_ns() as f64 / 1e3;
        assert!((target - 100.0 * 0.9 / (10f64.sqrt() - 0.1)).abs() < 0.1, "{target}");
    }

    #[test]
    fn a_window_below_a_packet_is_paced() {
        let mut drive = swift(&[]);
        assert_eq!(drive.cc.pacing(), None);
        set(&mut drive, ONE / 2);
        // One packet of 1500 B in two RTTs of 50 µs.
        assert_eq!(drive.cc.pacing(), Some(Rate::from_mbps(120)));
        assert_eq!(drive.window(), 1);
    }

    #[test]
    fn a_loss_halves_and_five_timeouts_leave_the_least() {
        let mut drive = swift(&[]);
        set(&mut drive, 64 * ONE);
        drive.now += Span::from_ms(1);
        drive.congestion(Cause::Loss);
        assert_eq!(drive.cc.window.get(), 32 * ONE);
        for _ in 0..5 {
            drive.now += Span::from_ms(1);
            drive.timeout();
            assert_eq!(drive.window(), 1);
        }
        assert_eq!(drive.cc.window.get(), ONE.div_ceil(1_000));
    }
}
