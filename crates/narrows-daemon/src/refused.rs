//! Errors of the libraries as a command reports them.

use std::fs;

use narrows_kernel::Error;
use narrows_scenario::Problem;

use crate::failure::Failure;

/// Where pins can be that are not there.
pub(crate) const OTHER_MOUNTS: &str = "`ip netns exec` hides what is mounted outside, pins among it: enter a namespace by `nsenter --net=/run/netns/NAME`";

/// What the kernel or its loader refused.
pub(crate) fn by_kernel(error: Error) -> Failure {
    let failure = match &error {
        Error::NoBtf
        | Error::NoPrivileges { .. }
        | Error::OtherPids
        | Error::KernelTooOld { .. }
        | Error::NoBpfFileSystem { .. }
        | Error::Rejected { .. } => Failure::environment(&error),
        Error::UnknownController { .. }
        | Error::UnknownParameter { .. }
        | Error::WrongKind { .. }
        | Error::OutOfRange { .. }
        | Error::Disordered { .. } => Failure::input(&error),
        Error::Held { holders, .. } => {
            let failure = Failure::failed(&error);
            match holders.iter().find_map(|&holder| service_of(holder)) {
                Some(service) => {
                    return failure.help(format!(
                        "`narrowsd serve` (process {service}) would load it again: take it out of its file and reload, or end the \
                         service (systemctl stop narrowsd)"
                    ));
                }
                None => failure,
            }
        }
        _ => Failure::failed(&error),
    };
    with(failure, error.help())
}

/// The `narrowsd serve` whose child a process is.
fn service_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may have anything in it: the state, and the parent.
    let parent: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
    let command_line = fs::read(format!("/proc/{parent}/cmdline")).ok()?;
    let mut words = command_line.split(|&byte| byte == 0);
    let is_ours = words.next()?.ends_with(b"narrowsd") && words.next()? == b"serve";
    is_ours.then_some(parent)
}

/// What the kernel refused of a user's file: what its verifier does not take is the file's fault.
pub(crate) fn of_file(error: Error) -> Failure {
    match &error {
        Error::Rejected { .. } if error.reason().is_some() => {
            Failure::input(&error).help("mend the file; `narrowsd cc load FILE` prints the verifier's log")
        }
        _ => by_kernel(error),
    }
}

/// Why a file is no controller.
pub(crate) fn by_compiler(error: &narrows_c::Error) -> Failure {
    match error {
        narrows_c::Error::NoCompiler(_) => {
            Failure::environment("to load a controller in C narrowsd needs clang, which does not run")
                .help("on Debian: apt install clang; or name it in the variable CLANG")
        }
        narrows_c::Error::Several { .. } | narrows_c::Error::Unknown { .. } => {
            Failure::input(error).help("say which: --controller NAME")
        }
        narrows_c::Error::Io { .. } => Failure::failed(error),
        _ => Failure::input(error).help(error.help()),
    }
}

/// What was written wrongly.
pub(crate) fn by_scenario(problem: &Problem) -> Failure {
    let help = match problem.component() {
        Some(component) => Some(format!("`narrowsd cc list {component}` says what it takes")),
        None => problem.help().map(str::to_owned),
    };
    with(Failure::input(problem), help)
}

fn with(failure: Failure, help: Option<String>) -> Failure {
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}
