//! PCC Vivace: tries two rates, and moves to where the utility rises [PCC Vivace].
//!
//! ```text
//! slow start: one monitor interval at r ──▶ r ← 2r ──▶ … until the utility falls; back to the rate before
//! learning:   r(1+ε), r(1-ε), in any order ──▶ results, an RTT later ──▶ r ← r + m(τ)·θ₀·γ, at most ω·r
//! ```
//!
//! A monitor interval is what is sent at one rate for an RTT. Its utility rewards the rate and charges for a rising RTT and for
//! losses; γ is the difference of two utilities over that of their rates. Until the results are in, the sender keeps to r.

use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Limit, Lost, Owner, Path, Sent, Spec, Value,
    parameters,
};
use crate::rng::SmallStream;
use crate::units::{Bytes, Packets, Rate, Span, Time};
use interval::{Interval, ONE, Utility};
use step::Step;

mod interval;
mod power;
mod step;
#[cfg(test)]
mod tests;

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "vivace",
    title: "Vivace",
    about: "Tries two rates in turn, and moves to where a utility of rate, RTT and loss rises.",
    source: "PCC Vivace, PCC-Uspace, WebRTC pcc",
    ecn: EcnUse::Optional,
    kernel: Kernel::None,
    needs_delivery_rate: true,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: true,
    ordered: &[],
    parameters: parameters! {
        "utility": Kind::Choice(&["latency", "loss"]), Value::Choice(0),
            "What is charged for: a rising RTT and losses, or losses alone [PCC Vivace].";
        "latency-coefficient": Kind::Real { bits: 20 }, Value::Real(900 * ONE), (0, 1_000_000 * ONE),
            "b, the charge for a rising RTT; 900 [PCC-Uspace].";
        "loss-coefficient": Kind::Real { bits: 20 }, Value::Real((ONE * 1_135).div_ceil(100)), (0, 1_000 * ONE),
            "c, the charge for losses; 11.35 [PCC-Uspace].";
        "rewards-falling": Kind::Switch, Value::Switch(false),
            "Whether a falling RTT is rewarded as a rising one is charged for.";
    },
};

/// ε, hundredths: the rates that are tried differ by so much from the present one [WebRTC pcc].
const EPSILON: u64 = 5;
/// θ₀, Mbit/s per unit of γ [WebRTC pcc].
const CONVERSION: i128 = 1;
/// An interval has so many pieces of the host's at least, packets without offload, so that a slope and a share of loss mean
/// something: a piece leaves at the line's rate, and the RTTs of its packets rise by themselves; ours.
const MIN_PIECES: u64 = 10;
/// Bytes of a piece at most, and how many microseconds of the minimum RTT halve what it is longer by [Linux `tcp_tso_autosize`].
const LARGEST_PIECE: u64 = 65_536;
const HALVED_EACH_US: u64 = 512;
/// A loss is found when so many later packets have arrived [RFC 6675 §5].
const LOSS_LAG: u64 = 3;
/// The least rate, packets per RTT, so that there are always acknowledgements [PCC-Kernel].
const MIN_RATE: u64 = 2;

/// What is being learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The rate and utility of the interval before, if there was one.
    SlowStart(Option<(Rate, i128)>),
    Learning,
}

/// The state of one Vivace sender.
#[derive(Clone, Debug)]
pub struct Vivace {
    utility: Utility,
    random: SmallStream,
    mode: Mode,
    /// r, in IP bytes.
    rate: Rate,
    step: Step,
    /// What is tried: slow start uses the first alone.
    intervals: [Interval; 2],
    /// The interval that is being sent, and that whose results come in; past the last for none.
    sending: usize,
    judging: usize,
    /// Something else than pacing limited the sender: the intervals say nothing.
    is_void: bool,
    /// When the newest packet known delivered left.
    seen: Time,
    /// Packets.
    window: u64,
    /// Window and rate before a timeout.
    prior: Option<(u64, Rate, Mode, Step)>,
    /// Whether `rate` rests on a measured RTT.
    has_rtt: bool,
    packet: Bytes,
}

/// So many hundredths of a rate.
fn percent(rate: Rate, hundredths: u64) -> Rate {
    rate.scaled(hundredths, 100).max(Rate::from_bps(1))
}

impl Vivace {
    /// A sender in slow start.
    pub fn new(context: &Context<'_>) -> Vivace {
        let (settings, path) = (&context.settings, context.path);
        let is_latency = settings.choice("utility") == "latency";
        let utility = Utility {
            latency: if is_latency { settings.real("latency-coefficient") } else { 0 },
            loss: settings.real("loss-coefficient"),
            rewards_falling: settings.switch("rewards-falling"),
        };
        let mut vivace = Vivace {
            utility,
            random: context.random,
            mode: Mode::SlowStart(None),
            rate: Rate::from_bps(1),
            step: Step::default(),
            intervals: [Interval::at(Rate::from_bps(1)); 2],
            sending: 0,
            judging: 0,
            is_void: false,
            seen: Time::ZERO,
            window: 2 * path.initial_window.get().max(1),
            prior: None,
            has_rtt: false,
            packet: path.packet,
        };
        vivace.begin_at_initial_window(path);
        vivace
    }

    /// The initial window per RTT, or per millisecond while there is none.
    fn begin_at_initial_window(&mut self, path: &Path) {
        let span = path.srtt.unwrap_or(Span::from_ms(1)).max(Span::from_ns(1));
        self.has_rtt = path.srtt.is_some();
        self.set_rate(Rate::of(path.initial_window.bytes(path.packet), span), path);
        self.plan();
    }

    /// Between two packets per RTT and the line's rate.
    fn set_rate(&mut self, rate: Rate, path: &Path) {
        let least = path.srtt.map_or(Rate::from_bps(1), |srtt| {
            Rate::of(Packets::new(MIN_RATE).bytes(path.packet), srtt.max(Span::from_ns(1)))
        });
        self.rate = rate.max(least).min(path.line_rate).max(Rate::from_bps(1));
    }

    /// That of the interval that is being sent, or the flow's own while results are awaited.
    fn pacing_now(&self) -> Rate {
        if self.sending < self.tried() { self.intervals[self.sending].rate } else { self.rate }
    }

    /// How many intervals a decision needs.
    fn tried(&self) -> usize {
        if self.mode == Mode::Learning { 2 } else { 1 }
    }

    /// What is to be tried next begins with the next packet.
    fn plan(&mut self) {
        let rates = if self.mode == Mode::Learning {
            let (up, down) = (percent(self.rate, 100 + EPSILON), percent(self.rate, 100 - EPSILON));
            // At random, so that flows that began together do not try together.
            if self.random.below(2) == 0 { [up, down] } else { [down, up] }
        } else {
            [self.rate; 2]
        };
        self.intervals = rates.map(Interval::at);
        (self.sending, self.judging, self.is_void) = (0, 0, false);
    }

    /// All results are in.
    fn decide(&mut self, path: &Path) {
        if !self.is_void {
            match self.mode {
                Mode::SlowStart(before) => self.double(before, path),
                Mode::Learning => self.climb(path),
            }
        }
        self.plan();
    }

    /// Doubles as long as that is worth more [PCC Vivace].
    fn double(&mut self, before: Option<(Rate, i128)>, path: &Path) {
        let rate = self.intervals[0].rate;
        let utility = self.intervals[0].utility(&self.utility);
        match before {
            Some((before, least)) if utility <= least => {
                self.mode = Mode::Learning;
                self.set_rate(before, path);
            }
            _ => {
                self.mode = Mode::SlowStart(Some((rate, utility)));
                self.set_rate(rate.scaled(2, 1), path);
                if self.rate == rate {
                    // The line's own rate: there is nothing to double to.
                    self.mode = Mode::Learning;
                }
            }
        }
    }

    /// γ = (u₁ - u₂)/(x₁ - x₂), and θ₀·γ in bit/s.
    fn gradient(&self) -> i128 {
        let [first, second] = self.intervals.map(|interval| interval.utility(&self.utility));
        let [x1, x2] = self.intervals.map(|interval| i128::from(interval.rate.as_bps()));
        let over = (x1 - x2) << power::UTILITY_BITS;
        // Mbit/s, of both rates.
        if over == 0 { 0 } else { CONVERSION * (first - second) * 1_000_000 * 1_000_000 / over }
    }

    /// A step towards where the utility is greater.
    fn climb(&mut self, path: &Path) {
        let rate = self.rate.as_bps();
        let change = self.step.change(self.gradient(), rate);
        let rate = (i128::from(rate) + change).max(1);
        self.set_rate(Rate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX)), path);
    }

    /// About what the host hands over in one piece at a rate: a millisecond's worth, on short paths more (`tcp_tso_autosize`).
    fn piece(rate: Rate, path: &Path) -> Bytes {
        let halvings = path.min_rtt.map_or(0, |least| least.as_us() / HALVED_EACH_US).min(63);
        let bytes = rate.bytes_in(Span::from_ms(1)).get() + (LARGEST_PIECE >> halvings);
        let packets = Packets::new((bytes / path.packet.get().max(1)).max(2).min(u64::from(path.burst)).max(1));
        packets.bytes(path.packet)
    }

    /// An RTT, or the time of ten pieces.
    fn length(rate: Rate, srtt: Span, path: &Path) -> Span {
        srtt.max(rate.time_for(Bytes::new(MIN_PIECES * Vivace::piece(rate, path).get())))
    }

    /// Delivered packets to the intervals in which they left, as the newest RTT tells: what is delivered without one, a
    /// retransmission, goes with the packet before it. An interval is over when what left three packets after it has arrived: its
    /// losses are found by then.
    fn take(&mut self, ack: &Ack) {
        let lag = self.rate.time_for(Packets::new(LOSS_LAG).bytes(self.packet));
        let before = |moment: Time, span: Span| Time::from_ps(moment.as_ps().saturating_sub(span.as_ps()));
        if let Some(sample) = ack.rtt {
            let left = before(ack.now, sample.span);
            self.seen = self.seen.max(left);
            for interval in &mut self.intervals {
                interval.take_rtt(left, sample.span);
            }
        }
        for interval in &mut self.intervals {
            interval.take_delivered(self.seen, ack.acked.get());
        }
        let told = before(self.seen, lag);
        while self.judging < self.tried() && self.intervals[self.judging].is_before(told) {
            self.judging += 1;
        }
    }

    /// Twice the rate times the RTT, so that the rate alone limits: an RTT may double before acknowledgements tell, and a rate
    /// that has just doubled is not held up [PCC-Kernel]. What a host sends and acknowledges in one piece comes on top.
    fn set_window(&mut self, acked: u64, path: &Path) {
        let Some(srtt) = path.srtt else { return };
        let product = self.rate.bytes_in(srtt).get() / path.packet.get().max(1);
        let target = (2 * product).saturating_add(2 * u64::from(path.burst)).max(2 * path.initial_window.get()).max(1);
        self.window = self.window.saturating_add(2 * acked).min(target);
    }
}

impl CongestionControl for Vivace {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.packet = path.packet;
        if !self.has_rtt && path.srtt.is_some() {
            self.begin_at_initial_window(path);
        }
        self.is_void |= ack.limited_by != Limit::Pacing;
        self.take(ack);
        if self.judging >= self.tried() {
            self.decide(path);
        }
        self.set_window(ack.acked.get(), path);
    }

    fn on_lost(&mut self, lost: &Lost, _path: &Path) {
        for interval in &mut self.intervals {
            interval.take_lost(lost.sent_at);
        }
    }

    /// Losses count in the utility alone. What a timeout took is this episode's no more.
    fn on_congestion(&mut self, _now: Time, cause: Cause, _path: &Path) {
        if cause == Cause::Loss {
            self.prior = None;
        }
    }

    /// There will be no results: half the rate, and one packet until something is acknowledged.
    fn on_timeout(&mut self, _now: Time, repeated: bool, path: &Path) {
        if !repeated || self.prior.is_none() {
            self.prior = Some((self.window, self.rate, self.mode, self.step));
        }
        self.window = 1;
        self.mode = Mode::Learning;
        self.step = Step::default();
        self.set_rate(percent(self.rate, 50), path);
        self.plan();
    }

    fn on_sent(&mut self, now: Time, sent: &Sent, path: &Path) {
        let Some(srtt) = path.srtt else { return };
        // Between two pieces all may have arrived, which is no idle time; a host's pieces may be longer than is thought here. After
        // a longer one what was tried was not sent in full.
        let rate = self.pacing_now();
        if sent.idle.is_some_and(|idle| idle > srtt.max(rate.time_for(Vivace::piece(rate, path)) * 2)) {
            self.plan();
        }
        while self.sending < self.tried() {
            let interval = &mut self.intervals[self.sending];
            let began = *interval.began.get_or_insert(now);
            if now < began + Vivace::length(interval.rate, srtt, path) {
                break;
            }
            interval.ended = Some(now);
            self.sending += 1;
        }
    }

    /// The timeout was spurious.
    fn on_undo(&mut self) {
        if let Some((window, rate, mode, step)) = self.prior.take() {
            self.window = self.window.max(window);
            self.rate = self.rate.max(rate);
            (self.mode, self.step) = (mode, step);
            self.plan();
        }
    }

    fn window(&self) -> Packets {
        Packets::new(self.window)
    }

    fn pacing(&self) -> Option<Rate> {
        Some(self.pacing_now())
    }
}
