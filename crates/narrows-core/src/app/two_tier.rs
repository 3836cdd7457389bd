//! Scatter and gather in two tiers, the commercial workload of a datacenter [Short and Fat]: a host asks one aggregator in each
//! rack, each aggregator asks the other hosts of its rack, and answers when the last of them has answered.
//!
//! Queries come at random times, each of a random host, to a random aggregator in each rack. A query's numbers say it all:
//! flow `i` of a query is the answer of rack `i`'s aggregator for `i` below the number of racks, and from there on the answer
//! of a host of a rack. So whoever receives a message knows what follows.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::iter::Peekable;

use super::{App, Application, Fact, FlowStart, Load, Reply, Request, Rounds, Run, Start, Times};
use crate::rng::{SmallStream, mix};
use crate::units::{Bytes, Span, Time};

/// Queries in two tiers, at random times.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct TwoTier {
    /// The hosts of each rack; all racks have as many, at least two.
    pub racks: Vec<Vec<u32>>,
    /// Size of each request.
    pub request: Bytes,
    /// Size of each answer.
    pub response: Bytes,
    /// Mean time between queries.
    pub mean_interarrival: Span,
    /// When the first may begin.
    pub start: Time,
}

/// Who takes part in a query.
struct Cast {
    /// Who asks.
    client: u32,
    /// By rack: the place of its aggregator in it.
    aggregators: Vec<usize>,
}

impl TwoTier {
    fn racks(&self) -> u32 {
        u32::try_from(self.racks.len()).expect("a plan has fewer than 2³² nodes")
    }

    /// Hosts that an aggregator asks.
    fn asked(&self) -> u32 {
        u32::try_from(self.racks[0].len() - 1).expect("as above")
    }

    /// Flows of a query.
    fn flows(&self) -> u32 {
        self.racks() * (1 + self.asked())
    }

    /// Of the query with this number.
    fn cast(&self, query: u32, random: u64) -> Cast {
        let mut stream = SmallStream::new(mix(random ^ mix(u64::from(query))));
        let mut below = |most: usize| usize::try_from(stream.below(most as u64)).expect("below a usize");
        let size = self.racks[0].len();
        let host = below(self.racks.len() * size);
        let client = self.racks[host / size][host % size];
        let aggregator = |rack: &Vec<u32>| {
            // Nobody asks itself.
            let own = rack.iter().position(|&host| host == client);
            let place = below(size - usize::from(own.is_some()));
            place + usize::from(own.is_some_and(|own| place >= own))
        };
        Cast { client, aggregators: self.racks.iter().map(aggregator).collect() }
    }

    /// The flow of this number, asked for at `at`.
    fn flow(&self, sequence: u32, random: u64, at: Time) -> FlowStart {
        let (query, place) = (sequence / self.flows(), sequence % self.flows());
        let Cast { client, aggregators } = self.cast(query, random);
        let rack = self.rack_of(place);
        let (hosts, own) = (&self.racks[rack], aggregators[rack]);
        let (source, destination) = match place.checked_sub(self.racks()) {
            None => (hosts[own], client),
            Some(place) => {
                let host = (place % self.asked()) as usize;
                (hosts[host + usize::from(host >= own)], hosts[own])
            }
        };
        FlowStart { request: Some(self.request), ..FlowStart::new(at, source, destination, Some(self.response)) }
    }

    /// The rack that a query's flow is of.
    fn rack_of(&self, place: u32) -> usize {
        place.checked_sub(self.racks()).map_or(place, |place| place / self.asked()) as usize
    }

    /// The first of the flows by which the aggregator of a rack hears of its hosts.
    fn second_tier(&self, query: u32, rack: u32) -> u32 {
        query * self.flows() + self.racks() + rack * self.asked()
    }
}

impl Rounds for TwoTier {
    /// Of a query that the first host asks, of the first or second host of each rack: which ones they are is random.
    fn pairs(&self) -> Vec<(u32, u32)> {
        let client = self.racks[0][0];
        let aggregators = self.racks.iter().map(|rack| if rack[0] == client { rack[1] } else { rack[0] });
        let first = aggregators.clone().map(|aggregator| (aggregator, client));
        let second = self.racks.iter().zip(aggregators).flat_map(|(rack, aggregator)| {
            rack.iter().filter(move |&&host| host != aggregator).map(move |&host| (host, aggregator))
        });
        first.chain(second).collect()
    }

    /// Any host may ask any other one, as a client or as an aggregator.
    fn possible_pairs(&self) -> Vec<(u32, u32)> {
        let hosts = || self.racks.iter().flatten().copied();
        hosts().flat_map(|one| hosts().filter(move |&other| other != one).map(move |other| (other, one))).collect()
    }

    fn size(&self) -> Bytes {
        self.response
    }

    /// Requests, which are as large as answers by default, and answers, in both directions alike. Each host is the client as often
    /// as any other, and the aggregator as often as the others of its rack: a query goes over one pair within the client's
    /// rack, one to each other rack, and one for each host that an aggregator asks.
    fn loads(&self) -> Vec<Load> {
        let each = self.request.get() + self.response.get();
        let (racks, asked) = (u64::from(self.racks()), u64::from(self.asked()));
        let racks_of = (0..).zip(&self.racks).flat_map(|(rack, hosts)| hosts.iter().map(move |&host| (host, rack)));
        let racks_of: BTreeMap<u32, u32> = racks_of.collect();
        let (within, across) =
            self.possible_pairs().into_iter().partition(|(one, other)| racks_of[one] == racks_of[other]);
        let within =
            Load { pairs: within, bytes: each * (1 + racks * asked), at_once: Some(asked * self.response.get()) };
        let across = Load { pairs: across, bytes: each * (racks - 1), at_once: Some(racks * self.response.get()) };
        [within, across].into_iter().filter(|load| load.bytes > 0).collect()
    }

    fn asks(&self) -> bool {
        true
    }

    fn start(&self) -> Time {
        self.start
    }

    fn repeats(&self) -> u32 {
        0
    }

    fn mean_interarrival(&self) -> Option<Span> {
        Some(self.mean_interarrival)
    }

    fn keeps_connections(&self) -> bool {
        false
    }

    /// An aggregator answers when its rack has answered.
    fn awaited_by(&self, sequence: u32) -> Option<u32> {
        (sequence % self.flows() >= self.racks()).then(|| sequence / self.flows())
    }

    fn facts(&self) -> Vec<(&'static str, Fact)> {
        let text = |value: &dyn core::fmt::Display| Fact::Text(value.to_string());
        Vec::from([
            ("racks", text(&self.racks.len())),
            ("hosts", Fact::Nodes(self.racks.iter().flatten().copied().collect())),
            ("request", text(&self.request)),
            ("response", text(&self.response)),
            ("arrivals", Fact::Text(format!("every {} on average", self.mean_interarrival))),
            ("start", text(&self.start)),
        ])
    }

    fn machine<'a>(&'a self, run: Run<'_, 'a>) -> App<'a> {
        App::Queries(Queries::new(self, run))
    }
}

/// The machine: clients and aggregators, where the driver runs them.
pub struct Queries<'a> {
    plan: &'a TwoTier,
    times: Peekable<Times<'a>>,
    random: u64,
    end: Time,
    /// Sorted.
    own: Vec<u32>,
    /// Queries begun, anywhere.
    begun: u32,
    /// Flows that begin now, each a run of numbers: of one request.
    asking: VecDeque<core::ops::Range<u32>>,
    /// By the answer that an aggregator owes: how many it awaits before.
    awaited: BTreeMap<u32, u32>,
    /// Answers that go now.
    answers: VecDeque<u32>,
}

impl<'a> Queries<'a> {
    fn new(plan: &'a TwoTier, run: Run<'_, 'a>) -> Queries<'a> {
        let times = run.times.unwrap_or_else(|| Box::new(core::iter::empty()));
        let mut own: Vec<u32> = plan.racks.iter().flatten().copied().filter(|&host| (run.runs)(host)).collect();
        own.sort_unstable();
        Queries {
            plan,
            times: times.peekable(),
            random: run.random,
            end: run.end,
            own,
            begun: 0,
            asking: VecDeque::new(),
            awaited: BTreeMap::new(),
            answers: VecDeque::new(),
        }
    }

    fn is_own(&self, host: u32) -> bool {
        self.own.binary_search(&host).is_ok()
    }
}

impl Application for Queries<'_> {
    fn next_at(&mut self) -> Option<Time> {
        self.times.peek().copied().filter(|&at| at < self.end)
    }

    fn poll(&mut self, now: Time) -> Option<Start> {
        while self.asking.is_empty() {
            self.times.next_if(|&at| at <= now && at < self.end)?;
            let first = self.begun * self.plan.flows();
            self.begun += 1;
            // Every part draws all times, and asks for its own hosts.
            if self.is_own(self.plan.cast(self.begun - 1, self.random).client) {
                self.asking.push_back(first..first + self.plan.racks());
            }
        }
        let flows = self.asking.front_mut().expect("there is one");
        let sequence = flows.next().expect("none is empty");
        if flows.start == flows.end {
            self.asking.pop_front();
        }
        let flow = self.plan.flow(sequence, self.random, now);
        let (query, place) = (sequence / self.plan.flows(), sequence % self.plan.flows());
        let responses = self.plan.racks();
        // A query is the client's: what an aggregator asks is a part of it.
        let request = (place < responses).then_some(Request { number: query, client: flow.destination, responses });
        Some(Start { sequence, flow, request })
    }

    /// An aggregator is asked: it asks the hosts of its rack. They answer at once.
    fn handle_request(&mut self, _now: Time, sequence: u32) -> Reply {
        let (query, place) = (sequence / self.plan.flows(), sequence % self.plan.flows());
        if place >= self.plan.racks() {
            return Reply::Now;
        }
        let first = self.plan.second_tier(query, place);
        self.awaited.insert(sequence, self.plan.asked());
        self.asking.push_back(first..first + self.plan.asked());
        Reply::Later
    }

    fn handle_delivered(&mut self, _now: Time, sequence: u32) -> bool {
        let (query, place) = (sequence / self.plan.flows(), sequence % self.plan.flows());
        if place < self.plan.racks() {
            return false;
        }
        let rack = u32::try_from(self.plan.rack_of(place)).expect("as many as there are");
        let owed = query * self.plan.flows() + rack;
        let left = self.awaited.get_mut(&owed).expect("it was asked");
        *left -= 1;
        if *left > 0 {
            return false;
        }
        self.awaited.remove(&owed);
        self.answers.push_back(owed);
        true
    }

    fn poll_answer(&mut self) -> Option<u32> {
        self.answers.pop_front()
    }

    /// None of a query whose flows would have no numbers, which a message may name and nobody begins.
    fn flow(&self, sequence: u32) -> Option<FlowStart> {
        let flows = self.plan.flows();
        (sequence / flows).checked_add(1)?.checked_mul(flows)?;
        Some(self.plan.flow(sequence, self.random, Time::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn plan() -> TwoTier {
        TwoTier {
            racks: Vec::from([Vec::from([0, 1, 2]), Vec::from([3, 4, 5])]),
            request: Bytes::new(100),
            response: Bytes::new(2_000),
            mean_interarrival: Span::from_ms(1),
            start: Time::ZERO,
        }
    }

    fn queries<'a>(plan: &'a TwoTier, times: &[u64], runs: &dyn Fn(u32) -> bool) -> Queries<'a> {
        let times: Vec<Time> = times.iter().map(|&ms| Time::ZERO + Span::from_ms(ms)).collect();
        let times: Times<'_> = Box::new(times.into_iter());
        Queries::new(
            plan,
            Run { times: Some(times), random: 7, stretch: None, end: Time::ZERO + Span::from_secs(1), runs },
        )
    }

    #[test]
    fn a_client_asks_one_host_of_each_rack_and_never_itself() {
        let plan = plan();
        let mut clients = BTreeSet::new();
        for query in 0..200 {
            let Cast { client, aggregators } = plan.cast(query, 7);
            clients.insert(client);
            for (rack, place) in plan.racks.iter().zip(aggregators) {
                assert_ne!(rack[place], client);
            }
        }
        assert_eq!(clients.len(), 6, "every host asks");
    }

    #[test]
    fn an_aggregator_answers_when_its_rack_has_answered() {
        let plan = plan();
        let mut app = queries(&plan, &[1], &|_| true);
        let now = app.next_at().expect("a query comes");
        let first: Vec<Start> = core::iter::from_fn(|| app.poll(now)).collect();
        assert_eq!(first.len(), 2);
        assert!(first.iter().all(|start| start.request.expect("asked").responses == 2));
        assert_eq!(app.handle_request(now, first[0].sequence), Reply::Later);
        let second: Vec<Start> = core::iter::from_fn(|| app.poll(now)).collect();
        assert_eq!(second.iter().map(|start| start.flow.destination).collect::<Vec<_>>(), [first[0].flow.source; 2]);
        let asked: BTreeSet<u32> = second.iter().map(|start| start.flow.source).collect();
        assert!(asked.len() == 2 && !asked.contains(&first[0].flow.source));
        assert_eq!(app.handle_request(now, second[0].sequence), Reply::Now);
        assert!(!app.handle_delivered(now, second[0].sequence));
        assert_eq!(app.poll_answer(), None);
        assert!(app.handle_delivered(now, second[1].sequence));
        assert_eq!(app.poll_answer(), Some(first[0].sequence));
        assert!(!app.handle_delivered(now, first[0].sequence), "the client waits for the other rack");
    }

    #[test]
    fn a_query_whose_flows_have_no_numbers_has_no_flow() {
        let plan = plan();
        let app = queries(&plan, &[], &|_| true);
        // Six flows each, and 2³² is no multiple of six.
        assert_eq!((plan.flows(), u32::MAX % 6), (6, 3));
        assert!(app.flow(u32::MAX - 4).is_some());
        assert!((u32::MAX - 3..=u32::MAX).all(|sequence| app.flow(sequence).is_none()));
    }

    #[test]
    fn parts_begin_together_what_the_whole_begins() {
        let plan = plan();
        let times = [1, 2, 3, 5, 8];
        let begun = |runs: &dyn Fn(u32) -> bool| -> Vec<u32> {
            let mut app = queries(&plan, &times, runs);
            core::iter::from_fn(|| app.poll(Time::ZERO + Span::from_ms(9))).map(|start| start.sequence).collect()
        };
        let mut parts = begun(&|host| host < 3);
        parts.extend(begun(&|host| host >= 3));
        parts.sort_unstable();
        assert_eq!(parts, begun(&|_| true));
    }
}
