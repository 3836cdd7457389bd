//! The experiment as it is written: the shape of the file and nothing more. Unknown keys are refused here; what values
//! mean together is judged where it is resolved.

use std::collections::BTreeSet;

use narrows_core::units::{Span, Time};
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;

pub mod event;
pub mod host;
pub mod located;
pub mod network;
pub mod quantity;
pub mod report;
pub mod selector;
pub mod traffic;

use event::Event;
use located::Located;
use network::Sets;
use quantity::{Quantity, inline_schema};
use report::Report;
use selector::{Anything, Controller, Routing, Scalar, Selector};
use traffic::Traffic;

use crate::topology::Topology;

/// An experiment file.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    /// Stable name; default: the folder's.
    pub name: Option<Located<String>>,
    /// One line for reports.
    pub title: Option<String>,
    /// The network.
    pub topology: Located<Topology>,
    /// How switches choose among equally short paths; default: `"ecmp"`.
    pub routing: Option<Located<Routing>>,
    /// What is sent.
    #[serde(default)]
    pub traffic: Vec<Located<Traffic>>,
    /// What changes at links during the run.
    #[serde(default)]
    pub event: Vec<Located<Event>>,
    /// The controller of all traffic that names none; each arm may name its own.
    pub cc: Option<Located<Controller>>,
    /// Classic ECN for controllers that do not need ECN.
    pub ecn: Option<Located<bool>>,
    /// What is compared.
    #[serde(default)]
    pub arm: Vec<Located<Arm>>,
    /// Axes: dotted paths and the values each takes; every combination is run with every arm.
    #[serde(default)]
    pub sweep: std::collections::BTreeMap<String, Anything>,
    /// When and how often.
    pub run: Located<Run>,
    /// What is sampled.
    #[serde(default)]
    pub sample: Sample,
    /// What the report shows of a sweep.
    #[serde(default)]
    pub report: Report,
}

/// One of the things compared, and all that it declares to be different.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Arm {
    /// Unique; as in figures.
    pub name: Located<String>,
    /// Its controller.
    pub cc: Option<Located<Controller>>,
    /// Classic ECN.
    pub ecn: Option<Located<bool>>,
    /// Values by dotted path.
    #[serde(default)]
    pub set: Sets,
}

/// When a run ends and how many there are.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Run {
    /// No flow starts at or after this.
    pub end: Located<Quantity<Time>>,
    /// How long started flows may go on after `end`; default: `"10s"`.
    pub drain: Option<Located<Quantity<Span>>>,
    /// Flows that start before this do not count; default: none.
    pub warmup: Option<Located<Quantity<Span>>>,
    /// `"1..10"`, both ends included, a number or a list (default: `"1..10"`).
    pub seeds: Option<Located<Seeds>>,
    /// What differs in a quick run.
    #[serde(default)]
    pub quick: Quick,
}

/// What differs in a quick run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Quick {
    /// See [`Run::end`].
    pub end: Option<Located<Quantity<Time>>>,
    /// See [`Run::drain`].
    pub drain: Option<Located<Quantity<Span>>>,
    /// See [`Run::warmup`].
    pub warmup: Option<Located<Quantity<Span>>>,
    /// See [`Run::seeds`].
    pub seeds: Option<Located<Seeds>>,
    /// `exact` for every traffic that arrives at random.
    pub exact: Option<bool>,
    /// Values by dotted path.
    #[serde(default)]
    pub set: Sets,
    /// Axes that take other values.
    #[serde(default)]
    pub sweep: Sets,
}

/// What is sampled, and how often.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Sample {
    /// Backlog of every watched port, so often.
    pub queues: Option<Located<Quantity<Span>>>,
    /// Roles or links whose ports are watched, globs allowed; by default ports between switches, or towards
    /// hosts where there are none.
    pub watch: Option<Located<Selector>>,
    /// Window and pacing rate of the senders of long-lived flows and of `flows`, so often.
    pub windows: Option<Located<Quantity<Span>>>,
    /// Goodput of long-lived flows and of `flows` in bins of this width.
    pub goodput: Option<Located<Quantity<Span>>>,
    /// Flows with a size that are sampled too: `"web/*"` for all of a traffic, `"web/7"` for the one that seven others of it
    /// precede, or the number that a flow has in results.
    #[schemars(with = "Option<Vec<FlowName>>")]
    pub flows: Option<Located<Vec<Located<Scalar>>>>,
    /// What watched ports send, in bins of this width.
    pub throughput: Option<Located<Quantity<Span>>>,
}

/// How a sampled flow is named, for the schema.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "it stands for its schema")]
enum FlowName {
    Named(String),
    Number(u32),
}

/// Seeds: `7`, `"1..10"` with both ends, for which `"1..=10"` is another spelling, several of these as `"1,3,5..9"`, or a
/// list of numbers. At most 10 000, each once, and each at most 2^63 − 1, the largest integer of TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

/// Most seeds of one experiment.
pub const MAX_SEEDS: u64 = 10_000;

impl Seeds {
    /// What seeds are, for messages.
    pub(crate) const SHAPE: &str =
        "seeds are a number, a range such as \"1..10\" with both ends, or a list of different numbers, at most 10000";

    /// Reads the text form.
    pub fn parse(text: &str) -> Option<Seeds> {
        let number = |text: &str| {
            let digits = text.trim();
            let whole = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?;
            whole.map(i64::unsigned_abs)
        };
        let mut seeds = vec![];
        for part in text.split(',') {
            let (first, last) = match part.split_once("..") {
                Some((first, last)) => (number(first)?, number(last.strip_prefix('=').unwrap_or(last))?),
                None => (number(part)?, number(part)?),
            };
            if first > last || last - first >= MAX_SEEDS || seeds.len() as u64 >= MAX_SEEDS {
                return None;
            }
            seeds.extend(first..=last);
        }
        Seeds::of(seeds)
    }

    /// These, if they are few enough and different.
    fn of(seeds: Vec<u64>) -> Option<Seeds> {
        let different = seeds.iter().collect::<BTreeSet<_>>().len() == seeds.len();
        (!seeds.is_empty() && different && seeds.len() as u64 <= MAX_SEEDS).then_some(Seeds(seeds))
    }
}

impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::{Error, SeqAccess, Visitor};
        struct Shape;
        impl<'de> Visitor<'de> for Shape {
            type Value = Seeds;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("seeds such as \"1..10\", [1, 2, 3] or 7")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Seeds, E> {
                Seeds::parse(text).ok_or_else(|| E::custom(Seeds::SHAPE))
            }
            fn visit_i64<E: Error>(self, seed: i64) -> Result<Seeds, E> {
                u64::try_from(seed).map(|seed| Seeds(vec![seed])).map_err(|_| E::custom(Seeds::SHAPE))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Seeds, A::Error> {
                let mut seeds = vec![];
                while let Some(seed) = items.next_element::<u64>()? {
                    seeds.push(seed);
                }
                Seeds::of(seeds).ok_or_else(|| A::Error::custom(Seeds::SHAPE))
            }
        }
        deserializer.deserialize_any(Shape)
    }
}

inline_schema!(Seeds, "seeds", |_| json_schema!({ "anyOf": [
        { "type": "string", "pattern": r"^\s*[0-9]+\s*(\.\.=?\s*[0-9]+)?\s*(,\s*[0-9]+\s*(\.\.=?\s*[0-9]+)?\s*)*$",
          "examples": ["1..10"] },
        { "type": "integer", "minimum": 0 },
        { "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 1, "uniqueItems": true },
    ] }));

/// The JSON Schema of an experiment file, for editors.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(File).to_value()
}
