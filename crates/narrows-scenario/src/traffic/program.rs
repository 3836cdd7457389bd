//! A program as written: a GOAL file or a generator, and where its ranks are.

use std::cell::RefCell;
use std::sync::Arc;

use narrows_core::app::program::{Generated, MAX_OPERATIONS, Program as Planned, Schedule, generate, goal};
use narrows_core::component::Value;
use narrows_core::units::Time;

use super::{Scene, start};
use crate::controller;
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::quantity::{Fraction, Quantity};
use crate::experiment::selector::{Program as Chosen, Selector};
use crate::files;
use crate::select;
use narrows_plan::{Kind, NodeKind};
use schemars::JsonSchema;
use serde::Deserialize;

/// Greatest deviation of the logarithm of a computation's time.
const MAX_SIGMA: f64 = 1.0;

/// Ranks that compute, send and wait: exactly one of `goal` and `generate` says what they do.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Program {
    /// A file in GOAL, beside the experiment.
    pub goal: Option<Located<String>>,
    /// A generator: its name, or a table from it to parameters.
    pub generate: Option<Located<Chosen>>,
    /// Where the ranks are, in their order; default: all hosts. Further ones have no rank.
    pub hosts: Option<Located<Selector>>,
    /// Standard deviation of the logarithm of the factor, of mean 1, by which each computation's time varies, 0 to 1; default: 0.
    pub sigma: Option<Located<Fraction>>,
    /// When it begins; default: at once.
    pub start: Option<Located<Quantity<Time>>>,
}

/// The operations of programs that were read or made, which the plans of an experiment share: they may be millions.
#[derive(Default)]
pub(crate) struct Programs(RefCell<Vec<(Origin, Arc<Schedule>)>>);

/// What a program's operations follow from.
#[derive(PartialEq)]
enum Origin {
    File(String),
    Generator(Generated),
}

impl Programs {
    /// The operations of this origin, which `make` gives the first time.
    fn get(&self, origin: Origin, make: impl FnOnce() -> Judged<Schedule>) -> Judged<Arc<Schedule>> {
        if let Some((_, known)) = self.0.borrow().iter().find(|(known, _)| *known == origin) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(make()?);
        self.0.borrow_mut().push((origin, Arc::clone(&made)));
        Ok(made)
    }
}

/// The program of a generator as text in GOAL. Parameters are written as on a command line: `bytes` and `100MB`.
///
/// # Errors
/// If there is no such generator or parameter, a value is missing or none of the parameter's, or they do not go together.
pub fn goal_text(name: &str, given: &[(String, String)]) -> Result<String, Problem> {
    let Some(spec) = generate::spec(name) else {
        return Err(Problem::unknown_name("program", name, generate::SPECS.iter().map(|spec| spec.name)));
    };
    let mut values = spec.defaults();
    for (parameter, text) in given {
        let value = controller::component_value(spec.name, spec.parameters, parameter, text)?;
        let place = spec.parameters.iter().position(|known| known.name == parameter);
        values[place.expect("its value was found")] = value;
    }
    if let Some((missing, _)) = spec.parameters.iter().zip(&values).find(|(_, value)| **value == Value::Required) {
        return Err(Problem::missing(missing.name, &format!("{}=…", missing.name)));
    }
    let made = generate::schedule(spec.name, &values).map_err(Problem::malformed)?;
    Ok(made.to_string())
}

/// The program, under the traffic's own name.
pub(super) fn resolve(name: &str, written: &Located<Program>, scene: &Scene<'_>) -> Judged<Vec<(String, Kind)>> {
    let (schedule, generated, span) = match (&written.goal, &written.generate) {
        (Some(path), None) => {
            let read = || {
                let text = files::beside(scene.folder, path)?;
                goal::read(&text).map_err(|fault| {
                    Problem::in_line(&path.value, fault.line as usize, &fault.what, &fault.help).at(&path.span)
                })
            };
            (scene.programs.get(Origin::File(path.value.clone()), read)?, None, &path.span)
        }
        (None, Some(chosen)) => {
            let (spec, values) = controller::component("program", generate::SPECS, &[], &chosen.value.0, &chosen.span)?;
            let generated = Generated { name: spec.name.to_owned(), values };
            let make = || {
                generate::schedule(spec.name, &generated.values)
                    .map_err(|sentence| Problem::malformed(sentence).at(&chosen.span))
            };
            let made = scene.programs.get(Origin::Generator(generated.clone()), make)?;
            (made, Some(generated), &chosen.span)
        }
        _ => return Err(Problem::one_of("program", &["goal", "generate"]).at(&written.span)),
    };
    if schedule.operations() > MAX_OPERATIONS {
        return Err(Problem::too_many("operations", schedule.operations().into(), MAX_OPERATIONS.into()).at(span));
    }
    let mut hosts = match &written.hosts {
        Some(hosts) => select::hosts(scene.graph, hosts)?,
        None => {
            let all = (0..).zip(&scene.graph.nodes).filter(|(_, node)| node.kind == NodeKind::Host);
            all.map(|(place, _)| place).collect()
        }
    };
    let ranks = schedule.ranks() as usize;
    if hosts.len() < ranks {
        let sentence = format!("the program has {ranks} ranks, more than hosts: {}", hosts.len());
        let span = written.hosts.as_ref().map_or(span, |hosts| &hosts.span);
        return Err(Problem::new(sentence, "each rank has its own host: name more, or use fewer ranks").at(span));
    }
    hosts.truncate(ranks);
    let sigma = match &written.sigma {
        Some(sigma) if sigma.value.0 > MAX_SIGMA => {
            return Err(Problem::out_of_range("sigma", sigma.value.0, "0", MAX_SIGMA).at(&sigma.span));
        }
        sigma => sigma.as_ref().map_or(0, |sigma| sigma.value.scaled(16)),
    };
    let sigma = u32::try_from(sigma).expect("at most 2^16");
    let start = start(written.start.as_ref(), scene)?;
    let kind = Kind::Program(Planned::new(schedule, generated, hosts, start, sigma));
    Ok(vec![(name.to_owned(), kind)])
}
