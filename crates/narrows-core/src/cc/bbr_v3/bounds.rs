//! What losses say: the short-term bounds of what can be sent now, the long-term bound of what fits the path, and how both are
//! restored where no packet was lost after all [BBRv3 draft §5.5.10, §5.5.11].

use super::{BbrV3, Sample, State, recovers};
use crate::cc::{Lost, Phase};
use crate::units::Time;

/// Losses of more than one packet in so many in flight are too many: 2 % (`LossThresh`).
const IN_FLIGHT_PER_LOSS: u64 = 50;
/// The factor of a decrease in tenths (`Beta`).
const BETA_TENTHS: u64 = 7;

/// What could be delivered since the last probe for bandwidth (`bw_shortterm`, `inflight_shortterm`); `None` is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ShortTerm {
    /// Packets per microsecond, Q24.
    pub(super) bandwidth: Option<u64>,
    /// Packets.
    pub(super) in_flight: Option<u64>,
}

/// What the present round delivered, and its losses. A round of this clock begins with a loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossRound {
    /// It ends when a packet sent at or after this delivered count is delivered (`loss_round_delivered`).
    end: u64,
    /// The acknowledgement at hand began one.
    pub(super) round_started: bool,
    /// Something was lost in it (`is_loss_in_round`).
    has_lost: bool,
    /// The greatest bandwidth and the most packets that a sample of this round delivered (`bw_latest`, `inflight_latest`).
    bandwidth_latest: u64,
    pub(super) in_flight_latest: u64,
    /// Runs of neighbouring segments lost in it, and the number after the last one's end.
    ranges: u32,
    range_end: Option<u64>,
}

impl Default for LossRound {
    fn default() -> LossRound {
        LossRound {
            end: 1,
            round_started: false,
            has_lost: false,
            bandwidth_latest: 0,
            in_flight_latest: 0,
            ranges: 0,
            range_end: None,
        }
    }
}

impl LossRound {
    /// A segment was lost.
    pub(super) fn count(&mut self, segment: u64) {
        if self.range_end != Some(segment) {
            self.ranges = self.ranges.saturating_add(1);
        }
        self.range_end = Some(segment + 1);
    }

    /// Ranges lost in the round that ends.
    pub(super) fn take_ranges(&mut self) -> u32 {
        self.range_end = None;
        core::mem::take(&mut self.ranges)
    }

    /// Forgets what was lost and delivered (`ResetCongestionSignals`).
    pub(super) fn forget(&mut self) {
        self.has_lost = false;
        self.bandwidth_latest = 0;
        self.in_flight_latest = 0;
    }
}

/// A state that losses may have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accelerated {
    Startup,
    Up,
}

/// What an undo restores (`undo_*`): what was before the first loss of an episode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// Of an episode that is not over.
    is_saved: bool,
    pub(super) state: Option<Accelerated>,
    short_term: ShortTerm,
    long_term: Option<u64>,
}

impl Sample {
    /// Over the RTT of the sampled packet (`IsInflightTooHigh`).
    pub(super) fn lost_too_much(&self) -> bool {
        is_too_much(self.lost_since_send, self.in_flight_at_send)
    }
}

fn is_too_much(lost: u64, in_flight: u64) -> bool {
    lost.saturating_mul(IN_FLIGHT_PER_LOSS) > in_flight
}

/// Packets in flight at which losses crossed the threshold, which may be within the packet that was lost (`InflightAtLoss`):
/// the least x with (losses before + x)/(in flight before + x) ≥ 2 %, whole packets, added to those before.
fn in_flight_at_loss(lost: &Lost) -> u64 {
    let before = lost.in_flight_at_send.get().saturating_sub(1);
    let lost_before = lost.lost_since_send.get().saturating_sub(1);
    before + before.saturating_sub(lost_before.saturating_mul(IN_FLIGHT_PER_LOSS)) / (IN_FLIGHT_PER_LOSS - 1)
}

/// The larger bound; `None` is none.
fn wider(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.max(other?))
}

impl BbrV3 {
    /// At the begin of an acknowledgement (`UpdateLatestDeliverySignals`).
    pub(super) fn update_latest(&mut self, sample: &Sample) {
        let losses = &mut self.losses;
        losses.bandwidth_latest = losses.bandwidth_latest.max(sample.bandwidth);
        losses.in_flight_latest = losses.in_flight_latest.max(sample.delivered);
        if sample.prior_delivered >= losses.end {
            losses.end = self.delivered;
            losses.round_started = true;
        }
    }

    /// At its end (`AdvanceLatestDeliverySignals`).
    pub(super) fn advance_latest(&mut self, sample: Option<&Sample>) {
        if let Some(sample) = sample.filter(|_| self.losses.round_started) {
            self.losses.bandwidth_latest = sample.bandwidth;
            self.losses.in_flight_latest = sample.delivered;
        }
    }

    /// Once per round that lost something, unless losses are to be expected: down to what was delivered, but not below 0.7 of
    /// what was allowed (`AdaptLowerBoundsFromCongestion`).
    pub(super) fn adapt_short_term(&mut self) {
        if !self.losses.round_started {
            return;
        }
        if core::mem::take(&mut self.losses.has_lost) && !self.state.accelerates() {
            let bandwidth = self.short_term.bandwidth.unwrap_or(self.max_bandwidth());
            let in_flight = self.short_term.in_flight.unwrap_or(self.window);
            let cut = |bound: u64| bound.saturating_mul(BETA_TENTHS) / 10;
            self.short_term = ShortTerm {
                bandwidth: Some(self.losses.bandwidth_latest.max(cut(bandwidth))),
                in_flight: Some(self.losses.in_flight_latest.max(cut(in_flight))),
            };
        }
    }

    /// A loss: a round of losses begins with the first (`NoteLoss`).
    pub(super) fn note_loss(&mut self) {
        if !self.losses.has_lost {
            self.losses.end = self.delivered;
            self.save_for_undo();
        }
        self.losses.has_lost = true;
    }

    /// Of a packet lost while probing for bandwidth: whether too many were (`HandleLostPacket`).
    pub(super) fn judge_lost(&mut self, lost: &Lost) {
        let (lost_since, in_flight) = (lost.lost_since_send.get(), lost.in_flight_at_send.get());
        if self.cycle.is_probe_sample && is_too_much(lost_since, in_flight) {
            self.bound_in_flight(lost.now, in_flight_at_loss(lost), lost.app_limited);
        }
    }

    /// So many in flight were too many (`HandleInflightTooHigh`).
    fn bound_in_flight(&mut self, now: Time, in_flight: u64, app_limited: bool) {
        self.cycle.was_too_high = true;
        // One answer per probe.
        self.cycle.is_probe_sample = false;
        if !app_limited {
            self.long_term = Some(in_flight.max(self.target_before_timeout().saturating_mul(BETA_TENTHS) / 10));
        }
        if self.state == State::Up {
            self.undo.state = Some(Accelerated::Up);
            self.begin_down(now);
        }
    }

    /// (`TargetInflight`); a timeout that has just left one packet says nothing of the path.
    fn target_before_timeout(&self) -> u64 {
        match self.phase {
            Phase::Loss => self.bdp().min(self.prior_window.max(self.window)),
            _ => self.target_in_flight(),
        }
    }

    /// After a timeout the window is none that the path was seen to refuse: the short-term bound begins at the one before
    /// [Google BBRv3 `bbr_set_state`].
    pub(super) fn bound_before_timeout(&mut self) {
        if !self.state.accelerates() {
            let window = self.window.max(self.prior_window);
            self.short_term.in_flight.get_or_insert(window);
        }
    }

    /// Notes the last good window (`SaveCwnd`).
    pub(super) fn save_window(&mut self) {
        if recovers(self.phase) || matches!(self.state, State::ProbeRtt(_)) {
            self.prior_window = self.prior_window.max(self.window);
        } else {
            self.prior_window = self.window;
        }
    }

    /// Notes what an undo restores (`SaveStateUponLoss`), once an episode: later losses of it find bounds that the first have
    /// lowered.
    pub(super) fn save_for_undo(&mut self) {
        self.save_window();
        if !self.undo.is_saved {
            self.undo = Undo { is_saved: true, state: None, short_term: self.short_term, long_term: self.long_term };
        }
    }

    /// Nothing is lost now, and no round with losses is going on: the next loss begins an episode.
    pub(super) fn end_episode(&mut self) {
        if !recovers(self.phase) && !self.losses.has_lost {
            self.undo.is_saved = false;
        }
    }

    /// Nothing was lost after all (`HandleSpuriousLossDetection`).
    pub(super) fn undo_losses(&mut self) {
        self.window = self.window.max(self.prior_window);
        self.losses.has_lost = false;
        self.undo.is_saved = false;
        self.full.restart(0);
        self.short_term = ShortTerm {
            bandwidth: wider(self.short_term.bandwidth, self.undo.short_term.bandwidth),
            in_flight: wider(self.short_term.in_flight, self.undo.short_term.in_flight),
        };
        self.long_term = wider(self.long_term, self.undo.long_term);
        let dips = matches!(self.state, State::ProbeRtt(_));
        match self.undo.state.take() {
            Some(Accelerated::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if !dips {
                    self.state = State::Startup;
                }
            }
            Some(Accelerated::Up) if self.state != State::Up && !dips => self.begin_refill(),
            _ => {}
        }
    }
}
