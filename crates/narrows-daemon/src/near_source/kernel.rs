//! The kernel's connections as the reaction points see them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
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

/// Connections of the network namespace that the thread is in.
pub(super) struct Kernel {
    finder: Arc<Finder>,
    /// Its inode.
    namespace: u32,
    known: BTreeMap<Flow, Known>,
    /// When it is worth while to look around again.
    look_from: Option<Instant>,
    /// Which of them are held.
    held: BTreeSet<Flow>,
    left: Option<Left>,
}

/// A connection, and what its sequence numbers are counted from.
#[derive(Clone)]
struct Known {
    connection: Connection,
    /// Where acknowledged bytes are counted from: a sequence number.
    first: u32,
}

impl Kernel {
    pub(super) fn new(finder: Arc<Finder>) -> io::Result<Kernel> {
        let inode = fs::metadata("/proc/thread-self/ns/net")?.ino();
        let namespace = u32::try_from(inode).map_err(io::Error::other)?;
        Ok(Kernel { finder, namespace, known: BTreeMap::new(), look_from: None, held: BTreeSet::new(), left: None })
    }

    pub(super) const fn namespace(&self) -> u32 {
        self.namespace
    }

    pub(super) fn finder(&self) -> &Finder {
        &self.finder
    }

    /// From now on what is held is noted there.
    pub(super) fn keep_record(&mut self, left: Left) {
        self.left = Some(left);
    }

    /// Nothing is held, and nothing will be.
    pub(super) fn end_record(&mut self) {
        if let Some(Err(error)) = self.left.take().map(Left::remove) {
            eprintln!("warning: the record of held connections is left behind: {error}");
        }
    }

    /// Finds all connections anew, for this one.
    fn look_around(&mut self, wanted: &Flow) {
        if self.look_from.is_some_and(|from| Instant::now() < from) {
            return;
        }
        let all = self.finder.all().unwrap_or_default();
        self.known = (all.into_iter().filter(|found| found.namespace == self.namespace))
            .map(|found| (Flow { source: found.local, destination: found.remote }, Known::new(found)))
            .collect();
        let pause = if self.known.contains_key(wanted) { PAUSE } else { PAUSE_IN_VAIN };
        self.look_from = Some(Instant::now() + pause);
    }

    fn borrow(&self, flow: &Flow) -> Option<Borrowed> {
        let known = self.known.get(flow)?;
        let socket = known.connection.socket().ok()?;
        Some(Borrowed { socket, known: known.clone() })
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
        self.borrow(flow).or_else(|| {
            self.look_around(flow);
            self.borrow(flow)
        })
    }

    fn remember(&mut self, flow: &Flow, before: Option<Rate>) {
        self.held.insert(*flow);
        let (Some(left), Some(known)) = (&mut self.left, self.known.get(flow)) else { return };
        if let Err(error) = left.note(known.connection.cookie, before) {
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
