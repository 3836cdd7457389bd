//! The connections of all network namespaces, as they were found last: what one loop that looks finds, all have.
//!
//! To look is to walk over all open files. A walk may miss a connection, whose file goes from one process to another just then
//! or whose numbers change as they are read: it has ended when two walks, some time apart, have missed it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use narrows_kernel::{Connection, Connections, Error};
use narrows_testbed::near_source::reactor::Reached;
use narrows_wire::Flow;
use rustix::io::{self, Errno};

use super::borrowed::Borrowed;

/// Walking all open files costs something: it is not done again so soon after one that found what it was for,
const PAUSE: Duration = Duration::from_millis(1);
/// and later after one that did not.
const PAUSE_IN_VAIN: Duration = Duration::from_millis(10);
/// What was found longer ago than this is looked for anew before it is needed, as long as switches speak: most connections
/// are older when they are first named.
const FRESH: Duration = Duration::from_millis(20);
/// And after a walk so many times its own time passes before the next, however many files there are.
const REST: u32 = 20;
/// Two walks that began so far apart do not miss a connection for the same reason.
pub(super) const APART: Duration = Duration::from_millis(5);

/// Inode of a connection's network namespace, and its ends.
type Name = (u32, Flow);

/// See the [module](self).
pub(crate) struct Table {
    walk: Box<dyn Fn() -> Result<Vec<Connection>, Error> + Send + Sync>,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    known: BTreeMap<Name, Known>,
    /// When the last walk ended.
    looked: Option<Instant>,
    /// When it is worth while to look around again.
    look_from: Option<Instant>,
    /// Whether a walk has failed: it is said once.
    failed: bool,
}

/// A connection, and what its sequence numbers are counted from.
struct Known {
    connection: Connection,
    /// Where acknowledged bytes are counted from: a sequence number.
    first: u32,
    /// The same, as the last walk read it.
    read: u32,
    /// When the walk began that was the first to miss it; `None` if the last one did not.
    missed: Option<Instant>,
}

impl Table {
    /// Nothing is known yet. Loading the program takes some tens of milliseconds.
    ///
    /// # Errors
    /// Those of [`Connections::load`].
    pub(crate) fn new() -> Result<Table, Error> {
        let finder = Connections::load()?;
        Ok(Table::of(move || finder.all()))
    }

    fn of(walk: impl Fn() -> Result<Vec<Connection>, Error> + Send + Sync + 'static) -> Table {
        Table { walk: Box::new(walk), found: Mutex::default() }
    }

    /// What a walk finds, for who wants nothing to be remembered of it.
    pub(super) fn all(&self) -> Result<Vec<Connection>, Error> {
        (self.walk)()
    }

    /// A connection's socket. It is looked for, if it is time.
    pub(super) fn lend(&self, name: &Name) -> Reached<Borrowed> {
        let mut borrowed = self.borrow(name);
        // Never seen, or closed by the process that had it.
        let looked = matches!(borrowed, Ok(None) | Err(Errno::NOTCONN)) && self.look_around(name);
        if looked {
            borrowed = self.borrow(name);
        }
        match borrowed {
            Ok(Some(borrowed)) => Reached::Here(borrowed),
            Ok(None) if looked => Reached::Gone,
            Ok(None) => Reached::Unknown,
            // Another process may have it, or none: two walks will tell.
            Err(_) => Reached::NotNow,
        }
    }

    /// Looks ahead, if it is time.
    pub(super) fn keep_fresh(&self) {
        let mut found = self.found();
        let is_old = found.looked.is_none_or(|looked| looked.elapsed() >= FRESH);
        if is_old && found.is_time() {
            self.look(&mut found);
        }
    }

    /// Finds all connections anew, after a moment if they were looked for just now: what has ended and was missed once is
    /// missed for the second time.
    pub(super) fn look_again(&self) {
        let looked = self.found().looked;
        thread::sleep(looked.map_or(Duration::ZERO, |looked| APART.saturating_sub(looked.elapsed())));
        self.look(&mut self.found());
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection's socket, as far as is known; `None` if the connection is not.
    fn borrow(&self, name: &Name) -> io::Result<Option<Borrowed>> {
        let (connection, first) = match self.found().known.get(name) {
            Some(known) => (known.connection.clone(), known.first),
            None => return Ok(None),
        };
        connection.socket().map(|socket| Some(Borrowed::new(socket, connection.cookie, first)))
    }

    /// Finds all connections anew, for this one; whether it did.
    fn look_around(&self, wanted: &Name) -> bool {
        let mut found = self.found();
        if !found.is_time() || !self.look(&mut found) {
            return false;
        }
        let is_there = found.known.get(wanted).is_some_and(|known| known.missed.is_none());
        let pause = if is_there { PAUSE } else { PAUSE_IN_VAIN };
        found.look_from = found.look_from.max(Some(Instant::now() + pause));
        true
    }

    /// Finds all connections anew; whether it did. What was known stays, if it did not.
    fn look(&self, found: &mut Found) -> bool {
        let began = Instant::now();
        let all = (self.walk)();
        found.looked = Some(Instant::now());
        found.look_from = Some(Instant::now() + began.elapsed() * REST);
        match all {
            Ok(all) => {
                found.take(began, all);
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
}

impl Found {
    fn is_time(&self) -> bool {
        self.look_from.is_none_or(|from| Instant::now() >= from)
    }

    /// What a walk has found that began at this time.
    fn take(&mut self, began: Instant, all: Vec<Connection>) {
        let mut before = std::mem::take(&mut self.known);
        for one in all {
            let name = (one.namespace, Flow { source: one.local, destination: one.remote });
            self.known.insert(name, Known::read(one, before.get(&name)));
        }
        before.retain(|_, known| began.duration_since(*known.missed.get_or_insert(began)) < APART);
        for (name, missed) in before {
            self.known.entry(name).or_insert(missed);
        }
    }
}

impl Known {
    /// What a walk has read of a connection, of which this was known `before`.
    #[allow(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
    fn read(connection: Connection, before: Option<&Known>) -> Known {
        let read = connection.unacknowledged.wrapping_sub(connection.acked as u32);
        // Both numbers are read without the connection's lock, and may not belong together. What two walks read is so: a socket
        // may be connected anew.
        let first = match before.filter(|before| before.connection.cookie == connection.cookie) {
            Some(before) if before.read != read => before.first,
            _ => read,
        };
        Known { connection, first, read, missed: None }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Connections as a walk finds them, whose process has closed them since; and how many walks there were.
    #[derive(Clone, Default)]
    struct Walks(Arc<Mutex<(Vec<Connection>, usize)>>);

    impl Walks {
        fn table(&self) -> Table {
            let walks = self.clone();
            Table::of(move || {
                let mut walks = walks.0.lock().unwrap();
                walks.1 += 1;
                Ok(walks.0.clone())
            })
        }

        fn find(&self, all: Vec<Connection>) {
            self.0.lock().unwrap().0 = all;
        }

        fn count(&self) -> usize {
            self.0.lock().unwrap().1
        }
    }

    /// No process has this number, so that there is nothing to be borrowed.
    fn closed(port: u16) -> Connection {
        Connection {
            cookie: port.into(),
            local: ([192, 0, 2, 1], port).into(),
            remote: ([192, 0, 2, 2], 5_001).into(),
            namespace: 1,
            unacknowledged: 1_000,
            next: 2_000,
            acked: 400,
            process: 0,
            file: 3,
        }
    }

    fn name(port: u16) -> Name {
        let one = closed(port);
        (one.namespace, Flow { source: one.local, destination: one.remote })
    }

    fn of(table: &Table, port: u16) -> &'static str {
        match table.lend(&name(port)) {
            Reached::Here(_) => "here",
            Reached::Gone => "gone",
            Reached::Unknown => "unknown",
            Reached::NotNow => "not now",
        }
    }

    /// Whether it is time for a walk.
    fn let_walk(table: &Table, may: bool) {
        table.found().look_from = (!may).then(|| Instant::now() + Duration::from_secs(3_600));
    }

    #[test]
    fn connections_that_end_together_are_gone_together() {
        let walks = Walks::default();
        let table = walks.table();
        walks.find((1..=1_000).map(closed).collect());
        table.look_again();
        walks.find(vec![]);
        for (walked, first, others) in [(2, "not now", "not now"), (3, "gone", "unknown")] {
            thread::sleep(APART);
            let_walk(&table, true);
            assert_eq!(of(&table, 1), first);
            let_walk(&table, false);
            assert!((2..=1_000).all(|port| of(&table, port) == others));
            assert_eq!(walks.count(), walked);
        }
    }

    #[test]
    fn a_connection_that_one_walk_misses_is_there() {
        let walks = Walks::default();
        let table = walks.table();
        for _ in 0..3 {
            for found in [vec![closed(7)], vec![]] {
                walks.find(found);
                table.look_again();
                assert!(table.found().known.contains_key(&name(7)));
            }
        }
        table.look_again();
        assert!(table.found().known.is_empty());
    }

    #[test]
    fn two_walks_at_once_are_one() {
        let (mut found, now) = (Found::default(), Instant::now());
        let after = |part: u32| now + APART * part / 4;
        found.take(now, vec![closed(7)]);
        for (began, known) in [(after(4), 1), (after(5), 1), (after(7), 1), (after(8), 0)] {
            found.take(began, vec![]);
            assert_eq!(found.known.len(), known);
        }
    }

    #[test]
    fn one_that_nobody_has_seen_is_gone_after_a_walk_and_unknown_without() {
        let table = Walks::default().table();
        for (may, expected) in [(true, "gone"), (false, "unknown"), (true, "gone")] {
            let_walk(&table, may);
            assert_eq!(of(&table, 7), expected);
        }
    }

    #[test]
    fn a_walk_that_fails_says_nothing_of_anyone() {
        let table = Table::of(|| Err(Error::NoBtf));
        assert_eq!(of(&table, 7), "unknown");
        table.found().take(Instant::now(), vec![closed(7)]);
        (0..3).for_each(|_| table.look_again());
        assert_eq!(of(&table, 7), "not now");
    }

    #[test]
    fn numbers_that_do_not_belong_together_change_nothing() {
        let torn = |cookie: u64, acked: u64| Connection { cookie, acked, ..closed(7) };
        let (mut found, now) = (Found::default(), Instant::now());
        let mut first = |one: Connection| {
            found.take(now, vec![one]);
            found.known[&name(7)].first
        };
        assert_eq!(first(torn(1, 400)), 600);
        assert_eq!(first(torn(1, 300)), 600, "read once");
        assert_eq!(first(torn(1, 400)), 600);
        assert_eq!(first(torn(1, 300)), 600);
        assert_eq!(first(torn(1, 300)), 700, "read twice: it was connected anew");
        assert_eq!(first(torn(2, 100)), 900, "another connection");
    }
}
