//! How many packets acknowledgements bring at once beyond the bandwidth [Linux `tcp_bbr.c` since 5.1].
//!
//! Receivers and links that acknowledge in bursts leave a window of two bandwidth-delay products idle between bursts;
//! the excess seen over the last 5 to 10 rounds is added to it.

use super::BANDWIDTH_ONE;
use crate::units::Time;

/// Rounds in each of the two halves of the window of maxima.
const HALF_ROUNDS: u32 = 5;
/// An epoch ends at this many packets, old as it must be.
const EPOCH_PACKETS: u64 = 1 << 20;
/// The allowance is at most 100 ms at the bandwidth.
const MAX_US: u64 = 100_000;

/// The excess over the expectation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    epoch_start: Time,
    epoch_acked: u64,
    /// Greatest excess of the present half window and of the one before, packets.
    present: u64,
    previous: u64,
    rounds: u32,
}

impl Aggregation {
    /// Takes an acknowledgement into account; `bandwidth` in packets per microsecond, Q24.
    pub(super) fn update(&mut self, now: Time, acked: u64, round_started: bool, bandwidth: u64, window: u64) {
        if acked == 0 {
            return;
        }
        if round_started {
            self.rounds += 1;
            if self.rounds >= HALF_ROUNDS {
                self.rounds = 0;
                self.previous = core::mem::take(&mut self.present);
            }
        }
        let mut expected = bandwidth.saturating_mul(now.since(self.epoch_start).as_us()) / BANDWIDTH_ONE;
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EPOCH_PACKETS {
            self.begin_epoch(now);
            expected = 0;
        }
        self.epoch_acked = (self.epoch_acked + acked).min(EPOCH_PACKETS - 1);
        let excess = self.epoch_acked.saturating_sub(expected).min(window);
        self.present = self.present.max(excess);
    }

    /// After a pause nothing is expected of the time before.
    pub(super) fn begin_epoch(&mut self, now: Time) {
        self.epoch_start = now;
        self.epoch_acked = 0;
    }

    /// Packets to add to the window.
    pub(super) fn allowance(&self, bandwidth: u64) -> u64 {
        let most = bandwidth.saturating_mul(MAX_US) / BANDWIDTH_ONE;
        self.present.max(self.previous).min(most)
    }
}
