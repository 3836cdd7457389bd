//! Startup, which doubles the rate each round until the pipe is full, and Drain [BBRv3 draft §5.3.1, §5.3.2].

use super::bounds::Accelerated;
use super::{BbrV3, Sample, State};
use crate::cc::{Ack, Phase};

/// The pipe is full when so many rounds brought less than a quarter more bandwidth [BBRv3 draft §5.3.1.2].
const FULL_ROUNDS: u32 = 3;
/// Ranges of segments lost in a round from which losses may end Startup (`StartupFullLossCnt`) [BBRv3 draft §5.3.1.3].
const FULL_RANGES: u32 = 6;
/// Drain ends after so many rounds at the latest [BBRv3 draft §5.3.2].
const DRAIN_ROUNDS: u64 = 3;

/// Whether more is delivered the more is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// Bandwidth when it last grew by a quarter (`full_bw`), and rounds since.
    pub(super) bandwidth: u64,
    rounds: u32,
    /// The present acceleration has filled the pipe (`full_bw_now`).
    pub(super) now: bool,
    /// One ever has (`full_bw_reached`).
    pub(super) reached: bool,
}

impl FullPipe {
    /// Begins anew, from this bandwidth.
    pub(super) fn restart(&mut self, bandwidth: u64) {
        *self = FullPipe { bandwidth, rounds: 0, now: false, reached: self.reached };
    }
}

impl BbrV3 {
    /// Looks at whether three rounds brought less than a quarter more (`CheckFullBWReached`).
    pub(super) fn check_full_pipe(&mut self, sample: Option<&Sample>) {
        let Some(sample) = sample.filter(|sample| !sample.app_limited) else { return };
        if self.full.now || !self.rounds.started {
            return;
        }
        if sample.bandwidth >= self.full.bandwidth.saturating_mul(5) / 4 {
            return self.full.restart(sample.bandwidth);
        }
        self.full.rounds += 1;
        self.full.now = self.full.rounds >= FULL_ROUNDS;
        self.full.reached |= self.full.now;
    }

    /// Leaves Startup where the pipe is full (`CheckStartupDone`).
    pub(super) fn check_startup(&mut self, ack: &Ack, sample: Option<&Sample>) {
        self.check_losses_in_startup(ack, sample);
        if self.state == State::Startup && self.full.reached {
            self.state = State::Drain { since: self.rounds.count };
        }
    }

    /// A round of recovery that lost over 2 % in six ranges or more ends it, too: the first round of recovery is whole then,
    /// because the first loss began it (`CheckStartupHighLoss`).
    fn check_losses_in_startup(&mut self, ack: &Ack, sample: Option<&Sample>) {
        if !self.losses.round_started {
            return;
        }
        let ranges = self.losses.take_ranges();
        if self.full.reached
            || ack.phase != Phase::Recovery
            || ranges < FULL_RANGES
            || !sample.is_some_and(Sample::lost_too_much)
        {
            return;
        }
        self.undo.state = Some(Accelerated::Startup);
        self.full.reached = true;
        self.long_term = Some(self.bdp().max(self.losses.in_flight_latest));
    }

    /// Leaves Drain where the queue is empty (`CheckDrainDone`).
    pub(super) fn check_drain(&mut self, ack: &Ack) {
        let State::Drain { since } = self.state else { return };
        if ack.in_flight.get() <= self.in_flight_for(self.bandwidth()) || self.rounds.count > since + DRAIN_ROUNDS {
            self.begin_down(ack.now);
        }
    }
}
