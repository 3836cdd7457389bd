//! The whole network: built from a plan's graph, stepped by its driver.
//!
//! # Driving it
//! 1. Offer packets to the hosts' ports ([`Network::offer`]) and arm entities of your own ([`Network::arm`]).
//! 2. Call [`Network::next`] until it returns `None`: each event is a packet at its host or an entity that is due.
//!    Answer it with more of 1. What switches do happens inside.
//! 3. Read ports ([`Network::backlog`], [`Network::counters`]) whenever an event is being handled, or at the end.
//!
//! A driver that must wait for a clock sleeps until [`Network::next_at`].
//!
//! Time never goes back: every call carries a time that is not before the last event's.
//!
//! # A part of a network
//! [`Network::part`] makes a network that owns some of the nodes; see [`partition`](crate::partition). What its ports
//! accept for a link into another part is *carried*: [`Network::hand_over`] hands it out, and the network that owns the
//! far end takes it by [`Network::import`] before its own time has come to the packet's arrival. Each counts what happens
//! on its side: the port where the packet leaves, the wire's losses where it arrives.
//!
//! # Order
//! Events come in the order of their times; equal times by class (arrivals, timers, starts, samples), then by
//! identifier: the link's, or the one the driver gave its entity. A packet that leaves a queue at `t` has left when
//! another arrives there at `t`.

mod in_place;
mod parts;
mod services;
mod telemetry;
mod ways;

pub use in_place::{Next, Place};
pub use parts::Carried;

use crate::agenda::{Agenda, Class, Due, Entity};
use crate::path::Paths;
use crate::port::{Arrived, Counters, Crossed, FarEnd, First, Offered, Ports};
use crate::route::{GraphError, Routes, switch_indices};
use crate::trace::{Happened, Note, Trace};
use narrows_core::queue::Feedback;
use narrows_core::routing::Routing;
use narrows_core::units::{Bytes, Packets, Span, Time};
use narrows_plan::{Graph, Link, NodeKind};

/// What a network must know of a packet. Up to 32 bytes keep a record within 40. Memory that was never used is filled with the
/// default, of which nothing is asked.
pub trait Payload: Copy + Default {
    /// Size of the IP packet, at most 65,535 bytes: what queues, limits and thresholds count.
    fn ip_bytes(&self) -> u32;
    /// The host it is for: an index into the graph's nodes.
    fn destination(&self) -> u32;
    /// A number that all packets of a flow share: they take one path.
    fn flow_hash(&self) -> u32;
    /// A number that tells apart what may take different paths: of packets for which it is the same, destination and
    /// [`flow_hash`](Payload::flow_hash) are the same. To be had in a few instructions.
    fn flow_key(&self) -> u64 {
        u64::from(self.flow_hash()) << 32 | u64::from(self.destination())
    }
    /// Which class of a port with several it is of: 0 where nothing else is said. Such a port panics at a class that it does
    /// not have.
    fn service_class(&self) -> u8 {
        0
    }
    /// Whether a queue may mark it: ECT(0), ECT(1), or marked already.
    fn ecn_capable(&self) -> bool;
    /// Whether it is ECT(1), or marked already: what a dual queue gives priority [RFC 9331 §5].
    fn is_l4s(&self) -> bool {
        false
    }
    /// Whether it carries data of an application: some wires lose only such.
    fn carries_data(&self) -> bool {
        true
    }
    /// Sets the congestion mark.
    fn mark(&mut self);
    /// Whether it goes before all others where a port is served: a notification, or a pause frame.
    fn is_urgent(&self) -> bool {
        false
    }
    /// The frame that tells the other end's port of a link which priorities are paused, a bit for each, and for how long; the
    /// others are resumed. `None` where the payload has no such frame: then no network that pauses can be made.
    fn pause(_priorities: u8, _time: Span) -> Option<Self> {
        None
    }
    /// Of such a frame, the priorities and how long.
    fn as_pause(&self) -> Option<(u8, Span)> {
        None
    }
    /// Where the packet's telemetry lies, if it has any: see [`Network::take_telemetry`].
    fn telemetry(&self) -> Option<u32> {
        None
    }
    /// From now on its telemetry lies in this place. Returns what it held there, which is given back with the telemetry. `None`
    /// where the payload has no room for it, and then nothing is written.
    fn carry_telemetry(&mut self, _place: u32) -> Option<u32> {
        None
    }
}

/// What the driver hears of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<P> {
    /// A packet reached a host.
    Arrival {
        /// The host: an index into the graph's nodes.
        host: u32,
        /// The packet.
        packet: P,
    },
    /// A switch's port refused the packet or dropped it later, or a wire lost it: the driver may have more of it to put away.
    /// What is dropped when it would leave may be told a little later.
    Dropped {
        /// The packet.
        packet: P,
    },
    /// A switch's port took in a packet, and its congestion point tells by it how congested the port is.
    Sampled {
        /// The port.
        link: u32,
        /// What it tells.
        feedback: Feedback,
        /// The packet, which goes on as others do; whether this port has marked it is not said.
        packet: P,
    },
    /// A packet is about to enter a bridge: the driver decides what crosses it. See [`Network::cross`].
    Entering {
        /// The bridge, in the packet's direction.
        link: u32,
        /// The packet.
        packet: P,
    },
    /// Something has crossed a bridge: the driver decides what becomes of it. See [`Network::go_on`].
    Crossed {
        /// The bridge, in the packet's direction.
        link: u32,
        /// The packet.
        packet: P,
    },
    /// A host's port was paused: packets that it had accepted will leave later than it said. [`Network::take_recalled`] has
    /// them, and of each [`Event::Left`] tells when it has left.
    Recalled {
        /// The port.
        link: u32,
    },
    /// The last bit of a packet has left a host's port that was paused, where [`Offered::Accepted`] did not tell when.
    Left {
        /// The port.
        link: u32,
        /// The packet.
        packet: P,
    },
    /// An entity that the driver armed is due. It is not armed any more.
    Due(Entity),
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Network<P> {
    agenda: Agenda,
    ports: Ports<P>,
    /// By link: the switch whose port it is, by index among switches; [`NONE`] for a host. Empty without congestion points.
    switches: Vec<u32>,
    /// By link: the part that it leads into, if that is another; [`BESIDE_SERVED`] where its node has served ports;
    /// [`BRIDGED`] where it is a bridge; [`TRACED`] where it is a host's and the network is traced; else [`NONE`]. Empty where all
    /// are [`NONE`].
    detours: Vec<u32>,
    /// By part: the links into it that have accepted a packet since the last exchange, and the packet's position.
    exports: Vec<Vec<(u32, u32)>>,
    routes: Routes,
    /// Where routes choose among equal ways by the hash of a flow.
    paths: Option<Paths>,
    /// By switch, what chooses among equal ways for each packet. Empty where nothing does.
    policies: Vec<Routing>,
    /// By node; [`NONE`] for a switch.
    host_links: Vec<u32>,
    /// Whether the links are too many for the nearest cache: what comes next is asked for.
    is_wide: bool,
    /// Whether some ports are served packet by packet: what is due there is decided before a packet is taken out of its link's
    /// ring.
    has_served: bool,
    /// Whether all ports are computed, and nothing happens on the way but delays: then of much else nothing is asked.
    is_plain: bool,
    /// Whether links lead into other parts.
    is_cut: bool,
    /// By link: the one back. Empty where nobody is paused.
    reverses: Vec<u32>,
    packet_hops: u64,
    events: u64,
    /// What happened last, if it is neither an arrival nor due.
    aside: Option<Event<P>>,
    /// What is noted, where the network is traced.
    trace: Option<Box<Trace<P>>>,
}

const NONE: u32 = u32::MAX;
const BESIDE_SERVED: u32 = u32::MAX - 1;
const BRIDGED: u32 = u32::MAX - 2;
const TRACED: u32 = u32::MAX - 3;
/// Links from which on ports and packets, a few hundred bytes for each, do not fit into the nearest cache.
const WIDE: usize = 500;

impl<P: Payload> Network<P> {
    /// A network at rest. `seed` decides which of several equal paths a flow takes, which packets a lossy wire loses,
    /// and what random AQMs draw.
    pub fn new(graph: &Graph, seed: u64) -> Result<Network<P>, GraphError> {
        let routes = Routes::new(graph, seed)?;
        if let Some((link, obstacle)) = graph.excluded() {
            return Err(GraphError::Excluded { link: graph.links[link].name.clone(), obstacle });
        }
        telemetry::check(graph)?;
        let ports = Ports::new(graph, seed)?;
        let mut host_links = vec![NONE; graph.nodes.len()];
        for (id, link) in (0..).zip(&graph.links) {
            if graph.nodes[link.from as usize].kind == NodeKind::Host {
                host_links[link.from as usize] = id;
            }
        }
        let served = graph.served();
        let detours = detours(graph, &served);
        let has_served = served.into_iter().any(|served| served);
        let reverses = if ports.pauses_links() { graph.reverses() } else { Vec::new() };
        if let Some(id) = (0..)
            .zip(reverses.iter().zip(graph.can_be_paused()))
            .find_map(|(id, (back, can_be_paused))| (back.is_none() && can_be_paused).then_some(id))
        {
            return Err(GraphError::NoWayBack(id));
        }
        let reverses = reverses.into_iter().map(|back| back.unwrap_or(NONE)).collect();
        let policies = ways::policies(graph, seed, &routes);
        let is_plain = !has_served && detours.is_empty() && ports.are_plain() && policies.is_empty();
        let paths = (routes.needs_paths() && policies.is_empty()).then(Paths::new);
        Ok(Network {
            agenda: Agenda::new(graph, ports.with_urgent_queues()),
            switches: near_ends(graph),
            ports,
            detours,
            exports: Vec::new(),
            routes,
            paths,
            policies,
            host_links,
            is_wide: graph.links.len() >= WIDE,
            has_served,
            is_plain,
            is_cut: false,
            reverses,
            packet_hops: 0,
            events: 0,
            aside: None,
            trace: None,
        })
    }

    /// Notes from now on what happens to packets; before anything has happened.
    pub fn trace(&mut self) {
        self.is_plain = false;
        self.detours.resize(self.ports.len() as usize, NONE);
        for &link in self.host_links.iter().filter(|&&link| link != NONE) {
            let detour = &mut self.detours[link as usize];
            if *detour == NONE {
                *detour = TRACED;
            }
        }
        self.trace = Some(Box::new(Trace { notes: Vec::new(), plain: self.ports.look_at_every_arrival() }));
    }

    /// What was noted since this was asked last, in the order in which it happened.
    pub fn take_notes(&mut self, into: &mut Vec<Note<P>>) {
        into.clear();
        if let Some(trace) = &mut self.trace {
            std::mem::swap(&mut trace.notes, into);
        }
    }

    #[inline(always)]
    fn note(&mut self, at: Time, link: u32, what: Happened<P>) {
        if let Some(trace) = &mut self.trace {
            trace.notes.push(Note { at, link, what });
        }
    }

    /// What was recalled, in the order in which it would have left: see [`Event::Recalled`].
    pub fn take_recalled(&mut self) -> Vec<P> {
        self.ports.take_recalled()
    }

    /// The one link out of a host.
    pub fn host_link(&self, host: u32) -> u32 {
        let link = self.host_links[host as usize];
        assert!(link != NONE, "node {host} is a switch");
        link
    }

    /// Sends a packet over a bridge: with other traffic through its port, or ahead of it if it is `urgent`, and then it is
    /// never refused. [`take_feedback`](Self::take_feedback) has what the port's congestion point told by it.
    pub fn cross(&mut self, now: Time, link: u32, packet: P, urgent: bool) -> Offered {
        self.note(now, link, Happened::Offered(packet));
        if let Some(queue) = self.ports.urgent_queue(link).filter(|_| urgent) {
            let offered = self.ports.notify(now, link, queue, packet);
            return self.follow(queue, offered);
        }
        let offered = self.ports.offer(now, link, packet);
        self.follow(link, offered)
    }

    /// What the congestion point of a bridge's port told by the packet that crossed it last, if it did.
    pub fn take_feedback(&mut self) -> Option<Feedback> {
        self.ports.take_told()
    }

    /// Sends on what has crossed `link`, a bridge for instance, by the way that its destination asks for. What comes of it at once is
    /// for the driver to handle as other events.
    pub fn go_on(&mut self, now: Time, link: u32, packet: P) -> Option<Event<P>> {
        let FarEnd::Switch(switch) = self.ports.far_end(link) else { panic!("it ends at a router") };
        let onward = self.way(now, switch, &packet);
        if self.detour(onward) == BRIDGED {
            return Some(Event::Entering { link: onward, packet });
        }
        self.note(now, onward, Happened::Offered(packet));
        let detour = self.detour(onward);
        let offered = match detour {
            NONE => self.offer(now, onward, packet),
            _ => self.offer_aside(now, onward, link, detour, packet),
        };
        if let Offered::Dropped(_) = offered {
            return Some(Event::Dropped { packet });
        }
        let feedback = self.ports.take_told()?;
        Some(Event::Sampled { link: onward, feedback, packet })
    }

    /// As [`offer`](Self::offer): when the packet departs, or `None` if it is dropped.
    #[inline(always)]
    pub fn send(&mut self, now: Time, link: u32, packet: P) -> Option<Time> {
        if self.is_plain {
            let offered = self.ports.offer_at_once(now, link, packet);
            return self.follow(link, offered).departure();
        }
        self.offer_anywhere(now, link, packet).departure()
    }

    /// Offers a packet to a port. Drivers do so for hosts' ports; the departure tells small queues when to go on.
    #[inline(always)]
    pub fn offer(&mut self, now: Time, link: u32, packet: P) -> Offered {
        if self.is_plain {
            let offered = self.ports.offer_at_once(now, link, packet);
            return self.follow(link, offered);
        }
        self.offer_anywhere(now, link, packet)
    }

    #[inline(never)]
    fn offer_anywhere(&mut self, now: Time, link: u32, packet: P) -> Offered {
        match self.detour(link) {
            NONE => {
                let offered = self.ports.offer(now, link, packet);
                self.follow(link, offered)
            }
            detour => self.offer_aside(now, link, NONE, detour, packet),
        }
    }

    /// Offers a packet that came over `from` to a port with a detour.
    #[inline(never)]
    fn offer_aside(&mut self, now: Time, link: u32, from: u32, detour: u32, packet: P) -> Offered {
        if from == NONE {
            self.note(now, link, Happened::Offered(packet));
        }
        if self.ports.is_served(link) {
            let offered = self.ports.offer_served(now, link, from, packet);
            let offered = self.follow(link, offered);
            self.follow_served(now);
            return offered;
        }
        if detour == BESIDE_SERVED || detour == TRACED {
            let offered = self.ports.offer(now, link, packet);
            return self.follow(link, offered);
        }
        self.offer_into(now, link, detour, packet)
    }

    /// See [`Network::detours`].
    #[inline(always)]
    fn detour(&self, link: u32) -> u32 {
        self.detours.get(link as usize).copied().unwrap_or(NONE)
    }

    /// What an offer brings about in the agenda.
    #[inline(always)]
    fn follow(&mut self, link: u32, offered: (Offered, Option<First>)) -> Offered {
        self.follow_guessed::<true>(link, offered)
    }

    /// The same; `GUESSED` as in [`Agenda::arm_link`].
    #[inline(always)]
    fn follow_guessed<const GUESSED: bool>(
        &mut self,
        link: u32,
        (offered, first): (Offered, Option<First>),
    ) -> Offered {
        if let Some(first) = first {
            self.agenda.arm_link::<GUESSED>(link, first);
        }
        self.packet_hops += u64::from(matches!(offered, Offered::Accepted { .. }));
        offered
    }

    /// The switch whose port `link` is sends a notification towards the host that `packet` is for, by the way that its own
    /// packets would take: ahead of other traffic and never dropped, hop by hop, to below the host's stack. It ends where
    /// the way leaves the site.
    ///
    /// # Panics
    /// If `link` is a host's, or nothing in this network has a congestion point.
    pub fn notify(&mut self, now: Time, link: u32, packet: P) {
        self.notify_from(now, self.switches[link as usize], packet);
    }

    fn notify_from(&mut self, now: Time, switch: u32, packet: P) {
        let onward = self.way(now, switch, &packet);
        if self.detour(onward) == BRIDGED {
            return;
        }
        if self.ports.is_served(onward) {
            if !self.ports.takes_notifications(onward) {
                return;
            }
            let offered = self.ports.enqueue_urgent(now, onward, packet);
            self.follow(onward, (offered, None));
            self.follow_served(now);
            return;
        }
        if let Some(queue) = self.ports.urgent_queue(onward) {
            let offered = self.ports.notify(now, onward, queue, packet);
            self.follow(queue, offered);
        }
    }

    /// Makes `entity` due at `at`, and only then: an earlier appointment of it is forgotten. Moving an appointment to a
    /// later time costs next to nothing.
    #[inline(always)]
    pub fn arm(&mut self, entity: Entity, at: Time) {
        self.agenda.arm(entity, at);
    }

    /// Forgets the appointment of `entity`, if there is one.
    pub fn disarm(&mut self, entity: Entity) {
        self.agenda.disarm(entity);
    }

    /// The next event for the driver up to and including `until`. After `None` nothing is left up to there, and time
    /// stands at `until`.
    #[inline(always)]
    pub fn next(&mut self, until: Time) -> Option<(Time, Event<P>)> {
        let (now, next) = self.next_in_place(until)?;
        Some((now, self.event(next)))
    }

    /// As [`next`](Self::next), but that a packet at its host is left where it lies, and other events are put aside.
    #[inline(always)]
    pub fn next_in_place(&mut self, until: Time) -> Option<(Time, Next)> {
        match (self.is_plain, self.is_cut, self.is_wide) {
            (true, false, false) => self.step::<true, false, false>(until),
            (true, false, true) => self.step::<true, false, true>(until),
            (true, true, _) => self.step::<true, true, true>(until),
            (false, ..) => self.step::<false, true, true>(until),
        }
    }

    /// See [`next`](Self::next), [`is_plain`](Self::is_plain), [`is_cut`](Self::is_cut) and [`is_wide`](Self::is_wide): what is not
    /// `PLAIN` costs nothing where all is, and what is `CUT` or `WIDE` nothing in a whole network that is plain or a small one.
    #[inline(always)]
    fn step<const PLAIN: bool, const CUT: bool, const WIDE: bool>(&mut self, until: Time) -> Option<(Time, Next)> {
        loop {
            let (now, due) = self.agenda.pop::<WIDE>(until)?;
            let link = match due {
                Due::Arrival(link) => link,
                Due::Entity(entity) => {
                    if !PLAIN && entity.class() <= Class::Arrival {
                        if let Some(event) = self.act(now, entity) {
                            return self.put_aside(now, event);
                        }
                        continue;
                    }
                    self.events += u64::from(entity.class() == Class::Timer);
                    return Some((now, Next::Due(entity)));
                }
            };
            self.events += 1;
            if WIDE && self.is_wide {
                self.prefetch();
            }
            if !PLAIN && self.has_served && !self.ports.decide_before(now, link) {
                self.follow_served(now);
                continue;
            }
            let arrived = self.ports.arrive(now, link);
            if let Some(first) = arrived.next {
                self.agenda.arm_link::<WIDE>(link, first);
            }
            if !PLAIN
                && arrived.special
                && let Some(outcome) = self.arrive_specially(now, link, &arrived)
            {
                match outcome {
                    Some(event) => return self.put_aside(now, event),
                    None => continue,
                }
            }
            let switch = match arrived.far_end {
                FarEnd::Host(host) => return Some((now, Next::Arrival { host, place: Place(arrived.position) })),
                FarEnd::Switch(switch) => switch,
            };
            if !PLAIN && self.ports.is_urgent_queue(link) {
                self.notify_from(now, switch, *self.ports.packet(&arrived));
                continue;
            }
            let onward = if !PLAIN && !self.policies.is_empty() {
                self.chosen(now, switch, &arrived)
            } else {
                self.onward::<WIDE>(link, switch, &arrived)
            };
            let detour = match (PLAIN, CUT) {
                (true, false) => NONE,
                (true, true) => self.detours[onward as usize],
                (false, _) => self.detour(onward),
            };
            if detour != NONE {
                if PLAIN {
                    if let Offered::Dropped(_) = self.forward_into(now, onward, detour, &arrived) {
                        let packet = *self.ports.packet(&arrived);
                        return self.put_aside(now, Event::Dropped { packet });
                    }
                    continue;
                }
                if let Some(event) = self.forward_aside(now, onward, link, detour, &arrived) {
                    return self.put_aside(now, event);
                }
                continue;
            }
            let offered = self.ports.forward(now, onward, &arrived);
            if let Offered::Dropped(_) = self.follow_guessed::<WIDE>(onward, offered) {
                let packet = *self.ports.packet(&arrived);
                return self.put_aside(now, Event::Dropped { packet });
            }
            if !PLAIN && let Some(feedback) = self.ports.take_told() {
                let packet = *self.ports.packet(&arrived);
                return self.put_aside(now, Event::Sampled { link: onward, feedback, packet });
            }
        }
    }

    /// The link that a packet takes which has come over `link` to a switch.
    #[inline(always)]
    fn onward<const WIDE: bool>(&mut self, link: u32, switch: u32, arrived: &Arrived) -> u32 {
        // Few small networks have paths: there it is the table that is asked first.
        if !WIDE && let Some(onward) = self.routes.only_link(switch, arrived.destination) {
            return onward;
        }
        match &mut self.paths {
            None => self.routes.only_link(switch, arrived.destination).expect("without paths each way is known"),
            Some(paths) => {
                let packet = self.ports.packet(arrived);
                let ask = || self.routes.next_link(switch, packet.destination(), || packet.flow_hash());
                paths.after(link, packet.flow_key(), ask)
            }
        }
    }

    /// What has arrived over `from` goes on over a link with a detour.
    #[inline(never)]
    fn forward_aside(&mut self, now: Time, link: u32, from: u32, detour: u32, arrived: &Arrived) -> Option<Event<P>> {
        // Served ports move packets when they are settled: what has arrived may not lie where it did.
        let packet = *self.ports.packet(arrived);
        if detour == BRIDGED {
            return Some(Event::Entering { link, packet });
        }
        if let Offered::Dropped(_) = self.offer_aside(now, link, from, detour, packet) {
            return Some(Event::Dropped { packet });
        }
        let feedback = self.ports.take_told()?;
        Some(Event::Sampled { link, feedback, packet })
    }

    /// Asks for what is probably next.
    #[inline(always)]
    fn prefetch(&mut self) {
        if let Some((next, front)) = self.agenda.probably_next() {
            self.ports.prefetch(next, front);
        }
    }

    /// A packet at the far end of a wire that may lose it, of a bridge, or of a served port: `None` if it goes on as others do,
    /// else what the driver hears, if it hears of anything.
    #[cold]
    fn arrive_specially(&mut self, now: Time, link: u32, arrived: &Arrived) -> Option<Option<Event<P>>> {
        let packet = *self.ports.packet(arrived);
        if let Some(trace) = &mut self.trace {
            let plain = trace.plain[link as usize];
            let what = if plain { Happened::Arrived(packet) } else { Happened::Crossed(packet) };
            trace.notes.push(Note { at: now, link: self.ports.link_of(link), what });
            if plain {
                return None;
            }
        }
        self.tell_dropped(now);
        if packet.is_urgent() && !self.ports.is_urgent_queue(link) && self.ports.is_served(link) {
            self.ports.urgent_has_come(link);
        }
        if let Some((priorities, time)) = packet.as_pause() {
            let paused = self.reverses[self.ports.link_of(link) as usize];
            self.note(now, paused, Happened::Paused { priorities, time });
            self.ports.pause(now, paused, priorities, time);
            self.follow_served(now);
            return Some(self.ports.has_recalled().then_some(Event::Recalled { link: paused }));
        }
        if packet.is_urgent() && !self.ports.is_urgent_queue(link) && self.ports.is_served(link) {
            let FarEnd::Switch(switch) = arrived.far_end else { return None };
            self.notify_from(now, switch, packet);
            return Some(None);
        }
        match self.ports.cross(now, link, &packet) {
            Crossed::Arrived => {}
            Crossed::Lost => return Some(Some(Event::Dropped { packet })),
            Crossed::UnderWay(first) => {
                self.agenda.arm(Entity::late(link), first);
                return Some(None);
            }
        }
        let link = self.ports.link_of(link);
        self.note(now, link, Happened::Arrived(packet));
        (self.detour(link) == BRIDGED).then_some(Some(Event::Crossed { link, packet }))
    }

    /// When something is due next: [`Network::next`] has no event before. `None` if nothing is due ever. There need not be an
    /// event then, as switches forward by themselves, but a driver on a real clock may sleep so long.
    pub fn next_at(&self) -> Option<Time> {
        self.agenda.next_at()
    }

    /// What a port holds, the packet in service included.
    pub fn backlog(&mut self, now: Time, link: u32) -> (Bytes, Packets) {
        let backlog = self.ports.backlog(now, link);
        (backlog.bytes, backlog.packets)
    }

    /// IP bytes of which the last bit has left a port by `now`, since the beginning: resets do not touch it.
    pub fn sent(&mut self, now: Time, link: u32) -> Bytes {
        self.ports.sent(now, link)
    }

    /// What a port has done since the counters were last reset, exact at `now`.
    pub fn counters(&mut self, now: Time, link: u32) -> Counters {
        self.ports.counters(now, link)
    }

    /// Every port begins to count anew: the end of the warm-up. What is queued now is carried over.
    pub fn reset_counters(&mut self, now: Time) {
        self.ports.reset_counters(now);
    }

    /// Every port's counters at the end of the run, by link, means and integrals cut at `now`.
    ///
    /// # Panics
    /// If a port has lost track of a packet.
    pub fn finish(&mut self, now: Time) -> Vec<Counters> {
        let all = (0..self.ports.len()).map(|link| {
            let counters = self.ports.counters(now, link);
            assert!(counters.conserved(), "link {link} lost track of a packet: {counters:?}");
            counters
        });
        let all = all.collect();
        // What was dropped by now is for the driver to hear of, if it goes on.
        self.follow_served(now);
        all
    }

    /// Packets that ports accepted: each will be serialised once.
    pub fn packet_hops(&self) -> u64 {
        self.packet_hops
    }

    /// Arrivals anywhere, and timers that were due. Starts and samples are not counted: each part of a network would
    /// count its own, and the parts' sum would not be the whole's.
    pub fn events(&self) -> u64 {
        self.events
    }
}

/// What [`Network::detours`] says of a whole network.
fn detours(graph: &Graph, served: &[bool]) -> Vec<u32> {
    let mut beside = vec![NONE; graph.nodes.len()];
    for (link, _) in graph.links.iter().zip(served).filter(|(_, served)| **served) {
        beside[link.from as usize] = BESIDE_SERVED;
    }
    let detour = |link: &Link| if link.bridge.is_some() { BRIDGED } else { beside[link.from as usize] };
    let detours: Vec<u32> = graph.links.iter().map(detour).collect();
    if detours.iter().all(|&detour| detour == NONE) { Vec::new() } else { detours }
}

/// By link, the switch whose port it is; nothing where nothing has a congestion point.
fn near_ends(graph: &Graph) -> Vec<u32> {
    if graph.links.iter().all(|link| link.congestion_point.is_none()) {
        return Vec::new();
    }
    let switches = switch_indices(graph);
    graph.links.iter().map(|link| switches[link.from as usize]).collect()
}
