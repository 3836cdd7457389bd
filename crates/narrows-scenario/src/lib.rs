//! Text → experiment → validated → [`Vec<Plan>`](narrows_plan::Plan). Drivers take only plans.
//!
//! 1. [`experiment`]: the shape of the file. Quantities carry units, unknown keys are refused.
//! 2. `document`: arms, axes and overrides replace values at dotted paths before anything is judged.
//! 3. `topology`, [`traffic`]: named networks and workloads become nodes, links and processes.
//! 4. `expand`: experiment × arms × sweep, each a [`narrows_plan::Plan`].
//!
//! This crate is the only one with floating point, and it uses it through `libm`, so that every machine draws the same.
//! It reads no clock and no entropy, and no file but the experiment and those it names beside it. Its input is not
//! trusted: every size and count has a bound.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::Arc;

use narrows_core::cc::{SPECS, Spec};
use narrows_core::units::Bytes;

mod charts;
mod controller;
pub mod differences;
mod document;
mod draws;
mod error;
mod events;
mod expand;
pub mod experiment;
mod files;
mod offered;
mod outages;
pub mod registry;
pub mod route;
mod sampling;
mod select;
mod stack;
mod suggest;
pub mod summary;
mod telemetry;
mod topology;
pub mod traffic;
pub mod units;
mod warnings;

pub use charts::Charts;
pub use controller::{component_value, describe_value, described, parameter_value, real_text, shown};
pub use draws::may_draw;
pub use error::{Error, Problem};
pub use expand::MAX_PLANS;
pub use experiment::json_schema;
pub use offered::offered_load;
pub use topology::{MAX_HOSTS, MAX_LINKS};
pub use traffic::program::goal_text;
pub use warnings::Warning;

/// An experiment, expanded.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its stable name.
    pub name: String,
    /// One line for reports.
    pub title: Option<String>,
    /// Seeds: each makes a run of each plan. The same for all plans, so that comparisons are paired.
    pub seeds: Vec<u64>,
    /// One for each arm and combination of the axes; arms in the order of the file, the last axis turning fastest. Plans
    /// of equal hash share their runs.
    pub plans: Vec<narrows_plan::Plan>,
    /// Each plan in numbers.
    pub summaries: Vec<summary::Summary>,
    /// What a report shows of the sweep.
    pub charts: Charts,
    /// What may not be meant.
    pub warnings: Vec<Warning>,
}

/// What the caller changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Dotted paths and values, as `set` in an experiment; a text needs no quotes.
    pub sets: Vec<(String, String)>,
    /// Whether `run.quick` counts.
    pub quick: bool,
}

/// What the machine can bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most memory of one run, estimated.
    pub memory: Bytes,
}

impl Default for Limits {
    /// 4 GB a run.
    fn default() -> Limits {
        Limits { memory: Bytes::new(4_000_000_000) }
    }
}

/// Reads an experiment's file and expands it. Its name is its folder's if the file is called `experiment.toml`, else the
/// file's, unless it states one.
///
/// # Errors
/// If anything is wrong with it: where, what, and what to do about it.
pub fn load(path: &Path, overrides: &Overrides, limits: &Limits) -> Result<Experiment, Box<Error>> {
    let shown = path.display().to_string();
    let text = files::read(path, path, files::LARGEST_EXPERIMENT).map_err(|problem| {
        let source = error::Source { name: shown.clone(), text: String::new(), overrides: 0 };
        Box::new(Error::new(*problem.at(&(0..0)), Arc::new(source)))
    })?;
    let folder = path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("experiment");
    let of_folder = folder.and_then(Path::file_name).and_then(|name| name.to_str());
    let name = if stem == "experiment" { of_folder.unwrap_or(stem) } else { stem };
    Loader { file: &shown, name, folder, overrides, limits, controllers: SPECS }.expand(text)
}

/// Expands an experiment that is not in a file, and so cannot name files.
///
/// # Errors
/// As [`load()`].
pub fn load_str(text: &str, overrides: &Overrides, limits: &Limits) -> Result<Experiment, Box<Error>> {
    let (file, name) = ("experiment.toml", "experiment");
    Loader { file, name, folder: None, overrides, limits, controllers: SPECS }.expand(text.to_owned())
}

/// All that an expansion depends on.
struct Loader<'a> {
    /// The file as shown to people.
    file: &'a str,
    /// The experiment's name where it states none.
    name: &'a str,
    folder: Option<&'a Path>,
    overrides: &'a Overrides,
    limits: &'a Limits,
    controllers: &'static [&'static Spec],
}

impl Loader<'_> {
    fn expand(&self, mut text: String) -> Result<Experiment, Box<Error>> {
        text.push('\n');
        let overrides = text.len();
        for (path, value) in &self.overrides.sets {
            text.push_str(path);
            text.push('=');
            text.push_str(value);
            text.push('\n');
        }
        let source = Arc::new(error::Source { name: self.file.to_owned(), text, overrides });
        let Loader { name, folder, overrides, limits, controllers, .. } = *self;
        let settings = expand::Settings { overrides, limits, controllers, folder, name };
        match expand::expand(&source, &settings) {
            Ok(expand::Expanded { name, title, seeds, plans, summaries, charts }) => {
                let warnings = warnings::of(&plans, controllers);
                Ok(Experiment { name, title, seeds, plans, summaries, charts, warnings })
            }
            Err(fault) => Err(Box::new(Error::new(*fault, source))),
        }
    }
}

#[cfg(test)]
mod tests;
