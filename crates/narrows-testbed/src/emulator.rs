//! The network between the hosts: one thread that reads what hosts send, computes what becomes of it, and delivers it when
//! the real clock has come to that time.
//!
//! 1. Everything that is due by now is handled: deliveries, samples, the ends of warm-up and measurement, in the order of
//!    their virtual times.
//! 2. The thread sleeps until the next of them is due or a host has sent something.
//! 3. A packet that was read is offered to its host's port at the time at which it was in hand, after everything that is due
//!    before; and so on.
//!
//! A packet read late is a packet sent late: ports see arrivals in the order of virtual time, always. A delivery that is late
//! is delivered late and noted; nothing else changes.
//!
//! Switches with congestion points send packets of their own, notifications.
//!
//! Invariant: packets read and notifications sent = delivered + dropped by the network + refused before it + refused by the
//! hosts + inside.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use narrows_core::packet::Ecn;
use narrows_core::queue::Feedback;
use narrows_core::units::{Span, Time};
use narrows_network::{Event, GraphError, Network, Offered};
use narrows_plan::{Change, Graph, NodeKind, Sampling, Schedule};
use narrows_wire::Key;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::{self, Errno};

use crate::address;
use crate::clock::{Clock, timespec};
use crate::lateness::Histogram;
use crate::packet::{Header, Packet, Pool, take_hops};
use crate::priority::{self, RealTime};
use crate::samples::Samples;
use crate::switches::Switches;
use crate::tun::Tun;

/// Most packets that are read from one host before others are looked at again.
const BATCH: usize = 32;
/// Longest sleep: a stop is noticed after this at the latest.
const MAX_SLEEP: Span = Span::from_ms(10);
/// Most packets inside the network, and so the memory that a run can take: 400 MB of full packets.
const MAX_INSIDE: u32 = 1 << 18;

/// Why there is no emulator.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The plan's network is none.
    #[error("the network of the plan is not usable: {0}")]
    Network(#[from] GraphError),
    /// A call to the kernel failed.
    #[error("the emulator cannot go on: {0}")]
    Kernel(#[from] Errno),
}

/// What became of packets. All since the emulator began, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Read from hosts.
    pub read: u64,
    /// Notifications that switches sent.
    pub notifications: u64,
    /// Handed to hosts.
    pub delivered: u64,
    /// Dropped by the plan's ports and wires.
    pub dropped: u64,
    /// Marked by the plan's ports, of those delivered.
    pub marked: u64,
    /// For an address that no host has, multicast mostly, or one that is further away than the packet's hop limit lets it go.
    pub unroutable: u64,
    /// Not whole IP packets.
    pub malformed: u64,
    /// Refused because too many were inside already. They are lost outside the plan's network.
    pub crowded_out: u64,
    /// Not taken by the host's kernel. They are lost outside the plan's network.
    pub refused_by_host: u64,
    /// Still inside at the end.
    pub inside: u64,
}

impl Counts {
    /// Whether every packet is accounted for, once.
    pub const fn conserved(&self) -> bool {
        let refused = self.unroutable + self.malformed + self.crowded_out + self.refused_by_host;
        self.read + self.notifications == self.delivered + self.dropped + refused + self.inside
    }

    /// Packets that the plan's network did not lose and that nevertheless did not come through.
    pub const fn lost_outside(&self) -> u64 {
        self.crowded_out + self.refused_by_host
    }
}

/// Payload of a marked TCP packet that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marked {
    /// When, on the plan's clock.
    pub at: Time,
    /// The host that sent it.
    pub source: u32,
    /// The host that it reached.
    pub destination: u32,
    /// TCP ports: the sender's, the receiver's.
    pub ports: (u16, u16),
    /// Bytes.
    pub payload: u16,
}

/// How the emulator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The place in the real-time class that the thread asks for; `None` asks for none.
    pub real_time: Option<RealTime>,
}

impl Default for Options {
    /// A place before the agents.
    fn default() -> Options {
        Options { real_time: Some(RealTime(10)) }
    }
}

/// What an emulator at work and the one who waits for it share.
#[derive(Debug, Default)]
pub struct Control {
    /// Set when it shall end.
    pub stop: AtomicBool,
    /// Packets that ports have accepted so far.
    pub packet_hops: AtomicU64,
}

/// What the emulator leaves behind.
#[derive(Clone, Debug)]
pub struct Observed {
    /// What became of packets.
    pub counts: Counts,
    /// How late deliveries were.
    pub lateness: Histogram,
    /// How long the thread worked between two looks at the clock for what is due: what a packet may have waited to be read.
    pub turns: Histogram,
    /// Ports and samples.
    pub samples: Samples,
    /// Marked payload delivered, in the order of delivery.
    pub marked: Vec<Marked>,
    /// Packets that ports accepted.
    pub packet_hops: u64,
    /// Whether the thread ran in the real-time class.
    pub real_time: bool,
}

/// The plan's network without what models the hosts in it, their stacks' delays and jitter, queues and clocks: the hosts here
/// have their own.
pub(crate) fn wires(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    for link in &mut graph.links {
        // A plan may come from outside: its numbers need not agree.
        link.delay = link.delay.saturating_sub(link.stack);
        for event in &mut link.events {
            if let Change::Delay(delay) = &mut event.change {
                *delay = delay.saturating_sub(link.stack);
            }
        }
        (link.stack, link.jitter, link.clock_spread) = (Span::ZERO, Span::ZERO, 0);
        if link.role == narrows_plan::Role::Host {
            link.scheduler = None;
        }
    }
    graph
}

/// As on a clock on which the plan begins at `begins`: then, links change so much later.
fn on_clock(graph: &Graph, begins: Span) -> Graph {
    let mut graph = wires(graph);
    graph.links.iter_mut().flat_map(|link| &mut link.events).for_each(|event| event.at += begins);
    graph
}

/// See the [module](self).
#[derive(Debug)]
pub struct Emulator {
    /// The network's.
    clock: Clock,
    /// When on it the plan begins.
    plan_begins: Span,
    network: Network<Packet>,
    /// Its plan's.
    graph: Graph,
    switches: Switches,
    pool: Pool,
    /// By node; `None` for switches.
    tuns: Vec<Option<Tun>>,
    /// By sending and receiving node, how many switches lie between them; 0 where nobody has asked yet.
    between: Vec<u8>,
    counts: Counts,
    lateness: Histogram,
    turns: Histogram,
    samples: Samples,
    marked: Vec<Marked>,
    /// A buffer to read into.
    spare: Option<u32>,
    options: Options,
}

impl Emulator {
    /// An emulator of a plan's network between hosts' devices, one for each host, in the order of the plan's nodes. What models
    /// the stacks of hosts in it is left out. The plan begins when `clock` shows `plan_begins`: what hosts send before, to open connections, is carried as well. The switches' notifications
    /// are sealed with what each host's key is made of, `key`.
    ///
    /// # Errors
    /// If the graph is no network.
    ///
    /// # Panics
    /// If there is not one device for each host.
    pub fn new(
        graph: &Graph,
        seed: u64,
        devices: Vec<Tun>,
        (schedule, sampling): (&Schedule, &Sampling),
        (clock, plan_begins): (Clock, Span),
        options: Options,
        key: Key,
    ) -> Result<Emulator, GraphError> {
        let hosts = graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
        assert_eq!(devices.len(), hosts, "one device for each host");
        let mut devices = devices.into_iter();
        let mut device_of = |kind| if kind == NodeKind::Host { devices.next() } else { None };
        Ok(Emulator {
            clock,
            plan_begins,
            network: Network::new(&on_clock(graph, plan_begins), seed)?,
            graph: graph.clone(),
            switches: Switches::new(graph, key),
            pool: Pool::new(usize::from(graph.mtu.get()), MAX_INSIDE),
            tuns: graph.nodes.iter().map(|node| device_of(node.kind)).collect(),
            between: vec![0; graph.nodes.len() * graph.nodes.len()],
            counts: Counts::default(),
            lateness: Histogram::default(),
            turns: Histogram::default(),
            samples: Samples::new(graph, schedule, sampling, plan_begins),
            marked: Vec::new(),
            spare: None,
            options,
        })
    }

    /// Carries packets until the clock shows `until`, or it is told to stop, on the calling thread.
    ///
    /// # Errors
    /// If the kernel takes a device away, or cannot wait.
    ///
    /// # Panics
    /// If a packet was lost track of.
    pub fn run(mut self, until: Time, control: &Control) -> Result<Observed, EmulatorError> {
        let real_time = priority::ask(self.options.real_time);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (host, tun) in (0..).zip(&self.tuns) {
            if let Some(tun) = tun {
                epoll::add(&epoll, tun, EventData::new_u64(host), EventFlags::IN)?;
            }
        }
        let mut ready = [MaybeUninit::uninit(); 64];
        let mut began = self.clock.now();
        loop {
            let now = self.clock.now();
            self.advance(now.min(until));
            if now >= until || control.stop.load(Ordering::Relaxed) {
                break;
            }
            control.packet_hops.store(self.network.packet_hops(), Ordering::Relaxed);
            let next = [self.network.next_at(), self.samples.next_at()].into_iter().flatten().min().unwrap_or(until);
            let looked = self.clock.now();
            self.turns.record(looked.since(began));
            let sleep = self.clock.until(next.min(until)).min(MAX_SLEEP);
            let (ready, _) = match epoll::wait(&epoll, &mut ready, Some(&timespec(sleep))) {
                Err(Errno::INTR) => continue,
                ready => ready?,
            };
            began = self.clock.now();
            for event in ready {
                let host = u32::try_from(event.data.u64()).expect("a host's number");
                self.read(host, until)?;
            }
        }
        Ok(self.finish(until, real_time))
    }

    /// Reads what a host has sent, and offers it.
    fn read(&mut self, host: u32, until: Time) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(buffer) = self.spare.take().or_else(|| self.pool.take()) else {
                // Room for one is kept by what is inside leaving it.
                return self.throw_away(host);
            };
            let tun = self.tuns[host as usize].as_ref().expect("hosts have devices");
            let read = tun.read(self.pool.buffer(buffer));
            let length = match read {
                Ok(Some(length)) => length,
                Ok(None) => {
                    self.spare = Some(buffer);
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            // The host sent it before now: no packet is ever too fast.
            let now = self.clock.now().min(until);
            self.counts.read += 1;
            match self.identify(host, buffer, length) {
                Some(packet) => {
                    self.advance(now);
                    let port = self.network.host_link(host);
                    if let Offered::Dropped(_) = self.network.offer(now, port, packet) {
                        self.counts.dropped += 1;
                        self.pool.give_back(buffer);
                    }
                }
                None => self.spare = Some(buffer),
            }
        }
        Ok(())
    }

    /// Reads a packet for which there is no room.
    fn throw_away(&mut self, host: u32) -> io::Result<()> {
        let tun = self.tuns[host as usize].as_ref().expect("hosts have devices");
        if tun.read(&mut [0; 64])?.is_some() {
            self.counts.read += 1;
            self.counts.crowded_out += 1;
        }
        Ok(())
    }

    /// What the network must know of the packet that was read, which has the switches' hops taken off; `None` if it cannot
    /// carry it, which is counted.
    fn identify(&mut self, host: u32, buffer: u32, length: usize) -> Option<Packet> {
        let bytes = &mut self.pool.buffer(buffer)[..length];
        let Ok(header) = Header::parse(bytes) else {
            self.counts.malformed += 1;
            return None;
        };
        let destination = address::host(header.destination);
        let destination = destination.filter(|&host| self.tuns.get(host as usize).is_some_and(Option::is_some));
        let Some(destination) = destination else {
            self.counts.unroutable += 1;
            return None;
        };
        let flow_hash = header.flow_hash(bytes);
        let between = &mut self.between[host as usize * self.tuns.len() + destination as usize];
        if *between == 0 && host != destination {
            let links = self.network.path(host, destination, 0).len();
            *between = u8::try_from(links - 1).unwrap_or(u8::MAX);
        }
        if !take_hops(bytes, *between) {
            self.counts.unroutable += 1;
            return None;
        }
        let has_data = header.tcp_payload(bytes) != Some(0);
        Some(Packet { buffer, destination, flow_hash, ip_bytes: header.ip_bytes, ecn: header.ecn, has_data })
    }

    /// Does everything that is due up to and including `now`.
    fn advance(&mut self, now: Time) {
        while let Some(at) = self.samples.next_at().filter(|&at| at <= now) {
            self.deliver(at);
            self.samples.take(at, &mut self.network);
        }
        self.deliver(now);
    }

    fn deliver(&mut self, until: Time) {
        while let Some((at, event)) = self.network.next(until) {
            match event {
                Event::Arrival { host, packet } => self.hand_over(at, host, packet),
                Event::Dropped { packet } => {
                    self.counts.dropped += 1;
                    self.pool.give_back(packet.buffer);
                }
                Event::Sampled { link, feedback, packet } => self.tell(at, link, feedback, packet),
                Event::Due(_) => unreachable!("nothing is armed in the network"),
                Event::Entering { .. } | Event::Crossed { .. } | Event::Left { .. } | Event::Recalled { .. } => {
                    unreachable!("plans with bridges, and with ports that can be paused, are refused")
                }
            }
        }
    }

    /// A switch tells the sender of a packet about the queue that it came to.
    fn tell(&mut self, at: Time, link: u32, feedback: Feedback, packet: Packet) {
        let header = Header::parse(self.pool.bytes(&packet)).expect("it was parsed when it was read");
        let Some(sender) = address::host(header.source) else { return };
        let is_host = self.tuns.get(sender as usize).is_some_and(Option::is_some);
        if !is_host || !self.graph.is_told(sender, self.network.host_link(sender), link) {
            return;
        }
        // Where there is no room for a packet there is none for one about it.
        let Some(buffer) = self.pool.take() else { return };
        let [sampled, written] = self.pool.two([packet.buffer, buffer]);
        let Some(length) = self.switches.tell(&self.graph, link, feedback, sampled, written) else {
            self.pool.give_back(buffer);
            return;
        };
        let ip_bytes = u16::try_from(length).expect("a hundred bytes");
        let told = Packet { buffer, destination: sender, ip_bytes, ecn: Ecn::NotCapable, has_data: false, ..packet };
        self.counts.notifications += 1;
        self.network.notify(at, link, told);
    }

    fn hand_over(&mut self, at: Time, host: u32, packet: Packet) {
        self.lateness.record(self.clock.now().since(at));
        let was_marked = packet.ecn == Ecn::Marked;
        let bytes = self.pool.bytes(&packet);
        if was_marked {
            self.counts.marked += 1;
            if let Ok(header) = Header::parse(bytes)
                && let (Some(ports), Some(source)) = (header.ports(bytes), address::host(header.source))
                && let Some(payload) = header.tcp_payload(bytes).filter(|&payload| payload > 0)
            {
                let at = Time::ZERO + at.since(Time::ZERO + self.plan_begins);
                self.marked.push(Marked { at, source, destination: host, ports, payload });
            }
        }
        let tun = self.tuns[host as usize].as_ref().expect("hosts have devices");
        match tun.write(bytes) {
            Ok(()) => self.counts.delivered += 1,
            Err(_) => self.counts.refused_by_host += 1,
        }
        self.pool.give_back(packet.buffer);
    }

    fn finish(mut self, until: Time, real_time: bool) -> Observed {
        let now = self.clock.now().min(until);
        self.samples.finish(now, &mut self.network);
        if let Some(spare) = self.spare.take() {
            self.pool.give_back(spare);
        }
        // Each packet inside has a buffer, and nothing else has one now.
        self.counts.inside = self.pool.in_use() as u64;
        assert!(self.counts.conserved(), "the emulator lost track of a packet: {:?}", self.counts);
        Observed {
            counts: self.counts,
            lateness: self.lateness,
            turns: self.turns,
            samples: self.samples,
            marked: self.marked,
            packet_hops: self.network.packet_hops(),
            real_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use narrows_scenario::{Limits, Overrides, load_str};

    use super::*;

    #[test]
    fn the_hosts_modelled_stacks_are_not_emulated() {
        let text = |stack: &str| {
            format!(
                r#"
                [topology.star]
                fabric = {{ delay = "7us" }}
                host = {{ stack-delay = {{ {stack} }} }}
                [[traffic]]
                long = {{}}
                from = "h1"
                to = "h2"
                [[arm]]
                name = "cubic"
                cc = "cubic"
                [run]
                end = "1s"
                "#
            )
        };
        let graph = |stack: &str| {
            let experiment = load_str(&text(stack), &Overrides::default(), &Limits::default()).unwrap();
            experiment.plans[0].network.clone()
        };
        let modelled = graph(r#"tx = "45us", rx = "30us", jitter = "12us""#);
        assert_eq!(modelled.links[0].delay, Span::from_us(52));
        let none = graph(r#"tx = "0us", rx = "0us""#);
        assert_eq!((wires(&modelled), wires(&none)), (none.clone(), none));
    }
}
