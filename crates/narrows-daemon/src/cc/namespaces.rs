//! The network namespaces of this host: what they are called, and doing something in one of them.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use narrows_scenario::Problem;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::refused;
use crate::failure::Failure;

/// Where `ip netns` keeps names.
const NAMED: &str = "/run/netns";

/// A namespace that something leads to: a name, or a process in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Namespace {
    /// The number by which programs know it.
    pub(super) inode: u32,
    /// As `ip netns` names it; `host` is that of process 1.
    pub(super) name: Option<String>,
    file: PathBuf,
}

impl Namespace {
    /// For people: its name, else its number.
    pub(super) fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.inode.to_string())
    }

    /// Does something in it, on a thread of its own unless this one is there.
    pub(super) fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        if own() == Some(self.inode) {
            return work();
        }
        let file = File::open(&self.file)?;
        let entered = move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        };
        std::thread::scope(|scope| scope.spawn(entered).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// All of them: those with names, that of process 1 as `host` among them, by name; then those of other processes, by inode.
pub(super) fn all() -> Vec<Namespace> {
    let mut all: Vec<Namespace> = Vec::new();
    let mut add = |file: PathBuf, name: Option<String>| {
        if let Some(inode) = inode(&file).filter(|inode| all.iter().all(|known| known.inode != *inode)) {
            all.push(Namespace { inode, name, file });
        }
    };
    add("/proc/1/ns/net".into(), Some("host".to_owned()));
    for name in names() {
        add(Path::new(NAMED).join(&name), Some(name));
    }
    for process in entries("/proc").filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        add(format!("/proc/{process}/ns/net").into(), None);
    }
    all.sort_by_cached_key(|namespace| (namespace.name.is_none(), namespace.name.clone(), namespace.inode));
    all
}

/// The namespace that this process is in.
pub(super) fn own() -> Option<u32> {
    inode(Path::new("/proc/self/ns/net"))
}

/// The label of the namespace with this inode, its number where nothing leads to it.
pub(super) fn label(all: &[Namespace], inode: u32) -> String {
    let found = all.iter().find(|namespace| namespace.inode == inode);
    found.map_or_else(|| inode.to_string(), Namespace::label)
}

/// The inode of a namespace given by its name, a path that leads to it, or itself.
///
/// # Errors
/// Code 2 if there is none.
pub(super) fn parse(text: &str) -> Result<u32, Failure> {
    // A name may consist of digits.
    if let Ok(inode) = text.parse()
        && !Path::new(NAMED).join(text).exists()
    {
        return Ok(inode);
    }
    let path = if text.contains('/') { PathBuf::from(text) } else { Path::new(NAMED).join(text) };
    inode(&path).ok_or_else(|| {
        let known = if text.contains('/') { Vec::new() } else { names() };
        refused::by_scenario(&Problem::unknown_name("network namespace", text, known))
    })
}

fn inode(file: &Path) -> Option<u32> {
    // Namespaces are numbered in 32 bits.
    fs::metadata(file).ok().and_then(|file| u32::try_from(file.ino()).ok())
}

fn names() -> Vec<String> {
    let mut names: Vec<String> = entries(NAMED).collect();
    names.sort_unstable();
    names
}

fn entries(folder: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_number_a_path_or_a_name() {
        assert_eq!(parse("4026531840").ok(), Some(4_026_531_840));
        assert_eq!(parse("/proc/self/ns/net").ok(), own());
        let refused = parse("no-such-namespace").expect_err("there is none").to_string();
        assert!(refused.starts_with("unknown network namespace `no-such-namespace`"), "{refused}");
    }
}
