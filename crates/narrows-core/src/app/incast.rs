//! A client asks many servers at once and waits for every answer: partition/aggregate, the pattern behind incast [DCTCP §2.1].
//!
//! A request asks every server once, in the order of the plan, so that a flow's number says which server it is of.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::iter::Peekable;

use super::{App, Application, Fact, FlowStart, Reply, Request, Rounds, Run, Start, Times};
use crate::rng::{SmallStream, mix};
use crate::units::{Bytes, Span, Time};

/// Scatter and gather by one client: in a closed loop, or at random times.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Incast {
    /// The node that asks.
    pub client: u32,
    /// The nodes that answer; at least one.
    pub servers: Vec<u32>,
    /// Size of each request.
    pub request: Bytes,
    /// Size of each server's response.
    pub response: Bytes,
    /// Rounds of asking all servers and waiting for all; 0 where they come at random.
    pub repeats: u32,
    /// Mean time between two requests that come at random, whatever became of the earlier ones; `None`: a closed loop.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub mean_interarrival: Option<Span>,
    /// When the first round begins, or the random ones may.
    pub start: Time,
    /// Each server waits a uniformly random time up to this before it answers.
    pub jitter: Span,
}

impl Incast {
    fn servers(&self) -> u32 {
        u32::try_from(self.servers.len()).expect("a plan has fewer than 2³² nodes")
    }

    /// The flow of this number, asked for at `at`.
    fn asked(&self, sequence: u32, at: Time) -> FlowStart {
        let source = self.servers[(sequence % self.servers()) as usize];
        FlowStart { request: Some(self.request), ..FlowStart::new(at, source, self.client, Some(self.response)) }
    }
}

impl Rounds for Incast {
    fn pairs(&self) -> Vec<(u32, u32)> {
        self.servers.iter().map(|&server| (server, self.client)).collect()
    }

    fn size(&self) -> Bytes {
        self.response
    }

    fn asks(&self) -> bool {
        true
    }

    fn start(&self) -> Time {
        self.start
    }

    fn repeats(&self) -> u32 {
        self.repeats
    }

    fn mean_interarrival(&self) -> Option<Span> {
        self.mean_interarrival
    }

    fn draws(&self) -> bool {
        self.mean_interarrival.is_some() || self.jitter > Span::ZERO
    }

    fn facts(&self) -> Vec<(&'static str, Fact)> {
        let text = |value: &dyn core::fmt::Display| Fact::Text(value.to_string());
        Vec::from([
            ("clients", text(&self.client)),
            ("servers", Fact::Nodes(self.servers.clone())),
            ("request", text(&self.request)),
            ("response", text(&self.response)),
            match self.mean_interarrival {
                None => ("repeats", text(&self.repeats)),
                Some(mean) => ("arrivals", Fact::Text(format!("every {mean} on average"))),
            },
            ("start", text(&self.start)),
            ("jitter", text(&self.jitter)),
        ])
    }

    fn machine<'a>(&'a self, run: Run<'_, 'a>) -> App<'a> {
        App::ScatterGather(ScatterGather::new(self, run.times, run.random, run.end, (run.runs)(self.client)))
    }
}

/// When the client asks.
enum Turns<'a> {
    /// At once when the last answer is there.
    Closed {
        /// The first time; `None` after it.
        first: Option<Time>,
        /// Rounds left.
        left: u32,
        /// Answers awaited.
        waiting: u32,
    },
    /// At these times, whatever became of the earlier requests.
    Open(Peekable<Times<'a>>),
}

/// The machine: the client's side, where the driver runs it, and the servers'.
pub struct ScatterGather<'a> {
    incast: &'a Incast,
    runs_client: bool,
    turns: Turns<'a>,
    /// Nothing begins from here on.
    end: Time,
    /// What the servers' waits are drawn from.
    waits: u64,
    /// Flows begun, and those of the request at hand that are still to begin.
    begun: u32,
    asking: u32,
}

impl<'a> ScatterGather<'a> {
    /// The application before a run that ends at `end`. `times` are those of requests at random; `waits` is a random number
    /// of the application's own. Unless the driver runs the client, nothing begins.
    pub fn new(
        incast: &'a Incast,
        times: Option<Times<'a>>,
        waits: u64,
        end: Time,
        runs_client: bool,
    ) -> ScatterGather<'a> {
        let first = Some(incast.start).filter(|&start| runs_client && start < end);
        let turns = match times {
            Some(times) if runs_client => Turns::Open(times.peekable()),
            _ => Turns::Closed { first, left: incast.repeats, waiting: 0 },
        };
        ScatterGather { incast, runs_client, turns, end, waits, begun: 0, asking: 0 }
    }

    /// Whether a request begins.
    fn asks(&mut self, now: Time) -> bool {
        let over = now >= self.end;
        match &mut self.turns {
            Turns::Closed { first, left, waiting } => {
                *first = None;
                if over || *left == 0 || *waiting > 0 {
                    return false;
                }
                (*left, *waiting) = (*left - 1, self.incast.servers());
                true
            }
            Turns::Open(times) if over => {
                *times = (Box::new(core::iter::empty()) as Times<'_>).peekable();
                false
            }
            Turns::Open(times) => times.next_if(|&at| at <= now).is_some(),
        }
    }
}

impl Application for ScatterGather<'_> {
    fn next_at(&mut self) -> Option<Time> {
        match &mut self.turns {
            Turns::Closed { first, .. } => *first,
            Turns::Open(times) => times.peek().copied(),
        }
    }

    fn poll(&mut self, now: Time) -> Option<Start> {
        let responses = self.incast.servers();
        if self.asking == 0 {
            if !self.asks(now) {
                return None;
            }
            self.asking = responses;
        }
        let sequence = self.begun;
        (self.begun, self.asking) = (sequence + 1, self.asking - 1);
        let request = Request { number: sequence / responses, client: self.incast.client, responses };
        Some(Start { sequence, flow: self.incast.asked(sequence, now), request: Some(request) })
    }

    /// # Panics
    /// If no answer is awaited.
    fn handle_delivered(&mut self, _now: Time, _sequence: u32) -> bool {
        match &mut self.turns {
            Turns::Closed { waiting, .. } => {
                *waiting = waiting.checked_sub(1).expect("each request has one answer");
                *waiting == 0
            }
            Turns::Open(_) => false,
        }
    }

    fn flow(&self, sequence: u32) -> Option<FlowStart> {
        Some(self.incast.asked(sequence, Time::ZERO))
    }

    /// A server waits for a draw of itself, the client and the request alone, whoever else answers.
    fn handle_request(&mut self, _now: Time, sequence: u32) -> Reply {
        let Incast { client, servers, jitter, .. } = self.incast;
        if *jitter == Span::ZERO {
            return Reply::Now;
        }
        let (request, place) = (sequence / self.incast.servers(), sequence % self.incast.servers());
        let pair = u64::from(*client) << 32 | u64::from(servers[place as usize]);
        let mut random = SmallStream::new(mix(self.waits ^ mix(pair)) ^ u64::from(request));
        Reply::After(Span::from_ps(random.below(jitter.as_ps())))
    }

    fn peers(&self) -> &[u32] {
        if self.runs_client { &self.incast.servers } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incast(repeats: u32, jitter: Span) -> Incast {
        Incast {
            client: 9,
            servers: Vec::from([4, 2, 7]),
            request: Bytes::new(100),
            response: Bytes::new(2_000),
            repeats,
            mean_interarrival: None,
            start: at(1),
            jitter,
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn begun(app: &mut ScatterGather<'_>, now: Time) -> Vec<(u32, u32)> {
        core::iter::from_fn(|| app.poll(now)).map(|start| (start.sequence, start.flow.source)).collect()
    }

    #[test]
    fn a_closed_loop_asks_when_the_last_answer_is_there_and_not_after_the_end() {
        let incast = incast(3, Span::ZERO);
        let mut app = ScatterGather::new(&incast, None, 1, at(10), true);
        assert_eq!((app.next_at(), begun(&mut app, at(1))), (Some(at(1)), Vec::from([(0, 4), (1, 2), (2, 7)])));
        assert_eq!((app.next_at(), app.poll(at(2))), (None, None));
        assert_eq!([3, 4, 5].map(|ms| app.handle_delivered(at(ms), 0)), [false, false, true]);
        assert_eq!(app.poll(at(10)), None, "nothing begins at the end");
        let next = app.poll(at(9)).expect("the next request");
        assert_eq!((next.sequence, next.flow.ends(), next.flow.at), (3, (9, 4), at(9)));
        assert_eq!(next.request, Some(Request { number: 1, client: 9, responses: 3 }));
        assert_eq!(ScatterGather::new(&incast, None, 1, at(1), true).next_at(), None);
    }

    #[test]
    fn no_request_follows_the_last_one() {
        let incast = incast(1, Span::ZERO);
        let mut app = ScatterGather::new(&incast, None, 1, at(10), true);
        assert_eq!(begun(&mut app, at(1)).len(), 3);
        assert!([0, 1, 2].map(|flow| app.handle_delivered(at(2), flow))[2]);
        assert_eq!(app.poll(at(2)), None);
    }

    #[test]
    fn random_times_do_not_wait_for_answers() {
        let incast = incast(0, Span::ZERO);
        let times = [2, 3, 5].map(at);
        let mut app = ScatterGather::new(&incast, Some(Box::new(times.into_iter())), 1, at(10), true);
        assert_eq!((app.next_at(), app.poll(at(1))), (Some(at(2)), None));
        assert_eq!((begun(&mut app, at(4)).len(), app.next_at()), (6, Some(at(5))));
        assert!(!app.handle_delivered(at(4), 0));
    }

    #[test]
    fn a_poll_that_comes_late_leaves_nothing_due() {
        let incast = incast(3, Span::ZERO);
        for times in [None, Some([2, 9].map(at))] {
            let times = times.map(|times| Box::new(times.into_iter()) as Times<'_>);
            let mut app = ScatterGather::new(&incast, times, 1, at(10), true);
            assert!(app.next_at().is_some());
            assert_eq!((app.poll(at(11)), app.next_at()), (None, None));
        }
    }

    #[test]
    fn a_wait_belongs_to_its_server_and_request() {
        let jitter = Span::from_us(200);
        let some = incast(2, jitter);
        let none = incast(2, Span::ZERO);
        assert_eq!(ScatterGather::new(&none, None, 1, at(9), true).handle_request(at(1), 5), Reply::Now);
        let mut app = ScatterGather::new(&some, None, 1, at(9), true);
        let mut wait = |sequence| match app.handle_request(at(1), sequence) {
            Reply::After(wait) => wait,
            reply => panic!("{reply:?}"),
        };
        let drawn: Vec<Span> = (0..600).map(&mut wait).collect();
        assert!(drawn.iter().all(|&wait| wait < jitter));
        let mut distinct = drawn.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), drawn.len());
        // Server 7 alone: its third answer is of the third request, and waits as long.
        let alone = Incast { servers: Vec::from([7]), ..some.clone() };
        assert_eq!(ScatterGather::new(&alone, None, 1, at(9), true).handle_request(at(1), 2), Reply::After(drawn[8]));
    }
}
