//! The sending half: what an acknowledgement means, and what to send next.

use alloc::collections::VecDeque;

use super::pacer::Pacer;
use super::profile::LossDetection;
use super::rate::{RateEstimator, Stamp};
use super::reduction::Reduction;
use super::rtt::RttEstimator;
use super::scoreboard::{Delivered, Scoreboard};
use super::{EcnMode, Stack};
use crate::cc::{Ack, Cause, Controller, Limit, Owner, Path, Phase, RttSample, Sent};
use crate::packet::{Flags, Segment, Seq, Tag, timestamp};
use crate::units::{Bytes, Packets, Rate, Span, Time};

/// Linux's bound on the reordering degree (`tcp_max_reordering`).
const MOST_REORDERING: u32 = 300;
/// Duplicate acknowledgements that tell a loss [RFC 5681 §3.2].
const DUPLICATE_THRESHOLD: u32 = 3;
/// The least tail-loss-probe timeout of Linux 4.9, and what Linux 6 adds to two round trips (`TCP_TIMEOUT_MIN`).
const MIN_PROBE_TIMEOUT: Span = Span::from_ms(10);
const PROBE_MARGIN: Span = Span::from_ms(2);
/// A probe of a single segment also waits for a delayed acknowledgement of the peer (Linux `TCP_DELACK_MAX`).
const WORST_DELAYED_ACK: Span = Span::from_ms(200);
/// Least wait for reordering before an early retransmission (Linux `tcp_pause_early_retransmit`).
const EARLY_RETRANSMIT_WAIT: Span = Span::from_ms(2);
/// An echo older than this is nonsense (Linux `tcp_rtt_tsopt_us`).
const LONGEST_ECHO_MS: u32 = (i32::MAX / 1000).unsigned_abs();
/// Linux's time slack of RACK before 4.18, and the clock tick of its offload decisions.
const TICK: Span = Span::from_ms(1);
/// A piece may be held back while less than this part of the window could leave (Linux `tcp_tso_win_divisor`).
const OFFLOAD_WINDOW_DIVISOR: u64 = 3;

/// A segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) start: Seq,
    pub(super) length: u16,
    pub(super) tag: Tag,
    pub(super) ends_message: bool,
    pub(super) resent: bool,
    /// Carries the flag that tells the receiver of the reduction [RFC 3168 §6.1.2].
    pub(super) announces_reduction: bool,
}

/// A message in the stream.
#[derive(Clone, Copy, Debug)]
struct Message {
    end: Seq,
    tag: Tag,
    /// Not cut short by a stop: its last segment ends it.
    whole: bool,
}

/// How a reduction or timeout may still turn out to have been needless.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// First byte outstanding when it began: duplicates of earlier data do not speak of it (Linux `undo_marker`).
    since: Seq,
    /// Retransmissions whose duplicate the receiver has not reported (Linux `undo_retrans`); `None` before the first.
    unreported: Option<u64>,
}

/// How many quarters of the least round trip RACK allows for reordering: one more for each round trip with a report of a
/// duplicate, back to one after sixteen recoveries without [RFC 8985 §6.2 step 4].
#[derive(Clone, Copy, Debug)]
struct Patience {
    quarters: u8,
    /// `nxt` at the last widening.
    until: Seq,
    recoveries_left: u8,
}

impl Patience {
    const NONE: Patience = Patience { quarters: 1, until: Seq::SYN, recoveries_left: 0 };

    fn widen(&mut self, una: Seq, nxt: Seq) {
        if una >= self.until {
            *self = Patience { quarters: self.quarters.saturating_add(1), until: nxt, recoveries_left: 16 };
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
struct Probe {
    /// `nxt` when it had left [RFC 8985 §7.3 TLP.end_seq].
    high: Seq,
    /// It was a retransmission.
    resent: bool,
}

/// The state of the sending half.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    controller: Controller,
    path: Path,
    board: Scoreboard,
    rtt: RttEstimator,
    rate: RateEstimator,
    pacer: Pacer,
    /// First byte not acknowledged.
    una: Seq,
    /// First byte not sent.
    nxt: Seq,
    /// End of what the application offered.
    offered: Seq,
    /// End of what the receiver allows.
    allowed: Seq,
    /// The messages not wholly acknowledged, ascending.
    messages: VecDeque<Message>,

    phase: Phase,
    /// `nxt` when the episode began.
    recovery_point: Seq,
    reduction: Reduction,
    doubt: Option<Doubt>,
    /// Timestamp of the first retransmission since none was out: an echo of an earlier one proves that an original arrived
    /// [RFC 3522 §3.2, Linux `retrans_stamp`].
    resent_at: Option<u32>,
    announce_reduction: bool,

    /// When the retransmission timer expires.
    timeout_at: Time,
    /// When a probe of the tail goes instead; never later than the timeout.
    probe_at: Time,
    probe_now: bool,
    /// The next segment goes, or the part of it that the peer's window admits, at least a byte.
    ask_for_window: bool,
    /// The timer expired: its segment goes whatever the window says.
    resend_now: bool,
    /// The last probe; until it is judged no other goes.
    probe: Option<Probe>,
    backoff: u8,
    /// Timeouts since the last progress.
    expiries: u32,
    /// When the detector by time must look again.
    reorder_timer: Time,
    /// The latest transmission known delivered, and its round trip.
    latest: (Time, Seq),
    latest_rtt: Span,
    /// The duplicate threshold, raised by reordering (Linux `tcp_sock.reordering`).
    reordering: u32,
    reordering_seen: bool,
    patience: Patience,
    /// Losses that the timer found and no acknowledgement has told the controller yet.
    lost_unheard: u32,

    round_end: Seq,
    /// Most segments outstanding since `usage_until` was set, and what limited the sender at that moment.
    most_outstanding: u32,
    usage_until: Seq,
    limited_by: Limit,
    sent_since_hold: bool,
    waits_for_pacing: bool,
    burst_left: u64,
    /// When the last segment left, and whether the idle time since then was already answered by a restart.
    last_sent: Option<Time>,
    restarted: bool,

    pub(super) retransmitted_bytes: u64,
    pub(super) timeouts: u32,
    pub(super) rtt_sum: Span,
    pub(super) rtt_count: u64,
}

impl Sender {
    pub(super) fn new(controller: Controller, path: Path) -> Sender {
        Sender {
            controller,
            path,
            board: Scoreboard::default(),
            rtt: RttEstimator::new(),
            rate: RateEstimator::default(),
            pacer: Pacer::default(),
            una: Seq::FIRST,
            nxt: Seq::FIRST,
            offered: Seq::FIRST,
            allowed: Seq::FIRST,
            messages: VecDeque::new(),
            phase: Phase::Open,
            recovery_point: Seq::FIRST,
            reduction: Reduction::default(),
            doubt: None,
            resent_at: None,
            announce_reduction: false,
            timeout_at: Time::NEVER,
            probe_at: Time::NEVER,
            probe_now: false,
            ask_for_window: false,
            resend_now: false,
            probe: None,
            backoff: 0,
            expiries: 0,
            reorder_timer: Time::NEVER,
            latest: (Time::ZERO, Seq::SYN),
            latest_rtt: Span::ZERO,
            reordering: DUPLICATE_THRESHOLD,
            reordering_seen: false,
            patience: Patience::NONE,
            lost_unheard: 0,
            round_end: Seq::FIRST,
            most_outstanding: 0,
            usage_until: Seq::FIRST,
            limited_by: Limit::Application,
            sent_since_hold: false,
            waits_for_pacing: false,
            burst_left: 0,
            last_sent: None,
            restarted: false,
            retransmitted_bytes: 0,
            timeouts: 0,
            rtt_sum: Span::ZERO,
            rtt_count: 0,
        }
    }

    /// The congestion window in force: the reduction's while it goes on, else the controller's.
    pub(super) fn window(&self) -> u64 {
        match self.phase {
            Phase::Recovery | Phase::EcnReduction if self.controller.recovery() == Owner::Transport => {
                self.reduction.window()
            }
            _ => self.controller.window().get(),
        }
    }

    pub(super) fn controller(&self) -> &Controller {
        &self.controller
    }

    /// First byte not sent.
    pub(super) fn next_seq(&self) -> Seq {
        self.nxt
    }

    pub(super) fn una(&self) -> Seq {
        self.una
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn outstanding(&self) -> u32 {
        self.board.outstanding()
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// Everything offered is acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.una == self.offered
    }

    /// The receiver allows `window` KiB beyond `ack`.
    pub(super) fn allow(&mut self, ack: Seq, window: u16) {
        self.allowed = self.allowed.max(ack.plus(u64::from(window) << 10));
    }

    /// A round trip measured by the handshake.
    pub(super) fn sample_handshake(&mut self, now: Time, span: Span, stack: &Stack) {
        self.rtt.sample(span, true, &stack.profile);
        self.rtt.sample_min(now, span);
        self.refresh_path(stack);
    }

    pub(super) fn offer(&mut self, bytes: u64, tag: Tag) {
        self.offered = self.offered.plus(bytes);
        self.messages.push_back(Message { end: self.offered, tag, whole: true });
    }

    /// Takes back what is offered but not yet sent; the last segment sent does not end its message.
    pub(super) fn stop(&mut self) {
        self.offered = self.nxt;
        while self.messages.back().is_some_and(|message| message.end > self.nxt) {
            let cut = self.messages.pop_back();
            let begun = self.messages.back().map_or(self.una, |before| before.end) < self.nxt;
            if let Some(Message { tag, .. }) = cut.filter(|_| begun) {
                // What was sent of it may have to be sent again.
                self.messages.push_back(Message { end: self.nxt, tag, whole: false });
            }
        }
    }

    fn refresh_path(&mut self, stack: &Stack) {
        self.path.srtt = self.rtt.smoothed();
        self.path.min_rtt = self.rtt.min();
        self.path.rto = self.rtt.timeout(&stack.profile);
        self.path.una = self.una;
        self.path.nxt = self.nxt;
        self.path.in_flight = Packets::new(u64::from(self.board.in_flight()));
    }

    // ---- acknowledgements -------------------------------------------------------------------------------------------

    pub(super) fn handle_ack(&mut self, now: Time, segment: &Segment, stack: &Stack) {
        let ack = Seq::expand(segment.ack, self.una);
        if ack > self.nxt {
            return;
        }
        self.allow(ack, segment.window);
        let advanced = ack > self.una;
        let prior_in_flight = self.board.in_flight();
        let mut delivered = Delivered::default();
        self.board.begin_acknowledgement();
        let duplicate = self.take_sack(segment, ack, &mut delivered, stack);
        if advanced {
            self.board.acknowledge(self.una, ack, &mut delivered);
            self.una = ack;
            self.expiries = 0;
            while self.messages.front().is_some_and(|message| message.end <= ack) {
                self.messages.pop_front();
            }
        }
        let ece = segment.flags.contains(Flags::ECE) && stack.ecn != EcnMode::Off;
        if delivered.packets == 0 && !ece && !duplicate && !advanced {
            return;
        }

        let round_ended = advanced && self.una >= self.round_end;
        if round_ended {
            self.round_end = self.nxt;
        }
        let rtt = self.take_round_trip(now, segment, advanced, round_ended, &delivered, stack);
        let stamp = if stack.delivery_rate { delivered.stamp } else { None };
        let delivery = self.rate.sample(now, delivered.packets, stamp, self.rtt.min());
        self.notice_latest(now, &delivered);
        let found = self.find_losses(now, ece, stack);
        let lost = found + core::mem::take(&mut self.lost_unheard);

        if ece {
            // The path is congested, whatever the retransmissions were (Linux clears `prior_ssthresh`).
            self.doubt = None;
        }
        if self.was_needless(segment, advanced) {
            self.undo(&delivered);
        }
        self.leave_finished_episode();
        let probe_repaired_loss = self.judge_probe(duplicate);
        let began = self.enter_episode(ece, probe_repaired_loss, stack);

        self.refresh_path(stack);
        if delivered.packets > 0 || ece {
            let acked = Packets::new(u64::from(delivered.packets));
            let facts = Ack {
                now,
                acked,
                acked_bytes: Bytes::new(delivered.bytes),
                marked: if ece { acked } else { Packets::ZERO },
                lost: Packets::new(u64::from(lost)),
                ece,
                rtt,
                delivery,
                delivered: Packets::new(self.rate.delivered()),
                una: self.una,
                nxt: self.nxt,
                in_flight: self.path.in_flight,
                prior_in_flight: Packets::new(u64::from(prior_in_flight)),
                max_in_flight: Packets::new(u64::from(self.most_outstanding)),
                phase: self.phase,
                round_ended,
                limited_by: self.limited_by,
            };
            self.controller.on_ack(&facts, &self.path);
        }
        if let Some(cause) = began {
            self.begin_reduction(now, cause, u64::from(prior_in_flight));
        }
        if matches!(self.phase, Phase::Recovery | Phase::EcnReduction) {
            let clean = advanced && found == 0;
            self.reduction.on_ack(u64::from(delivered.packets), u64::from(self.board.in_flight()), clean);
        }
        self.rearm_after_ack(now, advanced, stack);
    }

    /// Reads the blocks; returns whether the first reported a duplicate.
    fn take_sack(&mut self, segment: &Segment, ack: Seq, delivered: &mut Delivered, stack: &Stack) -> bool {
        if segment.sack.is_empty() {
            return false;
        }
        let mut blocks = [(Seq::SYN, Seq::SYN); 3];
        for (block, (start, end)) in blocks.iter_mut().zip(segment.sack.iter()) {
            *block = (Seq::expand(start, self.una), Seq::expand(end, self.una));
        }
        let (first, second) = (blocks[0], blocks[1]);
        let duplicate = first.1 <= ack || (second.1 > second.0 && second.0 <= first.0 && first.1 <= second.1);
        if duplicate {
            let of_probe = self.probe.is_some_and(|probe| probe.resent && probe.high == first.1);
            if !of_probe {
                self.patience.widen(self.una, self.nxt);
            }
            if let Some(doubt) = &mut self.doubt
                && first.1 > doubt.since
                && first.1 <= self.nxt
            {
                // One block may report what receive offload has merged.
                let segments = first.1.since(first.0).div_ceil(stack.mss());
                doubt.unreported = doubt.unreported.map(|unreported| unreported.saturating_sub(segments));
            }
            blocks[0] = (Seq::SYN, Seq::SYN);
        }
        for (start, end) in blocks {
            if start < end && start >= self.una && end <= self.nxt {
                self.board.sack(start, end, self.una, delivered);
            }
        }
        duplicate
    }

    fn take_round_trip(
        &mut self,
        now: Time,
        segment: &Segment,
        advanced: bool,
        round_ended: bool,
        delivered: &Delivered,
        stack: &Stack,
    ) -> Option<RttSample> {
        let round_trip = delivered.round_trip();
        let newest = round_trip.map(|(_, (sent_at, seq))| RttSample { span: now.since(sent_at), seq });
        let for_timeout = match round_trip {
            Some((sent_at, _)) => Some(now.since(sent_at)),
            // The timestamp tells which transmission it was [RFC 7323 §4.1].
            None if advanced && segment.timestamp_echo != 0 => {
                let ticks = timestamp(now).wrapping_sub(segment.timestamp_echo);
                (ticks < LONGEST_ECHO_MS).then(|| Span::from_ms(u64::from(ticks).max(1)))
            }
            None => None,
        };
        if let Some(span) = for_timeout {
            self.rtt.sample(span, round_ended, &stack.profile);
            self.backoff = 0;
        }
        if let Some(sample) = newest {
            self.rtt.sample_min(now, sample.span);
            self.rtt_sum += sample.span;
            self.rtt_count += 1;
        }
        newest
    }

    /// Remembers the latest transmission known delivered [RFC 8985 §6.2 step 2].
    fn notice_latest(&mut self, now: Time, delivered: &Delivered) {
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
        self.reordering = self.reordering.max(distance.saturating_add(1)).min(MOST_REORDERING);
        self.reordering_seen = true;
    }

    /// Runs the profile's detectors; returns how many segments were newly found lost. `waited` if no more time is to be
    /// given to reordering before an early retransmission.
    fn find_losses(&mut self, now: Time, waited: bool, stack: &Stack) -> u32 {
        self.reorder_timer = Time::NEVER;
        if self.board.outstanding() == 0 {
            return 0;
        }
        let mut found = 0;
        if stack.profile.loss_detection != LossDetection::Rack && self.board.sacked() > 0 {
            // Linux 4.9 counts holes too until reordering has raised the threshold (`tcp_is_fack`).
            let forward = stack.profile.loss_detection == LossDetection::DuplicateAcksThenTime
                && self.reordering == DUPLICATE_THRESHOLD;
            found += self.board.lose_by_count(self.reordering, forward);
            if found == 0 {
                found += self.retransmit_early(now, waited, stack);
            }
        }
        let by_time = stack.profile.loss_detection != LossDetection::DuplicateAcks;
        if by_time && self.latest_rtt > Span::ZERO {
            let only_resent = stack.profile.loss_detection == LossDetection::DuplicateAcksThenTime;
            let wait = self.latest_rtt + self.reordering_window(only_resent);
            let (late, next) = self.board.lose_by_time(now, self.latest, wait, only_resent, self.una);
            found += late;
            if !only_resent && let Some(next) = next {
                self.reorder_timer = next;
            }
        }
        found
    }

    /// With three or fewer outstanding and nothing new to send there cannot be three duplicates: one has to do, after a
    /// wait for reordering [RFC 5827 §3; Linux `tcp_pause_early_retransmit`].
    fn retransmit_early(&mut self, now: Time, waited: bool, stack: &Stack) -> u32 {
        let outstanding = self.board.outstanding();
        let nothing_new = self.nxt >= self.offered || self.nxt >= self.allowed;
        if !stack.profile.early_retransmit || !nothing_new || outstanding > DUPLICATE_THRESHOLD || self.reordering_seen
        {
            return 0;
        }
        if matches!(self.phase, Phase::Recovery | Phase::Loss) {
            return self.board.lose_by_count(outstanding.saturating_sub(1).max(1), false);
        }
        if self.board.resent() > 0 {
            return 0;
        }
        let due = self.rtt.smoothed().map_or(now, |srtt| now + srtt.div(4).max(EARLY_RETRANSMIT_WAIT));
        if waited || due == now || due >= self.timeout_at {
            return self.board.lose_by_count(1, false);
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
        if !self.reordering_seen && (recovering || self.board.sacked() >= DUPLICATE_THRESHOLD) {
            return Span::ZERO;
        }
        (quarter * u64::from(self.patience.quarters)).min(self.rtt.smoothed().unwrap_or(Span::ZERO))
    }

    /// The episode's cause was an illusion: an original arrived that was thought lost.
    fn was_needless(&self, segment: &Segment, advanced: bool) -> bool {
        let Some(doubt) = self.doubt else { return false };
        let before = |resent_at: u32| segment.timestamp_echo.wrapping_sub(resent_at) > u32::MAX / 2;
        let older = self.resent_at.is_some_and(before);
        let repairing = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let by_echo = repairing && advanced && segment.timestamp_echo != 0 && older;
        // Reports of the last duplicates may come when the episode is over; a timeout's need progress beside them (Linux
        // `tcp_try_undo_dsack`, `tcp_try_undo_loss`).
        by_echo || doubt.unreported == Some(0) && (advanced || self.phase != Phase::Loss)
    }

    fn undo(&mut self, delivered: &Delivered) {
        self.controller.on_undo();
        if self.phase == Phase::Recovery && delivered.reach > 0 {
            // What passed for a loss was reordering by so many segments (Linux `tcp_try_undo_partial`).
            self.notice_reordering(delivered.reach);
        }
        self.board.forget_losses();
        self.phase = Phase::Open;
        self.doubt = None;
        self.announce_reduction = false;
    }

    fn leave_finished_episode(&mut self) {
        let finished = match self.phase {
            Phase::Open => false,
            Phase::Recovery | Phase::Loss => self.una >= self.recovery_point,
            // Held until something sent after it is acknowledged, so that the CWR flag has reached the receiver.
            Phase::EcnReduction => self.una > self.recovery_point,
        };
        if finished {
            if self.phase == Phase::Recovery {
                self.patience.end_recovery();
            }
            self.phase = Phase::Open;
        }
        if self.phase == Phase::Open && self.board.resent() == 0 && self.board.lost() == 0 {
            self.resent_at = None;
        }
    }

    /// Whether the tail probe is now known to have repaired a loss [RFC 8985 §7.4].
    fn judge_probe(&mut self, duplicate: bool) -> bool {
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

    /// Enters recovery or an ECN reduction if the facts ask for it; returns what the controller must hear.
    fn enter_episode(&mut self, ece: bool, probe_repaired_loss: bool, stack: &Stack) -> Option<Cause> {
        let controller_owns = self.controller.recovery() == Owner::Controller;
        if self.board.lost() > 0 && matches!(self.phase, Phase::Open | Phase::EcnReduction) {
            let in_reduction = self.phase == Phase::EcnReduction;
            self.phase = Phase::Recovery;
            // What the probe repaired is answered with the rest (Linux `tcp_init_cwnd_reduction`).
            self.probe = None;
            self.recovery_point = self.nxt;
            // One window of data is answered once [RFC 3168 §6.1.2]; DCTCP answers a loss as such [RFC 8257 §3.5].
            let answered = in_reduction && stack.ecn == EcnMode::Classic && !controller_owns;
            self.doubt = if answered || ece { None } else { self.new_doubt(stack) };
            self.announce_reduction = stack.ecn == EcnMode::Classic;
            return (!answered).then_some(Cause::Loss);
        }
        if probe_repaired_loss {
            return Some(Cause::Loss);
        }
        let transport_cuts = stack.ecn == EcnMode::Classic || !controller_owns;
        if ece && self.phase == Phase::Open && transport_cuts {
            self.phase = Phase::EcnReduction;
            self.doubt = None;
            self.probe = None;
            self.recovery_point = self.nxt;
            self.announce_reduction = stack.ecn == EcnMode::Classic;
            return Some(Cause::Ecn);
        }
        None
    }

    fn new_doubt(&self, stack: &Stack) -> Option<Doubt> {
        let out = u64::from(self.board.resent());
        stack.profile.undo.then_some(Doubt { since: self.una, unreported: (out > 0).then_some(out) })
    }

    fn begin_reduction(&mut self, now: Time, cause: Cause, flight: u64) {
        self.controller.on_congestion(now, cause, &self.path);
        self.reduction = Reduction::begin(flight, self.controller.window().get());
    }

    // ---- timers -----------------------------------------------------------------------------------------------------

    fn timeout(&self, stack: &Stack) -> Span {
        self.rtt.timeout(&stack.profile).saturating_mul(1 << self.backoff.min(16)).min(stack.profile.max_rto)
    }

    fn rearm_after_ack(&mut self, now: Time, advanced: bool, stack: &Stack) {
        if self.board.outstanding() == 0 {
            self.timeout_at = Time::NEVER;
            self.probe_at = Time::NEVER;
            self.probe_now = false;
        } else if advanced {
            self.probe_now = false;
            self.timeout_at = now + self.timeout(stack);
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
    fn schedule_probe(&mut self, now: Time, stack: &Stack) {
        self.probe_at = Time::NEVER;
        let rack = stack.profile.loss_detection == LossDetection::Rack;
        let calm = self.phase == Phase::Open || rack && self.phase == Phase::EcnReduction;
        // Linux 4.9 probes only where no transmission of its own will tell.
        let stuck = rack || self.nxt >= self.offered || u64::from(self.board.in_flight()) >= self.window();
        let may_probe =
            stack.profile.tail_loss_probe && calm && stuck && self.board.sacked() == 0 && self.probe.is_none();
        let Some(srtt) = self.rtt.smoothed().filter(|_| may_probe) else { return };
        let lone = self.board.outstanding() == 1;
        let wait = match (rack, lone) {
            (true, true) => srtt * 2 + stack.profile.min_rto,
            (true, false) => srtt * 2 + PROBE_MARGIN,
            (false, true) => (srtt * 2).max(srtt + srtt.div(2) + WORST_DELAYED_ACK).max(MIN_PROBE_TIMEOUT),
            (false, false) => (srtt * 2).max(MIN_PROBE_TIMEOUT),
        };
        // Where the timeout comes sooner, a probe goes in its place.
        self.probe_at = self.timeout_at.min(now + wait);
    }

    /// The earliest of this half's timers.
    pub(super) fn deadline(&self) -> Time {
        self.timeout_at.min(self.probe_at).min(self.reorder_timer)
    }

    /// When pacing lets the next piece go; [`Time::NEVER`] unless pacing alone holds something back.
    pub(super) fn pacing_deadline(&self) -> Time {
        if self.waits_for_pacing { self.pacer.next() } else { Time::NEVER }
    }

    pub(super) fn handle_timeout(&mut self, now: Time, stack: &Stack) {
        if self.reorder_timer <= now {
            let prior_in_flight = self.board.in_flight();
            self.lost_unheard += self.find_losses(now, true, stack);
            let recovering = self.phase == Phase::Recovery;
            if let Some(cause) = self.enter_episode(false, false, stack) {
                self.refresh_path(stack);
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
            self.timeout_at = now + self.timeout(stack);
        } else if self.timeout_at <= now {
            self.time_out(now, stack);
        }
    }

    fn time_out(&mut self, now: Time, stack: &Stack) {
        if self.board.outstanding() == 0 {
            // The peer's window is closed, or nothing is left.
            self.timeout_at = Time::NEVER;
            self.ask_for_window = self.nxt < self.offered;
            self.backoff = self.backoff.saturating_add(u8::from(self.ask_for_window));
            return;
        }
        self.timeouts += 1;
        // The threshold falls once per window of data [RFC 5681 §3.1], and again for a timeout that follows progress after
        // another (Linux `tcp_enter_loss`).
        let repeated = self.una < self.recovery_point
            && match self.phase {
                Phase::Open => false,
                Phase::EcnReduction | Phase::Recovery => true,
                Phase::Loss => self.expiries > 0,
            };
        self.refresh_path(stack);
        self.controller.on_timeout(now, repeated, &self.path);
        if !repeated {
            self.doubt = self.new_doubt(stack);
            self.announce_reduction = stack.ecn == EcnMode::Classic;
        }
        self.phase = Phase::Loss;
        self.recovery_point = self.nxt;
        // RACK gives what left less than a round trip ago the chance to arrive [RFC 8985 §6.3].
        let rack = stack.profile.loss_detection == LossDetection::Rack;
        self.board.lose_all(now, if rack { self.latest_rtt } else { Span::ZERO });
        self.expiries = self.expiries.saturating_add(1);
        self.probe = None;
        self.lost_unheard = 0;
        self.burst_left = 0;
        self.reorder_timer = Time::NEVER;
        self.backoff = self.backoff.saturating_add(1);
        self.timeout_at = now + self.timeout(stack);
        self.probe_at = Time::NEVER;
        self.resend_now = true;
    }

    // ---- transmissions ----------------------------------------------------------------------------------------------

    /// The next segment to send now, if any.
    pub(super) fn next(&mut self, now: Time, stack: &Stack) -> Option<Outgoing> {
        if self.probe_now {
            self.probe_now = false;
            if let Some(segment) = self.send_probe(now, stack) {
                return Some(segment);
            }
        }
        if self.board.outstanding() == 0 && self.nxt >= self.offered {
            return self.hold(Limit::Application);
        }
        if self.board.outstanding() == 0 {
            self.restart_after_idle(now, stack);
        }
        let in_flight = u64::from(self.board.in_flight());
        let window = self.window();
        if core::mem::take(&mut self.resend_now) && self.board.wants_resend() {
            return self.send_again(now, self.pacing_rate(stack), stack);
        }
        if in_flight >= window {
            return self.hold(Limit::Window);
        }
        let resend = self.board.wants_resend();
        if !resend && self.nxt >= self.offered {
            if stack.delivery_rate {
                self.rate.limited_by_application(self.board.in_flight());
            }
            return self.hold(Limit::Application);
        }
        let (mut length, tag, mut ends_message) = self.next_piece_of_message(stack);
        if !resend && self.nxt.plus(u64::from(length)) > self.allowed {
            if !core::mem::take(&mut self.ask_for_window) {
                if self.board.outstanding() == 0 && self.timeout_at == Time::NEVER {
                    // Word of an open window may be lost [RFC 9293 §3.8.6.1].
                    self.timeout_at = now + self.timeout(stack);
                }
                return self.hold(Limit::Receiver);
            }
            length = u16::try_from(self.allowed.since(self.nxt).max(1)).unwrap_or(length);
            ends_message = false;
        }
        let pacing = self.pacing_rate(stack);
        if pacing.is_some() && self.burst_left == 0 && now < self.pacer.next() {
            return self.hold(Limit::Pacing);
        }
        if resend {
            return self.send_again(now, pacing, stack);
        }
        if self.burst_left == 0 {
            let room = window - in_flight;
            match self.burst(now, room, window, stack) {
                0 => return self.hold(Limit::Window),
                burst => self.burst_left = burst,
            }
        }
        let segment = Outgoing {
            start: self.nxt,
            length,
            tag,
            ends_message,
            resent: false,
            announces_reduction: core::mem::take(&mut self.announce_reduction),
        };
        self.send_new(now, segment, pacing, stack);
        Some(segment)
    }

    /// Nothing more goes now, for this `reason`. What limited the sender when most was outstanding in a round is what
    /// that round was limited by (Linux `tcp_cwnd_validate`).
    fn hold(&mut self, reason: Limit) -> Option<Outgoing> {
        self.burst_left = 0;
        self.waits_for_pacing = reason == Limit::Pacing;
        if core::mem::take(&mut self.sent_since_hold) {
            let outstanding = self.board.outstanding();
            if self.una >= self.usage_until || outstanding > self.most_outstanding {
                self.most_outstanding = outstanding;
                self.usage_until = self.nxt;
                self.limited_by = reason;
            }
        }
        None
    }

    fn send_probe(&mut self, now: Time, stack: &Stack) -> Option<Outgoing> {
        if self.nxt < self.offered {
            let (length, tag, ends_message) = self.next_piece_of_message(stack);
            if self.nxt.plus(u64::from(length)) <= self.allowed {
                let segment =
                    Outgoing { start: self.nxt, length, tag, ends_message, resent: false, announces_reduction: false };
                self.send_new(now, segment, None, stack);
                self.probe = Some(Probe { high: self.nxt, resent: false });
                self.probe_at = Time::NEVER;
                return Some(segment);
            }
        }
        let stamp = self.stamp(now, stack);
        let (start, length) = self.board.resend_last(now, self.una, stamp)?;
        self.probe = Some(Probe { high: self.nxt, resent: true });
        Some(self.note_resent(now, start, length, None, stack))
    }

    fn send_again(&mut self, now: Time, pacing: Option<Rate>, stack: &Stack) -> Option<Outgoing> {
        let stamp = self.stamp(now, stack);
        let (start, length) = self.board.resend(now, self.una, stamp)?;
        self.resent_at.get_or_insert(timestamp(now));
        if let Some(doubt) = &mut self.doubt {
            doubt.unreported = Some(doubt.unreported.unwrap_or(0) + 1);
        }
        Some(self.note_resent(now, start, length, pacing, stack))
    }

    fn note_resent(&mut self, now: Time, start: Seq, length: u16, pacing: Option<Rate>, stack: &Stack) -> Outgoing {
        self.retransmitted_bytes += u64::from(length);
        // The head's retransmission gets a whole timeout (Linux `tcp_xmit_retransmit_queue`).
        if self.timeout_at == Time::NEVER || start <= self.una {
            self.timeout_at = now + self.timeout(stack);
        }
        let message = self.message_of(start);
        self.note_sent(now, length, pacing, None, stack);
        Outgoing {
            start,
            length,
            tag: message.tag,
            ends_message: message.whole && start.plus(u64::from(length)) == message.end,
            resent: true,
            announces_reduction: false,
        }
    }

    fn send_new(&mut self, now: Time, segment: Outgoing, pacing: Option<Rate>, stack: &Stack) {
        let stamp = self.stamp(now, stack);
        let idle = (self.board.outstanding() == 0).then(|| self.idle(now));
        self.board.push(now, segment.start, segment.length, stamp);
        self.nxt = self.nxt.plus(u64::from(segment.length));
        self.note_sent(now, segment.length, pacing, idle, stack);
        // Sending more does not put off the timeout of what was sent before.
        if self.timeout_at == Time::NEVER || idle.is_some() {
            self.timeout_at = now + self.timeout(stack);
        }
        if stack.profile.tail_loss_probe {
            self.schedule_probe(now, stack);
        }
    }

    fn note_sent(&mut self, now: Time, length: u16, pacing: Option<Rate>, idle: Option<Span>, stack: &Stack) {
        self.burst_left = self.burst_left.saturating_sub(1);
        self.sent_since_hold = true;
        self.last_sent = Some(now);
        self.restarted = false;
        self.reduction.on_sent();
        if let Some(rate) = pacing {
            let size = Bytes::new(u64::from(length) + stack.packet().get() - stack.mss());
            self.pacer.on_sent(now, size, rate);
        }
        let in_flight = Packets::new(u64::from(self.board.in_flight()));
        self.path.una = self.una;
        self.path.nxt = self.nxt;
        self.path.in_flight = in_flight;
        self.controller.on_sent(now, &Sent { in_flight, idle }, &self.path);
    }

    fn stamp(&mut self, now: Time, stack: &Stack) -> Option<Stamp> {
        stack.delivery_rate.then(|| self.rate.stamp(now, self.board.outstanding()))
    }

    /// Time since the last segment left; none before the first.
    fn idle(&self, now: Time) -> Span {
        self.last_sent.map_or(Span::ZERO, |last| now.since(last))
    }

    fn restart_after_idle(&mut self, now: Time, stack: &Stack) {
        let idle = self.idle(now);
        // Once per idle time, even if the segment itself must wait.
        if stack.profile.restart_after_idle && !self.restarted && idle > self.rtt.timeout(&stack.profile) {
            self.refresh_path(stack);
            self.controller.on_idle_restart(now, idle, &self.path);
            self.restarted = true;
        }
    }

    /// Length, tag and whether it ends its message, of the next new segment: no segment spans two messages.
    fn next_piece_of_message(&self, stack: &Stack) -> (u16, Tag, bool) {
        let message = self.message_of(self.nxt);
        let left = message.end.since(self.nxt);
        let length = left.min(stack.mss());
        (u16::try_from(length).expect("at most one MSS"), message.tag, length == left)
    }

    /// The message that the byte at `seq` belongs to.
    fn message_of(&self, seq: Seq) -> Message {
        let place = self.messages.partition_point(|message| message.end <= seq);
        let none = Message { end: self.offered.max(seq), tag: Tag::default(), whole: false };
        self.messages.get(place).copied().unwrap_or(none)
    }

    /// The rate that transmissions are paced at: the controller's, or the host's if it paces everyone.
    pub(super) fn pacing_rate(&self, stack: &Stack) -> Option<Rate> {
        if let Some(rate) = self.controller.pacing() {
            return Some(rate);
        }
        stack.profile.host_pacing.and_then(|gains| self.window_rate(gains, stack))
    }

    /// Window over round trip times a gain in percent: Linux's `sk_pacing_rate`, also of senders that do not pace.
    fn window_rate(&self, (slow_start, avoidance): (u16, u16), stack: &Stack) -> Option<Rate> {
        let srtt = self.rtt.smoothed()?;
        let window = self.window();
        // Linux: the slow-start gain holds up to half the threshold, where growth still doubles the window each round.
        let percent = if window < self.controller.slow_start_threshold().get() / 2 { slow_start } else { avoidance };
        let bytes = Packets::new(window.max(u64::from(self.board.outstanding()))).bytes(stack.packet());
        Some(Rate::of(bytes, srtt).scaled(u64::from(percent), 100))
    }

    /// Most bytes of this connection that may wait in its host's port: a millisecond's worth, at least two segments
    /// [Linux TCP small queues].
    pub(super) fn small_queue_limit(&self, stack: &Stack) -> Bytes {
        let two = Bytes::new(2 * stack.packet().get());
        let rate = self.controller.pacing().or_else(|| self.window_rate((200, 120), stack));
        rate.map_or(Bytes::new(stack.packet().get() * 10), |rate| rate.bytes_in(stack.profile.small_queue)).max(two)
    }

    /// Segments that Linux would hand to the port in one piece: about a millisecond's worth, at least two
    /// (`tcp_tso_autosize`).
    fn offload_goal(&self, stack: &Stack) -> u64 {
        let most = u64::from(stack.profile.offload_segments).max(1);
        if most == 1 {
            return 1;
        }
        let rate = self.controller.pacing().or_else(|| self.window_rate((200, 120), stack));
        let sized = rate.map_or(most, |rate| rate.bytes_in(TICK).get() / stack.mss());
        sized.clamp(2, most)
    }

    /// How many segments to hand over in one piece now; 0 to wait for more room (Linux `tcp_tso_should_defer`).
    fn burst(&mut self, now: Time, room: u64, window: u64, stack: &Stack) -> u64 {
        let goal = match self.controller.burst() {
            Some(burst) if self.controller.pacing().is_some() => burst.get().max(1),
            _ => self.offload_goal(stack),
        };
        if goal <= 1 {
            return 1;
        }
        let left = self.offered.since(self.nxt).div_ceil(stack.mss());
        let burst = goal.min(room).min(left);
        let head_is_young = |srtt: Span| {
            let sent_at = self.board.oldest_sent_at().unwrap_or(now);
            now.since(sent_at) < srtt.div(2)
        };
        let at_once = burst >= goal
            || burst == left
            || room * OFFLOAD_WINDOW_DIVISOR >= window
            || self.phase != Phase::Open
            || self.idle(now) > TICK
            // No acknowledgement is due soon: waiting would cost more than it brings.
            || self.rtt.smoothed().is_none_or(head_is_young)
            || self.board.in_flight() == 0;
        if at_once { burst } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Context, Settings};
    use crate::packet::Ecn;
    use crate::rng::SmallStream;
    use crate::tcp::initial_path;
    use crate::tcp::profile::Profile;
    use crate::tcp::receiver::{Receiver, arrival};

    fn stack(profile: Profile) -> Stack {
        Stack { profile, ecn: EcnMode::Off, line_rate: Rate::from_gbps(100), delivery_rate: true }
    }

    fn sender(stack: &Stack) -> Sender {
        let path = initial_path(stack);
        let context = Context { settings: Settings::new(&[], &[]), path: &path, random: SmallStream::new(1) };
        let mut sender = Sender::new(Controller::build("newreno", &context).unwrap(), path);
        sender.sample_handshake(Time::ZERO, Span::from_ms(10), stack);
        sender
    }

    /// A sender and a receiver with a first-in-first-out path between them; every `nth` new segment is lost.
    struct Path {
        stack: Stack,
        sender: Sender,
        receiver: Receiver,
        queue: VecDeque<(Segment, u64)>,
        now: Time,
        nth: u64,
        sent: u64,
        acknowledgements: u64,
    }

    impl Path {
        fn new(profile: Profile, nth: u64, sender: impl FnOnce(&Stack) -> Sender) -> Path {
            let stack = stack(profile);
            let mut sender = sender(&stack);
            let mut receiver = Receiver::new(&stack);
            receiver.begin_at(sender.una);
            sender.allow(sender.una, u16::MAX);
            let queue = VecDeque::new();
            Path { stack, sender, receiver, queue, now: Time::from_ps(1), nth, sent: 0, acknowledgements: 0 }
        }

        fn send(&mut self) {
            while let Some(out) = self.sender.next(self.now, &self.stack) {
                self.sent += u64::from(!out.resent);
                if !out.resent && self.sent % self.nth == self.nth / 2 {
                    continue;
                }
                let segment = Segment {
                    seq: out.start.wire(),
                    length: out.length,
                    flags: Flags::ACK.with_if(Flags::PSH, out.ends_message),
                    ecn: Ecn::NotCapable,
                    timestamp: timestamp(self.now),
                    tag: out.tag,
                    ..Segment::default()
                };
                self.queue.push_back((segment, self.sent));
            }
        }

        /// Until everything is acknowledged or `most` segments have arrived.
        fn run(&mut self, most: u64) {
            self.send();
            for _ in 0..most {
                self.now += Span::from_us(1);
                let Some((segment, _)) = self.queue.pop_front() else {
                    if self.sender.is_idle() {
                        return;
                    }
                    self.now = self.now.max(self.sender.deadline()).max(self.sender.pacing_deadline().min(self.now));
                    self.sender.handle_timeout(self.now, &self.stack);
                    self.send();
                    continue;
                };
                let arrival = arrival(&segment, self.receiver.next_expected()).unwrap();
                self.receiver.handle(self.now, arrival, &self.stack);
                while self.receiver.poll_completed().is_some() {}
                let fields = self.receiver.take_ack(&self.stack);
                let ack = Segment {
                    ack: fields.ack.wire(),
                    sack: fields.sack,
                    window: fields.window,
                    flags: Flags::ACK,
                    timestamp_echo: fields.timestamp_echo,
                    ..Segment::default()
                };
                self.acknowledgements += 1;
                self.sender.handle_ack(self.now, &ack, &self.stack);
                if self.sender.deadline() <= self.now {
                    self.sender.handle_timeout(self.now, &self.stack);
                }
                self.send();
            }
        }
    }

    fn smooth(profile: Profile, window: u64) -> Profile {
        Profile {
            offload_segments: 1,
            receive_offload_segments: 1,
            initial_window: Packets::new(window),
            receive_buffer: 64 << 20,
            ..profile
        }
    }

    #[test]
    fn work_per_acknowledgement_does_not_grow_with_the_window() {
        for (name, profile) in Profile::NAMED {
            // One loss per window, and many holes at once.
            for holes in [1, 4, 20] {
                let visits = |window: u64| {
                    let mut path = Path::new(smooth(*profile, window), window / holes, sender);
                    path.sender.offer(8 * window * 1448, Tag(1));
                    path.run(10 * window);
                    assert!(path.sender.is_idle(), "{name}");
                    path.sender.board.visits * 1000 / path.acknowledgements
                };
                // The receive window admits some 46,000 segments.
                let (small, large) = (visits(200), visits(40_000));
                assert!(large < 2 * small, "{name}, {holes}: {small} against {large} thousandths of a visit");
            }
        }
    }

    #[test]
    fn a_stream_crosses_the_wrap_of_wire_numbers() {
        for (name, profile) in Profile::NAMED {
            for before in [0, 1, 1447, 1448, 5_000, 50_000] {
                let mut path = Path::new(smooth(*profile, 20), 37, |stack| {
                    let mut sender = sender(stack);
                    let begin = Seq::new((3 << 32) - before);
                    (sender.una, sender.nxt, sender.offered, sender.allowed) = (begin, begin, begin, begin);
                    (sender.round_end, sender.usage_until, sender.recovery_point) = (begin, begin, begin);
                    sender
                });
                path.sender.offer(300_000, Tag(1));
                path.run(10_000);
                assert!(path.sender.is_idle(), "{name}, {before} bytes before the wrap");
                assert_eq!(path.receiver.next_expected(), path.sender.offered);
                assert!(path.sender.retransmitted_bytes >= 1448 * 5);
            }
        }
    }
}
