//! `narrowsd`: runs plans on a real kernel, and loads and watches congestion controllers. What an operator installs, and
//! what the lab starts for every live run.

mod bridge;
mod cc;
mod doctor;
mod failure;
mod key;
mod lock;
mod manuals;
mod metrics;
mod namespaces;
mod near_source;
mod refused;
mod run;
mod serve;
mod service;
mod sources;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use failure::Failure;

/// The version of the package, and the digest of the sources that all runs depend on.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("NARROWS_ENGINE"));

/// Congestion controllers for the running Linux kernel, edge routers and a near-source loop
#[derive(Debug, Parser)]
#[command(name = "narrowsd", version = VERSION, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a plan on a real kernel
    Run(run::Arguments),
    /// Run everything that a configuration file says this host runs
    Serve(serve::Arguments),
    /// Say what this machine can do, and what it lacks
    Doctor(doctor::Arguments),
    /// Hold this host's connections to what near-source switches ask for
    NearSource(near_source::Arguments),
    /// Join two interfaces at a site's border, and repair with the far edge what the WAN loses
    Bridge(Box<bridge::Arguments>),
    /// Print the digests of the sources that results depend on, as JSON
    #[command(hide = true)]
    Sources,
    /// What a guest's first process does
    #[command(hide = true)]
    InsideGuest,
    /// Write manual pages and completions for shells, as packages have them
    #[command(hide = true)]
    Manuals(manuals::Arguments),
    /// Load, watch and change congestion controllers of the running kernel
    #[command(subcommand)]
    Cc(cc::Verb),
}

fn main() -> ExitCode {
    // A wrong command line ends with code 2, as everywhere.
    let arguments = Arguments::parse();
    // What `serve` starts is called after the link by which it found itself, otherwise.
    let _ = rustix::thread::set_name(c"narrowsd");
    match perform(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn perform(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Serve(arguments) => serve::perform(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Sources => {
            println!("{}", serde_json::to_string(&sources::usual()).expect("texts are JSON"));
            Ok(())
        }
        Command::InsideGuest => run::inside_guest(),
        Command::Manuals(arguments) => manuals::write(&arguments, Arguments::command()),
        Command::NearSource(arguments) => near_source::perform(&arguments),
        Command::Bridge(arguments) => bridge::perform(*arguments),
        Command::Cc(verb) => cc::perform(&verb),
    }
}
