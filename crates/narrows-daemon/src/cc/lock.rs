//! One command at a time on a controller: two that change it would lose each other's change.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use narrows_kernel::Controller;
use rustix::fs::{FlockOperation, flock};

use crate::failure::Failure;

/// What lives until the machine is switched off, as what is loaded does.
const FOLDER: &str = "/run/narrows";

/// A file of a controller in `/run/narrows`.
pub(super) fn file(controller: &Controller, kind: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{}.{kind}", controller.spec.name))
}

/// The right to change a controller, until it is dropped or its process ends in any way.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held for its lock")] File);

/// Waits for whoever changes the controller now.
///
/// # Errors
/// Code 3 where the caller may not make the file, 1 otherwise.
pub(super) fn take(controller: &Controller) -> Result<Lock, Failure> {
    let path = file(controller, "lock");
    let lock = || -> io::Result<Lock> {
        fs::create_dir_all(FOLDER)?;
        // It stays, empty: removing it would let two hold locks on two files of one name.
        let file = File::options().create(true).append(true).open(&path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Lock(file))
    };
    lock().map_err(|error| unusable(&path, &error))
}

/// A file of `/run/narrows` that cannot be used.
pub(super) fn unusable(path: &Path, error: &io::Error) -> Failure {
    let sentence = format!("{}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::environment(sentence).help("run as root of the host"),
        _ => Failure::failed(sentence),
    }
}
