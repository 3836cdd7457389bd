//! Uno: flows inside a datacenter and between datacenters react in steps of one length, the RTT inside [Uno §4.1].
//!
//! Without marks the window grows by a share α of the bandwidth-delay product (BDP) per RTT. Where packets of an epoch are
//! marked, it shrinks once at the epoch's end, by the smoothed fraction E of marked packets:
//!
//! ```text
//! W ← W·(1 − s·E·4K/(K + BDP)),  s = 0.3 if the RTT shows no queue, else 1
//! ```
//!
//! An epoch is one RTT inside the datacenter, τ, for flows of every RTT, and K is a share of the BDP of that RTT. So over one of
//! its own RTTs each flow shrinks by the same share, and with equal marking probability rates are equal. Where the RTT shows no queue, a phantom
//! queue marked ([`phantom`](crate::queue::aqm)), before the port had one.
//!
//! *Quick adapt*: once per RTT, where less than a share β of the window was delivered, the window becomes what was.
//!
//! Uno's erasure coding and load balancing are not here: losses are the transport's.

use super::parts::fractional::{Fractional, ONE, bandwidth_delay, ratio};
use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Limit, Owner, Path, Phase, RttSample, Sent, Settings,
    Spec, Value, parameters,
};
use crate::units::{Packets, Rate, Span, Time};

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "uno",
    title: "Uno",
    about: "Reacts to marks once per RTT of the datacenter, whatever its own RTT; gently where the RTT shows no queue.",
    source: "Uno §4.1",
    ecn: EcnUse::Exact,
    kernel: Kernel::None,
    needs_delivery_rate: false,
    needs_every_ack: true,
    needs_telemetry: false,
    draws: false,
    ordered: &[],
    parameters: parameters! {
        "intra-rtt": Kind::Span, Value::Span(Span::from_us(14)), (Span::from_us(1).as_ps(), Span::from_secs(1).as_ps()),
            "τ: the RTT inside a datacenter, after which the window may shrink again; 14 µs [Uno Table 2].";
        "alpha": Kind::Real { bits: 20 }, Value::Real(1_049), (1, ONE),
            "α: growth per RTT as a share of the bandwidth-delay product; 0.001 [Uno Table 2].";
        "k": Kind::Real { bits: 20 }, Value::Real(149_797), (1, ONE),
            "K as a share of the bandwidth-delay product of `intra-rtt`; a larger K means larger reductions, up to one half; 1/7 \
            [Uno Table 2].";
        "gain": Kind::Real { bits: 20 }, Value::Real(681_574), (ONE / 1_024, ONE),
            "Weight of the latest epoch in the fraction of marked packets; 0.65, as the paper's simulations have it.";
        "phantom-scale": Kind::Real { bits: 20 }, Value::Real(314_573), (0, ONE),
            "The share of a reduction that is made where the RTT shows no queue; 0.3 [Uno Algorithm 1].";
        "slack": Kind::Real { bits: 20 }, Value::Real(57_672), (0, ONE),
            "An RTT that exceeds the minimum by more than this share of it shows a queue; `beta` is checked once in that time; \
            0.055, as the paper's simulations have it.";
        "beta": Kind::Real { bits: 20 }, Value::Real(ONE / 2), (0, ONE * 9 / 10),
            "β: where less than this share of the window is delivered in an RTT, the window becomes what was; 0.5, 0 for never \
            [Uno Table 2].";
        "first-window": Kind::Real { bits: 20 }, Value::Real(ONE), (1, ONE),
            "The first window as a share of the bandwidth-delay product; 1, as the paper's simulations have it.";
    },
};

/// The largest reduction at once: one half, which `k` = 1/7 gives where the RTT is `intra-rtt`.
const MAX_REDUCTION: u64 = ONE / 2;

/// What does not change in a connection's life. Shares in 2^-20.
#[derive(Clone, Copy, Debug)]
struct Constants {
    intra_rtt: Span,
    alpha: u64,
    k: u64,
    gain: u64,
    phantom_scale: u64,
    slack: u64,
    beta: u64,
    first_window: u64,
}

impl Constants {
    fn new(settings: &Settings<'_>) -> Constants {
        Constants {
            intra_rtt: settings.span("intra-rtt"),
            alpha: settings.real("alpha"),
            k: settings.real("k"),
            gain: settings.real("gain"),
            phantom_scale: settings.real("phantom-scale"),
            slack: settings.real("slack"),
            beta: settings.real("beta"),
            first_window: settings.real("first-window"),
        }
    }
}

/// The state of one Uno sender.
#[derive(Clone, Debug)]
pub struct Uno {
    constants: Constants,
    window: Fractional,
    /// The window was set to its first share of the bandwidth-delay product, or something was lost before.
    has_begun: bool,
    /// The least RTT of a data packet, whose time on the lines is longer than that of the handshake's.
    least_rtt: Option<Span>,
    /// E, 2^-20.
    fraction: u64,
    epoch: Epoch,
    adapt: QuickAdapt,
    pacing: Option<Rate>,
}

/// Between two reductions. Times are of departures.
#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    /// Packets that left before do not count: they tell of another window.
    counts_from: Time,
    /// The acknowledgement of a packet that left now or later ends it.
    ends: Time,
    acked: u64,
    marked: u64,
}

/// What was delivered in this RTT.
#[derive(Clone, Copy, Debug, Default)]
struct QuickAdapt {
    /// The acknowledgement of a packet that left now or later begins the first period.
    begins: Time,
    /// The end of the period, once it has begun.
    ends: Option<Time>,
    /// Packets in flight when it began: they should have been delivered by its end.
    in_flight: u64,
    delivered: u64,
}

impl Uno {
    /// A sender that knows no RTT yet.
    pub fn new(context: &Context<'_>) -> Uno {
        Uno {
            constants: Constants::new(&context.settings),
            window: Fractional::new(context.path.initial_window),
            has_begun: false,
            least_rtt: None,
            fraction: 0,
            epoch: Epoch::default(),
            adapt: QuickAdapt::default(),
            pacing: None,
        }
    }

    /// The RTT of the empty path. As the transport's minimum it forgets a shorter path; it is not less than that.
    fn base_rtt(&self, path: &Path) -> Option<Span> {
        let known = path.min_rtt.filter(|rtt| !rtt.is_zero())?;
        Some(self.least_rtt.map_or(known, |least| least.max(known)))
    }

    /// The window becomes its first share of the bandwidth-delay product as soon as there is an RTT.
    fn begin(&mut self, now: Time, path: &Path) {
        let Some(base) = self.base_rtt(path).filter(|_| !self.has_begun) else { return };
        self.has_begun = true;
        let first = share(bandwidth_delay(path, base), self.constants.first_window).max(ONE);
        self.window = Fractional::new(Packets::new(first.div_ceil(ONE)));
        self.window.limit(first);
        self.restart(now);
        self.pace(path);
    }

    /// What left until now says nothing of what follows.
    fn restart(&mut self, now: Time) {
        self.epoch = Epoch { counts_from: now, ends: now + self.constants.intra_rtt, ..Epoch::default() };
        self.adapt = QuickAdapt { begins: now, ..QuickAdapt::default() };
    }

    /// W ← W + α·BDP/W for each packet that is not marked, up to the bandwidth-delay product [Uno §4.1.1].
    fn grow(&mut self, ack: &Ack, most: u64) {
        let may_grow = ack.in_order && matches!(ack.phase, Phase::Open | Phase::Loss);
        if may_grow && matches!(ack.limited_by, Limit::Window | Limit::Pacing) {
            let unmarked = ack.acked.get().saturating_sub(ack.marked.get());
            // No faster than slow start.
            self.window.grow(unmarked, share(most, self.constants.alpha).clamp(1, self.window.get().max(1)));
        }
        self.window.limit(most.max(ONE));
    }

    /// The epoch ends with the first packet that left at its end or later [Uno §4.1.1].
    fn end_epoch(&mut self, sent_at: Time, rtt: Span, base: Span) {
        let Constants { intra_rtt, gain, phantom_scale, slack, .. } = self.constants;
        let Epoch { counts_from, ends, acked, marked } = self.epoch;
        let latest = marked.min(acked) * ONE / acked.max(1);
        self.fraction = (share(self.fraction, ONE - gain) + share(latest, gain)).min(ONE);
        if marked > 0 {
            let whole = share(self.fraction, self.reduction(base)).min(MAX_REDUCTION);
            let has_queue = rtt.as_ps() > base.as_ps().saturating_add(share(base.as_ps(), slack));
            let taken = if has_queue { whole } else { share(whole, phantom_scale) };
            self.window.forget();
            self.window.scale(ONE - taken, ONE);
        }
        let next = ends + intra_rtt;
        let ends = if next > sent_at { next } else { sent_at + intra_rtt };
        self.epoch = Epoch { counts_from, ends, acked: 0, marked: 0 };
    }

    /// 4K/(K + BDP), 2^-20: both are the line's rate times a time.
    fn reduction(&self, base: Span) -> u64 {
        let k = Span::from_ps(share(self.constants.intra_rtt.as_ps(), self.constants.k));
        ratio(k * 4, k + base, 4 * ONE)
    }

    /// Once per RTT; whether the window was set to what was delivered [Uno §4.1.2]. `sent_at` is of the packet acknowledged, if it
    /// was sent once.
    fn adapt(&mut self, ack: &Ack, sent_at: Option<Time>, base: Span) -> bool {
        let period = base + Span::from_ps(share(base.as_ps(), self.constants.slack));
        let next = QuickAdapt {
            begins: self.adapt.begins,
            ends: Some(ack.now + period),
            in_flight: ack.prior_in_flight.get(),
            delivered: 0,
        };
        self.adapt.delivered += ack.acked.get();
        let QuickAdapt { begins, ends, in_flight, delivered } = self.adapt;
        match ends {
            None if sent_at.is_some_and(|sent_at| sent_at >= begins) => self.adapt = next,
            Some(end) if ack.now >= end => {
                // What an application did not send cannot be delivered.
                let expected = self.window.get().min(in_flight.saturating_mul(ONE));
                let delivered = delivered.saturating_mul(ONE);
                if delivered < share(expected, self.constants.beta) {
                    self.window.forget();
                    self.window.limit(delivered.max(ONE));
                    self.restart(ack.now);
                    return true;
                }
                self.adapt = next;
            }
            _ => {}
        }
        false
    }

    /// The window per RTT of the empty path.
    fn pace(&mut self, path: &Path) {
        let Some(base) = self.base_rtt(path) else { return };
        self.pacing = Some(Rate::of(path.packet, self.window.spacing(base)).max(Rate::from_bps(1)));
    }

    fn halve(&mut self, now: Time) {
        self.has_begun = true;
        self.window.forget();
        self.window.remember();
        self.window.scale(ONE / 2, ONE);
        self.restart(now);
    }
}

/// A share (2^-20) of something.
fn share(of: u64, part: u64) -> u64 {
    let share = u128::from(of) * u128::from(part) / u128::from(ONE);
    u64::try_from(share).unwrap_or(u64::MAX)
}

impl CongestionControl for Uno {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.window.end_probing();
        self.begin(ack.now, path);
        if let Some(sample) = ack.rtt {
            self.least_rtt = Some(self.least_rtt.map_or(sample.span, |least| least.min(sample.span)));
        }
        let Some(base) = self.base_rtt(path) else { return };
        self.grow(ack, bandwidth_delay(path, base));
        let sent_at = |sample: RttSample| Time::from_ps(ack.now.as_ps().saturating_sub(sample.span.as_ps()));
        if !self.adapt(ack, ack.rtt.map(sent_at), base)
            && let Some(sample) = ack.rtt.filter(|sample| sent_at(*sample) >= self.epoch.counts_from)
        {
            self.epoch.acked += ack.acked.get();
            self.epoch.marked += ack.marked.get();
            if sent_at(sample) >= self.epoch.ends {
                self.end_epoch(sent_at(sample), sample.span, base);
            }
        }
        self.pace(path);
    }

    /// Marks have their answer at the end of an epoch; a loss halves the window.
    fn on_congestion(&mut self, now: Time, cause: Cause, path: &Path) {
        if cause == Cause::Loss {
            self.halve(now);
            self.pace(path);
        }
    }

    fn on_timeout(&mut self, now: Time, repeated: bool, path: &Path) {
        if repeated {
            self.restart(now);
        } else {
            self.halve(now);
        }
        self.window.probe();
        self.pace(path);
    }

    fn on_sent(&mut self, now: Time, sent: &Sent, path: &Path) {
        if sent.idle.is_some() {
            self.restart(now);
        }
        self.begin(now, path);
    }

    fn on_undo(&mut self) {
        self.window.undo();
    }

    fn window(&self) -> Packets {
        self.window.packets()
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }

    /// Uno's senders are paced packet by packet.
    fn burst(&self) -> Option<Packets> {
        Some(Packets::new(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::harness::{Drive, build, path};
    use crate::units::Bytes;

    /// A sender on an empty path of this RTT, of a line of 1 Gbit/s, with a window of so many packets.
    fn uno(base: Span, window: u64, changes: &[(&str, Value)]) -> Drive<Uno> {
        let path = Path { min_rtt: Some(base), srtt: Some(base), ..path() };
        let mut drive = Drive::new(build(&SPEC, Uno::new, &path, changes), path);
        drive.now = Time::ZERO + Span::from_secs(1);
        drive.cc.has_begun = true;
        drive.cc.least_rtt = Some(base);
        drive.cc.window = Fractional::new(Packets::new(window));
        drive.fill();
        drive
    }

    /// One after the other, `apart`, all of the same RTT.
    fn acks(drive: &mut Drive<Uno>, count: u64, apart: Span, rtt: Option<Span>, marked: bool) {
        for _ in 0..count {
            drive.now += apart;
            drive.ack(1, rtt, marked);
        }
    }

    const NO_ADAPT: (&str, Value) = ("beta", Value::Real(0));
    const SENT: Sent = Sent { size: Bytes::new(1_500), idle: None, starts: false };

    #[test]
    fn the_first_window_is_the_bandwidth_delay_product_once_there_is_an_rtt() {
        let mut path = path();
        let mut cc = build(&SPEC, Uno::new, &path, &[]);
        cc.on_sent(Time::ZERO, &SENT, &path);
        assert_eq!((cc.window().get(), cc.pacing()), (10, None));
        path.min_rtt = Some(Span::from_us(1_200));
        let mut lossy = cc.clone();
        cc.on_sent(Time::ZERO, &SENT, &path);
        // 1 Gbit/s for 1.2 ms are 150,000 bytes.
        assert_eq!((cc.window().get(), cc.pacing()), (100, Some(Rate::from_gbps(1))));
        lossy.on_congestion(Time::ZERO, Cause::Loss, &path);
        lossy.on_sent(Time::ZERO, &SENT, &path);
        assert_eq!(lossy.window().get(), 5, "who has lost something does not begin any more");
    }

    #[test]
    fn without_marks_the_window_grows_by_a_thousandth_of_the_product_per_rtt_and_not_beyond_it() {
        let base = Span::from_ms(12);
        let mut drive = uno(base, 500, &[]);
        (0..20).for_each(|_| drive.round(base, false));
        // 1000 packets are the product: 20 rounds add 20.
        assert!(drive.cc.window.get().abs_diff(520 * ONE) < ONE / 2, "{}", drive.cc.window.get());
        let mut full = uno(base, 1_000, &[]);
        (0..20).for_each(|_| full.round(base, false));
        assert_eq!(full.window(), 1_000);
        // A tenth of the product would be a hundred packets for the one.
        let mut small = uno(base, 1, &[("alpha", Value::Real(ONE / 10))]);
        small.ack(1, Some(base), false);
        assert_eq!(small.window(), 2);
    }

    /// The handshake's packets are short: the RTT of data on the same empty path is longer.
    #[test]
    fn the_rtt_of_the_empty_path_is_that_of_data() {
        let (handshake, data) = (Span::from_us(100), Span::from_us(120));
        let path = Path { min_rtt: Some(handshake), srtt: Some(handshake), ..path() };
        let mut drive = Drive::new(build(&SPEC, Uno::new, &path, &[NO_ADAPT, ("alpha", Value::Real(ONE))]), path);
        drive.cc.on_sent(Time::ZERO, &SENT, &path);
        assert_eq!(drive.window(), 8);
        acks(&mut drive, 40, data, Some(data), false);
        assert_eq!(drive.cc.base_rtt(&drive.path), Some(data));
        assert_eq!(drive.window(), 10, "the product of 120 µs");
        // The minimum has forgotten the shorter path.
        drive.path.min_rtt = Some(data * 2);
        assert_eq!(drive.cc.base_rtt(&drive.path), Some(data * 2));
    }

    /// Growth (1−p)·α·BDP per RTT against p·4K/(K + BDP) in each of RTT/τ epochs: the rate is that of every RTT well above τ. Where
    /// marks are rarer than epochs, a `gain` below one makes reductions as much smaller.
    #[test]
    fn with_equal_marking_probability_rates_are_equal_and_those_of_the_closed_form() {
        let (tau, every) = (Span::from_us(240), 200_u64);
        let with_queue = |base: Span| base.div(10) * 11;
        let share_of_line = |base: Span| {
            let product = base.as_ps() / Span::from_us(12).as_ps();
            let changes = [("intra-rtt", Value::Span(tau)), ("gain", Value::Real(ONE)), NO_ADAPT];
            let mut drive = uno(base, product / 10, &changes);
            let (mut sum, mut count, mut sent) = (0, 0, 0);
            for round in 0..6_000 {
                let outstanding = drive.path.in_flight.get();
                for _ in 0..outstanding {
                    drive.now += with_queue(base).div(outstanding);
                    sent += 1;
                    drive.ack(1, Some(with_queue(base)), sent % every == 0);
                }
                if round >= 3_000 {
                    sum += drive.cc.window.get();
                    count += 1;
                }
            }
            (sum / count) as f64 / (product * ONE) as f64
        };
        let bases = [Span::from_ms(2), Span::from_ms(8)];
        let found = bases.map(share_of_line);
        for (base, found) in bases.into_iter().zip(found) {
            let (p, k) = (1.0 / every as f64, 1.0 / 7.0 * tau.as_ps() as f64 / base.as_ps() as f64);
            let epochs = with_queue(base).as_ps() as f64 / tau.as_ps() as f64;
            let expected = (1.0 - p) * 0.001 / (epochs * p * 4.0 * k / (1.0 + k));
            assert!((found / expected - 1.0).abs() < 0.1, "{base}: {found} and {expected}");
        }
        assert!((found[0] / found[1] - 1.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn where_the_rtt_shows_no_queue_three_tenths_of_the_reduction_are_made() {
        let base = Span::from_us(1_200);
        // E is 1, and K a seventh of the product of 100 packets: half of the window.
        let taken = |rtt: Span, changes: &[(&str, Value)]| {
            let changes = [&[("intra-rtt", Value::Span(base)), NO_ADAPT], changes].concat();
            let mut drive = uno(base, 80, &changes);
            drive.ack(1, Some(rtt), true);
            (80 * ONE - drive.cc.window.get()) as f64 / (80 * ONE) as f64
        };
        let (longer, at_once) = (base.div(10) * 11, [("gain", Value::Real(ONE))]);
        assert!((taken(longer, &at_once) - 0.5).abs() < 1e-3);
        assert!((taken(base, &at_once) - 0.15).abs() < 1e-3);
        // The latest epoch has a weight of 0.65 among those before, which had no marks.
        assert!((taken(longer, &[]) - 0.325).abs() < 1e-3);
        // 4K/(K + BDP) would be 2 with a K of the whole product: no more than half.
        assert!((taken(longer, &[at_once[0], ("k", Value::Real(ONE))]) - 0.5).abs() < 1e-3);
    }

    #[test]
    fn marks_reduce_once_in_an_epoch_of_what_was_sent() {
        let (base, ms) = (Span::from_ms(12), Span::from_ms(1));
        let mut drive = uno(base, 1_000, &[("intra-rtt", Value::Span(ms)), NO_ADAPT]);
        drive.ack(1, Some(base * 2), true);
        let first = drive.cc.window.get();
        assert!(first < 1_000 * ONE);
        acks(&mut drive, 1, Span::from_us(900), Some(base * 2), true);
        assert_eq!(drive.cc.window.get(), first);
        // Which transmission a retransmitted packet's acknowledgement is of is not known.
        acks(&mut drive, 5, ms, None, true);
        assert_eq!(drive.cc.window.get(), first);
        acks(&mut drive, 1, ms, Some(base * 2), true);
        assert!(drive.cc.window.get() < first);
    }

    #[test]
    fn where_little_is_delivered_the_window_becomes_that_and_marks_of_before_do_not_count() {
        let (base, apart) = (Span::from_ms(12), Span::from_us(100));
        let mut drive = uno(base, 1_000, &[("alpha", Value::Real(1))]);
        // An acknowledgement each 100 µs: 127 in 12.66 ms.
        acks(&mut drive, 130, apart, Some(base * 4), false);
        assert_eq!(drive.window(), 127);
        // What is acknowledged in the next 48 ms left before.
        acks(&mut drive, 470, apart, Some(base * 4), true);
        assert_eq!(drive.window(), 127);
        acks(&mut drive, 30, apart, Some(base * 4), true);
        assert!(drive.window() < 127);
    }

    #[test]
    fn a_pause_of_the_application_is_no_congestion() {
        let (base, apart) = (Span::from_ms(12), Span::from_us(12));
        // Of a full window one packet a millisecond is delivered.
        let mut full = uno(base, 1_000, &[]);
        acks(&mut full, 40, Span::from_ms(1), Some(base * 2), false);
        assert!(full.window() < 20, "{}", full.window());
        // The same where no more than 15 packets were out.
        let mut paused = uno(base, 1_000, &[]);
        for _ in 0..40 {
            paused.path.in_flight = Packets::new(15);
            acks(&mut paused, 1, Span::from_ms(1), Some(base * 2), false);
        }
        assert_eq!(paused.window(), 1_000);
        // All was delivered, then came a pause: the first packets after it are not judged by the time that passed.
        let mut idle = uno(base, 1_000, &[]);
        acks(&mut idle, 1_100, apart, Some(base), false);
        idle.now += Span::from_secs(1);
        idle.cc.on_sent(idle.now, &Sent { idle: Some(Span::from_secs(1)), starts: true, ..SENT }, &idle.path);
        acks(&mut idle, 2, base, Some(base), false);
        assert_eq!(idle.window(), 1_000);
    }

    #[test]
    fn a_loss_halves_and_an_undo_restores() {
        let (base, apart) = (Span::from_ms(12), Span::from_us(12));
        let mut drive = uno(base, 800, &[("alpha", Value::Real(1))]);
        acks(&mut drive, 1_100, apart, Some(base), false);
        drive.congestion(Cause::Ecn);
        assert_eq!(drive.window(), 800);
        drive.congestion(Cause::Loss);
        assert_eq!(drive.window(), 400);
        drive.cc.on_undo();
        assert_eq!(drive.window(), 800);
        drive.timeout();
        assert_eq!(drive.window(), 1);
        // Then nothing for long, what was lost again, and something new: half of the window, not what was delivered meanwhile.
        drive.now += Span::from_secs(1);
        acks(&mut drive, 100, apart, None, false);
        for _ in 0..3 {
            drive.path.in_flight = Packets::new(1);
            acks(&mut drive, 1, base, Some(base), false);
        }
        assert_eq!(drive.window(), 400);
    }
}
