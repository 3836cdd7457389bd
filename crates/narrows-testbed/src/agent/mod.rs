//! The applications of one host, with real sockets: one thread in the host's namespace, which knows the plan, its own host, and
//! what messages tell it.
//!
//! A flow begins with its opener's message, which carries its name: the flow's own bytes, or a request for them. Connections
//! are used as the plan says: one for each flow, opened for it or before; or persistent ones, the first idle one first. One
//! connection carries one flow at a time.
//!
//! Times inside are on the network's clock, which begins before the plan's: connections that the plan has open at its start are
//! opened in between.

mod begin;
mod connections;
mod flows;
mod message;
mod notes;
mod sampling;
mod socket;
mod transfer;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use narrows_core::app::Application;
use narrows_core::app::connection_pool::ConnectionPool;
use narrows_core::units::{Bytes, Span, Time};
use narrows_plan::flows::Name;
use narrows_plan::{Connections as Mode, NodeKind, Plan};
use narrows_results::RankRow;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::{self, Errno};

pub use flows::Drawn;
pub use notes::{Flow, Notes, Opened, Query, Received, Sample, Sent};
pub(crate) use socket::port;
pub use socket::{Info, most_rate, set_most_rate, unacknowledged};

use crate::clock::{Clock, timespec};
use crate::priority::{self, RealTime};
use crate::tun;
use flows::Flows;
use message::NAME_BYTES;

/// Connections that one host may open: numbers have 20 bits for them.
const MAX_PER_HOST: u32 = 1 << 20;
/// Longest sleep: a stop is noticed after this at the latest.
const MAX_SLEEP: Span = Span::from_ms(10);
/// How often senders are asked for their RTT.
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
    /// Flows that follow the one at hand.
    behind: VecDeque<Name>,
    reading: Reading,
    writing: Option<Writing>,
    sending: Option<Sending>,
    /// Of a flow without a size: how many bytes may wait unsent, as the kernel was told.
    unsent_limit: Option<u32>,
    /// It is stopped before the run ends.
    stops: bool,
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
    /// A set, as an application may be asked for more than once at a time and is polled once.
    due: BTreeSet<(Time, Due)>,
    flows: Flows<'a>,
    /// Persistent connections by (traffic, peer).
    persistent: BTreeMap<(u32, u32), ConnectionPool>,
    /// Persistent connections whose last message may not be acknowledged yet.
    draining: Vec<u32>,
    /// Connections that were opened ahead, by their flow.
    ahead: BTreeMap<Name, u32>,
    /// Flows of which this end has heard; each is heard of once.
    met: BTreeSet<Name>,
    /// Connections on which an answer is owed until the application says that it goes, by their flow.
    owed: BTreeMap<Name, u32>,
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
        let mut agent = Agent {
            run,
            host,
            shared,
            epoll,
            listeners,
            connections: BTreeMap::new(),
            next_connection: 0,
            opened: 0,
            due: BTreeSet::new(),
            flows,
            persistent: BTreeMap::new(),
            draining: Vec::new(),
            ahead: BTreeMap::new(),
            met: BTreeSet::new(),
            owed: BTreeMap::new(),
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
        self.due.insert((at, due));
    }

    fn arm_first(&mut self) {
        let plan = self.run.plan;
        for traffic in (0..).take(self.flows.apps.len()) {
            self.arm_application(traffic);
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

    fn arm_application(&mut self, traffic: u32) {
        if let Some(at) = self.flows.apps[traffic as usize].next_at() {
            self.arm(self.on_clock(at), Due::Start(traffic));
        }
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
            let next = self.due.first().map_or(Time::NEVER, |(at, _)| *at);
            let sleep = self.run.clock.until(next).min(MAX_SLEEP);
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
            let Some(&(at, due)) = self.due.first().filter(|(at, _)| *at <= now) else {
                return Ok(());
            };
            self.due.pop_first();
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

    fn finish(mut self) -> Notes {
        for id in self.connections.keys().copied().collect::<Vec<_>>() {
            self.note_sent(id);
            socket::abort(&self.connections[&id].socket);
        }
        self.notes.dropped_by_device = dropped_by_device();
        self.notes.ranks = RankRow::of_programs(&self.flows.apps, self.run.plan.schedule.end);
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
