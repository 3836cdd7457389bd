//! Cautious: NewReno that also gives way to delay [Cautious].
//!
//! It grows and answers losses as NewReno does [RFC 5681]. But while the RTT exceeds the minimum by more than
//! `delay`, the window does not grow, and shrinks by an eighth once per RTT.

use super::parts::reno::{Window, leave_to_window};
use super::{Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Owner, Parameter, Path, Phase, Spec, Value};
use crate::packet::Seq;
use crate::units::{Span, Time};

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "cautious",
    title: "Cautious",
    about: "NewReno that also takes an eighth off its window when the RTT grows.",
    source: "Cautious, RFC 5681",
    ecn: EcnUse::Optional,
    kernel: Kernel::None,
    needs_delivery_rate: false,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: false,
    ordered: &[],
    parameters: &[Parameter {
        name: "delay",
        kind: Kind::Span,
        default: Value::Span(Span::from_ms(5)),
        range: Some((0, Span::from_secs(10).as_ps())),
        about: "How much an RTT may exceed the minimum before the window shrinks; 5 ms.",
    }],
};

/// The state of one Cautious sender.
#[derive(Clone, Debug)]
pub struct Cautious {
    window: Window,
    delay: Span,
    /// RTTs count only of segments from here on: those sent before the last cut do not show its effect.
    fresh_from: Seq,
}

impl Cautious {
    /// A sender in slow start.
    pub fn new(context: &Context<'_>) -> Cautious {
        Cautious {
            window: Window::new(context.path.initial_window),
            delay: context.settings.span("delay"),
            fresh_from: Seq::FIRST,
        }
    }

    /// Whether an RTT is too long.
    fn is_late(&self, span: Span, path: &Path) -> bool {
        path.min_rtt.is_some_and(|least| span > least + self.delay)
    }

    /// Half of the window.
    fn half(&self) -> u64 {
        self.window.packets / 2
    }
}

impl CongestionControl for Cautious {
    fn recovery(&self) -> Owner {
        Owner::Transport
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        if let Some(sample) = ack.rtt.filter(|sample| self.is_late(sample.span, path)) {
            if ack.phase == Phase::Open && sample.seq >= self.fresh_from {
                // An eighth, at least one packet; `cut` keeps two packets, and ends slow start.
                self.window.cut(self.window.packets - self.window.packets.div_ceil(8));
                self.fresh_from = ack.nxt;
            }
        } else if ack.may_grow() && self.window.was_used(ack) {
            self.window.grow(ack.acked.get());
        }
    }

    /// Losses and ECE halve the window [RFC 5681 §3.1]; delay from before them causes no further cut.
    fn on_congestion(&mut self, _now: Time, _cause: Cause, path: &Path) {
        self.window.cut(self.half());
        self.fresh_from = path.nxt;
    }

    fn on_timeout(&mut self, _now: Time, repeated: bool, path: &Path) {
        self.window.collapse(self.half(), repeated);
        self.fresh_from = path.nxt;
    }

    leave_to_window!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::harness::{Drive, build, path};

    const LEAST: Span = Span::from_ms(10);
    const LATE: Span = Span::from_ms(16);

    /// A sender with a window of 80 packets, past slow start, that has seen the minimum RTT.
    fn cautious(changes: &[(&str, Value)]) -> Drive<Cautious> {
        let path = path();
        let mut drive = Drive::new(build(&SPEC, Cautious::new, &path, changes), path);
        drive.cc.window.packets = 80;
        drive.cc.window.threshold = 80;
        drive.fill();
        drive.ack(1, Some(LEAST), false);
        assert_eq!(drive.window(), 80);
        drive
    }

    #[test]
    fn delay_takes_an_eighth_once_per_rtt() {
        let mut drive = cautious(&[]);
        drive.round(LATE, false);
        assert_eq!(drive.window(), 70, "the first segment cuts; the others were sent before the cut");
        drive.round(LATE, false);
        assert_eq!(drive.window(), 70 - 9, "an eighth, rounded up");
    }

    #[test]
    fn delay_within_the_threshold_is_newreno() {
        let mut drive = cautious(&[("delay", Value::Span(Span::from_ms(6)))]);
        for window in 81..90 {
            drive.round(LATE, false);
            assert_eq!(drive.window(), window, "16 ms are not more than 10 ms and 6 ms");
        }
        drive.congestion(Cause::Loss);
        assert_eq!(drive.window(), 44);
    }
}
