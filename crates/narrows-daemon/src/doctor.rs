//! `narrowsd doctor`: what this machine can do for live runs and for controllers, and what it lacks.

use std::path::Path;
use std::process::Command;

use narrows_kernel::Kernel;
use narrows_testbed::{doctor, guest};
use serde::Serialize;

use crate::failure::Failure;

/// How it is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// As JSON lines
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    /// For what it is needed: `guest`, `host` or `controllers`.
    backend: &'static str,
    subject: &'static str,
    good: bool,
    found: String,
}

/// Looks at everything. What is missing is no failure: who needs it will hear.
///
/// # Errors
/// If nobody takes what is said.
pub(crate) fn doctor(arguments: &Arguments) -> Result<(), Failure> {
    for finding in findings() {
        if arguments.json {
            println!("{}", serde_json::to_string(&finding).map_err(Failure::failed)?);
        } else {
            let mark = if finding.good { "yes" } else { "no " };
            println!("{mark}  {:<12} {:<24} {}", finding.backend, finding.subject, finding.found);
        }
    }
    Ok(())
}

fn findings() -> Vec<Finding> {
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    vec![
        of("controllers", "BPF struct_ops for TCP", struct_ops().map(|how| format!("{kernel}, {how}"))),
        of("controllers", "a bpf file system", bpf_file_system()),
        of("controllers", "ip, for cc route", ip()),
        of("guest", "QEMU", guest::qemu().map_err(|error| format!("{error}; on Debian: apt install qemu-system-x86"))),
        of(
            "guest",
            "the guest's kernel",
            guest::find()
                .map(|image| image.release)
                .map_err(|error| format!("{error}; `make guest-kernel` of the source fetches it")),
        ),
        of(
            "guest",
            "a static narrowsd",
            if cfg!(target_feature = "crt-static") {
                Ok("this one".to_owned())
            } else {
                Err("this one needs libraries, which a guest does not have; `make narrowsd` of the source builds one"
                    .to_owned())
            },
        ),
        of("host", "namespaces and TUN", doctor::examine().map(|()| kernel).map_err(|error| error.to_string())),
    ]
}

fn of(backend: &'static str, subject: &'static str, looked: Result<String, impl ToString>) -> Finding {
    let (good, found) = match looked {
        Ok(found) => (true, found),
        Err(reason) => (false, reason.to_string()),
    };
    Finding { backend, subject, good, found }
}

/// Whether programs can be loaded here, and how they are kept.
fn struct_ops() -> Result<String, String> {
    let kernel = Kernel::probe().map_err(|error| error.to_string())?;
    if !rustix::process::geteuid().is_root() {
        return Err("the kernel has them; loading them needs root".to_owned());
    }
    Ok(if kernel.has_links {
        "as links, which end with their process"
    } else {
        "as entries that a killed process leaves"
    }
    .to_owned())
}

/// Where loaded controllers are kept.
fn bpf_file_system() -> Result<String, String> {
    let folder = Path::new("/sys/fs/bpf/narrows");
    let there = narrows_kernel::pinned::check_file_system(folder);
    there.map(|()| "/sys/fs/bpf".to_owned()).map_err(|_| "none at /sys/fs/bpf: mount -t bpf bpf /sys/fs/bpf".to_owned())
}

fn ip() -> Result<String, String> {
    let output = Command::new("ip").arg("-V").output().map_err(|_| "there is none: install iproute2".to_owned())?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_says_something() {
        let findings = findings();
        assert_eq!(findings.iter().filter(|finding| finding.backend == "guest").count(), 3);
        for finding in findings {
            assert!(!finding.found.is_empty() && !finding.found.contains('\n'), "{finding:?}");
        }
    }
}
