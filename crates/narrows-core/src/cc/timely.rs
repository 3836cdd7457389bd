//! TIMELY: a rate that follows the gradient of the RTT [TIMELY Algorithm 1].
//!
//! Between two thresholds the rate grows while the RTT falls and shrinks while it grows, in proportion; below the lower one it
//! always grows, above the upper one it always shrinks. Decisions are made once per `segment` acknowledged, as the original's
//! adapter reports completed segments of 16 to 64 KB.
//!
//! With `patched` the rate also follows how far the RTT is from its reference, which gives it a unique fixed point: RTT =
//! `t-low`·(1 + N·δ/(β·C)) for N flows on a link of rate C [Zhu 2016 §5].

use super::parts::fractional::{ONE, ratio};
use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, MIN_WINDOW, Owner, Path, Settings, Spec, Value,
    parameters,
};
use crate::units::{Bytes, Packets, Rate, Span, Time};

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "timely",
    title: "TIMELY",
    about: "A rate that grows while the RTT falls and shrinks while it grows, between two thresholds.",
    source: "TIMELY",
    ecn: EcnUse::Optional,
    kernel: Kernel::None,
    needs_delivery_rate: false,
    needs_every_ack: true,
    needs_telemetry: false,
    draws: false,
    ordered: &[("t-low", "t-high")],
    parameters: parameters! {
        "t-low": Kind::Span, Value::Auto, (Span::from_us(1).as_ps(), Span::from_secs(10).as_ps()),
            "Below this RTT the rate grows; left out, the minimum RTT plus 30 µs: 50 µs on the paper's network.";
        "t-high": Kind::Span, Value::Auto, (Span::from_us(1).as_ps(), Span::from_secs(10).as_ps()),
            "Above this RTT the rate shrinks; left out, the minimum RTT plus 480 µs: 500 µs on the paper's network.";
        "additive": Kind::Rate, Value::Rate(Rate::from_mbps(10)), (1, 1_000_000_000_000),
            "δ: what the rate grows by at a decision; 10 Mbit/s [TIMELY §4.3].";
        "beta": Kind::Real { bits: 20 }, Value::Auto, (0, ONE),
            "β: the reduction per gradient; left out, 0.8 [TIMELY §4.3], with `patched` 0.008 [Zhu 2016 §5].";
        "ewma": Kind::Real { bits: 20 }, Value::Real(ONE * 7 / 8), (1, ONE),
            "α: the weight of the newest difference of RTTs; 0.875 [Zhu 2016 Table 2].";
        "segment": Kind::Bytes, Value::Bytes(Bytes::new(16_000)), (1, 1_000_000_000),
            "Payload acknowledged from one decision to the next; 16 KB [TIMELY §5].";
        "floor": Kind::Rate, Value::Rate(Rate::from_mbps(10)), (1, 1_000_000_000_000),
            "The rate never falls below this, or the line rate if that is less.";
        "window": Kind::Span, Value::Span(Span::from_ms(4)), (Span::from_us(10).as_ps(), Span::from_secs(1).as_ps()),
            "The window is what the line sends in this time: more than a datacenter's RTT with full buffers.";
        "patched": Kind::Switch, Value::Switch(false),
            "Whether the rate also follows the RTT's distance from `t-low` [Zhu 2016 §5].";
    },
};

/// Decisions in a row without a growing RTT after which the rate grows by [`HYPER`] steps [TIMELY §4.3].
const HYPER_AFTER: u32 = 5;
/// Steps of the additive growth then.
const HYPER: u64 = 5;
/// A quarter: gradients of so much decide alone [Zhu 2016 eq. 30].
const QUARTER: i64 = 1 << 18;
/// [`ONE`], with a sign.
const SIGNED_ONE: i64 = 1 << 20;

/// What does not change in a connection's life.
#[derive(Clone, Copy, Debug)]
struct Constants {
    low: Option<Span>,
    high: Option<Span>,
    additive: Rate,
    beta: u64,
    ewma: u64,
    segment: u64,
    floor: Rate,
    line: Rate,
    window: Packets,
    patched: bool,
}

/// The state of one TIMELY sender.
#[derive(Clone, Debug)]
pub struct Timely {
    constants: Constants,
    rate: Rate,
    before: Option<Rate>,
    /// The RTT of the last decision.
    last: Option<Span>,
    /// Average of the differences of RTTs, picoseconds.
    difference: i64,
    /// Decisions in a row without a growing RTT.
    without_growth: u32,
    /// Payload still to be acknowledged before the next decision.
    left: u64,
    /// After a timeout one packet goes, until something is acknowledged.
    probes: bool,
}

impl Constants {
    fn of(settings: &Settings<'_>, path: &Path) -> Constants {
        let patched = settings.switch("patched");
        let packets = path.line_rate.bytes_in(settings.span("window")).get() / path.packet.get().max(1);
        Constants {
            low: settings.span_or_auto("t-low"),
            high: settings.span_or_auto("t-high"),
            additive: settings.rate("additive"),
            beta: settings.real_or_auto("beta").unwrap_or(if patched { ONE / 125 } else { ONE * 4 / 5 }),
            ewma: settings.real("ewma"),
            segment: settings.bytes("segment").get(),
            floor: settings.rate("floor").min(path.line_rate),
            line: path.line_rate,
            window: Packets::new(packets).max(MIN_WINDOW),
            patched,
        }
    }
}

impl Timely {
    /// A sender at the line rate.
    pub fn new(context: &Context<'_>) -> Timely {
        let constants = Constants::of(&context.settings, context.path);
        Timely {
            constants,
            rate: constants.line,
            before: None,
            last: None,
            difference: 0,
            without_growth: 0,
            left: constants.segment,
            probes: false,
        }
    }

    fn set(&mut self, rate: Rate) {
        self.rate = rate.clamp(self.constants.floor, self.constants.line);
    }

    fn add(&mut self, steps: u64) {
        let step = self.constants.additive.as_bps().saturating_mul(steps);
        self.set(Rate::from_bps(self.rate.as_bps().saturating_add(step)));
    }

    /// Takes off this share (2^-20), at most all but the floor.
    fn reduce(&mut self, share: u64) {
        self.set(self.rate.scaled(ONE - share.min(ONE), ONE));
    }

    /// [TIMELY Algorithm 1]
    fn decide(&mut self, rtt: Span, least: Span) {
        let Some(last) = self.last.replace(rtt) else { return };
        let gradient = self.gradient(rtt, last, least);
        let Constants { low, high, beta, patched, .. } = self.constants;
        let low = low.unwrap_or(least + Span::from_us(30));
        let high = high.unwrap_or(least + Span::from_us(480));
        self.without_growth = if gradient <= 0 { self.without_growth.saturating_add(1) } else { 0 };
        if rtt < low {
            self.add(1);
        } else if rtt > high {
            self.reduce(beta * ratio(rtt - high, rtt, ONE) / ONE);
        } else if patched {
            self.follow(gradient, rtt, low);
        } else if gradient <= 0 {
            self.add(if self.without_growth >= HYPER_AFTER { HYPER } else { 1 });
        } else {
            let share = u128::from(beta) * u128::from(gradient.unsigned_abs()) / u128::from(ONE);
            self.reduce(u64::try_from(share).unwrap_or(ONE));
        }
    }

    /// The average difference of RTTs over the minimum RTT (2^-20).
    fn gradient(&mut self, rtt: Span, last: Span, least: Span) -> i64 {
        let signed = |span: Span| i64::try_from(span.as_ps()).unwrap_or(i64::MAX);
        let newest = signed(rtt).saturating_sub(signed(last));
        let weight = i128::from(self.constants.ewma);
        let rest = i128::from(SIGNED_ONE) - weight;
        let average = (i128::from(self.difference) * rest + i128::from(newest) * weight) / i128::from(SIGNED_ONE);
        self.difference = i64::try_from(average).unwrap_or(i64::MAX);
        let scaled = i128::from(self.difference) * i128::from(SIGNED_ONE) / i128::from(signed(least).max(1));
        i64::try_from(scaled).unwrap_or(i64::MAX)
    }

    /// δ·(1 − w) + rate·(1 − β·w·(RTT − reference)/reference), w from 0 to 1 as the gradient is −1/4 to 1/4 [Zhu 2016 §5].
    fn follow(&mut self, gradient: i64, rtt: Span, reference: Span) {
        let weight = (2 * gradient.clamp(-QUARTER, QUARTER) + SIGNED_ONE / 2).unsigned_abs();
        let excess = ratio(rtt.saturating_sub(reference), reference, ONE << 20);
        let share = u128::from(self.constants.beta) * u128::from(weight) * u128::from(excess) / (1 << 40);
        self.reduce(u64::try_from(share).unwrap_or(ONE));
        let step = self.constants.additive.scaled(ONE - weight, ONE);
        self.set(Rate::from_bps(self.rate.as_bps().saturating_add(step.as_bps())));
    }
}

impl CongestionControl for Timely {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.probes = false;
        self.left = self.left.saturating_sub(ack.acked.get().saturating_mul(path.mss.get()));
        if let (0, Some(sample), Some(least)) = (self.left, ack.rtt, path.min_rtt) {
            self.left = self.constants.segment;
            self.decide(sample.span, least);
        }
    }

    /// Nothing: the original's network loses nothing, and the RTT tells of a full queue.
    fn on_congestion(&mut self, _now: Time, _cause: Cause, _path: &Path) {}

    /// Half the rate: without acknowledgements there is no RTT. The paper has no rule.
    fn on_timeout(&mut self, _now: Time, repeated: bool, _path: &Path) {
        if !repeated {
            self.before = Some(self.rate);
        }
        self.probes = true;
        self.reduce(ONE / 2);
    }

    fn on_undo(&mut self) {
        self.probes = false;
        self.rate = self.rate.max(self.before.take().unwrap_or(self.rate));
    }

    fn window(&self) -> Packets {
        if self.probes { Packets::new(1) } else { self.constants.window }
    }

    fn pacing(&self) -> Option<Rate> {
        Some(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::harness::{Drive, MSS, build, path};

    const LEAST: Span = Span::from_us(20);

    fn timely(changes: &[(&str, Value)]) -> Drive<Timely> {
        let path = Path { line_rate: Rate::from_gbps(10), ..path() };
        let mut drive = Drive::new(build(&SPEC, Timely::new, &path, changes), path);
        drive.ack(16_000 / MSS + 1, Some(LEAST), false);
        drive.cc.rate = Rate::from_gbps(4);
        drive
    }

    fn decide(drive: &mut Drive<Timely>, us: u64) -> u64 {
        drive.ack(16_000 / MSS + 1, Some(Span::from_us(us)), false);
        drive.cc.rate.as_bps()
    }

    #[test]
    fn below_the_lower_threshold_the_rate_grows_by_one_step() {
        let mut drive = timely(&[]);
        assert_eq!(decide(&mut drive, 49), 4_010_000_000, "whatever the gradient is");
        assert_eq!(decide(&mut drive, 30), 4_020_000_000);
    }

    #[test]
    fn above_the_upper_threshold_the_rate_shrinks_with_the_excess() {
        let mut drive = timely(&[]);
        // 1 − 0.8·(1 − 500/1000)
        assert!(decide(&mut drive, 1_000).abs_diff(2_400_000_000) < 10_000);
    }

    #[test]
    fn a_growing_rtt_takes_beta_times_its_gradient() {
        let mut drive = timely(&[("ewma", Value::Real(ONE))]);
        decide(&mut drive, 100);
        drive.cc.rate = Rate::from_gbps(4);
        // 4 µs more in a minimum RTT of 20: 1 − 0.8·0.2
        assert!(decide(&mut drive, 104).abs_diff(3_360_000_000) < 10_000);
    }

    #[test]
    fn five_decisions_without_growth_begin_hyper_active_increase() {
        let mut drive = timely(&[("ewma", Value::Real(ONE))]);
        decide(&mut drive, 100);
        drive.cc.rate = Rate::from_gbps(4);
        for us in [99, 98, 97, 96] {
            decide(&mut drive, us);
        }
        assert_eq!(drive.cc.rate.as_bps(), 4_040_000_000);
        assert_eq!(decide(&mut drive, 95), 4_090_000_000);
    }

    /// Without a gradient w is one half: the rate rests where δ = β·rate·(RTT − reference)/reference.
    #[test]
    fn the_patched_law_rests_where_its_fixed_point_is() {
        let mut drive = timely(&[("patched", Value::Switch(true)), ("ewma", Value::Real(ONE))]);
        decide(&mut drive, 75);
        drive.cc.rate = Rate::from_bps(2_500_000_000);
        // δ/(β·rate) = 10e6/(0.008·2.5e9) = 0.5: an RTT of 1.5·50 µs.
        let rate = decide(&mut drive, 75);
        assert!(rate.abs_diff(2_500_000_000) < 100_000, "{rate}");
        assert!(decide(&mut drive, 74) > rate);
    }
}
