//! CUBIC: after a cut the window follows a cubic of time that is flat where the last loss happened [RFC 9438].
//!
//! Integers as in Linux `tcp_cubic.c`: windows in packets, time in 1/1024 s, C and β in 1/1024. Two units are finer than
//! the kernel's: elapsed time and RTTs are kept in microseconds, where the kernel rounds them to its tick, so
//! that the look-ahead of a short RTT is neither 0 nor a whole tick.

use super::parts::reno::{Window, leave_to_window};
use super::{Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Owner, Path, Sent, Spec, Value, parameters};
use crate::packet::Seq;
use crate::units::{Span, Time};

/// One, of C and β.
const ONE: u64 = 1 << 10;

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "cubic",
    title: "CUBIC",
    about: "Grows along a cubic function of the time since the last loss, whatever the RTT.",
    source: "RFC 9438",
    ecn: EcnUse::Optional,
    kernel: Kernel::Own("cubic"),
    needs_delivery_rate: false,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: false,
    ordered: &[],
    parameters: parameters! {
        "c": Kind::Real { bits: 10 }, Value::Real(410), (1, 100 * ONE),
            "C, the steepness of the cubic, packets per cubic second; 0.4 [RFC 9438 §5].";
        "beta": Kind::Real { bits: 10 }, Value::Real(717), (1, ONE - 1),
            "β, the part of the window that a cut leaves; 0.7 [RFC 9438 §4.6].";
        "fast-convergence": Kind::Switch, Value::Switch(true),
            "Whether a sender whose window shrinks from loss to loss releases more [RFC 9438 §4.7].";
        "tcp-friendliness": Kind::Switch, Value::Switch(true),
            "Whether the window grows at least as fast as Reno's with the same β would [RFC 9438 §4.3].";
        "hystart": Kind::Switch, Value::Switch(true), "Whether slow start ends at the first sign of a queue [HyStart].";
    },
};

/// The state of one CUBIC sender.
#[derive(Clone, Debug)]
pub struct Cubic {
    c: u64,
    beta: u64,
    fast_convergence: bool,
    tcp_friendliness: bool,
    window: Window,
    /// W_max: the window before the last cut, packets; 0 before the first.
    last_maximum: u64,
    epoch: Option<Epoch>,
    /// Acknowledged packets per packet of growth, and when and for which window it was last computed.
    per_packet: u64,
    computed: Option<(Time, u64)>,
    /// Minimum RTT since the last timeout.
    delay_min: Option<Span>,
    hystart: Option<HyStart>,
}

/// Growth since the first acknowledgement after a cut.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// W_max or, above it, the window at the start: where the cubic is flat, packets.
    origin: u64,
    /// K: when it is flat, 1/1024 s after the start.
    flat_at: u64,
    /// W_est: what Reno's window would be, packets, and the acknowledged packets not yet counted in it.
    reno_window: u64,
    reno_credit: u64,
}

impl Cubic {
    /// A sender in slow start.
    pub fn new(context: &Context<'_>) -> Cubic {
        let settings = &context.settings;
        Cubic {
            c: settings.real("c"),
            beta: settings.real("beta"),
            fast_convergence: settings.switch("fast-convergence"),
            tcp_friendliness: settings.switch("tcp-friendliness"),
            window: Window::new(context.path.initial_window),
            last_maximum: 0,
            epoch: None,
            per_packet: 1,
            computed: None,
            delay_min: None,
            hystart: settings.switch("hystart").then(HyStart::default),
        }
    }

    /// Where a cut leads: β·W, after noting W_max [RFC 9438 §4.6, §4.7].
    fn reduced(&mut self) -> u64 {
        let packets = self.window.packets;
        self.epoch = None;
        self.last_maximum = if self.fast_convergence && packets < self.last_maximum {
            packets * (ONE + self.beta) / (2 * ONE)
        } else {
            packets
        };
        packets * self.beta / ONE
    }

    /// Takes the RTT into account, and leaves slow start if it shows a queue.
    fn observe(&mut self, ack: &Ack) {
        let Some(sample) = ack.rtt else { return };
        // Right after a cut samples still tell of the old queue (Linux `cubictcp_acked`).
        if self.epoch.is_some_and(|epoch| ack.now.since(epoch.start) < Span::from_secs(1)) {
            return;
        }
        let delay_min = self.delay_min.map_or(sample.span, |least| least.min(sample.span));
        self.delay_min = Some(delay_min);
        if let Some(hystart) = &mut self.hystart
            && self.window.in_slow_start()
            && self.window.packets >= HyStart::LOW_WINDOW
            && hystart.finds_queue(ack.now, sample.span, delay_min)
        {
            self.window.threshold = self.window.packets;
        }
    }

    /// One step of growth.
    fn grow(&mut self, ack: &Ack) {
        if !self.window.was_used(ack) {
            return;
        }
        let mut left = ack.acked.get();
        if self.window.in_slow_start() {
            if let Some(hystart) = &mut self.hystart
                && ack.una > hystart.round_end
            {
                hystart.begin_round(ack.now, ack.nxt);
            }
            left = self.window.slow_start(left);
        }
        if left > 0 {
            self.update(ack.now, left);
            self.window.add_after(self.per_packet, left);
        }
    }

    /// Recomputes the pace of growth: at most once per millisecond, and once per 1/32 s while the window stands still.
    fn update(&mut self, now: Time, acked: u64) {
        let packets = self.window.packets;
        let elapsed = self.computed.map(|(at, _)| now.since(at));
        let same_window = self.computed.is_some_and(|(_, then)| then == packets);
        let fresh_epoch = self.epoch.is_none();
        match &mut self.epoch {
            Some(epoch) => epoch.reno_credit += acked,
            None => self.epoch = Some(self.begin_epoch(now, acked)),
        }
        if !fresh_epoch && same_window && elapsed.is_some_and(|span| span <= Span::from_ms(1_000).div(32)) {
            return;
        }
        let Some(mut epoch) = self.epoch else { return };
        if fresh_epoch || elapsed.is_none_or(|span| span >= Span::from_ms(1)) {
            self.computed = Some((now, packets));
            let target = self.target(&epoch, now);
            self.per_packet = if target > packets { packets / (target - packets) } else { 100 * packets };
            // Before the first cut nothing is known of the capacity: 5 % per RTT at least (Linux).
            if self.last_maximum == 0 {
                self.per_packet = self.per_packet.min(20);
            }
        }
        if self.tcp_friendliness {
            epoch.follow_reno(packets, self.beta);
            self.epoch = Some(epoch);
            if epoch.reno_window > packets {
                self.per_packet = self.per_packet.min(packets / (epoch.reno_window - packets));
            }
        }
        // Never faster than one packet for two acknowledged: 1.5 times per RTT (Linux).
        self.per_packet = self.per_packet.max(2);
    }

    fn begin_epoch(&self, now: Time, acked: u64) -> Epoch {
        let packets = self.window.packets;
        let (origin, flat_at) = if self.last_maximum <= packets {
            (packets, 0)
        } else {
            // K = ∛((W_max − W)/C) [RFC 9438 §4.2 eq. 2], in 1/1024 s.
            let cube = (u128::from(self.last_maximum - packets) << 40) / u128::from(self.c);
            (self.last_maximum, cube_root(cube))
        };
        Epoch { start: now, origin, flat_at, reno_window: packets, reno_credit: acked }
    }

    /// W_cubic one minimum RTT ahead: C·(t−K)³ + W_max [RFC 9438 §4.2 eq. 1, §4.4].
    fn target(&self, epoch: &Epoch, now: Time) -> u64 {
        let ahead = self.delay_min.unwrap_or(Span::ZERO);
        let elapsed_us = now.since(epoch.start).as_us().saturating_add(ahead.as_us());
        let t = u128::from(elapsed_us) * 1_024 / 1_000_000;
        // Beyond 2²⁸/1024 s, three days, the cubic stays where it is.
        let offset = t.abs_diff(u128::from(epoch.flat_at)).min(1 << 28);
        let delta = u64::try_from((u128::from(self.c) * offset * offset * offset) >> 40).unwrap_or(u64::MAX);
        if t < u128::from(epoch.flat_at) {
            epoch.origin.saturating_sub(delta)
        } else {
            epoch.origin.saturating_add(delta)
        }
    }
}

impl Epoch {
    /// Advances W_est by one packet for each `packets`·(1+β)/(3·(1−β)) acknowledged [RFC 9438 §4.3 eq. 4]; the factor
    /// in 1/8, rounded down, is 15 for β = 0.7 (Linux `beta_scale`).
    fn follow_reno(&mut self, packets: u64, beta: u64) {
        let scale = 8 * (ONE + beta) / 3 / (ONE - beta);
        let per_packet = ((packets * scale) >> 3).max(1);
        if self.reno_credit > per_packet {
            // The last increment leaves at least one packet of credit, as the kernel's loop does.
            let grown = (self.reno_credit - 1) / per_packet;
            self.reno_credit -= grown * per_packet;
            self.reno_window += grown;
        }
    }
}

/// ∛x rounded down, by Newton's method from above.
fn cube_root(x: u128) -> u64 {
    if x == 0 {
        return 0;
    }
    let mut root = 1_u128 << (128 - x.leading_zeros()).div_ceil(3);
    loop {
        let next = (2 * root + x / (root * root)) / 3;
        if next >= root {
            // The cube root of a u128 has at most 43 bits.
            return u64::try_from(root).unwrap_or(u64::MAX);
        }
        root = next;
    }
}

/// Hybrid slow start [HyStart; Linux `tcp_cubic.c`]: leaves slow start when a train of acknowledgements lasts half an
/// RTT, or when the RTT grows.
#[derive(Clone, Copy, Debug, Default)]
struct HyStart {
    round_end: Seq,
    round_start: Time,
    last_ack: Time,
    samples: u8,
    least: Span,
}

impl HyStart {
    /// Below this window slow start is left alone.
    const LOW_WINDOW: u64 = 16;
    /// A longer gap ends a train of acknowledgements.
    const TRAIN_GAP: Span = Span::from_ms(2);
    /// Samples per round that the delay test waits for.
    const SAMPLES: u8 = 8;

    fn begin_round(&mut self, now: Time, nxt: Seq) {
        *self = HyStart { round_end: nxt, round_start: now, last_ack: now, samples: 0, least: Span::ZERO };
    }

    fn finds_queue(&mut self, now: Time, rtt: Span, delay_min: Span) -> bool {
        if now.since(self.last_ack) <= HyStart::TRAIN_GAP {
            self.last_ack = now;
            if now.since(self.round_start) > delay_min.div(2) {
                return true;
            }
        }
        if self.samples < HyStart::SAMPLES {
            self.least = if self.samples == 0 { rtt } else { self.least.min(rtt) };
            self.samples += 1;
            return false;
        }
        self.least > delay_min + delay_min.div(8).clamp(Span::from_ms(4), Span::from_ms(16))
    }
}

impl CongestionControl for Cubic {
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
        self.observe(ack);
        if ack.may_grow() {
            self.grow(ack);
        }
    }

    /// ECE cuts as a loss does [RFC 9438 §4.6].
    fn on_congestion(&mut self, _now: Time, _cause: Cause, _path: &Path) {
        let reduced = self.reduced();
        self.window.cut(reduced);
    }

    /// Everything learnt is forgotten but the threshold (Linux `bictcp_reset`).
    fn on_timeout(&mut self, now: Time, repeated: bool, path: &Path) {
        let reduced = if repeated { 0 } else { self.reduced() };
        self.window.collapse(reduced, repeated);
        self.last_maximum = 0;
        self.computed = None;
        self.per_packet = 1;
        self.delay_min = None;
        if let Some(hystart) = &mut self.hystart {
            hystart.begin_round(now, path.nxt);
        }
    }

    /// Time without data does not count: the epoch moves with it [RFC 9438 §4.2 and Linux `cubictcp_cwnd_event`].
    fn on_sent(&mut self, now: Time, sent: &Sent, _path: &Path) {
        if let (Some(epoch), Some(idle)) = (&mut self.epoch, sent.idle) {
            epoch.start = (epoch.start + idle).min(now);
        }
    }

    leave_to_window!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Phase;
    use crate::cc::harness::{Drive, build, path};
    use crate::units::Packets;
    use proptest::prelude::*;

    fn cubic(changes: &[(&str, Value)]) -> Drive<Cubic> {
        let path = path();
        Drive::new(build(&SPEC, Cubic::new, &path, changes), path)
    }

    const NO_HYSTART: (&str, Value) = ("hystart", Value::Switch(false));

    /// Just after a cut from `maximum` packets.
    fn cut_from(maximum: u64, changes: &[(&str, Value)]) -> Drive<Cubic> {
        let mut drive = cubic(changes);
        drive.cc.window.packets = maximum;
        drive.congestion(Cause::Loss);
        drive.path.nxt = drive.path.una;
        drive.fill();
        drive
    }

    /// The window of the RFC, in packets and seconds.
    #[allow(clippy::float_arithmetic, reason = "the equation, as a reference")]
    fn rfc_9438(maximum: f64, seconds: f64) -> f64 {
        let k = (maximum * (1.0 - 0.7) / 0.4).cbrt();
        0.4 * (seconds - k).powi(3) + maximum
    }

    #[test]
    #[allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "compared with the equation")]
    fn the_window_follows_the_rfc_within_two_percent_and_two_packets() {
        let rtt = Span::from_ms(20);
        for maximum in [200_u64, 1_000, 4_000] {
            let mut drive = cut_from(maximum, &[NO_HYSTART, ("tcp-friendliness", Value::Switch(false))]);
            let start = drive.now;
            while drive.now.since(start) < Span::from_secs(20) {
                drive.round(rtt, false);
                let seconds = drive.now.since(start).as_us() as f64 / 1e6;
                let expected = rfc_9438(maximum as f64, seconds);
                let window = drive.window() as f64;
                // The target lies one RTT ahead and the window trails it by less than one; the integer count of
                // acknowledgements per packet rounds to the steep side.
                let slack = 2.0 + 0.02 * expected;
                assert!((window - expected).abs() < slack, "{maximum} at {seconds}: {window} not {expected}");
                if window > 3.0 * maximum as f64 {
                    break;
                }
            }
        }
    }

    #[test]
    #[allow(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "compared with the equation")]
    fn on_short_paths_it_grows_as_reno_would() {
        let rtt = Span::from_ms(10);
        let mut drive = cut_from(40, &[NO_HYSTART]);
        let before = drive.window() as f64;
        for _ in 0..60 {
            drive.round(rtt, false);
        }
        // 3·(1−β)/(1+β) = 0.529 packets per RTT [RFC 9438 §4.3]; 8/15 in the kernel's integers. The pace is
        // recomputed every 1/32 s, so the window may trail by three rounds' growth and catch up.
        let grown = drive.window() as f64 - before;
        assert!((grown - 60.0 * 8.0 / 15.0).abs() < 4.0, "{grown}");
    }

    #[test]
    fn a_shrinking_maximum_is_left_earlier() {
        let mut drive = cut_from(1_000, &[]);
        assert_eq!((drive.window(), drive.cc.last_maximum), (700, 1_000));
        drive.congestion(Cause::Ecn);
        assert_eq!((drive.window(), drive.cc.last_maximum), (490, 700 * (1_024 + 717) / 2_048));
        let mut slow = cut_from(1_000, &[("fast-convergence", Value::Switch(false))]);
        slow.congestion(Cause::Loss);
        assert_eq!(slow.cc.last_maximum, 700);
    }

    #[test]
    fn growth_is_at_most_half_a_window_per_round() {
        let mut drive = cut_from(100, &[NO_HYSTART]);
        drive.round(Span::from_ms(10), false);
        drive.now += Span::from_secs(3_600);
        let before = drive.window();
        drive.round(Span::from_ms(10), false);
        assert!(drive.window() > before && drive.window() <= before + before.div_ceil(2) + 1);
    }

    #[test]
    fn idle_time_grants_no_window() {
        let mut drives = [cut_from(1_000, &[NO_HYSTART]), cut_from(1_000, &[NO_HYSTART])];
        for drive in &mut drives {
            drive.round(Span::from_ms(10), false);
        }
        let idle = Span::from_secs(60);
        drives[1].now += idle;
        let (now, path) = (drives[1].now, drives[1].path);
        drives[1].cc.on_sent(now, &Sent { size: path.packet, idle: Some(idle), starts: true }, &path);
        for drive in &mut drives {
            drive.round(Span::from_ms(10), false);
        }
        assert_eq!(drives[0].window(), drives[1].window());
    }

    #[test]
    fn a_timeout_forgets_all_but_the_threshold() {
        let mut drive = cut_from(1_000, &[]);
        drive.timeout();
        assert_eq!((drive.window(), drive.cc.slow_start_threshold()), (1, Packets::new(490)));
        assert_eq!((drive.cc.last_maximum, drive.cc.delay_min), (0, None));
        drive.phase = Phase::Loss;
        drive.ack(1, None, false);
        assert_eq!(drive.window(), 2);
    }

    #[test]
    fn hystart_ends_slow_start_when_the_round_trip_grows() {
        let mut drive = cubic(&[]);
        let base = Span::from_ms(40);
        // Gaps of 3 ms break every train.
        let step = |drive: &mut Drive<Cubic>, rtt| {
            drive.now += Span::from_ms(3);
            drive.ack(1, Some(rtt), false);
        };
        while drive.window() < 40 {
            step(&mut drive, base);
        }
        assert!(drive.cc.window.in_slow_start());
        for _ in 0..200 {
            step(&mut drive, base + Span::from_us(4_900));
        }
        assert!(drive.cc.window.in_slow_start(), "less than max(4 ms, 1/8) of delay is noise");
        for _ in 0..400 {
            step(&mut drive, base + Span::from_us(5_100));
        }
        assert!(!drive.cc.window.in_slow_start());
    }

    #[test]
    fn hystart_ends_slow_start_at_half_a_round_trip_of_acknowledgements() {
        let mut drive = cubic(&[]);
        let rtt = Span::from_ms(10);
        let ended_at = (0..100_000).find_map(|_| {
            drive.now += Span::from_us(100);
            drive.ack(1, Some(rtt), false);
            (!drive.cc.window.in_slow_start()).then_some(drive.window())
        });
        // 51 acknowledgements at 100 µs last more than 5 ms. A round of 40 has fewer, one of 80 has them.
        assert_eq!(ended_at, Some(80 + 51));
        let mut without = cubic(&[NO_HYSTART]);
        for _ in 0..10_000 {
            without.now += Span::from_us(100);
            without.ack(1, Some(rtt), false);
        }
        assert!(without.cc.window.in_slow_start());
    }

    #[test]
    fn the_integers_hold_400_gigabits_times_one_second() {
        let mut drive = cut_from(33_333_333, &[NO_HYSTART]);
        let (start, cut) = (drive.now, drive.window());
        assert_eq!(cut, 33_333_333 * 717 / 1_024);
        for _ in 0..400 {
            drive.now += Span::from_secs(1);
            drive.ack(20_000_000, Some(Span::from_secs(1)), false);
        }
        // K is ∛(10⁷/0.4), 292 s; 108 s later the cubic has passed W_max by half a million.
        assert!(drive.now.since(start) == Span::from_secs(400));
        assert!((33_600_000..=34_000_000).contains(&drive.window()), "{}", drive.window());
    }

    proptest! {
        #[test]
        fn cube_roots_are_exact(x in any::<u128>(), shift in 0u32..128) {
            let x = x >> shift;
            let root = u128::from(cube_root(x));
            prop_assert!(root * root * root <= x);
            let above = (root + 1).checked_pow(3);
            prop_assert!(above.is_none_or(|cube| cube > x));
        }
    }
}
