//! DCQCN's reaction point: a rate that notifications cut in proportion to how often they come, and that recovers as QCN's
//! does [DCQCN §3.1].
//!
//! The original drives an adapter of a lossless network. Here its control law runs over RDMA or TCP: an acknowledgement with ECE
//! stands for the notification packet of the receiver, at most one in `interval`. The rate alone is meant to limit; the window is a
//! safety net.
//!
//! ```text
//!                    the longer count > 5         both > 5
//! fast recovery ───────────────────────▶ additive ─────────▶ hyper     a cycle: `byte-cycle` sent, or `timer` passed
//!      ▲                                    │                  │
//!      └──────── a notification ────────────┴──────────────────┘       both counts begin anew
//! ```
//!
//! Both clocks are caught up with when something happens to the connection, exactly to that moment. At the line rate, where
//! there is nothing to recover, the counts rest: a notification begins them anew.

use super::{Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Owner, Path, Sent, Spec, Value, parameters};
use super::{MIN_WINDOW, Settings};
use crate::units::{Bytes, Packets, Rate, Span, Time};

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "dcqcn",
    title: "DCQCN",
    about: "Cuts its rate by how often marks are reported and recovers it in cycles: the rate control of RDMA adapters, over RDMA or TCP.",
    source: "DCQCN",
    ecn: EcnUse::Exact,
    kernel: Kernel::None,
    needs_delivery_rate: false,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: false,
    ordered: &[],
    parameters: parameters! {
        "interval": Kind::Span, Value::Span(Span::from_us(50)), (0, Span::from_secs(1).as_ps()),
            "ECE within this time counts as one notification; 50 µs [DCQCN §3.1].";
        "g-shift": Kind::Count, Value::Count(8), (0, 16), "α's gain g as a power of one half; 8 is 1/256 [DCQCN §5].";
        "alpha-timer": Kind::Span, Value::Span(Span::from_us(55)),
            (Span::from_us(10).as_ps(), Span::from_secs(1).as_ps()),
            "α falls each time so long passes without a notification; 55 µs [DCQCN §3.1].";
        "timer": Kind::Span, Value::Span(Span::from_us(55)), (Span::from_us(10).as_ps(), Span::from_secs(1).as_ps()),
            "A cycle of recovery in time; 55 µs [DCQCN §5].";
        "byte-cycle": Kind::Bytes, Value::Bytes(Bytes::new(10_000_000)), (1, 1_000_000_000_000),
            "A cycle of recovery in IP bytes sent; 10 MB [DCQCN §5].";
        "additive": Kind::Rate, Value::Rate(Rate::from_mbps(40)), (1_000_000, 1_000_000_000_000),
            "What the target rises by in a cycle after fast recovery; 40 Mbit/s, for lines of 40 Gbit/s [DCQCN §5].";
        "hyper": Kind::Rate, Value::Auto, (1_000_000, 1_000_000_000_000),
            "What it rises by once both counts are past fast recovery, times the cycle; left out, ten times `additive`.";
        "floor": Kind::Rate, Value::Rate(Rate::from_mbps(10)), (1, 1_000_000_000_000),
            "The rate never falls below this, or the line rate if that is less; the paper gives none.";
        "window": Kind::Span, Value::Span(Span::from_ms(4)), (Span::from_us(10).as_ps(), Span::from_secs(1).as_ps()),
            "The window is what the line sends in this time: more than a datacenter's RTT with full buffers.";
    },
};

/// One, of α.
const ONE: u64 = 1 << 20;
/// Cycles of fast recovery, F [DCQCN §3.1].
const FAST_RECOVERY: u32 = 5;
/// `hyper` over `additive`, by default.
const HYPER: u64 = 10;

/// What does not change in a connection's life.
#[derive(Clone, Copy, Debug)]
struct Constants {
    interval: Span,
    gain_shift: u64,
    alpha_timer: Span,
    timer: Span,
    byte_cycle: Bytes,
    additive: Rate,
    hyper: Rate,
    floor: Rate,
    line: Rate,
    window: Packets,
}

/// The state of one DCQCN sender.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    constants: Constants,
    /// `R_C`, from the floor to the line rate.
    rate: Rate,
    /// `R_T`: where it recovers to.
    target: Rate,
    /// How congested the path was recently, 0 to [`ONE`].
    alpha: u64,
    /// When α falls next.
    alpha_at: Time,
    /// Echoes before this belong to the last notification.
    deaf_until: Time,
    timer_at: Time,
    timer_stage: u32,
    bytes_left: Bytes,
    byte_stage: u32,
    /// After a timeout one packet goes, until an acknowledgement shows that there is a path.
    probes: bool,
}

impl Constants {
    fn of(settings: &Settings<'_>, path: &Path) -> Constants {
        let span = |name| settings.span(name);
        let additive = settings.rate("additive");
        let packets = path.line_rate.bytes_in(span("window")).get() / path.packet.get().max(1);
        Constants {
            interval: span("interval"),
            gain_shift: settings.count("g-shift"),
            alpha_timer: span("alpha-timer"),
            timer: span("timer"),
            byte_cycle: settings.bytes("byte-cycle"),
            additive,
            hyper: settings.rate_or_auto("hyper").unwrap_or(additive.scaled(HYPER, 1)),
            floor: settings.rate("floor").min(path.line_rate),
            line: path.line_rate,
            window: Packets::new(packets).max(MIN_WINDOW),
        }
    }
}

impl Dcqcn {
    /// A sender at the line rate.
    pub fn new(context: &Context<'_>) -> Dcqcn {
        let constants = Constants::of(&context.settings, context.path);
        Dcqcn {
            constants,
            rate: constants.line,
            target: constants.line,
            alpha: ONE,
            alpha_at: Time::NEVER,
            deaf_until: Time::ZERO,
            timer_at: Time::NEVER,
            timer_stage: 0,
            bytes_left: constants.byte_cycle,
            byte_stage: 0,
            probes: false,
        }
    }

    /// α, 0 to 2^20.
    pub fn alpha(&self) -> u64 {
        self.alpha
    }

    /// The receiver says that a packet was marked [DCQCN eq. 1].
    fn notify(&mut self, now: Time) {
        if now < self.deaf_until {
            return;
        }
        let Constants { interval, gain_shift, alpha_timer, timer, byte_cycle, floor, .. } = self.constants;
        self.deaf_until = now + interval;
        self.target = self.rate;
        self.rate = self.rate.scaled(2 * ONE - self.alpha, 2 * ONE).max(floor);
        self.decay();
        self.alpha += ONE >> gain_shift;
        self.alpha_at = now + alpha_timer;
        self.timer_at = now + timer;
        self.bytes_left = byte_cycle;
        (self.timer_stage, self.byte_stage) = (0, 0);
    }

    /// α ← (1−g)·α [DCQCN eq. 2]; g·α is rounded up, so that α comes to 0.
    fn decay(&mut self) {
        self.alpha -= self.alpha.div_ceil(1 << self.constants.gain_shift);
    }

    /// What the clocks did up to `now`.
    fn catch_up(&mut self, now: Time) {
        while self.alpha_at <= now && self.alpha > 0 {
            self.decay();
            self.alpha_at += self.constants.alpha_timer;
        }
        while self.timer_at <= now && self.rate < self.constants.line {
            self.timer_at += self.constants.timer;
            self.timer_stage = self.timer_stage.saturating_add(1);
            self.increase();
        }
    }

    fn count(&mut self, size: Bytes) {
        self.bytes_left = self.bytes_left.saturating_sub(size);
        if self.bytes_left == Bytes::ZERO {
            self.bytes_left = self.constants.byte_cycle;
            self.byte_stage = self.byte_stage.saturating_add(1);
            self.increase();
        }
    }

    /// A cycle is over, the counts know it already [DCQCN eq. 3 and 4].
    fn increase(&mut self) {
        let (fewer, more) = (self.timer_stage.min(self.byte_stage), self.timer_stage.max(self.byte_stage));
        let Constants { additive, hyper, line, .. } = self.constants;
        let step = if fewer > FAST_RECOVERY {
            hyper.as_bps().saturating_mul(u64::from(fewer - FAST_RECOVERY))
        } else if more > FAST_RECOVERY {
            additive.as_bps()
        } else {
            0
        };
        self.target = Rate::from_bps(self.target.as_bps().saturating_add(step)).min(line);
        // Rounded up, or the rate would never come to its target.
        self.rate = Rate::from_bps((self.rate.as_bps() + self.target.as_bps()).div_ceil(2));
    }
}

impl CongestionControl for Dcqcn {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_ack(&mut self, ack: &Ack, _path: &Path) {
        self.probes = false;
        self.catch_up(ack.now);
        if ack.ece {
            self.notify(ack.now);
        }
    }

    /// Nothing: what overflows a queue was marked before, and the echoes of those marks have been heard or will be.
    fn on_congestion(&mut self, _now: Time, _cause: Cause, _path: &Path) {}

    /// No acknowledgement came that could echo a mark: a notification.
    fn on_timeout(&mut self, now: Time, _repeated: bool, _path: &Path) {
        self.probes = true;
        self.catch_up(now);
        self.notify(now);
    }

    fn on_sent(&mut self, now: Time, sent: &Sent, _path: &Path) {
        self.catch_up(now);
        if self.rate < self.constants.line {
            self.count(sent.size);
        }
    }

    fn on_undo(&mut self) {
        self.probes = false;
    }

    fn window(&self) -> Packets {
        if self.probes { Packets::new(1) } else { self.constants.window }
    }

    fn pacing(&self) -> Option<Rate> {
        Some(self.rate)
    }

    /// An adapter spaces single packets.
    fn burst(&self) -> Option<Packets> {
        Some(Packets::new(1))
    }
}

#[cfg(test)]
#[allow(clippy::float_arithmetic, reason = "the paper's equations, as a reference")]
mod tests {
    use super::*;
    use crate::cc::harness::{Drive, build, path};
    use proptest::prelude::*;
    use std::vec::Vec;

    const LINE: Rate = Rate::from_gbps(40);
    const INTERVAL: Span = Span::from_us(50);
    const TIMER: Span = Span::from_us(55);

    fn dcqcn(changes: &[(&str, Value)]) -> Drive<Dcqcn> {
        let path = Path { line_rate: LINE, ..path() };
        Drive::new(build(&SPEC, Dcqcn::new, &path, changes), path)
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn rate(drive: &Drive<Dcqcn>) -> u64 {
        drive.cc.pacing().expect("it always paces").as_bps()
    }

    impl Drive<Dcqcn> {
        fn ack_at(&mut self, now: Time, ece: bool) {
            self.now = now;
            self.ack(1, Some(Span::from_us(30)), ece);
        }

        fn send_at(&mut self, now: Time, size: u64) {
            let sent = Sent { size: Bytes::new(size), idle: None, starts: false };
            self.cc.on_sent(now, &sent, &self.path);
        }
    }

    #[test]
    fn it_starts_at_the_line_rate_and_its_first_notification_halves_it() {
        let mut drive = dcqcn(&[]);
        assert_eq!(rate(&drive), LINE.as_bps());
        drive.ack_at(at(700), false);
        assert_eq!(rate(&drive), LINE.as_bps());
        drive.ack_at(at(800), true);
        assert_eq!(rate(&drive), LINE.as_bps() / 2, "α is 1 until then");
    }

    #[test]
    fn five_cycles_of_fast_recovery_leave_a_thirty_second_of_the_gap() {
        let mut drive = dcqcn(&[]);
        drive.ack_at(at(0), true);
        drive.ack_at(at(0) + TIMER * 5, false);
        let (gap, left) = (LINE.as_bps() / 2, LINE.as_bps() - rate(&drive));
        assert!(left.abs_diff(gap / 32) <= 1, "{left} of {gap}");
        assert_eq!(drive.cc.target, LINE);
    }

    /// α after n notifications is 1 − (1 − α₀)(1−g)ⁿ, after n timers without one α₀(1−g)ⁿ [DCQCN eq. 1 and 2].
    #[test]
    fn alpha_rises_and_falls_geometrically_and_comes_to_nothing() {
        let mut drive = dcqcn(&[]);
        drive.ack_at(at(0), true);
        assert_eq!(drive.cc.alpha(), ONE);
        let share = |drive: &Drive<Dcqcn>| drive.cc.alpha() as f64 / ONE as f64;
        let kept = |times: i32| (255.0_f64 / 256.0).powi(times);
        drive.ack_at(at(0) + TIMER * 300, false);
        assert!((share(&drive) - kept(300)).abs() < 3e-4, "{} {}", share(&drive), kept(300));
        let (start, low) = (drive.now, share(&drive));
        for notification in 1..=200 {
            drive.ack_at(start + INTERVAL * notification, true);
        }
        let high = 1.0 - (1.0 - low) * kept(200);
        assert!((share(&drive) - high).abs() < 3e-4, "{} {high}", share(&drive));
        drive.ack_at(drive.now + TIMER * 5_000, false);
        assert_eq!(drive.cc.alpha(), 0);
    }

    #[test]
    fn a_notification_takes_half_of_alpha_and_remembers_the_rate_before() {
        let mut drive = dcqcn(&[]);
        drive.cc.rate = Rate::from_gbps(8);
        drive.cc.alpha = ONE / 4;
        drive.ack_at(at(9), true);
        assert_eq!((rate(&drive), drive.cc.target), (7_000_000_000, Rate::from_gbps(8)));
        assert_eq!(drive.cc.alpha(), ONE / 4 * 255 / 256 + ONE / 256);
    }

    #[test]
    fn echoes_within_the_interval_are_one_notification() {
        let mut drive = dcqcn(&[("floor", Value::Rate(Rate::from_bps(1)))]);
        let mut cuts = 0;
        for us in 0..1_000 {
            let before = rate(&drive);
            drive.ack_at(at(us), true);
            cuts += u64::from(rate(&drive) < before);
        }
        assert_eq!(cuts, 1_000 / INTERVAL.as_us());
    }

    #[test]
    fn steps_are_none_then_small_then_growing() {
        let mut drive = dcqcn(&[]);
        let mut step = |bytes, timer| {
            (drive.cc.byte_stage, drive.cc.timer_stage) = (bytes, timer);
            (drive.cc.rate, drive.cc.target) = (Rate::from_gbps(1), Rate::from_gbps(1));
            drive.cc.increase();
            assert_eq!(drive.cc.rate.as_bps() - 1_000_000_000, (drive.cc.target.as_bps() - 1_000_000_000).div_ceil(2));
            (drive.cc.target.as_bps() - 1_000_000_000) / 1_000_000
        };
        assert_eq!([step(5, 5), step(6, 5), step(0, 6), step(6, 6), step(9, 7)], [0, 40, 40, 400, 800]);
    }

    #[test]
    fn bytes_end_cycles_as_time_does() {
        let mut drive = dcqcn(&[("timer", Value::Span(Span::from_secs(1)))]);
        drive.ack_at(at(0), true);
        for packet in 0..19_999 {
            drive.send_at(at(packet), 500);
        }
        assert_eq!((rate(&drive), drive.cc.byte_stage), (LINE.as_bps() / 2, 0));
        drive.send_at(at(20_000), 500);
        assert_eq!((rate(&drive), drive.cc.byte_stage), (LINE.as_bps() / 4 * 3, 1));
    }

    #[test]
    fn a_timeout_is_a_notification_and_leaves_one_packet() {
        let mut drive = dcqcn(&[]);
        let window = drive.window();
        assert_eq!(window, 4 * 40_000_000 / 12_000);
        drive.now = at(10);
        drive.timeout();
        assert_eq!((drive.window(), rate(&drive)), (1, LINE.as_bps() / 2));
        drive.ack_at(at(20), false);
        assert_eq!(drive.window(), window);
        drive.congestion(Cause::Loss);
        assert_eq!((drive.window(), rate(&drive)), (window, LINE.as_bps() / 2), "a loss as such changes nothing");
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Op {
        Ack { ece: bool },
        Send(u64),
        Timeout,
    }

    fn schedule() -> impl Strategy<Value = Vec<(Op, u64)>> {
        let op = prop_oneof![
            4 => any::<bool>().prop_map(|ece| Op::Ack { ece }),
            4 => (40u64..9_000).prop_map(Op::Send),
            1 => Just(Op::Timeout),
        ];
        // From a fraction of a microsecond to a second, each order of magnitude as likely as the next.
        let gap_ns = (2u32..=8, 1u64..=10).prop_map(|(power, digit)| digit * 10u64.pow(power));
        prop::collection::vec((op, gap_ns), 1..200)
    }

    fn apply(drive: &mut Drive<Dcqcn>, now: Time, op: Op) {
        drive.now = now;
        match op {
            Op::Ack { ece } => drive.ack_at(now, ece),
            Op::Send(size) => drive.send_at(now, size),
            Op::Timeout => drive.timeout(),
        }
    }

    proptest! {
        /// Floor and line hold; only notifications lower the rate, by half at most and not twice in an interval; and left alone
        /// it comes back to the line.
        #[test]
        fn the_rate_stays_within_its_bounds(ops in schedule(), cycle in prop::sample::select(&[20_000u64, 10_000_000])) {
            let mut drive = dcqcn(&[("byte-cycle", Value::Bytes(Bytes::new(cycle)))]);
            let (mut now, mut cut_at) = (Time::ZERO, None);
            for (op, gap) in ops {
                now += Span::from_ns(gap);
                drive.cc.catch_up(now);
                let before = rate(&drive);
                apply(&mut drive, now, op);
                let after = rate(&drive);
                prop_assert!((10_000_000..=LINE.as_bps()).contains(&after));
                prop_assert!(drive.cc.alpha() <= ONE && drive.cc.rate <= drive.cc.target);
                if after < before {
                    prop_assert!(op != Op::Ack { ece: false } && !matches!(op, Op::Send(_)), "{:?}", op);
                    prop_assert!(after >= before / 2);
                    prop_assert!(cut_at.is_none_or(|last| now.since(last) >= INTERVAL));
                    cut_at = Some(now);
                }
            }
            // 40 Mbit/s in 55 µs: a thousand cycles from nothing to 40 Gbit/s.
            drive.ack_at(now + TIMER * 1_050, false);
            prop_assert_eq!(rate(&drive), LINE.as_bps());
        }

        /// Whoever looks at each expiry of a clock finds what one finds who looks when something happens.
        #[test]
        fn looking_seldom_changes_nothing(ops in schedule()) {
            let (mut often, mut seldom, mut now) = (dcqcn(&[]), dcqcn(&[]), Time::ZERO);
            for (op, gap) in ops {
                let next = now + Span::from_ns(gap);
                while now < next {
                    now = next.min(now + Span::from_us(40));
                    often.cc.catch_up(now);
                }
                apply(&mut often, now, op);
                apply(&mut seldom, now, op);
                prop_assert_eq!(std::format!("{:?}", often.cc), std::format!("{:?}", seldom.cc));
            }
        }
    }
}
