//! `narrowsd run PLAN --seed N --out DIR`: one run of a plan on a real kernel, this one or that of a guest.
//!
//! What it writes: `flows.arrow`, `requests.arrow`, `ports.arrow` and `series.arrow`, Arrow streams with the columns of a
//! simulated run, and `manifest.json`. A folder is whole or absent.

mod carry;
pub(crate) mod controllers;
mod guest;
mod programs;
mod results;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use narrows_plan::Plan;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::lock;
pub(crate) use guest::begin as inside_guest;

/// What a run is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The plan, as JSON; `narrows check FILE --plans FOLDER` writes the plans of an experiment
    plan: PathBuf,
    /// The seed: with the plan, it names the run.
    #[arg(long)]
    seed: u64,
    /// The folder for the results; it must not be there.
    #[arg(long)]
    out: PathBuf,
    /// Whose kernel carries the traffic.
    #[arg(long, value_enum, default_value_t = Backend::Host)]
    on: Backend,
    /// The kernel's name for a controller of the plan, where it is not to be the usual one: dctcp=dctcp is the kernel's own.
    #[arg(long = "controller", value_name = "NAME=KERNEL", value_parser = controllers::choice)]
    controllers: Vec<(String, String)>,
}

/// Whose kernel carries the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Backend {
    /// This host's, in real time; needs root.
    #[value(alias = "native")]
    #[serde(alias = "native")]
    Host,
    /// That of a virtual machine whose clock counts instructions.
    Guest,
}

/// A run, as it travels into a guest.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    seed: u64,
    controllers: Vec<(String, String)>,
}

/// Where plans come from.
const WHENCE: &str = "a plan is JSON; `narrows check FILE --plans FOLDER` writes those of an experiment";

/// Files of a run by name.
type Results = Vec<(String, Vec<u8>)>;

/// Performs the command.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let text = fs::read(&arguments.plan)
        .map_err(|error| Failure::input(format!("cannot read {}: {error}", arguments.plan.display())).help(WHENCE))?;
    let plan = parse(&text)?;
    controllers::refuse_models(&controllers::names(&plan, &arguments.controllers))?;
    let programs = programs::compile(&plan)?;
    let temporary = Temporary::beside(&arguments.out)?;
    let stop = interruptions()?;
    let job = Job { seed: arguments.seed, controllers: arguments.controllers };
    let results = match arguments.on {
        Backend::Host => {
            let _alone = lock::take_kernel(&stop)?;
            carry::carry(&plan, &job, &programs, Backend::Host, &stop, &mut told(&stop))?
        }
        Backend::Guest => guest::boot((&plan, &text), &job, &programs, &temporary.path, &stop)?,
    };
    for (name, bytes) in &results {
        temporary.write(name, bytes)?;
    }
    temporary.keep(&arguments.out)
}

/// The plan behind a text.
fn parse(text: &[u8]) -> Result<Plan, Failure> {
    serde_json::from_slice(text).map_err(|error| {
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        if first == Some(&b'{') {
            Failure::input(format!("the plan is not one of this version: {error}"))
                .help("write it again with the narrows of this version")
        } else {
            Failure::input(format!("this is no plan: {error}")).help(WHENCE)
        }
    })
}

/// Says on the output stream how far the run is; whether it shall go on.
fn told(stop: &AtomicBool) -> impl FnMut(narrows_testbed::Progress) -> bool + '_ {
    |progress| {
        say(progress.now.as_ns(), progress.end.as_ns(), progress.packet_hops);
        !stop.load(Ordering::Relaxed)
    }
}

fn say(now_ns: u64, end_ns: u64, packet_hops: u64) {
    // Nobody may be listening.
    let _ = writeln!(io::stdout(), "{}", serde_json::json!({ "progress": [now_ns, end_ns, packet_hops] }));
}

/// A flag that is set when this process is told to end. It is told so too when its parent ends.
fn interruptions() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(Failure::failed)?;
    }
    let parent = rustix::process::getppid();
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM)).map_err(Failure::failed)?;
    // It may have ended before it could be watched.
    stop.fetch_or(rustix::process::getppid() != parent, Ordering::Relaxed);
    Ok(stop)
}

/// A folder beside the one that is wanted, on the same file system; removed with this value.
struct Temporary {
    path: PathBuf,
    /// Held as long as somebody works in the folder.
    _lock: fs::File,
}

impl Temporary {
    fn beside(out: &Path) -> Result<Temporary, Failure> {
        let cannot = |error: io::Error| {
            Failure::input(format!("cannot write {}: {error}", out.display())).help("choose another folder with --out")
        };
        if out.exists() {
            return Err(Failure::input(format!("{} is there already", out.display())).help("choose another folder"));
        }
        let name = out.file_name().ok_or_else(|| cannot(io::ErrorKind::InvalidInput.into()))?.to_string_lossy();
        let prefix = format!(".{name}.narrowsd-");
        let path = out.with_file_name(format!("{prefix}{}", std::process::id()));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(cannot)?;
            remove_orphans(parent, &prefix);
        }
        fs::create_dir(&path).map_err(cannot)?;
        let lock = locked(&path).map_err(cannot)?;
        Ok(Temporary { path, _lock: lock })
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path.join(name);
        let written = fs::File::create(&path).and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
        written.map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
    }

    fn keep(self, out: &Path) -> Result<(), Failure> {
        fs::rename(&self.path, out).map_err(|error| Failure::failed(format!("cannot write {}: {error}", out.display())))
    }
}

/// A folder's lock, if nobody holds it: it ends with its process, however that ends.
fn locked(folder: &Path) -> io::Result<fs::File> {
    let folder = fs::File::open(folder)?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    Ok(folder)
}

/// Removes folders with this prefix that killed processes left here.
fn remove_orphans(folder: &Path, prefix: &str) {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
        if is_ours && locked(&entry.path()).is_ok() {
            // Another may be removing it.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It is not there after it was kept.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_asked_for_by_the_names_that_narrows_has_for_worlds() {
        use clap::Parser as _;
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            run: Arguments,
        }
        for (named, backend) in [("host", Backend::Host), ("native", Backend::Host), ("guest", Backend::Guest)] {
            let line = Line::try_parse_from(["narrowsd", "plan.json", "--seed", "1", "--out", "out", "--on", named]);
            assert_eq!(line.unwrap_or_else(|error| panic!("{named}: {error}")).run.on, backend);
        }
        assert_eq!(serde_json::to_string(&Backend::Host).unwrap(), r#""host""#);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("narrowsd-test-{}", std::process::id()));
        let out = folder.join("out");
        let left = folder.join(".out.narrowsd-1");
        let others = [folder.join(".out.2024"), folder.join(".other.narrowsd-1"), folder.join(".out.narrowsd-2")];
        for path in others.iter().chain([&left]) {
            fs::create_dir_all(path).unwrap();
            fs::write(path.join("half"), "half").unwrap();
        }
        // Somebody works in this one.
        let living = locked(&others[2]).unwrap();
        let temporary = Temporary::beside(&out).unwrap();
        assert!(!left.exists());
        assert!(others.iter().all(|path| path.join("half").exists()));
        temporary.write("whole", b"whole").unwrap();
        temporary.keep(&out).unwrap();
        assert_eq!(fs::read(out.join("whole")).unwrap(), b"whole");
        drop(living);
        fs::remove_dir_all(&folder).unwrap();
    }
}
