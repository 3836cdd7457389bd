//! Programs: ranks that compute, send and wait, as traces and models of parallel applications state them.
//!
//! | module | what it is |
//! |---|---|
//! | `schedule` | the operations, as columns |
//! | `goal` | their text form |
//! | `check` | whether a program can end |
//! | `matching` | which receive a message completes |
//! | `ranks` | the machine |
//! | `generate` | programs by name: collectives, kernels of NPB, a training step |
//!
//! A plan holds a program by its generator's parameters, or by its whole text: that is what travels.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{App, Fact, Rounds, Run};
use crate::component::{Parameter, Spec, Value};
use crate::units::{Bytes, Time};

pub mod check;
pub mod generate;
pub mod goal;
mod matching;
mod ranks;
pub mod schedule;
#[cfg(test)]
mod tests;

pub use ranks::{Ranks, Stretch};
pub use schedule::{MAX_OPERATIONS, Schedule};

/// A generator's name, and a value for each of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Generated {
    /// Its name in the registry.
    pub name: String,
    /// In the order of its spec.
    pub values: Vec<Value>,
}

/// A program and the hosts of its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Written", into = "Written")
)]
pub struct Program {
    /// By rank: its host. Different ones.
    pub hosts: Vec<u32>,
    /// When it begins.
    pub start: Time,
    /// Standard deviation of the logarithm of each computation's time, in units of 2⁻¹⁶.
    pub sigma: u32,
    /// What made it; `None` of one that a text states.
    generated: Option<Generated>,
    schedule: Arc<Schedule>,
}

/// A program as a plan holds it: what made it, or its text, without comments and its own labels.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
struct Written {
    hosts: Vec<u32>,
    start: Time,
    sigma: u32,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    generate: Option<Generated>,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    goal: Option<String>,
}

impl From<Program> for Written {
    fn from(program: Program) -> Written {
        let Program { hosts, start, sigma, generated, schedule } = program;
        let goal = generated.is_none().then(|| schedule.to_string());
        Written { hosts, start, sigma, generate: generated, goal }
    }
}

impl TryFrom<Written> for Program {
    type Error = String;

    fn try_from(written: Written) -> Result<Program, String> {
        let Written { hosts, start, sigma, generate, goal } = written;
        let schedule = match (&generate, &goal) {
            (Some(Generated { name, values }), None) => generate::schedule(name, values)?,
            (None, Some(text)) => goal::read(text).map_err(|fault| fault.to_string())?,
            _ => return Err("a program has a generator or a text".to_owned()),
        };
        if hosts.len() != schedule.ranks() as usize {
            return Err("a program has one host for each rank".to_owned());
        }
        Ok(Program { hosts, start, sigma, generated: generate, schedule: Arc::new(schedule) })
    }
}

impl Program {
    /// A program whose operations are known: what a text states, or what this generator makes. Programs may share them.
    ///
    /// # Panics
    /// If there is not one host for each rank.
    pub fn new(
        schedule: impl Into<Arc<Schedule>>,
        generated: Option<Generated>,
        hosts: Vec<u32>,
        start: Time,
        sigma: u32,
    ) -> Program {
        let schedule = schedule.into();
        assert_eq!(hosts.len(), schedule.ranks() as usize, "a program has one host for each rank");
        Program { hosts, start, sigma, generated, schedule }
    }

    /// Its operations.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The generator and its values, where it has one.
    fn generator(&self) -> Option<(&'static Spec, &[Value])> {
        let Generated { name, values } = self.generated.as_ref()?;
        Some((generate::spec(name)?, values))
    }
}

impl Rounds for Program {
    /// One round: every message once.
    fn pairs(&self) -> Vec<(u32, u32)> {
        let host = |rank: u32| self.hosts[rank as usize];
        self.schedule.messages().map(|(from, to, _)| (host(from), host(to))).collect()
    }

    /// The mean, rounded down.
    fn size(&self) -> Bytes {
        let (count, sum) =
            self.schedule.messages().fold((0, 0), |(count, sum), (_, _, size)| (count + 1, sum + size.get()));
        Bytes::new(sum / u64::max(count, 1))
    }

    fn asks(&self) -> bool {
        false
    }

    fn start(&self) -> Time {
        self.start
    }

    fn repeats(&self) -> u32 {
        1
    }

    fn sigma(&self) -> u32 {
        self.sigma
    }

    fn numbers(&self) -> u64 {
        self.schedule.operations().into()
    }

    fn facts(&self) -> Vec<(&'static str, Fact)> {
        let mut facts = Vec::from([
            ("hosts", Fact::Nodes(self.hosts.clone())),
            ("start", Fact::Text(self.start.to_string())),
            ("sigma", Fact::Text(format!("{}/2^16", self.sigma))),
        ]);
        match self.generator() {
            None => {
                let text = self.schedule.to_string();
                facts.push(("goal", Fact::Long(self.schedule.operations(), text)));
            }
            Some((spec, values)) => {
                facts.push(("generate", Fact::Text(spec.name.to_owned())));
                let tell = |(parameter, value): (&'static Parameter, &Value)| {
                    (parameter.name, Fact::Parameter(*parameter, *value))
                };
                facts.extend(spec.parameters.iter().zip(values).map(tell));
            }
        }
        facts
    }

    fn machine<'a>(&'a self, run: Run<'_, 'a>) -> App<'a> {
        App::Ranks(Ranks::new(self, run.end, run.runs, run.stretch))
    }
}
