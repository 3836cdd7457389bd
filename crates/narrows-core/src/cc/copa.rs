//! Copa: aims at the rate 1/(δ·queueing delay), and gives way to no buffer filler [Copa §2].
//!
//! With each acknowledgement the window moves by v/(δ·window) towards the target; v doubles while the direction stays. A flow
//! keeps 1/δ packets in the queue on average, and once in five RTTs of the combined oscillation the queue is nearly empty. If
//! it is not, somebody else fills it, and 1/δ moves like Reno's window until it is again [Copa §2.2].

use super::parts::fractional::{Fractional, ONE};
use super::parts::windowed::{WindowedMax, WindowedMin};
use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Limit, Owner, Path, Spec, Value, parameters,
};
use crate::packet::Seq;
use crate::units::{Bytes, Packets, Rate, Span, Time};

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "copa",
    title: "Copa",
    about: "Aims at a rate inverse to its queueing delay, and competes as Reno does where others fill the queue.",
    source: "Copa",
    ecn: EcnUse::Optional,
    kernel: Kernel::None,
    needs_delivery_rate: false,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: false,
    ordered: &[],
    parameters: parameters! {
        "delta": Kind::Real { bits: 20 }, Value::Real(ONE / 2), (ONE.div_ceil(1_000), 4 * ONE),
            "δ: a flow keeps 1/δ packets queued; 0.5 [Copa §2.1].";
        "switches": Kind::Switch, Value::Switch(true),
            "Whether it competes where the queue is never nearly empty [Copa §2.2].";
        "min-rtt-window": Kind::Span, Value::Span(Span::from_secs(10)),
            (Span::from_ms(1).as_ps(), Span::from_secs(1_000).as_ps()),
            "The time over which the minimum RTT is taken; 10 s [Copa §2.1].";
    },
};

/// RTTs without a nearly empty queue after which others are taken to fill it [Copa §2.2].
const FULL_FOR: u32 = 5;
/// RTTs over which the greatest RTT is taken [Copa §2.2].
const GREATEST_OVER: u64 = 4;
/// Windows in one direction before the velocity doubles [Copa §2.1].
const STEADY: u32 = 3;
/// Two packets, so that there are always acknowledgements.
const LEAST: u64 = 2 * ONE;

/// The state of one Copa sender.
#[derive(Clone, Debug)]
pub struct Copa {
    /// 1/δ where nobody else fills the queue (2^-20).
    inverse_delta: u64,
    /// 1/δ as it is (2^-20).
    present: u64,
    switches: bool,
    window: Fractional,
    /// The velocity.
    velocity: u64,
    /// Whether the last window's change was upwards, and for how many windows it has been so.
    is_rising: bool,
    steady_for: u32,
    /// The window of data ends when this is acknowledged; what the congestion window was when it began.
    round_end: Seq,
    round_window: u64,
    in_slow_start: bool,
    /// Whether the queue was nearly empty in this round, and for how many rounds it has not been.
    was_empty: bool,
    full_for: u32,
    /// A loss in this round.
    has_lost: bool,
    /// RTTs in nanoseconds: the least of `min-rtt-window`, the least of half an RTT, the greatest of four RTTs.
    least: WindowedMin,
    standing: WindowedMin,
    greatest: WindowedMax,
    packet: Bytes,
}

impl Copa {
    /// A sender in slow start.
    pub fn new(context: &Context<'_>) -> Copa {
        let inverse_delta = (ONE << 20) / context.settings.real("delta").max(1);
        Copa {
            inverse_delta,
            present: inverse_delta,
            switches: context.settings.switch("switches"),
            window: Fractional::new(context.path.initial_window),
            velocity: 1,
            is_rising: true,
            steady_for: 0,
            round_end: Seq::SYN,
            round_window: 0,
            in_slow_start: true,
            was_empty: true,
            full_for: 0,
            has_lost: false,
            least: WindowedMin::new(context.settings.span("min-rtt-window").as_ns()),
            standing: WindowedMin::new(0),
            greatest: WindowedMax::new(0),
            packet: context.path.packet,
        }
    }

    /// Whether others fill the queue.
    pub fn competes(&self) -> bool {
        self.switches && self.full_for >= FULL_FOR
    }

    fn measure(&mut self, now: Time, rtt: Span, srtt: Span) {
        self.standing.set_window(srtt.as_ns() / 2);
        self.greatest.set_window(srtt.as_ns().saturating_mul(GREATEST_OVER));
        self.least.update(now.as_ns(), rtt.as_ns());
        self.standing.update(now.as_ns(), rtt.as_ns());
        self.greatest.update(now.as_ns(), rtt.as_ns());
    }

    /// The standing RTT, and how much it exceeds the least, nanoseconds.
    fn delays(&self) -> (u64, u64) {
        let standing = self.standing.value().unwrap_or(0);
        (standing, standing.saturating_sub(self.least.value().unwrap_or(standing)))
    }

    /// Whether the rate, window/standing RTT, is below the target, 1/(δ·delay) [Copa eq. 1].
    fn is_below_target(&self) -> bool {
        let (standing, delay) = self.delays();
        u128::from(self.window.get()) * u128::from(delay) <= u128::from(standing) * u128::from(self.present)
    }

    /// Once per window of data: which way it moved, for how long, and who else is there.
    fn end_round(&mut self, nxt: Seq) {
        let rises = self.window.get() > self.round_window;
        self.steady_for = if rises == self.is_rising { self.steady_for.saturating_add(1) } else { 0 };
        self.is_rising = rises;
        self.velocity = match self.steady_for {
            0 => 1,
            _ if self.in_slow_start => 1,
            rounds if rounds >= STEADY => self.velocity.saturating_mul(2),
            _ => self.velocity,
        };
        self.full_for = if self.was_empty { 0 } else { self.full_for.saturating_add(1) };
        if !self.competes() {
            self.present = self.inverse_delta;
        } else if !self.has_lost {
            self.present += ONE;
        }
        (self.was_empty, self.has_lost) = (false, false);
        (self.round_end, self.round_window) = (nxt, self.window.get());
    }

    /// Whatever direction slow start had, the velocity begins anew.
    fn end_slow_start(&mut self) {
        self.in_slow_start = false;
        (self.velocity, self.steady_for) = (1, 0);
    }

    /// Moves the window towards the target [Copa §2.1].
    fn step(&mut self, acked: u64, may_grow: bool) {
        let is_below = self.is_below_target();
        if self.in_slow_start {
            if is_below {
                if may_grow {
                    self.window.raise(acked.saturating_mul(ONE));
                }
                return;
            }
            self.end_slow_start();
        }
        if is_below != self.is_rising && self.velocity > 1 {
            // The target was passed: what was gained by speed is of the other direction.
            (self.velocity, self.steady_for, self.is_rising) = (1, 0, is_below);
        }
        // At most twice the window, or half of it, in an RTT.
        let most = if is_below { self.window.get() } else { self.window.get() / 2 };
        let per_window = self.velocity.saturating_mul(self.present).min(most);
        if is_below && may_grow {
            self.window.grow(acked, per_window);
        } else if !is_below {
            self.window.shrink(acked, per_window, LEAST);
        }
    }
}

impl CongestionControl for Copa {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.window.end_probing();
        self.packet = path.packet;
        if let Some(sample) = ack.rtt {
            self.measure(ack.now, sample.span, path.srtt.unwrap_or(sample.span));
        }
        let (Some(least), greatest) = (self.least.value(), self.greatest.value()) else { return };
        let (_, delay) = self.delays();
        // Nearly empty: the delay is less than a tenth of its range [Copa §2.2].
        self.was_empty |= delay.saturating_mul(10) <= greatest.saturating_sub(least);
        self.step(ack.acked.get(), matches!(ack.limited_by, Limit::Window | Limit::Pacing));
        if ack.una > self.round_end {
            self.end_round(ack.nxt);
        }
    }

    /// A loss says nothing, unless others fill the queue: then 1/δ is halved, at most once per RTT [Copa §2.2].
    fn on_congestion(&mut self, _now: Time, cause: Cause, _path: &Path) {
        if cause == Cause::Loss && self.in_slow_start {
            self.end_slow_start();
        }
        if cause == Cause::Loss && self.competes() {
            self.has_lost = true;
            self.present = (self.present / 2).max(self.inverse_delta);
        }
    }

    fn on_timeout(&mut self, _now: Time, _repeated: bool, _path: &Path) {
        self.window.probe();
        self.end_slow_start();
        self.has_lost = true;
        self.present = (self.present / 2).max(self.inverse_delta);
    }

    fn on_undo(&mut self) {
        self.window.undo();
    }

    fn window(&self) -> Packets {
        self.window.packets()
    }

    /// Twice the window per standing RTT, which only spreads bursts [Copa §2.1].
    fn pacing(&self) -> Option<Rate> {
        let (standing, _) = self.delays();
        (standing > 0).then(|| {
            let spacing = self.window.spacing(Span::from_ns(standing).div(2)).max(Span::from_ps(1));
            Rate::of(self.packet, spacing).max(Rate::from_bps(1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::harness::{Drive, build, path};
    use std::vec::Vec;

    /// A path of 100 packets per base RTT of 10 ms whose queue holds what does not fit, beside `others`.
    fn round_trip(window: u64, others: u64) -> Span {
        Span::from_us(10_000 + window.saturating_sub(100) * 100 + others * 100)
    }

    fn copa(changes: &[(&str, Value)]) -> Drive<Copa> {
        let path = path();
        let mut drive = Drive::new(build(&SPEC, Copa::new, &path, changes), path);
        drive.ack(1, Some(round_trip(0, 0)), false);
        drive
    }

    /// Acknowledges one packet after the other, each with the RTT that the window makes, for so many RTTs; the window at the
    /// end of each.
    fn run(drive: &mut Drive<Copa>, rounds: usize, others: impl Fn(usize) -> u64) -> Vec<u64> {
        let mut windows = Vec::new();
        for round in 0..rounds {
            let rtt = round_trip(drive.window(), others(round));
            drive.round(rtt, false);
            windows.push(drive.window());
        }
        windows
    }

    #[test]
    fn slow_start_doubles_and_ends_at_the_target() {
        let mut drive = copa(&[]);
        let windows = run(&mut drive, 3, |_| 0);
        assert!(windows[2] >= 80, "{windows:?}");
        run(&mut drive, 5, |_| 0);
        assert!(!drive.cc.in_slow_start);
    }

    #[test]
    fn a_loss_ends_slow_start() {
        let mut drive = copa(&[]);
        run(&mut drive, 2, |_| 0);
        assert!(drive.cc.in_slow_start);
        drive.congestion(Cause::Loss);
        assert!(!drive.cc.in_slow_start);
    }

    #[test]
    fn it_competes_where_a_queue_never_empties_and_stops_where_it_does() {
        let mut drive = copa(&[]);
        run(&mut drive, 50, |_| 0);
        // Somebody fills 50 packets, and swings by 10.
        run(&mut drive, 12, |round| 50 + 2 * (round as u64 % 5));
        assert!(drive.cc.competes());
        let before = drive.cc.present;
        run(&mut drive, 1, |_| 50);
        assert_eq!(drive.cc.present, before + ONE, "1/δ grows by one per RTT");
        drive.congestion(Cause::Loss);
        assert_eq!(drive.cc.present, (before + ONE) / 2);
        drive.cc.window.limit(90 * ONE);
        run(&mut drive, 4, |_| 0);
        assert!(!drive.cc.competes());
        let alone = copa(&[("switches", Value::Switch(false))]);
        assert!(!alone.cc.competes());
    }

    #[test]
    fn without_competition_a_loss_says_nothing() {
        let mut drive = copa(&[]);
        run(&mut drive, 50, |_| 0);
        let before = drive.cc.window.get();
        drive.congestion(Cause::Loss);
        assert_eq!(drive.cc.window.get(), before);
    }
}
