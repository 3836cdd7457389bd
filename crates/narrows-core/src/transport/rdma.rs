//! Reliable connections of RDMA over Ethernet and IP, RoCE version 2: what adapters do without the host's processor
//! [IBTA §9.7, IBTA A17].
//!
//! A connection is set up before it is used, so that there is no handshake. A message is cut into packets of the network's MTU,
//! and a packet carries bytes of one message only. The adapter sends them at the rate and within the window that the
//! traffic's controller states; there is no receive window, because what is written has its place in memory. What is lost
//! is retransmitted in one of two ways:
//!
//! | `recovery` | the receiver | the sender |
//! |---|---|---|
//! | `go-back-n` | discards what comes out of order, and says once that the expected packet is missing | sends everything from there on again [IBTA §9.7] |
//! | `selective-repeat` | keeps it, and says with each such packet which one it was | sends only what is missing below that [IRN §3.1] |
//!
//! What neither notices is repaired after a fixed timeout. Marks are echoed by acknowledgements, as DCTCP's are; with
//! `cnp-interval` ECE goes at once instead, and at most once in that time, as DCQCN's notifications do [DCQCN §3.1].
//!
//! | file | what it decides |
//! |---|---|
//! | `rdma/sender` | what to send next; what an acknowledgement means |
//! | `rdma/receiver` | order, acknowledgements, the echo of marks |

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use super::Machine;
use crate::cc::Controller;
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::packet::{Ecn, Flags, Segment, Tag};
use crate::tcp::{EcnMode, Event, Snapshot, Stack, Tallies};
use crate::telemetry::Hop;
use crate::units::{Bytes, Packets, Rate, Span, Time};
use receiver::Receiver;
use sender::Sender;

const GO_BACK_N: &str = "go-back-n";
const SELECTIVE_REPEAT: &str = "selective-repeat";

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "rdma",
    about: "Reliable connections of RDMA over IP (RoCE v2), with the traffic's controller: a model of adapters.",
    source: "[IBTA A17]",
    parameters: parameters! {
        "recovery": Kind::Choice(&[GO_BACK_N, SELECTIVE_REPEAT]), Value::Choice(0),
            "How losses are repaired: everything after a loss again, as adapters do, or only what is missing, as in [IRN §3.1]";
        "timeout": Kind::Span, Value::Span(Span::from_us(67_109)), (Span::from_us(10).as_ps(), Span::from_secs(10).as_ps()),
            "After so long without progress what is outstanding is retransmitted; 4.096 µs · 2^14, the usual setting of adapters";
        "ack-every": Kind::Count, Value::Count(1), (1, 256),
            "Packets for each acknowledgement, which waits for them a quarter of the RTT at most; the last of a message and what is \
             missing are told at once";
        "cnp-interval": Kind::Span, Value::Auto, (Span::from_us(1).as_ps(), Span::from_secs(1).as_ps()),
            "A marked packet is told of at once, at most once in this time; DCQCN's receiver has 50 µs. Left out, \
             acknowledgements tell of every mark";
    },
};

/// How losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Recovery {
    /// Everything from the missing packet on is retransmitted.
    GoBackN,
    /// Only what is missing.
    SelectiveRepeat,
}

impl Recovery {
    /// As written in experiments.
    pub const fn name(self) -> &'static str {
        match self {
            Recovery::GoBackN => GO_BACK_N,
            Recovery::SelectiveRepeat => SELECTIVE_REPEAT,
        }
    }
}

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// How losses are repaired.
    pub recovery: Recovery,
    /// Without progress for so long, what is outstanding is retransmitted.
    pub timeout: Span,
    /// Packets for each acknowledgement.
    pub ack_every: u16,
    /// ECE goes at once, at most once in this time; `None`: acknowledgements tell of every mark.
    pub cnp_interval: Option<Span>,
}

impl Config {
    pub(super) fn new(settings: &Settings<'_>) -> Config {
        Config {
            recovery: match settings.choice("recovery") {
                SELECTIVE_REPEAT => Recovery::SelectiveRepeat,
                _ => Recovery::GoBackN,
            },
            timeout: settings.span("timeout"),
            ack_every: u16::try_from(settings.count("ack-every")).unwrap_or(u16::MAX),
            cnp_interval: settings.span_or_auto("cnp-interval"),
        }
    }
}

/// One end of a connection: it sends and receives.
#[derive(Clone, Debug)]
pub struct Rdma {
    sender: Sender,
    receiver: Receiver,
}

impl Rdma {
    /// An end of a connection that was set up earlier, by an exchange that took `round_trip`.
    pub fn new(config: &Config, controller: Controller, round_trip: Span, stack: &Stack) -> Rdma {
        Rdma {
            sender: Sender::new(*config, controller, round_trip, stack),
            receiver: Receiver::new(*config, round_trip),
        }
    }

    /// A message of `bytes`.
    pub fn offer(&mut self, bytes: Bytes, tag: Tag) {
        self.sender.offer(bytes.get(), tag);
    }

    /// Takes back what is offered but not yet sent.
    pub fn stop(&mut self) {
        self.sender.stop();
    }

    /// A packet arrived.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment, stack: &Stack) {
        if segment.flags.contains(Flags::ACK) {
            self.sender.handle_ack(now, segment, stack);
        } else if segment.length > 0 {
            self.receiver.handle(now, segment);
        }
    }

    /// What ports wrote into a packet of ours came back.
    pub fn handle_telemetry(&mut self, hops: &[Hop]) {
        self.sender.handle_telemetry(hops);
    }

    /// What happened since the last call.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.receiver.poll_completed().map(Event::Delivered)
    }

    /// Whether there is an event to poll.
    pub fn has_event(&self) -> bool {
        self.receiver.has_completed()
    }

    /// The congestion window in force.
    pub fn window(&self) -> Packets {
        self.sender.window()
    }

    /// The pacing rate in force.
    pub fn pacing(&self) -> Option<Rate> {
        self.sender.pacing()
    }

    /// The controller, for observation.
    pub fn controller(&self) -> &Controller {
        self.sender.controller()
    }

    /// Packets sent and not acknowledged in order.
    pub fn outstanding(&self) -> u32 {
        self.sender.outstanding()
    }

    /// The sending half as it stands now, for observation.
    pub fn snapshot(&self) -> Snapshot {
        self.sender.snapshot()
    }

    /// What has been counted.
    pub fn tallies(&self) -> Tallies {
        self.receiver.tallies(self.sender.tallies())
    }
}

impl Machine for Rdma {
    fn poll_into(&mut self, segment: &mut Segment, now: Time, room: bool, stack: &Stack) -> bool {
        if self.receiver.take_answer(segment) {
            segment.seq = self.sender.next_seq().wire();
            return true;
        }
        if !self.sender.next(segment, now, room, stack) {
            return false;
        }
        segment.ack = self.receiver.expected().wire();
        segment.ecn = match stack.ecn {
            EcnMode::Off => Ecn::NotCapable,
            EcnMode::Classic | EcnMode::Exact => Ecn::Capable,
            EcnMode::L4s => Ecn::Capable1,
        };
        true
    }

    fn handle_timeout(&mut self, now: Time, _stack: &Stack) {
        self.receiver.handle_timeout(now);
        self.sender.handle_timeout(now);
    }

    fn deadline(&self) -> Time {
        self.sender.deadline().min(self.receiver.deadline())
    }

    fn pacing_deadline(&self) -> Time {
        self.sender.pacing_deadline()
    }

    /// An adapter takes packets from its connections as they go out: the next one is ready while one is on the wire.
    fn has_room(&self, waiting: Bytes, stack: &Stack) -> bool {
        waiting < stack.min_small_queue()
    }

    fn is_quiescent(&self) -> bool {
        !self.receiver.has_answer() && self.sender.has_nothing_to_send()
    }

    fn is_idle(&self) -> bool {
        self.sender.is_idle()
    }
}
