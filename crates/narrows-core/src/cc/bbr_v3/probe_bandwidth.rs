//! The cycle of probing for bandwidth: Down, Cruise, Refill, Up [BBRv3 draft §5.3.3].

use super::{BbrV3, MIN_WINDOW, Sample, ShortTerm, State};
use crate::cc::{Ack, Limit};
use crate::units::{Span, Time};

/// Least wait for the next probe, and what is drawn on top (`T_bbr`) [BBRv3 draft §5.3.3.8.2].
const WAIT: (Span, Span) = (Span::from_secs(2), Span::from_secs(1));
/// Most rounds between two probes; one less by a draw (`T_reno_bound`) [BBRv3 draft §5.3.3.8.2].
const MAX_ROUNDS: u64 = 63;
/// The part of the long-term bound that is left to others while cruising, percent (`Headroom`).
const HEADROOM_PERCENT: u64 = 15;
/// The long-term bound grows by at most 2^30 packets per round.
const MAX_DOUBLINGS: u32 = 30;

/// What the acknowledgements at hand tell of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Acks {
    /// Of what was sent at the bandwidth (`ACKS_INIT`).
    #[default]
    Steady,
    /// The pipe is refilled (`ACKS_REFILLING`).
    Refilling,
    /// More is sent, and its acknowledgements are not yet here (`ACKS_PROBE_STARTING`).
    ProbeStarting,
    /// They are (`ACKS_PROBE_FEEDBACK`).
    ProbeFeedback,
    /// No more is sent, and their last ones are still to come (`ACKS_PROBE_STOPPING`).
    ProbeStopping,
}

/// Where the cycle stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    /// When Down began (`cycle_stamp`), and how long after it the next probe is due (`bw_probe_wait`).
    began: Time,
    pub(super) wait: Span,
    /// Rounds since then (`rounds_since_probe_up`).
    pub(super) rounds: u64,
    pub(super) acks: Acks,
    /// Samples and losses are of packets sent while probing, and were not yet answered (`is_bw_probe_sample`).
    pub(super) is_probe_sample: bool,
    /// The last probe lost too much (`prev_probe_too_high`).
    pub(super) was_too_high: bool,
    /// The last probe stopped where the one before lost too much (`prev_probe_precautionary`).
    was_precautionary: bool,
    /// Rounds in which the long-term bound grew (`bw_probe_up_rounds`).
    doublings: u32,
    /// Packets acknowledged towards its next increment, and per increment (`bw_probe_up_acked`, `probe_up_acked_per_inc`).
    acked: u64,
    per_increment: u64,
}

impl Default for Cycle {
    fn default() -> Cycle {
        Cycle {
            began: Time::ZERO,
            wait: Span::ZERO,
            rounds: 0,
            acks: Acks::Steady,
            is_probe_sample: false,
            was_too_high: false,
            was_precautionary: false,
            doublings: 0,
            acked: 0,
            per_increment: u64::MAX,
        }
    }
}

impl BbrV3 {
    /// Less than the bandwidth, so that the queue drains; and when the next probe is due is drawn (`StartProbeBW_DOWN`).
    pub(super) fn begin_down(&mut self, now: Time) {
        self.losses.forget();
        self.cycle.per_increment = u64::MAX;
        // Senders that share a queue must not probe together (`PickProbeWait`).
        self.cycle.rounds = self.random.below(2);
        self.cycle.wait = WAIT.0 + Span::from_us(self.random.below(WAIT.1.as_us()));
        self.cycle.began = now;
        self.cycle.acks = Acks::ProbeStopping;
        self.begin_round();
        self.state = State::Down;
    }

    /// The pipe is filled before more is sent, or else the first loss would come too soon (`StartProbeBW_REFILL`).
    pub(super) fn begin_refill(&mut self) {
        self.short_term = ShortTerm::default();
        self.cycle.doublings = 0;
        self.cycle.acked = 0;
        self.cycle.was_precautionary = false;
        self.cycle.acks = Acks::Refilling;
        self.begin_round();
        self.state = State::Refill;
    }

    /// More than the bandwidth (`StartProbeBW_UP`).
    fn begin_up(&mut self, sample: Option<&Sample>) {
        self.cycle.is_probe_sample = true;
        self.cycle.acks = Acks::ProbeStarting;
        self.begin_round();
        self.full.restart(sample.map_or(0, |sample| sample.bandwidth));
        self.state = State::Up;
        self.raise_slope();
    }

    /// Moves through the cycle (`UpdateProbeBWCyclePhase`).
    pub(super) fn update_cycle(&mut self, ack: &Ack, sample: Option<&Sample>) {
        if !self.full.reached || self.adapt_long_term(ack, sample) {
            return;
        }
        let (state, in_flight) = (self.state, ack.in_flight.get());
        match state {
            State::Down if self.is_time_to_probe(ack.now) => self.begin_refill(),
            State::Down if self.is_drained(in_flight) => self.state = State::Cruise,
            State::Cruise if self.is_time_to_probe(ack.now) => self.begin_refill(),
            State::Refill if self.rounds.started => self.begin_up(sample),
            State::Up if self.is_time_to_go_down(ack, sample) => {
                self.cycle.was_too_high = false;
                self.begin_down(ack.now);
            }
            _ => {}
        }
    }

    /// What the probe's acknowledgements tell of the bandwidth and the long-term bound; true if that moved the cycle
    /// (`AdaptLongTermModel`).
    fn adapt_long_term(&mut self, ack: &Ack, sample: Option<&Sample>) -> bool {
        if self.cycle.acks == Acks::ProbeStarting && self.rounds.started {
            self.cycle.acks = Acks::ProbeFeedback;
        }
        if self.cycle.acks == Acks::ProbeStopping && self.rounds.started {
            self.cycle.is_probe_sample = false;
            self.cycle.acks = Acks::Steady;
            if self.state.probes_bandwidth() {
                if sample.is_some_and(|sample| !sample.app_limited) {
                    self.advance_bandwidth();
                }
                // As far as the probe before, and nothing was lost: now further [BBRv3 draft §5.3.3.6].
                if self.cycle.was_precautionary && !self.cycle.was_too_high {
                    self.begin_refill();
                    return true;
                }
            }
        }
        if let Some(bound) = self.long_term
            && !sample.is_some_and(Sample::lost_too_much)
        {
            let carried = sample.map_or(0, |sample| sample.in_flight_at_send);
            self.long_term = Some(bound.max(carried));
            if self.state == State::Up {
                self.raise_long_term(ack);
            }
        }
        false
    }

    /// The window is what limits the sender, and the long-term bound limits the window.
    fn is_bounded(&self, ack: &Ack) -> bool {
        ack.limited_by == Limit::Window && self.long_term.is_some_and(|bound| self.window >= bound)
    }

    /// By 1, 2, 4, 8… packets in the rounds of a probe, each spread over its round (`ProbeInflightLongtermUpward`).
    fn raise_long_term(&mut self, ack: &Ack) {
        if !self.is_bounded(ack) {
            return;
        }
        self.cycle.acked = self.cycle.acked.saturating_add(ack.acked.get());
        let increments = self.cycle.acked / self.cycle.per_increment;
        self.cycle.acked -= increments * self.cycle.per_increment;
        self.long_term = self.long_term.map(|bound| bound.saturating_add(increments));
        if self.rounds.started {
            self.raise_slope();
        }
    }

    /// (`RaiseInflightLongtermSlope`.)
    fn raise_slope(&mut self) {
        self.cycle.per_increment = (self.window >> self.cycle.doublings).max(1);
        self.cycle.doublings = (self.cycle.doublings + 1).min(MAX_DOUBLINGS);
    }

    /// After two to three seconds, or after as many rounds as a Reno sender with this window would take to its next loss
    /// (`IsTimeToProbeBW`).
    fn is_time_to_probe(&self, now: Time) -> bool {
        now > self.cycle.began + self.cycle.wait || self.cycle.rounds >= self.target_in_flight().min(MAX_ROUNDS)
    }

    /// Nothing is queued, and some of the long-term bound is left to others (`IsTimeToCruise`).
    fn is_drained(&self, in_flight: u64) -> bool {
        self.with_headroom().is_none_or(|bound| in_flight <= bound)
            && in_flight <= self.in_flight_for(self.max_bandwidth())
    }

    /// More brings no more, or reaches where the last probe lost too much (`IsTimeToGoDown`).
    fn is_time_to_go_down(&mut self, ack: &Ack, sample: Option<&Sample>) -> bool {
        if self.cycle.was_too_high && self.long_term.is_some_and(|bound| ack.in_flight.get() >= bound) {
            self.cycle.was_precautionary = true;
            return true;
        }
        if self.is_bounded(ack) {
            self.full.restart(sample.map_or(0, |sample| sample.bandwidth));
            return false;
        }
        self.full.now
    }

    /// What is wanted in flight (`TargetInflight`).
    pub(super) fn target_in_flight(&self) -> u64 {
        self.bdp().min(self.window)
    }

    /// The long-term bound less the headroom, at least four packets (`InflightWithHeadroom`).
    pub(super) fn with_headroom(&self) -> Option<u64> {
        let bound = self.long_term?;
        let headroom = (bound.saturating_mul(HEADROOM_PERCENT) / 100).max(1);
        Some(bound.saturating_sub(headroom).max(MIN_WINDOW))
    }
}
