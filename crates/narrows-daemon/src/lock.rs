//! Who may change something now: two commands on one controller would lose each other's change, and two runs on one kernel
//! would meet in its namespaces and take each other's time.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use narrows_kernel::Controller;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::failure::Failure;

/// What lives until the machine is switched off, as what is loaded does.
pub(crate) const FOLDER: &str = "/run/narrows";
/// How often one that waits for another looks again.
const LOOK: Duration = Duration::from_millis(20);
/// How long it waits before it says so.
const QUIET: Duration = Duration::from_secs(1);

/// A file of a controller in `/run/narrows`.
pub(crate) fn file(controller: &Controller, kind: &str) -> PathBuf {
    // The names of files' controllers are not ours: `run` and `routes` have locks, too.
    let of = if controller.is_of_file() { "file-" } else { "" };
    Path::new(FOLDER).join(format!("{of}{}.{kind}", controller.spec.name))
}

/// A right, until it is dropped or its process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held for its lock")] File);

/// The right to change a controller. Waits for whoever changes it now.
///
/// # Errors
/// Code 3 where the caller may not make the file, 1 otherwise.
pub(crate) fn take(controller: &Controller) -> Result<Lock, Failure> {
    take_unless(controller, &AtomicBool::new(false))
}

/// As [`take`], unless it is told to `stop` while it waits.
pub(crate) fn take_unless(controller: &Controller, stop: &AtomicBool) -> Result<Lock, Failure> {
    let waits = format!("another command changes {}; this one waits", controller.spec.name);
    wait(&file(controller, "lock"), &waits, stop)
}

/// The right to run a plan on this kernel. Waits for the run that is on it now, and says so.
///
/// # Errors
/// As [`take`]; and if it is told to `stop`.
pub(crate) fn take_kernel(stop: &AtomicBool) -> Result<Lock, Failure> {
    let path = Path::new(FOLDER).join("run.lock");
    wait(&path, "another run is on this kernel; this one begins when it has ended", stop)
}

/// The right to change routes and what is noted of them. Waits for whoever changes them now.
///
/// # Errors
/// As [`take`].
pub(crate) fn take_routes() -> Result<Lock, Failure> {
    let path = Path::new(FOLDER).join("routes.lock");
    wait(&path, "another command changes routes; this one waits", &AtomicBool::new(false))
}

/// A right that nobody waits for: `None` if another has it.
///
/// # Errors
/// As [`take`].
pub(crate) fn try_take(path: &Path) -> Result<Option<Lock>, Failure> {
    let file = open(path).map_err(|error| unusable(path, &error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock(file))),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(unusable(path, &error.into())),
    }
}

/// Whether somebody has a right. Any number may ask at a time, and no file is left where there was none.
///
/// # Errors
/// As [`take`].
pub(crate) fn is_taken(path: &Path) -> Result<bool, Failure> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file.map_err(|error| unusable(path, &error))?,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(unusable(path, &error.into())),
    }
}

fn wait(path: &Path, waits: &str, stop: &AtomicBool) -> Result<Lock, Failure> {
    let file = open(path).map_err(|error| unusable(path, &error))?;
    let (begin, mut told) = (Instant::now(), false);
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock(file)),
            Err(Errno::WOULDBLOCK) if stop.load(Ordering::Relaxed) => return Err(Failure::interrupted()),
            Err(Errno::WOULDBLOCK) => {
                if begin.elapsed() > QUIET && !std::mem::replace(&mut told, true) {
                    eprintln!("{waits}");
                }
                thread::sleep(LOOK);
            }
            Err(error) => return Err(unusable(path, &error.into())),
        }
    }
}

/// The file stays, empty: removing it would let two hold locks on two files of one name.
fn open(path: &Path) -> io::Result<File> {
    fs::create_dir_all(FOLDER)?;
    File::options().create(true).append(true).open(path)
}

/// A file of `/run/narrows` that cannot be used.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> Failure {
    let sentence = format!("{}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::environment(sentence).help("run as root of the host"),
        _ => Failure::failed(sentence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_leaves_no_file() {
        let path = std::env::temp_dir().join(format!("narrowsd-lock-{}", std::process::id()));
        assert!(!is_taken(&path).expect("nothing is there"));
        assert!(!path.exists());
        let file = File::create(&path).expect("a folder of its own");
        assert!(!is_taken(&path).expect("it can be read"));
        flock(&file, FlockOperation::NonBlockingLockExclusive).expect("nobody has it");
        assert!(is_taken(&path).expect("it can be read"));
        fs::remove_file(&path).expect("it is there");
    }
}
