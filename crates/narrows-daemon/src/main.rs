//! `narrowsd`: runs plans on a real kernel, and loads and watches congestion controllers. What an operator installs, and
//! what the lab starts for every live run.

mod cc;
mod failure;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

/// Congestion controllers for the running Linux kernel, and live runs of plans.
#[derive(Debug, Parser)]
#[command(name = "narrowsd", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Loads, watches and changes congestion controllers of the running kernel
    #[command(subcommand)]
    Cc(cc::Verb),
}

fn main() -> ExitCode {
    // A wrong command line ends with code 2, as everywhere.
    let arguments = Arguments::parse();
    match perform(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn perform(command: Command) -> Result<(), Failure> {
    match command {
        Command::Cc(verb) => cc::perform(&verb),
    }
}
