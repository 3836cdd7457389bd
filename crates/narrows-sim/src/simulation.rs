//! The run itself: takes events from the network in their order, hands them to the machines, and does what these ask.
//!
//! Agenda entities: each connection's end has a timer (retransmission, delayed acknowledgement, offload) and a pacing
//! timer (pacing, room in the host's port), each named by the connection's number; traffic entries have a start, flows
//! that stop and answers that wait have one each; samplers come last.

mod observation;
mod traffic;

use std::collections::BTreeMap;

use narrows_core::app::connection_pool::ConnectionPool;
use narrows_core::app::scatter_gather::ScatterGather;
use narrows_core::packet::{Flags, Segment, Seq, Tag};
use narrows_core::probe::{DropReason, NoProbe};
use narrows_core::rng::{SmallStream, Stream, mix};
use narrows_core::tcp::{Endpoint, Event as TcpEvent};
use narrows_core::units::{Bytes, Rate, Span, Time};
use narrows_network::{Class, Entity, Event, Network, Offered, Payload};
use narrows_scenario::plan::{Connections as Mode, FlowStart, Incast, NodeKind, Pattern, Plan};

use crate::connections::{Connections, Current, MOST_HOSTS, MOST_PER_HOST, Place, Side, opener};
use crate::flows::{Arrivals, Flow, arrivals, crosses};
use crate::hosts::{Stacks, controller};
use crate::ideal::Ideal;
use crate::packet::{Packet, SidePool};
use crate::results::{FlowRow, PortRow, Quantity, RequestRow, Results, SeriesRow};

/// Why a plan cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The network cannot carry what the plan asks.
    #[error("the network of the plan is not usable: {0}")]
    Network(#[from] narrows_network::GraphError),
    /// Connection numbers hold only so many hosts.
    #[error("{hosts} hosts are more than the {most} that one run may have")]
    TooManyHosts {
        /// In the plan.
        hosts: usize,
        /// Possible.
        most: u32,
    },
    /// Connection numbers hold only so many connections of one host.
    #[error("host {host} would open {connections} connections; one run numbers at most {most} for each host")]
    TooManyConnections {
        /// Its name.
        host: String,
        /// That it would open.
        connections: u64,
        /// Possible.
        most: u32,
    },
}

/// Counts the connections that each host will open; persistent ones are as few as the flows that overlap.
fn check_connections(plan: &Plan, seed: u64) -> Result<(), SimError> {
    let mut opened = vec![0_u64; plan.network.nodes.len()];
    for traffic in plan.traffic.iter().filter(|traffic| !matches!(traffic.connections, Mode::Persistent { .. })) {
        if let Pattern::Incast(incast) = &traffic.pattern {
            opened[incast.client as usize] += u64::from(incast.repeats) * incast.servers.len() as u64;
        }
        for flow in arrivals(traffic, seed, &plan.schedule) {
            let opener = if flow.request.is_some() { flow.destination } else { flow.source };
            opened[opener as usize] += 1;
        }
    }
    match opened.iter().position(|&connections| connections > u64::from(MOST_PER_HOST)) {
        None => Ok(()),
        Some(host) => Err(SimError::TooManyConnections {
            host: plan.network.nodes[host].name.clone(),
            connections: opened[host],
            most: MOST_PER_HOST,
        }),
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// When the run ends at the latest.
    pub end: Time,
    /// Packets serialised so far.
    pub packet_hops: u64,
}

/// Sampler identifiers, in the order in which they act at equal times.
const WARMUP: u64 = 0;
const QUEUES: u64 = 1;
const WINDOWS: u64 = 2;
const GOODPUT: u64 = 3;
const END: u64 = 4;

/// What a start entity's identifier says: traffic entries come first, then flows that stop, then delayed answers.
const STOPS: u64 = 1 << 33;
const ANSWERS: u64 = 1 << 34;

/// Size of a flow without one: far beyond any run.
const ENDLESS: Bytes = Bytes::new(1 << 50);

/// A scatter-and-gather client and what it needs to ask.
struct Client<'a> {
    traffic: u32,
    incast: &'a Incast,
    machine: ScatterGather,
    query: Option<u32>,
}

/// One run of a plan.
pub struct Simulation<'a> {
    plan: &'a Plan,
    network: Network<Packet>,
    pool: SidePool,
    connections: Connections,
    stacks: Stacks,
    /// Line rate of each host's port, by node.
    rates: Vec<Rate>,
    /// Key of the controllers' randomness.
    random: u64,
    /// Key of the waits before answers.
    jitter: u64,
    arrivals: Vec<Arrivals<'a>>,
    flows: Vec<Flow>,
    queries: Vec<RequestRow>,
    clients: Vec<Client<'a>>,
    /// The client that a flow of a query belongs to, by traffic entry.
    client_of_traffic: Vec<Option<usize>>,
    /// Persistent connections by (traffic, opener, peer).
    persistent: BTreeMap<(u32, u32, u32), ConnectionPool>,
    /// Flows without a size that go on.
    endless: Vec<u32>,
    unfinished: usize,
    queue_samples: BTreeMap<u32, Vec<u32>>,
    series: Vec<SeriesRow>,
    /// Taken at the end of the arrivals: what drains afterwards would thin the means.
    ports: Option<Vec<PortRow>>,
    ideal: Ideal,
    now: Time,
    /// When the last flow has begun, if it has.
    all_begun: bool,
    done: bool,
    slots: StartSlots,
}

/// Slots of the start entities: traffic entries first, then stops and answers, used again when those are done.
#[derive(Clone, Debug)]
struct StartSlots {
    next: u32,
    free: Vec<u32>,
}

impl StartSlots {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

impl<'a> Simulation<'a> {
    /// A run at its beginning.
    ///
    /// # Errors
    /// If the plan's network is not usable, or hosts or their connections are more than can be numbered.
    pub fn new(plan: &'a Plan, seed: u64) -> Result<Simulation<'a>, SimError> {
        let graph = &plan.network;
        let hosts = graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
        if hosts > MOST_HOSTS as usize {
            return Err(SimError::TooManyHosts { hosts, most: MOST_HOSTS });
        }
        check_connections(plan, seed)?;
        let network: Network<Packet> = Network::new(graph, seed)?;
        let mut rates = vec![Rate::default(); graph.nodes.len()];
        for link in &graph.links {
            if graph.nodes[link.from as usize].kind == NodeKind::Host {
                rates[link.from as usize] = link.rate;
            }
        }
        let host_rates = rates.iter().copied().filter(|&rate| rate != Rate::default());
        let watched = (0..).zip(&graph.links).filter(|(_, link)| link.watched).map(|(id, _)| (id, Vec::new()));
        let mut simulation = Simulation {
            plan,
            network,
            pool: SidePool::default(),
            connections: Connections::new(graph.nodes.len()),
            stacks: Stacks::new(plan, host_rates),
            rates: rates.clone(),
            random: Stream::named(seed, "controllers").next_u64(),
            jitter: Stream::named(seed, "jitter").next_u64(),
            arrivals: plan.traffic.iter().map(|traffic| arrivals(traffic, seed, &plan.schedule)).collect(),
            flows: Vec::new(),
            queries: Vec::new(),
            clients: Vec::new(),
            client_of_traffic: vec![None; plan.traffic.len()],
            persistent: BTreeMap::new(),
            endless: Vec::new(),
            unfinished: 0,
            queue_samples: watched.collect(),
            series: Vec::new(),
            ports: None,
            ideal: Ideal::default(),
            now: Time::ZERO,
            all_begun: false,
            done: false,
            slots: StartSlots {
                next: u32::try_from(plan.traffic.len()).expect("a plan has few entries"),
                free: Vec::new(),
            },
        };
        simulation.arm_first_events();
        Ok(simulation)
    }

    fn arm_first_events(&mut self) {
        for (index, traffic) in (0..).zip(&self.plan.traffic) {
            let first = match &traffic.pattern {
                Pattern::Incast(incast) => {
                    self.client_of_traffic[index as usize] = Some(self.clients.len());
                    let servers = u32::try_from(incast.servers.len()).expect("a plan has fewer than 2³² nodes");
                    self.clients.push(Client {
                        traffic: index,
                        incast,
                        machine: ScatterGather::new(servers, incast.repeats),
                        query: None,
                    });
                    Some(incast.start)
                }
                _ => self.arrivals[index as usize].peek().map(|flow| flow.at),
            };
            if let Some(at) = first.filter(|&at| at < self.plan.schedule.end) {
                self.network.arm(Entity::start(u64::from(index), index), at);
            }
        }
        let schedule = &self.plan.schedule;
        self.network.arm(Entity::sample(WARMUP, 0), Time::ZERO + schedule.warmup);
        self.network.arm(Entity::sample(END, 4), schedule.end);
        let sampling = &self.plan.sampling;
        for (id, every) in [(QUEUES, sampling.queues), (WINDOWS, sampling.windows), (GOODPUT, sampling.goodput)] {
            if every > Span::ZERO {
                let slot = u32::try_from(id).expect("few samplers");
                self.network.arm(Entity::sample(id, slot), Time::ZERO + every);
            }
        }
    }

    /// When the run stops at the latest.
    fn deadline(&self) -> Time {
        self.plan.schedule.end + self.plan.schedule.drain
    }

    /// How far the run has come.
    pub fn progress(&self) -> Progress {
        Progress { now: self.now, end: self.deadline(), packet_hops: self.network.packet_hops() }
    }

    /// Handles up to `events` events of the hosts; false once the run is over.
    pub fn advance(&mut self, events: u64) -> bool {
        for _ in 0..events {
            if self.done {
                return false;
            }
            let until = if self.all_begun && self.unfinished == 0 { self.plan.schedule.end } else { self.deadline() };
            let Some((now, event)) = self.network.next(until, &mut NoProbe) else {
                self.now = until;
                self.done = true;
                return false;
            };
            self.now = now;
            match event {
                Event::Arrival { host, packet } => self.handle_packet(now, host, packet),
                Event::Dropped { packet } => {
                    packet.unpack(&mut self.pool);
                }
                Event::Due(entity) => match entity.class() {
                    Class::Timer => self.handle_timer(now, entity),
                    Class::Start => self.handle_start(now, entity),
                    _ => self.handle_sample(now, entity),
                },
            }
            if self.all_begun && self.unfinished == 0 && now > self.plan.schedule.end {
                self.done = true;
            }
        }
        !self.done
    }

    fn handle_packet(&mut self, now: Time, host: u32, packet: Packet) {
        let connection = packet.connection;
        let segment = packet.unpack(&mut self.pool);
        let side = Side::on(host, connection);
        let slot = match self.connections.slot(connection, side) {
            Some(slot) => slot,
            None if segment.flags.contains(Flags::SYN) && side == Side::Other => {
                self.accept(connection, host, segment.tag)
            }
            None => {
                self.answer_for_closed(now, host, connection, &segment);
                return;
            }
        };
        let end = self.connections.end(slot);
        let stack = self.stacks.get(end.place.stack);
        end.endpoint.handle_segment(now, &segment, stack);
        self.serve(now, slot);
    }

    /// The other end of a connection, on its first packet. The tag of a SYN is the connection's first flow.
    fn accept(&mut self, connection: u32, host: u32, tag: Tag) -> u32 {
        let flow = &self.flows[tag.0 as usize - 1];
        let (traffic, peer, awaits) = (flow.traffic, opener(connection), flow.destination == host);
        let slot = self.insert_end(connection, Side::Other, host, peer, traffic, false);
        if awaits {
            self.begin_receiving(slot, tag.0 - 1);
        }
        slot
    }

    fn insert_end(
        &mut self,
        connection: u32,
        side: Side,
        host: u32,
        peer: u32,
        traffic: u32,
        established: bool,
    ) -> u32 {
        let stack_index = self.stacks.index(traffic, self.rates[host as usize]);
        let stack = self.stacks.get(stack_index);
        let entry = &self.plan.traffic[traffic as usize];
        let controller = controller(entry, stack, self.random, connection, side as u32);
        let endpoint = if established {
            let ends = if side == Side::Opener { (host, peer) } else { (peer, host) };
            let network = &self.network;
            let path = |from, to| network.path(from, to, 0);
            let round_trip = self.ideal.handshake(&self.plan.network, ends, path);
            Endpoint::established(controller, round_trip, stack)
        } else {
            Endpoint::closed(controller, stack)
        };
        let port = self.network.host_link(host);
        let place = Place { host, peer, port, traffic, stack: stack_index };
        self.connections.insert(endpoint, connection, side, place)
    }

    /// A connection that is gone was closed with everything delivered: what still arrives for it is old, and all of it
    /// is acknowledged without any state [RFC 9293 §3.6.1, TIME-WAIT].
    fn answer_for_closed(&mut self, now: Time, host: u32, connection: u32, segment: &Segment) {
        if segment.length == 0 {
            return;
        }
        let size = self.flows[segment.tag.0 as usize - 1].size.unwrap_or(ENDLESS);
        let delivered = if Side::on(host, connection) == Side::Opener || segment.ack == Seq::FIRST.wire() {
            Seq::FIRST.plus(size.get()).wire()
        } else {
            segment.seq.wrapping_add(u32::from(segment.length))
        };
        let answer = Segment {
            seq: segment.ack,
            ack: delivered,
            flags: Flags::ACK,
            window: u16::MAX,
            timestamp: narrows_core::packet::timestamp(now),
            timestamp_echo: segment.timestamp,
            ..Segment::default()
        };
        let to =
            if opener(connection) == host { self.flows[segment.tag.0 as usize - 1].source } else { opener(connection) };
        let packet = Packet::pack(&answer, connection, to, &mut self.pool);
        let port = self.network.host_link(host);
        if let Offered::Dropped(_) = self.network.offer(now, port, packet, &mut NoProbe) {
            packet.unpack(&mut self.pool);
        }
    }

    /// After anything happened to an end: its events, its segments, its deadlines.
    fn serve(&mut self, now: Time, slot: u32) {
        // Whatever an event brings about may close the end.
        while let Some(event) = self.connections.end_if_alive(slot).and_then(|end| end.endpoint.poll_event()) {
            if let TcpEvent::Delivered(tag) = event {
                self.handle_message(now, slot, tag);
            }
        }
        self.transmit(now, slot);
        self.finish_sending(now, slot);
    }

    /// Sends what an end may send now and arms its deadlines.
    fn transmit(&mut self, now: Time, slot: u32) {
        let Some(end) = self.connections.end_if_alive(slot) else { return };
        let stack = self.stacks.get(end.place.stack);
        let mut room_at = Time::NEVER;
        loop {
            let full_until = if end.port_is_nearly_empty(now) {
                Time::ZERO
            } else {
                let limit = end.endpoint.small_queue_limit(stack);
                end.port_has_room(now, limit)
            };
            let segment = if full_until > now {
                room_at = full_until;
                end.endpoint.poll_acknowledgement(now, stack)
            } else {
                end.endpoint.poll_transmit(now, stack)
            };
            let Some(segment) = segment else { break };
            let packet = Packet::pack(&segment, end.connection, end.place.peer, &mut self.pool);
            match self.network.offer(now, end.place.port, packet, &mut NoProbe) {
                Offered::Accepted { departure, .. } if segment.length > 0 => {
                    end.note_waiting(departure, packet.ip_bytes());
                }
                Offered::Accepted { .. } => {}
                Offered::Dropped(_) => {
                    packet.unpack(&mut self.pool);
                }
            }
        }
        let id = (u64::from(end.connection) << 1 | end.side() as u64) << 1;
        let timer = end.endpoint.deadline(stack);
        if timer != end.armed_timer {
            end.armed_timer = timer;
            self.network.arm(Entity::timer(id, slot << 1), timer);
        }
        // While the port is full the sender is not asked, and what it said of pacing may be of the past.
        let pacing = if room_at == Time::NEVER { end.endpoint.pacing_deadline() } else { room_at };
        if pacing != end.armed_pacing {
            end.armed_pacing = pacing;
            self.network.arm(Entity::timer(id | 1, slot << 1 | 1), pacing);
        }
    }

    fn handle_timer(&mut self, now: Time, entity: Entity) {
        let slot = entity.slot() >> 1;
        let Some(end) = self.connections.end_if_alive(slot) else { return };
        if entity.slot() & 1 == 0 {
            end.armed_timer = Time::NEVER;
        } else {
            end.armed_pacing = Time::NEVER;
        }
        let stack = self.stacks.get(end.place.stack);
        if end.endpoint.deadline(stack) <= now {
            end.endpoint.handle_timeout(now, stack);
        }
        self.serve(now, slot);
    }
}
