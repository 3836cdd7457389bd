//! Connections by number, and the ends that live.
//!
//! A connection's number is its opener's node and a count of that node's own: it comes from the plan and from what the opener
//! saw, never from a shared counter, so that it is the same however a run is split.

use narrows_core::ring::Ring;
use narrows_core::tcp::Tallies;
use narrows_core::telemetry::Hop;
use narrows_core::transport::Endpoint;
use narrows_core::units::{Bytes, Time};
use narrows_network::{Entity, Network};
use narrows_plan::most_connections;

use crate::flows::Flow;
use crate::packet::{Packet, Recipient};

/// Labels of paths: with 2³ a flow finds one of its own among few paths, with 2¹⁶ every path of a large network.
const MIN_LABEL_BITS: u32 = 3;
const MAX_LABEL_BITS: u32 = 16;
/// Where a host opens no more connections than 2 to this, they have the usual numbers.
const USUAL_COUNT_BITS: u32 = 12;

/// The slot of an end that has never lived, and of one that lives no more.
const NEVER: u32 = u32::MAX;
const CLOSED: u32 = u32::MAX - 1;

/// How a run numbers its connections: 32 bits are divided between the opener and its count; where hosts choose their packets' paths,
/// a packet has the label of its path in the count's highest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbering {
    count_bits: u32,
    /// Of the count.
    mask: u32,
    /// Of the label.
    labels: u32,
}

impl Default for Numbering {
    fn default() -> Numbering {
        Numbering::USUAL
    }
}

impl Numbering {
    /// That of nearly all plans, so that their numbers, and what is drawn by them, are the same.
    const USUAL: Numbering = Numbering::with(20);

    const fn with(count_bits: u32) -> Numbering {
        Numbering { count_bits, mask: (1 << count_bits) - 1, labels: 0 }
    }

    /// For so many hosts, where packets have labels. Up to 2¹² connections of a host have the usual numbers, by which a flow takes the
    /// path that it would take without. Otherwise there are as many labels as leave each host so many connections, up to
    /// [`MAX_LABEL_BITS`]; fewer connections than that where there would be less than [`MIN_LABEL_BITS`].
    pub(crate) fn labelled(hosts: u32, most_opened: u64) -> Numbering {
        let usual = Numbering::of(hosts, most_opened);
        let needed = most_opened.next_power_of_two().ilog2().max(USUAL_COUNT_BITS);
        let is_usual = usual == Numbering::USUAL && needed == USUAL_COUNT_BITS;
        let base = if is_usual { usual } else { Numbering::with(most_connections(hosts).ilog2()) };
        let bits = base.count_bits.saturating_sub(needed).clamp(MIN_LABEL_BITS, MAX_LABEL_BITS);
        let mask = base.mask >> bits;
        Numbering { count_bits: base.count_bits, mask, labels: base.mask & !mask }
    }

    /// For so many hosts, of which each opens up to so many connections at least.
    pub(crate) fn of(hosts: u32, most_opened: u64) -> Numbering {
        let usual = Numbering::USUAL;
        if hosts.saturating_sub(1) >> (32 - usual.count_bits) == 0 && most_opened <= u64::from(usual.per_host()) {
            return usual;
        }
        Numbering::with(most_connections(hosts).ilog2())
    }

    /// The bits of a packet's number that label its path; none unless hosts choose it.
    pub(crate) const fn labels(self) -> u32 {
        self.labels
    }

    /// The number of the connection of a packet with this one.
    pub(crate) const fn unlabelled(self, number: u32) -> u32 {
        number & !self.labels
    }

    /// Connections that one host may open.
    pub(crate) const fn per_host(self) -> u32 {
        self.mask + 1
    }

    /// The node that opened a connection.
    pub(crate) const fn opener(self, connection: u32) -> u32 {
        connection >> self.count_bits
    }

    /// Which of its opener's connections it is.
    pub(crate) const fn count(self, connection: u32) -> u32 {
        connection & self.mask
    }

    /// The end of a connection that stands on `host`.
    pub(crate) const fn side(self, host: u32, connection: u32) -> Side {
        if self.opener(connection) == host { Side::Opener } else { Side::Other }
    }
}

/// Which end of a connection: the opener's or the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Opener = 0,
    Other = 1,
}

impl Side {
    /// The other one.
    pub(crate) const fn other(self) -> Side {
        match self {
            Side::Opener => Side::Other,
            Side::Other => Side::Opener,
        }
    }
}

/// A flow that an end is sending or awaiting, and the tallies when it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Current {
    pub(crate) flow: u32,
    pub(crate) base: Tallies,
}

impl Current {
    /// Takes what the end waited for into the flow. Of a handshake the opener's SYNs count, which are also waited for while it
    /// is not complete.
    pub(crate) fn note_waits(&mut self, flow: &mut Flow, endpoint: &Endpoint, tallies: &Tallies) {
        flow.rto_wait += tallies.rto_wait - std::mem::replace(&mut self.base.rto_wait, tallies.rto_wait);
        if !endpoint.is_established() {
            flow.syn_retransmits = flow.syn_retransmits.max(endpoint.syn_retransmits());
        }
    }
}

/// Where an end stands and what it runs; all of it indices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) host: u32,
    /// The host's port.
    pub(crate) port: u32,
    /// The plan's traffic entry.
    pub(crate) traffic: u32,
    pub(crate) stack: u32,
    /// Its peer, as packets name it.
    pub(crate) to: Recipient,
    /// Of ports with several classes: which one its packets are of.
    pub(crate) service_class: u8,
    /// Whether what it sends is not simply handed to the port: it is not TCP; or its host's adapter has a limiter towards the
    /// peer, once it was notified of congestion; or what it sends carries telemetry back.
    pub(crate) is_handed_specially: bool,
}

impl Place {
    #[inline(always)]
    pub(crate) fn peer(&self) -> u32 {
        self.to.host()
    }

    /// Which end of the connection stands here.
    #[inline(always)]
    pub(crate) fn side(&self) -> Side {
        self.to.side().other()
    }
}

/// The departure of a packet that nobody knows yet: a time when something is waited for, and after every run.
pub(crate) const UNTOLD: Time = Time::from_ps(Time::NEVER.as_ps() - 1);

/// One end of a connection on its host.
#[derive(Clone, Debug)]
// What each packet needs comes first, lest it lie in many cache lines.
#[repr(C)]
pub(crate) struct End {
    pub(crate) connection: u32,
    /// Tag of the latest flow of which this end has heard all that its first segments tell: a request came, or the first byte
    /// that it awaits. An opener that awaits nothing hears of none.
    pub(crate) latest: u32,
    pub(crate) place: Place,
    /// What of this connection waits in the host's port.
    pub(crate) waiting: Waiting,
    /// What the agenda was last told, to tell it only of changes.
    pub(crate) armed_timer: Time,
    pub(crate) armed_pacing: Time,
    pub(crate) endpoint: Endpoint,
    /// The flow whose bytes this end sends.
    pub(crate) sending: Option<Current>,
    /// The flow whose bytes this end awaits.
    pub(crate) receiving: Option<Current>,
    /// The telemetry of the packet of data that came last, until an acknowledgement carries it back.
    pub(crate) telemetry: Option<Vec<Hop>>,
}

impl End {
    /// The machine, and what it is driven with.
    #[inline(always)]
    pub(crate) fn split(&mut self) -> (&mut Endpoint, Outlet<'_>) {
        let End { endpoint, connection, place, sending, waiting, armed_timer, armed_pacing, .. } = self;
        let sends = sending.is_some();
        (endpoint, Outlet { connection: *connection, place, sends, waiting, armed_timer, armed_pacing })
    }
}

/// What an end's machine is driven with.
pub(crate) struct Outlet<'a> {
    pub(crate) connection: u32,
    pub(crate) place: &'a Place,
    /// A flow's bytes.
    pub(crate) sends: bool,
    pub(crate) waiting: &'a mut Waiting,
    pub(crate) armed_timer: &'a mut Time,
    pub(crate) armed_pacing: &'a mut Time,
}

impl Outlet<'_> {
    /// The number of its timer; the next one is pacing's.
    #[inline(always)]
    fn timer(&self) -> u64 {
        (u64::from(self.connection) << 1 | self.place.side() as u64) << 1
    }

    /// Tells the agenda when the machine's timer expires, if that is new.
    #[inline(always)]
    pub(crate) fn arm_timer(&mut self, slot: u32, timer: Time, network: &mut Network<Packet>) {
        if timer != *self.armed_timer {
            *self.armed_timer = timer;
            network.arm(Entity::timer(self.timer(), slot << 1), timer);
        }
    }

    /// The same of when pacing, or the host's port, lets the next packet go.
    #[inline(always)]
    pub(crate) fn arm_pacing(&mut self, slot: u32, pacing: Time, network: &mut Network<Packet>) {
        if pacing != *self.armed_pacing {
            *self.armed_pacing = pacing;
            network.arm(Entity::timer(self.timer() | 1, slot << 1 | 1), pacing);
        }
    }
}

/// Departures and IP bytes of what waits in a host's port, and behind that in its adapter's limiter. Where a port tells of
/// departures they are [`UNTOLD`] until it does, and in a limiter they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    packets: Ring<(Time, u32)>,
    bytes: u32,
    /// Those in the limiter: the last.
    behind: u32,
}

impl Waiting {
    /// A data packet was accepted by the host's port and will leave it at `departure`.
    #[inline(always)]
    pub(crate) fn push(&mut self, departure: Time, ip_bytes: u32) {
        self.packets.push_back((departure, ip_bytes));
        self.bytes += ip_bytes;
    }

    /// A data packet waits in the limiter.
    pub(crate) fn push_behind(&mut self, ip_bytes: u32) {
        self.push(UNTOLD, ip_bytes);
        self.behind += 1;
    }

    /// Whether data waits in the limiter.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind > 0
    }

    /// The first of those goes to the port, and will leave it at `departure`.
    pub(crate) fn release(&mut self, departure: Time) {
        let place = self.packets.len() - self.behind as usize;
        self.packets[place].0 = departure;
        self.behind -= 1;
    }

    /// The port tells that the first data packet of which it had not has left.
    pub(crate) fn note_left(&mut self, now: Time) {
        if let Some((departure, _)) = self.packets.iter_mut().find(|(departure, _)| *departure == UNTOLD) {
            *departure = now;
        }
    }

    /// The port takes back when the last data packet leaves of which it had told.
    pub(crate) fn note_recalled(&mut self) {
        if let Some((departure, _)) = self.packets.iter_mut().rfind(|(departure, _)| *departure != UNTOLD) {
            *departure = UNTOLD;
        }
    }

    /// How much waits now.
    #[inline]
    pub(crate) fn bytes(&mut self, now: Time) -> Bytes {
        self.forget_departed(now);
        Bytes::new(self.bytes.into())
    }

    /// When less waits. To be asked after [`bytes`](Self::bytes).
    pub(crate) fn next_departure(&self) -> Time {
        self.packets.front().map_or(Time::ZERO, |&(departure, _)| departure)
    }

    #[inline]
    fn forget_departed(&mut self, now: Time) {
        while let Some(&(departure, bytes)) = self.packets.front() {
            if departure > now {
                break;
            }
            self.packets.pop_front();
            self.bytes -= bytes;
        }
    }
}

/// All connections that a part has an end of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections {
    /// By opener, then count: the slots of both ends.
    numbered: Vec<Vec<[u32; 2]>>,
    pub(crate) numbering: Numbering,
    ends: Vec<Option<End>>,
    free: Vec<u32>,
}

impl Connections {
    pub(crate) fn new(nodes: usize, numbering: Numbering) -> Connections {
        Connections { numbered: vec![Vec::new(); nodes], numbering, ends: Vec::new(), free: Vec::new() }
    }

    /// The number of the next connection that `host` opens; `None` if it has opened as many as there are numbers.
    pub(crate) fn open(&mut self, host: u32) -> Option<u32> {
        let own = &mut self.numbered[host as usize];
        let count = u32::try_from(own.len()).ok().filter(|&count| count < self.numbering.per_host())?;
        own.push([NEVER, NEVER]);
        Some(host << self.numbering.count_bits | count)
    }

    /// Both slots of a connection. Those that another part opens are not counted here: their table grows on demand.
    fn entry(&mut self, connection: u32) -> &mut [u32; 2] {
        let own = &mut self.numbered[self.numbering.opener(connection) as usize];
        let count = self.numbering.count(connection) as usize;
        if own.len() <= count {
            own.resize(count + 1, [NEVER, NEVER]);
        }
        &mut own[count]
    }

    /// The slot of an end, if it lives.
    #[inline]
    pub(crate) fn slot(&self, connection: u32, side: Side) -> Option<u32> {
        let own = &self.numbered[self.numbering.opener(connection) as usize];
        let slot = own.get(self.numbering.count(connection) as usize)?[side as usize];
        (slot < CLOSED).then_some(slot)
    }

    /// Whether an end has lived and is gone.
    pub(crate) fn is_closed(&mut self, connection: u32, side: Side) -> bool {
        self.entry(connection)[side as usize] == CLOSED
    }

    pub(crate) fn insert(&mut self, endpoint: Endpoint, connection: u32, place: Place) -> u32 {
        let side = place.side();
        let end = End {
            endpoint,
            connection,
            place,
            sending: None,
            receiving: None,
            latest: if side == Side::Opener { u32::MAX } else { 0 },
            waiting: Waiting::default(),
            telemetry: None,
            armed_timer: Time::NEVER,
            armed_pacing: Time::NEVER,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.ends[slot as usize] = Some(end);
                slot
            }
            None => {
                self.ends.push(Some(end));
                u32::try_from(self.ends.len() - 1).expect("slots are bounded by connection numbers")
            }
        };
        self.entry(connection)[side as usize] = slot;
        slot
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        let end = self.ends[slot as usize].take().expect("only a living end is removed");
        let side = end.place.side();
        self.entry(end.connection)[side as usize] = CLOSED;
        self.free.push(slot);
    }

    #[inline]
    pub(crate) fn end(&mut self, slot: u32) -> &mut End {
        self.ends[slot as usize].as_mut().expect("slots in use hold an end")
    }

    /// The end, or `None` if it is gone.
    pub(crate) fn end_if_alive(&mut self, slot: u32) -> Option<&mut End> {
        self.ends[slot as usize].as_mut()
    }

    /// The living ends on `host` whose peer is `peer`.
    pub(crate) fn between(&mut self, host: u32, peer: u32) -> impl Iterator<Item = &mut End> {
        self.ends.iter_mut().flatten().filter(move |end| (end.place.host, end.place.peer()) == (host, peer))
    }

    /// Every living end, by number of its connection, opener's first.
    pub(crate) fn living_slots(&self) -> Vec<u32> {
        let slots = self.numbered.iter().flatten().flatten().copied();
        slots.filter(|&slot| slot < CLOSED).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_plan::MAX_HOSTS;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_the_usual_ones_where_these_suffice() {
        for (hosts, opened) in [(1, 0), (2, 1 << 20), (4_096, 1 << 20)] {
            assert_eq!(Numbering::of(hosts, opened), Numbering::USUAL);
        }
        let per_host = |hosts, opened| Numbering::of(hosts, opened).per_host();
        assert_eq!(per_host(4_097, 1), 1 << 19);
        assert_eq!(per_host(MAX_HOSTS, 1), 1 << 18);
        assert_eq!(per_host(4_096, (1 << 20) + 1), 1 << 20, "as many as there are");
        assert_eq!([per_host(1, 1 << 21), per_host(2, 1 << 21), per_host(48, 1 << 21)], [1 << 31, 1 << 31, 1 << 26]);
    }

    #[test]
    fn labels_take_what_counts_leave() {
        let bits = |hosts, opened| Numbering::labelled(hosts, opened).labels().count_ones();
        assert_eq!([bits(4, 1), bits(4_096, 1 << 12), bits(16, 5_000), bits(256, 1 << 17)], [8, 8, 15, 7]);
        assert_eq!([bits(4_096, 1 << 17), bits(MAX_HOSTS, 1 << 15)], [3, 3]);
        assert_eq!(Numbering::labelled(4_096, 1 << 12).count_bits, Numbering::USUAL.count_bits);
        // Fewer connections than would be wanted, and no fewer labels.
        assert_eq!((bits(4_096, 1 << 20), Numbering::labelled(4_096, 1 << 20).per_host()), (3, 1 << 17));
        for (hosts, opened) in [(1, 5), (4, 1), (16, 200_000), (4_096, 1 << 17), (MAX_HOSTS, 1_000)] {
            let numbering = Numbering::labelled(hosts, opened);
            assert!(opened <= u64::from(numbering.per_host()));
            let labels = numbering.labels();
            for (opener, count) in [(0, 0), (hosts - 1, numbering.per_host() - 1), (hosts / 2, 5)] {
                let connection = opener << numbering.count_bits | count;
                assert_eq!(connection & labels, 0);
                for label in [0, labels, labels & labels.wrapping_neg()] {
                    let number = connection | label;
                    assert_eq!((numbering.opener(number), numbering.count(number)), (opener, count));
                    assert_eq!(numbering.unlabelled(number), connection);
                }
            }
        }
    }

    #[test]
    fn pools_of_kept_connections_count() {
        let text = "[topology.star]\nhosts = 3\n[[traffic]]\nconnections = { persistent = { pool = 2 } }\n\
                    arrivals = { poisson = { rate = \"1000/s\" } }\nsize = { fixed = \"1KB\" }\nbetween = \"all\"\n[[arm]]\n\
                    name = \"A\"\ncc = \"cubic\"\n[run]\nend = \"1s\"\n";
        let experiment = narrows_scenario::load_str(text, &Default::default(), &Default::default());
        let mut plan = experiment.unwrap_or_else(|error| panic!("{}", error.render())).plans.remove(0);
        let per_host =
            |plan: &narrows_plan::Plan| crate::simulation::survey(plan, 1).expect("it is small").numbering.per_host();
        assert_eq!(per_host(&plan), 1 << 20);
        plan.traffic[0].connections = narrows_plan::Connections::Persistent { pool: 1 << 19 };
        assert_eq!(per_host(&plan), 1 << 30);
    }

    proptest! {
        #[test]
        fn a_number_says_who_opened_the_connection_and_which(
            hosts in 1..=MAX_HOSTS, host in any::<prop::sample::Index>(), count in any::<prop::sample::Index>(),
            opened in 0..1_u64 << 31,
        ) {
            let numbering = Numbering::of(hosts, opened);
            let host = u32::try_from(host.index(hosts as usize)).unwrap();
            let count = u32::try_from(count.index(numbering.per_host() as usize)).unwrap();
            let number = host << numbering.count_bits | count;
            prop_assert_eq!((numbering.opener(number), numbering.count(number)), (host, count));
            prop_assert_eq!(numbering.side(host, number), Side::Opener);
            prop_assert_eq!(numbering.side((host + 1) % MAX_HOSTS, number), Side::Other);
            // Marks of slots are no numbers of slots, and these are fewer than connections.
            prop_assert!(numbering.per_host() >= most_connections(hosts).min(1 << 20));
        }
    }
}
