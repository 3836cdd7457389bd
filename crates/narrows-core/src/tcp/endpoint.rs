//! One end of a connection: handshake, the two halves, and the segments between them.

mod fast_path;

pub use fast_path::FastPath;

use super::near_source::Refusal;
use super::receiver::{AckFields, Receiver, arrival};
use super::sender::{Outgoing, Sender};
use super::{EcnMode, Metrics, Snapshot, Stack};
use crate::cc::{Controller, Path, Phase};
use crate::packet::{Ecn, Flags, Segment, Seq, Tag};
use crate::rng::SmallStream;
use crate::routing::rehash;
use crate::telemetry::Hop;
use crate::units::{Bytes, Packets, Rate, Span, Time};

/// What the application hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Established,
    /// A message arrived whole and in order.
    Delivered(Tag),
}

/// Where the handshake stands [RFC 9293 §3.3.2].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    /// Not begun.
    Closed,
    /// A SYN is to be sent, or was sent at this time for the last time.
    SynSent {
        at: Option<Time>,
        tries: u8,
    },
    /// A SYN came; a SYN-ACK is to be sent, or was sent at this time.
    SynReceived {
        at: Option<Time>,
        tries: u8,
    },
    Established,
}

/// What a connection's end has counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// What retransmission timers that expired had waited; of the handshake's the SYN's alone, which the opener waits for.
    pub rto_wait: Span,
    /// Sum of the RTT samples.
    pub rtt_sum: Span,
    /// Number of RTT samples.
    pub rtt_count: u64,
    /// Payload bytes that arrived here marked.
    pub marked_bytes: u64,
    /// Payload bytes that arrived here in order.
    pub delivered_bytes: u64,
    /// Those that wait behind a hole.
    pub beyond_bytes: u64,
    /// Notifications of near-source switches that were taken.
    pub near_source_cuts: u32,
}

/// One end of a connection. See the module's documentation for how to drive it.
#[derive(Clone, Debug)]
// What each packet needs comes first, lest it lie in many cache lines.
#[repr(C)]
pub struct Endpoint {
    fast_path: FastPath,
    /// Tells the application once.
    announce: bool,
    syn_retransmits: u8,
    /// Tag of the SYN: what the opener says of the connection.
    syn_tag: Tag,
    handshake_timer: Time,
    receiver: Receiver,
    sender: Sender,
    handshake: Handshake,
}

impl Endpoint {
    /// An end whose handshake has not begun. Either side calls [`Endpoint::open`], or a SYN arrives.
    pub fn closed(controller: Controller, stack: &Stack) -> Endpoint {
        Endpoint {
            handshake: Handshake::Closed,
            announce: false,
            handshake_timer: Time::NEVER,
            syn_retransmits: 0,
            syn_tag: Tag::default(),
            fast_path: FastPath::Unknown,
            sender: Sender::buffered(controller, initial_path(stack), stack),
            receiver: Receiver::new(stack),
        }
    }

    /// An end of a connection that was opened earlier: its handshake took `round_trip`.
    pub fn established(controller: Controller, round_trip: Span, stack: &Stack) -> Endpoint {
        let mut endpoint = Endpoint { handshake: Handshake::Established, ..Endpoint::closed(controller, stack) };
        endpoint.sender.sample_handshake(Time::ZERO, round_trip, stack);
        endpoint.receiver.learn_round_trip(round_trip, stack);
        let window = endpoint.receiver.window(stack);
        endpoint.sender.allow(Seq::FIRST, window);
        endpoint
    }

    /// Begins with what the host remembers of the peer, before anything was sent; the controller was built with it.
    pub fn recall(&mut self, metrics: &Metrics, stack: &Stack) {
        self.leave_fast_path();
        self.sender.recall(metrics, stack);
    }

    /// What the host is to remember of the peer as this end closes, if it has learned enough.
    pub fn metrics(&self) -> Option<Metrics> {
        self.sender.metrics()
    }

    /// Begins the handshake; the SYN carries `tag`.
    pub fn open(&mut self, tag: Tag) {
        self.leave_fast_path();
        if self.handshake == Handshake::Closed {
            self.handshake = Handshake::SynSent { at: None, tries: 0 };
            self.syn_tag = tag;
        }
    }

    /// Puts a message of `bytes` into the stream; may be called before the handshake is complete.
    pub fn offer(&mut self, bytes: Bytes, tag: Tag) {
        self.leave_fast_path();
        if bytes > Bytes::ZERO {
            self.sender.offer(bytes.get(), tag);
        }
    }

    /// Takes back what is offered but not yet sent.
    pub fn stop(&mut self) {
        self.leave_fast_path();
        self.sender.stop();
    }

    /// A segment arrived, or several that the host's receive offload has merged.
    #[inline(always)]
    pub fn handle_segment(&mut self, now: Time, segment: &Segment, stack: &Stack) {
        if !self.handle_on_fast_path(now, segment, stack) {
            self.handle_on_full_path(now, segment, stack);
        }
    }

    #[inline(never)]
    fn handle_on_full_path(&mut self, now: Time, segment: &Segment, stack: &Stack) {
        self.leave_fast_path();
        if segment.flags.contains(Flags::SYN) {
            self.handle_syn(now, *segment, stack);
            return;
        }
        if let Handshake::SynReceived { at, tries } = self.handshake
            && segment.flags.contains(Flags::ACK)
            && segment.ack == Seq::FIRST.wire()
        {
            self.establish(now, at.filter(|_| tries == 1), stack);
        }
        if self.handshake != Handshake::Established {
            return;
        }
        if segment.length == 0 {
            if stack.profile.adaptive_buffers.is_some() {
                self.receiver.note_timestamp(segment);
            }
        } else if let Some(piece) = arrival(segment, self.receiver.next_expected()) {
            let before = self.receiver.next_expected();
            if piece.end <= before {
                self.sender.note_repeated_data(piece.start);
            }
            self.receiver.handle(now, piece, stack);
            if stack.profile.adaptive_buffers.is_some() {
                let bytes = self.receiver.next_expected().since(before);
                self.receiver.note_echo(bytes, segment.timestamp_echo, stack.profile.timestamp(now));
            }
        } else {
            self.receiver.acknowledge_now();
        }
        if segment.flags.contains(Flags::ACK) {
            self.sender.handle_ack(now, segment, stack);
        }
    }

    #[inline(never)]
    fn handle_syn(&mut self, now: Time, segment: Segment, stack: &Stack) {
        if self.handshake != Handshake::Established {
            self.receiver.learn_timestamp(segment.timestamp);
            self.sender.allow(Seq::FIRST, segment.window);
        }
        let answers = segment.flags.contains(Flags::ACK);
        match self.handshake {
            Handshake::Closed if !answers => {
                self.handshake = Handshake::SynReceived { at: None, tries: 0 };
                self.syn_tag = segment.tag;
            }
            // The SYN came again: our SYN-ACK was lost.
            Handshake::SynReceived { tries, .. } if !answers => {
                self.handshake = Handshake::SynReceived { at: None, tries };
                self.sender.leave_path();
            }
            Handshake::SynSent { at, tries } if answers => {
                self.establish(now, at.filter(|_| tries == 1), stack);
                // The third step of the handshake, unless data goes first.
                self.receiver.acknowledge_now();
            }
            // A repeated SYN-ACK: our acknowledgement of it was lost.
            Handshake::Established if answers => self.receiver.acknowledge_now(),
            _ => {}
        }
    }

    /// `sent_once` is when our SYN or SYN-ACK left, if only one did: the first RTT sample.
    fn establish(&mut self, now: Time, sent_once: Option<Time>, stack: &Stack) {
        self.handshake = Handshake::Established;
        self.handshake_timer = Time::NEVER;
        self.announce = true;
        if let Some(at) = sent_once {
            self.sender.sample_handshake(now, now.since(at), stack);
            self.receiver.learn_round_trip(now.since(at), stack);
        }
    }

    /// Listens to near-source switches from now on, if the host does; what is random in how it answers comes from `stream`.
    pub fn listen(&mut self, stream: SmallStream, stack: &Stack) {
        self.leave_fast_path();
        if stack.profile.near_source.is_some() {
            self.sender.listen(stream);
        }
    }

    /// Chooses the path of its packets from now on, among equal ones, by the label that each carries
    /// ([`path_label`](Self::path_label)), of these bits: another after congested rounds and timeouts, drawn from `stream`.
    pub fn balance(&mut self, config: rehash::Config, labels: u32, stream: SmallStream) {
        // Which watches neither rounds nor marks.
        self.take_full_path();
        self.sender.balance(config, labels, stream);
    }

    /// The label of the packet that was polled last; 0 if it does not [choose paths](Self::balance).
    #[inline(always)]
    pub fn path_label(&self) -> u32 {
        self.sender.path_label()
    }

    /// How often this end has drawn another label since the last call.
    pub fn take_path_changes(&mut self) -> u32 {
        self.sender.take_path_changes()
    }

    /// A near-source switch tells of congestion, 1 to 63, that it saw by the packet of ours whose first byte is `seq`.
    ///
    /// # Errors
    /// If it is not to be believed; nothing is changed then.
    pub fn handle_notification(&mut self, now: Time, feedback: u8, seq: u32, stack: &Stack) -> Result<(), Refusal> {
        self.leave_fast_path();
        self.sender.notify(now, feedback, seq, stack)
    }

    /// What ports wrote into a packet of ours came back.
    pub fn handle_telemetry(&mut self, hops: &[Hop]) {
        self.sender.handle_telemetry(hops);
    }

    /// The rate that a near-source switch holds this end at, if one does.
    pub fn near_source_rate(&mut self, now: Time, stack: &Stack) -> Option<Rate> {
        self.sender.near_source_rate(now, stack)
    }

    /// A deadline may have passed; calling early does nothing.
    pub fn handle_timeout(&mut self, now: Time, stack: &Stack) {
        self.leave_fast_path();
        self.receiver.handle_timeout(now);
        if self.handshake_timer <= now {
            self.handshake_timer = Time::NEVER;
            self.sender.leave_path();
            match self.handshake {
                Handshake::SynSent { at, tries } => {
                    self.sender.rto_wait += at.map_or(Span::ZERO, |at| now.since(at));
                    self.syn_retransmits = self.syn_retransmits.saturating_add(1);
                    self.handshake = Handshake::SynSent { at: None, tries };
                }
                Handshake::SynReceived { tries, .. } => self.handshake = Handshake::SynReceived { at: None, tries },
                Handshake::Closed | Handshake::Established => {}
            }
        }
        if self.handshake == Handshake::Established && self.sender.deadline() <= now {
            self.sender.handle_timeout(now, stack);
        }
    }

    /// Whether anything happened since the last call of [`poll_event`](Self::poll_event).
    #[inline]
    pub fn has_event(&self) -> bool {
        self.announce || self.receiver.has_completed()
    }

    /// What happened since the last call.
    pub fn poll_event(&mut self) -> Option<Event> {
        if core::mem::take(&mut self.announce) {
            return Some(Event::Established);
        }
        self.receiver.poll_completed().map(Event::Delivered)
    }

    /// The next segment to send now.
    pub fn poll_transmit(&mut self, now: Time, stack: &Stack) -> Option<Segment> {
        let mut segment = Segment::default();
        self.poll_into(&mut segment, now, true, stack).then_some(segment)
    }

    /// The same, into an empty `segment`; false if there is none. Without `room`, while the host's port holds enough of this
    /// connection, only what carries no data may go.
    #[inline(always)]
    pub fn poll_into(&mut self, segment: &mut Segment, now: Time, room: bool, stack: &Stack) -> bool {
        match self.poll_on_fast_path(segment, now, room, stack) {
            Some(found) => found,
            None => self.poll_on_full_path(segment, now, room, stack),
        }
    }

    #[inline(never)]
    fn poll_on_full_path(&mut self, segment: &mut Segment, now: Time, room: bool, stack: &Stack) -> bool {
        if self.handshake != Handshake::Established {
            let flags = if room { self.poll_handshake(now, stack) } else { None };
            if let Some(flags) = flags {
                let fields = self.receiver.take_ack(stack);
                self.acknowledge(segment, now, fields, stack);
                (segment.seq, segment.ack) = (Seq::SYN.wire(), Seq::FIRST.wire());
                (segment.flags, segment.tag) = (flags, self.syn_tag);
            }
            return flags.is_some();
        }
        if let Some(fields) = self.receiver.take_before_change(stack) {
            self.acknowledge(segment, now, fields, stack);
            return true;
        }
        let due = self.receiver.must_acknowledge();
        // What arrived out of order is told by itself: beside the option a full segment would not fit the packet.
        let may_send = room && !self.sender.is_quiescent() && !(due && self.receiver.has_reports());
        let outgoing = if may_send { self.sender.next(now, stack) } else { None };
        if outgoing.is_none() && !due {
            return false;
        }
        let reports_wait = self.receiver.reports_wait();
        let fields = self.receiver.take_ack(stack);
        self.acknowledge(segment, now, fields, stack);
        if reports_wait && outgoing.is_some() {
            // Data has taken the acknowledgement along, and not them.
            self.receiver.acknowledge_now();
        } else if self.receiver.has_reports() {
            let sack = self.receiver.take_reports();
            if outgoing.is_none() {
                segment.sack = sack;
            }
        }
        if let Some(outgoing) = outgoing {
            Endpoint::carry(segment, outgoing, stack);
        }
        true
    }

    /// Whether the next poll is sure to find nothing and to change nothing; false says nothing.
    #[inline]
    pub fn is_quiescent(&self) -> bool {
        if self.fast_path == FastPath::Receiving {
            return !self.receiver.must_acknowledge();
        }
        self.sender.is_quiescent() && !self.receiver.must_acknowledge() && !self.receiver.reports_change()
    }

    /// The flags of a segment of the handshake, if one is to be sent now.
    #[inline(never)]
    fn poll_handshake(&mut self, now: Time, stack: &Stack) -> Option<Flags> {
        let (flags, tries) = match &mut self.handshake {
            Handshake::SynSent { at: at @ None, tries } => {
                *at = Some(now);
                (Flags::SYN, tries)
            }
            Handshake::SynReceived { at: at @ None, tries } => {
                *at = Some(now);
                (Flags::SYN.with(Flags::ACK), tries)
            }
            _ => return None,
        };
        let doubled = self.sender.first_timeout().saturating_mul(1 << (*tries).min(16));
        *tries = tries.saturating_add(1);
        self.handshake_timer = now + doubled.min(stack.profile.max_rto);
        Some(flags)
    }

    /// Makes the segment a bare acknowledgement.
    #[inline(always)]
    fn acknowledge(&self, segment: &mut Segment, now: Time, fields: AckFields, stack: &Stack) {
        segment.seq = self.sender.next_seq().wire();
        segment.ack = fields.ack.wire();
        segment.flags = Flags::ACK.with_if(Flags::ECE, fields.ece);
        segment.window = fields.window;
        segment.timestamp = stack.profile.timestamp(now);
        segment.timestamp_echo = fields.timestamp_echo;
        if stack.profile.capable_acks {
            segment.ecn = stack.ecn.of_bare_segments();
        }
    }

    /// Lets an acknowledgement carry data.
    #[inline(always)]
    fn carry(segment: &mut Segment, outgoing: Outgoing, stack: &Stack) {
        // Classic ECN leaves retransmissions unmarked by rule [RFC 3168 §6.1.5]; DCTCP's are capable (Linux
        // `tcp_ca_needs_ecn`).
        segment.ecn = match stack.ecn {
            EcnMode::Off => Ecn::NotCapable,
            EcnMode::Classic if outgoing.resent => Ecn::NotCapable,
            EcnMode::Classic | EcnMode::Exact => Ecn::Capable,
            EcnMode::L4s => Ecn::Capable1,
        };
        segment.seq = outgoing.start.wire();
        segment.length = outgoing.length;
        segment.flags = segment
            .flags
            .with_if(Flags::PSH, outgoing.pushes)
            .with_if(Flags::END, outgoing.ends_message)
            .with_if(Flags::CWR, outgoing.announces_reduction);
        segment.tag = outgoing.tag;
    }

    /// The earliest timer but pacing's; [`Time::NEVER`] for none. Retransmission, delayed acknowledgement and handshake
    /// share it: they are far away, or rare.
    #[inline(always)]
    pub fn deadline(&self) -> Time {
        match self.fast_path {
            FastPath::Receiving => self.receiver.deadline(),
            FastPath::Sending => self.sender.timeout_or_probe(),
            FastPath::Unknown | FastPath::Off => self.any_deadline(),
        }
    }

    #[inline(never)]
    fn any_deadline(&self) -> Time {
        let sender = self.sender.deadline();
        sender.min(self.receiver.deadline()).min(self.handshake_timer)
    }

    /// When pacing lets the next piece go; [`Time::NEVER`] unless pacing alone holds something back.
    #[inline(always)]
    pub fn pacing_deadline(&self) -> Time {
        self.sender.pacing_deadline()
    }

    /// Whether the host's port may be given more of this connection while so many bytes of it wait there: fewer than the
    /// [limit](Self::small_queue_limit).
    #[inline(always)]
    pub fn has_room(&self, waiting: Bytes, stack: &Stack) -> bool {
        self.sender.has_room(waiting, stack)
    }

    /// Most bytes of this connection that may wait in its host's port before the driver stops asking for more.
    pub fn small_queue_limit(&self, stack: &Stack) -> Bytes {
        self.sender.small_queue_limit(stack)
    }

    /// Whether the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.handshake == Handshake::Established
    }

    /// SYNs retransmitted.
    pub fn syn_retransmits(&self) -> u8 {
        self.syn_retransmits
    }

    /// Whether the handshake has begun on neither side.
    pub fn is_closed(&self) -> bool {
        self.handshake == Handshake::Closed
    }

    /// Whether everything offered here has been acknowledged.
    pub fn is_idle(&self) -> bool {
        self.sender.is_idle()
    }

    /// The congestion window in force.
    pub fn window(&self) -> Packets {
        Packets::new(self.sender.window())
    }

    /// The pacing rate in force.
    pub fn pacing(&self, stack: &Stack) -> Option<Rate> {
        self.sender.pacing_rate(stack)
    }

    /// Where the sending half stands.
    pub fn phase(&self) -> Phase {
        self.sender.phase()
    }

    /// Segments sent and not acknowledged.
    pub fn outstanding(&self) -> u32 {
        self.sender.outstanding()
    }

    /// Segments thought to be in the network: sent, neither delivered nor lost.
    pub fn in_flight(&self) -> u32 {
        self.sender.in_flight()
    }

    /// The sending half as it stands now, for observation.
    pub fn snapshot(&self, now: Time, stack: &Stack) -> Snapshot {
        self.sender.snapshot(now, stack)
    }

    /// The controller, for observation.
    pub fn controller(&self) -> &Controller {
        self.sender.controller()
    }

    /// Tag of the SYN that opened the connection.
    pub fn syn_tag(&self) -> Tag {
        self.syn_tag
    }

    /// What has been counted.
    pub fn tallies(&self) -> Tallies {
        Tallies {
            retransmitted_bytes: self.sender.retransmitted_bytes,
            timeouts: self.sender.timeouts,
            rto_wait: self.sender.rto_wait,
            rtt_sum: self.sender.rtt_sum,
            rtt_count: self.sender.rtt_count,
            marked_bytes: self.receiver.marked_bytes(),
            delivered_bytes: self.receiver.delivered(),
            beyond_bytes: self.receiver.beyond_bytes(),
            near_source_cuts: self.sender.near_source_cuts(),
        }
    }
}

/// The path as a controller first sees it, before any sample.
pub fn initial_path(stack: &Stack) -> Path {
    Path {
        mss: Bytes::new(stack.mss()),
        packet: stack.packet(),
        initial_window: stack.profile.initial_window,
        line_rate: stack.line_rate,
        srtt: None,
        min_rtt: None,
        rto: stack.profile.initial_rto,
        burst: stack.profile.offload_segments.into(),
        una: Seq::FIRST,
        nxt: Seq::FIRST,
        in_flight: Packets::ZERO,
        outstanding: 0,
        departs_at: Time::ZERO,
    }
}
