//! The machine of a program: ranks that compute, send and wait.
//!
//! - A computation takes its processor: those of one rank and `cpu` follow each other, in the order in which they could start.
//!   Sends and receives take none, as the host's stack is the driver's.
//! - A send is complete when the stack has taken the message (eager, as MPI sends of moderate size and LogGOPSim's below its
//!   threshold S are). A receive is complete when a whole message of its channel is there.
//! - A flow's number is that of its send.

use alloc::boxed::Box;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Program;
use super::matching::Matching;
use super::schedule::{After, Operation, Schedule};
use crate::app::{Application, FlowStart, RankTimes, Start};
use crate::units::{Bytes, Span, Time};

/// How long a computation takes that is stated so: by number.
pub type Stretch<'a> = Box<dyn Fn(u32, Span) -> Span + Send + 'a>;

/// One processor of a rank.
#[derive(Clone, Debug, Default)]
struct Cpu {
    computes: bool,
    waiting: VecDeque<u32>,
}

/// One rank that the driver runs.
#[derive(Clone, Debug, Default)]
struct Rank {
    cpus: Vec<Cpu>,
    /// Processors that compute, and since when at least one does.
    computing: u32,
    since: Time,
    computed: Span,
    /// Operations that have ended, and when the last did.
    ended: u32,
    last: Time,
}

/// The machine: the ranks that the driver runs.
pub struct Ranks<'a> {
    program: &'a Program,
    schedule: &'a Schedule,
    /// By rank.
    ranks: Vec<Option<Rank>>,
    /// By operation: on how many others it still waits.
    left: Vec<u32>,
    matching: Matching,
    ready: VecDeque<u32>,
    /// Computations under way, by their end.
    computing: BinaryHeap<Reverse<(Time, u32)>>,
    stretch: Option<Stretch<'a>>,
    /// When the program begins; `None` after it.
    first: Option<Time>,
    /// Nothing happens from here on.
    end: Time,
    peers: Vec<u32>,
}

impl<'a> Ranks<'a> {
    /// The program before a run that ends at `end`, for the hosts that the driver `runs`.
    pub fn new(program: &'a Program, end: Time, runs: impl Fn(u32) -> bool, stretch: Option<Stretch<'a>>) -> Ranks<'a> {
        let schedule = program.schedule();
        let ours = |rank: &u32| runs(program.hosts[*rank as usize]);
        let ranks: Vec<Option<Rank>> = (0..schedule.ranks()).map(|rank| ours(&rank).then(Rank::default)).collect();
        let any = ranks.iter().any(Option::is_some);
        let channels = schedule.channels().iter().filter(|channel| ranks[channel.source as usize].is_some());
        let mut peers: Vec<u32> = channels.map(|channel| program.hosts[channel.destination as usize]).collect();
        peers.sort_unstable();
        peers.dedup();
        Ranks {
            program,
            schedule,
            ranks,
            left: if any { schedule.dependencies() } else { Vec::new() },
            matching: Matching::new(schedule),
            ready: VecDeque::new(),
            computing: BinaryHeap::new(),
            stretch,
            first: Some(program.start).filter(|&start| any && start < end),
            end,
            peers,
        }
    }

    fn rank(&mut self, operation: u32) -> &mut Rank {
        self.ranks[self.schedule.rank(operation) as usize].as_mut().expect("an operation of a rank that is run")
    }

    fn begin(&mut self) {
        for (rank, state) in (0..).zip(&self.ranks) {
            if state.is_some() {
                self.ready.extend(self.schedule.of_rank(rank).filter(|&one| self.left[one as usize] == 0));
            }
        }
    }

    fn release(&mut self, operation: u32, event: After) {
        for (one, after) in self.schedule.dependants(operation) {
            if after == event {
                let left = &mut self.left[one as usize];
                *left -= 1;
                if *left == 0 {
                    self.ready.push_back(one);
                }
            }
        }
    }

    /// An operation has ended. Whether another may start now.
    fn complete(&mut self, now: Time, operation: u32) -> bool {
        let rank = self.rank(operation);
        rank.ended += 1;
        rank.last = now;
        self.release(operation, After::End);
        !self.ready.is_empty()
    }

    /// A computation that may start waits for its processor, or takes it.
    fn compute(&mut self, now: Time, operation: u32) {
        let cpu = usize::from(self.schedule.cpu(operation));
        let rank = self.rank(operation);
        if rank.cpus.len() <= cpu {
            rank.cpus.resize(cpu + 1, Cpu::default());
        }
        if rank.cpus[cpu].computes {
            rank.cpus[cpu].waiting.push_back(operation);
        } else {
            self.take_cpu(now, operation);
        }
    }

    fn take_cpu(&mut self, now: Time, operation: u32) {
        let Operation::Calc(stated) = self.schedule.operation(operation) else { unreachable!("it is a computation") };
        let span = self.stretch.as_ref().map_or(stated, |stretch| stretch(operation, stated));
        let cpu = usize::from(self.schedule.cpu(operation));
        let rank = self.rank(operation);
        rank.cpus[cpu].computes = true;
        if rank.computing == 0 {
            rank.since = now;
        }
        rank.computing += 1;
        self.computing.push(Reverse((now + span, operation)));
        self.release(operation, After::Start);
    }

    /// A computation has ended; the next one may have its processor.
    fn leave_cpu(&mut self, at: Time, operation: u32) {
        let cpu = usize::from(self.schedule.cpu(operation));
        let rank = self.rank(operation);
        rank.computing -= 1;
        if rank.computing == 0 {
            rank.computed += at.since(rank.since);
        }
        rank.cpus[cpu].computes = false;
        let next = rank.cpus[cpu].waiting.pop_front();
        self.complete(at, operation);
        if let Some(next) = next {
            self.take_cpu(at, next);
        }
    }
}

impl Application for Ranks<'_> {
    fn next_at(&mut self) -> Option<Time> {
        let calc = self.computing.peek().map(|Reverse((at, _))| *at);
        self.first.or(calc).filter(|&at| at < self.end)
    }

    fn poll(&mut self, now: Time) -> Option<Start> {
        if now >= self.end {
            (self.first, self.ready) = (None, VecDeque::new());
            return None;
        }
        if let Some(first) = self.first {
            if now < first {
                return None;
            }
            self.first = None;
            self.begin();
        }
        loop {
            if let Some(Reverse((at, operation))) = self.computing.peek().copied().filter(|Reverse((at, _))| *at <= now)
            {
                self.computing.pop();
                self.leave_cpu(at, operation);
                continue;
            }
            let operation = self.ready.pop_front()?;
            match self.schedule.operation(operation) {
                Operation::Calc(_) => self.compute(now, operation),
                Operation::Recv(channel) => {
                    self.release(operation, After::Start);
                    if self.matching.post(channel, operation) {
                        self.complete(now, operation);
                    }
                }
                Operation::Send(..) => {
                    self.release(operation, After::Start);
                    let flow = self.program.message(operation, now).expect("it is a send");
                    return Some(Start { sequence: operation, flow, request: None });
                }
            }
        }
    }

    fn handle_sent(&mut self, now: Time, sequence: u32) -> bool {
        now < self.end && self.complete(now, sequence)
    }

    fn handle_delivered(&mut self, now: Time, sequence: u32) -> bool {
        if now >= self.end {
            return false;
        }
        let Operation::Send(_, channel) = self.schedule.operation(sequence) else { unreachable!("a flow is a send") };
        self.matching.arrive(channel).is_some_and(|receive| self.complete(now, receive))
    }

    fn flow(&self, sequence: u32) -> Option<FlowStart> {
        (sequence < self.schedule.operations()).then(|| self.program.message(sequence, Time::ZERO))?
    }

    fn peers(&self) -> &[u32] {
        &self.peers
    }

    fn rank_times(&self) -> Vec<RankTimes> {
        let tell = |(rank, state): (u32, &Option<Rank>)| {
            let state = state.as_ref()?;
            let operations = self.schedule.of_rank(rank).len();
            let whole = state.ended as usize == operations;
            let last = if operations == 0 { self.program.start } else { state.last };
            let open = if state.computing > 0 { self.end.since(state.since.min(self.end)) } else { Span::ZERO };
            Some(RankTimes {
                rank,
                host: self.program.hosts[rank as usize],
                start: self.program.start,
                end: whole.then_some(last),
                computed: state.computed + open,
                operations: super::schedule::count(operations),
                ended: state.ended,
            })
        };
        (0..).zip(&self.ranks).filter_map(tell).collect()
    }
}

impl Program {
    /// The message of this send, begun at `at`. TCP has no empty messages: one of no bytes is of one.
    pub(super) fn message(&self, operation: u32, at: Time) -> Option<FlowStart> {
        let Operation::Send(size, channel) = self.schedule().operation(operation) else { return None };
        let channel = self.schedule().channels()[channel as usize];
        let host = |rank: u32| self.hosts[rank as usize];
        Some(FlowStart::new(at, host(channel.source), host(channel.destination), Some(size.max(Bytes::new(1)))))
    }
}
