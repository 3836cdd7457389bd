//! What the last byte of a flow waited for, from the flow's start on.
//!
//! The critical path is walked backwards, from the moment when the flow was whole. The packet that made it whole was on its way
//! since its sender handed it over. The sender did so when something let it: an acknowledgement, whose way is walked, and that of
//! the packet that it answers; a timer; room in its port. Each step begins where the one after it begins, so that the stretches
//! cover the flow's time without gap or overlap.

use std::collections::BTreeMap;

use narrows_core::packet::Flags;
use narrows_core::units::Time;

use super::hop::{Links, RECEIVE_QUEUE, RECEIVER, SENDER, Stretch};
use super::look::{Trigger, Wait};
use super::{EndLog, Journey, Recorder, TracedFlow, key};

/// A stretch and what it was waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reasoned {
    pub(crate) reason: &'static str,
    pub(crate) stretch: Stretch,
}

const DELIVERY: &str = "delivery";
const RETRANSMISSION: &str = "retransmission";
const TIMEOUT: &str = "timeout";
const PROBE_TIMEOUT: &str = "probe-timeout";
const REQUEST: &str = "request";
const UNKNOWN: &str = "unknown";

/// Bytes of a stream that are to arrive: disjoint ranges, by their beginnings.
#[derive(Debug, Default)]
struct Missing(BTreeMap<u64, u64>);

impl Missing {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, from: u64, until: u64) {
        let (mut from, mut until) = (from, until);
        while let Some((&start, &end)) = self.0.range(..=until).next_back()
            && end >= from
        {
            self.0.remove(&start);
            (from, until) = (from.min(start), until.max(end));
        }
        self.0.insert(from, until);
    }

    fn take(&mut self, from: u64, until: u64) {
        while let Some((&start, &end)) = self.0.range(..until).next_back()
            && end > from
        {
            self.0.remove(&start);
            if start < from {
                self.0.insert(start, from);
            }
            if end > until {
                self.0.insert(until, end);
            }
        }
    }
}

/// See the [module](self).
pub(crate) struct Walk<'a> {
    recorder: &'a Recorder,
    links: &'a Links<'a>,
    flow: TracedFlow,
    /// Whether hosts' adapters have limiters.
    has_adapters: bool,
    /// Latest first.
    found: Vec<Reasoned>,
    /// All after it is explained.
    at: Time,
}

impl<'a> Walk<'a> {
    /// Where the time of a flow went that was whole at `done`, in order.
    pub(crate) fn of(recorder: &'a Recorder, links: &'a Links<'a>, flow: TracedFlow, done: Time) -> Vec<Reasoned> {
        let mut walk = Walk { recorder, links, flow, has_adapters: links.has_adapters(), found: Vec::new(), at: done };
        if let Some(last) = walk.completing(done) {
            walk.back_along(last, DELIVERY);
            walk.explain_sending(last);
        }
        walk.push(UNKNOWN, SENDER, None, flow.start);
        walk.found.reverse();
        walk.found
    }

    fn journey(&self, number: u32) -> &'a Journey {
        &self.recorder.journeys[number as usize]
    }

    fn end(&self, connection: u32, host: u32) -> &'a EndLog {
        &self.recorder.ends[&key(connection, self.recorder.numbering.side(host, connection))]
    }

    /// All from `from` up to what is explained is of this reason.
    fn push(&mut self, reason: &'static str, place: &'static str, link: Option<u32>, from: Time) {
        let from = from.max(self.flow.start);
        if from >= self.at {
            return;
        }
        let until = std::mem::replace(&mut self.at, from);
        self.found.push(Reasoned { reason, stretch: Stretch { from, until, place, link } });
    }

    /// The data packet whose arrival completed the flow: the one with which all up to its last byte were there.
    fn completing(&self, done: Time) -> Option<u32> {
        let destination = self.end(self.flow.connection, self.flow.source);
        let of_flow = |journey: &&Journey| journey.payload > 0 && journey.tag == self.flow.tag;
        let sent = || destination.sent.iter().map(|number| self.journey(*number));
        let last_byte = sent().filter(of_flow).map(Journey::end).max()?;
        // A datagram flow is whole with its last packet. RDMA completes a message with the packet that arrives then: what came out
        // of order may have been discarded.
        let by_last = sent().any(|journey| journey.is_datagram || journey.flags.contains(Flags::RDMA));
        let receiver =
            key(self.flow.connection, self.recorder.numbering.side(self.flow.source, self.flow.connection).other());
        // What is not traced, of flows before this one, is taken as there.
        let mut missing = Missing::default();
        for journey in sent().filter(|journey| journey.payload > 0 && journey.seq < last_byte) {
            missing.add(journey.seq, journey.end().min(last_byte));
        }
        let mut latest = None;
        for &(at, number) in self.recorder.ends[&receiver].arrived.iter().take_while(|(at, _)| *at <= done) {
            let journey = self.journey(number);
            // What lies behind the flow may arrive at the same moment.
            if journey.payload == 0 || journey.seq >= last_byte {
                continue;
            }
            latest = Some(number);
            missing.take(journey.seq, journey.end());
            if missing.is_empty() && !by_last && at <= done {
                return Some(number);
            }
        }
        latest
    }

    /// Back along the way of a packet, to when it was sent.
    fn back_along(&mut self, number: u32, reason: &'static str) {
        let journey = self.journey(number);
        self.push(reason, RECEIVER, None, journey.handed_up.unwrap_or(self.at));
        self.push(reason, RECEIVE_QUEUE, None, journey.arrived.unwrap_or(self.at));
        for hop in journey.hops.iter().rev() {
            // What a pair of edge routers holds back at the end of its link lies between two hops.
            self.push(reason, super::hop::EDGE_PAIR, Some(hop.link), hop.arrived.unwrap_or(self.at));
            for stretch in self.links.stretches(journey, hop).iter().rev() {
                self.push(reason, stretch.place, stretch.link, stretch.from);
            }
        }
        self.push(reason, SENDER, None, journey.sent);
    }

    /// Why this packet was sent when it was and no sooner, and so on back to the flow's start.
    fn explain_sending(&mut self, last: u32) {
        let (mut number, mut reason) = (last, DELIVERY);
        while self.at > self.flow.start {
            let before = (number, self.at);
            let journey = self.journey(number);
            let next = if journey.is_syn() {
                self.explain_syn(number)
            } else if journey.payload > 0 {
                self.explain_data(number)
            } else {
                self.explain_answer(number, reason).map(|next| (next, reason))
            };
            match next {
                Some((next, why)) if (next, self.at) != before => (number, reason) = (next, why),
                _ => return,
            }
        }
    }

    /// A SYN-ACK answers a SYN, which the flow began with; an earlier one may have been lost.
    fn explain_syn(&mut self, number: u32) -> Option<(u32, &'static str)> {
        let journey = self.journey(number);
        let reason = Wait::Handshake.name();
        if journey.flags.contains(Flags::ACK) {
            return self.explain_answer(number, reason).map(|next| (next, reason));
        }
        let Some(earlier) = self.sent_before(number, Journey::is_syn) else { return self.in_adapter(number) };
        self.push(TIMEOUT, SENDER, None, self.journey(earlier).sent);
        Some((earlier, reason))
    }

    /// A packet without data answers the last that arrived.
    fn explain_answer(&mut self, number: u32, reason: &'static str) -> Option<u32> {
        let journey = self.journey(number);
        let answered = self.arrived_by(journey, self.at)?;
        self.back_along(answered, reason);
        Some(answered)
    }

    fn explain_data(&mut self, number: u32) -> Option<(u32, &'static str)> {
        let journey = self.journey(number);
        let end = self.end(journey.connection, journey.host);
        // Of new data all that was sent would be looked through in vain.
        let has_last_byte =
            |other: &Journey| other.payload > 0 && other.seq < journey.end() && journey.end() <= other.end();
        if journey.is_retransmission
            && let Some(earlier) = self.sent_before(number, has_last_byte)
        {
            let sent = self.journey(earlier).sent;
            let looks = &end.looks[..end.looks.len().min(journey.look as usize + 1)];
            let expired = looks.iter().rev().take_while(|look| look.at > sent);
            if let Some(look) = expired.into_iter().find(|look| look.trigger == Trigger::Timeout) {
                self.push(RETRANSMISSION, SENDER, None, look.at);
                self.push(TIMEOUT, SENDER, None, sent);
            } else if let Some(wait) = self.held(journey) {
                // That it was lost was known; it left when it could, some time after the packet before it.
                let at = self.at;
                let before = self.sent_before(number, |other| other.payload > 0 && other.sent < at);
                self.push(wait.name(), SENDER, None, before.map_or(sent, |before| self.journey(before).sent.max(sent)));
                self.push(RETRANSMISSION, SENDER, None, sent);
            } else if !journey.flags.contains(Flags::RDMA)
                && end.looks.get(journey.look as usize).is_some_and(|look| look.trigger == Trigger::Timer)
            {
                // An adapter does not probe.
                self.push(PROBE_TIMEOUT, SENDER, None, sent);
            } else {
                self.push(RETRANSMISSION, SENDER, None, sent);
            }
            return Some((earlier, RETRANSMISSION));
        }
        let trigger = end.looks.get(journey.look as usize).map(|look| look.trigger);
        let wait =
            (journey.look as usize).checked_sub(1).and_then(|before| end.looks.get(before)).map(|look| look.wait);
        match wait {
            // Its host's end of the connection began, or went on, with this event.
            None | Some(Wait::Handshake | Wait::Application) => {
                match trigger {
                    Some(Trigger::Start) if journey.host == self.opener() => return None,
                    Some(Trigger::Other) if wait.is_none() && self.has_adapters => return self.in_adapter(number),
                    _ => {}
                }
                let cause = self.arrived_by(journey, self.at)?;
                let is_request = wait != Some(Wait::Handshake) || self.journey(cause).payload > 0;
                let reason = if is_request { REQUEST } else { Wait::Handshake.name() };
                // Between the two the application waited.
                let answered = self.journey(cause).handed_up.unwrap_or(self.at);
                if answered < self.at && reason == REQUEST {
                    self.push(Wait::Application.name(), SENDER, None, answered);
                }
                self.back_along(cause, reason);
                Some((cause, reason))
            }
            Some(wait @ (Wait::Window | Wait::ReceiveWindow)) => {
                if let Some(Trigger::Packet(cause)) = trigger {
                    self.back_along(cause, wait.name());
                    return Some((cause, wait.name()));
                }
                self.back_to_earlier(number, wait.name())
            }
            Some(wait) => self.back_to_earlier(number, wait.name()),
        }
    }

    /// What a packet waited for that its sender wanted to send, where it is not the window: it left as this ended, and not as
    /// an acknowledgement came, for what that reports lost may leave at once.
    fn held(&self, journey: &Journey) -> Option<Wait> {
        let looks = &self.end(journey.connection, journey.host).looks;
        let sent_by = looks.get(journey.look as usize)?;
        let wait = looks.get((journey.look as usize).checked_sub(1)?)?.wait;
        let held = matches!(wait, Wait::Pacing | Wait::NearSource | Wait::HostPort | Wait::Adapter);
        (held && !matches!(sent_by.trigger, Trigger::Packet(_))).then_some(wait)
    }

    /// The node that opened the flow's connection.
    fn opener(&self) -> u32 {
        self.recorder.numbering.opener(self.flow.connection)
    }

    /// Since the packet before it the sender waited for this reason.
    fn back_to_earlier(&mut self, number: u32, reason: &'static str) -> Option<(u32, &'static str)> {
        let at = self.at;
        let is_earlier = |other: &Journey| other.sent < at && (other.payload > 0 || other.is_syn());
        let Some(earlier) = self.sent_before(number, is_earlier) else {
            return if reason == Wait::Adapter.name() { self.in_adapter(number) } else { None };
        };
        self.push(reason, SENDER, None, self.journey(earlier).sent);
        Some((earlier, reason))
    }

    /// The first packet of its end waited in its host's adapter, whose limiter held the pair of hosts: since the request came that
    /// it answers, or since the flow's start.
    fn in_adapter(&mut self, number: u32) -> Option<(u32, &'static str)> {
        let journey = self.journey(number);
        let request = self.arrived_by(journey, self.at).filter(|_| self.has_adapters && journey.host != self.opener());
        let since = request.and_then(|request| self.journey(request).handed_up).unwrap_or(self.flow.start);
        if self.has_adapters {
            self.push(Wait::Adapter.name(), SENDER, None, since);
        }
        let request = request?;
        self.back_along(request, REQUEST);
        Some((request, REQUEST))
    }

    /// The last packet that the same end sent before this one, and that is such.
    fn sent_before(&self, number: u32, is_such: impl Fn(&Journey) -> bool) -> Option<u32> {
        let journey = self.journey(number);
        let sent = &self.end(journey.connection, journey.host).sent;
        let place = sent.partition_point(|other| *other < number);
        sent[..place].iter().rev().copied().find(|other| is_such(self.journey(*other)))
    }

    /// The last packet that had arrived by `at` where this one was sent.
    fn arrived_by(&self, journey: &Journey, at: Time) -> Option<u32> {
        let arrived = &self.end(journey.connection, journey.host).arrived;
        let place = arrived.partition_point(|(when, _)| *when <= at);
        arrived[..place].last().map(|(_, number)| *number)
    }
}
