//! Whether a program can end: every message has both its sides, and no operations wait for each other.
//!
//! The second is found by executing it without times. With messages that match by arrival, as in MPI, that is certain where
//! the operations of each channel are ordered; else another order of arrivals might still stop a program, which a run tells.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::goal::Fault;
use super::matching::Matching;
use super::schedule::{After, Channel, Operation, Schedule, count};

/// Why a program cannot end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A channel has more sends than receives, or fewer.
    Unmatched {
        /// The channel.
        channel: Channel,
        /// Its sends.
        sends: u32,
        /// Its receives.
        receives: u32,
        /// The last operation of the side that has more.
        operation: u32,
    },
    /// Operations that wait for each other: each for the next, the last for the first.
    Cycle(Vec<u32>),
}

/// The most operations of a cycle that are named.
const NAMED: usize = 6;

/// A number of things.
fn counted(number: u32, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

impl Flaw {
    /// The flaw in the words of a text: which line an operation is on, and what it is called.
    pub(super) fn tell(&self, schedule: &Schedule, line: &dyn Fn(u32) -> u32, name: &dyn Fn(u32) -> String) -> Fault {
        match self {
            Flaw::Unmatched { channel: Channel { source, destination, tag }, sends, receives, operation } => Fault {
                line: line(*operation),
                what: format!(
                    "from rank {source} to rank {destination} with tag {tag} there are {} and {}",
                    counted(*sends, "send"),
                    counted(*receives, "receive")
                ),
                help: "give every send a receive with the same two ranks and tag, and the reverse".into(),
            },
            Flaw::Cycle(operations) => {
                let tell = |&operation: &u32| format!("{} of rank {}", name(operation), schedule.rank(operation));
                let mut named: Vec<String> = operations.iter().take(NAMED).map(tell).collect();
                if operations.len() > NAMED {
                    named.push(format!("{} more", operations.len() - NAMED));
                }
                named.push(tell(&operations[0]));
                Fault {
                    line: line(operations[0]),
                    what: format!("operations wait for each other: {}", named.join(", which waits for ")),
                    help: "remove one of these dependencies; a receive waits for the send of its message".into(),
                }
            }
        }
    }
}

/// Checks a program.
///
/// # Errors
/// The first flaw.
pub fn check(schedule: &Schedule) -> Result<(), Flaw> {
    counterparts(schedule)?;
    match stuck(schedule) {
        None => Ok(()),
        Some(execution) => Err(Flaw::Cycle(cycle(schedule, &execution))),
    }
}

fn counterparts(schedule: &Schedule) -> Result<(), Flaw> {
    let mut sides = vec![[0_u32; 2]; schedule.channels().len()];
    let mut last = vec![[0_u32; 2]; schedule.channels().len()];
    for number in 0..schedule.operations() {
        let (channel, side) = match schedule.operation(number) {
            Operation::Calc(_) => continue,
            Operation::Send(_, channel) => (channel as usize, 0),
            Operation::Recv(channel) => (channel as usize, 1),
        };
        sides[channel][side] += 1;
        last[channel][side] = number;
    }
    let Some(wrong) = sides.iter().position(|[sends, receives]| sends != receives) else { return Ok(()) };
    let [sends, receives] = sides[wrong];
    let operation = last[wrong][usize::from(receives > sends)];
    Err(Flaw::Unmatched { channel: schedule.channels()[wrong], sends, receives, operation })
}

/// An execution that came to a stop.
struct Execution {
    started: Vec<bool>,
    ended: Vec<bool>,
}

/// Executes the program without times; what is left of it, if it stops.
fn stuck(schedule: &Schedule) -> Option<Execution> {
    let operations = schedule.operations() as usize;
    let mut left = schedule.dependencies();
    let mut matching = Matching::new(schedule);
    let mut execution = Execution { started: vec![false; operations], ended: vec![false; operations] };
    let mut ready: Vec<u32> = (0..schedule.operations()).filter(|&one| left[one as usize] == 0).rev().collect();
    let mut done = 0;
    while let Some(operation) = ready.pop() {
        execution.started[operation as usize] = true;
        let ended = match schedule.operation(operation) {
            Operation::Calc(_) => [Some(operation), None],
            Operation::Send(_, channel) => [Some(operation), matching.arrive(channel)],
            Operation::Recv(channel) => [matching.post(channel, operation).then_some(operation), None],
        };
        let mut release = |operation: u32, event: After| {
            for (one, after) in schedule.dependants(operation) {
                if after == event {
                    left[one as usize] -= 1;
                    if left[one as usize] == 0 {
                        ready.push(one);
                    }
                }
            }
        };
        release(operation, After::Start);
        for operation in ended.into_iter().flatten() {
            execution.ended[operation as usize] = true;
            done += 1;
            release(operation, After::End);
        }
    }
    (done < operations).then_some(execution)
}

/// Operations of a stopped execution that wait for each other.
fn cycle(schedule: &Schedule, execution: &Execution) -> Vec<u32> {
    let Execution { started, ended } = execution;
    // For each operation that has not ended, one that it waits for.
    let mut waits_for = vec![None; started.len()];
    for on in 0..schedule.operations() {
        for (one, after) in schedule.dependants(on) {
            let unmet = if after == After::End { !ended[on as usize] } else { !started[on as usize] };
            if unmet {
                waits_for[one as usize] = Some(on);
            }
        }
    }
    let mut sends = vec![None; schedule.channels().len()];
    for number in 0..schedule.operations() {
        if let Operation::Send(_, channel) = schedule.operation(number)
            && !started[number as usize]
        {
            sends[channel as usize] = Some(number);
        }
    }
    for number in 0..count(started.len()) {
        if let Operation::Recv(channel) = schedule.operation(number)
            && started[number as usize]
            && !ended[number as usize]
        {
            waits_for[number as usize] = sends[channel as usize];
        }
    }
    let mut at = count(ended.iter().position(|ended| !ended).expect("it stopped"));
    let mut place = vec![None; started.len()];
    let mut path = Vec::new();
    loop {
        if let Some(begins) = place[at as usize] {
            return path.split_off(begins);
        }
        place[at as usize] = Some(path.len());
        path.push(at);
        at = waits_for[at as usize].expect("what has not ended waits for something that has not");
    }
}
