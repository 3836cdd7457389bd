//! BBR version 3: a model of the path from its bandwidth, its minimum RTT and its losses [BBRv3 draft].
//!
//! ```text
//!          full pipe, or      in flight ≤ BDP,            drained            2 to 3 s, or as many rounds
//!          2 % of losses      or three rounds                                as Reno's window has packets
//! Startup ─────────────▶ Drain ─────────────▶ Down ─────────────▶ Cruise ─────────────┐
//!    ▲                                         ▲                                      ▼
//!    │ pipe not yet full                       └────────── Up ◀─────────────────── Refill
//!    │                                         full pipe, 2 % of losses       a round
//!    └── ProbeRtt ──▶ Cruise                   or what was lost at before
//!           ▲
//!           └── from any state, when no lower RTT was seen for 5 s; after 200 ms and a round
//! ```
//!
//! Two pairs of bounds limit bandwidth and packets in flight: the long-term ones come from probing, and the short-term ones
//! from losses since the last probe. Losses of up to 2 % of what was in flight are taken for noise while probing.
//!
//! Bandwidth is in packets per microsecond, Q24, gains in hundredths, RTTs in whole microseconds. Names of the draft stand in
//! the comments of the fields.

use super::parts::bandwidth;
use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Lost, Owner, Path, Phase, RateSample, Sent, Spec,
    parameters,
};
use crate::rng::SmallStream;
use crate::units::{Bytes, Packets, Rate, Time};
use aggregation::Aggregation;
use bounds::{LossRound, ShortTerm, Undo};
use probe_bandwidth::Cycle;
use probe_rtt::{Dip, MinRtt};
use startup::FullPipe;

mod aggregation;
mod bounds;
mod control;
mod probe_bandwidth;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "bbr-v3",
    title: "BBRv3",
    about: "Models the path by its bandwidth, minimum RTT and losses, and keeps within what it could carry.",
    source: "BBRv3 draft",
    ecn: EcnUse::Optional,
    kernel: Kernel::None,
    needs_delivery_rate: true,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: true,
    ordered: &[],
    parameters: parameters! {},
};

/// One, of gains.
const GAIN_ONE: u64 = 100;
/// The smallest window while acknowledgements come: enough for two delayed ones (`MinPipeCwnd`) [BBRv3 draft §5.6.4.3].
const MIN_WINDOW: u64 = 4;
const PS_PER_US: u128 = 1_000_000;

/// Where the sender stands; see the diagram above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain {
        /// The round in which it began (`drain_start_round`).
        since: u64,
    },
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt(Dip),
}

impl State {
    /// One of the four in which long-lived senders spend their time.
    const fn probes_bandwidth(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// More is sent than before, so that losses are no news (`IsProbingBW`).
    const fn accelerates(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }
}

/// Rounds: from a transmission to its acknowledgement [BBRv3 draft §5.5.1].
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u64,
    /// The round ends when a packet sent at or after this delivered count is delivered (`next_round_delivered`).
    end: u64,
    /// The acknowledgement at hand began one.
    started: bool,
}

/// A delivery-rate sample, and its bandwidth.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Packets per microsecond, Q24.
    bandwidth: u64,
    delivered: u64,
    prior_delivered: u64,
    app_limited: bool,
    in_flight_at_send: u64,
    lost_since_send: u64,
}

impl Sample {
    fn of(sample: &RateSample) -> Option<Sample> {
        let delivered = sample.delivered.get();
        let ps = Some(sample.interval.as_ps()).filter(|&ps| ps > 0)?;
        // Not by whole microseconds: the greatest sample counts, and at 13 µs that would be 8 % too much.
        let bandwidth = u128::from(delivered) * u128::from(bandwidth::BANDWIDTH_ONE) * PS_PER_US / u128::from(ps);
        Some(Sample {
            bandwidth: u64::try_from(bandwidth).unwrap_or(u64::MAX),
            delivered,
            prior_delivered: sample.prior_delivered.get(),
            app_limited: sample.app_limited,
            in_flight_at_send: sample.in_flight_at_send.get(),
            lost_since_send: sample.lost_since_send.get(),
        })
    }
}

/// The state of one sender.
#[derive(Clone, Debug)]
pub struct BbrV3 {
    random: SmallStream,
    initial_window: u64,
    packet: Bytes,
    state: State,
    /// Packets (`cwnd`).
    window: u64,
    /// The window before recovery or ProbeRtt (`prior_cwnd`).
    prior_window: u64,
    restore_window: bool,
    pacing: Option<Rate>,
    /// Whether `pacing` rests on a measured RTT.
    paced_by_rtt: bool,
    /// Segments to hand to the port in one piece (`send_quantum`).
    burst: u64,

    rounds: Rounds,
    /// The greatest bandwidth of the cycle before this one, and of this one (`max_bw_filter`).
    bandwidths: [u64; 2],
    full: FullPipe,
    cycle: Cycle,
    rtt: MinRtt,
    aggregation: Aggregation,
    losses: LossRound,
    short_term: ShortTerm,
    /// Most packets that seem to fit the path (`inflight_longterm`).
    long_term: Option<u64>,
    undo: Undo,
    restarting_from_idle: bool,
    /// Samples of packets sent at these delivered counts were taken in ProbeRtt and count as application-limited.
    muted: Option<(u64, u64)>,

    phase: Phase,
    /// Packets, over the connection's life.
    delivered: u64,
}

const fn recovers(phase: Phase) -> bool {
    matches!(phase, Phase::Recovery | Phase::Loss)
}

impl BbrV3 {
    /// A sender in Startup.
    pub fn new(context: &Context<'_>) -> BbrV3 {
        let path = context.path;
        let initial_window = path.initial_window.get().max(1);
        let mut bbr = BbrV3 {
            random: context.random,
            initial_window,
            packet: path.packet,
            state: State::Startup,
            window: initial_window,
            prior_window: 0,
            restore_window: false,
            pacing: None,
            paced_by_rtt: false,
            burst: 1,
            rounds: Rounds::default(),
            bandwidths: [0; 2],
            full: FullPipe::default(),
            cycle: Cycle::default(),
            rtt: MinRtt::default(),
            aggregation: Aggregation::default(),
            losses: LossRound::default(),
            short_term: ShortTerm::default(),
            long_term: None,
            undo: Undo::default(),
            restarting_from_idle: false,
            muted: None,
            phase: Phase::Open,
            delivered: 0,
        };
        bbr.begin_pacing(path);
        bbr
    }

    /// The greatest bandwidth of this cycle and the one before (`max_bw`), packets per microsecond, Q24.
    fn max_bandwidth(&self) -> u64 {
        self.bandwidths[0].max(self.bandwidths[1])
    }

    /// The bandwidth in use (`bw`) [BBRv3 draft §5.5.10.3].
    fn bandwidth(&self) -> u64 {
        self.short_term.bandwidth.map_or(self.max_bandwidth(), |bound| bound.min(self.max_bandwidth()))
    }

    /// `gain`·`bandwidth`·minimum RTT in packets; the initial window before there was an RTT (`BDPMultiple`).
    fn product(&self, bandwidth: u64, gain: u64) -> u64 {
        self.rtt.ns.map_or(self.initial_window, |ns| bandwidth::product(bandwidth, ns, gain, GAIN_ONE * 1_000))
    }

    /// The bandwidth-delay product (`bdp`).
    fn bdp(&self) -> u64 {
        self.product(self.bandwidth(), GAIN_ONE)
    }

    /// The sample, if it says something; those of ProbeRtt count as application-limited (`MarkConnectionAppLimited`)
    /// [BBRv3 draft §5.3.4.3].
    fn sample(&self, ack: &Ack) -> Option<Sample> {
        let mut sample = Sample::of(ack.delivery.as_ref()?)?;
        if let Some((from, to)) = self.muted {
            sample.app_limited |= (from..=to).contains(&sample.prior_delivered);
        }
        Some(sample)
    }

    /// A round begins with what is sent from now on (`StartRound`).
    fn begin_round(&mut self) {
        self.rounds.end = self.delivered;
    }

    fn update_round(&mut self, sample: &Sample) {
        if sample.prior_delivered >= self.rounds.end {
            self.begin_round();
            self.rounds.count += 1;
            self.rounds.started = true;
            self.cycle.rounds = self.cycle.rounds.saturating_add(1);
        }
    }

    /// A sample that the application limited can only be too low (`UpdateMaxBw`) [BBRv3 draft §5.5.5].
    fn update_bandwidth(&mut self, sample: &Sample) {
        if sample.bandwidth >= self.max_bandwidth() || !sample.app_limited {
            self.bandwidths[1] = self.bandwidths[1].max(sample.bandwidth);
        }
    }

    /// A cycle is over: what was measured before the last one is forgotten, unless this one measured nothing
    /// (`AdvanceMaxBwFilter`) [Google BBRv3 `bbr_advance_max_bw_filter`].
    fn advance_bandwidth(&mut self) {
        if self.bandwidths[1] > 0 {
            self.bandwidths = [self.bandwidths[1], 0];
        }
    }

    /// The handshake's RTT is the first, and time begins.
    fn learn_path(&mut self, now: Time, path: &Path) {
        self.rtt.begin(now, path.min_rtt);
        if !self.paced_by_rtt && path.srtt.is_some() {
            self.begin_pacing(path);
        }
    }

    /// The application paused, and the queue is empty: the bandwidth itself refills the path (`HandleRestartFromIdle`)
    /// [BBRv3 draft §5.4.1].
    fn restart_from_idle(&mut self, now: Time) {
        self.restarting_from_idle = true;
        self.aggregation.begin_interval(now);
        if self.state.probes_bandwidth() {
            self.pace(GAIN_ONE);
        } else {
            self.end_probe_rtt_if_due(now);
        }
    }
}

impl CongestionControl for BbrV3 {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.learn_path(ack.now, path);
        self.delivered = ack.delivered.get();
        self.rounds.started = false;
        self.losses.round_started = false;
        if recovers(self.phase) && !recovers(ack.phase) {
            self.restore_window = true;
        }
        self.phase = ack.phase;

        let sample = self.sample(ack);
        if let Some(sample) = &sample {
            self.update_latest(sample);
            self.update_round(sample);
            self.update_bandwidth(sample);
            self.adapt_short_term();
        }
        self.update_aggregation(ack);
        self.check_full_pipe(sample.as_ref());
        self.check_startup(ack, sample.as_ref());
        self.check_drain(ack);
        self.update_cycle(ack, sample.as_ref());
        self.update_min_rtt(ack);
        self.check_probe_rtt(ack);
        self.advance_latest(sample.as_ref());
        self.end_episode();

        self.pace(self.pacing_gain());
        self.size_bursts(path);
        self.set_window(ack.acked.get());
    }

    fn on_lost(&mut self, lost: &Lost, _path: &Path) {
        self.delivered = lost.delivered.get();
        self.losses.count(lost.segment);
        self.note_loss();
        self.judge_lost(lost);
    }

    /// What was lost was told before, but for a loss that a tail loss probe recovered.
    fn on_congestion(&mut self, _now: Time, cause: Cause, _path: &Path) {
        if cause == Cause::Loss && !recovers(self.phase) {
            self.note_loss();
        }
    }

    /// One packet (`OnEnterRTO`) [BBRv3 draft §5.6.4.4].
    fn on_timeout(&mut self, _now: Time, _repeated: bool, _path: &Path) {
        self.save_for_undo();
        self.bound_before_timeout();
        self.phase = Phase::Loss;
        self.window = 1;
    }

    fn on_sent(&mut self, now: Time, sent: &Sent, path: &Path) {
        self.learn_path(now, path);
        if sent.idle.is_some() {
            self.restart_from_idle(now);
        }
    }

    fn on_undo(&mut self) {
        self.undo_losses();
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
