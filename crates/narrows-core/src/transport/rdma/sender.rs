//! The sending half: what goes next, what an acknowledgement means, when something is retransmitted.

use alloc::collections::VecDeque;

use super::{Config, Recovery};
use crate::cc::{Ack, Cause, Controller, Limit, Owner, Path, Phase, RttSample, Sent};
use crate::packet::{Flags, Segment, Seq, Tag};
use crate::tcp::rtt::RttEstimator;
use crate::tcp::{EcnMode, Snapshot, Stack, Tallies, initial_path};
use crate::telemetry::Hop;
use crate::units::{Bytes, Packets, Rate, Span, Time};

/// Bytes of data that are sent and not acknowledged at most: numbers of 32 bits tell them apart.
const MAX_OUTSTANDING: u64 = 1 << 30;

/// A message, or what is left of it to be sent for the first time.
#[derive(Clone, Copy, Debug)]
struct Message {
    end: Seq,
    tag: Tag,
}

/// Where a packet that was sent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    /// It is to be retransmitted.
    Lost,
    /// The receiver has it, and something before it is missing.
    Delivered,
}

/// A packet that was sent and is not acknowledged in order.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    start: Seq,
    length: u16,
    ends_message: bool,
    /// Of its last transmission: what an acknowledgement echoes.
    number: u32,
    state: State,
    tag: Tag,
    sent_at: Time,
}

impl Outstanding {
    fn end(&self) -> Seq {
        self.start.plus(self.length.into())
    }
}

/// The sending half of a connection's end.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    config: Config,
    controller: Controller,
    path: Path,
    rtt: RttEstimator,
    unsent: VecDeque<Message>,
    outstanding: VecDeque<Outstanding>,
    una: Seq,
    /// First byte that was never sent.
    nxt: Seq,
    in_flight: u64,
    lost: u64,
    /// No packet before this place among those outstanding is lost.
    lost_from: usize,
    /// End of the highest packet that the receiver has out of order, and how far what is missing was looked for.
    highest: Seq,
    looked_until: Seq,
    phase: Phase,
    /// The episode is over once everything before this is acknowledged.
    recovery_point: Seq,
    /// Where the round that is counted ends, and the most that was in flight in it and in the one before.
    round_end: Seq,
    round_max: u64,
    max_in_flight: u64,
    lost_since_ack: u64,
    delivered: u64,
    /// When the acknowledged data advanced last, and whether the timeout has expired since.
    progress_at: Time,
    has_expired: bool,
    /// When the next packet may go, at the earliest.
    paced_until: Time,
    waits_for_pacing: bool,
    held_by: Limit,
    last_sent: Option<Time>,
    transmissions: u32,
    tallies: Tallies,
}

impl Sender {
    pub(super) fn new(config: Config, controller: Controller, round_trip: Span, stack: &Stack) -> Sender {
        let mut rtt = RttEstimator::new(config.timeout);
        rtt.sample(round_trip, false, &stack.profile);
        rtt.sample_min(Time::ZERO, round_trip);
        let path = Path {
            mss: Bytes::new(stack.mtu.rdma_payload().into()),
            srtt: rtt.smoothed(),
            min_rtt: rtt.min(),
            rto: config.timeout,
            burst: 1,
            ..initial_path(stack)
        };
        Sender {
            config,
            controller,
            path,
            rtt,
            unsent: VecDeque::new(),
            outstanding: VecDeque::new(),
            una: Seq::FIRST,
            nxt: Seq::FIRST,
            in_flight: 0,
            lost: 0,
            lost_from: 0,
            highest: Seq::FIRST,
            looked_until: Seq::FIRST,
            phase: Phase::Open,
            recovery_point: Seq::FIRST,
            round_end: Seq::FIRST,
            round_max: 0,
            max_in_flight: 0,
            lost_since_ack: 0,
            delivered: 0,
            progress_at: Time::ZERO,
            has_expired: false,
            paced_until: Time::ZERO,
            waits_for_pacing: false,
            held_by: Limit::Application,
            last_sent: None,
            transmissions: 0,
            tallies: Tallies::default(),
        }
    }

    pub(super) fn offer(&mut self, bytes: u64, tag: Tag) {
        if bytes > 0 {
            let begin = self.unsent.back().map_or(self.nxt, |last| last.end);
            self.unsent.push_back(Message { end: begin.plus(bytes), tag });
        }
    }

    pub(super) fn stop(&mut self) {
        self.unsent.clear();
    }

    /// Puts the next packet into an empty `segment`, if one may go now.
    pub(super) fn next(&mut self, segment: &mut Segment, now: Time, room: bool, stack: &Stack) -> bool {
        self.waits_for_pacing = false;
        if self.has_nothing_to_send() {
            self.held_by = Limit::Application;
            return false;
        }
        if !room {
            return false;
        }
        let is_far = self.lost == 0 && self.nxt.since(self.una) >= MAX_OUTSTANDING;
        if is_far || self.in_flight >= self.controller.window().get().max(1) {
            self.held_by = Limit::Window;
            return false;
        }
        if now < self.paced_until && self.controller.pacing().is_some() {
            (self.waits_for_pacing, self.held_by) = (true, Limit::Pacing);
            return false;
        }
        let idle = self.outstanding.is_empty().then(|| self.last_sent.map_or(Span::ZERO, |last| now.since(last)));
        self.transmissions = self.transmissions.wrapping_add(1);
        let packet = self.take_next(now, stack);
        (segment.seq, segment.length, segment.tag) = (packet.start.wire(), packet.length, packet.tag);
        // Where nothing may follow, an acknowledgement is waited for.
        let is_last = self.has_nothing_to_send() || self.in_flight + 1 >= self.controller.window().get();
        segment.flags = Flags::RDMA
            .with_if(Flags::END, packet.ends_message)
            .with_if(Flags::ACK_REQUEST, is_last || packet.ends_message);
        segment.timestamp = self.transmissions;
        self.note_sent(now, segment.ip_bytes(), idle);
        true
    }

    /// The first that is lost, or else the next of what was never sent.
    fn take_next(&mut self, now: Time, stack: &Stack) -> Outstanding {
        if self.lost > 0 {
            let from = self.lost_from;
            let place = self.outstanding.iter().skip(from).position(|packet| packet.state == State::Lost);
            let place = from + place.expect("as many are lost as were counted, none of them before that place");
            let packet = &mut self.outstanding[place];
            (packet.state, packet.sent_at, packet.number) = (State::InFlight, now, self.transmissions);
            self.tallies.retransmitted_bytes += u64::from(packet.length);
            self.lost_from = place + 1;
            self.lost -= 1;
            return *packet;
        }
        let Message { end, tag } = *self.unsent.front().expect("its caller has looked");
        let full = stack.mtu.rdma_payload();
        let left = end.since(self.nxt);
        let length = u16::try_from(left).unwrap_or(full).min(full);
        let ends_message = u64::from(length) == left;
        if ends_message {
            self.unsent.pop_front();
        }
        let packet = Outstanding {
            start: self.nxt,
            length,
            ends_message,
            number: self.transmissions,
            state: State::InFlight,
            tag,
            sent_at: now,
        };
        if self.outstanding.is_empty() {
            self.progress_at = now;
        }
        self.nxt = packet.end();
        self.outstanding.push_back(packet);
        packet
    }

    fn note_sent(&mut self, now: Time, size: Bytes, idle: Option<Span>) {
        self.in_flight += 1;
        self.round_max = self.round_max.max(self.in_flight);
        self.last_sent = Some(now);
        self.renew_path();
        self.controller.on_sent(now, &Sent { size, idle, starts: idle.is_some() }, &self.path);
        if let Some(rate) = self.controller.pacing() {
            self.paced_until = self.paced_until.max(now) + rate.time_for(size);
        }
    }

    /// An acknowledgement came.
    pub(super) fn handle_ack(&mut self, now: Time, segment: &Segment, stack: &Stack) {
        let una = Seq::expand(segment.ack, self.una);
        if una > self.nxt {
            return;
        }
        let prior_in_flight = self.in_flight;
        let in_order = una > self.una;
        let echo = segment.timestamp_echo;
        let (in_sequence, sample) = self.acknowledge(una, echo);
        let (selected, later) = self.note_selected(segment);
        let rtt = later.or(sample).map(|(seq, sent_at)| RttSample { span: now.since(sent_at), seq });
        if in_order {
            (self.progress_at, self.has_expired) = (now, false);
        }
        if let Some(sample) = rtt {
            self.sample(now, sample.span, stack);
        }
        let is_over = match self.phase {
            Phase::Open => false,
            // Held until something sent after it is acknowledged, as TCP does.
            Phase::EcnReduction => self.una > self.recovery_point,
            Phase::Recovery | Phase::Loss => self.una >= self.recovery_point,
        };
        if is_over {
            self.phase = Phase::Open;
        }
        // An old one says nothing of what is missing now, but of what has come it does.
        let tells = una == self.una || self.config.recovery == Recovery::SelectiveRepeat;
        let begins = segment.flags.contains(Flags::NAK) && tells && self.note_missing();
        let ece = segment.flags.contains(Flags::ECE) && stack.ecn != EcnMode::Off;
        let reduces = ece
            && self.phase == Phase::Open
            && (stack.ecn == EcnMode::Classic || self.controller.recovery() == Owner::Transport);
        // One window of data is answered once [RFC 3168 §6.1.2]; DCTCP answers a loss as such [RFC 8257 §3.5].
        let is_answered = self.phase == Phase::EcnReduction
            && stack.ecn == EcnMode::Classic
            && self.controller.recovery() == Owner::Transport;
        if begins {
            (self.phase, self.recovery_point) = (Phase::Recovery, self.nxt);
        } else if reduces {
            (self.phase, self.recovery_point) = (Phase::EcnReduction, self.nxt);
        }
        self.note_round();
        self.renew_path();
        let acked = Packets::new(in_sequence + selected);
        if acked > Packets::ZERO || ece {
            self.delivered += acked.get();
            let ack = Ack {
                now,
                acked,
                marked: if ece { acked } else { Packets::ZERO },
                lost: Packets::new(core::mem::take(&mut self.lost_since_ack)),
                ece,
                rtt,
                delivery: None,
                delivered: Packets::new(self.delivered),
                una: self.una,
                nxt: self.nxt,
                in_flight: Packets::new(self.in_flight),
                prior_in_flight: Packets::new(prior_in_flight),
                max_in_flight: Packets::new(self.max_in_flight.max(self.round_max)),
                phase: self.phase,
                limited_by: self.held_by,
                timestamps: (segment.timestamp, segment.timestamp_echo),
                in_order,
            };
            self.controller.on_ack(&ack, &self.path);
        }
        if begins && !is_answered {
            self.controller.on_congestion(now, Cause::Loss, &self.path);
        } else if reduces {
            self.controller.on_congestion(now, Cause::Ecn, &self.path);
        }
    }

    /// Everything before `una` has arrived: how many packets that is news of, and the one whose transmission is echoed, for an RTT.
    fn acknowledge(&mut self, una: Seq, echo: u32) -> (u64, Option<(Seq, Time)>) {
        let (mut count, mut sample) = (0, None);
        while let Some(packet) = self.outstanding.front().filter(|packet| packet.end() <= una).copied() {
            self.outstanding.pop_front();
            self.lost_from = self.lost_from.saturating_sub(1);
            if packet.state != State::Delivered {
                self.leave(packet.state);
                count += 1;
                sample = sample.or((packet.number == echo).then_some((packet.start, packet.sent_at)));
            }
        }
        self.una = self.una.max(una);
        (count, sample)
    }

    /// A packet in this state is delivered, or is lost from now on.
    fn leave(&mut self, state: State) {
        match state {
            State::InFlight => self.in_flight -= 1,
            State::Lost => self.lost -= 1,
            State::Delivered => {}
        }
    }

    /// The packets that came out of order, which a receiver says that keeps them.
    fn note_selected(&mut self, segment: &Segment) -> (u64, Option<(Seq, Time)>) {
        let (mut count, mut sample) = (0, None);
        for (start, end) in segment.sack.iter() {
            let (start, end) = (Seq::expand(start, self.una), Seq::expand(end, self.una));
            let first = self.outstanding.partition_point(|packet| packet.start < start);
            for place in first..self.outstanding.len() {
                let packet = self.outstanding[place];
                if packet.end() > end {
                    break;
                }
                if packet.state != State::Delivered {
                    self.leave(packet.state);
                    self.outstanding[place].state = State::Delivered;
                    self.highest = self.highest.max(packet.end());
                    count += 1;
                    sample =
                        sample.or((packet.number == segment.timestamp_echo).then_some((packet.start, packet.sent_at)));
                }
            }
        }
        (count, sample)
    }

    /// The receiver misses its next packet: what is to be retransmitted. Returns whether an episode of loss begins.
    fn note_missing(&mut self) -> bool {
        let before = self.lost;
        match self.config.recovery {
            Recovery::GoBackN => self.lose_all(),
            Recovery::SelectiveRepeat => {
                // Nothing is repeated twice without a timeout: what says that it is missing may be older than the repetition.
                let place = |seq| self.outstanding.partition_point(|packet| packet.start < seq);
                let missing = place(self.looked_until)..place(self.highest);
                self.looked_until = self.looked_until.max(self.highest);
                missing.for_each(|place| self.lose_one(place));
            }
        }
        self.lost > before && !matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    /// All that is outstanding and in flight is lost.
    fn lose_all(&mut self) {
        (0..self.outstanding.len()).for_each(|place| self.lose_one(place));
    }

    /// What nobody has told of for the timeout is lost, and with it what was sent before so long that it would have been told of.
    fn lose_what_is_old(&mut self, now: Time) {
        let enough = self.rtt.smoothed().map_or(self.config.timeout, |srtt| (srtt * 2).min(self.config.timeout));
        let before = self.lost;
        for place in 0..self.outstanding.len() {
            if place == 0 || self.outstanding[place].sent_at + enough <= now {
                self.lose_one(place);
            }
        }
        if self.lost == before {
            // What is missing may not go because of what is in flight, and that is not told of either.
            self.lose_all();
        }
    }

    fn lose_one(&mut self, place: usize) {
        let packet = &mut self.outstanding[place];
        if packet.state == State::InFlight {
            packet.state = State::Lost;
            self.in_flight -= 1;
            self.lost += 1;
            self.lost_since_ack += 1;
            self.lost_from = self.lost_from.min(place);
        }
    }

    fn sample(&mut self, now: Time, span: Span, stack: &Stack) {
        self.rtt.sample(span, false, &stack.profile);
        self.rtt.sample_min(now, span);
        self.tallies.rtt_sum += span;
        self.tallies.rtt_count += 1;
    }

    /// A round ends once what was sent at its beginning is acknowledged.
    fn note_round(&mut self) {
        if self.una >= self.round_end {
            self.max_in_flight = self.round_max;
            self.round_max = self.in_flight;
            self.round_end = self.nxt;
        }
    }

    fn renew_path(&mut self) {
        self.path.srtt = self.rtt.smoothed();
        self.path.min_rtt = self.rtt.min();
        (self.path.una, self.path.nxt) = (self.una, self.nxt);
        self.path.in_flight = Packets::new(self.in_flight);
        self.path.outstanding = u32::try_from(self.outstanding.len()).unwrap_or(u32::MAX);
        self.path.departs_at = self.paced_until;
    }

    pub(super) fn handle_telemetry(&mut self, hops: &[Hop]) {
        self.controller.on_telemetry(hops);
    }

    /// There was no progress for the timeout.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if now < self.deadline() {
            return;
        }
        let repeated = match self.phase {
            Phase::Open => false,
            Phase::EcnReduction | Phase::Recovery => true,
            Phase::Loss => self.has_expired,
        };
        self.has_expired = true;
        self.tallies.timeouts += 1;
        self.tallies.rto_wait += now.since(self.waits_since());
        match self.config.recovery {
            Recovery::GoBackN => self.lose_all(),
            Recovery::SelectiveRepeat => self.lose_what_is_old(now),
        }
        self.lost_since_ack = 0;
        (self.phase, self.recovery_point) = (Phase::Loss, self.nxt);
        self.renew_path();
        self.controller.on_timeout(now, repeated, &self.path);
    }

    /// When the timeout expires; never while nothing is in flight.
    pub(super) fn deadline(&self) -> Time {
        if self.in_flight == 0 { Time::NEVER } else { self.waits_since() + self.config.timeout }
    }

    /// The first packet that is missing was sent then. If it is to be retransmitted and may not, because of what is in flight after
    /// it, that is waited for.
    fn waits_since(&self) -> Time {
        let sent = self.outstanding.front().map_or(Time::ZERO, |packet| match packet.state {
            State::InFlight => packet.sent_at,
            State::Lost | State::Delivered => self.last_sent.unwrap_or_default(),
        });
        self.progress_at.max(sent)
    }

    pub(super) fn pacing_deadline(&self) -> Time {
        if self.waits_for_pacing { self.paced_until } else { Time::NEVER }
    }

    pub(super) fn has_nothing_to_send(&self) -> bool {
        self.lost == 0 && self.unsent.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.unsent.is_empty() && self.outstanding.is_empty()
    }

    pub(super) fn next_seq(&self) -> Seq {
        self.nxt
    }

    pub(super) fn window(&self) -> Packets {
        self.controller.window()
    }

    pub(super) fn pacing(&self) -> Option<Rate> {
        self.controller.pacing()
    }

    pub(super) fn controller(&self) -> &Controller {
        &self.controller
    }

    pub(super) fn outstanding(&self) -> u32 {
        u32::try_from(self.outstanding.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn tallies(&self) -> Tallies {
        self.tallies
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            window: self.controller.window(),
            slow_start_threshold: self.controller.slow_start_threshold(),
            pacing: self.controller.pacing(),
            near_source: None,
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            rto: self.config.timeout,
            in_flight: u32::try_from(self.in_flight).unwrap_or(u32::MAX),
            outstanding: self.outstanding(),
            phase: self.phase,
            una: self.una,
            nxt: self.nxt,
            offered: self.unsent.back().map_or(self.nxt, |last| last.end),
            timeouts: self.tallies.timeouts,
            held_by: self.held_by,
        }
    }
}
