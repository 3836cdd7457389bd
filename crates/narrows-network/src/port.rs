//! Ports whose departures are computed: a single-class FIFO knows on arrival when a packet will leave, so that nothing
//! happens at the end of a service.
//!
//! The packet in service counts towards limit, marking threshold and pool until its last bit has left, and a departure
//! at `t` frees its place before an arrival at `t`. Which packets have left is only looked up when an answer depends on
//! it: `Port::held_bytes` is an upper bound of the backlog, and what limits and AQMs grant for an upper bound they grant for
//! the truth. *Settling* walks the ring past departures that are due, each packet once in its life.
//!
//! A port with several queues, that writes telemetry, or that can be paused, cannot know that: it is *served lazily*, see
//! `port/served.rs`, and shares rules and counters with the others.
//!
//! Invariants: accepted departures are never taken back; what is carried over or accepted has been sent or is queued;
//! every offered packet is accepted or dropped for exactly one reason.

mod build;
mod counters;
mod ingress;
mod largest;
mod parts;
mod pausable;
mod served;
mod source;
mod urgent;
mod wire;
mod withdrawn;

pub use counters::Counters;
pub(crate) use wire::Crossed;

use crate::link::{Ring, Store};
use crate::network::Payload;
use crate::prefetch::prefetch;
use crate::route::{GraphError, switch_indices};
use crate::telemetry::Telemetry;
use ingress::Memories;
use narrows_core::packet;
use narrows_core::queue::aqm::{self, Aqm, Verdict};
use narrows_core::queue::{Backlog, CongestionPoint, DropReason, Feedback, Limit, Pool};
use narrows_core::rng::{SmallStream, Stream};
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_plan::{Graph, Link};
use pausable::Counted;
use served::Served;
use source::{ByValue, InPlace, Source};
use std::collections::VecDeque;
use urgent::is_inside;
use wire::Wire;

/// A byte at one bit per second.
const PS_PER_BYTE_AT_1_BPS: u64 = 8_000_000_000_000;

/// What a line takes to send.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Rounded down.
    ps_per_byte: u64,
    /// Bits per second.
    rate: u64,
}

impl Line {
    const fn as_rate(self) -> Rate {
        Rate::from_bps(self.rate)
    }

    /// What a byte takes beyond whole picoseconds, in units of one picosecond divided by the rate.
    const fn rest(self) -> u64 {
        PS_PER_BYTE_AT_1_BPS % self.rate
    }

    /// Picoseconds for so many bytes, rounded up. The product fits: the rest is below 2⁴³, and a packet below 2²⁰ bytes.
    #[inline(never)]
    fn time_for(self, bytes: u64) -> u64 {
        bytes * self.ps_per_byte + (bytes * self.rest()).div_ceil(self.rate)
    }
}

/// No packet leaves later: half of all time, 106 days.
const FAR: Time = Time::from_ps(u64::MAX / 2);

/// So many picoseconds after a time that is [`FAR`] at most.
#[inline(always)]
fn later(time: Time, ps: u64) -> Time {
    Time::from_ps(time.as_ps() + ps)
}

/// Bytes that an IP packet of this size occupies on the wire.
#[inline]
fn wire_bytes(ip_bytes: u32) -> u64 {
    packet::wire_bytes(Bytes::new(ip_bytes.into())).get()
}

/// What became of a packet that was offered to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It is in the queue or in service.
    Accepted {
        /// When its last bit leaves the port; [`Time::NEVER`] while others may go before it, or the port is paused.
        departure: Time,
        /// Whether the port's AQM marked it.
        marked: bool,
    },
    /// The port refused it.
    Dropped(DropReason),
}

impl Offered {
    /// When it departs, if it was accepted.
    #[inline(always)]
    pub const fn departure(self) -> Option<Time> {
        match self {
            Offered::Accepted { departure, .. } => Some(departure),
            Offered::Dropped(_) => None,
        }
    }
}

/// What every packet touches, in two cache lines: first all that is decided by, then what is only counted.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Port {
    ring: Ring,
    /// Accepted and not yet seen to have left: at least what the port holds. IP bytes, and packets.
    held_bytes: u64,
    held_packets: u32,
    /// What a byte takes, where the rate divides 8 · 10¹² and never changes: no packet pays for a 128-bit division. Else 0.
    ps_per_byte: u32,
    /// When the last accepted packet's last bit leaves.
    free_at: Time,
    /// From a departure to the arrival at the far end; the least, where it changes.
    delay: Span,
    /// Below so many packets, and up to so many bytes, the arriving one's included, the port takes a packet without asking its
    /// rules; no packets where the pool is to be asked of each, or its time on the line is no single product.
    free_bytes: u32,
    free_packets: u32,
    /// A node, or [`SWITCH`] and an index among switches.
    far_end: u32,
    /// Whether more happens on its wire than a delay, it is a bridge, or what is urgent comes over it among the rest.
    special: bool,
    kind: Kind,
    /// Whether what is offered from outside waits a random time.
    jittery: bool,
    /// Whether waits say how much is held: a computed port whose line has one rate, and that samples nothing.
    quiet: bool,

    /// Σ size · (departure − arrival) over accepted packets, and what was held at the reset.
    queue_integral: u128,
    queue_max: Bytes,
    accepted: Backlog,
    /// A packet that waits for less than this, ps, does not raise `queue_max` if it is no larger than `largest`: see
    /// [`Port::learn_quiet`]. 0 says nothing.
    quiet_below: u64,
    /// Of the packets that were looked at, IP bytes.
    largest: u32,
    /// Index of the pool it draws on; [`NONE`] for none.
    pool: u32,
    /// Index of its queues, if it is served; [`NONE`] for a computed FIFO.
    served: u32,
}

const _: () = assert!(size_of::<Port>() == 128, "a port is two cache lines");
const _: () = assert!(std::mem::offset_of!(Port, queue_integral) == 64, "what is decided by lies in the first");

/// How a port is served, and whose memory it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    /// In the order of arrival, with a limit of its own.
    Fifo,
    /// In the order of arrival; it draws on a pool as well.
    PooledFifo,
    /// In the order of arrival, until somebody is paused: see `port/pausable.rs`.
    Pausable,
    /// One packet at a time, from several queues or one; from a pool or not.
    Served,
}

const NONE: u32 = u32::MAX;
const SWITCH: u32 = 1 << 31;

/// Where a link leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FarEnd {
    /// To this node.
    Host(u32),
    /// To the switch with this index among the switches.
    Switch(u32),
}

/// A packet at its link's far end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// Where the packet lies until the next is accepted anywhere: see [`Ports::packet`].
    pub(crate) position: u32,
    /// Whether more may have become of it on the wire (see [`Ports::cross`]), or it has crossed a bridge.
    pub(crate) special: bool,
    /// Its IP bytes, and the host it is for: read where its place is looked up.
    pub(crate) ip_bytes: u32,
    pub(crate) destination: u32,
    pub(crate) far_end: FarEnd,
    /// The link's next packet.
    pub(crate) next: Option<First>,
}

/// A link's first packet: what its entry in the agenda is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First {
    /// When it arrives at the far end.
    pub(crate) at: Time,
    /// Where it lies.
    pub(crate) front: u32,
}

/// What a packet touches only where there is doubt.
#[derive(Clone, Debug)]
struct Rules {
    /// Up to this, the packet's bytes included, neither AQM nor limit has anything to say.
    fast_path: Backlog,
    limit: Limit,
    aqm: Option<Aqm>,
    line: Line,
    carried: Backlog,
    /// IP bytes that had left the port when the counters were reset last.
    sent_before: Bytes,
    /// What of the packet then in service had gone.
    begun_before: Span,
    refused: Backlog,
    /// Dropped after it was accepted.
    withdrawn: Backlog,
    dropped: [Packets; DropReason::COUNT],
    marked: Packets,
    congestion_point: Option<CongestionPoint>,
    /// Its next sample is of the packet that takes the accepted bytes beyond this; never where there is none.
    sample_beyond: u64,
    samples: Packets,
    /// Frames sent over it that pause or resume its far end.
    pause_frames: Packets,
    since: Time,
    /// Packets that took extra time on the wire.
    late: Packets,
    /// Index of its wire, if more happens there than a delay; [`NONE`].
    wire: u32,
    /// The longest wait of a packet from outside.
    jitter: Span,
    waits: SmallStream,
}

/// A switch's shared memory and the ports that draw on it. What the pool believes to be in use is the sum of its ports'
/// `held_bytes`: an upper bound, as they are.
#[derive(Clone, Debug)]
struct SharedPool {
    pool: Pool,
    links: Vec<u32>,
}

/// Every port of a network, by link, with the packets in their queues and on their wires; after them the urgent queues.
#[derive(Clone, Debug)]
pub(crate) struct Ports<P> {
    ports: Vec<Port>,
    rules: Vec<Rules>,
    pools: Vec<SharedPool>,
    /// Of each port that is served.
    served: Vec<Served>,
    /// Of the same ports, what is read while they are computed.
    counted: Vec<Counted>,
    /// What switches hold by ingress, where any counts it.
    ingress: Option<Memories>,
    /// Of each link on whose wire more happens than a delay.
    wires: Vec<Wire<P>>,
    store: Store<P>,
    /// Of the packets into which ports have written.
    pub(crate) telemetry: Telemetry,
    /// Whether the network looks at every packet that reaches a far end.
    looks_at_all: bool,
    /// Number of links: from here on ports are urgent queues.
    links: u32,
    /// By link: its urgent queue; [`NONE`] for none. Empty where there is none.
    urgent_queues: Vec<u32>,
    /// By urgent queue: its link.
    beside: Vec<u32>,
    /// What the last packet's sample told.
    told: Option<Feedback>,
    /// Links whose other ends are to be told of pauses; ports of which the next end is to be told; links and urgent queues with a first
    /// packet; what has left hosts' ports.
    frames: VecDeque<u32>,
    wakes: VecDeque<(u32, Time)>,
    firsts: VecDeque<(u32, First)>,
    left: VecDeque<(u32, P)>,
    /// What was dropped after it was accepted.
    dropped: VecDeque<P>,
    /// What was called back from a host's port.
    recalled: Vec<P>,
}

impl Port {
    /// Whether neither AQM nor limit nor pool has a say in a packet of `size`, and its time on the line is one product.
    #[inline(always)]
    fn decides_alone(&self, size: Bytes) -> bool {
        (self.held_packets < self.free_packets) & (self.held_bytes + size.get() <= u64::from(self.free_bytes))
    }

    /// Moves on past what has left by `now`.
    #[inline(always)]
    fn settle<P: Payload>(&mut self, store: &Store<P>, now: Time) {
        if self.free_at <= now {
            self.ring.settle_if(true);
            (self.held_bytes, self.held_packets) = (0, 0);
            return;
        }
        let horizon = now + self.delay;
        // Usually it ends before: at the latest the last packet leaves at `free_at`. A notification may have gone after it.
        while self.held_packets > 0 {
            let record = store.first_unsettled(&self.ring);
            if record.at > horizon {
                break;
            }
            self.held_bytes -= u64::from(record.packet.ip_bytes());
            self.held_packets -= 1;
            store.settle_one(&mut self.ring);
        }
    }

    fn held(&self) -> Backlog {
        Backlog { bytes: Bytes::new(self.held_bytes), packets: Packets::new(u64::from(self.held_packets)) }
    }

    #[inline(always)]
    fn far_end(&self) -> FarEnd {
        if self.far_end & SWITCH == 0 { FarEnd::Host(self.far_end) } else { FarEnd::Switch(self.far_end & !SWITCH) }
    }
}

/// The largest backlog, arriving packet included in its bytes, at which neither `limit` nor `aqm` has a say.
fn fast_path_backlog(limit: Limit, aqm: Option<&Aqm>) -> Backlog {
    let within_limit = match limit {
        Limit::Unlimited => Backlog::MAX,
        Limit::Packets(Packets::ZERO) => Backlog::EMPTY,
        Limit::Packets(most) => Backlog { packets: most - Packets::new(1), ..Backlog::MAX },
        Limit::Bytes(bytes) => Backlog { bytes, ..Backlog::MAX },
    };
    let within_aqm = aqm.map_or(Backlog::MAX, |aqm| aqm.indifferent_up_to().unwrap_or(Backlog::EMPTY));
    Backlog { bytes: within_limit.bytes.min(within_aqm.bytes), packets: within_limit.packets.min(within_aqm.packets) }
}

impl<P: Payload> Ports<P> {
    /// What the sample of the packet accepted last told, if it was sampled and there is congestion.
    #[inline(always)]
    pub(crate) fn take_told(&mut self) -> Option<Feedback> {
        if self.told.is_some() { self.told.take() } else { None }
    }

    /// The packet accepted last is a sample: the congestion point looks at the queue with it.
    #[inline(never)]
    fn sample(&mut self, now: Time, link: u32) {
        self.settle(now, link);
        let held = self.held(link);
        let (port, rules) = (&self.ports[link as usize], &mut self.rules[link as usize]);
        let Some(point) = &mut rules.congestion_point else { return };
        self.told = point.sample(held.bytes);
        rules.samples += Packets::new(u64::from(self.told.is_some()));
        rules.sample_beyond = port.accepted.bytes.get().saturating_add(point.interval());
    }

    /// From a departure at the port of `link` to the arrival at the far end.
    pub(crate) fn delay(&self, link: u32) -> Span {
        self.ports[link as usize].delay
    }

    /// A packet arrives at the port from outside. If it is accepted while the link is empty, the second value is for
    /// the link's entry in the agenda.
    #[inline(always)]
    pub(crate) fn offer(&mut self, now: Time, link: u32, packet: P) -> (Offered, Option<First>) {
        let ready = if self.ports[link as usize].jittery { self.ready(now, link) } else { now };
        self.admit(now, ready, link, packet)
    }

    /// The same where no port has what is offered wait.
    #[inline(always)]
    pub(crate) fn offer_at_once(&mut self, now: Time, link: u32, packet: P) -> (Offered, Option<First>) {
        debug_assert!(!self.ports[link as usize].jittery);
        self.admit(now, now, link, packet)
    }

    /// The packet that has just arrived goes on to this port; as [`offer`](Self::offer).
    #[inline(always)]
    pub(crate) fn forward(
        &mut self,
        now: Time,
        link: u32,
        &Arrived { position, ip_bytes, .. }: &Arrived,
    ) -> (Offered, Option<First>) {
        self.admit_from(now, now, link, ip_bytes, InPlace(position))
    }

    /// When a packet that is offered from outside may begin to leave.
    #[inline(never)]
    fn ready(&mut self, now: Time, link: u32) -> Time {
        let rules = &mut self.rules[link as usize];
        now + Span::from_ps(rules.waits.below(rules.jitter.as_ps() + 1))
    }

    /// Takes the packet, unless rules refuse it. It begins to leave when it is `ready` and all before it have left.
    #[inline(always)]
    fn admit(&mut self, now: Time, ready: Time, link: u32, packet: P) -> (Offered, Option<First>) {
        self.admit_from(now, ready, link, packet.ip_bytes(), ByValue(packet))
    }

    /// The same of a packet with so many IP bytes, wherever it is.
    #[inline(always)]
    fn admit_from(
        &mut self,
        now: Time,
        ready: Time,
        link: u32,
        ip_bytes: u32,
        mut source: impl Source<P>,
    ) -> (Offered, Option<First>) {
        let size = Bytes::new(u64::from(ip_bytes));
        let mut port = &mut self.ports[link as usize];
        let start = ready.max(port.free_at);
        let (departure, marked) = if port.decides_alone(size) {
            (later(start, wire_bytes(ip_bytes) * u64::from(port.ps_per_byte)), false)
        } else {
            let ecn_capable = source.packet(&mut self.store).ecn_capable();
            let (departure, marked) = match self.ask_rules(now, start, link, ip_bytes, ecn_capable) {
                Ok(answer) => answer,
                Err(reason) => return (Offered::Dropped(reason), None),
            };
            if marked {
                source.packet(&mut self.store).mark();
            }
            port = &mut self.ports[link as usize];
            // A line may take longer than time has room for.
            (departure.min(FAR), marked)
        };
        let is_first = port.ring.len() == 0;
        let arrival = later(departure, port.delay.as_ps());
        port.free_at = departure;
        port.held_bytes += size.get();
        port.held_packets += 1;
        port.accepted.bytes += size;
        port.queue_integral += u128::from(size.get()) * u128::from((departure - now).as_ps());
        source.write(&mut self.store, &mut port.ring, arrival);
        // Apart from the bytes: side by side they would be added as a vector, which takes longer.
        port.accepted.packets += Packets::new(1);
        let front = port.ring.front();
        if port.may_be_fullest((start - now).as_ps(), ip_bytes) {
            if port.quiet { self.look_at_quiet(now, link, ip_bytes) } else { self.look(now, link) }
        }
        let first = is_first.then_some(First { at: arrival, front });
        (Offered::Accepted { departure, marked }, first)
    }

    /// When the packet leaves and whether it is to be marked, or why it is dropped: where AQM, limit or pool have a say, or the
    /// line's time is no whole number of picoseconds.
    #[inline(never)]
    fn ask_rules(
        &mut self,
        now: Time,
        start: Time,
        link: u32,
        ip_bytes: u32,
        ecn_capable: bool,
    ) -> Result<(Time, bool), DropReason> {
        let size = Bytes::new(u64::from(ip_bytes));
        let mut verdict = Ok(false);
        if !self.is_on_fast_path(link, size) {
            verdict = self.judge(now, link, size, ecn_capable);
        }
        let pool = self.ports[link as usize].pool;
        if pool != NONE && verdict.is_ok() {
            if self.pool_admits(now, link, pool, size) {
                self.pools[pool as usize].pool.take(size);
            } else {
                verdict = Err(DropReason::Pool);
            }
        }
        self.note(link, size, verdict);
        let marked = verdict?;
        let (port, wire_bytes) = (&self.ports[link as usize], wire_bytes(ip_bytes));
        if port.ps_per_byte > 0 {
            return Ok((start + Span::from_ps(wire_bytes * u64::from(port.ps_per_byte)), marked));
        }
        Ok((self.finish(now, link, start, wire_bytes, size), marked))
    }

    /// Whether a packet of `size` may come in without asking AQM and limit.
    fn is_on_fast_path(&self, link: u32, size: Bytes) -> bool {
        let (held, fast_path) = (self.ports[link as usize].held(), self.rules[link as usize].fast_path);
        held.packets <= fast_path.packets && held.bytes + size <= fast_path.bytes
    }

    /// Counts what AQM, limit and pool have said of a packet.
    fn note(&mut self, link: u32, size: Bytes, verdict: Result<bool, DropReason>) {
        match verdict {
            Ok(true) => self.rules[link as usize].marked += Packets::new(1),
            Ok(false) => {}
            Err(reason) => self.refuse(link, reason, size),
        }
    }

    /// Where a link leads.
    pub(crate) fn far_end(&self, link: u32) -> FarEnd {
        self.ports[link as usize].far_end()
    }

    /// The first packet of `link` reaches the far end. Where a port is served, what is due by now has been
    /// [decided](Self::decide_before).
    #[inline(always)]
    pub(crate) fn arrive(&mut self, now: Time, link: u32) -> Arrived {
        let port = &mut self.ports[link as usize];
        debug_assert!(port.kind != Kind::Served || port.held_packets == 0 || port.free_at > now, "decided before");
        let position = port.ring.front();
        let record = self.store.record(position);
        debug_assert_eq!(record.at, now);
        let (ip_bytes, destination) = (record.packet.ip_bytes(), record.packet.destination());
        let unsettled = port.held_packets == port.ring.len();
        // A mask and no branch: at most links it is a toss-up, and a wrong guess costs more than the load.
        let left = u64::from(ip_bytes) & u64::from(unsettled).wrapping_neg();
        port.held_bytes -= left;
        port.held_packets -= u32::from(unsettled);
        if port.kind == Kind::PooledFifo {
            self.pools[port.pool as usize].pool.give_back(Bytes::new(left));
        }
        self.store.pop(&mut port.ring, unsettled);
        let next = (port.ring.len() > 0).then(|| {
            let front = port.ring.front();
            First { at: self.store.record(front).at, front }
        });
        Arrived { position, special: port.special, ip_bytes, destination, far_end: port.far_end(), next }
    }

    /// Asks for a port and its first packet, at the same time: the packet is not looked up in the port.
    #[inline(always)]
    pub(crate) fn prefetch(&self, link: u32, front: u32) {
        prefetch(&self.ports, link as usize);
        self.store.prefetch(front);
    }

    /// The packet that has just arrived.
    #[inline(always)]
    pub(crate) fn packet(&self, arrived: &Arrived) -> &P {
        self.packet_at(arrived.position)
    }

    /// The same, by its position.
    #[inline(always)]
    pub(crate) fn packet_at(&self, position: u32) -> &P {
        &self.store.record(position).packet
    }

    /// Has the network look at every packet that reaches a far end, as it does where more may happen on the wire than a delay.
    /// By port: whether nothing does.
    pub(crate) fn look_at_every_arrival(&mut self) -> Vec<bool> {
        self.looks_at_all = true;
        let is_plain = |port: &mut Port| !std::mem::replace(&mut port.special, true) && port.kind != Kind::Pausable;
        self.ports.iter_mut().map(is_plain).collect()
    }

    /// Whether all are computed ahead, and nothing but a delay happens on their wires, none samples and none adds waits.
    pub(crate) fn are_plain(&self) -> bool {
        let is_plain = |(port, rules): (&Port, &Rules)| {
            let is_fifo = matches!(port.kind, Kind::Fifo | Kind::PooledFifo);
            is_fifo && !port.special && !port.jittery && rules.congestion_point.is_none()
        };
        self.beside.is_empty() && self.ports.iter().zip(&self.rules).all(is_plain)
    }

    /// Number of links.
    pub(crate) fn len(&self) -> u32 {
        self.links
    }

    /// What the port holds.
    pub(crate) fn backlog(&mut self, now: Time, link: u32) -> Backlog {
        self.settle(now, link);
        self.held(link)
    }

    /// AQM and limit on a packet that they may object to: whether it is to be marked, or why it is dropped.
    fn judge(&mut self, now: Time, link: u32, size: Bytes, ecn_capable: bool) -> Result<bool, DropReason> {
        self.settle(now, link);
        if self.is_on_fast_path(link, size) {
            return Ok(false);
        }
        if self.rules[link as usize].wire != NONE && self.is_down(now, link) {
            return Err(DropReason::Outage);
        }
        let (port, rules) = (&self.ports[link as usize], &mut self.rules[link as usize]);
        let backlog = port.held();
        let verdict = rules.aqm.as_mut().map_or(Verdict::Pass, |aqm| {
            aqm.decide(&aqm::Arrival { now, size, backlog, idle_since: port.free_at, ecn_capable })
        });
        if verdict == Verdict::Drop {
            Err(DropReason::Aqm)
        } else if !rules.limit.admits(backlog, size) {
            Err(DropReason::Limit)
        } else {
            Ok(verdict == Verdict::Mark)
        }
    }

    /// Whether the pool takes a packet of `size` for this port. A yes to stale totals is a yes; before a no, first what
    /// left this port and then what left the whole switch is given back.
    fn pool_admits(&mut self, now: Time, link: u32, pool: u32, size: Bytes) -> bool {
        let admits =
            |ports: &Self| ports.pools[pool as usize].pool.admits(ports.ports[link as usize].held().bytes, size);
        if admits(self) {
            return true;
        }
        self.settle(now, link);
        if admits(self) {
            return true;
        }
        self.settle_all_of(now, pool);
        admits(self)
    }

    /// Makes exact what all ports of a pool hold.
    fn settle_all_of(&mut self, now: Time, pool: u32) {
        for i in 0..self.pools[pool as usize].links.len() {
            self.settle(now, self.pools[pool as usize].links[i]);
        }
    }

    #[cold]
    fn refuse(&mut self, link: u32, reason: DropReason, size: Bytes) {
        let rules = &mut self.rules[link as usize];
        rules.refused.bytes += size;
        rules.refused.packets += Packets::new(1);
        rules.dropped[reason as usize] += Packets::new(1);
    }

    /// Makes what is held exact: gives up what has left by `now`, departures at `now` included.
    #[inline(always)]
    fn settle(&mut self, now: Time, link: u32) {
        let port = &mut self.ports[link as usize];
        match port.kind {
            Kind::Fifo => port.settle(&self.store, now),
            Kind::PooledFifo => {
                let before = port.held_bytes;
                port.settle(&self.store, now);
                self.pools[port.pool as usize].pool.give_back(Bytes::new(before - port.held_bytes));
            }
            Kind::Pausable => {
                let before = port.held_packets;
                port.settle(&self.store, now);
                let left = before - port.held_packets;
                self.count_left(link, left);
            }
            Kind::Served => self.decide(now, link),
        }
    }

    /// What a settled port holds.
    fn held(&self, link: u32) -> Backlog {
        let port = &self.ports[link as usize];
        if port.kind == Kind::Served { self.served[port.served as usize].held } else { port.held() }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "identifiers of nodes and links are 32-bit in the plan")]
fn index(position: usize) -> u32 {
    position as u32
}
