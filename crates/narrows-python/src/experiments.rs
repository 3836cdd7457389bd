//! Experiment files: expansion, the schema, and what controllers there are.

use std::path::Path;

use narrows_core::cc::SPECS;
use narrows_core::units::Bytes;
use narrows_plan::{NodeKind, Plan, Sources, Traffic};
use narrows_scenario::differences::differences;
use narrows_scenario::experiment::Seeds;
use narrows_scenario::route::{NoPath, Routes};
use narrows_scenario::summary::{LongFlow, NetworkSummary};
use narrows_scenario::{Limits, Overrides, Warning, described, goal_text, json_schema, load, may_draw, registry};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value as Json, json};

pyo3::create_exception!(_native, BadInput, PyValueError, "The whole rendered error: where, what, and what to do.");

/// The digests of the sources that results depend on.
pub(crate) fn sources() -> Sources {
    Sources::new(env!("CARGO_PKG_VERSION"), include!(concat!(env!("OUT_DIR"), "/sources.rs")))
        .with("cc/in-python", env!("NARROWS_IN_PYTHON"))
}

/// The version of the package, and after `+` the digest of the engine.
#[pyfunction]
pub(crate) fn version() -> String {
    sources().program()
}

/// The version of a plan's results; `by`, as `narrowsd sources` prints it, is another program than this module.
#[pyfunction]
#[pyo3(signature = (plan_json, by=None))]
pub(crate) fn plan_version(plan_json: &str, by: Option<&str>) -> PyResult<String> {
    let refused = |error| PyValueError::new_err(format!("narrowsd is one of another version: {error}"));
    let by = by.map(serde_json::from_str).transpose().map_err(refused)?;
    Ok(by.unwrap_or_else(sources).version(&plan_of(plan_json)?))
}

/// The hash of a plan, which names the folder of its runs.
#[pyfunction]
pub(crate) fn plan_hash(plan_json: &str) -> PyResult<String> {
    Ok(plan_of(plan_json)?.hash())
}

/// A plan as JSON has it.
pub(crate) fn plan_of(plan_json: &str) -> PyResult<Plan> {
    serde_json::from_str(plan_json)
        .map_err(|error| PyValueError::new_err(format!("the plan is one of another version: {error}")))
}

/// What a plan states of its flows without a size, as JSON.
#[pyfunction]
pub(crate) fn long_flows(plan_json: &str) -> PyResult<String> {
    let plan = plan_of(plan_json)?;
    let flows = LongFlow::all(&plan).map_err(no_path)?;
    Ok(json!(flows).to_string())
}

/// A plan's network in words, as JSON.
#[pyfunction]
pub(crate) fn network(plan_json: &str) -> PyResult<String> {
    Ok(json!(NetworkSummary::of(&plan_of(plan_json)?)).to_string())
}

/// RTT between two hosts of a plan when nothing queues, nanoseconds.
#[pyfunction]
pub(crate) fn base_rtt(plan_json: &str, one: &str, other: &str) -> PyResult<u64> {
    let network = plan_of(plan_json)?.network;
    let host = |name: &str| {
        let found = (0..).zip(&network.nodes).find(|(_, node)| node.name == name && node.kind == NodeKind::Host);
        found.map(|(place, _)| place).ok_or_else(|| PyValueError::new_err(format!("the plan has no host {name}")))
    };
    let rtts = Routes::new(&network).base_rtts(&[(host(one)?, host(other)?)]);
    Ok(rtts.map_err(no_path)?[0].as_ns())
}

fn no_path(missing: NoPath) -> PyErr {
    PyValueError::new_err(format!("the plan has no path from node {} to node {}", missing.from, missing.to))
}

/// The compiler and the profile that made this module.
#[pyfunction]
pub(crate) fn build() -> &'static str {
    env!("NARROWS_BUILD")
}

/// Every component that an experiment chooses by name, and its parameters, as JSON.
#[pyfunction]
pub(crate) fn components() -> String {
    Json::from_iter(registry::components().iter().map(registry::Listed::json)).to_string()
}

/// The JSON Schema of experiment files.
#[pyfunction]
pub(crate) fn schema() -> String {
    json_schema().to_string()
}

/// The program of a generator, in GOAL; its parameters as text, by name.
#[pyfunction]
pub(crate) fn program(py: Python<'_>, name: &str, given: Vec<(String, String)>) -> PyResult<String> {
    py.detach(|| goal_text(name, &given)).map_err(|problem| {
        let help = problem.help().map_or(String::new(), |help| format!("\n  help: {help}"));
        BadInput::new_err(format!("{problem}{help}"))
    })
}

/// The C compiler that compiles controllers.
#[pyfunction]
pub(crate) fn c_compiler() -> PyResult<String> {
    narrows_c::compiler_name().map_err(|error| BadInput::new_err(format!("{error}\n  help: {}", error.help())))
}

/// A controller in C or Python: its name, its use of ECN, and what an experiment may set, as JSON. Of several the one called `name`.
#[pyfunction]
#[pyo3(signature = (path, name=None))]
pub(crate) fn controller_in_file(py: Python<'_>, path: &str, name: Option<&str>) -> PyResult<String> {
    let found = py.detach(|| {
        let source = narrows_c::read(Path::new(path))?;
        let library = narrows_c::load(&source, name)?;
        Ok((library.spec(), library.parameters()))
    });
    let (spec, parameters) =
        found.map_err(|error: narrows_c::Error| BadInput::new_err(format!("{error}\n  help: {}", error.help())))?;
    let parameters: Vec<Json> =
        parameters.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    Ok(json!({
        "name": spec.name, "about": spec.about, "ecn": registry::ecn(spec.ecn), "parameters": parameters,
    })
    .to_string())
}

/// Seeds from a text, as `run.seeds` of an experiment file takes it; `None` if it names none.
#[pyfunction]
pub(crate) fn seeds(text: &str) -> Option<Vec<u64>> {
    Seeds::parse(text).map(|seeds| seeds.0)
}

/// An experiment file, expanded into plans, as JSON.
#[pyfunction]
#[pyo3(signature = (path, *, sets=Vec::new(), quick=false, memory_limit_bytes=None))]
pub(crate) fn expand(
    path: &str,
    sets: Vec<(String, String)>,
    quick: bool,
    memory_limit_bytes: Option<u64>,
) -> PyResult<String> {
    let limits = memory_limit_bytes.map_or(Limits::default(), |bytes| Limits { memory: Bytes::new(bytes) });
    let overrides = Overrides { sets, quick };
    let experiment = load(Path::new(path), &overrides, &limits).map_err(|error| BadInput::new_err(error.render()))?;
    let hashes: Vec<String> = experiment.plans.iter().map(Plan::hash).collect();
    let sources = sources();
    let plans: Vec<Json> = experiment
        .plans
        .iter()
        .zip(&experiment.summaries)
        .zip(&hashes)
        .map(|((plan, summary), hash)| {
            json!({
                "hash": hash,
                "version": sources.version(plan),
                "arm": plan.arm,
                "axes": plan.axes,
                "declared": plan.declared,
                "plan": plan,
                "draws": may_draw(plan),
                "controllers": plan.traffic.iter().map(controller).collect::<Vec<_>>(),
                "summary": summary,
            })
        })
        .collect();
    let listed: Vec<&Plan> = experiment.plans.iter().collect();
    let differences: Vec<Json> = differences(&listed)
        .into_iter()
        .map(|difference| {
            // Values in the order of the plans.
            json!({ "path": difference.path, "values": difference.values, "declared": difference.declared })
        })
        .collect();
    // Each names the schemes that it is about: none where it is about all.
    let schemes = |warning: &Warning| -> Vec<&str> {
        let mut arms: Vec<&str> = warning.plans.iter().map(|plan| experiment.plans[*plan].arm.as_str()).collect();
        arms.dedup();
        if warning.plans.len() == experiment.plans.len() { vec![] } else { arms }
    };
    let warnings: Vec<Json> = experiment
        .warnings
        .iter()
        .map(|warning| {
            let plans: Vec<&str> = warning.plans.iter().map(|plan| hashes[*plan].as_str()).collect();
            json!({ "text": warning.text, "help": warning.help, "schemes": schemes(warning), "plans": plans })
        })
        .collect();
    let charts = &experiment.charts;
    let measures: Vec<Json> = charts.y.iter().map(|(name, line)| json!({ "name": name, "line": line })).collect();
    let expanded = json!({
        "name": experiment.name,
        "title": experiment.title.clone().unwrap_or_else(|| experiment.name.clone()),
        "seeds": experiment.seeds,
        "plans": plans,
        "report": { "x": charts.x, "y": measures, "panels": charts.panels },
        "differences": differences,
        "warnings": warnings,
    });
    Ok(expanded.to_string())
}

/// What a kind of traffic is sent by, with parameters as one writes them.
fn controller(traffic: &Traffic) -> Json {
    let choice = &traffic.controller;
    let parameters = described(choice, SPECS);
    json!({ "traffic": traffic.name, "name": choice.name, "ecn": choice.ecn, "parameters": parameters })
}
