//! The kernel's connections as the reaction points see them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io};

use narrows_core::units::Rate;
use narrows_kernel::{Connection, Connections as Finder};
use narrows_testbed::agent::{Info, most_rate, set_most_rate, unacknowledged};
use narrows_testbed::near_source::reactor::{Connections, Lent, Look};
use narrows_wire::Flow;

use super::left::Left;

/// Walking all open files costs something: it is not done again so soon after one that found what it was for,
const PAUSE: Duration = Duration::from_millis(1);
/// and later after one that did not.
const PAUSE_IN_VAIN: Duration = Duration::from_millis(10);
/// What was found longer ago than this is looked for anew before it is needed, as long as switches speak: most connections
/// are older when they are first named.
const FRESH: Duration = Duration::from_millis(20);

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
    fn borrow(&self, key: &(u32, Flow)) -> Option<Borrowed> {
        let known = self.found().known.get(key)?.clone();
        let socket = known.connection.socket().ok()?;
        Some(Borrowed { socket, known })
    }

    /// Finds all connections anew.
    fn look(&self, found: &mut Found) {
        let all = self.finder.all().unwrap_or_default();
        found.known = (all.into_iter())
            .map(|one| ((one.namespace, Flow { source: one.local, destination: one.remote }), Known::new(one)))
            .collect();
        found.looked = Some(Instant::now());
    }

    /// Finds all connections anew, for this one.
    fn look_around(&self, wanted: &(u32, Flow)) {
        let mut found = self.found();
        if found.look_from.is_some_and(|from| Instant::now() < from) {
            return;
        }
        self.look(&mut found);
        let pause = if found.known.contains_key(wanted) { PAUSE } else { PAUSE_IN_VAIN };
        found.look_from = Some(Instant::now() + pause);
    }
}

/// Connections of the network namespace that the thread is in.
pub(super) struct Kernel {
    table: Arc<Table>,
    /// Its inode.
    namespace: u32,
    /// Which of them are held.
    held: BTreeSet<Flow>,
    left: Option<Left>,
}

impl Kernel {
    pub(super) fn new(table: Arc<Table>) -> io::Result<Kernel> {
        let inode = fs::metadata("/proc/thread-self/ns/net")?.ino();
        let namespace = u32::try_from(inode).map_err(io::Error::other)?;
        Ok(Kernel { table, namespace, held: BTreeSet::new(), left: None })
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
        if found.looked.is_none_or(|looked| looked.elapsed() >= FRESH) {
            self.table.look(&mut found);
        }
    }

    /// Nothing is held, and nothing will be.
    pub(super) fn end_record(&mut self) {
        if let Some(Err(error)) = self.left.take().map(Left::remove) {
            eprintln!("warning: the record of held connections is left behind: {error}");
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

    fn lend(&mut self, flow: &Flow) -> Option<Borrowed> {
        let key = (self.namespace, *flow);
        self.table.borrow(&key).or_else(|| {
            self.table.look_around(&key);
            self.table.borrow(&key)
        })
    }

    fn remember(&mut self, flow: &Flow, before: Option<Rate>) {
        self.held.insert(*flow);
        let Some(left) = &mut self.left else { return };
        let cookie = self.table.found().known.get(&(self.namespace, *flow)).map(|known| known.connection.cookie);
        if let Some(Err(error)) = cookie.map(|cookie| left.note(cookie, before)) {
            eprintln!("warning: a connection that is held was not noted: {error}");
        }
    }

    fn forget(&mut self, flow: &Flow) {
        self.held.remove(flow);
        if self.held.is_empty()
            && let Some(left) = &mut self.left
        {
            // Cookies of connections that are let go do no harm.
            let _ = left.empty();
        }
    }
}

/// A connection's socket, for a moment.
pub(super) struct Borrowed {
    socket: OwnedFd,
    known: Known,
}

impl Lent for Borrowed {
    #[allow(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
    fn look(&self) -> Option<Look> {
        // Asked before: what is acknowledged between the two is counted as in flight still, and nothing is missed.
        let handed_over = unacknowledged(&self.socket).ok()?;
        let info = Info::of(&self.socket).ok()?;
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

    fn held_by_others(&self) -> Option<Rate> {
        most_rate(&self.socket).ok().flatten()
    }

    fn hold(&self, rate: Option<Rate>) -> bool {
        set_most_rate(&self.socket, rate).is_ok()
    }
}
