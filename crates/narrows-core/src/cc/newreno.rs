//! NewReno: slow start, additive increase, halving [RFC 5681, RFC 6582].

use super::parts::reno::{Window, leave_to_window};
use super::{Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Owner, Path, Spec};
use crate::units::Time;

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "newreno",
    title: "NewReno",
    about: "Additive increase, multiplicative decrease: one packet more per RTT, half after a loss.",
    source: "RFC 5681",
    ecn: EcnUse::Optional,
    kernel: Kernel::Own("reno"),
    needs_delivery_rate: false,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: false,
    ordered: &[],
    parameters: &[],
};

/// The state of one NewReno sender.
#[derive(Clone, Debug)]
pub struct NewReno {
    window: Window,
}

impl NewReno {
    /// A sender in slow start.
    pub fn new(context: &Context<'_>) -> NewReno {
        NewReno { window: Window::new(context.path.initial_window) }
    }
}

impl CongestionControl for NewReno {
    fn recovery(&self) -> Owner {
        Owner::Transport
    }

    fn hears_of_starts_only(&self) -> bool {
        true
    }

    fn never_paces(&self) -> bool {
        true
    }

    fn on_ack(&mut self, ack: &Ack, _path: &Path) {
        if ack.may_grow() && self.window.was_used(ack) {
            self.window.grow(ack.acked.get());
        }
    }

    /// Half the window, at least two packets: Linux halves the window where [RFC 5681 §3.1 eq. 4] halves the flight.
    fn on_congestion(&mut self, _now: Time, _cause: Cause, _path: &Path) {
        self.window.cut(self.window.packets / 2);
    }

    fn on_timeout(&mut self, _now: Time, repeated: bool, _path: &Path) {
        self.window.collapse(self.window.packets / 2, repeated);
    }

    leave_to_window!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::harness::{Drive, build, path};
    use crate::cc::{Limit, Phase};
    use crate::units::{Packets, Span};

    const RTT: Span = Span::from_ms(10);

    fn newreno(window: u64) -> Drive<NewReno> {
        let path = path();
        let mut drive = Drive::new(build(&SPEC, NewReno::new, &path, &[]), path);
        drive.cc.window.packets = window;
        drive.cc.window.threshold = window;
        drive.path.nxt = drive.path.una;
        drive.fill();
        drive
    }

    #[test]
    fn slow_start_doubles_every_round() {
        let path = path();
        let mut drive = Drive::new(build(&SPEC, NewReno::new, &path, &[]), path);
        for window in [20, 40, 80] {
            drive.round(RTT, false);
            assert_eq!(drive.window(), window);
        }
    }

    #[test]
    fn a_window_acknowledged_adds_one_packet() {
        let mut drive = newreno(100);
        for window in 101..110 {
            drive.round(RTT, false);
            assert_eq!(drive.window(), window);
        }
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut drive = newreno(100);
        drive.limited_by = Limit::Application;
        drive.round(RTT, false);
        assert_eq!(drive.window(), 100);
    }

    #[test]
    fn a_loss_halves_the_window() {
        for (window, left) in [(100, 50), (5, 2), (3, 2), (2, 2), (1, 1)] {
            let mut drive = newreno(window);
            drive.congestion(Cause::Loss);
            assert_eq!(drive.window(), left);
            drive.phase = Phase::Recovery;
            drive.ack(1, Some(RTT), false);
            assert_eq!(drive.window(), left);
            drive.cc.on_undo();
            assert_eq!(drive.window(), window);
        }
    }

    #[test]
    fn idling_halves_the_window_per_timeout_down_to_the_initial_one() {
        for (ms, left) in [(100, 100), (300, 50), (500, 25), (10_000, 10)] {
            let mut drive = newreno(100);
            let (now, path) = (drive.now, drive.path);
            drive.cc.on_idle_restart(now, Span::from_ms(ms), &path);
            assert_eq!((drive.window(), drive.cc.slow_start_threshold()), (left, Packets::new(100)));
        }
    }

    /// Linux `tcp_cwnd_restart` leaves `snd_cwnd_cnt` alone.
    #[test]
    fn idling_keeps_what_was_acknowledged_towards_the_next_packet() {
        let mut drive = newreno(10);
        drive.ack(9, Some(RTT), false);
        assert_eq!(drive.window(), 10);
        let (now, path) = (drive.now, drive.path);
        drive.cc.on_idle_restart(now, Span::from_ms(300), &path);
        drive.ack(1, Some(RTT), false);
        assert_eq!(drive.window(), 11);
    }
}
