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
//! its own RTTs each flow shrinks by the same share, and at equal marks rates are equal. Where the RTT shows no queue, a phantom
//! queue marked ([`phantom`](crate::queue::aqm)), before the port had one.
//!
//! *Quick adapt*: once per RTT, where less than a share β of the window was delivered, the window becomes what was.
//!
//! Uno's erasure coding and load balancing are not here: losses are the transport's.

use super::parts::fractional::{Fractional, ONE, ratio};
use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Limit, Owner, Path, Phase, Sent, Settings, Spec,
    Value, parameters,
};
use crate::units::{Bytes, Packets, Rate, Span, Time};

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "uno",
    title: "Uno",
    about: "Reacts to marks once per RTT of the datacenter, whatever its own RTT; gently where only a phantom queue marks.",
    source: "Uno §4.1",
    ecn: EcnUse::Exact,
    kernel: Kernel::None,
    needs_delivery_rate: false,
    needs_every_ack: true,
    draws: false,
    ordered: &[],
    parameters: parameters! {
        "intra-rtt": Kind::Span, Value::Span(Span::from_us(14)), (Span::from_us(1).as_ps(), Span::from_secs(1).as_ps()),
            "τ: the RTT inside a datacenter, after which the window may shrink again; 14 µs [Uno Table 2].";
        "alpha": Kind::Real { bits: 20 }, Value::Real(1_049), (1, ONE),
            "α: growth per RTT as a share of the bandwidth-delay product; 0.001 [Uno Table 2].";
        "k": Kind::Real { bits: 20 }, Value::Real(149_797), (1, 16 * ONE),
            "K as a share of the bandwidth-delay product of `intra-rtt`: marks take more where it is larger; 1/7 [Uno Table 2].";
        "gain": Kind::Real { bits: 20 }, Value::Real(681_574), (1, ONE),
            "Weight of the latest epoch in the fraction of marked packets; 0.65, as the paper's simulations have it.";
        "phantom-scale": Kind::Real { bits: 20 }, Value::Real(314_573), (0, ONE),
            "The share of a reduction that is made where the RTT shows no queue; 0.3 [Uno Algorithm 1].";
        "slack": Kind::Real { bits: 20 }, Value::Real(57_672), (0, ONE),
            "By how much of the minimum RTT an RTT is longer that shows a queue; 0.055, as the paper's simulations have it.";
        "beta": Kind::Real { bits: 20 }, Value::Real(ONE / 2), (0, ONE),
            "β: where less than this share of the window is delivered in an RTT, the window becomes what was; 0.5, 0 for never \
            [Uno Table 2].";
        "first-window": Kind::Real { bits: 20 }, Value::Real(ONE), (1, ONE),
            "The first window as a share of the bandwidth-delay product; 1, as the paper's simulations have it.";
    },
};

/// The largest reduction at once: one half. Flows whose RTT is below `intra-rtt` would else lose more than they have.
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
    /// Whether the window has been set to its first share of the bandwidth-delay product, once there was an RTT.
    has_begun: bool,
    /// E, 2^-20.
    fraction: u64,
    /// Of this epoch.
    acked: u64,
    marked: u64,
    /// The acknowledgement of a packet that left now or later ends the epoch.
    epoch_ends: Time,
    adapt: QuickAdapt,
    pacing: Option<Rate>,
}

/// What was delivered in this RTT.
#[derive(Clone, Copy, Debug, Default)]
struct QuickAdapt {
    /// The acknowledgement of a packet that left now or later begins it; once it has begun, when it ends.
    begins: Time,
    ends: Option<Time>,
    delivered: u64,
    /// The application had nothing more to send: little was delivered because little was sent.
    was_idle: bool,
}

impl Uno {
    /// A sender that knows no RTT yet.
    pub fn new(context: &Context<'_>) -> Uno {
        Uno {
            constants: Constants::new(&context.settings),
            window: Fractional::new(context.path.initial_window),
            has_begun: false,
            fraction: 0,
            acked: 0,
            marked: 0,
            epoch_ends: Time::ZERO,
            adapt: QuickAdapt::default(),
            pacing: None,
        }
    }

    /// The window becomes its first share of the bandwidth-delay product as soon as there is an RTT.
    fn begin(&mut self, path: &Path) {
        let Some(base) = path.min_rtt.filter(|_| !self.has_begun) else { return };
        self.has_begun = true;
        let first = share(bandwidth_delay(path, base), self.constants.first_window).max(ONE);
        self.window = Fractional::new(Packets::new(first.div_ceil(ONE)));
        self.window.limit(first);
        self.pace(path);
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

    /// The epoch ends with the first packet that left when the one before it had ended [Uno §4.1.1].
    fn end_epoch(&mut self, sent_at: Time, rtt: Span, base: Span) {
        let Constants { intra_rtt, gain, phantom_scale, slack, .. } = self.constants;
        let latest = self.marked.min(self.acked) * ONE / self.acked.max(1);
        self.fraction = (share(self.fraction, ONE - gain) + share(latest, gain)).min(ONE);
        if self.marked > 0 {
            let whole = share(self.fraction, self.reduction(base)).min(MAX_REDUCTION);
            let has_queue = rtt.as_ps() > base.as_ps().saturating_add(share(base.as_ps(), slack));
            let taken = if has_queue { whole } else { share(whole, phantom_scale) };
            self.window.forget();
            self.window.scale(ONE - taken, ONE);
        }
        (self.acked, self.marked) = (0, 0);
        let next = self.epoch_ends + intra_rtt;
        self.epoch_ends = if next > sent_at { next } else { sent_at + intra_rtt };
    }

    /// 4K/(K + BDP), 2^-20: both are rates times times, and the rate is one.
    fn reduction(&self, base: Span) -> u64 {
        let k = Span::from_ps(share(self.constants.intra_rtt.as_ps(), self.constants.k));
        ratio(k * 4, k + base, 4 * ONE)
    }

    /// Once per RTT; whether the window was set to what was delivered [Uno §4.1.2].
    fn adapt(&mut self, ack: &Ack, sent_at: Time, base: Span) -> bool {
        let period = base + Span::from_ps(share(base.as_ps(), self.constants.slack));
        let adapt = &mut self.adapt;
        adapt.delivered += ack.acked.get();
        adapt.was_idle |= !matches!(ack.limited_by, Limit::Window | Limit::Pacing);
        match adapt.ends {
            None if sent_at >= adapt.begins => {
                *adapt = QuickAdapt { ends: Some(ack.now + period), ..QuickAdapt::default() };
            }
            Some(end) if ack.now >= end => {
                let delivered = adapt.delivered.saturating_mul(ONE);
                if !adapt.was_idle && delivered < share(self.window.get(), self.constants.beta) {
                    self.window.forget();
                    self.window.limit(delivered.max(ONE));
                    // Nothing that left before says anything of this window.
                    *adapt = QuickAdapt { begins: ack.now, ..QuickAdapt::default() };
                    self.epoch_ends = ack.now;
                    (self.acked, self.marked) = (0, 0);
                    return true;
                }
                *adapt = QuickAdapt { ends: Some(ack.now + period), ..QuickAdapt::default() };
            }
            _ => {}
        }
        false
    }

    /// The window per minimum RTT.
    fn pace(&mut self, path: &Path) {
        let Some(base) = path.min_rtt.filter(|rtt| !rtt.is_zero()) else { return };
        self.pacing = Some(Rate::of(path.packet, self.window.spacing(base)).max(Rate::from_bps(1)));
    }

    fn halve(&mut self) {
        // Whoever has lost something does not begin any more.
        self.has_begun = true;
        self.window.forget();
        self.window.remember();
        self.window.scale(ONE / 2, ONE);
    }
}

/// A share (2^-20) of something.
fn share(of: u64, part: u64) -> u64 {
    let share = u128::from(of) * u128::from(part) / u128::from(ONE);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// What the host's line sends in the minimum RTT, in 2^-20 packets.
fn bandwidth_delay(path: &Path, base: Span) -> u64 {
    let bytes: Bytes = path.line_rate.bytes_in(base);
    let packets = u128::from(bytes.get()) * u128::from(ONE) / u128::from(path.packet.get().max(1));
    u64::try_from(packets).unwrap_or(u64::MAX)
}

impl CongestionControl for Uno {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.window.end_probing();
        self.begin(path);
        let Some(base) = path.min_rtt else { return };
        self.acked += ack.acked.get();
        self.marked += ack.marked.get();
        self.grow(ack, bandwidth_delay(path, base));
        if let Some(sample) = ack.rtt {
            let sent_at = Time::from_ps(ack.now.as_ps().saturating_sub(sample.span.as_ps()));
            if !self.adapt(ack, sent_at, base) && sent_at >= self.epoch_ends {
                self.end_epoch(sent_at, sample.span, base);
            }
        }
        self.pace(path);
    }

    /// Marks have their answer at the end of an epoch; a loss halves the window.
    fn on_congestion(&mut self, _now: Time, cause: Cause, path: &Path) {
        if cause == Cause::Loss {
            self.halve();
            self.pace(path);
        }
    }

    fn on_timeout(&mut self, _now: Time, repeated: bool, path: &Path) {
        if !repeated {
            self.halve();
        }
        self.window.probe();
        self.pace(path);
    }

    fn on_sent(&mut self, _now: Time, _sent: &Sent, path: &Path) {
        if !self.has_begun {
            self.begin(path);
        }
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

    /// A sender of this minimum RTT on a line of 1 Gbit/s, with a window of so many packets.
    fn uno(base: Span, window: u64, changes: &[(&str, Value)]) -> Drive<Uno> {
        let path = Path { min_rtt: Some(base), srtt: Some(base), ..path() };
        let mut drive = Drive::new(build(&SPEC, Uno::new, &path, changes), path);
        drive.now = Time::ZERO + Span::from_secs(1);
        drive.cc.has_begun = true;
        drive.cc.window = Fractional::new(Packets::new(window));
        drive.fill();
        drive
    }

    const NO_ADAPT: (&str, Value) = ("beta", Value::Real(0));

    #[test]
    fn the_first_window_is_the_bandwidth_delay_product_once_there_is_an_rtt() {
        let mut path = path();
        let mut cc = build(&SPEC, Uno::new, &path, &[]);
        let sent = Sent { size: path.packet, idle: None };
        cc.on_sent(Time::ZERO, &sent, &path);
        assert_eq!((cc.window().get(), cc.pacing()), (10, None));
        path.min_rtt = Some(Span::from_us(1_200));
        cc.on_sent(Time::ZERO, &sent, &path);
        // 1 Gbit/s for 1.2 ms are 150,000 bytes.
        assert_eq!((cc.window().get(), cc.pacing()), (100, Some(Rate::from_gbps(1))));
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
    }

    /// Growth (1−p)·α·BDP per RTT against p·4K/(K + BDP) in each of RTT/τ epochs: the rate is that of every RTT well above τ.
    #[test]
    fn at_equal_marks_rates_are_equal_and_those_of_the_closed_form() {
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
                    drive.path.min_rtt = Some(base);
                }
                if round >= 3_000 {
                    sum += drive.cc.window.get();
                    count += 1;
                }
            }
            (sum / count) as f64 / (product * ONE) as f64
        };
        for base in [Span::from_ms(2), Span::from_ms(8)] {
            let (p, k) = (1.0 / every as f64, 1.0 / 7.0 * tau.as_ps() as f64 / base.as_ps() as f64);
            let epochs = with_queue(base).as_ps() as f64 / tau.as_ps() as f64;
            let expected = (1.0 - p) * 0.001 / (epochs * p * 4.0 * k / (1.0 + k));
            let found = share_of_line(base);
            assert!((found / expected - 1.0).abs() < 0.1, "{base}: {found} and {expected}");
        }
    }

    #[test]
    fn where_the_rtt_shows_no_queue_three_tenths_of_the_reduction_are_made() {
        let base = Span::from_us(120);
        let taken = |rtt: Span| {
            let mut drive = uno(base, 100, &[("intra-rtt", Value::Span(base)), ("gain", Value::Real(ONE))]);
            drive.ack(1, Some(rtt), true);
            100 * ONE - drive.cc.window.get()
        };
        let (gentle, whole) = (taken(base), taken(base.div(10) * 11));
        // E is 1, and K a seventh of the product: half of a window, which growth has limited to the product of 10 packets.
        assert!(whole.abs_diff(95 * ONE) < ONE / 100, "{whole}");
        assert!(gentle.abs_diff(90 * ONE + ONE * 3 / 2) < ONE / 100, "{gentle}");
    }

    #[test]
    fn marks_reduce_once_in_an_epoch_of_what_was_sent() {
        let base = Span::from_ms(12);
        let mut drive = uno(base, 1_000, &[("intra-rtt", Value::Span(Span::from_ms(1))), NO_ADAPT]);
        drive.ack(1, Some(base * 2), true);
        let first = drive.cc.window.get();
        assert!(first < 1_000 * ONE);
        drive.now += Span::from_us(900);
        drive.path.min_rtt = Some(base);
        drive.ack(1, Some(base * 2), true);
        assert_eq!(drive.cc.window.get(), first);
        drive.now += Span::from_us(100);
        drive.ack(1, Some(base * 2), true);
        assert!(drive.cc.window.get() < first);
    }

    #[test]
    fn where_little_is_delivered_the_window_becomes_that() {
        let base = Span::from_ms(12);
        let deliver = |limited_by| {
            let mut drive = uno(base, 1_000, &[]);
            drive.limited_by = limited_by;
            for _ in 0..130 {
                drive.now += Span::from_us(100);
                drive.ack(1, Some(base * 4), false);
                drive.path.min_rtt = Some(base);
            }
            drive.window()
        };
        // An acknowledgement each 100 µs: 127 in 12.66 ms.
        assert_eq!(deliver(Limit::Window), 127);
        assert_eq!(deliver(Limit::Application), 1_000);
    }

    #[test]
    fn a_loss_halves_and_an_undo_restores() {
        let mut drive = uno(Span::from_ms(12), 800, &[]);
        drive.congestion(Cause::Ecn);
        assert_eq!(drive.window(), 800);
        drive.congestion(Cause::Loss);
        assert_eq!(drive.window(), 400);
        drive.cc.on_undo();
        assert_eq!(drive.window(), 800);
        drive.timeout();
        assert_eq!(drive.window(), 1);
        drive.ack(1, Some(Span::from_ms(12)), false);
        assert_eq!(drive.window(), 400);
    }
}
