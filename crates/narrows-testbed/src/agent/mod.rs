//! The applications of one host, with real sockets: one thread in the host's namespace, which knows the plan, its own host, and
//! what messages tell it.
//!
//! A flow begins with its opener's message, which carries its name: the flow's own bytes, or a request for them. Connections
//! are used as the plan says: one for each flow, opened for it or before; or persistent ones, the first idle one first. One
//! connection carries one flow at a time.
//!
//! Times inside are on the network's clock, which begins before the plan's: connections that the plan has open at its start are
//! opened in between.

mod flows;
mod message;
mod notes;
mod socket;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs;
use std::iter::Peekable;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use narrows_core::app::connection_pool::ConnectionPool;
use narrows_core::app::scatter_gather::ScatterGather;
use narrows_core::cc::{EcnUse, spec};
use narrows_core::units::{Bytes, Rate, Span, Time};
use narrows_scenario::plan::{Connections as Mode, FlowStart, Incast, NodeKind, Pattern, Plan};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::{self, Errno};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt};

pub use flows::Drawn;
pub use message::Name;
pub use notes::{Flow, Notes, Opened, Quantity, Query, Received, Sample, Sent};
pub(crate) use socket::port;

use crate::clock::{Clock, timespec};
use crate::namespace::set_parameter;
use crate::priority::{self, RealTime};
use crate::tun;
use flows::{Flows, asked, ends};
use message::{NAME_BYTES, with_name};
use socket::Info;

/// Connections that one host may open: numbers have 20 bits for them.
const MOST_PER_HOST: u32 = 1 << 20;
/// Longest sleep: a stop is noticed after this at the latest.
const LONGEST_SLEEP: Span = Span::from_ms(10);
/// How often senders are asked for their round trip.
const ROUND_TRIPS: Span = Span::from_ms(10);
/// Bytes that are read or written at once.
const PIECE: usize = 1 << 18;
/// Size of a flow without one: far beyond any run.
const ENDLESS: Bytes = Bytes::new(1 << 50);

/// Why an agent cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The kernel has no such controller.
    #[error("this kernel has no congestion controller {name}: load it, or name another for it")]
    NoController {
        /// As the kernel would call it.
        name: String,
    },
    /// A call to the kernel failed.
    #[error("an agent cannot go on: {0}")]
    Kernel(#[from] Errno),
}

/// What the agents of a run and the one who waits for them share.
#[derive(Debug, Default)]
pub struct Shared {
    /// Set when the run is over.
    pub stop: AtomicBool,
    /// Flows with a size that were opened and are not whole yet.
    pub unfinished: AtomicI64,
    /// Hosts that listen.
    listening: AtomicU32,
}

/// What all agents of a run are told.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Its seed.
    pub seed: u64,
    /// By traffic entry, the kernel's name of its controller.
    pub controllers: &'a [String],
    /// The network's clock.
    pub clock: Clock,
    /// When on it the plan begins.
    pub plan_begins: Span,
    /// The place in the real-time class that agents ask for; `None` asks for none.
    pub real_time: Option<RealTime>,
}

/// What comes due. Equal times are handled in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A connection is opened ahead of its flow.
    Open(Name),
    /// The flows of a traffic entry that are to begin.
    Start(u32),
    /// An answer that has waited, on this connection.
    Answer(u32, Name),
    /// A flow without a size offers no more.
    Stop(Name),
    Warmup,
    Windows,
    Goodput,
    RoundTrips,
    End,
}

/// A scatter-and-gather client.
struct Client<'a> {
    incast: &'a Incast,
    asks: Asks,
    /// Flows asked for so far.
    begun: u32,
}

enum Asks {
    /// At once when the last answer is there.
    InTurn(ScatterGather),
    /// At these times, whatever became of the earlier queries.
    AtRandom(Peekable<Box<dyn Iterator<Item = Time>>>),
}

/// What an end is reading.
#[derive(Clone, Copy, Debug)]
enum Reading {
    /// The name of the next message: how many of its bytes are there.
    Name([u8; NAME_BYTES], usize),
    /// The rest of a request, bytes.
    Request(Name, u64),
    /// The rest of a flow, bytes.
    Flow(Name, u64),
    /// Nothing that would mean anything.
    Nothing,
}

/// What an end is writing.
#[derive(Clone, Copy, Debug)]
struct Writing {
    /// How much of the name has gone; all of it for an answer, which has none.
    named: usize,
    name: Name,
    left: u64,
}

/// A flow whose bytes an end has sent or is sending, and the connection's counts when it began.
#[derive(Clone, Copy, Debug)]
struct Sending {
    name: Name,
    before: Info,
}

/// One end of a connection.
#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    traffic: u32,
    peer: u32,
    /// By the simulator's numbering, where this end opened it.
    number: Option<u32>,
    connected: bool,
    /// The flow that waits for the connection.
    queued: Option<Name>,
    reading: Reading,
    writing: Option<Writing>,
    sending: Option<Sending>,
    /// Whether the kernel was asked to say when it can be written.
    watches_room: bool,
}

/// See the [module](self).
pub struct Agent<'a> {
    run: Run<'a>,
    host: u32,
    shared: &'a Shared,
    epoll: OwnedFd,
    listeners: Vec<OwnedFd>,
    connections: BTreeMap<u32, Connection>,
    next_connection: u32,
    opened: u32,
    due: BinaryHeap<Reverse<(Time, Due)>>,
    flows: Flows<'a>,
    /// By traffic entry, what this host opens by itself: next last.
    starts: Vec<Vec<(Time, u32)>>,
    clients: BTreeMap<u32, Client<'a>>,
    /// Persistent connections by (traffic, peer).
    persistent: BTreeMap<(u32, u32), ConnectionPool>,
    /// Persistent connections whose last message may not be acknowledged yet.
    draining: Vec<u32>,
    /// Connections that were opened ahead, by their flow.
    ahead: BTreeMap<Name, u32>,
    /// Flows without a size that have begun here, each with its connection.
    endless: BTreeMap<Name, u32>,
    /// What was delivered of these by the last sample of goodput.
    reported: BTreeMap<Name, u64>,
    /// Whether connections ask for ECN now.
    asks_for_ecn: bool,
    notes: Notes,
    piece: Vec<u8>,
}

/// The epoll data of a traffic entry's listener.
const LISTENER: u64 = 1 << 32;

impl<'a> Agent<'a> {
    /// The agent of a host, on the calling thread, which is in the host's namespace and stays there. It listens at once.
    ///
    /// # Errors
    /// If the kernel lacks a controller, or refuses a socket.
    pub fn new(run: Run<'a>, host: u32, shared: &'a Shared) -> Result<Agent<'a>, AgentError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut listeners = Vec::new();
        for (traffic, congestion) in (0..).zip(run.controllers) {
            let listener = socket::listener(host, traffic, congestion).map_err(|error| match error {
                Errno::NOENT => AgentError::NoController { name: congestion.clone() },
                error => AgentError::Kernel(error),
            })?;
            epoll::add(&epoll, &listener, EventData::new_u64(LISTENER | u64::from(traffic)), EventFlags::IN)?;
            listeners.push(listener);
        }
        let flows = Flows::draw(run.plan, run.seed, host);
        let mut starts = vec![Vec::new(); run.plan.traffic.len()];
        for (name, flow) in flows.opened() {
            starts[name.traffic as usize].push((flow.at + run.plan_begins, name.sequence));
        }
        starts.iter_mut().for_each(|starts| starts.reverse());
        let mut agent = Agent {
            run,
            host,
            shared,
            epoll,
            listeners,
            connections: BTreeMap::new(),
            next_connection: 0,
            opened: 0,
            due: BinaryHeap::new(),
            flows,
            starts,
            clients: BTreeMap::new(),
            persistent: BTreeMap::new(),
            draining: Vec::new(),
            ahead: BTreeMap::new(),
            endless: BTreeMap::new(),
            reported: BTreeMap::new(),
            asks_for_ecn: false,
            notes: Notes::default(),
            piece: vec![0; PIECE],
        };
        agent.ask_for_ecn(false)?;
        agent.arm_first();
        shared.listening.fetch_add(1, Ordering::Relaxed);
        Ok(agent)
    }

    fn on_clock(&self, plan_time: Time) -> Time {
        plan_time + self.run.plan_begins
    }

    fn plan_time(&self, at: Time) -> Time {
        Time::ZERO + at.since(Time::ZERO + self.run.plan_begins)
    }

    fn arm(&mut self, at: Time, due: Due) {
        self.due.push(Reverse((at, due)));
    }

    fn arm_first(&mut self) {
        let plan = self.run.plan;
        for (traffic, entry) in (0..).zip(&plan.traffic) {
            let first = match &entry.pattern {
                Pattern::Incast(incast) if incast.client != self.host => None,
                Pattern::Incast(incast) => self.add_client(traffic, &entry.name, incast),
                _ => self.starts[traffic as usize].last().map(|(at, _)| *at),
            };
            if let Some(at) = first {
                self.arm(at, Due::Start(traffic));
            }
        }
        let ahead: Vec<(Time, Name)> = self
            .flows
            .opened()
            .filter(|(name, _)| plan.traffic[name.traffic as usize].connections == Mode::FreshEstablished)
            .map(|(name, flow)| (flow.at, name))
            .collect();
        for (at, name) in ahead {
            // As long before as the plan's beginning is away, so that all of them are ready alike.
            self.arm(at, Due::Open(name));
        }
        let (schedule, sampling) = (&plan.schedule, &plan.sampling);
        self.arm(self.on_clock(Time::ZERO + schedule.warmup), Due::Warmup);
        self.arm(self.on_clock(schedule.end), Due::End);
        for (due, every) in
            [(Due::Windows, sampling.windows), (Due::Goodput, sampling.goodput), (Due::RoundTrips, ROUND_TRIPS)]
        {
            if every > Span::ZERO {
                self.arm(self.on_clock(Time::ZERO + every), due);
            }
        }
    }

    /// A client of this host, and when it asks first.
    fn add_client(&mut self, traffic: u32, name: &str, incast: &'a Incast) -> Option<Time> {
        let schedule = &self.run.plan.schedule;
        let (asks, first) = if incast.mean_interarrival.is_none() {
            let servers = u32::try_from(incast.servers.len()).expect("a plan has fewer than 2³² nodes");
            (Asks::InTurn(ScatterGather::new(servers, incast.repeats)), Some(incast.start))
        } else {
            let times: Box<dyn Iterator<Item = Time>> = Box::new(incast.times(self.run.seed, name, schedule));
            let mut times = times.peekable();
            let first = times.peek().copied();
            (Asks::AtRandom(times), first)
        };
        self.clients.insert(traffic, Client { incast, asks, begun: 0 });
        first.filter(|&at| at < schedule.end).map(|at| self.on_clock(at))
    }

    /// Does what the plan says until `stop` is set; what was seen.
    ///
    /// # Errors
    /// If the kernel refuses what it must not refuse.
    pub fn run(mut self) -> Result<Notes, AgentError> {
        priority::ask(self.run.real_time);
        let hosts = self.run.plan.network.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
        while (self.shared.listening.load(Ordering::Relaxed) as usize) < hosts {
            if self.shared.stop.load(Ordering::Relaxed) {
                return Ok(self.finish());
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.open_pools()?;
        let mut ready = [MaybeUninit::uninit(); 256];
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.handle_due()?;
            let next = self.due.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
            let sleep = self.run.clock.until(next).min(LONGEST_SLEEP);
            let (ready, _) = match epoll::wait(&self.epoll, &mut ready, Some(&timespec(sleep))) {
                Err(Errno::INTR) => continue,
                ready => ready?,
            };
            for event in ready {
                let (data, flags) = (event.data.u64(), event.flags);
                if data & LISTENER != 0 {
                    self.accept(u32::try_from(data ^ LISTENER).expect("an entry"))?;
                } else {
                    self.serve(u32::try_from(data).expect("a connection"), flags);
                }
            }
        }
        Ok(self.finish())
    }

    fn handle_due(&mut self) -> io::Result<()> {
        loop {
            let now = self.run.clock.now();
            let Some(&Reverse((at, due))) = self.due.peek().filter(|Reverse((at, _))| *at <= now) else {
                return Ok(());
            };
            self.due.pop();
            if matches!(due, Due::Start(_) | Due::Answer(..)) {
                self.notes.lateness.record(now.since(at));
            }
            match due {
                Due::Open(name) => self.open_ahead(name)?,
                Due::Start(traffic) => self.start(now, traffic)?,
                Due::Answer(connection, name) => self.answer(connection, name),
                Due::Stop(name) => self.stop(name),
                Due::Warmup => {
                    let received = self.notes.flows.values_mut().filter_map(|flow| flow.received.as_mut());
                    received.for_each(|received| received.delivered_at_warmup = received.delivered);
                }
                Due::End => self.end(),
                Due::Windows => {
                    self.sample_windows(at);
                    self.again(at, due, self.run.plan.sampling.windows);
                }
                Due::Goodput => {
                    self.sample_goodput(at);
                    self.again(at, due, self.run.plan.sampling.goodput);
                }
                Due::RoundTrips => {
                    let senders = self.connections.iter().filter(|(_, connection)| connection.sending.is_some());
                    for id in senders.map(|(id, _)| *id).collect::<Vec<_>>() {
                        self.note_round_trip(id, false);
                    }
                    self.arm(at + ROUND_TRIPS, due);
                }
            }
        }
    }

    fn again(&mut self, at: Time, due: Due, every: Span) {
        if at + every <= self.on_clock(self.run.plan.schedule.end) {
            self.arm(at + every, due);
        }
    }

    /// The flows of an entry, or the queries of its client, that are to begin by now.
    fn start(&mut self, now: Time, traffic: u32) -> io::Result<()> {
        if self.clients.contains_key(&traffic) {
            return self.ask(now, traffic);
        }
        while let Some((at, sequence)) = self.starts[traffic as usize].pop_if(|(at, _)| *at <= now) {
            let name = Name { traffic, sequence };
            let flow = self.flows.get(name).expect("drawn for this host");
            self.begin(name, &flow, at, None)?;
        }
        if let Some(&(at, _)) = self.starts[traffic as usize].last() {
            self.arm(at, Due::Start(traffic));
        }
        Ok(())
    }

    fn ask(&mut self, now: Time, traffic: u32) -> io::Result<()> {
        let plan_now = self.plan_time(now);
        if plan_now >= self.run.plan.schedule.end {
            return Ok(());
        }
        let client = self.clients.get_mut(&traffic).expect("the caller has seen it");
        let mut queries = 0;
        let mut next = None;
        match &mut client.asks {
            Asks::InTurn(machine) => queries += u32::from(machine.poll_query(plan_now).is_some()),
            Asks::AtRandom(times) => {
                while times.next_if(|at| *at <= plan_now).is_some() {
                    queries += 1;
                }
                next = times.peek().copied();
            }
        }
        if let Some(next) = next {
            self.arm(self.on_clock(next), Due::Start(traffic));
        }
        for _ in 0..queries {
            let client = self.clients.get_mut(&traffic).expect("the caller has seen it");
            let (incast, first) = (client.incast, client.begun);
            let servers = u32::try_from(incast.servers.len()).expect("a plan has fewer than 2³² nodes");
            client.begun += servers;
            let query = u32::try_from(self.notes.queries.len()).expect("fewer than 2³² queries");
            self.notes.queries.push(Query { traffic, start: plan_now, completion: None, responses: 0 });
            for sequence in first..first + servers {
                let flow = asked(incast, sequence, plan_now);
                self.begin(Name { traffic, sequence }, &flow, now, Some(query))?;
            }
        }
        Ok(())
    }

    /// A flow begins: this host opens its connection.
    fn begin(&mut self, name: Name, flow: &FlowStart, planned: Time, query: Option<u32>) -> io::Result<()> {
        if flow.size.is_some() {
            self.shared.unfinished.fetch_add(1, Ordering::Relaxed);
        }
        let start = self.plan_time(self.run.clock.now());
        let (_, peer) = ends(flow);
        let id = self.connection_for(name, peer)?;
        let connection = &self.connections[&id];
        let number = connection.number.expect("this host has opened it");
        let port = socket::own_port(&connection.socket);
        let opened = Opened { planned: self.plan_time(planned), start, connection: number, query, port };
        self.notes.flows.entry(name).or_default().opened = Some(opened);
        let connection = self.connections.get_mut(&id).expect("it is there");
        connection.queued = Some(name);
        if connection.connected {
            self.send_first(id);
        }
        Ok(())
    }

    /// A connection that may carry a new flow.
    fn connection_for(&mut self, name: Name, peer: u32) -> io::Result<u32> {
        match self.run.plan.traffic[name.traffic as usize].connections {
            Mode::Fresh => self.open(name.traffic, peer),
            Mode::FreshEstablished => match self.ahead.remove(&name).filter(|id| self.connections.contains_key(id)) {
                Some(id) => Ok(id),
                None => self.open(name.traffic, peer),
            },
            Mode::Persistent { .. } => {
                self.release_drained();
                let key = (name.traffic, peer);
                while let Some(id) = self.persistent.entry(key).or_default().take() {
                    // One that failed stays in use for ever.
                    if self.connections.contains_key(&id) {
                        return Ok(id);
                    }
                }
                let id = self.open(name.traffic, peer)?;
                self.persistent.entry(key).or_default().add(id);
                Ok(id)
            }
        }
    }

    /// Opens the connections that the plan has open at its start.
    fn open_pools(&mut self) -> io::Result<()> {
        let mut pairs = std::collections::BTreeSet::new();
        for (name, flow) in self.flows.opened() {
            pairs.insert((name.traffic, ends(flow).1));
        }
        for (&traffic, client) in &self.clients {
            pairs.extend(client.incast.servers.iter().map(|&server| (traffic, server)));
        }
        for (traffic, peer) in pairs {
            if let Mode::Persistent { pool } = self.run.plan.traffic[traffic as usize].connections {
                let mut connections = Vec::new();
                for _ in 0..pool {
                    connections.push(self.open(traffic, peer)?);
                }
                self.persistent.insert((traffic, peer), ConnectionPool::of_idle(connections));
            }
        }
        Ok(())
    }

    fn open_ahead(&mut self, name: Name) -> io::Result<()> {
        let flow = self.flows.get(name).expect("drawn for this host");
        let id = self.open(name.traffic, ends(&flow).1)?;
        self.ahead.insert(name, id);
        Ok(())
    }

    fn open(&mut self, traffic: u32, peer: u32) -> io::Result<u32> {
        let choice = &self.run.plan.traffic[traffic as usize].controller;
        // A controller that needs ECN asks for it by itself, in its own way.
        let classic = choice.ecn && spec(&choice.name).is_none_or(|spec| spec.ecn == EcnUse::Optional);
        self.ask_for_ecn(classic)?;
        let socket = socket::connection(peer, traffic, &self.run.controllers[traffic as usize])?;
        if self.opened == MOST_PER_HOST {
            return Err(Errno::MFILE);
        }
        let number = self.host * MOST_PER_HOST + self.opened;
        self.opened += 1;
        let id = self.insert(socket, traffic, peer, Some(number))?;
        // Its room says that it is connected.
        self.watch_room(id, true);
        Ok(id)
    }

    /// Whether connections that are opened from now on ask for classic ECN. The kernel reads it when the first packet is made,
    /// and this thread is the only one in the namespace that opens any.
    fn ask_for_ecn(&mut self, ask: bool) -> io::Result<()> {
        if ask != self.asks_for_ecn {
            self.asks_for_ecn = ask;
            let value = if ask { "1" } else { "2" };
            set_parameter("net/ipv4/tcp_ecn", value)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        }
        Ok(())
    }

    fn accept(&mut self, traffic: u32) -> io::Result<()> {
        while let Some(socket) = socket::accepted(&self.listeners[traffic as usize])? {
            let id = self.insert(socket, traffic, u32::MAX, None)?;
            let connection = self.connections.get_mut(&id).expect("it is there");
            connection.connected = true;
            connection.reading = Reading::Name([0; NAME_BYTES], 0);
        }
        Ok(())
    }

    fn insert(&mut self, socket: OwnedFd, traffic: u32, peer: u32, number: Option<u32>) -> io::Result<u32> {
        let id = self.next_connection;
        self.next_connection += 1;
        epoll::add(&self.epoll, &socket, EventData::new_u64(u64::from(id)), EventFlags::IN)?;
        let connection = Connection {
            socket,
            traffic,
            peer,
            number,
            connected: false,
            queued: None,
            reading: Reading::Nothing,
            writing: None,
            sending: None,
            watches_room: false,
        };
        self.connections.insert(id, connection);
        Ok(id)
    }

    fn watch_room(&mut self, id: u32, watch: bool) {
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.watches_room != watch)
        else {
            return;
        };
        connection.watches_room = watch;
        let flags = if watch { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        let modified = epoll::modify(&self.epoll, &connection.socket, EventData::new_u64(u64::from(id)), flags);
        modified.expect("an open socket of this epoll");
    }

    /// Something happened to a connection.
    fn serve(&mut self, id: u32, flags: EventFlags) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !connection.connected && flags.intersects(EventFlags::OUT | EventFlags::ERR | EventFlags::HUP) {
            if !matches!(sockopt::socket_error(&connection.socket), Ok(Ok(()))) {
                self.fail(id);
                return;
            }
            connection.connected = true;
            if connection.queued.is_some() {
                self.send_first(id);
            } else {
                self.watch_room(id, false);
            }
        }
        if flags.contains(EventFlags::OUT) {
            self.write_on(id);
        }
        if flags.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP) {
            self.read(id);
        }
    }

    /// The opener's message of the flow that waits for this connection.
    fn send_first(&mut self, id: u32) {
        let connection = self.connections.get_mut(&id).expect("the caller has seen it");
        let Some(name) = connection.queued.take() else { return };
        let flow = self.flows.get(name).expect("a flow of this host");
        if let Some(request) = flow.request {
            connection.reading = Reading::Flow(name, flow.size.unwrap_or(ENDLESS).get());
            connection.writing = Some(Writing { named: 0, name, left: with_name(request) });
            self.notes.flows.entry(name).or_default().received = Some(Received::default());
            if flow.size.is_none() {
                self.endless.insert(name, id);
            }
            self.write(id);
        } else {
            self.send_flow(id, name, &flow, 0);
        }
    }

    /// The flow's own bytes, from this end.
    fn send_flow(&mut self, id: u32, name: Name, flow: &FlowStart, named: usize) {
        self.note_sent(id);
        let connection = self.connections.get_mut(&id).expect("the caller has seen it");
        let before = Info::of(&connection.socket).unwrap_or(Info::NONE);
        connection.sending = Some(Sending { name, before });
        let size = flow.size.unwrap_or(ENDLESS);
        let left = if named == 0 { with_name(size) } else { size.get() };
        connection.writing = Some(Writing { named, name, left });
        if flow.size.is_none() {
            let _ = socket::keep_unsent_low(&connection.socket);
            self.endless.insert(name, id);
            if let Some(stop) = flow.stop {
                self.arm(self.on_clock(stop), Due::Stop(name));
            }
        }
        self.notes.flows.entry(name).or_default().sent = Some(Sent { ecn: before.has_ecn(), ..Sent::default() });
        self.write(id);
    }

    fn answer(&mut self, id: u32, name: Name) {
        let flow = self.flows.get(name).expect("a request was understood");
        if self.connections.contains_key(&id) {
            self.send_flow(id, name, &flow, NAME_BYTES);
        }
    }

    /// There is room to write on, at last.
    fn write_on(&mut self, id: u32) {
        let Some(connection) = self.connections.get(&id) else { return };
        if connection.writing.is_some_and(|writing| writing.named > 0) {
            let dry = Info::of(&connection.socket).is_ok_and(|info| info.unsent() == 0);
            self.notes.ran_dry += u64::from(dry);
        }
        self.write(id);
    }

    /// Writes what there is room for.
    fn write(&mut self, id: u32) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        while let Some(writing) = &mut connection.writing {
            let length = usize::try_from(writing.left).unwrap_or(PIECE).min(PIECE);
            let name = writing.name.to_bytes();
            let rest = &name[writing.named.min(NAME_BYTES)..];
            self.piece[..rest.len()].copy_from_slice(rest);
            let sent = send(&connection.socket, &self.piece[..length], SendFlags::NOSIGNAL);
            self.piece[..NAME_BYTES].fill(0);
            match sent {
                Ok(bytes) => {
                    writing.named = (writing.named + bytes).min(NAME_BYTES);
                    writing.left -= bytes as u64;
                    if writing.left == 0 {
                        connection.writing = None;
                    }
                }
                Err(Errno::AGAIN) => {
                    self.watch_room(id, true);
                    return;
                }
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.fail(id);
                    return;
                }
            }
        }
        self.watch_room(id, false);
        self.written(id);
    }

    /// A message has been handed over whole.
    fn written(&mut self, id: u32) {
        let connection = &self.connections[&id];
        // The opener of a flow that it sends itself is done with the connection.
        if connection.number.is_some() && connection.sending.is_some() {
            if self.one_flow_only(connection.traffic) {
                let _ = shutdown(&connection.socket, Shutdown::Write);
            } else if !self.draining.contains(&id) {
                self.draining.push(id);
            }
        }
    }

    fn one_flow_only(&self, traffic: u32) -> bool {
        !matches!(self.run.plan.traffic[traffic as usize].connections, Mode::Persistent { .. })
    }

    /// Persistent connections whose last message is acknowledged may be used again.
    fn release_drained(&mut self) {
        for id in std::mem::take(&mut self.draining) {
            let Some(connection) = self.connections.get(&id) else { continue };
            if Info::of(&connection.socket).is_ok_and(|info| info.is_idle()) {
                let key = (connection.traffic, connection.peer);
                self.note_sent(id);
                self.persistent.get_mut(&key).expect("it was taken from there").release(id);
            } else {
                self.draining.push(id);
            }
        }
    }

    /// Reads what is there.
    fn read(&mut self, id: u32) {
        loop {
            let Some(connection) = self.connections.get_mut(&id) else { return };
            let (buffer, flags) = match connection.reading {
                Reading::Name(_, got) => (&mut self.piece[..NAME_BYTES - got], RecvFlags::empty()),
                Reading::Request(_, left) | Reading::Flow(_, left) => {
                    let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
                    // The bytes mean nothing: the kernel need not copy them.
                    (&mut self.piece[..length], RecvFlags::TRUNC)
                }
                Reading::Nothing => (&mut self.piece[..1], RecvFlags::empty()),
            };
            let received = recv(&connection.socket, buffer, flags).map(|(_, bytes)| bytes);
            match received {
                Ok(0) => {
                    self.ended(id);
                    return;
                }
                Ok(bytes) => {
                    let start: [u8; NAME_BYTES] = std::array::from_fn(|i| self.piece[i]);
                    self.piece[..NAME_BYTES].fill(0);
                    self.take(id, bytes, start);
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.fail(id);
                    return;
                }
            }
        }
    }

    /// So many bytes have come; the first of them.
    fn take(&mut self, id: u32, bytes: usize, start: [u8; NAME_BYTES]) {
        let connection = self.connections.get_mut(&id).expect("it was read from");
        match &mut connection.reading {
            Reading::Name(name, got) => {
                name[*got..*got + bytes].copy_from_slice(&start[..bytes]);
                *got += bytes;
                if *got == NAME_BYTES {
                    let name = Name::from_bytes(*name);
                    self.meet(id, name);
                }
            }
            Reading::Request(name, left) => {
                *left -= bytes as u64;
                if *left == 0 {
                    let name = *name;
                    self.requested(id, name);
                }
            }
            Reading::Flow(name, left) => {
                *left -= bytes as u64;
                let (name, whole) = (*name, *left == 0);
                self.received(id, name, bytes as u64, whole);
            }
            Reading::Nothing => self.fail(id),
        }
    }

    /// This end hears of a flow for the first time.
    fn meet(&mut self, id: u32, name: Name) {
        let traffic = self.connections[&id].traffic;
        let Some(flow) = self.flows.get(name).filter(|flow| name.traffic == traffic && ends(flow).1 == self.host)
        else {
            self.fail(id);
            return;
        };
        // An earlier answer on this connection is acknowledged by now.
        self.note_sent(id);
        let connection = self.connections.get_mut(&id).expect("it was read from");
        connection.sending = None;
        if let Some(request) = flow.request {
            connection.reading = Reading::Request(name, with_name(request) - NAME_BYTES as u64);
            if with_name(request) == NAME_BYTES as u64 {
                self.requested(id, name);
            }
        } else {
            let size = with_name(flow.size.unwrap_or(ENDLESS));
            connection.reading = Reading::Flow(name, size - NAME_BYTES as u64);
            self.notes.flows.entry(name).or_default().received = Some(Received::default());
            if flow.size.is_none() {
                self.endless.insert(name, id);
            }
            self.received(id, name, NAME_BYTES as u64, size == NAME_BYTES as u64);
        }
    }

    /// A request is whole: it is answered, perhaps after a wait.
    fn requested(&mut self, id: u32, name: Name) {
        let connection = self.connections.get_mut(&id).expect("it was read from");
        connection.reading = Reading::Name([0; NAME_BYTES], 0);
        match self.flows.wait(name) {
            Span::ZERO => self.answer(id, name),
            wait => self.arm(self.run.clock.now() + wait, Due::Answer(id, name)),
        }
    }

    /// Bytes of a flow have come, perhaps its last.
    fn received(&mut self, id: u32, name: Name, bytes: u64, whole: bool) {
        let now = self.plan_time(self.run.clock.now());
        let flow = self.notes.flows.entry(name).or_default();
        let received = flow.received.get_or_insert_default();
        received.delivered += bytes;
        if !whole {
            return;
        }
        received.done = Some(now);
        // A message shorter than its name was lengthened to it.
        if let Some(size) = self.flows.get(name).and_then(|flow| flow.size) {
            received.delivered = received.delivered.min(size.get());
        }
        let query = flow.opened.and_then(|opened| opened.query);
        self.shared.unfinished.fetch_sub(1, Ordering::Relaxed);
        let connection = self.connections.get_mut(&id).expect("it was read from");
        if connection.number.is_none() {
            connection.reading = Reading::Name([0; NAME_BYTES], 0);
        } else {
            connection.reading = Reading::Nothing;
            let key = (connection.traffic, connection.peer);
            if self.one_flow_only(key.0) {
                self.close(id);
            } else {
                self.persistent.get_mut(&key).expect("it was taken from there").release(id);
            }
        }
        if let Some(query) = query {
            self.answered(now, query);
        }
    }

    fn answered(&mut self, now: Time, query: u32) {
        let Query { traffic, start, completion, responses } = &mut self.notes.queries[query as usize];
        let traffic = *traffic;
        let client = self.clients.get_mut(&traffic).expect("queries belong to clients");
        *responses += 1;
        if *responses as usize == client.incast.servers.len() {
            *completion = Some(now.since(*start));
        }
        if let Asks::InTurn(machine) = &mut client.asks
            && machine.handle_answer(now).is_some()
        {
            self.arm(self.on_clock(now), Due::Start(traffic));
        }
    }

    /// The other end sends no more.
    fn ended(&mut self, id: u32) {
        let connection = &self.connections[&id];
        let orderly = match connection.reading {
            Reading::Name(_, got) => got == 0 && connection.writing.is_none(),
            Reading::Flow(name, _) => self.flows.get(name).is_some_and(|flow| flow.size.is_none()),
            Reading::Nothing => true,
            Reading::Request(..) => false,
        };
        self.note_failure(!orderly);
        self.close(id);
    }

    fn fail(&mut self, id: u32) {
        self.note_failure(true);
        if let Some(connection) = self.connections.get(&id) {
            socket::abort(&connection.socket);
        }
        self.close(id);
    }

    /// When a run is over, agents drop what goes on, one sooner than another.
    fn note_failure(&mut self, failed: bool) {
        self.notes.failures += u64::from(failed && !self.shared.stop.load(Ordering::Relaxed));
    }

    fn close(&mut self, id: u32) {
        self.note_sent(id);
        self.connections.remove(&id);
    }

    /// Takes the connection's counts into the flow that it sends.
    fn note_sent(&mut self, id: u32) {
        self.note_round_trip(id, true);
        let Some(connection) = self.connections.get(&id) else { return };
        let Some(Sending { name, before }) = connection.sending else { return };
        let Ok(info) = Info::of(&connection.socket) else { return };
        let sent = self.notes.flows.entry(name).or_default().sent.get_or_insert_default();
        sent.retransmitted_bytes = info.retransmitted().saturating_sub(before.retransmitted());
        sent.timeouts = info.timeouts().saturating_sub(before.timeouts());
    }

    /// Takes the connection's round trip into the flow that it sends, while it does; at the flow's end, if it has none.
    fn note_round_trip(&mut self, id: u32, at_end: bool) {
        let Some(connection) = self.connections.get(&id) else { return };
        let Some(Sending { name, .. }) = connection.sending else { return };
        let Ok(info) = Info::of(&connection.socket) else { return };
        let sent = self.notes.flows.entry(name).or_default().sent.get_or_insert_default();
        let counts = if at_end { sent.rtt_count == 0 } else { !info.is_idle() };
        if let Some(trip) = info.round_trip().filter(|_| counts) {
            sent.rtt_sum += trip;
            sent.rtt_count += 1;
        }
    }

    /// A flow without a size offers no more.
    fn stop(&mut self, name: Name) {
        let Some(connection) = self.endless.get(&name).and_then(|id| self.connections.get_mut(id)) else { return };
        if connection.writing.is_some_and(|writing| writing.name == name) && connection.sending.is_some() {
            connection.writing = None;
            let _ = shutdown(&connection.socket, Shutdown::Write);
            let id = self.endless[&name];
            self.watch_room(id, false);
        }
    }

    /// Nothing begins any more and nothing more is measured.
    fn end(&mut self) {
        let received = self.notes.flows.values_mut().filter_map(|flow| flow.received.as_mut());
        received.for_each(|received| received.delivered_at_end = Some(received.delivered));
        let endless: Vec<Name> = self.endless.keys().copied().collect();
        endless.into_iter().for_each(|name| self.stop(name));
    }

    fn sample_windows(&mut self, at: Time) {
        let at = self.plan_time(at);
        for (&name, id) in &self.endless {
            let Some(connection) = self.connections.get(id).filter(|connection| connection.writing.is_some()) else {
                continue;
            };
            if connection.sending.is_none() {
                continue;
            }
            let Ok(info) = Info::of(&connection.socket) else { continue };
            let mut sample = |quantity, value| self.notes.samples.push(Sample { at, flow: name, quantity, value });
            sample(Quantity::Window, u64::from(info.window()));
            // Every sender has a rate; these controllers pace by it.
            let paces = spec(&self.run.plan.traffic[name.traffic as usize].controller.name)
                .is_some_and(|spec| spec.needs_delivery_rate);
            if paces {
                sample(Quantity::Pacing, info.pacing().as_bps());
            }
        }
    }

    fn sample_goodput(&mut self, at: Time) {
        let (at, width) = (self.plan_time(at), self.run.plan.sampling.goodput);
        for &name in self.endless.keys() {
            let Some(received) = self.notes.flows.get(&name).and_then(|flow| flow.received) else { continue };
            let before = self.reported.insert(name, received.delivered).unwrap_or(0);
            let value = Rate::of(Bytes::new(received.delivered - before), width).as_bps();
            self.notes.samples.push(Sample { at, flow: name, quantity: Quantity::Goodput, value });
        }
    }

    fn finish(mut self) -> Notes {
        for id in self.connections.keys().copied().collect::<Vec<_>>() {
            self.note_sent(id);
            socket::abort(&self.connections[&id].socket);
        }
        self.notes.dropped_by_device = dropped_by_device();
        self.notes
    }
}

/// Packets that the device of this namespace did not take from its host.
fn dropped_by_device() -> u64 {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(tun::NAME)?.strip_prefix(':'));
    // Eight columns of what was received; of what was sent bytes, packets, errors, drops.
    line.and_then(|line| line.split_whitespace().nth(8 + 3)?.parse().ok()).unwrap_or(0)
}
