//! A host's reaction points: notifications come in, rates of connections go out. No sockets and no clock: whoever drives it has
//! both.
//!
//! The control law is the simulator's, [`NearSource`]. What differs is what it knows of a connection. A modelled sender tells every
//! packet; a kernel's is asked what it has sent, whenever a notification or a timer comes, so that the cycle in bytes ends up
//! to a timer late. And what it sent recently is the kernel's last rate sample, of an RTT.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use narrows_core::rng::{SmallStream, mix};
use narrows_core::tcp::near_source::{NearSource, ReactionPoint};
use narrows_core::units::{Bytes, Rate, Span, Time};
use narrows_wire::admission::is_in_flight;
use narrows_wire::{Admission, Flow, Refusal, Tally};

/// A connection that cannot be reached now is looked for again after this.
const AGAIN: Span = Span::from_ms(20);
/// So often connections are looked for at the end: twice for those that have ended, and once more for those that end meanwhile.
const LOOKS: usize = 3;
/// Most that is counted as sent at once, as a modelled sender counts: a cycle in bytes is longer, and none is left out.
const PACKET: u64 = 1_500;

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Its oldest byte that is not acknowledged.
    pub unacknowledged: u32,
    /// The byte that it sends next.
    pub next: u32,
    /// Payload bytes sent so far, those retransmitted included.
    pub sent: u64,
    /// How fast it went recently.
    pub recent: Rate,
}

/// What asking for a connection came to.
#[derive(Debug)]
pub enum Reached<L> {
    /// Here it is.
    Here(L),
    /// There is none: it was looked for just now.
    Gone,
    /// None is known. One that was lent before has ended; one that was not may have begun since they were looked for.
    Unknown,
    /// It may be there, and cannot be reached now.
    NotNow,
}

/// The host's own connections.
pub trait Connections {
    /// One of them, for a moment.
    type Lent: Lent;
    /// The one between these ends.
    fn lend(&mut self, flow: &Flow) -> Reached<Self::Lent>;
    /// Looks for all of them anew. One that has ended and was lent before is unknown after it was looked for twice.
    fn look_again(&mut self);
    /// The connection with this cookie is held from now on; else, it would be held to this rate, or to none.
    fn remember(&mut self, cookie: u64, before: Option<Rate>);
    /// It is held no more, or has ended: nothing need be kept of it.
    fn forget(&mut self, cookie: u64);
}

/// A connection in hand. `None` and `false` where it has ended.
pub trait Lent {
    /// What no other connection is called, now or later.
    fn cookie(&self) -> u64;
    /// How it stands.
    fn look(&self) -> Option<Look>;
    /// The rate that it is held to, by whomever.
    fn held(&self) -> Option<Rate>;
    /// Holds it to a rate from now on; `None` lets go.
    fn hold(&self, rate: Option<Rate>) -> bool;
}

/// See the [module](self).
#[derive(Debug)]
pub struct Reactor<C> {
    admission: Admission,
    connections: C,
    /// The rate of the host's own link.
    line: Rate,
    seed: u64,
    held: BTreeMap<Flow, Held>,
    /// When timers of those expire.
    due: BTreeSet<(Time, Flow)>,
    tally: Tally,
}

#[derive(Debug)]
struct Held {
    cookie: u64,
    near: NearSource,
    point: ReactionPoint,
    /// What had been sent when it was looked at last.
    sent: u64,
    /// The limit, as the connection was told last; `None` before it was told one.
    rate: Option<Rate>,
    /// What it was told: the limit, or what another holds it to, if that is less.
    told: Option<Rate>,
    /// What others hold it to.
    others: Option<Rate>,
    /// Where it stands in the order of timers.
    due: Time,
}

impl<C: Connections> Reactor<C> {
    /// Nothing is held.
    pub fn new(admission: Admission, connections: C, line: Rate, seed: u64) -> Reactor<C> {
        Reactor {
            admission,
            connections,
            line,
            seed,
            held: BTreeMap::new(),
            due: BTreeSet::new(),
            tally: Tally::default(),
        }
    }

    /// The host's connections.
    pub fn connections(&mut self) -> &mut C {
        &mut self.connections
    }

    /// Who is believed, to change it.
    pub fn admission(&mut self) -> &mut Admission {
        &mut self.admission
    }

    /// What became of notifications so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The connections that are held, and their rates.
    pub fn held(&self) -> impl Iterator<Item = (&Flow, Rate)> {
        self.held.iter().filter_map(|(flow, held)| Some((flow, held.rate?)))
    }

    /// When [`Reactor::tick`] has something to do next; [`Time::NEVER`] if nothing is held.
    pub fn deadline(&self) -> Time {
        self.due.first().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// A datagram has come to the notifications' port from `from` with this hop limit left, at `now`, when the host's calendar
    /// showed `now_ns`. `point` says how a connection reacts, `None` if it does not listen.
    ///
    /// # Errors
    /// Why it changed nothing.
    pub fn take(
        &mut self,
        bytes: &[u8],
        (from, hop_limit): (IpAddr, u8),
        (now, now_ns): (Time, u64),
        point: impl Fn(&Flow) -> Option<ReactionPoint>,
    ) -> Result<Flow, Refusal> {
        let outcome = self.react(bytes, (from, hop_limit), (now, now_ns), point);
        self.tally.count(&outcome);
        outcome
    }

    fn react(
        &mut self,
        bytes: &[u8],
        (from, hop_limit): (IpAddr, u8),
        (now, now_ns): (Time, u64),
        point: impl Fn(&Flow) -> Option<ReactionPoint>,
    ) -> Result<Flow, Refusal> {
        let said = self.admission.admit(bytes, from, hop_limit, now_ns)?;
        let flow = said.flow;
        let point = point(&flow).ok_or(Refusal::UnknownFlow)?;
        let lent = match self.connections.lend(&flow) {
            Reached::Here(lent) => lent,
            Reached::Gone => return Err(Refusal::UnknownFlow),
            Reached::Unknown | Reached::NotNow => return Err(Refusal::NotNow),
        };
        let look = lent.look().ok_or(Refusal::UnknownFlow)?;
        if !is_in_flight(said.seq, said.payload, look.unacknowledged, look.next) {
            return Err(Refusal::NotInFlight);
        }
        // Another connection between the same ends is another.
        let mut held = match self.held.remove(&flow) {
            Some(held) if held.cookie == lent.cookie() => held,
            before => {
                if let Some(before) = before {
                    self.due.remove(&(before.due, flow));
                    self.connections.forget(before.cookie);
                }
                let number = u64::from(said.seq) << 32 | u64::from(flow.source.port()) << 16;
                let near = NearSource::new(SmallStream::new(mix(self.seed ^ number)));
                let (cookie, others) = (lent.cookie(), lent.held());
                // Before anything is done to it: who comes after this process must know.
                self.connections.remember(cookie, others);
                Held { cookie, near, point, sent: look.sent, rate: None, told: others, others, due: Time::NEVER }
            }
        };
        held.advance(now, &look, self.line);
        held.near.notify_sending(now, said.feedback, look.recent, self.line, &held.point);
        self.keep(now, flow, held, &lent);
        Ok(flow)
    }

    /// Lets the timers expire that are due by `now`.
    pub fn tick(&mut self, now: Time) {
        while let Some(&(at, flow)) = self.due.first().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, flow));
            let Some(mut held) = self.held.remove(&flow) else { continue };
            held.due = Time::NEVER;
            match self.connections.lend(&flow) {
                Reached::Here(lent) if lent.cookie() == held.cookie => match lent.look() {
                    Some(look) => {
                        held.advance(now, &look, self.line);
                        self.keep(now, flow, held, &lent);
                    }
                    None => {
                        // It has ended. Its process has it open still, and may begin another with it.
                        held.let_go(&lent);
                        self.connections.forget(held.cookie);
                    }
                },
                Reached::Here(_) | Reached::Gone | Reached::Unknown => self.connections.forget(held.cookie),
                Reached::NotNow => self.insert(flow, Held { due: now + AGAIN, ..held }),
            }
        }
    }

    /// Tells the connection its rate, and remembers it as long as there is one.
    fn keep(&mut self, now: Time, flow: Flow, mut held: Held, lent: &C::Lent) {
        self.due.remove(&(held.due, flow));
        let found = lent.held();
        if found != held.told {
            // Its own process, or somebody else, holds it to another rate since: that one counts.
            held.others = found;
            self.connections.remember(held.cookie, found);
        }
        held.rate = held.near.rate();
        let told = [held.rate, held.others].into_iter().flatten().min();
        let is_told = told == found || lent.hold(told);
        // As the host has it: it may round.
        held.told = lent.held();
        if held.rate.is_none() && is_told {
            self.connections.forget(held.cookie);
            return;
        }
        // One that could not be let go is tried again.
        held.due = held.near.deadline().min(if is_told { Time::NEVER } else { now + AGAIN });
        self.insert(flow, held);
    }

    fn insert(&mut self, flow: Flow, held: Held) {
        self.due.insert((held.due, flow));
        self.held.insert(flow, held);
    }

    /// Lets go of every connection; how many could not be reached.
    pub fn release(&mut self) -> usize {
        self.due.clear();
        let mut held = std::mem::take(&mut self.held);
        for _ in 0..LOOKS {
            if held.is_empty() {
                break;
            }
            self.connections.look_again();
            held.retain(|flow, held| {
                let is_free = match self.connections.lend(flow) {
                    Reached::Here(lent) if lent.cookie() == held.cookie => held.let_go(&lent),
                    Reached::Here(_) | Reached::Gone | Reached::Unknown => true,
                    Reached::NotNow => false,
                };
                if is_free {
                    self.connections.forget(held.cookie);
                }
                !is_free
            });
        }
        held.len()
    }
}

impl Held {
    /// Holds the connection to what others hold it to; whether it is let go.
    fn let_go(&self, lent: &impl Lent) -> bool {
        // What another has set since, stays.
        lent.held() != self.told || lent.hold(self.others)
    }

    /// What happened to the connection since it was looked at last.
    fn advance(&mut self, now: Time, look: &Look, line: Rate) {
        self.near.catch_up(now, line, &self.point);
        let mut sent = look.sent.saturating_sub(self.sent);
        self.sent = look.sent;
        while sent > 0 {
            let chunk = sent.min(PACKET);
            self.near.on_sent(now, Bytes::new(chunk), line, &self.point);
            sent -= chunk;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use narrows_wire::notification::HOP_LIMIT;
    use narrows_wire::{Key, Notification, Sender};
    use proptest::prelude::*;

    use super::*;

    const LINE: Rate = Rate::from_mbps(100);
    const NOW_NS: u64 = 1_767_225_600_000_000_000;
    const SWITCH: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 254));

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    enum State {
        #[default]
        Here,
        Gone,
        Unknown,
        NotNow,
        /// Its process has it open still.
        Ended,
    }

    /// One connection, as a kernel would have it.
    #[derive(Debug, Default)]
    struct Kernel {
        sent: u64,
        /// The option of its socket.
        held: Option<Rate>,
        state: State,
        cookie: u64,
        lent: u32,
        /// How often all were looked for; then it is known that this has ended.
        looks: usize,
        known_from: Option<usize>,
        /// What is remembered, by cookie.
        remembered: BTreeMap<u64, Option<Rate>>,
    }

    #[derive(Debug, Default, Clone)]
    struct Host(Rc<RefCell<Kernel>>);

    fn flow() -> Flow {
        Flow { source: ([192, 0, 2, 1], 40_000).into(), destination: ([192, 0, 2, 2], 5_001).into() }
    }

    impl Connections for Host {
        type Lent = Host;
        fn lend(&mut self, wanted: &Flow) -> Reached<Host> {
            self.0.borrow_mut().lent += 1;
            match self.0.borrow().state {
                _ if *wanted != flow() => Reached::Gone,
                State::Here | State::Ended => Reached::Here(self.clone()),
                State::Gone => Reached::Gone,
                State::Unknown => Reached::Unknown,
                State::NotNow => Reached::NotNow,
            }
        }
        fn look_again(&mut self) {
            let mut host = self.0.borrow_mut();
            host.looks += 1;
            if host.known_from == Some(host.looks) {
                host.state = State::Unknown;
            }
        }
        fn remember(&mut self, cookie: u64, before: Option<Rate>) {
            self.0.borrow_mut().remembered.insert(cookie, before);
        }
        fn forget(&mut self, cookie: u64) {
            self.0.borrow_mut().remembered.remove(&cookie).expect("it is remembered");
        }
    }

    impl Lent for Host {
        fn cookie(&self) -> u64 {
            self.0.borrow().cookie
        }
        fn look(&self) -> Option<Look> {
            let recent = Rate::from_mbps(80);
            let is_open = self.0.borrow().state != State::Ended;
            is_open.then(|| Look { unacknowledged: 1_000, next: 100_000, sent: self.0.borrow().sent, recent })
        }
        fn held(&self) -> Option<Rate> {
            self.0.borrow().held
        }
        fn hold(&self, rate: Option<Rate>) -> bool {
            // Linux has whole bytes a second.
            self.0.borrow_mut().held = rate.map(|rate| Rate::from_bps(rate.as_bps() / 8 * 8));
            true
        }
    }

    struct World {
        host: Host,
        reactor: Reactor<Host>,
        said: u64,
    }

    fn key() -> Key {
        Key::new([3; 32])
    }

    impl World {
        fn new() -> World {
            let host = Host::default();
            let hosts = [flow().source.ip(), [192, 0, 2, 9].into()];
            let senders = hosts.map(|host| ((7, host), Sender { address: SWITCH, keys: key().into() })).into();
            let reactor = Reactor::new(Admission::new(senders, 100_000_000), host.clone(), LINE, 1);
            World { host, reactor, said: 0 }
        }

        fn told(&mut self, now: Time, flow: Flow, seq: u32) -> Result<Flow, Refusal> {
            self.said += 1;
            let said = Notification {
                sender: 7,
                sent_ns: NOW_NS + now.as_ns() + self.said,
                feedback: 32,
                offset: 0,
                growth: 0,
                flow,
                seq,
                payload: 1_448,
            };
            let now_ns = NOW_NS + now.as_ns();
            self.reactor.take(&said.seal(&key()), (SWITCH, HOP_LIMIT), (now, now_ns), |_| Some(ReactionPoint::SOFTWARE))
        }

        fn last_told(&self) -> Option<Rate> {
            self.host.0.borrow().held
        }
    }

    #[test]
    fn a_notification_holds_a_connection_below_what_it_did_and_recovery_lets_it_go() {
        let mut world = World::new();
        assert_eq!(world.reactor.deadline(), Time::NEVER);
        assert_eq!(world.told(Time::from_ns(1), flow(), 50_000), Ok(flow()));
        assert_eq!(world.last_told(), Some(Rate::from_mbps(60)), "80 less 32/128");
        assert_eq!(world.reactor.held().count(), 1);
        // Nothing but its timer moves it, which it must wait for.
        let mut rates = vec![Rate::from_mbps(60)];
        while world.reactor.deadline() < Time::NEVER {
            let at = world.reactor.deadline();
            world.host.0.borrow_mut().sent += 3_000;
            world.reactor.tick(at);
            rates.extend(world.last_told());
        }
        assert!(rates.is_sorted() && rates.len() > 5, "{rates:?}");
        assert_eq!((world.last_told(), world.reactor.held().count()), (None, 0));
        assert_eq!(world.reactor.tally().taken, 1);
    }

    #[test]
    fn what_was_sent_counts_towards_recovery() {
        let timers = |per_tick: u64| {
            let mut world = World::new();
            world.told(Time::from_ns(1), flow(), 50_000).unwrap();
            (0..)
                .take_while(|_| {
                    let at = world.reactor.deadline();
                    world.host.0.borrow_mut().sent += per_tick;
                    world.reactor.tick(at);
                    at < Time::NEVER
                })
                .count()
        };
        assert!(timers(150_000) < timers(0), "each timer, a cycle in bytes goes by as well");
    }

    #[test]
    fn every_cycle_that_went_by_between_two_looks_counts() {
        let mut world = World::new();
        world.told(Time::from_ns(1), flow(), 50_000).unwrap();
        // Seven cycles of 150 KB and their jitter, before the first timer: fast recovery is over.
        world.host.0.borrow_mut().sent += 7 * 172_500;
        world.reactor.tick(world.reactor.deadline());
        assert!(world.last_told() > Some(Rate::from_mbps(79)), "{:?} of 80", world.last_told());
    }

    #[test]
    fn who_held_a_connection_before_holds_it_still() {
        let mut world = World::new();
        world.host.0.borrow_mut().held = Some(Rate::from_mbps(50));
        world.told(Time::from_ns(1), flow(), 50_000).unwrap();
        assert_eq!(world.last_told(), Some(Rate::from_mbps(50)));
        (0..9).for_each(|_| world.told(Time::from_ns(1), flow(), 50_000).map(drop).unwrap());
        assert!(world.last_told() < Some(Rate::from_mbps(10)));
        // It sets itself another in between: that one is put back.
        world.host.0.borrow_mut().held = Some(Rate::from_mbps(40));
        world.told(Time::from_ns(1), flow(), 50_000).unwrap();
        assert!(world.last_told() < Some(Rate::from_mbps(10)));
        assert_eq!(world.host.0.borrow().remembered[&0], Some(Rate::from_mbps(40)));
        assert_eq!(world.reactor.release(), 0);
        assert_eq!(world.last_told(), Some(Rate::from_mbps(40)));
        assert_eq!(world.reactor.deadline(), Time::NEVER);
    }

    #[test]
    fn what_is_not_believed_changes_nothing() {
        let mut world = World::new();
        let other = Flow { source: ([192, 0, 2, 9], 40_000).into(), ..flow() };
        assert_eq!(world.told(Time::from_ns(1), other, 50_000), Err(Refusal::UnknownFlow));
        assert_eq!(world.told(Time::from_ns(1), flow(), 100_000), Err(Refusal::NotInFlight), "not sent yet");
        assert_eq!(
            world.told(Time::from_ns(1), flow(), 1_000_u32.wrapping_sub(1_448)),
            Err(Refusal::NotInFlight),
            "acknowledged"
        );
        let lent = world.host.0.borrow().lent;
        let forged = [0; 88];
        let outcome = world.reactor.take(&forged, (SWITCH, HOP_LIMIT), (Time::from_ns(2), NOW_NS), |_| None);
        assert_eq!(outcome, Err(Refusal::Malformed));
        assert_eq!(world.host.0.borrow().lent, lent, "what costs the kernel something waits for the tag");
        assert_eq!(world.last_told(), None);
        let counted: u64 = world.reactor.tally().by_reason().map(|(_, count)| count).sum();
        assert_eq!((counted, world.reactor.tally().taken), (4, 0));
    }

    #[test]
    fn a_connection_that_ends_is_forgotten() {
        for state in [State::Gone, State::Unknown, State::Ended] {
            let mut world = World::new();
            world.told(Time::from_ns(1), flow(), 50_000).unwrap();
            world.host.0.borrow_mut().state = state;
            world.reactor.tick(world.reactor.deadline());
            assert_eq!((world.reactor.held().count(), world.reactor.deadline()), (0, Time::NEVER), "{state:?}");
            assert!(world.host.0.borrow().remembered.is_empty());
            assert_eq!(world.last_told().is_none(), state == State::Ended, "who has it open may use it again");
        }
    }

    #[test]
    fn who_was_not_looked_for_is_not_said_to_be_gone() {
        for (state, expected) in [
            (State::Gone, Refusal::UnknownFlow),
            (State::Ended, Refusal::UnknownFlow),
            (State::Unknown, Refusal::NotNow),
            (State::NotNow, Refusal::NotNow),
        ] {
            let mut world = World::new();
            world.host.0.borrow_mut().state = state;
            assert_eq!(world.told(Time::from_ns(1), flow(), 50_000), Err(expected), "{state:?}");
            assert_eq!(world.reactor.tally().refused(expected), 1);
        }
    }

    #[test]
    fn what_has_ended_by_the_end_is_not_left() {
        for (known_from, left) in [(1, 0), (2, 0), (3, 0), (4, 1)] {
            let mut world = World::new();
            world.told(Time::from_ns(1), flow(), 50_000).unwrap();
            let host = Rc::clone(&world.host.0);
            (host.borrow_mut().state, host.borrow_mut().known_from) = (State::NotNow, Some(known_from));
            assert_eq!(world.reactor.release(), left);
            assert_eq!(host.borrow().remembered.len(), left, "after {known_from} looks");
        }
    }

    #[test]
    fn one_that_cannot_be_reached_now_is_let_go_later() {
        let mut world = World::new();
        world.told(Time::from_ns(1), flow(), 50_000).unwrap();
        world.host.0.borrow_mut().state = State::NotNow;
        for _ in 0..20 {
            world.reactor.tick(world.reactor.deadline());
        }
        assert_eq!((world.reactor.held().count(), world.reactor.release()), (1, 1));
        assert_eq!(world.host.0.borrow().remembered.len(), 1, "the next process lets it go");

        let mut world = World::new();
        world.told(Time::from_ns(1), flow(), 50_000).unwrap();
        world.host.0.borrow_mut().state = State::NotNow;
        world.reactor.tick(world.reactor.deadline());
        world.host.0.borrow_mut().state = State::Here;
        while world.reactor.deadline() < Time::NEVER {
            world.host.0.borrow_mut().sent += 3_000;
            world.reactor.tick(world.reactor.deadline());
        }
        assert_eq!(world.last_told(), None);
    }

    #[test]
    fn another_connection_between_the_same_ends_begins_anew() {
        let mut world = World::new();
        (0..9).for_each(|_| world.told(Time::from_ns(1), flow(), 50_000).map(drop).unwrap());
        let kernel = Kernel { cookie: 1, ..Kernel::default() };
        world.host.0.replace(kernel).remembered.remove(&0).expect("it was remembered");
        world.host.0.borrow_mut().remembered.insert(0, None);
        assert_eq!(world.told(Time::from_ns(2), flow(), 50_000), Ok(flow()));
        assert_eq!(world.last_told(), Some(Rate::from_mbps(60)), "80 less 32/128, not what the other had come to");
        assert!(world.host.0.borrow().remembered.keys().eq(&[1]));
        assert_eq!(world.reactor.held().count(), 1);
    }

    proptest! {
        /// Whatever comes and whenever: a rate between floor and line, one timer for each that is held.
        #[test]
        fn rates_stay_within_floor_and_line(steps in prop::collection::vec((0u64..2_000, 0u64..200_000, any::<bool>()), 1..80)) {
            let mut world = World::new();
            let mut now = Time::from_ns(1);
            let floor = LINE.scaled(1, 1_000);
            for (after_us, sent, told) in steps {
                now += Span::from_us(after_us);
                world.host.0.borrow_mut().sent += sent;
                world.reactor.tick(now);
                if told {
                    prop_assert_eq!(world.told(now, flow(), 50_000), Ok(flow()));
                }
                prop_assert_eq!(world.reactor.due.len(), world.reactor.held.len());
                prop_assert_eq!(world.host.0.borrow().remembered.len(), world.reactor.held.len());
                for (_, rate) in world.reactor.held() {
                    prop_assert!((floor..LINE).contains(&rate), "{:?}", rate);
                }
                prop_assert!(world.reactor.deadline() > now);
            }
        }
    }
}
