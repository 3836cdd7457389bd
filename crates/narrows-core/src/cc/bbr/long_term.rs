//! The long-term model: a policer shows as heavy loss at a constant rate [BBR; Linux `tcp_bbr.c`].
//!
//! ```text
//! Idle ──loss──▶ Sampling ──4..=16 rounds, ended by a loss, lost/delivered ≥ 50/256──▶ next interval
//!  ▲                │                                   │ two intervals of nearly the same rate
//!  │  too long, or  │                                   ▼
//!  └─ app-limited ──┘          48 rounds ◀────────── Policed(rate)
//! ```

use super::{BANDWIDTH_ONE, GAIN_ONE, rate_of};
use crate::units::{Bytes, Rate, Time};

/// Rounds that an interval lasts at least; four times as many at most.
const MIN_ROUNDS: u32 = 4;
/// Lost per delivered packets that make an interval a policer's, in 1/256.
const LOSS_THRESHOLD: u64 = 50;
/// Two intervals agree if their rates differ by at most 1/8, or by 4 kbit/s.
const RATIO: u64 = GAIN_ONE / 8;
const DIFFERENCE: Rate = Rate::from_bps(4_000);
/// Rounds that the rate is used before the path is probed again.
const POLICED_ROUNDS: u32 = 48;

/// What one acknowledgement tells this model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) now: Time,
    pub(super) round_started: bool,
    pub(super) losses: u64,
    pub(super) app_limited: bool,
    pub(super) probing_bandwidth: bool,
    /// Over the connection's life, packets.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) packet: Bytes,
}

/// The start of a sampling interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    start: Time,
    delivered: u64,
    lost: u64,
    rounds: u32,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Idle,
    Sampling {
        interval: Interval,
        /// Rate of the interval before, packets per microsecond in Q24.
        earlier: Option<u64>,
    },
    Policed {
        rate: u64,
        rounds: u32,
    },
}

/// The long-term bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTerm(State);

impl LongTerm {
    /// The policer's rate, if there seems to be one.
    pub(super) fn rate(&self) -> Option<u64> {
        if let State::Policed { rate, .. } = self.0 { Some(rate) } else { None }
    }

    pub(super) fn reset(&mut self) {
        self.0 = State::Idle;
    }

    /// Takes an acknowledgement into account. True if the rate was just given up, and probing starts again.
    pub(super) fn update(&mut self, facts: &Facts) -> bool {
        match &mut self.0 {
            State::Policed { rounds, .. } => {
                if facts.probing_bandwidth && facts.round_started {
                    *rounds += 1;
                    if *rounds >= POLICED_ROUNDS {
                        self.0 = State::Idle;
                        return true;
                    }
                }
            }
            // Waiting for the first loss lets the policer's tokens run out.
            State::Idle if facts.losses > 0 => {
                self.0 = State::Sampling { interval: Interval::at(facts), earlier: None };
                self.sample(facts);
            }
            State::Idle => {}
            State::Sampling { .. } => self.sample(facts),
        }
        false
    }

    fn sample(&mut self, facts: &Facts) {
        let State::Sampling { interval, earlier } = &mut self.0 else { return };
        if facts.app_limited {
            return self.reset();
        }
        interval.rounds += u32::from(facts.round_started);
        if interval.rounds < MIN_ROUNDS {
            return;
        }
        if interval.rounds > 4 * MIN_ROUNDS {
            return self.reset();
        }
        // An interval ends at a loss too, when the tokens have run out again.
        let lost = facts.lost.saturating_sub(interval.lost);
        let delivered = facts.delivered.saturating_sub(interval.delivered);
        let span_us = facts.now.since(interval.start).as_us();
        if facts.losses == 0 || delivered == 0 || lost << 8 < LOSS_THRESHOLD * delivered || span_us < 1_000 {
            return;
        }
        let rate = delivered.saturating_mul(BANDWIDTH_ONE) / span_us;
        if let Some(earlier) = *earlier
            && agree(rate, earlier, facts.packet)
        {
            self.0 = State::Policed { rate: rate.midpoint(earlier), rounds: 0 };
        } else {
            self.0 = State::Sampling { interval: Interval::at(facts), earlier: Some(rate) };
        }
    }
}

impl Interval {
    fn at(facts: &Facts) -> Interval {
        Interval { start: facts.now, delivered: facts.delivered, lost: facts.lost, rounds: 0 }
    }
}

fn agree(rate: u64, earlier: u64, packet: Bytes) -> bool {
    let difference = rate.abs_diff(earlier);
    difference.saturating_mul(GAIN_ONE) <= earlier.saturating_mul(RATIO)
        || rate_of(difference, GAIN_ONE, packet) <= DIFFERENCE
}
