//! The kernel's connections as the reaction points see them.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io};

use narrows_core::units::Rate;
use narrows_kernel::{Connection, Connections as Finder};
use narrows_testbed::agent::{Info, most_rate, set_most_rate, unacknowledged};
use narrows_testbed::near_source::reactor::{Connections, Lent, Look, Reached};
use narrows_wire::Flow;
use rustix::io::Errno;
use rustix::net::sockopt;

use super::left::Left;

/// Walking all open files costs something: it is not done again so soon after one that found what it was for,
const PAUSE: Duration = Duration::from_millis(1);
/// and later after one that did not.
const PAUSE_IN_VAIN: Duration = Duration::from_millis(10);
/// What was found longer ago than this is looked for anew before it is needed, as long as switches speak: most connections
/// are older when they are first named.
const FRESH: Duration = Duration::from_millis(20);
/// And after a walk so many times its own time passes before the next, however many files there are.
const REST: u32 = 20;

/// The connections of all namespaces, as they were found last: what one that looks finds, all have.
pub(crate) struct Table {
    finder: Finder,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    /// By namespace and flow.
    known: BTreeMap<(u32, Flow), Known>,
    /// When all were looked for last.
    looked: Option<Instant>,
    /// When it is worth while to look around again.
    look_from: Option<Instant>,
    /// Whether a walk has failed: it is said once.
    failed: bool,
}

/// A connection, and what its sequence numbers are counted from.
#[derive(Clone)]
struct Known {
    connection: Connection,
    /// Where acknowledged bytes are counted from: a sequence number.
    first: u32,
}

impl Table {
    /// Nothing is known yet. Loading the program takes some tens of milliseconds.
    ///
    /// # Errors
    /// Those of [`Finder::load`].
    pub(crate) fn new() -> Result<Table, narrows_kernel::Error> {
        Ok(Table { finder: Finder::load()?, found: Mutex::default() })
    }

    pub(super) const fn finder(&self) -> &Finder {
        &self.finder
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection's socket, as far as is known.
    fn borrow(&self, key: &(u32, Flow)) -> Reached<Borrowed> {
        let Some(known) = self.found().known.get(key).cloned() else { return Reached::Gone };
        match known.connection.socket() {
            Ok(socket) => Reached::Here(Borrowed { socket: Some(socket), known }),
            Err(Errno::NOTCONN) => Reached::Gone,
            Err(_) => Reached::NotNow,
        }
    }

    /// Finds all connections anew; whether it did. What was known stays, if it did not.
    fn look(&self, found: &mut Found) -> bool {
        let began = Instant::now();
        let all = self.finder.all();
        found.looked = Some(Instant::now());
        found.look_from = Some(Instant::now() + began.elapsed() * REST);
        match all {
            Ok(all) => {
                found.known = (all.into_iter())
                    .map(|one| ((one.namespace, Flow { source: one.local, destination: one.remote }), Known::new(one)))
                    .collect();
                true
            }
            Err(error) => {
                if !std::mem::replace(&mut found.failed, true) {
                    eprintln!("warning: connections cannot be looked for: {error}");
                }
                false
            }
        }
    }

    /// Finds all connections anew, for this one; whether it did.
    fn look_around(&self, wanted: &(u32, Flow)) -> bool {
        let mut found = self.found();
        if found.look_from.is_some_and(|from| Instant::now() < from) || !self.look(&mut found) {
            return false;
        }
        let pause = if found.known.contains_key(wanted) { PAUSE } else { PAUSE_IN_VAIN };
        found.look_from = found.look_from.max(Some(Instant::now() + pause));
        true
    }
}

/// Connections of the network namespace that the thread is in.
pub(super) struct Kernel {
    table: Arc<Table>,
    /// Its inode.
    namespace: u32,
    left: Option<Left>,
}

impl Kernel {
    pub(super) fn new(table: Arc<Table>) -> io::Result<Kernel> {
        let inode = fs::metadata("/proc/thread-self/ns/net")?.ino();
        let namespace = u32::try_from(inode).map_err(io::Error::other)?;
        Ok(Kernel { table, namespace, left: None })
    }

    /// Lets go of what a killed process held, how many connections that was, and notes from now on what is held.
    pub(super) fn keep_record(&mut self) -> io::Result<usize> {
        let (left, freed) = Left::take_over(self.namespace, self.table.finder())?;
        self.left = Some(left);
        Ok(freed)
    }

    /// Looks ahead, if it is time.
    pub(super) fn keep_fresh(&self) {
        let mut found = self.table.found();
        let is_old = found.looked.is_none_or(|looked| looked.elapsed() >= FRESH);
        if is_old && found.look_from.is_none_or(|from| Instant::now() >= from) {
            self.table.look(&mut found);
        }
    }

    /// Nothing more will be held.
    pub(super) fn end_record(&mut self) {
        if let Some(Err(error)) = self.left.take().map(Left::end) {
            eprintln!("warning: the record of held connections is out of date: {error}");
        }
    }
}

impl Known {
    #[allow(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
    fn new(connection: Connection) -> Known {
        let first = connection.unacknowledged.wrapping_sub(connection.acked as u32);
        Known { connection, first }
    }
}

impl Connections for Kernel {
    type Lent = Borrowed;

    fn lend(&mut self, flow: &Flow) -> Reached<Borrowed> {
        let key = (self.namespace, *flow);
        match self.table.borrow(&key) {
            // Gone, or never seen: a walk knows, if there may be one now.
            Reached::Gone if self.table.look_around(&key) => self.table.borrow(&key),
            Reached::Gone => Reached::NotNow,
            reached => reached,
        }
    }

    fn doubt(&mut self) {
        let mut found = self.table.found();
        self.table.look(&mut found);
        found.look_from = None;
    }

    fn remember(&mut self, cookie: u64, before: Option<Rate>) {
        if let Some(Err(error)) = self.left.as_mut().map(|left| left.note(cookie, before)) {
            eprintln!("warning: a connection that is held was not noted: {error}");
        }
    }

    fn forget(&mut self, cookie: u64) {
        if let Some(Err(error)) = self.left.as_mut().map(|left| left.let_go(cookie)) {
            eprintln!("warning: a connection that is let go was not noted: {error}");
        }
    }
}

/// A connection's socket, for a moment.
pub(super) struct Borrowed {
    /// Until it is given back.
    socket: Option<OwnedFd>,
    known: Known,
}

impl Borrowed {
    fn socket(&self) -> &OwnedFd {
        self.socket.as_ref().expect("it is given back with the value")
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let linger = sockopt::socket_linger(self.socket()).ok().flatten();
        let Some(socket) = self.socket.take().filter(|_| linger > Some(Duration::ZERO)) else { return };
        // Should its process have closed it meanwhile, this is the close that waits. Where there can be no thread, here.
        let _ = std::thread::Builder::new().spawn(move || drop(socket));
    }
}

impl Lent for Borrowed {
    fn cookie(&self) -> u64 {
        self.known.connection.cookie
    }

    #[allow(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
    fn look(&self) -> Option<Look> {
        // Asked before and after: what is acknowledged or written in between is counted as in flight still, or already, and
        // nothing is missed.
        let before = unacknowledged(self.socket()).ok()?;
        let info = Info::of(self.socket()).ok()?;
        let handed_over = unacknowledged(self.socket()).ok()?.max(before);
        let una = self.known.first.wrapping_add(info.acked() as u32);
        let delivered = info.delivery_rate();
        Some(Look {
            unacknowledged: una,
            next: una.wrapping_add(handed_over.saturating_sub(info.unsent())),
            sent: info.sent(),
            // Before the first rate sample, what it would send at.
            recent: if delivered == Rate::default() { info.pacing() } else { delivered },
        })
    }

    fn held(&self) -> Option<Rate> {
        most_rate(self.socket()).ok().flatten()
    }

    fn hold(&self, rate: Option<Rate>) -> bool {
        set_most_rate(self.socket(), rate).is_ok()
    }
}
