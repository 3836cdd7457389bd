//! Small graphs and a small packet for the tests.
#![allow(dead_code, reason = "each test binary uses its part")]

use narrows_core::queue::AqmConfig;
use narrows_core::queue::aqm::threshold::Config;
use narrows_core::units::{Rate, Span};
use narrows_network::Payload;
use narrows_plan::{Graph, Link, Node, NodeKind, Role};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Packet {
    pub(crate) id: u32,
    pub(crate) destination: u32,
    pub(crate) flow: u32,
    pub(crate) size: u32,
    pub(crate) class: u8,
    pub(crate) capable: bool,
    pub(crate) marked: bool,
    /// Of a pause frame: the priorities, a bit for each, and for how long, ps.
    pub(crate) pause: Option<(u8, u64)>,
    /// Where its telemetry lies.
    pub(crate) telemetry: Option<u32>,
}

/// The number of a packet that is a notification.
pub(crate) const NOTE: u32 = 99_999;

impl Packet {
    pub(crate) fn to(destination: u32, size: u32) -> Packet {
        Packet {
            id: 0,
            destination,
            flow: 0,
            size,
            class: 0,
            capable: true,
            marked: false,
            pause: None,
            telemetry: None,
        }
    }
}

impl Payload for Packet {
    fn ip_bytes(&self) -> u32 {
        self.size
    }
    fn destination(&self) -> u32 {
        self.destination
    }
    fn flow_hash(&self) -> u32 {
        self.flow
    }
    fn service_class(&self) -> u8 {
        self.class
    }
    fn ecn_capable(&self) -> bool {
        self.capable
    }
    fn is_l4s(&self) -> bool {
        self.capable && (self.marked || self.flow % 2 == 1)
    }
    fn carries_data(&self) -> bool {
        self.size > 52
    }
    fn mark(&mut self) {
        self.marked = true;
    }
    fn is_urgent(&self) -> bool {
        self.pause.is_some() || self.id == NOTE
    }
    fn pause(priorities: u8, time: Span) -> Option<Packet> {
        Some(Packet { pause: Some((priorities, time.as_ps())), ..Packet::to(0, 46) })
    }
    fn telemetry(&self) -> Option<u32> {
        self.telemetry
    }
    fn carry_telemetry(&mut self, place: u32) -> Option<u32> {
        self.telemetry = Some(place);
        Some(self.id)
    }
    fn as_pause(&self) -> Option<(u8, Span)> {
        self.pause.map(|(priorities, time)| (priorities, Span::from_ps(time)))
    }
}

pub(crate) fn graph(hosts: usize, switches: usize) -> Graph {
    let kind = |index: usize| if index < hosts { NodeKind::Host } else { NodeKind::Switch };
    let node = |index: usize| Node::new(format!("n{index}"), kind(index));
    Graph { nodes: (0..hosts + switches).map(node).collect(), links: Vec::new(), ..Graph::default() }
}

/// Adds both directions, unlimited and unmarked; the index of the first, `a` to `b`.
pub(crate) fn connect(graph: &mut Graph, a: u32, b: u32, rate: Rate, delay: Span) -> usize {
    for (from, to) in [(a, b), (b, a)] {
        graph.links.push(Link::new(format!("n{from}->n{to}"), (from, to), Role::Fabric, rate, delay));
    }
    graph.links.len() - 2
}

pub(crate) fn threshold(packets: u64) -> Option<AqmConfig> {
    Some(Config::at(packets))
}
