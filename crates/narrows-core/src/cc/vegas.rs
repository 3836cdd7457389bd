//! Vegas: keeps between α and β packets of its own in the queues [Vegas §3.2].
//!
//! Once per RTT the sender compares what it got with what an empty path would give: the difference, counted in
//! packets, is what it keeps queued. The rules are those of Linux `tcp_vegas.c`, times in microseconds.

use super::Value;
use super::parts::reno::{Window, leave_to_window};
use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Limit, MIN_WINDOW, Owner, Path, Phase, Sent, Spec,
    parameters,
};
use crate::packet::Seq;
use crate::units::{Packets, Span, Time};

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "vegas",
    title: "Vegas",
    about: "Keeps a few packets of its own in the queues, measured by the growth of the RTT.",
    source: "Vegas",
    ecn: EcnUse::Optional,
    kernel: Kernel::Twin,
    needs_delivery_rate: false,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: false,
    ordered: &[("alpha", "beta")],
    parameters: parameters! {
        "alpha": Kind::Packets, Value::Packets(Packets::new(2)), (0, 1 << 20),
            "α: with fewer packets queued the window grows by one per RTT; 2 (Linux).";
        "beta": Kind::Packets, Value::Packets(Packets::new(4)), (0, 1 << 20),
            "β: with more packets queued the window shrinks by one per RTT; 4 (Linux).";
        "gamma": Kind::Packets, Value::Packets(Packets::new(1)), (0, 1 << 20),
            "γ: with more packets queued slow start ends; 1 (Linux).";
    },
};

/// The state of one Vegas sender.
#[derive(Clone, Debug)]
pub struct Vegas {
    alpha: u64,
    beta: u64,
    gamma: u64,
    window: Window,
    /// Whether the sender judges queues: not from a congestion episode until it is over.
    active: bool,
    phase: Phase,
    /// The present round ends when data beyond this is acknowledged.
    round_end: Seq,
    /// Minimum RTT since the start or the last idle period, microseconds plus one so that it is never 0.
    base_us: u64,
    /// Minimum RTT of this round, likewise, and the number of its samples.
    least_us: u64,
    samples: u64,
}

impl Vegas {
    /// A sender in slow start.
    pub fn new(context: &Context<'_>) -> Vegas {
        let packets = |name| context.settings.packets(name).get();
        Vegas {
            alpha: packets("alpha"),
            beta: packets("beta"),
            gamma: packets("gamma"),
            window: Window::new(context.path.initial_window),
            active: true,
            phase: Phase::Open,
            round_end: Seq::SYN,
            base_us: u64::MAX,
            least_us: u64::MAX,
            samples: 0,
        }
    }

    /// Begins a round over the data outstanding now.
    fn begin_round(&mut self, nxt: Seq) {
        self.round_end = nxt;
        self.least_us = u64::MAX;
        self.samples = 0;
    }

    /// With nothing in flight the path may have changed: even the base RTT is measured anew, after a timeout, too (Linux
    /// `tcp_vegas_cwnd_event`).
    fn restart(&mut self, nxt: Seq) {
        self.base_us = u64::MAX;
        self.active = true;
        self.begin_round(nxt);
    }

    /// Sampling stops when an episode begins and starts afresh when it is over.
    fn follow(&mut self, ack: &Ack) {
        if ack.phase != self.phase {
            self.phase = ack.phase;
            self.active = ack.phase == Phase::Open;
            if self.active {
                self.begin_round(ack.nxt);
            }
        }
    }

    /// The once-per-round decision [Vegas §3.2].
    fn decide(&mut self, ack: &Ack) {
        let window = &mut self.window;
        if self.samples <= 2 {
            // Too few samples to trust: one of them may be a delayed acknowledgement.
            if window.was_used(ack) {
                window.grow(ack.acked.get());
            }
            return;
        }
        let packets = window.packets;
        let share = u128::from(packets) * u128::from(self.base_us) / u128::from(self.least_us);
        let target = u64::try_from(share).unwrap_or(u64::MAX);
        let extra = u128::from(self.least_us.saturating_sub(self.base_us));
        let queued = u64::try_from(u128::from(packets) * extra / u128::from(self.base_us)).unwrap_or(u64::MAX);
        if window.in_slow_start() {
            if queued > self.gamma {
                window.packets = packets.min(target + 1);
                window.threshold = window.threshold.min(window.packets);
            } else {
                // At the threshold the rest of the acknowledgement is not used: growth is decided once per round.
                let _ = window.slow_start(ack.acked.get());
            }
        } else if queued > self.beta {
            window.packets -= 1;
            window.threshold = window.threshold.min(window.packets);
        } else if queued < self.alpha {
            window.packets += 1;
        }
        window.packets = window.packets.max(MIN_WINDOW.get());
        window.threshold = window.threshold.max((window.packets >> 1) + (window.packets >> 2));
    }
}

impl CongestionControl for Vegas {
    fn never_paces(&self) -> bool {
        true
    }

    fn recovery(&self) -> Owner {
        Owner::Transport
    }

    fn on_ack(&mut self, ack: &Ack, _path: &Path) {
        if let Some(sample) = ack.rtt {
            let us = sample.span.as_us().saturating_add(1);
            self.base_us = self.base_us.min(us);
            self.least_us = self.least_us.min(us);
            self.samples += 1;
        }
        self.follow(ack);
        if !ack.may_grow() {
            return;
        }
        let before = self.window.packets;
        if !self.active {
            if self.window.was_used(ack) {
                self.window.grow(ack.acked.get());
            }
        } else if ack.una > self.round_end {
            self.decide(ack);
            self.begin_round(ack.nxt);
        } else if self.window.in_slow_start() {
            let _ = self.window.slow_start(ack.acked.get());
        }
        if ack.limited_by == Limit::NearSource {
            self.window.packets = self.window.packets.min(before);
        }
    }

    /// Losses and ECE halve the window as Reno does.
    fn on_congestion(&mut self, _now: Time, _cause: Cause, _path: &Path) {
        self.window.cut(self.window.packets / 2);
    }

    fn on_timeout(&mut self, _now: Time, repeated: bool, _path: &Path) {
        self.window.collapse(self.window.packets / 2, repeated);
        self.active = false;
        self.phase = Phase::Loss;
    }

    fn on_sent(&mut self, _now: Time, sent: &Sent, path: &Path) {
        if sent.starts {
            // After idle time the round is that of the first segment, which the path counts as sent: Linux tells of it before.
            self.restart(if sent.idle.is_some() { path.una } else { path.nxt });
        }
    }

    fn on_idle_restart(&mut self, _now: Time, idle: Span, path: &Path) {
        self.window.restart_after_idle(idle, path);
        self.restart(path.nxt);
    }

    leave_to_window!(but on_idle_restart);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::harness::{Drive, build, path};

    /// A path of 100 packets per base RTT of 10 ms whose queue holds what does not fit.
    fn round_trip(window: u64) -> Span {
        Span::from_us(10_000 + window.saturating_sub(100) * 100)
    }

    fn vegas(alpha: u64, beta: u64) -> Drive<Vegas> {
        let packets = |n| Value::Packets(Packets::new(n));
        let path = path();
        let mut drive =
            Drive::new(build(&SPEC, Vegas::new, &path, &[("alpha", packets(alpha)), ("beta", packets(beta))]), path);
        drive.ack(1, Some(round_trip(0)), false);
        drive
    }

    fn run(drive: &mut Drive<Vegas>, rounds: usize) {
        for _ in 0..rounds {
            let rtt = round_trip(drive.window());
            drive.round(rtt, false);
        }
    }

    #[test]
    fn the_queue_settles_between_alpha_and_beta() {
        for (alpha, beta) in [(2, 4), (20, 40), (40, 80)] {
            let mut drive = vegas(alpha, beta);
            run(&mut drive, 300);
            let mut above = vegas(alpha, beta);
            above.cc.window.packets = 400;
            above.cc.window.threshold = 400;
            run(&mut above, 600);
            for drive in [drive, above] {
                let queued = drive.window() - 100;
                // Equal or just below counts as "between": the integer quotient rounds the queue down.
                assert!((alpha..=beta + 1).contains(&queued), "α {alpha}, β {beta}: {queued}");
            }
        }
    }

    /// The window grows below α and shrinks above β, and stays at both [Vegas §3.2].
    #[test]
    fn at_its_bounds_the_window_stays() {
        for (window, expected) in [(101, 102), (102, 102), (104, 104), (105, 104)] {
            let mut drive = vegas(2, 4);
            (drive.cc.window.packets, drive.cc.window.threshold) = (window, window);
            drive.fill();
            drive.cc.begin_round(drive.path.nxt);
            // A base RTT of so many microseconds that what 100 packets do not fill is a whole number of packets.
            drive.cc.base_us = window * 100;
            let longer = (window - 100) * 100;
            // A sample counts as a microsecond more.
            let rtt = Span::from_us(window * 100 + longer - 1);
            drive.round(rtt, false);
            drive.ack(1, Some(rtt), false);
            assert_eq!(drive.window(), expected, "{window} packets");
        }
    }

    #[test]
    fn slow_start_ends_before_the_queue_is_long() {
        let mut drive = vegas(2, 4);
        run(&mut drive, 12);
        assert!(!drive.cc.window.in_slow_start());
        // The queue shows once the window passes 100, is judged a round later, and the excess is dropped at once.
        assert!(drive.window() <= 400, "{}", drive.window());
    }

    #[test]
    fn two_samples_are_too_few() {
        let mut drive = vegas(2, 4);
        drive.cc.window.packets = 50;
        drive.cc.window.threshold = 50;
        drive.cc.begin_round(drive.path.una);
        drive.ack(1, Some(Span::from_ms(90)), false);
        assert_eq!(drive.window(), 50, "Reno's growth, not a cut");
    }

    #[test]
    fn idling_measures_the_path_anew() {
        let mut drive = vegas(2, 4);
        run(&mut drive, 20);
        let sent = Sent { size: drive.path.packet, idle: Some(Span::from_ms(50)), starts: true };
        drive.path.nxt = drive.path.una.plus(drive.path.mss.get());
        drive.cc.on_sent(drive.now, &sent, &drive.path);
        assert_eq!((drive.cc.base_us, drive.cc.samples), (u64::MAX, 0));
        // The acknowledgement of the first segment ends a round already.
        assert_eq!(drive.cc.round_end, drive.path.una);
    }

    #[test]
    fn the_retransmission_after_a_timeout_measures_the_path_anew() {
        let mut drive = vegas(2, 4);
        run(&mut drive, 20);
        drive.path.nxt = drive.path.una.plus(10 * drive.path.mss.get());
        drive.cc.on_timeout(drive.now, false, &drive.path);
        assert!(!drive.cc.active);
        let sent = Sent { size: drive.path.packet, idle: None, starts: true };
        drive.cc.on_sent(drive.now, &sent, &drive.path);
        assert_eq!((drive.cc.base_us, drive.cc.samples, drive.cc.active), (u64::MAX, 0, true));
        assert_eq!(drive.cc.round_end, drive.path.nxt, "the round is that of all that is out");
    }

    #[test]
    fn idle_timeouts_halve_the_window_and_the_path_is_measured_anew() {
        let mut drive = vegas(2, 4);
        run(&mut drive, 20);
        drive.cc.window.packets = 100;
        let idle = drive.path.rto * 2 + Span::from_ms(1);
        drive.cc.on_idle_restart(drive.now, idle, &drive.path);
        assert_eq!(drive.window(), 25, "two timeouts");
        assert_eq!((drive.cc.base_us, drive.cc.samples, drive.cc.active), (u64::MAX, 0, true));
    }

    #[test]
    fn an_episode_suspends_the_judgement() {
        let mut drive = vegas(2, 4);
        run(&mut drive, 100);
        let before = drive.window();
        drive.congestion(Cause::Loss);
        drive.phase = Phase::Recovery;
        drive.round(round_trip(before), false);
        assert_eq!(drive.window(), before / 2);
        drive.phase = Phase::Open;
        drive.ack(1, Some(round_trip(0)), false);
        assert!(drive.cc.active && drive.cc.samples <= 1);
        run(&mut drive, 200);
        assert!((102..=105).contains(&drive.window()));
    }
}
