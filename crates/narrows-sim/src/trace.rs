//! A run in detail: what happened to the packets of chosen flows, hop by hop, and to their senders, event by event.
//!
//! Runs are deterministic, so that only a run that is made again is traced, by one core; others pay nothing. The recorder
//! looks on: it gets what the network notes, and looks at the ends of connections that an event has touched, after that event.
//!
//! | file | what it is |
//! |---|---|
//! | `journey` | a packet's way, hop by hop |
//! | `look` | an end of a connection after an event |
//! | `critical` | what the last byte of a flow waited for, from its start on |
//! | `hop` | where the time between two ends of a link went |
//! | `rows` | the tables |

mod critical;
mod hop;
mod journey;
mod look;
mod rows;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use narrows_core::packet::Flags;
use narrows_core::units::Time;
use narrows_network::trace::{Happened, Note};
use narrows_plan::flows::Name;
use narrows_plan::{NodeKind, Plan};

use crate::connections::{Numbering, Side};
use crate::flows::Flows;
use crate::packet::{Identity, Packet, SidePool};
pub(crate) use hop::Pause;
pub(crate) use journey::{Hop, Journey};
pub(crate) use look::{Look, Trigger, wait_of};

/// A flow to trace, as results of the run know it: its start names it, as no two of a kind begin at one time between the same
/// hosts, or nearly none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Index of the plan's traffic entry.
    pub traffic: u32,
    /// When it starts, nanoseconds.
    pub start_ns: u64,
    /// Node that sends its bytes.
    pub source: u32,
    /// Node that receives them.
    pub destination: u32,
    /// How many before it are the same in all of these.
    pub earlier: u32,
}

/// Which flows of a run are traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All of them: for small runs, as every hop of every packet is kept.
    All,
    /// These.
    Flows(Vec<Wanted>),
}

/// One end of a connection.
pub(crate) type EndKey = (u32, u8);

/// The key of a connection's end.
pub(crate) fn key(connection: u32, side: Side) -> EndKey {
    (connection, side as u8)
}

/// What is known of one end.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndLog {
    /// In the order of events.
    pub(crate) looks: Vec<Look>,
    /// Journeys that began here, in their order.
    pub(crate) sent: Vec<u32>,
    /// Journeys that ended here, with when its stack got the packet.
    pub(crate) arrived: Vec<(Time, u32)>,
    /// The links that its packets take.
    pub(crate) path: Vec<u32>,
    /// What sequence numbers of its data, and of what it acknowledges, are expanded near to.
    pub(crate) latest: [u64; 2],
}

/// A flow that is traced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TracedFlow {
    /// Among the run's flows.
    pub(crate) place: u32,
    pub(crate) tag: u32,
    pub(crate) connection: u32,
    pub(crate) source: u32,
    pub(crate) start: Time,
}

/// Takes notes of a run.
#[derive(Debug)]
pub(crate) struct Recorder {
    selection: Selection,
    numbering: Numbering,
    /// How many flows have begun that are the same as one that is wanted, by its place.
    begun: Vec<u32>,
    pub(crate) flows: Vec<TracedFlow>,
    /// Of each connection, the flows that were not whole when last looked at.
    unfinished: HashMap<u32, Vec<TracedFlow>>,
    /// Connections whose traced flows are whole, and which now carry others.
    ended: BTreeSet<u32>,
    pub(crate) ends: BTreeMap<EndKey, EndLog>,
    pub(crate) journeys: Vec<Journey>,
    /// Journeys that have not ended, by what tells their packets apart; equal ones in their order.
    under_way: HashMap<(u32, Identity), Vec<u32>>,
    /// The last that ended of those that came by a pair of edge routers, which may send a copy of what has arrived.
    across_pairs: HashMap<(u32, Identity), u32>,
    /// Those that something was noted of during the event.
    noted: Vec<u32>,
    pub(crate) pauses: Vec<Pause>,
    /// What the network notes, taken over after each event.
    pub(crate) notes: Vec<Note<Packet>>,
    /// What was dropped during the event.
    pub(crate) dropped: Vec<Packet>,
    /// Ends that began to send a flow during it.
    pub(crate) started: BTreeSet<EndKey>,
    /// Ends that the event has touched, and what has arrived there.
    pub(crate) touched: BTreeMap<EndKey, Option<u32>>,
    /// By host, what has arrived and waits for a poll of its adapter.
    waiting: BTreeMap<u32, Vec<(EndKey, u32)>>,
}

impl Recorder {
    pub(crate) fn new(selection: Selection, numbering: Numbering) -> Recorder {
        let begun = if let Selection::Flows(flows) = &selection { vec![0; flows.len()] } else { Vec::new() };
        Recorder {
            selection,
            numbering,
            begun,
            flows: Vec::new(),
            unfinished: HashMap::new(),
            ended: BTreeSet::new(),
            ends: BTreeMap::new(),
            journeys: Vec::new(),
            under_way: HashMap::new(),
            across_pairs: HashMap::new(),
            noted: Vec::new(),
            pauses: Vec::new(),
            notes: Vec::new(),
            dropped: Vec::new(),
            started: BTreeSet::new(),
            touched: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// A flow begins: whether it is traced.
    pub(crate) fn wants(&mut self, name: Name, start: Time, source: u32, destination: u32) -> bool {
        let Selection::Flows(wanted) = &self.selection else { return true };
        let mut found = false;
        for (wanted, begun) in wanted.iter().zip(&mut self.begun) {
            let same =
                Wanted { traffic: name.traffic, start_ns: start.as_ns(), source, destination, earlier: wanted.earlier };
            if *wanted == same {
                found |= *begun == wanted.earlier;
                *begun += 1;
            }
        }
        found
    }

    /// A flow that is traced has begun.
    pub(crate) fn begin(&mut self, flow: TracedFlow) {
        self.flows.push(flow);
        self.unfinished.entry(flow.connection).or_default().push(flow);
        self.ended.remove(&flow.connection);
        for side in [Side::Opener, Side::Other] {
            self.ends.entry(key(flow.connection, side)).or_default();
        }
    }

    fn traces(&self, packet: &Packet) -> bool {
        !packet.is_notification() && self.ends.contains_key(&(packet.connection, 0))
    }

    /// Whether this end is of a traced connection that carries a traced flow.
    pub(crate) fn looks_at(&self, end: EndKey) -> bool {
        self.ends.contains_key(&end) && !self.ended.contains(&end.0)
    }

    /// Whether the trace of a connection is over with this packet: its traced flows are whole, and it carries another's data.
    fn ends_with(&mut self, packet: &Packet, pool: &SidePool, flows: &Flows) -> bool {
        if self.ended.contains(&packet.connection) {
            return true;
        }
        let segment = packet.segment(pool);
        let Some(unfinished) = self.unfinished.get_mut(&packet.connection) else { return false };
        if segment.length == 0 || unfinished.iter().any(|flow| flow.tag == segment.tag.0) {
            return false;
        }
        unfinished.retain(|flow| flows[flow.place].done == Time::NEVER);
        let is_over = unfinished.is_empty();
        if is_over {
            self.ended.insert(packet.connection);
        }
        is_over
    }

    /// Takes over what the network noted during an event, and what was dropped.
    pub(crate) fn take(&mut self, plan: &Plan, pool: &SidePool, flows: &Flows) {
        // A connection is the same, whatever path its packets take.
        let numbering = self.numbering;
        let unlabel = |packet: &mut Packet| packet.connection = numbering.unlabelled(packet.connection);
        for mut note in std::mem::take(&mut self.notes) {
            note.what.packet_mut().into_iter().for_each(unlabel);
            match note.what {
                Happened::Paused { priorities, time } => {
                    self.pauses.push(Pause { at: note.at, link: note.link, priorities, time });
                }
                Happened::Offered(packet) if self.traces(&packet) => {
                    let from = plan.network.links[note.link as usize].from;
                    if plan.network.nodes[from as usize].kind == NodeKind::Host {
                        if self.ends_with(&packet, pool, flows) {
                            continue;
                        }
                        self.set_out(note.at, note.link, from, &packet, pool);
                    } else if let Some(journey) = self.find_or_copy(&packet, note.link, plan) {
                        self.journeys[journey as usize].come_to(note.at, note.link, &packet);
                    }
                }
                Happened::Crossed(packet) if self.traces(&packet) => {
                    if let Some(journey) = self.find_or_copy(&packet, note.link, plan) {
                        self.journeys[journey as usize].cross(note.at, note.link, &packet);
                    }
                }
                Happened::Arrived(packet) if self.traces(&packet) => self.arrive(note.at, note.link, &packet, plan),
                Happened::Offered(_) | Happened::Crossed(_) | Happened::Arrived(_) => {}
            }
        }
        for mut packet in std::mem::take(&mut self.dropped) {
            unlabel(&mut packet);
            let identity = (packet.connection, packet.identity());
            // Of equal ones that which the event is of; if that is not known, any may be the one: the first is.
            let Some(journeys) = self.under_way.get_mut(&identity) else { continue };
            let place = journeys.iter().position(|number| self.noted.contains(number)).unwrap_or(0);
            let Some(&number) = journeys.get(place) else { continue };
            let journey = &mut self.journeys[number as usize];
            if journey.bridge(plan).is_some() {
                self.across_pairs.insert(identity, number);
            }
            journey.dropped = true;
            let side = self.numbering.side(journey.host, journey.connection);
            journey.note_dropping_port(&self.ends[&key(journey.connection, side)].path);
            // What is lost between a pair of edge routers may be repaired.
            if journey.hops.last().is_none_or(|hop| plan.network.links[hop.link as usize].bridge.is_none()) {
                journeys.remove(place);
            }
        }
        self.noted.clear();
    }

    /// A host hands over a packet.
    fn set_out(&mut self, at: Time, link: u32, host: u32, packet: &Packet, pool: &SidePool) {
        let side = packet.side().other();
        let number = u32::try_from(self.journeys.len()).expect("fewer packets than 2³²");
        let other = self.ends[&key(packet.connection, side.other())].latest[0];
        let end = self.ends.get_mut(&key(packet.connection, side)).expect("it is traced");
        let journey = Journey::new(at, link, host, packet, pool, end, other);
        end.sent.push(number);
        self.noted.push(number);
        self.journeys.push(journey);
        self.under_way.entry((packet.connection, packet.identity())).or_default().push(number);
        self.touched.entry(key(packet.connection, side)).or_default();
    }

    /// The journey of a packet that is at `link`: the first of equal ones that may be there.
    fn find(&self, packet: &Packet, link: u32, plan: &Plan) -> Option<u32> {
        let journeys = self.under_way.get(&(packet.connection, packet.identity()))?;
        let may_be_there = |journey: &&u32| self.journeys[**journey as usize].may_be_at(link, plan);
        // A copy that came when the original was there ends at the pair.
        let is_copy = |journey: &&u32| self.journeys[**journey as usize].copied_hops > 0;
        journeys.iter().filter(may_be_there).min_by_key(is_copy).copied()
    }

    /// The same; if none is there, that of a copy which a pair of edge routers sends of one that it takes for lost.
    fn find_or_copy(&mut self, packet: &Packet, link: u32, plan: &Plan) -> Option<u32> {
        if let Some(found) = self.find(packet, link, plan) {
            self.noted.push(found);
            return Some(found);
        }
        let identity = (packet.connection, packet.identity());
        let others = self.under_way.get(&identity).into_iter().flatten().chain(self.across_pairs.get(&identity));
        let copy = others.filter_map(|other| self.journeys[*other as usize].copied_to(link, plan)).next()?;
        let number = u32::try_from(self.journeys.len()).expect("fewer packets than 2³²");
        self.journeys.push(copy);
        self.under_way.entry(identity).or_default().push(number);
        self.noted.push(number);
        Some(number)
    }

    /// A packet reaches the far end of a link.
    fn arrive(&mut self, at: Time, link: u32, packet: &Packet, plan: &Plan) {
        let Some(number) = self.find_or_copy(packet, link, plan) else { return };
        let journey = &mut self.journeys[number as usize];
        journey.arrive(at, link, packet);
        let host = plan.network.links[link as usize].to;
        if plan.network.nodes[host as usize].kind != NodeKind::Host {
            return;
        }
        (journey.arrived, journey.dropped) = (Some(at), false);
        let identity = (packet.connection, packet.identity());
        if journey.bridge(plan).is_some() {
            self.across_pairs.insert(identity, number);
        }
        if let Some(journeys) = self.under_way.get_mut(&identity) {
            journeys.retain(|other| *other != number);
            if journeys.is_empty() {
                self.under_way.remove(&identity);
            }
        }
        let end = key(packet.connection, packet.side());
        self.waiting.entry(host).or_default().push((end, number));
    }

    /// What has arrived at a host has gone to its stack: all of it, or of RDMA alone, which waits for no poll.
    pub(crate) fn hand_up(&mut self, at: Time, host: u32, all: bool) {
        let arrived = self.waiting.remove(&host).unwrap_or_default();
        let goes_up = |(_, number): &(_, u32)| all || self.journeys[*number as usize].flags.contains(Flags::RDMA);
        let (gone, waiting): (Vec<_>, Vec<_>) = arrived.into_iter().partition(goes_up);
        if !waiting.is_empty() {
            self.waiting.insert(host, waiting);
        }
        for (end, number) in gone {
            self.journeys[number as usize].handed_up = Some(at);
            if let Some(log) = self.ends.get_mut(&end) {
                log.arrived.push((at, number));
            }
            self.touched.insert(end, Some(number));
        }
    }
}
