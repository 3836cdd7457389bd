//! What a bridge leaves in `/run/narrows`: how its interfaces were before, and what its process last said of itself.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::device::Was;
use crate::failure::Failure;
use crate::lock::{self, FOLDER, Lock};
use crate::metrics;
use crate::namespaces::{self, Namespace};

/// A bridge, by its interfaces and their network namespace: another one may have interfaces of these names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The namespace's cookie: no other has it until the machine is switched off.
    namespace: u64,
    /// Its inode, which another may have when it is gone: by it people know it.
    pub(super) inode: u64,
    /// Its name if it has one, else its inode. Looked up once: that takes a while where there are many processes.
    pub(super) label: String,
    pub(super) inside: String,
    pub(super) outside: String,
}

/// How the interfaces were before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Before {
    /// Cookie and inode of the network namespace that they are in.
    pub(super) namespace: (u64, u64),
    /// By side.
    pub(super) interfaces: [Was; 2],
}

impl Place {
    /// In the network namespace that the caller is in.
    ///
    /// # Errors
    /// Code 1 if that cannot be told.
    pub(super) fn here(inside: &str, outside: &str) -> Result<Place, Failure> {
        let (namespace, inode) = here().map_err(|error| Failure::failed(format!("the network namespace: {error}")))?;
        let label = label(&namespaces::all(), inode);
        Ok(Place { namespace, inode, label, inside: inside.to_owned(), outside: outside.to_owned() })
    }

    /// What is noted of its namespace.
    pub(super) const fn noted(&self) -> (u64, u64) {
        (self.namespace, self.inode)
    }

    /// Whether it is in the network namespace that the caller is in.
    pub(super) fn is_here(&self) -> bool {
        here().is_ok_and(|(here, _)| here == self.namespace)
    }

    /// Whether its network namespace is among these. One that has its inode may have come after it; where that cannot be asked, it
    /// may be the same.
    fn may_be_alive(&self, known: &[Namespace]) -> bool {
        let same = known.iter().find(|namespace| u64::from(namespace.inode) == self.inode);
        same.is_some_and(|namespace| namespace.cookie().is_none_or(|cookie| cookie == self.namespace))
    }

    fn file(&self, kind: &str) -> PathBuf {
        Path::new(FOLDER).join(format!("bridge-{}-{}-{}.{kind}", self.namespace, self.inside, self.outside))
    }

    /// Where the pins are.
    pub(super) fn pins(&self) -> PathBuf {
        narrows_kernel::bridge::folder(self.namespace, &self.inside, &self.outside)
    }

    /// The right to be its process, or to remove it; `None` if another has it.
    ///
    /// # Errors
    /// Code 3 where the caller may not make the file, 1 otherwise.
    pub(super) fn lock(&self) -> Result<Option<Lock>, Failure> {
        lock::try_take(&self.file("lock"))
    }

    /// Whether it has a process. Who looks keeps nobody else from looking.
    ///
    /// # Errors
    /// As [`Place::lock`].
    pub(super) fn is_alive(&self) -> Result<bool, Failure> {
        lock::is_taken(&self.file("lock"))
    }

    /// How the interfaces were before the first process; `None` if there was none.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn before(&self) -> Result<Option<Before>, Failure> {
        let path = self.file("json");
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| lock::unusable(&path, &error))?,
        };
        serde_json::from_str(&text).map(Some).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
    }

    /// Writes it down.
    ///
    /// # Errors
    /// Code 1 with the file's name.
    pub(super) fn note(&self, before: &Before) -> Result<(), Failure> {
        let text = serde_json::to_string(before).expect("names and numbers");
        metrics::replace(&self.file("json"), &text)
    }

    /// Says how the process fares.
    ///
    /// # Errors
    /// Code 1 with the file's name.
    pub(super) fn tell(&self, state: &serde_json::Value) -> Result<(), Failure> {
        metrics::replace(&self.file("state"), &state.to_string())
    }

    /// What it said last.
    pub(super) fn told(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&fs::read_to_string(self.file("state")).ok()?).ok()
    }

    /// Forgets everything.
    pub(super) fn forget(&self) {
        for kind in ["json", "state"] {
            let _ = fs::remove_file(self.file(kind));
        }
    }

    /// All bridges of this machine, but those whose network namespace is gone, and with it their interfaces.
    pub(super) fn all() -> Vec<Place> {
        let known = namespaces::all();
        let names = fs::read_dir(FOLDER).into_iter().flatten().filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.starts_with("bridge-").then_some(())?;
            let before: Before = serde_json::from_str(
                &fs::read_to_string(Path::new(FOLDER).join(name.strip_suffix(".json").map(|_| &name)?)).ok()?,
            )
            .ok()?;
            let (namespace, inode) = before.namespace;
            let [inside, outside] = before.interfaces.map(|was| was.name);
            Some(Place { namespace, inode, label: label(&known, inode), inside, outside })
        });
        let mut all: Vec<Place> =
            names.filter(|place| place.is_here() || (!is_mine(place.inode) && place.may_be_alive(&known))).collect();
        all.sort_by(|one, other| (&one.inside, &one.outside).cmp(&(&other.inside, &other.outside)));
        all
    }
}

fn label(known: &[Namespace], inode: u64) -> String {
    u32::try_from(inode).map_or_else(|_| inode.to_string(), |inode| namespaces::label(known, inode))
}

/// Whether an inode is that of the network namespace that the caller is in.
fn is_mine(inode: u64) -> bool {
    here().is_ok_and(|(_, mine)| mine == inode)
}

/// Cookie and inode of the network namespace that the thread is in.
fn here() -> io::Result<(u64, u64)> {
    Ok((narrows_kernel::cookie_here()?, fs::metadata("/proc/thread-self/ns/net")?.ino()))
}
