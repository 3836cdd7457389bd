//! The run itself: takes events from the network in their order, hands them to the machines, and does what these ask.
//!
//! Agenda entities: each connection's end has a timer (retransmission, delayed acknowledgement, offload) and a pacing
//! timer (pacing, room in the host's port), each named by the connection's number; traffic entries have a start, flows
//! that stop and answers that wait have one each; samplers come last.

use std::collections::BTreeMap;

use narrows_core::app::scatter_gather::ScatterGather;
use narrows_core::cc::Controller;
use narrows_core::packet::{Flags, Segment, Seq, Tag};
use narrows_core::probe::{DropReason, NoProbe};
use narrows_core::rng::Stream;
use narrows_core::tcp::{Endpoint, Event as TcpEvent, Tallies};
use narrows_core::units::{Bytes, Rate, Span, Time};
use narrows_network::{Class, Entity, Event, Network};
use narrows_scenario::plan::{Connections as Mode, FlowStart, Incast, NodeKind, Pattern, Plan};

use crate::connections::{Connections, Current, MOST_HOSTS, Side, opener};
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
    jitter: Stream,
    arrivals: Vec<Arrivals<'a>>,
    flows: Vec<Flow>,
    queries: Vec<RequestRow>,
    clients: Vec<Client<'a>>,
    /// The client that a flow of a query belongs to, by traffic entry.
    client_of_traffic: Vec<Option<usize>>,
    /// Idle or busy persistent connections by (traffic, opener, peer).
    persistent: BTreeMap<(u32, u32, u32), Vec<(u32, bool)>>,
    /// Flows without a size that go on.
    endless: Vec<u32>,
    /// Goodput already reported, by position in `endless`.
    reported: Vec<u64>,
    /// Answers that wait: flow numbers by slot.
    waiting_answers: Vec<u32>,
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

/// Slots of the start entities: traffic entries, then stops and answers, handed out as they come.
#[derive(Clone, Copy, Debug)]
struct StartSlots {
    next: u32,
}

impl StartSlots {
    fn take(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}

impl<'a> Simulation<'a> {
    /// A run at its beginning.
    ///
    /// # Errors
    /// If the plan's network is not usable or has too many hosts.
    pub fn new(plan: &'a Plan, seed: u64) -> Result<Simulation<'a>, SimError> {
        let graph = &plan.network;
        let hosts = graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
        if hosts > MOST_HOSTS as usize {
            return Err(SimError::TooManyHosts { hosts, most: MOST_HOSTS });
        }
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
            jitter: Stream::named(seed, "jitter"),
            arrivals: plan.traffic.iter().map(|traffic| arrivals(traffic, seed, &plan.schedule)).collect(),
            flows: Vec::new(),
            queries: Vec::new(),
            clients: Vec::new(),
            client_of_traffic: vec![None; plan.traffic.len()],
            persistent: BTreeMap::new(),
            endless: Vec::new(),
            reported: Vec::new(),
            waiting_answers: Vec::new(),
            unfinished: 0,
            queue_samples: watched.collect(),
            series: Vec::new(),
            ports: None,
            ideal: Ideal::default(),
            now: Time::ZERO,
            all_begun: false,
            done: false,
            slots: StartSlots { next: u32::try_from(plan.traffic.len()).expect("a plan has few entries") },
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
            if let Some(at) = first {
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
            if self.all_begun && self.unfinished == 0 && now >= self.plan.schedule.end {
                self.done = true;
            }
        }
        !self.done
    }

    /// The controller of a flow's sender while its connection lives, for observation.
    pub fn controller(&mut self, flow: u32) -> Option<&Controller> {
        let flow = self.flows.get(flow as usize)?;
        let slot = self.connections.slot(flow.connection, Side::on(flow.source, flow.connection))?;
        Some(self.connections.end(slot).endpoint.controller())
    }

    // ---- packets ----------------------------------------------------------------------------------------------------

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
        let stack = self.stacks.get(end.stack);
        end.endpoint.handle_segment(now, &segment, stack);
        self.serve(now, slot);
    }

    /// The other end of a connection, on its first packet. The tag of a SYN is the connection's first flow.
    fn accept(&mut self, connection: u32, host: u32, tag: Tag) -> u32 {
        let flow = &self.flows[tag.0 as usize - 1];
        let (traffic, peer, awaits) = (flow.traffic, opener(connection), flow.destination == host);
        let slot = self.insert_end(connection, Side::Other, host, peer, traffic, false);
        if awaits {
            let end = self.connections.end(slot);
            end.receiving = Some(Current { flow: tag.0 - 1, base: end.endpoint.tallies() });
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
        self.connections.insert(endpoint, connection, side, (host, peer), port, traffic, stack_index)
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
        self.network.offer(now, port, packet, &mut NoProbe);
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
        let stack = self.stacks.get(end.stack);
        let mut room_at = Time::NEVER;
        loop {
            let limit = end.endpoint.small_queue_limit(stack);
            let full_until = end.port_has_room(now, limit);
            let segment = if full_until > now {
                room_at = full_until;
                end.endpoint.poll_acknowledgement(now, stack)
            } else {
                end.endpoint.poll_transmit(now, stack)
            };
            let Some(segment) = segment else { break };
            let packet = Packet::pack(&segment, end.connection, end.peer, &mut self.pool);
            let offered = self.network.offer(now, end.port, packet, &mut NoProbe);
            if segment.length > 0 {
                end.note_waiting(offered, u32::from(segment.length));
            }
        }
        let id = (u64::from(end.connection) << 1 | Side::on(end.host, end.connection) as u64) << 1;
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
        let stack = self.stacks.get(end.stack);
        if end.endpoint.deadline(stack) <= now {
            end.endpoint.handle_timeout(now, stack);
        }
        self.serve(now, slot);
    }

    // ---- flows ------------------------------------------------------------------------------------------------------

    fn handle_start(&mut self, now: Time, entity: Entity) {
        let id = entity.id();
        if id >= ANSWERS {
            let flow = self.waiting_answers[usize::try_from(id - ANSWERS).expect("an index")];
            self.send_flow(now, flow);
        } else if id >= STOPS {
            self.stop_flow(now, u32::try_from(id - STOPS).expect("flow numbers are 32 bits"));
        } else {
            let traffic = usize::try_from(id).expect("a plan has few entries");
            match self.client_of_traffic[traffic] {
                Some(client) => self.ask(now, client),
                None => self.begin_arrivals(now, traffic, entity),
            }
        }
        self.all_begun = self.arrivals.iter_mut().all(|arrivals| arrivals.peek().is_none())
            && self.clients.iter().all(|client| client.machine.is_done());
    }

    fn begin_arrivals(&mut self, now: Time, traffic: usize, entity: Entity) {
        while let Some(flow) = self.arrivals[traffic].next_if(|flow| flow.at <= now) {
            self.begin_flow(now, u32::try_from(traffic).expect("a plan has few entries"), flow, None);
        }
        if let Some(next) = self.arrivals[traffic].peek() {
            self.network.arm(entity, next.at);
        }
    }

    /// A flow begins: the opener of its connection sends the request, or the data itself.
    fn begin_flow(&mut self, now: Time, traffic: u32, start: FlowStart, query: Option<u32>) -> u32 {
        let number = u32::try_from(self.flows.len()).expect("fewer than 2³² flows");
        let (network, graph) = (&self.network, &self.plan.network);
        let ideal = self.ideal.completion(
            graph,
            (start.source, start.destination),
            start.size.unwrap_or(Bytes::new(1)),
            start.request,
            |from, to| network.path(from, to, 0),
        );
        let (opener, peer) = match start.request {
            Some(_) => (start.destination, start.source),
            None => (start.source, start.destination),
        };
        self.flows.push(Flow {
            connection: 0,
            traffic,
            source: start.source,
            destination: start.destination,
            size: start.size,
            query,
            start: now,
            done: None,
            ideal,
            rtt_sum: Span::ZERO,
            rtt_count: 0,
            retransmitted_bytes: 0,
            timeouts: 0,
            marked_bytes: 0,
            delivered_at_warmup: 0,
            delivered: 0,
        });
        let tag = Tag(number + 1);
        let slot = self.connection_for(traffic, opener, peer, tag);
        let end = self.connections.end(slot);
        let connection = end.connection;
        self.flows[number as usize].connection = connection;
        if start.size.is_some() {
            self.unfinished += 1;
        } else {
            self.endless.push(number);
            self.reported.push(0);
            if let Some(stop) = start.stop {
                let slot = self.slots.take();
                self.network.arm(Entity::start(STOPS + u64::from(number), slot), stop);
            }
        }
        match start.request {
            Some(request) => {
                let end = self.connections.end(slot);
                end.receiving = Some(Current { flow: number, base: end.endpoint.tallies() });
                end.endpoint.offer(request, tag);
                self.serve(now, slot);
            }
            None => {
                self.note_receiver(connection, Side::Other, number);
                self.send_flow(now, number);
            }
        }
        number
    }

    /// The end at `side`, if it lives, awaits this flow from now on.
    fn note_receiver(&mut self, connection: u32, side: Side, flow: u32) {
        if let Some(slot) = self.connections.slot(connection, side) {
            let end = self.connections.end(slot);
            end.receiving = Some(Current { flow, base: end.endpoint.tallies() });
        }
    }

    /// The opener's end of a connection that may carry a new flow.
    fn connection_for(&mut self, traffic: u32, opener: u32, peer: u32, tag: Tag) -> u32 {
        let mode = self.plan.traffic[traffic as usize].connections;
        match mode {
            Mode::Fresh => {
                let slot = self.open(traffic, opener, peer, false);
                self.connections.end(slot).endpoint.open(tag);
                slot
            }
            Mode::FreshEstablished => self.open(traffic, opener, peer, true),
            Mode::Persistent { pool } => {
                let key = (traffic, opener, peer);
                if !self.persistent.contains_key(&key) {
                    let connections = (0..pool).map(|_| {
                        let slot = self.open(traffic, opener, peer, true);
                        (self.connections.end(slot).connection, false)
                    });
                    let connections = connections.collect();
                    self.persistent.insert(key, connections);
                }
                let known = self.persistent.get_mut(&key).expect("inserted above");
                if let Some(entry) = known.iter_mut().find(|(_, busy)| !busy) {
                    entry.1 = true;
                    let connection = entry.0;
                    return self.connections.slot(connection, Side::Opener).expect("persistent ends live on");
                }
                let slot = self.open(traffic, opener, peer, false);
                let connection = self.connections.end(slot).connection;
                self.persistent.get_mut(&key).expect("inserted above").push((connection, true));
                self.connections.end(slot).endpoint.open(tag);
                slot
            }
        }
    }

    /// A new connection; where it is established from the start, both its ends.
    fn open(&mut self, traffic: u32, opener: u32, peer: u32, established: bool) -> u32 {
        let connection = self.connections.open(opener).expect("a plan's flows are bounded by connection numbers");
        let slot = self.insert_end(connection, Side::Opener, opener, peer, traffic, established);
        if established {
            self.insert_end(connection, Side::Other, peer, opener, traffic, true);
        }
        slot
    }

    /// The source's end sends the flow's bytes.
    fn send_flow(&mut self, now: Time, number: u32) {
        let flow = &self.flows[number as usize];
        let (connection, size) = (flow.connection, flow.size.unwrap_or(ENDLESS));
        let side = Side::on(flow.source, connection);
        let Some(slot) = self.connections.slot(connection, side) else { return };
        let end = self.connections.end(slot);
        end.sending = Some(Current { flow: number, base: end.endpoint.tallies() });
        end.endpoint.offer(size, Tag(number + 1));
        self.serve(now, slot);
    }

    fn stop_flow(&mut self, now: Time, number: u32) {
        let flow = &self.flows[number as usize];
        let side = Side::on(flow.source, flow.connection);
        if let Some(slot) = self.connections.slot(flow.connection, side) {
            self.connections.end(slot).endpoint.stop();
            self.serve(now, slot);
        }
    }

    /// A message is whole at this end: a request to answer, or a flow that is done.
    fn handle_message(&mut self, now: Time, slot: u32, tag: Tag) {
        let number = tag.0 - 1;
        let host = self.connections.end(slot).host;
        let flow = &self.flows[number as usize];
        if flow.source == host {
            let jitter = match &self.plan.traffic[flow.traffic as usize].pattern {
                Pattern::Incast(incast) if incast.jitter > Span::ZERO => incast.jitter,
                _ => {
                    self.send_flow(now, number);
                    return;
                }
            };
            let wait = Span::from_ps(self.jitter.below(jitter.as_ps()));
            let id = ANSWERS + self.waiting_answers.len() as u64;
            self.waiting_answers.push(number);
            let slot = self.slots.take();
            self.network.arm(Entity::start(id, slot), now + wait);
            return;
        }
        self.finish_receiving(now, slot, number);
    }

    /// The flow's last byte is here: its completion is known, and the opener may use the connection again.
    fn finish_receiving(&mut self, now: Time, slot: u32, number: u32) {
        self.unfinished -= 1;
        self.flows[number as usize].done = Some(now);
        self.note_received(slot, number);
        let end = self.connections.end(slot);
        end.receiving = None;
        if Side::on(end.host, end.connection) == Side::Opener {
            self.release(now, slot);
        } else if self.one_flow_only(slot) {
            // Nothing more will come, but the last acknowledgement must still go.
            self.transmit(now, slot);
            self.close(slot);
            return;
        }
        if let Some(query) = self.flows[number as usize].query {
            self.handle_answer(now, number, query);
        }
    }

    /// Takes the receiving end's counts into the flow.
    fn note_received(&mut self, slot: u32, number: u32) {
        let end = self.connections.end(slot);
        let tallies = end.endpoint.tallies();
        let base = end.receiving.filter(|current| current.flow == number).map_or(Tallies::default(), |c| c.base);
        let flow = &mut self.flows[number as usize];
        flow.marked_bytes = tallies.marked_bytes - base.marked_bytes;
        flow.delivered = tallies.delivered_bytes - base.delivered_bytes;
    }

    /// Takes the sending end's counts into its flow once everything is acknowledged.
    fn finish_sending(&mut self, now: Time, slot: u32) {
        let Some(end) = self.connections.end_if_alive(slot) else { return };
        if end.sending.is_none() || !end.endpoint.is_idle() {
            return;
        }
        self.note_sent(slot);
        let end = self.connections.end(slot);
        end.sending = None;
        if Side::on(end.host, end.connection) == Side::Opener {
            self.release(now, slot);
        } else if self.one_flow_only(slot) {
            self.close(slot);
        }
    }

    fn note_sent(&mut self, slot: u32) {
        let end = self.connections.end(slot);
        let Some(current) = end.sending else { return };
        let tallies = end.endpoint.tallies();
        let flow = &mut self.flows[current.flow as usize];
        flow.retransmitted_bytes = tallies.retransmitted_bytes - current.base.retransmitted_bytes;
        flow.timeouts = tallies.timeouts - current.base.timeouts;
        flow.rtt_sum = tallies.rtt_sum - current.base.rtt_sum;
        flow.rtt_count = tallies.rtt_count - current.base.rtt_count;
    }

    fn one_flow_only(&mut self, slot: u32) -> bool {
        let traffic = self.connections.end(slot).traffic;
        !matches!(self.plan.traffic[traffic as usize].connections, Mode::Persistent { .. })
    }

    /// The opener is done with its connection: it closes, or waits for the next flow.
    fn release(&mut self, now: Time, slot: u32) {
        if self.one_flow_only(slot) {
            self.transmit(now, slot);
            self.close(slot);
            return;
        }
        let end = self.connections.end(slot);
        let (key, connection) = ((end.traffic, end.host, end.peer), end.connection);
        let known = self.persistent.get_mut(&key).expect("persistent connections are listed");
        let entry = known.iter_mut().find(|entry| entry.0 == connection).expect("each is listed");
        entry.1 = false;
    }

    fn close(&mut self, slot: u32) {
        let end = self.connections.end(slot);
        let id = (u64::from(end.connection) << 1 | Side::on(end.host, end.connection) as u64) << 1;
        self.network.disarm(Entity::timer(id, slot << 1));
        self.network.disarm(Entity::timer(id | 1, slot << 1 | 1));
        self.connections.remove(slot);
    }

    // ---- scatter and gather -----------------------------------------------------------------------------------------

    fn ask(&mut self, now: Time, client: usize) {
        if now >= self.plan.schedule.end {
            return;
        }
        let Some(_servers) = self.clients[client].machine.poll_query(now) else { return };
        let (traffic, incast) = (self.clients[client].traffic, self.clients[client].incast);
        let query = u32::try_from(self.queries.len()).expect("fewer than 2³² queries");
        self.queries.push(RequestRow {
            request: query,
            client: incast.client,
            start_ns: now.as_ns(),
            completion_ns: None,
            responses: 0,
        });
        self.clients[client].query = Some(query);
        for &server in &incast.servers {
            let start = FlowStart {
                at: now,
                source: server,
                destination: incast.client,
                size: Some(incast.response),
                stop: None,
                request: Some(incast.request),
            };
            self.begin_flow(now, traffic, start, Some(query));
        }
    }

    fn handle_answer(&mut self, now: Time, flow: u32, query: u32) {
        let traffic = self.flows[flow as usize].traffic as usize;
        let client = self.client_of_traffic[traffic].expect("queries belong to clients");
        let row = &mut self.queries[query as usize];
        row.responses += 1;
        if let Some(completed) = self.clients[client].machine.handle_answer(now) {
            row.completion_ns = Some(completed.answered_at.since(completed.asked_at).as_ns());
            // The next query is an event of its own, after everything else that this instant brings.
            let index = u32::try_from(traffic).expect("a plan has few entries");
            self.network.arm(Entity::start(u64::from(index), index), now);
        }
    }

    // ---- samples ----------------------------------------------------------------------------------------------------

    fn handle_sample(&mut self, now: Time, entity: Entity) {
        let sampling = self.plan.sampling;
        let every = match entity.id() {
            WARMUP => {
                self.end_warmup(now);
                return;
            }
            END => {
                self.ports = Some(self.port_rows(now));
                return;
            }
            QUEUES => {
                self.sample_queues(now);
                sampling.queues
            }
            WINDOWS => {
                self.sample_windows(now);
                sampling.windows
            }
            _ => {
                self.sample_goodput(now);
                sampling.goodput
            }
        };
        self.network.arm(entity, now + every);
    }

    fn end_warmup(&mut self, now: Time) {
        self.network.reset_counters(now);
        for slot in self.connections.living_slots() {
            let end = self.connections.end(slot);
            if let Some(current) = end.receiving {
                let delivered = end.endpoint.tallies().delivered_bytes - current.base.delivered_bytes;
                self.flows[current.flow as usize].delivered_at_warmup = delivered;
            }
        }
    }

    fn sample_queues(&mut self, now: Time) {
        for (&link, samples) in &mut self.queue_samples {
            let (bytes, _) = self.network.backlog(now, link);
            if now >= Time::ZERO + self.plan.schedule.warmup && now <= self.plan.schedule.end {
                samples.push(u32::try_from(bytes.get()).unwrap_or(u32::MAX));
            }
            self.series.push(SeriesRow {
                time_ns: now.as_ns(),
                entity: link,
                quantity: Quantity::QueueBytes,
                value: as_f64(bytes.get()),
            });
        }
    }

    fn sample_windows(&mut self, now: Time) {
        for &number in &self.endless {
            let flow = &self.flows[number as usize];
            let Some(slot) = self.connections.slot(flow.connection, Side::on(flow.source, flow.connection)) else {
                continue;
            };
            let window = self.connections.end(slot).endpoint.window();
            self.series.push(SeriesRow {
                time_ns: now.as_ns(),
                entity: number,
                quantity: Quantity::WindowPackets,
                value: as_f64(window.get()),
            });
        }
    }

    fn sample_goodput(&mut self, now: Time) {
        let width = self.plan.sampling.goodput;
        for position in 0..self.endless.len() {
            let number = self.endless[position];
            let delivered = self.delivered_of(number);
            let new = delivered - self.reported[position];
            self.reported[position] = delivered;
            self.series.push(SeriesRow {
                time_ns: now.as_ns(),
                entity: number,
                quantity: Quantity::GoodputBps,
                value: as_f64(Rate::of(Bytes::new(new), width).as_bps()),
            });
        }
    }

    /// Payload of a flow delivered in order so far.
    fn delivered_of(&mut self, number: u32) -> u64 {
        let flow = &self.flows[number as usize];
        let side = Side::on(flow.destination, flow.connection);
        let Some(slot) = self.connections.slot(flow.connection, side) else { return flow.delivered };
        let end = self.connections.end(slot);
        let base = end.receiving.filter(|current| current.flow == number).map_or(0, |c| c.base.delivered_bytes);
        end.endpoint.tallies().delivered_bytes - base
    }

    // ---- the end ----------------------------------------------------------------------------------------------------

    /// The rows of the run as far as it has come.
    ///
    /// # Panics
    /// If the network lost track of a packet.
    pub fn finish(mut self) -> Results {
        let now = self.now;
        for number in self.endless.clone() {
            let flow = &self.flows[number as usize];
            let side = Side::on(flow.destination, flow.connection);
            if let Some(slot) = self.connections.slot(flow.connection, side) {
                self.note_received(slot, number);
            }
        }
        for slot in self.connections.living_slots() {
            self.note_sent(slot);
            if let Some(current) = self.connections.end(slot).receiving {
                self.note_received(slot, current.flow);
            }
        }
        let flows = (0..).zip(&self.flows).map(|(number, flow)| self.flow_row(number, flow)).collect();
        let ports = self.ports.take().unwrap_or_else(|| self.port_rows(now));
        Results {
            flows,
            requests: self.queries,
            ports,
            series: self.series,
            packet_hops: self.network.packet_hops(),
            events: self.network.events(),
            ended_ns: now.as_ns(),
        }
    }

    fn flow_row(&self, number: u32, flow: &Flow) -> FlowRow {
        let delivered_before = flow.delivered_at_warmup.min(flow.delivered);
        FlowRow {
            flow: number,
            connection: flow.connection,
            request: flow.query,
            source: flow.source,
            destination: flow.destination,
            inter: crosses(self.plan, flow.source, flow.destination),
            traffic: flow.traffic,
            size_bytes: flow.size.map_or(flow.delivered, Bytes::get),
            start_ns: flow.start.as_ns(),
            fct_ns: flow.done.map(|done| done.since(flow.start).as_ns()),
            ideal_fct_ns: flow.ideal.as_ns(),
            rtt_mean_ns: (flow.rtt_count > 0).then(|| flow.rtt_sum.div(flow.rtt_count).as_ns()),
            retransmitted_bytes: flow.retransmitted_bytes,
            timeouts: flow.timeouts,
            marked_bytes: flow.marked_bytes,
            delivered_after_warmup_bytes: flow.delivered - delivered_before,
        }
    }

    fn port_rows(&mut self, now: Time) -> Vec<PortRow> {
        let measured = now.since(Time::ZERO + self.plan.schedule.warmup);
        let counters = self.network.finish(now);
        let mut rows = Vec::with_capacity(counters.len());
        for ((port, link), counters) in (0..).zip(&self.plan.network.links).zip(counters) {
            let mut samples = self.queue_samples.remove(&port).unwrap_or_default();
            samples.sort_unstable();
            let percentile = |percent: usize| {
                let rank = (samples.len() * percent).div_ceil(100);
                samples.get(rank.saturating_sub(1)).map(|&bytes| u64::from(bytes))
            };
            let dropped = |reason: DropReason| counters.dropped_for(reason).get();
            rows.push(PortRow {
                port,
                sent_packets: counters.sent.packets.get(),
                sent_bytes: counters.sent.bytes.get(),
                dropped_limit_packets: dropped(DropReason::Limit),
                dropped_pool_packets: dropped(DropReason::Pool),
                dropped_aqm_packets: dropped(DropReason::Aqm),
                dropped_impairment_packets: dropped(DropReason::Impairment),
                marked_packets: counters.marked.get(),
                queue_mean_bytes: as_f64(counters.queue_mean(now).get()),
                queue_p50_bytes: percentile(50),
                queue_p99_bytes: percentile(99),
                queue_max_bytes: counters.queue_max.get(),
                utilisation: {
                    let wire = counters.sent.bytes.get() + counters.sent.packets.get() * 38;
                    let possible = as_f64(link.rate.as_bps()) * as_f64(measured.as_ns()) / 8e9;
                    if possible > 0.0 { as_f64(wire) / possible } else { 0.0 }
                },
                measured_ns: measured.as_ns(),
            });
        }
        rows
    }
}

#[allow(clippy::cast_precision_loss, reason = "results are read as real numbers; counts stay below 2⁵³")]
fn as_f64(value: u64) -> f64 {
    value as f64
}
