//! The run itself: takes events from the network in their order, hands them to the machines, and does what these ask.
//!
//! A simulation drives one part of the network; a run on one core is one part. Parts share the plan and nothing else: what
//! they tell each other is [`Mail`], a packet on a link between two of them. All of them draw the open traffic, and each
//! begins the flows that its hosts open.
//!
//! Agenda entities: each connection's end has a timer (retransmission, delayed acknowledgement) and a pacing
//! timer (pacing, room in the host's port), each named by the connection's number; traffic entries have a start, flows
//! that stop and answers that wait have one each, named by the flow's tag; samplers come last.

mod boundary;
mod bridging;
mod choice;
mod closed;
mod datagrams;
mod fast_path;
mod near_source;
mod nics;
mod observation;
mod rdma;
mod receive;
mod survey;
mod telemetry;
mod tracing;
mod traffic;

use std::collections::BTreeMap;

use narrows_core::app::connection_pool::ConnectionPool;
use narrows_core::app::{App, Application, FlowStart, Reply, Request};
use narrows_core::packet::{Flags, Segment, Seq, Tag};
use narrows_core::rng::{SmallStream, Stream, mix};
use narrows_core::tcp::{self, Event as TcpEvent, Metrics, Stack};
use narrows_core::transport::{Datagram, Endpoint, Machine, Rdma, Transport};
use narrows_core::units::{Bytes, Rate, Span, Time};
use narrows_network::{Class, Entity, Event, Network, Next, Offered, Partition, Payload};
use narrows_plan::flows::Name;
use narrows_plan::{Connections as Mode, Kind, MAX_HOSTS, NodeKind, Pattern, Plan, RoutingConfig, Traffic};
use narrows_results::{Ideal, PortRow, Quantity, RankRow, RequestRow, Results, SeriesRow};

use choice::Choice;
use receive::Adapters;

use crate::bridges::Bridges;
use crate::connections::{Connections, Current, Outlet, Place, Side, UNTOLD};
use crate::flows::{Flow, Flows, Names};
use crate::hosts::{Stacks, controller};
use crate::merge::{Notes, Query, merge};
use crate::nic::{Handing, Nic, Specially};
use crate::packet::{Packet, Recipient, SidePool, flow_hash};
use crate::trace::Recorder;

pub(crate) use boundary::Mail;
pub(crate) use survey::{Survey, survey};

/// Why a plan cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The network cannot carry what the plan asks.
    #[error("the network of the plan is not usable: {0}")]
    Network(#[from] narrows_network::GraphError),
    /// A controller in a file does not compile here, or cannot be loaded.
    #[error("{0}")]
    Controller(#[from] narrows_c::Error),
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
    /// There are names for only so many flows.
    #[error("the plan begins more flows than the {most} that one run can name")]
    TooManyFlows {
        /// Possible.
        most: u64,
    },
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
const THROUGHPUT: u64 = 4;
const END: u64 = 5;

/// What a start entity's identifier says: traffic entries come first, then flows that stop, then delayed answers, both by
/// the flow's tag, then the ends of bridges, the limiters of adapters, by host and peer, and polls of adapters, by host.
const STOPS: u64 = 1 << 33;
const ANSWERS: u64 = 1 << 34;
const BRIDGES: u64 = 1 << 35;
const NICS: u64 = 3 << 34;
const POLLS: u64 = NICS | 1 << 33;

/// Size of a flow without one: far beyond any run.
const ENDLESS: Bytes = Bytes::new(1 << 50);

/// One run of a plan, or one part of it.
pub struct Simulation<'a> {
    plan: &'a Plan,
    partition: Partition,
    part: u32,
    names: Names,
    network: Network<Packet>,
    pool: SidePool,
    connections: Connections,
    stacks: Stacks,
    /// Line rate of each host's port, by node.
    rates: Vec<Rate>,
    /// Key of the controllers' randomness.
    random: u64,
    /// By traffic entry.
    apps: Vec<App<'a>>,
    flows: Flows,
    /// Payload bytes, and packets, by tag, that were dropped here of flows that this part does not know.
    dropped_in_passing: BTreeMap<u32, (u64, u32)>,
    queries: Vec<Query>,
    /// What hosts remember of others, by (host, peer).
    host_cache: BTreeMap<(u32, u32), Metrics>,
    /// Packets that hosts' own ports have just refused.
    refused: Vec<Packet>,
    /// By host and peer: the limiter in the host's adapter.
    nics: BTreeMap<(u32, u32), Nic>,
    /// The first traffic entry whose hosts' adapters have limiters; all have the same, or none.
    limiting: Option<u32>,
    /// By slot of an end: notifications that its host's adapter has taken.
    nic_cuts: BTreeMap<u32, u32>,
    /// Where hosts' adapters have receive queues.
    adapters: Option<Box<Adapters>>,
    /// Whether ports write telemetry into packets.
    has_telemetry: bool,
    /// Whether something happens to packets between the wire and the stack: either of the two.
    takes_in: bool,
    /// Whether connections never take the [fast path](fast_path).
    takes_full_path: bool,
    /// Persistent connections by (traffic, opener, peer).
    persistent: BTreeMap<(u32, u32, u32), ConnectionPool>,
    /// By connection of a program: bytes of its flows that are whole.
    received: BTreeMap<u32, u64>,
    /// Flows whose senders are sampled, in the order of their starts.
    windows_of: Vec<u32>,
    /// Those whose goodput is, and what the last sample told of each.
    goodput_of: Vec<(u32, u64)>,
    /// Which flows with a size are.
    choice: Choice,
    /// Flows with a size that were opened here, less those that were whole here; of datagrams bytes, less those that arrived or
    /// were dropped here.
    unfinished: i64,
    queue_samples: BTreeMap<u32, Vec<u32>>,
    /// By watched port: what it had sent when the last bin ended.
    sent_samples: BTreeMap<u32, Bytes>,
    series: Vec<SeriesRow>,
    /// Taken at the end of the arrivals: what drains afterwards would thin the means.
    ports: Option<Vec<PortRow>>,
    ideal: Ideal,
    now: Time,
    /// Where the run ends if all flows are done by then.
    horizon: Time,
    done: bool,
    slots: StartSlots,
    bridges: Bridges,
    /// Of a run that is traced.
    recorder: Option<Box<Recorder>>,
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
        Simulation::part(plan, seed, &Partition::whole(&plan.network), 0, survey(plan, seed)?)
    }

    /// One part of a run at its beginning; all of them together are the run.
    pub(crate) fn part(
        plan: &'a Plan,
        seed: u64,
        partition: &Partition,
        part: u32,
        Survey { names, numbering }: Survey,
    ) -> Result<Simulation<'a>, SimError> {
        let graph = &plan.network;
        let network: Network<Packet> = Network::part(graph, seed, partition, part)?;
        let mut rates = vec![Rate::default(); graph.nodes.len()];
        for link in &graph.links {
            if graph.nodes[link.from as usize].kind == NodeKind::Host {
                rates[link.from as usize] = link.rate;
            }
        }
        let runs = {
            let partition = partition.clone();
            move |node: u32| partition.part_of(node) == part
        };
        let host_rates = rates.iter().copied().filter(|&rate| rate != Rate::default());
        let watched = (0..).zip(&graph.links).filter(|(_, link)| link.watched && partition.part_of(link.from) == part);
        let mut slots =
            StartSlots { next: u32::try_from(plan.traffic.len()).expect("a plan has few entries"), free: Vec::new() };
        let bridges = Bridges::new(plan, seed, || slots.take());
        let app = |traffic: &'a Traffic| {
            let (runs, other) = (runs.clone(), runs.clone());
            let keep = move |flow: &FlowStart| other(flow.source) || other(flow.destination);
            traffic.application(seed, &plan.schedule, runs, keep)
        };
        let mut simulation = Simulation {
            plan,
            partition: partition.clone(),
            part,
            names,
            network,
            pool: SidePool::default(),
            connections: Connections::new(graph.nodes.len(), numbering),
            stacks: Stacks::new(plan, host_rates)?,
            rates: rates.clone(),
            random: Stream::named(seed, "controllers").next_u64(),
            apps: plan.traffic.iter().map(app).collect(),
            flows: Flows::new(plan.traffic.len()),
            dropped_in_passing: BTreeMap::new(),
            queries: Vec::new(),
            host_cache: BTreeMap::new(),
            refused: Vec::new(),
            nics: BTreeMap::new(),
            limiting: (0..).zip(&plan.traffic).find(|(_, entry)| entry.profile.nic_limiter.is_some()).map(|(at, _)| at),
            nic_cuts: BTreeMap::new(),
            adapters: Adapters::of(plan, || slots.take()),
            has_telemetry: graph.links.iter().any(|link| link.telemetry),
            takes_in: false,
            takes_full_path: false,
            persistent: BTreeMap::new(),
            received: BTreeMap::new(),
            windows_of: Vec::new(),
            goodput_of: Vec::new(),
            choice: Choice::of(plan, seed),
            unfinished: 0,
            sent_samples: watched.clone().map(|(id, _)| (id, Bytes::ZERO)).collect(),
            queue_samples: watched.map(|(id, _)| (id, Vec::new())).collect(),
            series: Vec::new(),
            ports: None,
            ideal: Ideal::default(),
            now: Time::ZERO,
            horizon: plan.schedule.end,
            done: false,
            slots,
            bridges,
            recorder: None,
        };
        simulation.takes_in = simulation.adapters.is_some() || simulation.has_telemetry;
        simulation.arm_first_events();
        Ok(simulation)
    }

    /// Never takes the fast path of hosts from now on, for tests: results are the same, and later.
    pub fn take_full_path(&mut self) {
        self.takes_full_path = true;
    }

    /// Whether this part owns a node.
    fn owns(&self, node: u32) -> bool {
        self.partition.part_of(node) == self.part
    }

    fn arm_first_events(&mut self) {
        for traffic in (0..).take(self.apps.len()) {
            self.arm_application(traffic);
        }
        let schedule = &self.plan.schedule;
        self.network.arm(Entity::sample(WARMUP, 0), Time::ZERO + schedule.warmup);
        self.network.arm(Entity::sample(END, 5), schedule.end);
        let sampling = &self.plan.sampling;
        let samplers = [
            (QUEUES, sampling.queues),
            (WINDOWS, sampling.windows),
            (GOODPUT, sampling.goodput),
            (THROUGHPUT, sampling.throughput),
        ];
        for (id, every) in samplers {
            if every > Span::ZERO {
                let slot = u32::try_from(id).expect("few samplers");
                self.network.arm(Entity::sample(id, slot), Time::ZERO + every);
            }
        }
    }

    /// How far the run has come.
    pub fn progress(&self) -> Progress {
        Progress { now: self.now, end: deadline(self.plan), packet_hops: self.network.packet_hops() }
    }

    /// Handles up to `events` events of the hosts; false once the run is over.
    ///
    /// A function of its own in the machine's code too: `narrows bench` counts the instructions within it alone.
    #[inline(never)]
    pub fn advance(&mut self, events: u64) -> bool {
        let mut left = events;
        while !self.done {
            let ran = if self.recorder.is_some() {
                self.run_recorded(self.horizon, left)
            } else {
                self.run(self.horizon, left)
            };
            left = match ran {
                Some(left) => left,
                None => return true,
            };
            match next_horizon(self.plan, self.horizon).filter(|_| self.unfinished > 0) {
                Some(next) => self.horizon = next,
                None => self.done = true,
            }
        }
        false
    }

    /// Handles up to `budget` events up to and including `until`: what is left of the budget then, `None` if it did not
    /// suffice.
    fn run(&mut self, until: Time, budget: u64) -> Option<u64> {
        for handled in 0..budget {
            let Some((now, next)) = self.network.next_in_place(until) else {
                self.now = until;
                return Some(budget - handled);
            };
            self.now = now;
            match next {
                Next::Arrival { host, place } if !self.takes_in => {
                    let packet = *self.network.packet(place);
                    self.handle_packet(now, host, &packet);
                }
                Next::Due(entity) => self.handle_due(now, entity),
                next => {
                    let event = self.network.event(next);
                    self.handle(now, event);
                }
            }
        }
        None
    }

    #[inline(always)]
    fn handle(&mut self, now: Time, event: Event<Packet>) {
        match event {
            Event::Arrival { host, packet } if self.takes_in => self.take_in(now, host, packet),
            Event::Arrival { host, packet } => self.handle_packet(now, host, &packet),
            Event::Dropped { packet } => self.note_dropped(packet),
            Event::Entering { .. } | Event::Crossed { .. } => self.handle_bridge(now, event),
            Event::Left { packet, .. } => self.note_left(now, packet),
            Event::Recalled { .. } => self.note_recalled(),
            Event::Sampled { link, feedback, packet } => self.notify_sender(now, link, feedback, packet),
            Event::Due(entity) => self.handle_due(now, entity),
        }
    }

    #[inline(always)]
    fn handle_due(&mut self, now: Time, entity: Entity) {
        match entity.class() {
            Class::Timer => self.handle_timer(now, entity),
            Class::Start => self.handle_start(now, entity),
            _ => self.handle_sample(now, entity),
        }
    }

    /// A packet reaches a host's stack that is not what its [fast path](fast_path) takes.
    #[inline(never)]
    fn handle_on_full_path(&mut self, now: Time, host: u32, packet: Packet) {
        let connection = self.connections.numbering.unlabelled(packet.connection);
        if packet.is_special() && self.handle_special(now, host, packet) {
            return;
        }
        let mut segment = Segment::default();
        packet.unpack_into(&mut segment, &mut self.pool);
        self.handle_segment(now, host, (connection, packet.side()), &segment);
    }

    /// A segment reaches a host's stack.
    #[inline(always)]
    fn handle_segment(&mut self, now: Time, host: u32, (connection, side): (u32, Side), segment: &Segment) {
        let slot = match self.connections.slot(connection, side) {
            Some(slot) => slot,
            None if side == Side::Other && !self.connections.is_closed(connection, side) => {
                self.accept(connection, host, segment.tag, segment.flags)
            }
            None => {
                self.answer_for_closed(now, host, connection, *segment);
                return;
            }
        };
        let mut end = self.connections.end(slot);
        if segment.tag.0 > end.latest {
            self.learn_flow(now, slot, segment);
            end = self.connections.end(slot);
        }
        let stack = self.stacks.get(end.place.stack);
        let (Endpoint::Tcp(endpoint), port) = end.split() else { return self.handle_rdma(now, slot, segment) };
        endpoint.handle_segment(now, segment, stack);
        let all_sent = if endpoint.has_event() || port.place.is_handed_specially {
            self.drain_events(now, slot);
            self.transmit(now, slot)
        } else {
            let packets = (&mut self.pool, &mut self.refused);
            let all_sent = transmit(now, slot, (endpoint, &mut ()), port, stack, &mut self.network, packets);
            self.note_refused();
            all_sent
        };
        if all_sent {
            self.finish_sending(now, slot);
        }
    }

    /// The other end of a connection, on its first packet. Without a SYN the connection was opened before the run.
    #[inline(never)]
    fn accept(&mut self, connection: u32, host: u32, tag: Tag, flags: Flags) -> u32 {
        let traffic = self.names.name(tag).traffic;
        let established = !flags.contains(Flags::SYN);
        let opener = self.connections.numbering.opener(connection);
        self.insert_end(connection, Side::Other, host, opener, traffic, established)
    }

    /// An end hears of a flow whose first byte it does not have yet. Flows of one connection have ascending tags.
    #[inline(never)]
    fn learn_flow(&mut self, now: Time, slot: u32, segment: &Segment) {
        let number = self.flow_of(segment.tag);
        let end = self.connections.end(slot);
        let (connection, host) = (end.connection, end.place.host);
        let flow = &mut self.flows[number];
        flow.connection = Some(connection);
        if flow.destination != host {
            end.latest = segment.tag.0;
            return;
        }
        if end.receiving.is_none_or(|current| current.flow != number) {
            // Of flows that follow each other, an earlier one may go on, or this one be whole and only retransmitted.
            let waits = end.receiving.is_some() || flow.done < Time::NEVER;
            if waits && self.is_of_program(slot) {
                return;
            }
            self.begin_receiving(slot, number);
            let name = self.flows[number].name;
            let is_sampled = |of: &[(u32, u64)]| of.iter().any(|&(flow, _)| flow == number);
            if self.choice.has(name) && !self.begins_by_itself(name.traffic) && !is_sampled(&self.goodput_of) {
                self.goodput_of.push((number, 0));
            }
        }
        let end = self.connections.end(slot);
        let base = end.receiving.expect("it has begun").base.delivered_bytes;
        if segment.length > 0 && segment.seq == Seq::FIRST.plus(base).wire() {
            end.latest = segment.tag.0;
            self.flows[number].first_byte = now;
        }
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
        let remembers = stack.profile.host_cache.is_some() && entry.transport.is_tcp();
        let remembered = remembers.then(|| self.host_cache.get(&(host, peer))).flatten();
        let entry_with_library = (entry, self.stacks.library(traffic));
        let controller = || controller(entry_with_library, stack, remembered, self.random, connection, side as u32);
        let mut round_trip = || {
            let ends = if side == Side::Opener { (host, peer) } else { (peer, host) };
            let hashes = (flow_hash(connection, ends.1), flow_hash(connection, ends.0));
            self.ideal.handshake(&self.plan.network, &self.network, ends, hashes)
        };
        let mut endpoint = match &entry.transport {
            Transport::Datagram(config) => Endpoint::Datagram(Datagram::new(config, stack.line_rate)),
            Transport::Rdma(config) => Endpoint::Rdma(Rdma::new(config, controller(), round_trip(), stack)),
            Transport::Tcp if established => {
                Endpoint::Tcp(tcp::Endpoint::established(controller(), round_trip(), stack))
            }
            Transport::Tcp => Endpoint::Tcp(tcp::Endpoint::closed(controller(), stack)),
        };
        if let Endpoint::Tcp(endpoint) = &mut endpoint {
            if let Some(metrics) = remembered {
                endpoint.recall(metrics, stack);
            }
            if self.takes_full_path {
                endpoint.take_full_path();
            }
            if let Some(RoutingConfig::Rehash(config)) = self.plan.network.routing {
                let stream =
                    SmallStream::new(mix(self.random ^ mix(1 << 40 | u64::from(connection) << 1 | side as u64)));
                endpoint.balance(config, self.connections.numbering.labels(), stream);
            }
        }
        let port = self.network.host_link(host);
        let place = Place {
            host,
            to: Recipient::new(peer, side.other()),
            port,
            traffic,
            stack: stack_index,
            service_class: entry.service_class,
            is_handed_specially: !entry.transport.is_tcp()
                || self.has_telemetry
                || self.limiting.is_some() && self.nics.contains_key(&(host, peer)),
        };
        let slot = self.connections.insert(endpoint, connection, place);
        let stream = SmallStream::new(mix(self.random ^ mix(!(u64::from(connection) << 1 | side as u64))));
        self.connections.end(slot).endpoint.listen(stream, self.stacks.get(stack_index));
        slot
    }

    /// A packet has left its host's port, which was paused: its sender may have waited for that.
    #[inline(never)]
    fn note_left(&mut self, now: Time, packet: Packet) {
        if packet.payload() == 0 {
            return;
        }
        let side = packet.side().other();
        if let Some(slot) = self.connections.slot(packet.connection, side) {
            self.connections.end(slot).waiting.note_left(now);
            self.pump(now, slot);
        }
    }

    /// A host's port was paused: what it has not sent yet leaves later than it said.
    #[inline(never)]
    fn note_recalled(&mut self) {
        for packet in self.network.take_recalled().into_iter().rev().filter(|packet| packet.payload() > 0) {
            let side = packet.side().other();
            if let Some(slot) = self.connections.slot(packet.connection, side) {
                self.connections.end(slot).waiting.note_recalled();
            }
        }
    }

    /// After anything happened to an end: its events, its segments, its deadlines.
    #[inline(always)]
    fn pump(&mut self, now: Time, slot: u32) {
        if self.connections.end_if_alive(slot).is_some_and(|end| end.endpoint.has_event()) {
            self.drain_events(now, slot);
        }
        if self.transmit(now, slot) {
            self.finish_sending(now, slot);
        }
    }

    /// Takes an end's events. Whatever one brings about may close the end.
    #[inline(never)]
    fn drain_events(&mut self, now: Time, slot: u32) {
        while let Some(event) = self.connections.end_if_alive(slot).and_then(|end| end.endpoint.poll_event()) {
            match event {
                TcpEvent::Delivered(tag) => self.handle_message(now, slot, tag),
                TcpEvent::Established => self.note_established(now, slot),
            }
        }
    }

    /// Takes note of packets that hosts' own ports have refused.
    #[inline(always)]
    fn note_refused(&mut self) {
        if !self.refused.is_empty() {
            std::mem::take(&mut self.refused).into_iter().for_each(|packet| self.note_dropped(packet));
        }
    }

    /// Sends what an end may send now and arms its deadlines; returns whether all that it was sending is acknowledged.
    fn transmit(&mut self, now: Time, slot: u32) -> bool {
        let Some(end) = self.connections.end_if_alive(slot) else { return false };
        let stack = self.stacks.get(end.place.stack);
        if end.place.is_handed_specially {
            return self.transmit_specially(now, slot);
        }
        let packets = (&mut self.pool, &mut self.refused);
        let (Endpoint::Tcp(endpoint), port) = end.split() else { unreachable!("others are handed specially") };
        let all_sent = transmit(now, slot, (endpoint, &mut ()), port, stack, &mut self.network, packets);
        self.note_refused();
        all_sent
    }

    #[inline(never)]
    fn handle_timer(&mut self, now: Time, entity: Entity) {
        let slot = entity.slot() >> 1;
        let Some(end) = self.connections.end_if_alive(slot) else { return };
        if entity.slot() & 1 == 0 {
            end.armed_timer = Time::NEVER;
        } else {
            end.armed_pacing = Time::NEVER;
            if self.go_on_in_order(now, slot) {
                return;
            }
        }
        let end = self.connections.end(slot);
        let stack = self.stacks.get(end.place.stack);
        if end.endpoint.deadline() <= now {
            end.endpoint.handle_timeout(now, stack);
        }
        self.pump(now, slot);
    }
}

/// See [`Simulation::transmit`].
#[inline(always)]
fn transmit(
    now: Time,
    slot: u32,
    (endpoint, handing): (&mut (impl Machine + ?Sized), &mut impl Handing),
    mut end: Outlet<'_>,
    stack: &Stack,
    network: &mut Network<Packet>,
    (pool, refused): (&mut SidePool, &mut Vec<Packet>),
) -> bool {
    let mut room_at = Time::NEVER;
    loop {
        let waiting = end.waiting.bytes(now);
        let room = endpoint.has_room(waiting, stack);
        if !room {
            room_at = end.waiting.next_departure();
        }
        let mut segment = Segment::default();
        if !endpoint.poll_into(&mut segment, now, room, stack) {
            break;
        }
        let number = end.connection | endpoint.path_label();
        let mut packet = Packet::pack(&segment, number, end.place.to, end.place.service_class, pool);
        handing.echo(&mut packet, network);
        if let Some(nic) = handing.nic() {
            nic.send(now, packet, end.waiting, network);
            continue;
        }
        match network.offer(now, end.place.port, packet) {
            Offered::Accepted { departure, .. } if segment.length > 0 => {
                end.waiting.push(departure.min(UNTOLD), packet.ip_bytes());
            }
            Offered::Accepted { .. } => {}
            Offered::Dropped(_) => refused.push(packet),
        }
        // After most bare acknowledgements nothing follows.
        if segment.length == 0 && endpoint.is_quiescent() {
            break;
        }
    }
    end.arm_timer(slot, endpoint.deadline(), network);
    // While the port is full the sender is not asked, and what it said of pacing may be of the past.
    let pacing = if room_at == Time::NEVER { endpoint.pacing_deadline() } else { room_at };
    end.arm_pacing(slot, pacing, network);
    // What waits in the adapter has not been sent.
    end.sends && endpoint.is_idle() && handing.nic().is_none_or(|_| !end.waiting.is_behind())
}

/// The same out of line, for those that are not most.
#[inline(never)]
fn transmit_rarely(
    now: Time,
    slot: u32,
    machine: (&mut (impl Machine + ?Sized), &mut impl Handing),
    end: Outlet<'_>,
    stack: &Stack,
    network: &mut Network<Packet>,
    (pool, refused): (&mut SidePool, &mut Vec<Packet>),
) -> bool {
    transmit(now, slot, machine, end, stack, network, (pool, refused))
}

/// When a run stops at the latest.
pub(crate) fn deadline(plan: &Plan) -> Time {
    plan.schedule.end + plan.schedule.drain
}

/// Where a run that goes on after `horizon` may end next: at the first whole millisecond after it, so that the end does not
/// hang on the very event that finished the last flow, which a part of a run could not know. `None` at the deadline.
pub(crate) fn next_horizon(plan: &Plan, horizon: Time) -> Option<Time> {
    let millisecond = Span::from_ms(1).as_ps();
    let next = Time::from_ps((horizon.as_ps() / millisecond + 1) * millisecond);
    (horizon < deadline(plan)).then_some(next.min(deadline(plan)))
}
