//! When the sender acts unasked: the retransmission timer, the probe of the tail, the detector by time.

use super::{LossDetection, Losses, Sender};
use crate::cc::Phase;
use crate::tcp::Stack;
use crate::units::{Span, Time};

/// The least tail-loss-probe timeout of Linux 4.9.
const MIN_PROBE_TIMEOUT: Span = Span::from_ms(10);
/// What Linux adds to two RTTs before a probe, and to the wait for reordering (`TCP_TIMEOUT_MIN_US`).
const MIN_WAIT: Span = Span::from_ms(2);
/// A probe of a single segment also waits for a delayed acknowledgement of the peer (Linux `TCP_DELACK_MAX`).
const WORST_DELAYED_ACK: Span = Span::from_ms(200);

impl Sender {
    #[inline]
    pub(super) fn timeout(&self, stack: &Stack) -> Span {
        let timeout = self.rtt.timeout();
        let doubled = if self.backoff == 0 { timeout } else { timeout.saturating_mul(1 << self.backoff.min(16)) };
        doubled.min(stack.profile.max_rto)
    }

    /// The retransmission timer runs from now on.
    #[inline(always)]
    pub(super) fn arm_timeout(&mut self, now: Time, stack: &Stack) {
        self.armed_at = now;
        self.timeout_at = now + stack.profile.timer(self.timeout(stack));
    }

    /// New data is acknowledged while the sender is [undisturbed](Self::is_undisturbed). A [probe](Self::probe_tail) is to be scheduled
    /// when that and what it lets go is done.
    #[inline(always)]
    pub(super) fn rearm_in_order(&mut self, now: Time, stack: &Stack) {
        self.probe_now = false;
        if self.board.outstanding() == 0 {
            self.timeout_at = Time::NEVER;
        } else {
            self.arm_timeout(now, stack);
        }
    }

    /// Schedules a probe of what is out while the sender is [undisturbed](Self::is_undisturbed): all of it is in flight, and the
    /// window in force is the controller's.
    #[inline(always)]
    pub(in crate::tcp) fn probe_tail(&mut self, now: Time, stack: &Stack) {
        let outstanding = self.board.outstanding();
        debug_assert!(self.may_probe(stack) && self.board.in_flight() == outstanding);
        debug_assert!(self.window() == self.controller_window);
        self.probe_at = if outstanding > 0 && stack.profile.tail_loss_probe {
            self.next_probe(now, u64::from(outstanding) >= self.controller_window, stack)
        } else {
            Time::NEVER
        };
    }

    #[inline(always)]
    pub(super) fn rearm_after_ack(&mut self, now: Time, advanced: bool, stack: &Stack) {
        if self.board.outstanding() == 0 {
            self.timeout_at = Time::NEVER;
            self.probe_at = Time::NEVER;
            self.probe_now = false;
        } else if advanced {
            self.probe_now = false;
            self.arm_timeout(now, stack);
            self.schedule_probe(now, stack);
        } else if self.probe_at != Time::NEVER {
            // Acknowledgements speak: RACK's timer finds what is lost. Linux 4.9 has none and lets the probe go.
            let told = stack.profile.loss_detection == LossDetection::Rack && self.board.sacked() > 0;
            if told || self.phase != Phase::Open {
                self.probe_at = Time::NEVER;
            }
        }
    }

    /// Schedules a probe of the tail from now if one may help [RFC 8985 §7.2; Linux `tcp_schedule_loss_probe`].
    #[inline(always)]
    pub(super) fn schedule_probe(&mut self, now: Time, stack: &Stack) {
        let full = || u64::from(self.board.in_flight()) >= self.window();
        self.probe_at = if stack.profile.tail_loss_probe && self.board.outstanding() > 0 && self.may_probe(stack) {
            self.next_probe(now, full(), stack)
        } else {
            Time::NEVER
        };
    }

    #[inline(always)]
    fn may_probe(&self, stack: &Stack) -> bool {
        let rack = stack.profile.loss_detection == LossDetection::Rack;
        let is_open = self.phase == Phase::Open || rack && self.phase == Phase::EcnReduction;
        is_open && self.board.sacked() == 0 && self.probe.is_none()
    }

    /// When a probe of what is out is to go, where the window is `full` or not.
    #[inline(always)]
    fn next_probe(&self, now: Time, full: bool, stack: &Stack) -> Time {
        let rack = stack.profile.loss_detection == LossDetection::Rack;
        // Linux 4.9 probes only where no transmission of its own will tell.
        let stuck = rack || self.nxt >= self.offered || full;
        let Some(srtt) = self.rtt.smoothed().filter(|_| stuck) else { return Time::NEVER };
        let lone = self.board.outstanding() == 1;
        let wait = match (rack, lone) {
            (true, true) => stack.profile.timer(srtt * 2 + stack.profile.min_rto),
            (true, false) => stack.profile.timer(srtt * 2 + MIN_WAIT),
            (false, true) => (srtt * 2).max(srtt + srtt.div(2) + WORST_DELAYED_ACK).max(MIN_PROBE_TIMEOUT),
            (false, false) => (srtt * 2).max(MIN_PROBE_TIMEOUT),
        };
        // Where the timeout comes sooner, a probe goes in its place.
        self.timeout_at.min(now + wait)
    }

    /// When the timer that waits for reordering expires, where it is set now for `due`, but no later than a timeout from now
    /// [Linux `tcp_rack_mark_lost`].
    pub(super) fn reordering_timer(&self, now: Time, due: Time, stack: &Stack) -> Time {
        if stack.profile.clock_tick == Span::ZERO {
            return due;
        }
        let wait = stack.profile.timer(due.since(now) + MIN_WAIT);
        now + wait.min(stack.profile.timer(self.timeout(stack)))
    }

    /// The earliest of this half's timers.
    pub(in crate::tcp) fn deadline(&self) -> Time {
        let own = self.timeout_at.min(self.probe_at).min(self.reorder_timer);
        if !self.waits_for_pacing() {
            return own;
        }
        // What a near-source switch holds back may go sooner as its limit rises.
        self.near_source.as_ref().map_or(own, |near| own.min(near.deadline()))
    }

    /// The same while there is neither a near-source limit nor a hole.
    #[inline(always)]
    pub(in crate::tcp) fn timeout_or_probe(&self) -> Time {
        self.timeout_at.min(self.probe_at)
    }

    /// When pacing and a near-source switch let the next piece go; [`Time::NEVER`] unless they alone hold something back.
    #[inline(always)]
    pub(in crate::tcp) fn pacing_deadline(&self) -> Time {
        if !self.waits_for_pacing() {
            return Time::NEVER;
        }
        self.near_source.as_ref().map_or(self.pacer.next(), |near| self.pacer.next().max(near.next()))
    }

    pub(in crate::tcp) fn handle_timeout(&mut self, now: Time, stack: &Stack) {
        if let (Some(near), Some(point)) = (&mut self.near_source, &stack.profile.near_source) {
            near.catch_up(now, stack.line_rate, point);
        }
        if self.reorder_timer <= now {
            let prior_in_flight = self.board.in_flight();
            let Losses { found, .. } = self.find_losses(now, true, stack);
            self.lost_unheard += found;
            let recovering = self.phase == Phase::Recovery;
            // Here any loss ends the slow start after a timeout (Linux `tcp_rack_reo_timeout`).
            if let Some(cause) = self.enter_episode(false, found > 0, false, stack) {
                self.refresh_path();
                self.begin_reduction(now, cause, u64::from(prior_in_flight));
            }
            if self.phase == Phase::Recovery && !recovering {
                // The timer releases one segment, as an acknowledgement would (Linux `tcp_rack_reo_timeout`).
                self.reduction.on_ack(1, u64::from(self.board.in_flight()), false);
            }
        }
        if self.probe_at <= now {
            self.probe_at = Time::NEVER;
            self.probe_now = true;
            self.arm_timeout(now, stack);
        } else if self.timeout_at <= now {
            self.time_out(now, stack);
        }
    }
}
