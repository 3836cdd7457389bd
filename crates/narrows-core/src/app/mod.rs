//! What applications do: which flows they begin when, and what follows a message.
//!
//! A traffic entry of a plan is one application. Its machine stands for the hosts that its driver runs: all hosts of a run,
//! those of one part of it, or a single live host. It is told the time, and of flows that are whole at its hosts; it says
//! which flows begin. Connections and bytes are the driver's. An application sees its own hosts only: what it knows of the
//! rest of the world came in messages. So one run can be split over several threads, and a live agent runs the same machine.
//!
//! # Adding an application
//! One file with what a plan says of it ([`Rounds`]) and its machine, and its names in the list below: then both drivers,
//! estimates and checks have it. In `narrows-scenario`, `traffic/<name>.rs` makes it of what an experiment writes.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::component::{Parameter, Value};
use crate::units::{Bytes, Span, Time};

pub mod all_to_all;
pub mod connection_pool;
pub mod incast;
pub mod program;
pub mod timed;
pub mod two_tier;

/// One flow, as the plan states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct FlowStart {
    /// When it is offered (or its request sent), at the earliest.
    pub at: Time,
    /// How much later that may be; drawn from the seed.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Span::is_zero"))]
    pub spread: Span,
    /// The node that sends its bytes.
    pub source: u32,
    /// The node that receives them.
    pub destination: u32,
    /// Its size; `None` goes on until `stop` or the run's end.
    pub size: Option<Bytes>,
    /// When a flow without a size stops offering data.
    pub stop: Option<Time>,
    /// Size of the request that the destination sends first.
    pub request: Option<Bytes>,
}

impl FlowStart {
    /// A flow that begins exactly then, without a request; one without a size goes on to the run's end.
    pub const fn new(at: Time, source: u32, destination: u32, size: Option<Bytes>) -> FlowStart {
        FlowStart { at, spread: Span::ZERO, source, destination, size, stop: None, request: None }
    }

    /// Who opens its connection, and whom to: the one who asks for it, else the one who sends it.
    pub const fn ends(&self) -> (u32, u32) {
        match self.request {
            Some(_) => (self.destination, self.source),
            None => (self.source, self.destination),
        }
    }
}

/// A request of a client to several hosts: a row of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number among the application's, in the order in which they begin.
    pub number: u32,
    /// The node that asks.
    pub client: u32,
    /// Flows that answer it.
    pub responses: u32,
}

/// A flow that begins now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its number among the application's flows: the same for all hosts that have an end of it.
    pub sequence: u32,
    /// What it is; it begins at the time of the poll.
    pub flow: FlowStart,
    /// The request that it answers, if any: then its destination asks for it. All flows of one begin one after the other.
    pub request: Option<Request>,
}

/// What a rank of a program has done: a row of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankTimes {
    /// Its number in the program.
    pub rank: u32,
    /// The node that it is on.
    pub host: u32,
    /// When its program began.
    pub start: Time,
    /// When its last operation ended; `None` if one has not.
    pub end: Option<Time>,
    /// How long at least one of its processors computed.
    pub computed: Span,
    /// Its operations, and those that have ended.
    pub operations: u32,
    /// See above.
    pub ended: u32,
}

/// How many flows an application begins in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// Known before the run.
    Exactly(u64),
    /// A closed loop, which may not come so far by the end.
    AtMost(u64),
}

/// When a source answers the request for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// At once.
    Now,
    /// After so long.
    After(Span),
    /// When the application says so ([`Application::poll_answer`]); it is to be polled now.
    Later,
}

/// The machine of one application.
pub trait Application {
    /// When it is to be polled next; `None` if not before a flow is [asked for](Self::handle_request),
    /// [sent](Self::handle_sent) or [delivered](Self::handle_delivered). After a poll that found nothing more, it lies
    /// after that poll's time.
    fn next_at(&mut self) -> Option<Time>;

    /// The next flow that begins by `now`. To be called until there is none.
    fn poll(&mut self, now: Time) -> Option<Start>;

    /// A flow is in the hands of its source's stack, one of the driver's hosts, to the last byte. Whether to poll at once.
    fn handle_sent(&mut self, _now: Time, _sequence: u32) -> bool {
        false
    }

    /// A flow is whole at its destination, one of the driver's hosts. Whether to poll at once.
    fn handle_delivered(&mut self, _now: Time, _sequence: u32) -> bool {
        false
    }

    /// The flow of this number, where a host that has not begun it knows it by its number alone; its start is zero.
    fn flow(&self, _sequence: u32) -> Option<FlowStart> {
        None
    }

    /// The request for a flow is whole at its source, one of the driver's hosts: when it is answered.
    fn handle_request(&mut self, _now: Time, _sequence: u32) -> Reply {
        Reply::Now
    }

    /// The next flow whose request was to be answered later, and is now. To be called after [`poll`](Self::poll) until there is
    /// none.
    fn poll_answer(&mut self) -> Option<u32> {
        None
    }

    /// Nodes that its hosts will ask: persistent connections to them are open from the beginning.
    fn peers(&self) -> &[u32] {
        &[]
    }

    /// What the ranks of the driver's hosts have done, by rank; none unless it is a program.
    fn rank_times(&self) -> Vec<RankTimes> {
        Vec::new()
    }
}

/// What a kind's machine is made for.
pub struct Run<'r, 'a> {
    /// When rounds begin that come at random.
    pub times: Option<Times<'a>>,
    /// A random number of the application's own.
    pub random: u64,
    /// How long each computation takes that is stated so; `None`: as stated.
    pub stretch: Option<program::Stretch<'a>>,
    /// Nothing begins from here on.
    pub end: Time,
    /// Which hosts the driver runs.
    pub runs: &'r dyn Fn(u32) -> bool,
}

/// Times in order.
pub type Times<'a> = Box<dyn Iterator<Item = Time> + Send + 'a>;

/// How a difference between two applications is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// In words.
    Text(String),
    /// Nodes: their number, and a digest of which.
    Nodes(Vec<u32>),
    /// A long text: how many of something it has, and a digest of it.
    Long(u32, String),
    /// A parameter and its value.
    Parameter(Parameter, Value),
}

/// Data of a round, or of the mean of rounds that differ: so many bytes, evenly over these pairs of source and destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Source and destination.
    pub pairs: Vec<(u32, u32)>,
    /// Bytes over all of them, in a round.
    pub bytes: u64,
    /// Bytes that come to a destination together; `None`: all that the round sends over a link.
    pub at_once: Option<u64>,
}

/// What a plan says of an application that goes in rounds, each of one flow over each of its pairs: what estimates, checks
/// and texts need to know of it.
pub trait Rounds {
    /// Source and destination of each flow of a round.
    fn pairs(&self) -> Vec<(u32, u32)>;
    /// The same of all rounds, where they differ.
    fn possible_pairs(&self) -> Vec<(u32, u32)> {
        self.pairs()
    }
    /// Size of each flow.
    fn size(&self) -> Bytes;
    /// What a round sends in the mean. Requests are left out where they are small.
    fn loads(&self) -> Vec<Load> {
        let pairs = self.pairs();
        let bytes = self.size().get() * pairs.len() as u64;
        Vec::from([Load { pairs, bytes, at_once: None }])
    }
    /// Whether destinations ask for their flows, and open the connections.
    fn asks(&self) -> bool;
    /// When the first round begins, or those at random may.
    fn start(&self) -> Time;
    /// How many there are at most, where one follows another; 0 where they come at random.
    fn repeats(&self) -> u32;
    /// Mean time between rounds that come at random; `None` where one follows another.
    fn mean_interarrival(&self) -> Option<Span> {
        None
    }
    /// Standard deviation of the logarithm of the factor by which the time of each computation varies, in units of 2⁻¹⁶.
    fn sigma(&self) -> u32 {
        0
    }
    /// How many numbers its flows may have in rounds that follow one another.
    fn numbers(&self) -> u64 {
        u64::from(self.repeats()) * self.pairs().len() as u64
    }
    /// Whether anything of it follows the seed.
    fn draws(&self) -> bool {
        self.mean_interarrival().is_some() || self.sigma() > 0
    }
    /// Whether its flows may keep their connections: those of a pair begin in the order of their numbers.
    fn keeps_connections(&self) -> bool {
        true
    }
    /// The number of the request that waits for this flow, though the flow is no answer to it; `None` where there is none.
    fn awaited_by(&self, _sequence: u32) -> Option<u32> {
        None
    }
    /// What two of them may differ in.
    fn facts(&self) -> Vec<(&'static str, Fact)>;
    /// Its machine.
    fn machine<'a>(&'a self, run: Run<'_, 'a>) -> App<'a>;

    /// The host that opens the connection of a flow of this pair.
    fn opener(&self, (source, destination): (u32, u32)) -> u32 {
        if self.asks() { destination } else { source }
    }
}

/// Passes the list of applications to a macro: the machines, and the kinds that go in rounds, each with its key in experiment
/// files. A kind's module has the same name wherever something is said of it.
#[macro_export]
macro_rules! applications {
    ($macro:ident) => {
        $macro! {
            machines: timed::Timed, incast::ScatterGather, all_to_all::Exchange, two_tier::Queries, program::Ranks;
            /// Scatter and gather.
            "incast": incast::Incast;
            /// Each host sends to each other host.
            "all-to-all": all_to_all::AllToAll;
            /// Scatter and gather in two tiers.
            "two-tier": two_tier::TwoTier;
            /// Ranks that compute, send and wait.
            "program": program::Program;
        }
    };
}

/// The enum that dispatches to machines; and of the kinds that go in rounds what a plan says of them.
macro_rules! registry {
    (machines: $($module:ident :: $app:ident),*; $($(#[$doc:meta])* $key:literal: $of:ident :: $kind:ident;)*) => {
        /// What a plan says of an application that goes in rounds.
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum Kind {
            $($(#[$doc])* #[cfg_attr(feature = "serde", serde(rename = $key))] $kind($of::$kind),)*
        }

        impl Kind {
            /// Its key in experiment files.
            pub const fn name(&self) -> &'static str {
                match self { $(Kind::$kind(_) => $key,)* }
            }
            /// The module of its machine, which versions of results name.
            pub const fn module(&self) -> &'static str {
                match self { $(Kind::$kind(_) => stringify!($of),)* }
            }
            /// What every kind tells.
            pub fn rounds(&self) -> &dyn Rounds {
                match self { $(Kind::$kind(kind) => kind,)* }
            }
        }

        /// Any application.
        #[allow(missing_docs, reason = "a variant is its application")]
        pub enum App<'a> {
            $($app($module::$app<'a>),)*
        }

        impl Application for App<'_> {
            fn next_at(&mut self) -> Option<Time> {
                match self { $(App::$app(app) => app.next_at(),)* }
            }
            fn poll(&mut self, now: Time) -> Option<Start> {
                match self { $(App::$app(app) => app.poll(now),)* }
            }
            fn handle_sent(&mut self, now: Time, sequence: u32) -> bool {
                match self { $(App::$app(app) => app.handle_sent(now, sequence),)* }
            }
            fn handle_delivered(&mut self, now: Time, sequence: u32) -> bool {
                match self { $(App::$app(app) => app.handle_delivered(now, sequence),)* }
            }
            fn flow(&self, sequence: u32) -> Option<FlowStart> {
                match self { $(App::$app(app) => app.flow(sequence),)* }
            }
            fn handle_request(&mut self, now: Time, sequence: u32) -> Reply {
                match self { $(App::$app(app) => app.handle_request(now, sequence),)* }
            }
            fn poll_answer(&mut self) -> Option<u32> {
                match self { $(App::$app(app) => app.poll_answer(),)* }
            }
            fn peers(&self) -> &[u32] {
                match self { $(App::$app(app) => app.peers(),)* }
            }
            fn rank_times(&self) -> Vec<RankTimes> {
                match self { $(App::$app(app) => app.rank_times(),)* }
            }
        }
    };
}

applications!(registry);
