//! Two hosts, an edge in front of each, and a WAN between the edges that a test may make as bad as it likes.

use std::collections::BTreeMap;

use narrows_core::edge::dcib::{Config, Edge, Message, Packet, Segment as Seen, Transmit};
use narrows_core::packet::{Ecn, Flags, Segment, Tag};
use narrows_core::rng::{SmallStream, Stream};
use narrows_core::tcp::{Endpoint, Event, Stack};
use narrows_core::units::{Bytes, Rate, Span, Time};

use crate::pair::{Adapter, build};

/// A segment as an edge sees it: with its connection, of which there is one, and a name for each time it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    pub segment: Segment,
    pub from: usize,
    pub name: u64,
}

impl Packet for Wire {
    type Flow = usize;

    fn ip_bytes(&self) -> Bytes {
        self.segment.ip_bytes()
    }
    fn ecn(&self) -> Ecn {
        self.segment.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.segment.ecn = ecn;
    }
    fn segment(&self) -> Option<Seen<usize>> {
        let syn = self.segment.flags.contains(Flags::SYN);
        Some(Seen {
            flow: self.from,
            reverse: 1 - self.from,
            seq: self.segment.seq,
            length: u32::from(self.segment.length) + u32::from(syn),
            payload: u32::from(self.segment.length),
            syn,
            ack: self.segment.flags.contains(Flags::ACK).then_some(self.segment.ack),
        })
    }
}

/// Of a host's own link.
pub const HOST_RATE: Rate = Rate::from_gbps(1);

/// What the WAN does, in a thousandth of the messages each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Lost: of what is Not-ECT, and of everything.
    pub lost_unprotected: u64,
    pub lost: u64,
    pub doubled: u64,
    /// Late by up to `late`.
    pub delayed: u64,
    pub late: Span,
    /// Changed on the way, so that the far edge does not believe it.
    pub corrupted: u64,
}

/// Whether a message is lost on its way from this edge.
pub type LoseIf = Box<dyn FnMut(usize, &Message<Wire>) -> bool>;

enum Arrival {
    AtEdge(usize, Message<Wire>),
    AtHost(usize, Wire),
}

pub struct Bridge {
    pub now: Time,
    pub ends: [Endpoint; 2],
    pub stack: Stack,
    /// `None` while it is dead: what passes then is what the kernel forwards.
    pub edges: [Option<Edge<Wire>>; 2],
    pub config: Config,
    /// A millionth part that an edge's clock is fast by.
    pub drift: [u64; 2],
    pub weather: Weather,
    pub lose_if: Option<LoseIf>,
    pub delivered: [Vec<Tag>; 2],
    /// Segments that hosts received, in order: when, at which host.
    pub received: Vec<(Time, usize, Wire)>,
    pub wan: Span,
    pub site: Span,
    air: BTreeMap<(Time, u64), Arrival>,
    adapters: [Adapter; 2],
    order: u64,
    free_at: [Time; 2],
    names: u64,
    random: Stream,
    seed: u64,
}

impl Bridge {
    pub fn new(controller: &str, stack: Stack, config: Config, seed: u64) -> Bridge {
        let mut bridge = Bridge {
            now: Time::ZERO,
            ends: [
                Endpoint::closed(build(controller, &stack, seed), &stack),
                Endpoint::closed(build(controller, &stack, seed + 1), &stack),
            ],
            stack,
            edges: [None, None],
            config,
            drift: [0; 2],
            weather: Weather::default(),
            lose_if: None,
            delivered: [Vec::new(), Vec::new()],
            received: Vec::new(),
            wan: config.round_trip.div(2),
            site: Span::from_us(10),
            air: BTreeMap::new(),
            adapters: Default::default(),
            order: 0,
            free_at: [Time::ZERO; 2],
            names: 0,
            random: Stream::named(seed, "bridge"),
            seed,
        };
        bridge.start(0);
        bridge.start(1);
        bridge
    }

    /// An edge begins, with its clock's reading as it is then.
    pub fn start(&mut self, edge: usize) {
        self.start_with(edge, self.clock(edge).as_ns());
    }

    /// The same, with another reading of its clock.
    pub fn start_with(&mut self, edge: usize, clock: u64) {
        let stream = SmallStream::new(self.seed ^ self.random.next_u64() ^ edge as u64);
        self.edges[edge] = Some(Edge::new(&self.config, clock, stream));
    }

    pub fn kill(&mut self, edge: usize) {
        self.edges[edge] = None;
    }

    /// What an edge's clock reads.
    fn clock(&self, edge: usize) -> Time {
        self.now + Span::from_ps(self.now.as_ps() / 1_000_000 * self.drift[edge])
    }

    pub fn open(&mut self) {
        self.ends[0].open(Tag(0));
        self.settle();
    }

    pub fn offer(&mut self, end: usize, bytes: u64, tag: u32) {
        self.ends[end].offer(Bytes::new(bytes), Tag(tag));
        self.settle();
    }

    fn happens(&mut self, per_mille: u64) -> bool {
        per_mille > 0 && self.random.below(1000) < per_mille
    }

    fn arrive(&mut self, at: Time, arrival: Arrival) {
        self.order += 1;
        self.air.insert((at, self.order), arrival);
    }

    /// Lets hosts and edges say what they have to say now.
    fn settle(&mut self) {
        for end in 0..2 {
            while let Some(event) = self.ends[end].poll_event() {
                if let Event::Delivered(tag) = event {
                    self.delivered[end].push(tag);
                }
            }
            while let Some(segment) = self.ends[end].poll_transmit(self.now, &self.stack) {
                self.names += 1;
                let wire = Wire { segment, from: end, name: self.names };
                let size = Bytes::new(segment.ip_bytes().get() + 38);
                self.free_at[end] = self.free_at[end].max(self.now) + HOST_RATE.time_for(size);
                self.arrive(self.free_at[end] + self.site, Arrival::AtEdge(end, Message::Plain(wire)));
            }
        }
        for edge in 0..2 {
            while let Some(sent) = self.edges[edge].as_mut().and_then(Edge::poll_transmit) {
                match sent {
                    Transmit::Inside(packet) => self.arrive(self.now + self.site, Arrival::AtHost(edge, packet)),
                    Transmit::Outside(message) => self.cross(edge, message),
                    Transmit::Dropped(_) => unreachable!("nothing is marked here"),
                }
            }
        }
    }

    /// A message leaves an edge for the other.
    fn cross(&mut self, from: usize, message: Message<Wire>) {
        let unprotected = match &message {
            Message::Plain(packet) | Message::Disguised(packet) | Message::Marked(packet, _) => {
                packet.segment.ecn == Ecn::NotCapable && packet.segment.length > 0
            }
            _ => false,
        };
        let Weather { lost, lost_unprotected, corrupted, doubled, delayed, late } = self.weather;
        let plain = matches!(message, Message::Plain(_) | Message::Disguised(_));
        if self.lose_if.as_mut().is_some_and(|lose| lose(from, &message))
            || unprotected && self.happens(lost_unprotected)
            || self.happens(lost)
            || self.happens(corrupted)
        {
            return;
        }
        let mut at = self.now + self.wan;
        if self.happens(delayed) {
            at += Span::from_ps(self.random.below(late.as_ps().max(1)));
        }
        // What is not marked nobody can know to be a copy.
        if !plain && self.happens(doubled) {
            self.arrive(at + Span::from_us(3), Arrival::AtEdge(1 - from, message.clone()));
        }
        self.arrive(at, Arrival::AtEdge(1 - from, message));
    }

    fn handle(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::AtHost(host, wire) => {
                self.received.push((self.now, host, wire));
                self.adapters[host].arrive(self.now, wire.segment, &self.stack);
                self.poll(host);
            }
            Arrival::AtEdge(edge, message) => {
                let clock = self.clock(edge);
                let from_inside = matches!(&message, Message::Plain(packet) if packet.from == edge);
                match (&mut self.edges[edge], message) {
                    (Some(machine), Message::Plain(packet)) if from_inside => machine.handle_inside(clock, packet),
                    (Some(machine), message) => machine.handle_outside(clock, message),
                    // Forwarded without an edge: out as it is, in without what was put around it.
                    (None, Message::Plain(packet)) if from_inside => self.cross(edge, Message::Plain(packet)),
                    (None, Message::Plain(packet) | Message::Disguised(packet) | Message::Marked(packet, _)) => {
                        self.arrive(self.now + self.site, Arrival::AtHost(edge, packet));
                    }
                    (None, _) => {}
                }
            }
        }
    }

    /// What a host's adapter has for its stack by now.
    fn poll(&mut self, host: usize) {
        for segment in self.adapters[host].poll(self.now, &self.stack) {
            self.ends[host].handle_segment(self.now, &segment, &self.stack);
            self.settle();
        }
    }

    /// The real time at which an edge's clock has come to its deadline.
    fn due(&self, edge: usize) -> Time {
        let Some(deadline) = self.edges[edge].as_ref().map(Edge::deadline).filter(|&at| at < Time::NEVER) else {
            return Time::NEVER;
        };
        if self.drift[edge] == 0 {
            return deadline;
        }
        let ahead = deadline.since(self.clock(edge)).as_ps();
        self.now + Span::from_ps(ahead)
    }

    /// Runs one moment; false when nothing will ever happen again or the next moment lies beyond `until`.
    pub fn step(&mut self, until: Time) -> bool {
        let in_air = self.air.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
        let hosts = self.ends.iter().map(|end| end.deadline().min(end.pacing_deadline())).min();
        let edges = self.due(0).min(self.due(1));
        let polls = self.adapters[0].due().min(self.adapters[1].due());
        let moment = in_air.min(hosts.unwrap_or(Time::NEVER)).min(edges).min(polls);
        if moment == Time::NEVER || moment > until {
            return false;
        }
        self.now = self.now.max(moment);
        while let Some(entry) = self.air.first_entry()
            && entry.key().0 <= self.now
        {
            let arrival = entry.remove();
            self.handle(arrival);
            self.settle();
        }
        for host in 0..2 {
            self.poll(host);
        }
        for edge in 0..2 {
            let clock = self.clock(edge);
            if let Some(machine) = &mut self.edges[edge]
                && machine.deadline() <= clock
            {
                machine.handle_timeout(clock);
                assert!(machine.deadline() > clock, "a deadline of edge {edge} stays due");
            }
        }
        for end in &mut self.ends {
            if end.deadline() <= self.now {
                end.handle_timeout(self.now, &self.stack);
            }
        }
        self.settle();
        true
    }

    pub fn run_until(&mut self, until: Time) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// Names that a host received more than once.
    pub fn delivered_twice(&self) -> usize {
        let mut times = BTreeMap::<u64, u32>::new();
        self.received.iter().for_each(|(_, _, wire)| *times.entry(wire.name).or_default() += 1);
        times.values().filter(|&&count| count > 1).count()
    }

    /// The most acknowledgements in a row that a host received and that say the same, as data is under way.
    pub fn most_duplicates(&self, host: usize) -> usize {
        let (mut most, mut run, mut last) = (0, 0, None);
        for (_, _, wire) in self.received.iter().filter(|(_, at, wire)| *at == host && wire.segment.length == 0) {
            let same = last == Some(wire.segment.ack) && !wire.segment.sack.is_empty();
            run = if same { run + 1 } else { 0 };
            last = Some(wire.segment.ack);
            most = most.max(run);
        }
        most
    }
}
