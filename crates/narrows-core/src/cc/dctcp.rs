//! DCTCP: cut in proportion to the fraction of marked packets [DCTCP, RFC 8257].
//!
//! α in 0..=1024 and its update are those of Linux `tcp_dctcp.c`. The transport opens one reduction per window of data
//! at ECE, and no window grows while it lasts ([`super::Ack::may_grow`]): that, and not this file, decides
//! whether a sender grows in the round of its cut.

use super::parts::reno::{Window, leave_to_window};
use super::{Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Owner, Path, Spec, Value, parameters};
use crate::packet::Seq;
use crate::units::Time;

/// One, of α.
const ONE: u64 = 1 << 10;

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "dctcp",
    title: "DCTCP",
    about: "Estimates the fraction of ECN-marked packets and cuts the window in proportion to it.",
    source: "DCTCP, RFC 8257",
    ecn: EcnUse::Exact,
    kernel: Kernel::Twin,
    needs_delivery_rate: false,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: false,
    ordered: &[],
    parameters: parameters! {
        "g-shift": Kind::Count, Value::Count(4), (0, 10),
            "α's gain g as a power of one half; 4 is 1/16 [RFC 8257 §4.2].";
        "initial-alpha": Kind::Real { bits: 10 }, Value::Real(ONE), (0, ONE),
            "α before the first window of data; 1, the cautious choice [RFC 8257 §3.3].";
    },
};

/// The state of one DCTCP sender.
#[derive(Clone, Debug)]
pub struct Dctcp {
    window: Window,
    /// The running estimate of the marked fraction, 0..=1024.
    alpha: u64,
    gain_shift: u64,
    acked: u64,
    marked: u64,
    /// End of the window of data over which the fraction is measured.
    window_end: Seq,
}

impl Dctcp {
    /// A sender in slow start.
    pub fn new(context: &Context<'_>) -> Dctcp {
        Dctcp {
            window: Window::new(context.path.initial_window),
            alpha: context.settings.real("initial-alpha"),
            gain_shift: context.settings.count("g-shift"),
            acked: 0,
            marked: 0,
            window_end: Seq::SYN,
        }
    }

    /// α, 0..=1024.
    pub fn alpha(&self) -> u64 {
        self.alpha
    }

    fn measure(&mut self, ack: &Ack) {
        self.acked = self.acked.saturating_add(ack.acked.get());
        self.marked = self.marked.saturating_add(ack.marked.get());
        if ack.una >= self.window_end {
            self.alpha = average(self.alpha, self.marked, self.acked, self.gain_shift);
            self.begin_window(ack.nxt);
        }
    }

    fn begin_window(&mut self, nxt: Seq) {
        self.acked = 0;
        self.marked = 0;
        self.window_end = nxt;
    }
}

/// α ← (1−g)·α + g·F [DCTCP eq. 1, RFC 8257 §3.3], F = `marked`/`acked`, g = 2^−`shift`. Where g·α rounds to nothing, α
/// goes to 0 at once, so that a sender without marks gets there (Linux `min_not_zero`).
fn average(alpha: u64, marked: u64, acked: u64, shift: u64) -> u64 {
    let decay = if alpha >> shift == 0 { alpha } else { alpha >> shift };
    let share = marked.saturating_mul(ONE >> shift) / acked.max(1);
    (alpha - decay + share).min(ONE)
}

impl CongestionControl for Dctcp {
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
        self.measure(ack);
        if ack.may_grow() && self.window.was_used(ack) {
            self.window.grow(ack.acked.get());
        }
    }

    /// An echo takes α/2 of the window [DCTCP eq. 2, RFC 8257 §3.3]; a loss takes half [RFC 8257 §3.5]. α stays.
    fn on_congestion(&mut self, _now: Time, cause: Cause, _path: &Path) {
        let packets = self.window.packets;
        self.window.cut(match cause {
            Cause::Ecn => packets - (packets.saturating_mul(self.alpha) >> 11),
            Cause::Loss => packets / 2,
        });
    }

    fn on_timeout(&mut self, _now: Time, repeated: bool, path: &Path) {
        self.window.collapse(self.window.packets / 2, repeated);
        self.begin_window(path.nxt);
    }

    leave_to_window!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Phase;
    use crate::cc::harness::{Drive, build, path};
    use crate::units::Span;

    const RTT: Span = Span::from_us(100);

    fn dctcp(window: u64, alpha: u64) -> Drive<Dctcp> {
        let path = path();
        let mut drive = Drive::new(build(&SPEC, Dctcp::new, &path, &[("initial-alpha", Value::Real(alpha))]), path);
        drive.cc.window.packets = window;
        drive.cc.window.threshold = window;
        drive.cc.window_end = Seq::new(u64::MAX);
        drive.fill();
        drive
    }

    #[test]
    fn alpha_reaches_both_ends_exactly() {
        let mut alpha = 0;
        for _ in 0..200 {
            alpha = average(alpha, 13, 13, 4);
        }
        assert_eq!(alpha, ONE);
        let mut windows = 0;
        alpha = ONE;
        while alpha > 0 {
            alpha = average(alpha, 0, 13, 4);
            windows += 1;
        }
        assert_eq!(windows, 75);
        assert_eq!(average(0, 0, 0, 4), 0);
        assert_eq!(average(300, 1, 2, 0), 512, "g = 1 takes the last window alone");
    }

    #[test]
    fn alpha_is_taken_over_windows_of_data() {
        let mut drive = dctcp(10, 0);
        drive.cc.window_end = drive.path.nxt;
        for marked in [true, true, true, true, true, false, false, false, false] {
            drive.ack(1, Some(RTT), marked);
            assert_eq!(drive.cc.alpha, 0);
        }
        drive.ack(1, Some(RTT), false);
        assert_eq!(drive.cc.alpha, 32, "half marked adds 1/16 of one half");
    }

    #[test]
    fn an_echo_takes_half_of_alpha() {
        for (alpha, window, left) in [(1_024, 100, 50), (205, 100, 90), (0, 100, 100), (1_024, 2, 2)] {
            let mut drive = dctcp(window, alpha);
            drive.congestion(Cause::Ecn);
            assert_eq!(drive.window(), left, "α = {alpha}/1024");
        }
    }

    #[test]
    fn a_loss_halves_even_during_an_ecn_reduction() {
        let mut drive = dctcp(100, 205);
        drive.congestion(Cause::Ecn);
        drive.phase = Phase::EcnReduction;
        drive.congestion(Cause::Loss);
        assert_eq!((drive.window(), drive.cc.alpha), (45, 205));
    }

    #[test]
    fn nothing_grows_while_the_transport_reduces() {
        let mut drive = dctcp(100, 1_024);
        drive.congestion(Cause::Ecn);
        drive.phase = Phase::EcnReduction;
        drive.ack(100, Some(RTT), true);
        assert_eq!(drive.window(), 50);
        drive.phase = Phase::Open;
        drive.ack(50, Some(RTT), false);
        assert_eq!(drive.window(), 51);
    }

    #[test]
    fn the_first_echo_meets_the_alpha_of_its_own_window() {
        let mut drive = dctcp(100, 1_024);
        drive.cc.window_end = drive.path.una;
        drive.ack(1, Some(RTT), false);
        drive.congestion(Cause::Ecn);
        assert_eq!(drive.cc.alpha, 960);
        assert_eq!(drive.window(), 100 - 46);
    }
}
