//! The network namespaces of this host: what they are called, and doing something in one of them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use narrows_scenario::Problem;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::failure::Failure;
use crate::refused;

/// Where `ip netns` keeps names.
const NAMED: &str = "/run/netns";
/// What the host's own is called.
const HOST: &str = "host";

/// A namespace that something leads to: a name, a mount, or a process in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Namespace {
    /// The number by which programs know it.
    pub(crate) inode: u32,
    /// As `ip netns` names it; `host` is that of process 1.
    pub(crate) name: Option<String>,
    /// All that lead to it: a process may end meanwhile.
    files: Vec<PathBuf>,
}

impl Namespace {
    /// How parameters tell it from those that had its inode before; none where it ended or may not be entered.
    pub(crate) fn cookie(&self) -> Option<u64> {
        // Where this process is needs no entering, which a unit may not.
        if own() == Some(self.inode) {
            return narrows_kernel::cookie_here().ok();
        }
        self.files.iter().find_map(|file| match narrows_kernel::Namespace::of(file) {
            Ok(narrows_kernel::Namespace::Cookie(cookie)) => Some(cookie),
            _ => None,
        })
    }

    /// For people: its name, else its number.
    pub(crate) fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.inode.to_string())
    }

    fn open(&self) -> io::Result<File> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for file in &self.files {
            match File::open(file) {
                Ok(file) => return Ok(file),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Does something in it, on a thread of its own unless this one is there.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        if own() == Some(self.inode) {
            return work();
        }
        let file = self.open()?;
        let entered = move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        };
        std::thread::scope(|scope| scope.spawn(entered).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// A file behind which the host's namespace is. Who may not ask process 1 asks the kernel's own threads, which are in it, too.
fn host() -> PathBuf {
    let first = PathBuf::from("/proc/1/ns/net");
    let is_kernels = fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd");
    if inode(&first).is_none() && is_kernels { "/proc/2/ns/net".into() } else { first }
}

/// All of them: those with names, that of process 1 as `host` among them, by name; then those of other mounts and processes,
/// by inode.
pub(crate) fn all() -> Vec<Namespace> {
    let mut all: Vec<Namespace> = Vec::new();
    let mut add = |file: PathBuf, name: Option<String>| {
        let Some(inode) = inode(&file) else { return };
        match all.iter_mut().find(|known| known.inode == inode) {
            Some(known) => known.files.push(file),
            None => all.push(Namespace { inode, name, files: vec![file] }),
        }
    };
    add(host(), Some(HOST.to_owned()));
    for name in names() {
        add(Path::new(NAMED).join(&name), Some(name));
    }
    for mounted in mounts() {
        add(mounted, None);
    }
    for process in entries("/proc").filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        add(format!("/proc/{process}/ns/net").into(), None);
    }
    all.sort_by_cached_key(|namespace| (namespace.name.is_none(), namespace.name.clone(), namespace.inode));
    all
}

/// All of them that may be entered, by cookie. There may be others: such that may not, and such that only a descriptor, a thread
/// or a mount elsewhere leads to.
pub(crate) fn by_cookie() -> BTreeMap<u64, Namespace> {
    all().into_iter().filter_map(|namespace| Some((namespace.cookie()?, namespace))).collect()
}

/// The namespace that this process is in.
pub(crate) fn own() -> Option<u32> {
    inode(Path::new("/proc/self/ns/net"))
}

/// The label of the namespace with this inode, its number where nothing leads to it.
pub(crate) fn label(all: &[Namespace], inode: u32) -> String {
    let found = all.iter().find(|namespace| namespace.inode == inode);
    found.map_or_else(|| inode.to_string(), Namespace::label)
}

/// The file behind which a namespace is that is given by its name, a path that leads to it, or its inode.
///
/// # Errors
/// Code 2 if there is none.
pub(crate) fn parse(text: &str) -> Result<PathBuf, Failure> {
    let path = if text.contains('/') { PathBuf::from(text) } else { Path::new(NAMED).join(text) };
    if path.exists() {
        return Ok(path);
    }
    if text == HOST {
        return Ok(host());
    }
    let of_inode = |inode: u32| all().into_iter().find(|namespace| namespace.inode == inode);
    if let Some(file) = text.parse().ok().and_then(of_inode).and_then(|found| found.files.into_iter().next()) {
        return Ok(file);
    }
    let known = if text.contains('/') { Vec::new() } else { names() };
    Err(refused::by_scenario(&Problem::unknown_name("network namespace", text, known)))
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

/// Where namespaces are mounted, as `ip netns` and container runtimes do to keep them; a path with blanks is not followed.
fn mounts() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let is_namespace = |line: &&str| line.split_once(" - ").is_some_and(|(_, rest)| rest.starts_with("nsfs "));
    let places = text.lines().filter(is_namespace).filter_map(|line| line.split(' ').nth(4));
    places.filter(|place| !place.contains('\\')).map(PathBuf::from).collect()
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
        let own = own().expect("this process is in one");
        let found = parse(&own.to_string()).expect("this process leads to it");
        assert_eq!(inode(&found), Some(own));
        assert_eq!(parse("/proc/self/ns/net").ok().and_then(|file| inode(&file)), Some(own));
        // No namespace has such a small number.
        parse("17").expect_err("nothing leads to it");
        let refused = parse("no-such-namespace").expect_err("there is none").to_string();
        assert!(refused.starts_with("unknown network namespace `no-such-namespace`"), "{refused}");
    }
}
