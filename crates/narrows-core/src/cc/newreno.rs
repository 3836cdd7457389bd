//! NewReno: slow start, additive increase, halving [RFC 5681, RFC 6582].

use super::parts::reno::Window;
use super::{Ack, Cause, CongestionControl, Context, EcnUse, Owner, Path, Spec};
use crate::units::{Packets, Span, Time};

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "newreno",
    title: "NewReno",
    about: "Additive increase, multiplicative decrease: one packet more per round trip, half after a loss.",
    source: "RFC 5681",
    ecn: EcnUse::Optional,
    needs_delivery_rate: false,
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
    const RECOVERY: Owner = Owner::Transport;

    fn on_ack(&mut self, ack: &Ack, _path: &Path) {
        if ack.phase.may_grow() && self.window.was_used(ack) {
            self.window.grow(ack.acked.get());
        }
    }

    /// Half the window, at least two packets: Linux halves the window where [RFC 5681 §3.1 eq. 4] halves the flight.
    fn on_congestion(&mut self, _now: Time, _cause: Cause, _path: &Path) {
        self.window.cut(self.window.packets / 2);
    }

    fn on_timeout(&mut self, _now: Time, repeated: bool, _path: &Path) {
        if repeated {
            self.window.collapse_again();
        } else {
            self.window.collapse(self.window.packets / 2);
        }
    }

    fn on_idle_restart(&mut self, _now: Time, idle: Span, path: &Path) {
        self.window.restart_after_idle(idle, path);
    }

    fn on_undo(&mut self) {
        self.window.undo();
    }

    fn window(&self) -> Packets {
        Packets::new(self.window.packets)
    }

    fn slow_start_threshold(&self) -> Packets {
        Packets::new(self.window.threshold)
    }
}
