//! How routes were before they were changed: a file for each network namespace in `/run/narrows`, named by its cookie.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::entry::Entry;
use super::prefix::Prefix;
use crate::failure::Failure;
use crate::lock::unusable;
use crate::{metrics, namespaces};

/// What goes with the machine's being switched off, as routes do.
const FOLDER: &str = "/run/narrows";

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
        let notes = match fs::read_to_string(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            text => {
                let text = text.map_err(|error| unusable(&file, &error))?;
                serde_json::from_str(&text).map_err(|error| Failure::failed(format!("{}: {error}", file.display())))?
            }
        };
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

    /// Writes them down; without a note there is no file. Files of namespaces that ended are removed.
    ///
    /// # Errors
    /// Code 3 where the caller may not, 1 otherwise.
    pub(super) fn write(&self) -> Result<(), Failure> {
        forget_the_ended();
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

/// The notes of every network namespace that something leads to, with its label.
pub(super) fn everywhere() -> Vec<(String, Note)> {
    let cookies = cookies();
    if cookies.is_empty() {
        return Vec::new();
    }
    let living = namespaces::by_cookie();
    let read = |cookie| -> Option<Vec<Note>> { serde_json::from_str(&fs::read_to_string(path(cookie)).ok()?).ok() };
    let of = |cookie: u64| {
        let label = living.get(&cookie)?.label();
        Some(read(cookie)?.into_iter().map(move |note| (label.clone(), note)))
    };
    cookies.into_iter().filter_map(of).flatten().collect()
}

fn forget_the_ended() {
    let here = narrows_kernel::cookie_here().ok();
    let others: Vec<u64> = cookies().into_iter().filter(|cookie| Some(*cookie) != here).collect();
    if others.is_empty() {
        return;
    }
    let living = namespaces::by_cookie();
    for cookie in others.into_iter().filter(|cookie| !living.contains_key(cookie)) {
        let _ = fs::remove_file(path(cookie));
    }
}
