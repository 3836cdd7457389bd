//! `narrowsd cc`: the controllers of `narrows-kernel` as an operator loads, watches, changes and removes them. One file per
//! verb.
//!
//! The kernel is asked what is registered; nothing that could be wrong about it is kept in files. Of two commands on the same
//! controller one waits for the other ([`crate::lock`]).

mod assignment;
mod list;
mod load;
mod prometheus;
mod route;
mod set;
mod state;
mod status;
mod system_default;
mod table;
mod unload;

use std::io::Write;

use clap::Subcommand;
use narrows_kernel::{Controller, controllers, pinned};
use narrows_scenario::Problem;

use crate::failure::Failure;
use crate::refused;
pub(crate) use load::make_room;
pub(crate) use route::{IN_FORCE, canonical, guess};
pub(crate) use status::metrics;

/// What to do with the kernel's controllers.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List the controllers, their parameters, and which are loaded
    List(list::Arguments),
    /// Load a controller: any socket, route or namespace may then choose it
    Load(load::Arguments),
    /// Unload a controller; open connections keep it until they end, and what killed processes left of it is removed
    Unload(unload::Arguments),
    /// Show what is loaded: parameters, counters and flows
    Status(status::Arguments),
    /// Change parameters of a loaded controller, for living flows too
    Set(set::Arguments),
    /// Make connections to a prefix use a controller, and restore what was
    #[command(subcommand)]
    Route(route::Verb),
}

/// Does it.
///
/// # Errors
/// Code 2 where what was given cannot be used, 3 where the machine lacks something, 1 otherwise.
pub(crate) fn perform(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::List(arguments) => list::list(arguments),
        Verb::Load(arguments) => load::load(arguments),
        Verb::Unload(arguments) => unload::unload(arguments),
        Verb::Status(arguments) => status::status(arguments),
        Verb::Set(arguments) => set::set(arguments),
        Verb::Route(verb) => route::perform(verb),
    }
}

/// The controller with this name, or registered by it.
fn named(name: &str) -> Result<&'static Controller, Failure> {
    controllers::find(name).map_err(|_| {
        let known = controllers::CONTROLLERS.iter().map(|controller| controller.spec.name);
        refused::by_scenario(&Problem::unknown_name("controller", name, known))
    })
}

/// The controller with this name, also one that was loaded from a file and is pinned; without a name all of both.
fn named_or_all(name: Option<&str>) -> Result<Vec<&'static Controller>, Failure> {
    let mut of_files = pinned::of_files().into_iter().map(|name| Controller::of_file(&name, false));
    match name {
        Some(name) => {
            of_files.find(|pinned| pinned.registered == name).map_or_else(|| named(name), Ok).map(|one| vec![one])
        }
        None => Ok(controllers::CONTROLLERS.iter().chain(of_files).collect()),
    }
}

/// Writes to standard output; whoever reads it may have read enough.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
