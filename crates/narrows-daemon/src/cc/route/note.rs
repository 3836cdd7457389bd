//! How routes were before they were changed: a file for each network namespace in `/run/narrows`, named by its cookie.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::entry::Entry;
use super::prefix::Prefix;
use crate::failure::Failure;
use crate::lock::{FOLDER, unusable};
use crate::{metrics, namespaces};

/// A route that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) prefix: String,
    pub(super) table: String,
    /// The name by which the kernel knows it.
    pub(super) controller: String,
    /// How it was; `None` if there was no route to this prefix itself.
    pub(super) before: Option<Entry>,
    /// How it was made.
    pub(super) made: Entry,
}

/// All of a network namespace.
#[derive(Clone, Debug)]
pub(super) struct Notes {
    file: PathBuf,
    notes: Vec<Note>,
}

impl Notes {
    /// Those of the network namespace that the caller is in.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn here() -> Result<Notes, Failure> {
        let cookie = narrows_kernel::cookie_here()
            .map_err(|error| Failure::failed(format!("the network namespace: {error}")))?;
        let file = path(cookie);
        let notes = read(&file)?;
        Ok(Notes { file, notes })
    }

    pub(super) fn all(&self) -> &[Note] {
        &self.notes
    }

    pub(super) fn find(&self, prefix: &Prefix, table: &str) -> Option<&Note> {
        let prefix = prefix.to_string();
        self.notes.iter().find(|note| note.prefix == prefix && note.table == table)
    }

    /// These, and one more.
    pub(super) fn with(&self, note: Note) -> Notes {
        let mut notes = self.clone();
        notes.notes.push(note);
        notes
    }

    /// These without one.
    pub(super) fn without(&self, note: &Note) -> Notes {
        let mut notes = self.clone();
        notes.notes.retain(|other| other != note);
        notes
    }

    /// Writes them down; without a note there is no file.
    ///
    /// # Errors
    /// Code 3 where the caller may not, 1 otherwise.
    pub(super) fn write(&self) -> Result<(), Failure> {
        if self.notes.is_empty() {
            return match fs::remove_file(&self.file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(&self.file, &error)),
                _ => Ok(()),
            };
        }
        metrics::replace(&self.file, &serde_json::to_string(&self.notes).expect("texts"))
    }
}

fn path(cookie: u64) -> PathBuf {
    Path::new(FOLDER).join(format!("routes-{cookie}.json"))
}

/// Of which namespaces there are files.
fn cookies() -> Vec<u64> {
    let names =
        fs::read_dir(FOLDER).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix("routes-")?.strip_suffix(".json")?.parse().ok()).collect()
}

/// The notes of every network namespace, with its label. Of one that nothing here leads to, which may have ended, there are none.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn everywhere() -> Result<Vec<(String, Note)>, Failure> {
    let cookies = cookies();
    let living = if cookies.is_empty() { BTreeMap::new() } else { namespaces::by_cookie() };
    let mut all = Vec::new();
    for cookie in cookies {
        let Some(namespace) = living.get(&cookie) else { continue };
        all.extend(read(&path(cookie))?.into_iter().map(|note| (namespace.label(), note)));
    }
    Ok(all)
}

fn read(file: &Path) -> Result<Vec<Note>, Failure> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        text => {
            let text = text.map_err(|error| unusable(file, &error))?;
            serde_json::from_str(&text).map_err(|error| Failure::failed(format!("{}: {error}", file.display())))
        }
    }
}
