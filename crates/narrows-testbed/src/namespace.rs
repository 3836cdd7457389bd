//! Hosts as network namespaces, named so that they can be looked into (`ip netns exec narrows-…-a1 ss -ti`), and removed
//! whatever happens.
//!
//! A namespace's name begins with its run's; a run holds a lock while it lives. Locks are the kernel's and end with their
//! process: namespaces whose run's lock is free are leftovers, and [`sweep`] removes them. Devices need no care: they end with
//! the process that opened them.

use std::fs;
use std::os::fd::OwnedFd;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open};
use rustix::io::{self, Errno};
use rustix::mount::{UnmountFlags, mount_bind, unmount};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::netlink::Netlink;

/// Where `ip netns` looks.
const NAMES: &str = "/run/netns";
/// Where the locks of runs lie.
const LOCKS: &str = "/run/narrows";
const PREFIX: &str = "narrows-";
/// Digits of a run's identifier.
const DIGITS: usize = 8;

/// A run's claim to the namespaces that it makes.
#[derive(Debug)]
pub struct Claim {
    id: String,
    /// Closing it frees the lock.
    _lock: OwnedFd,
}

impl Claim {
    /// A new identifier, locked.
    ///
    /// # Errors
    /// If `/run` cannot be written.
    pub fn new() -> io::Result<Claim> {
        create_folder(LOCKS)?;
        create_folder(NAMES)?;
        loop {
            let mut bytes = [0; DIGITS / 2];
            getrandom(&mut bytes, GetRandomFlags::empty())?;
            let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let path = lock_path(&id);
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let lock = match open(&path, flags, Mode::RUSR | Mode::WUSR) {
                Err(Errno::EXIST) => continue,
                opened => opened?,
            };
            // Between the two calls it may have been taken for a leftover, and removed.
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() && fstat(&lock)?.st_nlink > 0 {
                return Ok(Claim { id, _lock: lock });
            }
        }
    }

    /// The run's identifier: eight hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // What cannot be removed now is removed as a leftover.
        let _ = fs::remove_file(lock_path(&self.id));
    }
}

/// One host's namespace; removed with this value, except for what still has a socket or a thread in it.
#[derive(Debug)]
pub struct Namespace {
    path: PathBuf,
    file: OwnedFd,
}

impl Namespace {
    /// Makes a namespace for a host of a run, with its loopback device up.
    ///
    /// # Errors
    /// What the kernel says: without the capability to administer, [`Errno::PERM`].
    pub fn create(claim: &Claim, host: &str) -> io::Result<Namespace> {
        let path = Path::new(NAMES).join(name(claim, host));
        let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        drop(open(&path, flags, Mode::RUSR)?);
        let made = in_a_thread(|| {
            #[allow(unsafe_code, reason = "the safe call is deprecated for the sake of other flags")]
            // SAFETY: a new network namespace touches neither memory nor the table of files.
            unsafe {
                unshare_unsafe(UnshareFlags::NEWNET)?;
            }
            mount_bind("/proc/thread-self/ns/net", &path)?;
            let netlink = Netlink::open()?;
            netlink.set_up(netlink.index("lo")?, None, None)
        });
        let opened = made.and_then(|()| open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()));
        match opened {
            Ok(file) => Ok(Namespace { path, file }),
            Err(error) => {
                let _ = remove(&path);
                Err(error)
            }
        }
    }

    /// Its name, as `ip netns` has it.
    pub fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).expect("made of a text")
    }

    /// Does something in the namespace, on a thread of its own: sockets and devices that it opens belong to the namespace for
    /// as long as they live. The caller's thread stays where it is.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or as `act` says.
    pub fn enter<T: Send>(&self, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_a_thread(|| {
            self.move_in()?;
            act()
        })
    }

    /// Moves the calling thread into the namespace, for good: only for a thread that ends there.
    ///
    /// # Errors
    /// If the thread may not.
    pub fn move_in(&self) -> io::Result<()> {
        use std::os::fd::AsFd;
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // What cannot be removed now is removed as a leftover.
        let _ = remove(&self.path);
    }
}

/// Sets a parameter of the namespace that the calling thread is in, by its path below `/proc/sys`.
///
/// # Errors
/// If this kernel has no such parameter, or refuses the value.
pub fn set_parameter(path: &str, value: &str) -> std::io::Result<()> {
    fs::write(Path::new("/proc/sys").join(path), value)
}

/// Removes what runs have left behind that live no more; the names of the namespaces removed.
///
/// # Errors
/// If the folders cannot be read, or a leftover cannot be removed.
pub fn sweep() -> std::io::Result<Vec<String>> {
    let mut removed = Vec::new();
    for name in entries(NAMES)? {
        let Some(id) = run_of(&name) else { continue };
        let lock = match open(lock_path(id), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT) => None,
            opened => Some(opened?),
        };
        if lock.as_ref().is_some_and(|lock| flock(lock, FlockOperation::NonBlockingLockExclusive).is_err()) {
            continue;
        }
        remove(&Path::new(NAMES).join(&name))?;
        removed.push(name);
    }
    // Others keep locks there, too.
    for id in entries(LOCKS)?.iter().filter_map(|file| file.strip_suffix(".lock")).filter(|id| is_id(id)) {
        let path = lock_path(id);
        if let Ok(lock) = open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = fs::remove_file(path);
        }
    }
    Ok(removed)
}

fn lock_path(id: &str) -> PathBuf {
    Path::new(LOCKS).join(format!("{id}.lock"))
}

/// The namespace's name: the host's, if that is a file name that needs no thought.
fn name(claim: &Claim, host: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let host: String = host.chars().take(64).map(|c| if plain(c) { c } else { '_' }).collect();
    format!("{PREFIX}{}-{host}", claim.id)
}

/// The run of a namespace of ours, by its name.
fn run_of(name: &str) -> Option<&str> {
    let (id, host) = name.strip_prefix(PREFIX)?.split_at_checked(DIGITS)?;
    (host.starts_with('-') && is_id(id)).then_some(id)
}

/// Whether this can be a run's identifier.
fn is_id(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// A folder's entries with names that are text; none if it is not there.
fn entries(folder: &str) -> std::io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

fn create_folder(path: &str) -> io::Result<()> {
    fs::create_dir_all(path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

fn remove(path: &Path) -> io::Result<()> {
    match unmount(path, UnmountFlags::DETACH) {
        // It was not mounted: the run ended before.
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
        Err(error) => return Err(error),
    }
    match rustix::fs::unlink(path) {
        Err(Errno::NOENT) => Ok(()),
        unlinked => unlinked,
    }
}

fn in_a_thread<T: Send>(act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("namespace".into()).spawn_scoped(scope, act);
        worker.map_err(|_| Errno::AGAIN)?.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_locks_are_taken_for_leftovers() {
        assert!(is_id("0123abcd"));
        for other in ["run", "gemini", "0123abc", "0123abcde", "vegas-00"] {
            assert!(!is_id(other), "{other}");
        }
    }

    #[test]
    fn only_our_own_names_are_taken_for_leftovers() {
        assert_eq!(run_of("narrows-0123abcd-a1-3"), Some("0123abcd"));
        for other in
            ["narrows-", "narrows-0123abcd", "narrows-0123abcdx", "narrows-012Zabcd-a", "red", "narrows-é123abcd-a"]
        {
            assert_eq!(run_of(other), None, "{other}");
        }
    }
}
