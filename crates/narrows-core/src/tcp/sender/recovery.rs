//! Loss recovery: which segments are lost, the episodes that answer a loss, an echo or a timeout, and their undo.

use super::{DUPLICATE_THRESHOLD, Sender, TICK};
use crate::cc::{Cause, Owner, Phase};
use crate::packet::Seq;
use crate::tcp::profile::LossDetection;
use crate::tcp::rate::Stamp;
use crate::tcp::reduction::Reduction;
use crate::tcp::scoreboard::{Delivered, Losses, Scoreboard};
use crate::tcp::{EcnMode, Stack};
use crate::units::{Span, Time};

/// Linux's bound on the reordering degree (`tcp_max_reordering`).
const MAX_REORDERING: u16 = 300;
/// Least wait for reordering before an early retransmission (Linux `tcp_pause_early_retransmit`).
const EARLY_RETRANSMIT_WAIT: Span = Span::from_ms(2);

/// How a reduction or timeout may still turn out to have been spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct UndoState {
    /// First byte outstanding when it began: duplicates of earlier data do not speak of it (Linux `undo_marker`).
    pub(super) since: Seq,
    /// Whether the window is restored too: no echo of congestion came meanwhile (Linux `prior_ssthresh`).
    pub(super) restores: bool,
    /// Whether something was retransmitted.
    pub(super) resent: bool,
    /// Retransmissions whose duplicate the receiver has not reported (Linux `undo_retrans`).
    pub(super) unreported: u32,
}

impl UndoState {
    /// Whether all that was retransmitted was a duplicate.
    pub(super) const fn is_all_reported(&self) -> bool {
        self.resent && self.unreported == 0
    }
}

/// How many quarters of the minimum RTT RACK allows for reordering: one more for each RTT with a report of a
/// duplicate, back to one after sixteen recoveries without [RFC 8985 §6.2 step 4].
#[derive(Clone, Copy, Debug)]
pub(super) struct ReorderWindow {
    quarters: u8,
    /// `nxt` at the last widening.
    until: Seq,
    recoveries_left: u8,
}

impl ReorderWindow {
    pub(super) const NONE: ReorderWindow = ReorderWindow { quarters: 1, until: Seq::SYN, recoveries_left: 0 };

    pub(super) fn widen(&mut self, una: Seq, nxt: Seq) {
        if una >= self.until {
            *self = ReorderWindow { quarters: self.quarters.saturating_add(1), until: nxt, recoveries_left: 16 };
        }
    }

    fn end_recovery(&mut self) {
        self.recoveries_left = self.recoveries_left.saturating_sub(1);
        if self.recoveries_left == 0 {
            self.quarters = 1;
        }
    }
}

/// A probe of the tail that is not yet judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// `nxt` when it had left [RFC 8985 §7.3 TLP.end_seq].
    pub(super) high: Seq,
    /// It was a retransmission.
    pub(super) resent: bool,
}

impl Sender {
    /// Remembers the latest transmission known delivered [RFC 8985 §6.2 step 2].
    #[inline(always)]
    pub(super) fn notice_latest(&mut self, now: Time, delivered: &Delivered) {
        if delivered.reordered_by > 0 {
            self.notice_reordering(delivered.reordered_by);
        }
        let Some((sent_at, end, resent)) = delivered.latest else { return };
        let span = now.since(sent_at);
        if resent && self.rtt.min().is_some_and(|least| span < least) {
            // Too soon to be the answer to the retransmission: it acknowledges the original.
            return;
        }
        if (sent_at, end) > self.latest {
            self.latest = (sent_at, end);
            self.latest_rtt = span;
        }
    }

    /// A segment arrived after one that lay `distance` above it in the stream.
    fn notice_reordering(&mut self, distance: u32) {
        let degree = u16::try_from(distance.saturating_add(1)).unwrap_or(u16::MAX);
        self.reordering = self.reordering.max(degree).min(MAX_REORDERING);
        self.reordering_seen = true;
    }

    /// Runs the profile's detectors. `waited` if no more time is to be given to reordering before an early retransmission.
    pub(super) fn find_losses(&mut self, now: Time, waited: bool, stack: &Stack) -> Losses {
        self.reorder_timer = Time::NEVER;
        let Losses { mut found, mut resent } = Losses::default();
        if self.board.outstanding() == 0 {
            return Losses { found, resent };
        }
        if stack.profile.loss_detection != LossDetection::Rack && self.board.sacked() > 0 {
            // Linux 4.9 counts holes too until reordering has raised the threshold (`tcp_is_fack`).
            let forward = stack.profile.loss_detection == LossDetection::DuplicateAcksThenTime
                && self.reordering == DUPLICATE_THRESHOLD;
            found += self.lose_by_count(now, self.reordering.into(), forward);
            if found == 0 {
                found += self.retransmit_early(now, waited, stack);
            }
        }
        let by_time = stack.profile.loss_detection != LossDetection::DuplicateAcks;
        if by_time && self.latest_rtt > Span::ZERO {
            let only_resent = stack.profile.loss_detection == LossDetection::DuplicateAcksThenTime;
            let wait = self.latest_rtt + self.reordering_window(only_resent);
            let (latest, una) = (self.latest, self.una);
            let (late, next) =
                self.telling(now, |board, tell| board.lose_by_time(now, latest, wait, only_resent, una, tell));
            found += late.found;
            resent = late.resent;
            if !only_resent && let Some(next) = next {
                self.reorder_timer = self.reordering_timer(now, next, stack);
            }
        }
        Losses { found, resent }
    }

    /// Runs a detector; the controller hears of each transmission that it finds lost, where delivery rates are wanted.
    fn telling<T>(
        &mut self,
        now: Time,
        detect: impl FnOnce(&mut Scoreboard, &mut dyn FnMut(u64, Stamp, Time)) -> T,
    ) -> T {
        self.known_limit.set(0);
        let Sender { board, rate, controller, controller_window, path, .. } = self;
        detect(board, &mut |segment, stamp, sent_at| {
            *controller_window = controller.on_lost(&rate.lose(now, segment, &stamp, sent_at), path).get();
        })
    }

    fn lose_by_count(&mut self, now: Time, threshold: u32, forward: bool) -> u32 {
        self.telling(now, |board, tell| board.lose_by_count(threshold, forward, tell))
    }

    /// With three or fewer outstanding and nothing new to send there cannot be three duplicates: one has to do, after a
    /// wait for reordering [RFC 5827 §3; Linux `tcp_pause_early_retransmit`].
    fn retransmit_early(&mut self, now: Time, waited: bool, stack: &Stack) -> u32 {
        let outstanding = self.board.outstanding();
        let nothing_new = self.nxt >= self.offered || self.nxt >= self.allowed;
        if !stack.profile.early_retransmit
            || !nothing_new
            || outstanding > u32::from(DUPLICATE_THRESHOLD)
            || self.reordering_seen
        {
            return 0;
        }
        if matches!(self.phase, Phase::Recovery | Phase::Loss) {
            return self.lose_by_count(now, outstanding.saturating_sub(1).max(1), false);
        }
        if self.board.resent() > 0 {
            return 0;
        }
        let due = self.rtt.smoothed().map_or(now, |srtt| now + srtt.div(4).max(EARLY_RETRANSMIT_WAIT));
        if waited || due == now || due >= self.timeout_at {
            return self.lose_by_count(now, 1, false);
        }
        self.reorder_timer = due;
        0
    }

    /// How long after its peers a segment may still arrive [RFC 8985 §6.2 step 4].
    fn reordering_window(&self, linux_4: bool) -> Span {
        let quarter = self.rtt.min().unwrap_or(Span::ZERO).div(4);
        if linux_4 {
            return quarter.max(TICK);
        }
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if !self.reordering_seen && (recovering || self.board.sacked() >= u32::from(DUPLICATE_THRESHOLD)) {
            return Span::ZERO;
        }
        (quarter * u64::from(self.reorder_window.quarters)).min(self.rtt.smoothed().unwrap_or(Span::ZERO))
    }

    /// The episode's cause was an illusion: an original arrived that was thought lost.
    pub(super) fn was_needless(&self, echo: u32, advanced: bool) -> bool {
        let Some(undo_state) = self.undo_state else { return false };
        let before = |resent_at: u32| echo.wrapping_sub(resent_at) > u32::MAX / 2;
        let older = self.resent_at.is_some_and(before);
        let repairing = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let by_echo = repairing && advanced && echo != 0 && older;
        // Reports of the last duplicates may come when the episode is over; a timeout's need progress beside them (Linux
        // `tcp_try_undo_dsack`, `tcp_try_undo_loss`).
        by_echo || undo_state.is_all_reported() && (advanced || self.phase != Phase::Loss)
    }

    /// Everything is as before the episode, but what it taught of reordering, and what an echo of congestion took.
    pub(super) fn undo(&mut self, delivered: &Delivered) {
        if self.undo_state.is_some_and(|undo_state| undo_state.restores) {
            let window = self.controller.on_undo();
            self.take_window(window);
            if matches!(self.phase, Phase::Recovery | Phase::Loss) {
                self.announce_reduction = false;
            }
        }
        if self.phase == Phase::Recovery && delivered.reach > 0 {
            // What passed for a loss was reordering by so many segments (Linux `tcp_try_undo_partial`).
            self.notice_reordering(delivered.reach);
        }
        if matches!(self.phase, Phase::Recovery | Phase::Loss) {
            // Losses found in an episode that is over are another's.
            self.board.forget_losses();
            self.phase = Phase::Open;
        }
        self.undo_state = None;
    }

    pub(super) fn leave_finished_episode(&mut self) {
        let finished = match self.phase {
            Phase::Open => false,
            Phase::Recovery | Phase::Loss => self.una >= self.recovery_point,
            // Held until something sent after it is acknowledged, so that the CWR flag has reached the receiver.
            Phase::EcnReduction => self.una > self.recovery_point,
        };
        if finished {
            if self.phase == Phase::Recovery {
                self.reorder_window.end_recovery();
            }
            self.phase = Phase::Open;
        }
        if self.phase == Phase::Open && self.board.resent() == 0 && self.board.lost() == 0 {
            self.resent_at = None;
        }
    }

    /// Whether the tail probe is now known to have repaired a loss [RFC 8985 §7.4].
    pub(super) fn judge_probe(&mut self, duplicate: bool) -> bool {
        let Some(Probe { high, resent }) = self.probe else { return false };
        if self.una < high {
            return false;
        }
        if duplicate || !resent {
            self.probe = None;
            return false;
        }
        if self.una > high {
            self.probe = None;
            return self.phase == Phase::Open;
        }
        false
    }

    /// Enters recovery or an ECN reduction if the facts ask for it; returns what the controller must hear. After a timeout
    /// only a `lost_again` begins one: the path is still congested (Linux FLAG_LOST_RETRANS).
    pub(super) fn enter_episode(
        &mut self,
        ece: bool,
        lost_again: bool,
        probe_repaired_loss: bool,
        stack: &Stack,
    ) -> Option<Cause> {
        let controller_owns = self.controller.recovery() == Owner::Controller;
        let may_begin = match self.phase {
            Phase::Open | Phase::EcnReduction => self.board.lost() > 0,
            Phase::Loss => lost_again,
            Phase::Recovery => false,
        };
        if may_begin {
            let in_reduction = self.phase == Phase::EcnReduction;
            self.phase = Phase::Recovery;
            // What the probe repaired is answered with the rest (Linux `tcp_init_cwnd_reduction`).
            self.probe = None;
            self.recovery_point = self.nxt;
            // One window of data is answered once [RFC 3168 §6.1.2]; DCTCP answers a loss as such [RFC 8257 §3.5].
            let answered = in_reduction && stack.ecn == EcnMode::Classic && !controller_owns;
            // What an echo took stays taken (Linux `tcp_enter_recovery`).
            self.undo_state = self.new_undo_state(!in_reduction && !ece, stack);
            self.announce_reduction = stack.ecn == EcnMode::Classic;
            return (!answered).then_some(Cause::Loss);
        }
        if probe_repaired_loss {
            return Some(Cause::Loss);
        }
        let transport_cuts = stack.ecn == EcnMode::Classic || !controller_owns;
        if ece && self.phase == Phase::Open && transport_cuts {
            self.phase = Phase::EcnReduction;
            self.undo_state = None;
            self.probe = None;
            self.recovery_point = self.nxt;
            self.announce_reduction = stack.ecn == EcnMode::Classic;
            return Some(Cause::Ecn);
        }
        None
    }

    fn new_undo_state(&self, restores: bool, stack: &Stack) -> Option<UndoState> {
        let out = self.board.resent();
        stack.profile.undo.then_some(UndoState { since: self.una, restores, resent: out > 0, unreported: out })
    }

    pub(super) fn begin_reduction(&mut self, now: Time, cause: Cause, flight: u64) {
        let window = self.controller.on_congestion(now, cause, &self.path);
        self.take_window(window);
        self.reduction = Reduction::begin(flight, self.controller_window);
    }

    /// The retransmission timer expired: what is outstanding is lost, or the peer's window is to be asked for.
    pub(super) fn time_out(&mut self, now: Time, stack: &Stack) {
        if self.board.outstanding() == 0 {
            // The peer's window is closed, or nothing is left.
            self.timeout_at = Time::NEVER;
            self.ask_for_window = self.nxt < self.offered;
            self.backoff = self.backoff.saturating_add(u8::from(self.ask_for_window));
            return;
        }
        self.timeouts += 1;
        self.rto_wait += now.since(self.armed_at);
        // The threshold falls once per window of data [RFC 5681 §3.1], and again for a timeout that follows progress after
        // another (Linux `tcp_enter_loss`).
        let repeated = self.una < self.recovery_point
            && match self.phase {
                Phase::Open => false,
                Phase::EcnReduction | Phase::Recovery => true,
                Phase::Loss => self.expiries > 0,
            };
        if let Some(plb) = &mut self.plb {
            plb.on_timeout(now, repeated);
        }
        self.refresh_path();
        let window = self.controller.on_timeout(now, repeated, &self.path);
        self.take_window(window);
        if !repeated {
            self.undo_state = self.new_undo_state(true, stack);
            self.announce_reduction = stack.ecn == EcnMode::Classic;
        }
        self.phase = Phase::Loss;
        self.recovery_point = self.nxt;
        // RACK gives what left less than an RTT ago the chance to arrive [RFC 8985 §6.3].
        let rack = stack.profile.loss_detection == LossDetection::Rack;
        let age = if rack { self.latest_rtt } else { Span::ZERO };
        self.telling(now, |board, tell| board.lose_all(now, age, tell));
        self.expiries = self.expiries.saturating_add(1);
        self.probe = None;
        self.lost_unheard = 0;
        self.burst_left = 0;
        self.reorder_timer = Time::NEVER;
        self.backoff = self.backoff.saturating_add(1);
        self.arm_timeout(now, stack);
        self.probe_at = Time::NEVER;
        self.resend_now = true;
    }
}
