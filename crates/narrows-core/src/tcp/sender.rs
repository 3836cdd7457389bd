//! The sending half: its state, and what an acknowledgement means to it.

mod bursts;
mod paths;
mod recovery;
mod remembered;
mod sending;
mod timers;

pub(super) use sending::NextNew;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::cell::Cell;

use self::recovery::{Probe, ReorderWindow, UndoState};
use super::buffers::SendBuffer;
use super::near_source::{NearSource, Refusal};
use super::pacer::Pacer;
use super::plb::Plb;
use super::profile::{LossDetection, MIN_WINDOW_SCALE};
use super::rate::RateEstimator;
use super::reduction::Reduction;
use super::rtt::RttEstimator;
use super::scoreboard::{Delivered, Losses, Scoreboard};
use super::{EcnMode, Snapshot, Stack};
use crate::cc::{Ack, Cause, Controller, Limit, Owner, Path, Phase, RateSample, RttSample};
use crate::packet::{Flags, Segment, Seq, Tag};
use crate::queue::congestion_point::MAX_FEEDBACK;
use crate::rng::SmallStream;
use crate::telemetry::Hop;
use crate::units::{Packets, Rate, Span, Time};

/// Duplicate acknowledgements that tell a loss [RFC 5681 §3.2].
const DUPLICATE_THRESHOLD: u16 = 3;
/// An echo older than this is nonsense (Linux `tcp_rtt_tsopt_us`).
const MAX_ECHO_MS: u32 = (i32::MAX / 1000).unsigned_abs();
/// Linux's time slack of RACK before 4.18, and the clock tick of its offload decisions.
const TICK: Span = Span::from_ms(1);

/// A segment to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) start: Seq,
    pub(super) length: u16,
    pub(super) tag: Tag,
    pub(super) ends_message: bool,
    /// Nothing follows at once: the last of a message or of a burst.
    pub(super) pushes: bool,
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

/// What one acknowledgement tells.
struct AckSummary {
    delivered: Delivered,
    /// Its timestamp, and the echo of ours.
    timestamps: (u32, u32),
    /// It acknowledges more than any before it.
    advanced: bool,
    ece: bool,
    round_ended: bool,
    /// Packets in flight before it.
    prior_in_flight: u32,
    /// Segments found lost since the acknowledgement before it.
    lost: u32,
}

/// What an acknowledgement shows to be wrong.
#[derive(Clone, Copy, Debug, Default)]
struct LossSignal {
    /// Segments newly found lost by it.
    found: u32,
    /// The same with those that no acknowledgement has told of yet.
    lost: u32,
    /// The episode that begins.
    began: Option<Cause>,
}

/// The state of the sending half.
#[derive(Clone, Debug)]
// What each packet needs comes first, lest it lie in many cache lines.
#[repr(C)]
pub(super) struct Sender {
    /// First byte not acknowledged.
    una: Seq,
    /// First byte not sent.
    nxt: Seq,
    /// End of what the application offered.
    offered: Seq,
    /// End of what the receiver allows.
    allowed: Seq,
    /// What the controller said last, packets.
    controller_window: u64,
    round_end: Seq,
    usage_until: Seq,
    /// When the retransmission timer expires.
    timeout_at: Time,
    /// Since when it runs.
    armed_at: Time,
    /// When a probe of the tail goes instead; never later than the timeout.
    probe_at: Time,
    /// When the detector by time must look again.
    reorder_timer: Time,
    /// The latest transmission known delivered, and its RTT.
    latest: (Time, Seq),
    latest_rtt: Span,
    /// When the last segment left; [`Time::NEVER`] before the first.
    last_sent: Time,
    /// Timestamp of the first retransmission since none was out: an echo of an earlier one proves that an original arrived
    /// [RFC 3522 §3.2, Linux `retrans_stamp`].
    resent_at: Option<u32>,
    /// Most segments outstanding since `usage_until` was set, and what limited the sender at that moment.
    most_outstanding: u32,
    burst_left: u32,
    /// The small queue's limit, bytes, as long as nothing that it follows from changed; 0 where it is not known.
    known_limit: Cell<u32>,
    /// Losses that the timer found and no acknowledgement has told the controller yet.
    lost_unheard: u32,
    pub(super) timeouts: u32,
    /// The duplicate threshold, raised by reordering (Linux `tcp_sock.reordering`).
    reordering: u16,
    reordering_seen: bool,
    /// The peer's, whose host has the same profile.
    window_scale: u8,
    phase: Phase,
    limited_by: Limit,
    /// What kept it from sending more, when it was asked last.
    held_by: Limit,
    backoff: u8,
    /// Timeouts since the last progress.
    expiries: u8,
    sent_since_hold: bool,
    /// The last segment of the burst says so.
    pushes_burst: bool,
    /// The idle time since the last segment left was already answered by a restart.
    restarted: bool,
    probe_now: bool,
    /// The next segment goes, or the part of it that the peer's window admits, at least a byte.
    ask_for_window: bool,
    /// The timer expired: its segment goes whatever the window says.
    resend_now: bool,
    announce_reduction: bool,
    /// What the controller never does, so that it need not be asked.
    never_paces: bool,
    hears_of_starts_only: bool,
    /// The last probe; until it is judged no other goes.
    probe: Option<Probe>,
    /// The limit of a near-source switch, where the host listens.
    near_source: Option<Box<NearSource>>,
    /// The socket's send buffer, where it has a bound.
    buffer: Option<Box<SendBuffer>>,
    /// What chooses its packets' path, where hosts do.
    plb: Option<Box<Plb>>,
    reduction: Reduction,
    pub(super) rtt_sum: Span,
    pub(super) rtt_count: u64,
    /// The messages not wholly acknowledged, ascending.
    messages: VecDeque<Message>,
    board: Scoreboard,
    rtt: RttEstimator,
    rate: RateEstimator,
    pacer: Pacer,
    path: Path,
    controller: Controller,
    /// `nxt` when the episode began.
    recovery_point: Seq,
    undo_state: Option<UndoState>,
    reorder_window: ReorderWindow,
    pub(super) retransmitted_bytes: u64,
    /// What retransmission timers that expired had waited, the SYN's included.
    pub(super) rto_wait: Span,
}

impl Sender {
    /// The same, with the send buffer of the host's stack.
    pub(super) fn buffered(controller: Controller, path: Path, stack: &Stack) -> Sender {
        let buffer = stack.profile.adaptive_buffers.as_ref().map(|buffers| Box::new(SendBuffer::new(buffers)));
        Sender { buffer, window_scale: stack.profile.window_scale(), ..Sender::new(controller, path) }
    }

    pub(super) fn new(controller: Controller, path: Path) -> Sender {
        Sender {
            controller_window: controller.window().get(),
            never_paces: controller.never_paces(),
            hears_of_starts_only: controller.hears_of_starts_only(),
            controller,
            board: Scoreboard::default(),
            rtt: RttEstimator::new(path.rto),
            path,
            rate: RateEstimator::default(),
            pacer: Pacer::default(),
            near_source: None,
            buffer: None,
            window_scale: MIN_WINDOW_SCALE,
            una: Seq::FIRST,
            nxt: Seq::FIRST,
            offered: Seq::FIRST,
            allowed: Seq::FIRST,
            messages: VecDeque::new(),
            phase: Phase::Open,
            recovery_point: Seq::FIRST,
            reduction: Reduction::default(),
            undo_state: None,
            resent_at: None,
            announce_reduction: false,
            timeout_at: Time::NEVER,
            armed_at: Time::ZERO,
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
            reorder_window: ReorderWindow::NONE,
            lost_unheard: 0,
            round_end: Seq::FIRST,
            most_outstanding: 0,
            usage_until: Seq::FIRST,
            limited_by: Limit::Application,
            sent_since_hold: false,
            held_by: Limit::Application,
            burst_left: 0,
            pushes_burst: false,
            last_sent: Time::NEVER,
            plb: None,
            known_limit: Cell::new(0),
            restarted: false,
            retransmitted_bytes: 0,
            timeouts: 0,
            rto_wait: Span::ZERO,
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
            _ => self.controller_window,
        }
    }

    pub(super) fn handle_telemetry(&mut self, hops: &[Hop]) {
        let window = self.controller.on_telemetry(hops);
        self.take_window(window);
    }

    /// What the controller says after each call.
    #[inline(always)]
    fn take_window(&mut self, window: Packets) {
        self.controller_window = window.get();
        self.known_limit.set(0);
    }

    pub(super) fn controller(&self) -> &Controller {
        &self.controller
    }

    /// First byte not sent.
    pub(super) fn next_seq(&self) -> Seq {
        self.nxt
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

    /// See [`Endpoint::snapshot`](super::Endpoint::snapshot).
    pub(super) fn snapshot(&self, now: Time, stack: &Stack) -> Snapshot {
        let mut near = self.near_source.clone();
        if let (Some(near), Some(point)) = (&mut near, &stack.profile.near_source) {
            near.catch_up(now, stack.line_rate, point);
        }
        Snapshot {
            near_source: near.and_then(|near| near.rate()),
            window: Packets::new(self.window()),
            slow_start_threshold: self.controller.slow_start_threshold(),
            pacing: self.pacing_rate(stack),
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            rto: self.rtt.timeout(),
            in_flight: self.board.in_flight(),
            outstanding: self.board.outstanding(),
            phase: self.phase,
            una: self.una,
            nxt: self.nxt,
            offered: self.offered,
            timeouts: self.timeouts,
            held_by: self.held_by,
        }
    }

    /// Whether pacing, or a near-source switch, alone holds something back.
    #[inline(always)]
    fn waits_for_pacing(&self) -> bool {
        matches!(self.held_by, Limit::Pacing | Limit::NearSource)
    }

    /// Nothing is out and nothing is to go: asking for the next segment would change nothing.
    pub(super) fn is_quiescent(&self) -> bool {
        self.nxt >= self.offered
            && self.board.outstanding() == 0
            && !(self.probe_now || self.sent_since_hold || self.waits_for_pacing())
            && self.burst_left == 0
    }

    /// Listens to near-source switches.
    pub(super) fn listen(&mut self, stream: SmallStream) {
        self.near_source = Some(Box::new(NearSource::new(stream)));
    }

    /// A near-source switch tells of congestion that it saw by the packet that begins with `seq`.
    #[inline(never)]
    pub(super) fn notify(&mut self, now: Time, feedback: u8, seq: u32, stack: &Stack) -> Result<(), Refusal> {
        let (Some(near), Some(point)) = (&mut self.near_source, &stack.profile.near_source) else {
            return Err(Refusal::Off);
        };
        let quoted = Seq::expand(seq, self.una);
        if quoted < self.una || quoted >= self.nxt {
            return Err(Refusal::NotInFlight);
        }
        if !(1..=MAX_FEEDBACK).contains(&feedback) {
            return Err(Refusal::Feedback);
        }
        near.catch_up(now, stack.line_rate, point);
        near.notify(now, feedback, stack.line_rate, point);
        Ok(())
    }

    /// The rate that a near-source switch holds this sender at, if one does.
    pub(super) fn near_source_rate(&mut self, now: Time, stack: &Stack) -> Option<Rate> {
        let (near, point) = (self.near_source.as_mut()?, stack.profile.near_source.as_ref()?);
        near.catch_up(now, stack.line_rate, point);
        near.rate()
    }

    /// Notifications taken.
    pub(super) fn near_source_cuts(&self) -> u32 {
        self.near_source.as_ref().map_or(0, |near| near.cuts)
    }

    /// Everything offered is acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.una == self.offered
    }

    /// The receiver allows so much beyond `ack`.
    pub(super) fn allow(&mut self, ack: Seq, window: u16) {
        let offered = u64::from(window) << self.window_scale;
        let window = self.buffer.as_ref().map_or(offered, |buffer| buffer.size().min(offered));
        self.allowed = self.allowed.max(ack.plus(window));
    }

    /// An RTT measured by the handshake.
    pub(super) fn sample_handshake(&mut self, now: Time, span: Span, stack: &Stack) {
        self.rtt.sample(span, true, &stack.profile);
        self.rtt.sample_min(now, span);
        self.known_limit.set(0);
        self.refresh_path();
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
                // What was sent of it may have to be retransmitted.
                self.messages.push_back(Message { end: self.nxt, tag, whole: false });
            }
        }
    }

    #[inline(always)]
    fn refresh_path(&mut self) {
        self.refresh_path_with(self.board.in_flight());
    }

    /// The same with so many segments in flight.
    #[inline(always)]
    fn refresh_path_with(&mut self, in_flight: u32) {
        self.path.srtt = self.rtt.smoothed();
        self.path.min_rtt = self.rtt.min();
        self.path.rto = self.rtt.timeout();
        self.path.una = self.una;
        self.path.nxt = self.nxt;
        self.path.in_flight = Packets::new(u64::from(in_flight));
        self.path.outstanding = self.board.outstanding();
        self.path.departs_at = self.pacer.next();
    }

    #[inline]
    pub(super) fn handle_ack(&mut self, now: Time, segment: &Segment, stack: &Stack) {
        let ack = Seq::expand(segment.ack, self.una);
        if ack > self.nxt {
            return;
        }
        if let (Some(buffer), Some(srtt)) = (&mut self.buffer, self.rtt.smoothed()) {
            buffer.acknowledge(now, ack.since(self.una), srtt);
        }
        self.allow(ack, segment.window);
        let ece = segment.flags.contains(Flags::ECE) && stack.ecn != EcnMode::Off;
        if !ece && segment.sack.is_empty() && ack <= self.una {
            // What data carries the other way while nothing changes.
            return;
        }
        self.take_any_ack(now, ack, ece, *segment, stack);
    }

    /// Whether, until something else happens, acknowledgements without reports can only deliver in order, and nothing but new data
    /// is to be sent.
    pub(super) fn is_undisturbed(&self, stack: &Stack) -> bool {
        self.is_on_fast_path(stack)
            && self.buffer.is_none()
            && self.near_source.is_none()
            && self.reorder_timer == Time::NEVER
            && !(self.probe_now || self.resend_now)
    }

    /// Nothing is out, nothing is to go, and no timer runs.
    pub(super) fn is_at_rest(&self) -> bool {
        self.is_quiescent() && self.una == self.nxt && self.buffer.is_none() && self.deadline() == Time::NEVER
    }

    /// A sender [at rest](Self::is_at_rest) hears what it knows; false, and nothing is changed, if it is something else.
    #[inline(always)]
    pub(super) fn hears_nothing_new(&mut self, segment: &Segment) -> bool {
        let known = segment.ack == self.una.wire();
        if known {
            self.allowed = self.allowed.max(self.una.plus(u64::from(segment.window) << self.window_scale));
        }
        known
    }

    /// An acknowledgement without flags and reports while the sender is [undisturbed](Self::is_undisturbed). False, and nothing is
    /// changed, if it acknowledges no whole segment.
    #[inline(always)]
    pub(super) fn take_ack_in_order(&mut self, now: Time, segment: &Segment, stack: &Stack) -> bool {
        let ack = Seq::expand(segment.ack, self.una);
        if ack <= self.una || ack > self.nxt {
            return false;
        }
        let prior_in_flight = self.board.outstanding();
        let Some(delivered) = self.board.acknowledge_untouched(self.una, ack) else { return false };
        self.allowed = self.allowed.max(ack.plus(u64::from(segment.window) << self.window_scale));
        let round_ended = self.advance(ack);
        let timestamps = (segment.timestamp, segment.timestamp_echo);
        let summary =
            AckSummary { delivered, timestamps, advanced: true, ece: false, round_ended, prior_in_flight, lost: 0 };
        let samples = self.measure(now, &summary, stack);
        self.resent_at = None;
        debug_assert_eq!(self.board.in_flight(), self.board.outstanding());
        self.tell_controller(now, &summary, samples, self.board.outstanding());
        self.rearm_in_order(now, stack);
        true
    }

    #[inline(never)]
    fn take_any_ack(&mut self, now: Time, ack: Seq, ece: bool, segment: Segment, stack: &Stack) {
        let prior_in_flight = self.board.in_flight();
        let on_fast_path = !ece && segment.sack.is_empty() && self.is_on_fast_path(stack);
        let advanced = ack > self.una;
        let mut delivered = self.board.begin_acknowledgement();
        let duplicate = !segment.sack.is_empty() && self.take_sack(&segment, ack, &mut delivered, stack);
        let mut round_ended = false;
        if advanced {
            self.board.acknowledge(self.una, ack, &mut delivered);
            round_ended = self.advance(ack);
        }
        if delivered.packets == 0 && !ece && !duplicate && !advanced {
            return;
        }
        let timestamps = (segment.timestamp, segment.timestamp_echo);
        let mut summary = AckSummary { delivered, timestamps, advanced, ece, round_ended, prior_in_flight, lost: 0 };
        let mut samples = self.measure(now, &summary, stack);
        let LossSignal { found, lost, began } = if on_fast_path {
            self.reorder_timer = Time::NEVER;
            self.resent_at = None;
            LossSignal::default()
        } else {
            self.look_for_losses(now, duplicate, &summary, stack)
        };
        summary.lost = lost;
        if let Some(sample) = &mut samples.1 {
            sample.lost_since_send += Packets::new(u64::from(found));
        }
        self.tell_controller(now, &summary, samples, self.board.in_flight());
        if let Some(plb) = &mut self.plb {
            let delivered = u64::from(summary.delivered.packets);
            let idle = self.board.outstanding() == 0;
            plb.on_ack(now, (delivered, if ece { delivered } else { 0 }), round_ended, idle);
        }
        if let Some(cause) = began {
            self.begin_reduction(now, cause, u64::from(prior_in_flight));
        }
        if matches!(self.phase, Phase::Recovery | Phase::EcnReduction) {
            let clean = advanced && found == 0;
            self.reduction.on_ack(u64::from(summary.delivered.packets), u64::from(self.board.in_flight()), clean);
        }
        self.rearm_after_ack(now, advanced, stack);
    }

    /// Everything up to `ack` is acknowledged; returns whether that ends a round.
    #[inline(always)]
    fn advance(&mut self, ack: Seq) -> bool {
        self.una = ack;
        self.expiries = 0;
        while self.messages.front().is_some_and(|message| message.end <= ack) {
            self.messages.pop_front();
        }
        let round_ended = ack >= self.round_end;
        if round_ended {
            self.round_end = self.nxt;
        }
        round_ended
    }

    /// Takes the samples of the RTT and of the delivery rate.
    #[inline(always)]
    fn measure(&mut self, now: Time, summary: &AckSummary, stack: &Stack) -> (Option<RttSample>, Option<RateSample>) {
        let rtt = self.take_round_trip(now, summary, stack);
        let delivery = self.rate.sample(now, summary.delivered.packets, summary.delivered.stamp, self.rtt.min());
        self.notice_latest(now, &summary.delivered);
        (rtt, delivery)
    }

    #[inline(always)]
    fn tell_controller(
        &mut self,
        now: Time,
        summary: &AckSummary,
        (rtt, delivery): (Option<RttSample>, Option<RateSample>),
        in_flight: u32,
    ) {
        self.refresh_path_with(in_flight);
        let AckSummary { delivered, ece, .. } = summary;
        if delivered.packets == 0 && !ece {
            // What it acknowledges was reported before, but it may have an RTT.
            self.known_limit.set(0);
            return;
        }
        let acked = Packets::new(u64::from(delivered.packets));
        let mut facts = Ack {
            now,
            acked,
            marked: if *ece { acked } else { Packets::ZERO },
            lost: Packets::new(u64::from(summary.lost)),
            ece: *ece,
            rtt,
            delivery: None,
            delivered: Packets::new(self.rate.delivered()),
            una: self.una,
            nxt: self.nxt,
            in_flight: self.path.in_flight,
            prior_in_flight: Packets::new(u64::from(summary.prior_in_flight)),
            max_in_flight: Packets::new(u64::from(self.most_outstanding)),
            phase: self.phase,
            limited_by: self.limited_by,
            timestamps: summary.timestamps,
            in_order: summary.advanced || self.reordering > DUPLICATE_THRESHOLD,
        };
        // Few are told of it: its place is not filled where there is none.
        if delivery.is_some() {
            facts.delivery = delivery;
        }
        let window = self.controller.on_ack(&facts, &self.path);
        self.take_window(window);
    }

    /// Nothing is lost, retransmitted, reported beyond a hole or to be undone, and nothing that is out left before what is known
    /// delivered: an acknowledgement without reports can only deliver in order.
    fn is_on_fast_path(&self, stack: &Stack) -> bool {
        self.phase == Phase::Open
            && self.board.is_untouched()
            && self.undo_state.is_none_or(|undo_state| !undo_state.is_all_reported())
            && self.probe.is_none()
            && self.lost_unheard == 0
            && (stack.profile.loss_detection != LossDetection::Rack
                || self.board.oldest_sent_at().is_none_or(|oldest| oldest >= self.latest.0))
    }

    /// Looks for losses, for proof that earlier ones were none, and for the begin or end of an episode.
    #[inline(never)]
    fn look_for_losses(&mut self, now: Time, duplicate: bool, summary: &AckSummary, stack: &Stack) -> LossSignal {
        let Losses { found, resent } = self.find_losses(now, summary.ece, stack);
        let lost = found + core::mem::take(&mut self.lost_unheard);
        if let Some(undo_state) = &mut self.undo_state {
            // The path is congested, whatever the retransmissions were.
            undo_state.restores &= !summary.ece;
        }
        let mut ece = summary.ece;
        if self.was_needless(summary.timestamps.1, summary.advanced) {
            // A recovery that ends so before its point leaves the echo to the next one (Linux `tcp_try_undo_partial`).
            ece &= self.phase != Phase::Recovery || self.una >= self.recovery_point;
            self.undo(&summary.delivered);
        }
        self.leave_finished_episode();
        let probe_repaired_loss = self.judge_probe(duplicate);
        LossSignal { found, lost, began: self.enter_episode(ece, resent > 0, probe_repaired_loss, stack) }
    }

    /// Reads the blocks; returns whether the first reported a duplicate.
    #[inline(never)]
    fn take_sack(&mut self, segment: &Segment, ack: Seq, delivered: &mut Delivered, stack: &Stack) -> bool {
        let mut blocks = [(Seq::SYN, Seq::SYN); 3];
        for (block, (start, end)) in blocks.iter_mut().zip(segment.sack.iter()) {
            *block = (Seq::expand(start, self.una), Seq::expand(end, self.una));
        }
        let (first, second) = (blocks[0], blocks[1]);
        let duplicate = first.1 <= ack || (second.1 > second.0 && second.0 <= first.0 && first.1 <= second.1);
        if duplicate {
            let of_probe = self.probe.is_some_and(|probe| probe.resent && probe.high == first.1);
            if !of_probe {
                self.reorder_window.widen(self.una, self.nxt);
            }
            if let Some(undo_state) = &mut self.undo_state
                && first.1 > undo_state.since
                && first.1 <= self.nxt
            {
                // One block may report what receive offload has merged.
                let segments = u32::try_from(first.1.since(first.0).div_ceil(stack.mss())).unwrap_or(u32::MAX);
                undo_state.unreported = undo_state.unreported.saturating_sub(segments);
            }
            blocks[0] = (Seq::SYN, Seq::SYN);
        }
        for block in &mut blocks {
            if block.0 >= block.1 || block.0 < self.una || block.1 > self.nxt {
                *block = (Seq::SYN, Seq::SYN);
            }
        }
        self.board.sack_all(blocks, self.una, delivered);
        duplicate
    }

    #[inline(always)]
    fn take_round_trip(&mut self, now: Time, summary: &AckSummary, stack: &Stack) -> Option<RttSample> {
        let round_trip = summary.delivered.round_trip();
        let newest = round_trip.map(|(_, (sent_at, seq))| RttSample { span: now.since(sent_at), seq });
        let for_timeout = match round_trip {
            Some((sent_at, _)) => Some(now.since(sent_at)),
            // The timestamp tells which transmission it was [RFC 7323 §4.1].
            None if summary.advanced && summary.timestamps.1 != 0 => self.since_echo(now, summary.timestamps.1, stack),
            None => None,
        };
        if let Some(span) = for_timeout {
            self.rtt.sample(span, summary.round_ended, &stack.profile);
            self.backoff = 0;
        }
        if let Some(sample) = newest {
            self.rtt_count += 1;
            self.rtt.sample_min(now, sample.span);
            self.rtt_sum += sample.span;
        }
        newest
    }
}

impl Sender {
    /// The RTT that a timestamp echo tells, unless it is nonsense.
    fn since_echo(&self, now: Time, echo: u32, stack: &Stack) -> Option<Span> {
        let ticks = u64::from(stack.profile.timestamp(now).wrapping_sub(echo));
        let (tick, most) = match stack.profile.microsecond_timestamps {
            false => (Span::from_ms(1), u64::from(MAX_ECHO_MS)),
            true => (Span::from_us(1), u64::from(u32::MAX / 2)),
        };
        (ticks < most).then(|| tick * ticks.max(1))
    }

    /// The timeout of the first segment, before any sample of this connection.
    pub(super) fn first_timeout(&self) -> Span {
        self.rtt.timeout()
    }
}

#[cfg(test)]
mod tests;
