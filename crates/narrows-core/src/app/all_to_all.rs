//! Each host sends one message to each other host, again and again: the complete exchange of collective communication.
//!
//! Of N hosts, the one at place i of the plan sends its r-th message of an iteration to that at i + r modulo N: at any r, each
//! host sends one message and receives one. A flow's number says its round, counted over all iterations, and its source.

use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::{App, Application, Fact, FlowStart, Rounds, Run, Start};
use crate::units::{Bytes, Time};

/// An exchange among some hosts.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct AllToAll {
    /// The nodes that take part; at least two.
    pub hosts: Vec<u32>,
    /// Size of each message.
    pub size: Bytes,
    /// Whether a host sends one message at a time; else it sends all of an iteration at once.
    pub in_rounds: bool,
    /// Iterations; all of them together have fewer than 2³² messages.
    pub repeats: u32,
    /// When the first one begins.
    pub start: Time,
}

impl AllToAll {
    fn places(&self) -> u32 {
        u32::try_from(self.hosts.len()).expect("a plan has fewer than 2³² nodes")
    }

    /// Messages that a host sends before it waits, and receives before it goes on.
    fn per_step(&self) -> u32 {
        if self.in_rounds { 1 } else { self.places() - 1 }
    }

    /// All messages of a run that is long enough.
    pub fn messages(&self) -> u64 {
        let hosts = self.hosts.len() as u64;
        u64::from(self.repeats) * hosts * (hosts - 1)
    }

    /// Places of the hosts that send and receive the message of this number.
    fn ends(&self, sequence: u32) -> (u32, u32) {
        let (places, source) = (self.places(), sequence % self.places());
        (source, (source + 1 + sequence / places % (places - 1)) % places)
    }

    /// The message of this number, begun at `at`.
    fn message(&self, sequence: u32, at: Time) -> FlowStart {
        let (source, destination) = self.ends(sequence);
        FlowStart::new(at, self.hosts[source as usize], self.hosts[destination as usize], Some(self.size))
    }
}

impl Rounds for AllToAll {
    fn pairs(&self) -> Vec<(u32, u32)> {
        let from = |&source: &u32| self.hosts.iter().map(move |&destination| (source, destination));
        self.hosts.iter().flat_map(from).filter(|(source, destination)| source != destination).collect()
    }

    fn size(&self) -> Bytes {
        self.size
    }

    fn asks(&self) -> bool {
        false
    }

    fn start(&self) -> Time {
        self.start
    }

    fn repeats(&self) -> u32 {
        self.repeats
    }

    fn facts(&self) -> Vec<(&'static str, Fact)> {
        let text = |value: &dyn core::fmt::Display| Fact::Text(value.to_string());
        Vec::from([
            ("hosts", Fact::Nodes(self.hosts.clone())),
            ("size", text(&self.size)),
            ("in-rounds", text(&self.in_rounds)),
            ("repeats", text(&self.repeats)),
            ("start", text(&self.start)),
        ])
    }

    fn machine<'a>(&'a self, run: Run<'_, 'a>) -> App<'a> {
        App::Exchange(Exchange::new(self, run.end, run.runs))
    }
}

/// How far a host is. A step is an iteration, or a round of one.
#[derive(Clone, Debug, Default)]
struct Progress {
    step: u32,
    /// Messages of the step that it has begun, and those that its stack has taken.
    begun: u32,
    sent: u32,
    /// Messages that it has received of the step and of those after it: others may be ahead.
    received: VecDeque<u32>,
}

/// The machine: the hosts that the driver runs.
pub struct Exchange<'a> {
    plan: &'a AllToAll,
    /// By place.
    hosts: Vec<Progress>,
    /// Places of the hosts that have messages to begin.
    ready: VecDeque<u32>,
    /// The first time; `None` after it.
    first: Option<Time>,
    /// Nothing begins from here on.
    end: Time,
    /// Whom these hosts send to.
    peers: Vec<u32>,
}

impl<'a> Exchange<'a> {
    /// The application before a run that ends at `end`, for the hosts that the driver `runs`.
    pub fn new(plan: &'a AllToAll, end: Time, runs: impl Fn(u32) -> bool) -> Exchange<'a> {
        let ready: VecDeque<u32> = (0..).zip(&plan.hosts).filter(|&(_, &host)| runs(host)).map(|(at, _)| at).collect();
        let begins = !ready.is_empty() && plan.repeats > 0 && plan.start < end;
        let alone = (ready.len() == 1).then(|| plan.hosts[ready[0] as usize]);
        let peers = plan.hosts.iter().copied().filter(|&host| !ready.is_empty() && Some(host) != alone).collect();
        let hosts = vec![Progress::default(); plan.hosts.len()];
        Exchange { plan, hosts, ready, first: begins.then_some(plan.start), end, peers }
    }

    /// The host at `place` goes on if it has sent and received everything of its step. Whether it has more to send.
    fn goes_on(&mut self, place: u32) -> bool {
        let (host, whole) = (&mut self.hosts[place as usize], self.plan.per_step());
        if host.sent < whole || host.received.front().is_none_or(|&received| received < whole) {
            return false;
        }
        host.received.pop_front();
        (host.step, host.begun, host.sent) = (host.step + 1, 0, 0);
        let last = host.step * whole == self.plan.repeats * (self.plan.places() - 1);
        if !last {
            self.ready.push_back(place);
        }
        !last
    }
}

impl Application for Exchange<'_> {
    fn next_at(&mut self) -> Option<Time> {
        self.first
    }

    fn poll(&mut self, now: Time) -> Option<Start> {
        if self.first.is_some_and(|first| now < first) {
            return None;
        }
        self.first = None;
        if now >= self.end {
            return None;
        }
        let &place = self.ready.front()?;
        let (host, whole) = (&mut self.hosts[place as usize], self.plan.per_step());
        let round = host.step * whole + host.begun;
        host.begun += 1;
        if host.begun == whole {
            self.ready.pop_front();
        }
        let sequence = round * self.plan.places() + place;
        Some(Start { sequence, flow: self.plan.message(sequence, now), request: None })
    }

    fn handle_sent(&mut self, _now: Time, sequence: u32) -> bool {
        let (source, _) = self.plan.ends(sequence);
        self.hosts[source as usize].sent += 1;
        self.goes_on(source)
    }

    /// # Panics
    /// If the message is of a step that its destination has done: each is delivered once.
    fn handle_delivered(&mut self, _now: Time, sequence: u32) -> bool {
        let (_, destination) = self.plan.ends(sequence);
        let host = &mut self.hosts[destination as usize];
        let step = sequence / self.plan.places() / self.plan.per_step();
        let ahead = step.checked_sub(host.step).expect("a step is done when all of it is received") as usize;
        if host.received.len() <= ahead {
            host.received.resize(ahead + 1, 0);
        }
        host.received[ahead] += 1;
        self.goes_on(destination)
    }

    fn flow(&self, sequence: u32) -> Option<FlowStart> {
        (u64::from(sequence) < self.plan.messages()).then(|| self.plan.message(sequence, Time::ZERO))
    }

    fn peers(&self) -> &[u32] {
        &self.peers
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use crate::rng::SmallStream;
    use crate::units::Span;

    const HOSTS: [u32; 5] = [4, 2, 7, 0, 9];

    fn exchange(hosts: usize, in_rounds: bool, repeats: u32) -> AllToAll {
        AllToAll { hosts: HOSTS[..hosts].to_vec(), size: Bytes::new(9_000), in_rounds, repeats, start: at(3) }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn begun(app: &mut Exchange<'_>, now: Time) -> Vec<Start> {
        core::iter::from_fn(|| app.poll(now)).collect()
    }

    /// Messages by (iteration, source, destination).
    type Sent = BTreeMap<(u32, u32, u32), u32>;

    /// All messages of an exchange whose stacks take messages, and whose network delivers them, in any order; a machine for
    /// each host. Asserts that no host is ahead of what it has sent and received.
    fn in_any_order(plan: &AllToAll, random: &mut SmallStream) -> Sent {
        let others = plan.places() - 1;
        let mut apps: BTreeMap<u32, Exchange<'_>> =
            plan.hosts.iter().map(|&own| (own, Exchange::new(plan, at(99), |host| host == own))).collect();
        let (mut all, mut under_way) = (Sent::new(), Vec::new());
        // By host: what it has begun, its stack has taken, and it has received, by step.
        let mut done: BTreeMap<(u32, u32), [u32; 2]> = BTreeMap::new();
        let step = |sequence: u32| sequence / plan.places() / plan.per_step();
        loop {
            for app in apps.values_mut() {
                for Start { sequence, flow, .. } in begun(app, at(3)) {
                    assert_eq!(app.flow(sequence), Some(FlowStart { at: Time::ZERO, ..flow }));
                    *all.entry((sequence / plan.places() / others, flow.source, flow.destination)).or_default() += 1;
                    for before in 0..step(sequence) {
                        assert_eq!(done[&(flow.source, before)], [plan.per_step(); 2]);
                    }
                    under_way.extend([(sequence, flow, false), (sequence, flow, true)]);
                }
            }
            if under_way.is_empty() {
                return all;
            }
            let next = usize::try_from(random.below(under_way.len() as u64)).unwrap();
            let (sequence, flow, delivered) = under_way.swap_remove(next);
            let host = if delivered { flow.destination } else { flow.source };
            done.entry((host, step(sequence))).or_default()[usize::from(delivered)] += 1;
            let app = apps.get_mut(&host).unwrap();
            if delivered {
                app.handle_delivered(at(3), sequence)
            } else {
                app.handle_sent(at(3), sequence)
            };
        }
    }

    #[test]
    fn each_pair_has_one_message_an_iteration_and_no_host_is_ahead_of_what_it_sent_and_received() {
        let mut random = SmallStream::new(1);
        for (hosts, in_rounds) in [(2, false), (2, true), (5, false), (5, true)] {
            for _ in 0..50 {
                let plan = exchange(hosts, in_rounds, 3);
                let all = in_any_order(&plan, &mut random);
                assert_eq!(all.len() as u64, plan.messages());
                assert!(all.iter().all(|((_, source, destination), &count)| source != destination && count == 1));
                assert!(all.keys().all(|(iteration, ..)| *iteration < 3));
            }
        }
    }

    #[test]
    fn where_every_message_takes_as_long_all_steps_do() {
        for in_rounds in [false, true] {
            let plan = exchange(5, in_rounds, 3);
            let mut app = Exchange::new(&plan, at(999), |_| true);
            assert_eq!((app.next_at(), app.poll(at(2))), (Some(at(3)), None));
            let (steps, messages) = if in_rounds { (3 * 4, 5) } else { (3, 5 * 4) };
            for (step, turn) in (0..steps).zip((0..4).cycle()) {
                let now = at(3 + 10 * step);
                let starts = begun(&mut app, now);
                assert_eq!(starts.len(), messages);
                assert!(starts.iter().all(|start| start.flow.at == now));
                if in_rounds {
                    let to = |from: usize| HOSTS[(from + 1 + turn) % 5];
                    let pairs: Vec<(u32, u32)> = starts.iter().map(|start| start.flow.ends()).collect();
                    let ring: Vec<(u32, u32)> = (0..5).map(|from| (HOSTS[from], to(from))).collect();
                    assert!(ring.iter().all(|pair| pairs.contains(pair)), "{pairs:?}");
                }
                let sent = starts.iter().filter(|start| app.handle_sent(now, start.sequence)).count();
                assert_eq!((sent, app.next_at(), app.poll(now)), (0, None, None));
                let last = starts.iter().filter(|start| app.handle_delivered(now, start.sequence)).count();
                assert_eq!(last, if step + 1 == steps { 0 } else { 5 }, "each host goes on, once");
            }
            assert_eq!(app.poll(at(998)), None);
        }
    }

    #[test]
    fn nothing_begins_at_the_end_nor_for_hosts_of_another_driver() {
        let plan = exchange(3, false, 2);
        assert_eq!(Exchange::new(&plan, at(3), |_| true).next_at(), None);
        let mut nobody = Exchange::new(&plan, at(9), |_| false);
        assert_eq!((nobody.next_at(), nobody.poll(at(3)), nobody.peers()), (None, None, &[][..]));
        assert_eq!(Exchange::new(&plan, at(9), |host| host == 2).peers(), [4, 7]);
        let mut late = Exchange::new(&plan, at(9), |_| true);
        assert_eq!((late.poll(at(9)), late.next_at()), (None, None), "a poll that comes late leaves nothing due");
        let mut app = Exchange::new(&plan, at(9), |_| true);
        for Start { sequence, .. } in begun(&mut app, at(3)) {
            app.handle_sent(at(3), sequence);
            app.handle_delivered(at(8), sequence);
        }
        assert_eq!(app.poll(at(9)), None);
        assert_eq!(begun(&mut app, at(8)).len(), 6);
    }
}
