//! BBR version 1: send at the measured bandwidth, with a window of twice the measured bandwidth-delay product
//! [BBR, Linux `tcp_bbr.c`].
//!
//! ```text
//!            full pipe            in flight ≤ BDP
//! Startup ──────────────▶ Drain ──────────────────▶ ProbeBandwidth: gains 5/4, 3/4, 1, 1, 1, 1, 1, 1
//!    ▲                                                 ▲
//!    │ pipe not yet full                               │ after 200 ms and a round
//!    └──────────────────── ProbeRtt ─────────────┘ ◀── from any mode, when the minimum RTT is 10 s old
//! ```
//!
//! Integers as in Linux `tcp_bbr.c`: bandwidth in packets per microsecond, Q24; gains in 1/256; RTTs in whole
//! microseconds. Clocks are exact where the kernel counts ticks. `version` chooses Linux 4.9, or Linux 6 with its pacing
//! margin of 1 %, its allowance for aggregated acknowledgements, its two packets more in the probing phase and its look at what
//! is in flight when the next piece leaves.

use super::parts::bandwidth::{self, BANDWIDTH_ONE};
use super::parts::windowed::WindowedMax;
use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Owner, Path, Phase, RateSample, Sent, parameters,
};
use super::{Spec, Value};
use crate::rng::SmallStream;
use crate::units::{Bytes, Packets, Rate, Span, Time};
use aggregation::Aggregation;
use long_term::{Facts, LongTerm};

mod aggregation;
mod long_term;
#[cfg(test)]
mod tests;

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "bbr",
    title: "BBR",
    about: "Models the path by its bandwidth and minimum RTT, and sends at that rate.",
    source: "BBR, Linux",
    ecn: EcnUse::Optional,
    kernel: Kernel::Own("bbr"),
    needs_delivery_rate: true,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: true,
    ordered: &[],
    parameters: parameters! {
        "version": Kind::Choice(&["linux-4.9", "linux-6"]), Value::Choice(0),
            "Which kernel's BBR version 1; the later one paces 1 % below the bandwidth and allows for aggregated acknowledgements.";
    },
};

/// One, of gains.
const GAIN_ONE: u64 = 1 << 8;
/// 2/ln 2: the least gain that doubles the rate every round, of pacing and window alike.
const HIGH_GAIN: u64 = GAIN_ONE * 2_885 / 1_000 + 1;
/// ln 2/2: drains in one round what Startup queued.
const DRAIN_GAIN: u64 = GAIN_ONE * 1_000 / 2_885;
/// Window gain while probing: twice the product rides out delayed and stretched acknowledgements.
const WINDOW_GAIN: u64 = 2 * GAIN_ONE;
/// Pacing gains of the eight phases of probing.
const CYCLE: [u64; 8] = [GAIN_ONE * 5 / 4, GAIN_ONE * 3 / 4, 256, 256, 256, 256, 256, 256];
/// The bandwidth is the greatest sample of this many rounds.
const BANDWIDTH_ROUNDS: u64 = 10;
/// The RTT is the least of this long.
const ROUND_TRIP_WINDOW: Span = Span::from_secs(10);
/// How long ProbeRtt holds its small window at least.
const PROBE_ROUND_TRIP: Span = Span::from_ms(200);
/// The smallest window while acknowledgements come: enough for two delayed ones.
const MIN_WINDOW: u64 = 4;
/// The pipe is full when three rounds brought less than a quarter more bandwidth.
const FULL_ROUNDS: u32 = 3;
/// Until this many packets are delivered, the window only grows.
const FIRST_PACKETS: u64 = 10;
/// Below this pacing rate one segment at a time is handed to the port.
const SINGLE_SEGMENT_RATE: Rate = Rate::from_bps(1_200_000);

/// Which kernel is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Linux49,
    Linux6,
}

/// Where the sender stands; see the diagram above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth {
        /// Position in [`CYCLE`].
        index: u8,
        /// Start of this phase.
        since: Time,
    },
    ProbeRtt(Dip),
}

/// The stages of ProbeRtt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dip {
    /// Until no more than four packets are in flight.
    Falling,
    /// At the bottom until this moment, and until a round has passed.
    Holding { until: Time, round_passed: bool },
}

/// The state of one BBR sender.
#[derive(Clone, Debug)]
pub struct Bbr {
    version: Version,
    random: SmallStream,
    initial_window: u64,
    packet: Bytes,
    mode: Mode,
    /// Packets.
    window: u64,
    /// The window before recovery or ProbeRtt.
    prior_window: u64,
    restore_window: bool,
    pacing: Option<Rate>,
    /// Whether `pacing` rests on a measured RTT.
    paced_by_round_trip: bool,
    /// Segments to hand to the port in one piece.
    burst: u64,

    /// Greatest bandwidth of the last ten rounds, on a clock of rounds.
    bandwidth: WindowedMax,
    rounds: u64,
    round_started: bool,
    /// The round ends when a packet sent at or after this delivered count is delivered.
    round_end: u64,
    long_term: LongTerm,
    aggregation: Aggregation,

    /// Minimum RTT, microseconds, and when it was seen.
    round_trip_us: Option<u64>,
    round_trip_at: Option<Time>,
    restarting_from_idle: bool,
    /// Samples of packets sent at these delivered counts were taken in ProbeRtt and count as application-limited.
    muted: Option<(u64, u64)>,

    /// Bandwidth when it last grew by a quarter, and the rounds since; once there are three, the pipe stays full.
    full_bandwidth: u64,
    full_rounds: u32,
    pipe_is_full: bool,

    phase: Phase,
    conserving: bool,
    /// Over the connection's life, packets.
    delivered: u64,
    lost: u64,
}

/// `bandwidth`·`gain` in bits per second of IP packets of this size.
fn rate_of(bandwidth: u64, gain: u64, packet: Bytes) -> Rate {
    bandwidth::rate_of(bandwidth, gain, GAIN_ONE, packet)
}

impl Bbr {
    /// A sender in Startup.
    pub fn new(context: &Context<'_>) -> Bbr {
        let path = context.path;
        let initial_window = path.initial_window.get().max(1);
        let version = if context.settings.choice("version") == "linux-6" { Version::Linux6 } else { Version::Linux49 };
        let mut bbr = Bbr {
            version,
            random: context.random,
            initial_window,
            packet: path.packet,
            mode: Mode::Startup,
            window: initial_window,
            prior_window: 0,
            restore_window: false,
            pacing: None,
            paced_by_round_trip: false,
            burst: 1,
            bandwidth: WindowedMax::new(BANDWIDTH_ROUNDS),
            rounds: 0,
            round_started: false,
            round_end: 0,
            long_term: LongTerm::default(),
            aggregation: Aggregation::default(),
            round_trip_us: path.min_rtt.map(Span::as_us),
            round_trip_at: None,
            restarting_from_idle: false,
            muted: None,
            full_bandwidth: 0,
            full_rounds: 0,
            pipe_is_full: false,
            phase: Phase::Open,
            conserving: false,
            delivered: 0,
            lost: 0,
        };
        bbr.pace_by_round_trip(path);
        bbr
    }

    /// The bandwidth in use: the policer's, if there seems to be one.
    fn bandwidth(&self) -> u64 {
        self.long_term.rate().unwrap_or(self.bandwidth.value())
    }

    fn pacing_gain(&self) -> u64 {
        let policed = self.long_term.rate().is_some();
        match self.mode {
            // Linux 4.9 drops Startup's gain too once it believes in a policer; later kernels keep it.
            Mode::Startup if policed && self.version == Version::Linux49 => GAIN_ONE,
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBandwidth { .. } if policed => GAIN_ONE,
            Mode::ProbeBandwidth { index, .. } => CYCLE[usize::from(index)],
            Mode::ProbeRtt(_) => GAIN_ONE,
        }
    }

    fn window_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBandwidth { .. } => WINDOW_GAIN,
            Mode::ProbeRtt(_) => GAIN_ONE,
        }
    }

    /// gain·BtlBw·RTprop, rounded up [Linux `tcp_bbr.c`]; the initial window before there was an RTT.
    fn product(&self, bandwidth: u64, gain: u64) -> u64 {
        let Some(round_trip_us) = self.round_trip_us else { return self.initial_window };
        bandwidth::product(bandwidth, round_trip_us, gain, GAIN_ONE)
    }

    /// Room for what the host, the card and the receiver hold in one piece, and an even number, for delayed
    /// acknowledgements (Linux).
    fn with_quanta(&self, packets: u64) -> u64 {
        let packets = packets.saturating_add(3 * self.burst);
        let probing = self.version == Version::Linux6 && matches!(self.mode, Mode::ProbeBandwidth { index: 0, .. });
        packets.saturating_add(packets & 1).saturating_add(if probing { 2 } else { 0 })
    }

    /// What is in flight where `gain` does what it should.
    fn inflight(&self, gain: u64) -> u64 {
        let bandwidth = self.bandwidth.value();
        match self.round_trip_us {
            None if self.version == Version::Linux49 => self.initial_window,
            _ => self.with_quanta(self.product(bandwidth, gain)),
        }
    }

    /// Where the window should be.
    fn target(&self) -> u64 {
        let bandwidth = self.bandwidth();
        let mut packets = self.product(bandwidth, self.window_gain());
        if self.version == Version::Linux49 && self.round_trip_us.is_none() {
            return packets;
        }
        if self.version == Version::Linux6 && self.pipe_is_full {
            packets = packets.saturating_add(self.aggregation.allowance(bandwidth));
        }
        self.with_quanta(packets)
    }

    /// The sample, unless it says nothing; with the samples of ProbeRtt counted as application-limited.
    fn sample(&self, ack: &Ack) -> Option<RateSample> {
        let mut sample = ack.delivery.filter(|sample| sample.interval.as_us() > 0)?;
        if let Some((from, to)) = self.muted {
            sample.app_limited |= (from..=to).contains(&sample.prior_delivered.get());
        }
        Some(sample)
    }

    /// Rounds, bandwidth, policer.
    fn update_bandwidth(&mut self, ack: &Ack, sample: &RateSample) {
        if sample.prior_delivered.get() >= self.round_end {
            self.round_end = ack.delivered.get();
            self.rounds += 1;
            self.round_started = true;
            self.conserving = false;
        }
        self.update_long_term(ack.now, ack.lost.get(), sample.app_limited);
        let bandwidth = sample.delivered.get().saturating_mul(BANDWIDTH_ONE) / sample.interval.as_us();
        // A sample that the application limited can only be too low.
        if !sample.app_limited || bandwidth >= self.bandwidth.value() {
            self.bandwidth.update(self.rounds, bandwidth);
        }
    }

    fn update_long_term(&mut self, now: Time, losses: u64, app_limited: bool) {
        let given_up = self.long_term.update(&Facts {
            now,
            round_started: self.round_started,
            losses,
            app_limited,
            probing_bandwidth: matches!(self.mode, Mode::ProbeBandwidth { .. }),
            delivered: self.delivered,
            lost: self.lost,
            packet: self.packet,
        });
        if given_up {
            self.probe_bandwidth(now);
        }
    }

    fn probe_bandwidth(&mut self, now: Time) {
        // Senders that start together must not probe together; the emptying phase is no start.
        let drawn = u8::try_from(self.random.below(7)).unwrap_or(0);
        self.mode = Mode::ProbeBandwidth { index: (8 - drawn) % 8, since: now };
    }

    /// What will be in the network when pacing lets the next piece go, of what is now (Linux 4.20
    /// `bbr_packets_in_net_at_edt`).
    fn in_network_at_departure(&self, in_flight: Packets, gain: u64, now: Time, path: &Path) -> u64 {
        let in_flight = in_flight.get();
        if self.version == Version::Linux49 {
            return in_flight;
        }
        let until = path.departs_at.max(now).since(now).as_us();
        let delivered = self.bandwidth().saturating_mul(until) / BANDWIDTH_ONE;
        let piece = if gain > GAIN_ONE { self.burst } else { 0 };
        (in_flight + piece).saturating_sub(delivered)
    }

    /// The next phase of probing, when this one has done its work.
    fn advance_cycle(&mut self, ack: &Ack, path: &Path) {
        let Mode::ProbeBandwidth { index, since } = self.mode else { return };
        if self.version == Version::Linux49 && self.long_term.rate().is_some() {
            return;
        }
        let lasted = ack.now.since(since).as_us() > self.round_trip_us.unwrap_or(u64::MAX);
        let gain = self.pacing_gain();
        let in_flight = self.in_network_at_departure(ack.prior_in_flight, gain, ack.now, path);
        let done = match gain {
            // More than the path carries must be in flight, or lost, before probing has shown anything.
            _ if gain > GAIN_ONE => lasted && (ack.lost.get() > 0 || in_flight >= self.inflight(gain)),
            // Emptying ends early when nothing is queued.
            _ if gain < GAIN_ONE => lasted || in_flight <= self.inflight(GAIN_ONE),
            _ => lasted,
        };
        if done {
            self.mode = Mode::ProbeBandwidth { index: (index + 1) % 8, since: ack.now };
        }
    }

    fn check_full_pipe(&mut self, app_limited: bool) {
        if self.pipe_is_full || !self.round_started || app_limited {
            return;
        }
        let bandwidth = self.bandwidth.value();
        if bandwidth >= self.full_bandwidth.saturating_mul(5) / 4 {
            self.full_bandwidth = bandwidth;
            self.full_rounds = 0;
        } else {
            self.full_rounds += 1;
            self.pipe_is_full = self.full_rounds >= FULL_ROUNDS;
        }
    }

    fn check_drain(&mut self, ack: &Ack, path: &Path) {
        // As long as the mode before it had it: gains change after the mode (Linux `bbr_update_model`).
        let gain = self.pacing_gain();
        if self.mode == Mode::Startup && self.pipe_is_full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain
            && self.in_network_at_departure(ack.in_flight, gain, ack.now, path) <= self.inflight(GAIN_ONE)
        {
            self.probe_bandwidth(ack.now);
        }
    }

    /// RTprop, and the dip that measures it anew.
    fn update_round_trip(&mut self, ack: &Ack) {
        let seen_at = *self.round_trip_at.get_or_insert(ack.now);
        let expired = ack.now.since(seen_at) > ROUND_TRIP_WINDOW;
        if let Some(sample) = ack.rtt {
            let us = sample.span.as_us().max(1);
            if expired || self.round_trip_us.is_none_or(|least| us <= least) {
                self.round_trip_us = Some(us);
                self.round_trip_at = Some(ack.now);
            }
        }
        if expired && !self.restarting_from_idle && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.save_window();
            self.mode = Mode::ProbeRtt(Dip::Falling);
            self.muted = Some((ack.delivered.get(), ack.delivered.get()));
        }
        self.dip(ack);
        self.restarting_from_idle = false;
    }

    fn dip(&mut self, ack: &Ack) {
        let Mode::ProbeRtt(dip) = &mut self.mode else { return };
        if let Some((_, to)) = &mut self.muted {
            *to = ack.delivered.get() + ack.in_flight.get();
        }
        match dip {
            Dip::Falling if ack.in_flight.get() <= MIN_WINDOW => {
                *dip = Dip::Holding { until: ack.now + PROBE_ROUND_TRIP, round_passed: false };
                self.round_end = ack.delivered.get();
            }
            Dip::Falling => {}
            Dip::Holding { until, round_passed } => {
                *round_passed |= self.round_started;
                if *round_passed && ack.now > *until {
                    self.round_trip_at = Some(ack.now);
                    self.restore_window = true;
                    if self.pipe_is_full {
                        self.probe_bandwidth(ack.now);
                    } else {
                        self.mode = Mode::Startup;
                    }
                }
            }
        }
    }

    /// Notes the last good window.
    fn save_window(&mut self) {
        let in_recovery = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if in_recovery || matches!(self.mode, Mode::ProbeRtt(_)) {
            self.prior_window = self.prior_window.max(self.window);
        } else {
            self.prior_window = self.window;
        }
    }

    /// Losses take their packets out of the window; the first round of recovery sends one packet for each delivered.
    /// True if the window is thereby settled.
    fn recover_or_restore(&mut self, ack: &Ack) -> bool {
        let recovering = |phase| matches!(phase, Phase::Recovery | Phase::Loss);
        if ack.phase == Phase::Recovery && !recovering(self.phase) {
            // `on_congestion` follows, too late for the window that this acknowledgement is about to change.
            self.save_window();
        }
        self.window = self.window.saturating_sub(ack.lost.get()).max(1);
        let held = ack.in_flight.get() + ack.acked.get();
        if ack.phase == Phase::Recovery && self.phase != Phase::Recovery {
            self.conserving = true;
            self.round_end = ack.delivered.get();
            self.window = held.max(1);
        } else if recovering(self.phase) && !recovering(ack.phase) {
            self.restore_window = true;
            self.conserving = false;
        }
        self.phase = ack.phase;
        if core::mem::take(&mut self.restore_window) {
            self.window = self.window.max(self.prior_window);
        }
        if self.conserving {
            self.window = self.window.max(held);
        }
        self.conserving
    }

    fn set_window(&mut self, ack: &Ack) {
        let acked = ack.acked.get();
        if acked > 0 && !self.recover_or_restore(ack) {
            let target = self.target();
            if self.pipe_is_full {
                self.window = (self.window + acked).min(target);
            } else if self.window < target || ack.delivered.get() < FIRST_PACKETS {
                self.window += acked;
            }
            self.window = self.window.max(MIN_WINDOW);
        }
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            self.window = self.window.min(MIN_WINDOW);
        }
    }

    /// The initial window per RTT, or per millisecond while there is none, at Startup's gain.
    /// The handshake's is the first that counts for the least, too (Linux `bbr_init`).
    fn pace_by_round_trip(&mut self, path: &Path) {
        let us = path.srtt.map_or(1_000, |srtt| srtt.as_us().max(1));
        self.paced_by_round_trip = path.srtt.is_some();
        self.round_trip_us = self.round_trip_us.or(path.min_rtt.map(|least| least.as_us().max(1)));
        let bandwidth = self.window.saturating_mul(BANDWIDTH_ONE) / us;
        self.pacing = None;
        self.pace(bandwidth, HIGH_GAIN, path);
    }

    /// Paces at `gain`·`bandwidth`; before the pipe is full the rate only rises.
    fn pace(&mut self, bandwidth: u64, gain: u64, path: &Path) {
        let mut rate = rate_of(bandwidth, gain, self.packet);
        if self.version == Version::Linux6 {
            // 1 % less than the path carries lets a queue drain over time.
            rate = rate.scaled(99, 100);
        }
        if self.pipe_is_full || self.pacing.is_none_or(|now| rate > now) {
            self.pacing = Some(rate.max(Rate::from_bps(1)));
        }
        self.size_bursts(path);
    }

    /// About a millisecond at the pacing rate in one piece (Linux `tcp_tso_autosize`).
    fn size_bursts(&mut self, path: &Path) {
        let rate = self.pacing.unwrap_or(SINGLE_SEGMENT_RATE);
        let least = if rate < SINGLE_SEGMENT_RATE { 1 } else { 2 };
        // Pacing by departure time (Linux 4.20) counts payload alone, as the host does where it sizes pieces.
        let segment = if self.version == Version::Linux6 { self.packet } else { path.mss };
        let millisecond = (rate.as_bps() / 8 / 1_024) / segment.get().max(1);
        self.burst = millisecond.max(least).min(u64::from(path.burst).clamp(1, 127));
    }
}

impl CongestionControl for Bbr {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        if !self.paced_by_round_trip && path.srtt.is_some() {
            self.pace_by_round_trip(path);
        }
        self.delivered = ack.delivered.get();
        self.lost = self.lost.saturating_add(ack.lost.get());
        self.round_started = false;
        let sample = self.sample(ack);
        if let Some(sample) = &sample {
            self.update_bandwidth(ack, sample);
            if self.version == Version::Linux6 {
                let bandwidth = self.bandwidth();
                self.aggregation.update(ack.now, ack.acked.get(), self.round_started, bandwidth, self.window);
            }
        }
        self.advance_cycle(ack, path);
        self.check_full_pipe(sample.is_some_and(|sample| sample.app_limited));
        self.check_drain(ack, path);
        self.update_round_trip(ack);
        self.pace(self.bandwidth(), self.pacing_gain(), path);
        self.set_window(ack);
    }

    /// Losses reduce nothing by a factor: the window is noted, and recovery acts from the next acknowledgement on.
    fn on_congestion(&mut self, _now: Time, cause: Cause, _path: &Path) {
        if cause == Cause::Loss {
            self.save_window();
        }
    }

    /// One packet; the pipe may be another now, and for the policer's model this is a loss that ends a round.
    fn on_timeout(&mut self, now: Time, _repeated: bool, path: &Path) {
        self.save_window();
        self.lost = self.lost.saturating_add(path.in_flight.get());
        self.phase = Phase::Loss;
        self.full_bandwidth = 0;
        self.conserving = false;
        self.window = 1;
        self.round_started = true;
        self.update_long_term(now, 1, false);
    }

    fn on_sent(&mut self, now: Time, sent: &Sent, path: &Path) {
        if !self.paced_by_round_trip && path.srtt.is_some() {
            self.pace_by_round_trip(path);
        }
        if sent.idle.is_some() {
            self.restarting_from_idle = true;
            self.aggregation.begin_epoch(now);
            if matches!(self.mode, Mode::ProbeBandwidth { .. }) {
                // The queue is empty: the bandwidth itself refills the path.
                self.pace(self.bandwidth(), GAIN_ONE, path);
            }
        }
    }

    /// The loss was none: the window is restored, and later kernels forget what it taught.
    fn on_undo(&mut self) {
        self.window = self.window.max(self.prior_window);
        if self.version == Version::Linux6 {
            self.full_bandwidth = 0;
            self.full_rounds = 0;
            self.long_term.reset();
        }
    }

    fn window(&self) -> Packets {
        Packets::new(self.window)
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }

    fn burst(&self) -> Option<Packets> {
        Some(Packets::new(self.burst))
    }
}
