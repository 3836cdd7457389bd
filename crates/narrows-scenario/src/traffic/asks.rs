//! A client that asks many servers, and the servers that answer: what is asked when, and how long each answer waits.
//!
//! A query asks every server once, in the order of the plan, so that a flow's place in its entry says which server it is of.
//! Times and waits come from streams of their own, `traffic/<name>/arrivals` and `jitter/<name>`.

use std::iter::Peekable;

use narrows_core::app::scatter_gather::ScatterGather;
use narrows_core::rng::{SmallStream, Stream, mix};
use narrows_core::units::{Span, Time};

use super::arrivals::exponential;
use crate::plan::{FlowStart, Incast, Schedule};

impl Incast {
    /// When a client asks that does so at random times, in order, all before the schedule's end: from the stream
    /// `traffic/<name>/arrivals`. None in a closed loop.
    pub fn times(&self, seed: u64, name: &str, schedule: &Schedule) -> impl Iterator<Item = Time> + Send + use<> {
        let (mean, end, mut clock) = (self.mean_interarrival, schedule.end, self.start);
        let mut arrivals = Stream::named(seed, &format!("traffic/{name}/arrivals"));
        std::iter::from_fn(move || {
            clock += exponential(mean?, &mut arrivals);
            (clock < end).then_some(clock)
        })
    }

    /// The flow that the client asks for in its turn, at `at`: its servers by turns, query after query.
    pub fn asked(&self, sequence: u32, at: Time) -> FlowStart {
        let source = self.servers[sequence as usize % self.servers.len()];
        FlowStart { request: Some(self.request), ..FlowStart::new(at, source, self.client, Some(self.response)) }
    }
}

/// When a client asks.
pub struct Asks {
    turns: Turns,
    end: Time,
}

enum Turns {
    /// At once when the last answer is there.
    Closed(ScatterGather),
    /// At these times, whatever became of the earlier queries.
    Open(Peekable<Box<dyn Iterator<Item = Time> + Send>>),
}

impl Asks {
    /// A client at the beginning of a run, and when it asks first; `None` if never.
    pub fn new(incast: &Incast, seed: u64, name: &str, schedule: &Schedule) -> (Asks, Option<Time>) {
        let (turns, first) = if incast.mean_interarrival.is_none() {
            let servers = u32::try_from(incast.servers.len()).expect("a plan has fewer than 2³² nodes");
            (Turns::Closed(ScatterGather::new(servers, incast.repeats)), Some(incast.start))
        } else {
            let times: Box<dyn Iterator<Item = Time> + Send> = Box::new(incast.times(seed, name, schedule));
            let mut times = times.peekable();
            let first = times.peek().copied();
            (Turns::Open(times), first)
        };
        (Asks { turns, end: schedule.end }, first.filter(|&at| at < schedule.end))
    }

    /// How many queries begin at `now`, and when it is to be asked again, if that is known now. None begins at the
    /// schedule's end or after it.
    pub fn poll(&mut self, now: Time) -> (u32, Option<Time>) {
        if now >= self.end {
            return (0, None);
        }
        match &mut self.turns {
            Turns::Closed(machine) => (u32::from(machine.poll_query(now).is_some()), None),
            Turns::Open(times) => {
                let mut due = 0;
                while times.next_if(|at| *at <= now).is_some() {
                    due += 1;
                }
                (due, times.peek().copied())
            }
        }
    }

    /// An answer is whole; whether the client is to be polled because of it.
    pub fn handle_answer(&mut self, now: Time) -> bool {
        match &mut self.turns {
            Turns::Closed(machine) => machine.handle_answer(now).is_some(),
            Turns::Open(_) => false,
        }
    }
}

/// How long the servers of a traffic entry wait before they answer.
#[derive(Clone, Copy, Debug)]
pub struct Waits(u64);

impl Waits {
    /// Those of the entry with this name.
    pub fn new(seed: u64, name: &str) -> Waits {
        Waits(Stream::named(seed, &format!("jitter/{name}")).next_u64())
    }

    /// The wait before the answer that is the entry's flow of this place: a draw of its server, its client and the query
    /// alone, whoever else answers. `None` where servers answer at once.
    pub fn of(self, incast: &Incast, sequence: u32) -> Option<Span> {
        if incast.jitter == Span::ZERO {
            return None;
        }
        let servers = incast.servers.len();
        let server = incast.servers[sequence as usize % servers];
        let pair = u64::from(incast.client) << 32 | u64::from(server);
        let query = u64::from(sequence) / servers as u64;
        let mut random = SmallStream::new(mix(self.0 ^ mix(pair)) ^ query);
        Some(Span::from_ps(random.below(incast.jitter.as_ps())))
    }
}

#[cfg(test)]
mod tests {
    use narrows_core::units::Bytes;

    use super::*;

    fn incast(mean_ms: Option<u64>, jitter: Span) -> Incast {
        Incast {
            client: 9,
            servers: vec![4, 2, 7],
            request: Bytes::new(100),
            response: Bytes::new(2_000),
            repeats: if mean_ms.is_some() { 0 } else { 2 },
            mean_interarrival: mean_ms.map(Span::from_ms),
            start: at(1),
            jitter,
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn schedule(end_ms: u64) -> Schedule {
        Schedule { end: at(end_ms), drain: Span::ZERO, warmup: Span::ZERO }
    }

    #[test]
    fn a_closed_loop_asks_when_the_last_answer_is_there_and_not_after_the_end() {
        let (mut asks, first) = Asks::new(&incast(None, Span::ZERO), 1, "t", &schedule(10));
        assert_eq!((first, asks.poll(at(1)), asks.poll(at(2))), (Some(at(1)), (1, None), (0, None)));
        assert_eq!([3, 4, 5].map(|ms| asks.handle_answer(at(ms))), [false, false, true]);
        assert_eq!(asks.poll(at(10)), (0, None));
        assert_eq!(asks.poll(at(9)), (1, None));
        assert_eq!(Asks::new(&incast(None, Span::ZERO), 1, "t", &schedule(1)).1, None);
    }

    #[test]
    fn random_times_do_not_wait_for_answers() {
        let (incast, schedule) = (incast(Some(3), Span::ZERO), schedule(1_000));
        let times: Vec<Time> = incast.times(1, "t", &schedule).collect();
        let (mut asks, first) = Asks::new(&incast, 1, "t", &schedule);
        assert_eq!((first, asks.poll(at(0))), (Some(times[0]), (0, Some(times[0]))));
        assert_eq!(asks.poll(times[4]), (5, Some(times[5])));
        assert!(!asks.handle_answer(times[4]));
    }

    #[test]
    fn a_wait_belongs_to_its_server_and_query() {
        let jitter = Span::from_us(200);
        let (some, waits) = (incast(None, jitter), Waits::new(1, "t"));
        assert_eq!(waits.of(&incast(None, Span::ZERO), 5), None);
        let drawn: Vec<Span> = (0..600).map(|sequence| waits.of(&some, sequence).unwrap()).collect();
        assert!(drawn.iter().all(|&wait| wait < jitter));
        let mut distinct = drawn.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), drawn.len());
        // Server 7 alone: its third answer is of the third query, and waits as long.
        let alone = Incast { servers: vec![7], ..some.clone() };
        assert_eq!(waits.of(&alone, 2), Some(drawn[8]));
        assert_eq!((some.asked(8, at(3)).source, some.asked(8, at(3)).destination), (7, 9));
    }
}
