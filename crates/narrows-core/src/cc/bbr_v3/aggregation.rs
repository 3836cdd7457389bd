//! How many packets acknowledgements bring beyond the bandwidth (`extra_acked`) [BBRv3 draft §5.5.9].
//!
//! Receivers and links that acknowledge in bursts leave a window of two bandwidth-delay products idle between bursts; the
//! excess seen lately is added to it.

use super::BbrV3;
use crate::cc::Ack;
use crate::cc::parts::bandwidth::BANDWIDTH_ONE;
use crate::cc::parts::windowed::WindowedMax;
use crate::units::Time;

/// Rounds over which the greatest excess counts once the pipe is full, and before (`ExtraAckedFilterLen`).
const ROUNDS: (u64, u64) = (10, 1);

/// The excess over the expectation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    interval_start: Time,
    acked: u64,
    /// Packets, on a clock of rounds.
    excess: WindowedMax,
}

impl Default for Aggregation {
    fn default() -> Aggregation {
        Aggregation { interval_start: Time::ZERO, acked: 0, excess: WindowedMax::new(ROUNDS.1) }
    }
}

impl Aggregation {
    /// After a pause nothing is expected of the time before.
    pub(super) fn begin_interval(&mut self, now: Time) {
        (self.interval_start, self.acked) = (now, 0);
    }

    /// Packets to add to the window.
    pub(super) fn excess(&self) -> u64 {
        self.excess.value()
    }

    fn update(&mut self, ack: &Ack, bandwidth: u64, window: u64, round: u64, rounds: u64) {
        let us = ack.now.since(self.interval_start).as_us();
        let mut expected = bandwidth.saturating_mul(us) / BANDWIDTH_ONE;
        if self.acked <= expected {
            (self.acked, expected) = (0, 0);
            self.interval_start = ack.now;
        }
        self.acked = self.acked.saturating_add(ack.acked.get());
        self.excess.set_window(rounds);
        self.excess.update(round, self.acked.saturating_sub(expected).min(window));
    }
}

impl BbrV3 {
    pub(super) fn update_aggregation(&mut self, ack: &Ack) {
        let rounds = if self.full.reached { ROUNDS.0 } else { ROUNDS.1 };
        let bandwidth = self.bandwidth();
        self.aggregation.update(ack, bandwidth, self.window, self.rounds.count, rounds);
    }
}
