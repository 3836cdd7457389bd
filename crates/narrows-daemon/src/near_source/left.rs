//! Which connections are held, in a file: should this process be killed, the one after it lets go of them.
//!
//! A record for each change: a connection's cookie, which no other socket has before the machine is switched off, and the rate
//! that it is to be held to when it is let go, or that it was let go. The last one counts. When most of the file is out of
//! date it is written anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use narrows_core::units::Rate;
use narrows_kernel::{Connection, Error};
use narrows_testbed::agent::set_most_rate;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::table::APART;
use crate::lock::FOLDER;

/// Bytes of a record: cookie, bits per second.
const RECORD: usize = 16;
/// In place of a rate: it is to be held to none.
const NO_RATE: u64 = u64::MAX;
/// In place of a rate: it was let go.
const LET_GO: u64 = u64::MAX - 1;
/// A file of fewer records is not written anew.
const FEW: usize = 1_024;

#[derive(Debug)]
pub(super) struct Left {
    path: PathBuf,
    file: File,
    records: usize,
    held: BTreeMap<u64, Option<Rate>>,
    /// One process for each namespace; held for its lock.
    _lock: File,
}

impl Left {
    /// The file of a network namespace. Lets go of what a killed process left held, and finds it by `all`; how many connections
    /// that was.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if another process has it.
    pub(super) fn take_over(
        namespace: u32,
        all: impl Fn() -> Result<Vec<Connection>, Error>,
    ) -> io::Result<(Left, usize)> {
        fs::create_dir_all(FOLDER)?;
        let path = Path::new(FOLDER).join(format!("near-source-{namespace}"));
        let lock = own(OpenOptions::new().create(true).write(true)).open(path.with_extension("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let mut bytes = Vec::new();
        match File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut held = last(&bytes);
        let hold = |found: &Connection, rate| found.socket().and_then(|socket| set_most_rate(&socket, rate));
        let freed = let_go(&mut held, all, hold).map_err(io::Error::other)?;
        let file = written(&path, &held)?;
        Ok((Left { path, file, records: held.len(), held, _lock: lock }, freed))
    }

    /// A connection is held from now on; it is to be held to this rate, or to none, when it is let go.
    pub(super) fn note(&mut self, cookie: u64, before: Option<Rate>) -> io::Result<()> {
        self.held.insert(cookie, before);
        self.append(cookie, before.map_or(NO_RATE, Rate::as_bps))
    }

    /// It is held no more.
    pub(super) fn let_go(&mut self, cookie: u64) -> io::Result<()> {
        self.held.remove(&cookie);
        self.append(cookie, LET_GO)
    }

    fn append(&mut self, cookie: u64, value: u64) -> io::Result<()> {
        if self.records > FEW.max(4 * self.held.len()) {
            self.file = written(&self.path, &self.held)?;
            self.records = self.held.len();
            return Ok(());
        }
        self.records += 1;
        let outcome = self.file.write_all(&record(cookie, value));
        if outcome.is_err() {
            // Half of a record would put all after it out of place.
            self.file = written(&self.path, &self.held)?;
            self.records = self.held.len();
        }
        outcome
    }

    /// Nothing will be held any more: what could not be let go stays for the next.
    pub(super) fn end(self) -> io::Result<()> {
        if self.held.is_empty() { fs::remove_file(&self.path) } else { written(&self.path, &self.held).map(drop) }
    }
}

/// Holds connections to what they are to be held to; to how many that was done. What stays is there and cannot be reached.
/// `hold` does it to a connection of one process; [`Errno::NOTCONN`] if that has it no more.
fn let_go(
    held: &mut BTreeMap<u64, Option<Rate>>,
    all: impl Fn() -> Result<Vec<Connection>, Error>,
    hold: impl Fn(&Connection, Option<Rate>) -> rustix::io::Result<()>,
) -> Result<usize, Error> {
    let (mut freed, mut missed) = (0, BTreeSet::new());
    for walk in 0..2 {
        if held.is_empty() {
            break;
        }
        // One walk may miss a connection: it has ended when two have.
        thread::sleep(APART * walk);
        let mut found: BTreeMap<u64, Vec<Connection>> = BTreeMap::new();
        for one in all()? {
            found.entry(one.cookie).or_default().push(one);
        }
        held.retain(|cookie, rate| {
            // Processes may share it, and one of them is enough.
            let mut outcome = Err(Errno::NOTCONN);
            for one in found.get(cookie).into_iter().flatten() {
                match hold(one, *rate) {
                    Err(Errno::NOTCONN) => {}
                    told => outcome = told,
                }
                if outcome.is_ok() {
                    break;
                }
            }
            freed += usize::from(outcome.is_ok());
            match outcome {
                Ok(()) => false,
                Err(Errno::NOTCONN) => missed.insert(*cookie),
                Err(_) => true,
            }
        });
    }
    Ok(freed)
}

/// A file that root alone reads and writes.
fn own(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW)
}

/// The file with these records alone, in place of the one before.
fn written(path: &Path, held: &BTreeMap<u64, Option<Rate>>) -> io::Result<File> {
    let new = path.with_extension("new");
    let _ = fs::remove_file(&new);
    let mut file = own(OpenOptions::new().create_new(true).append(true)).open(&new)?;
    let records = held.iter().flat_map(|(cookie, before)| record(*cookie, before.map_or(NO_RATE, Rate::as_bps)));
    file.write_all(&records.collect::<Vec<u8>>())?;
    fs::rename(&new, path)?;
    Ok(file)
}

fn record(cookie: u64, value: u64) -> [u8; RECORD] {
    let mut bytes = [0; RECORD];
    bytes[..8].copy_from_slice(&cookie.to_ne_bytes());
    bytes[8..].copy_from_slice(&value.to_ne_bytes());
    bytes
}

/// The connections that were held last, and what they are to be held to.
fn last(bytes: &[u8]) -> BTreeMap<u64, Option<Rate>> {
    let mut held = BTreeMap::new();
    for record in bytes.chunks_exact(RECORD) {
        let number = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| record[at + i]));
        match number(8) {
            LET_GO => held.remove(&number(0)),
            NO_RATE => held.insert(number(0), None),
            bps => held.insert(number(0), Some(Rate::from_bps(bps))),
        };
    }
    held
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A connection that this process has open.
    fn open(cookie: u64, process: u32) -> Connection {
        let (local, remote) = (([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 5_001).into());
        Connection { cookie, local, remote, namespace: 1, unacknowledged: 0, next: 0, acked: 0, process, file: 3 }
    }

    #[test]
    fn every_process_that_has_a_connection_is_tried_and_only_what_was_let_go_counts() {
        // Process 1 has closed everything meanwhile, process 2 is out of reach.
        let hold = |found: &Connection, _| match found.process {
            1 => Err(Errno::NOTCONN),
            2 => Err(Errno::PERM),
            _ => Ok(()),
        };
        let shared = [(1, [1, 3]), (2, [3, 1]), (3, [2, 3]), (4, [2, 1]), (5, [1, 1])];
        let first: Vec<_> =
            shared.iter().flat_map(|&(cookie, both)| both.map(|process| open(cookie, process))).collect();
        // 6 is missed by the first walk, 7 by both.
        let walks = RefCell::new(vec![[first.clone(), vec![open(6, 3)]].concat(), first]);
        let mut held: BTreeMap<u64, Option<Rate>> = (1..=7).map(|cookie| (cookie, None)).collect();
        let freed = let_go(&mut held, || Ok(walks.borrow_mut().pop().expect("two walks")), hold).unwrap();
        assert_eq!((freed, held), (4, BTreeMap::from([(4, None)])), "1, 2, 3 and 6");
    }

    #[test]
    fn the_last_record_of_a_connection_counts() {
        let records =
            [record(1, NO_RATE), record(2, 7), record(3, 8), record(2, 9), record(1, LET_GO), record(3, NO_RATE)];
        let mut bytes = records.concat();
        bytes.extend([0xff; 9]);
        assert_eq!(last(&bytes), BTreeMap::from([(2, Some(Rate::from_bps(9))), (3, None)]));
    }

    #[test]
    fn a_file_that_is_out_of_date_is_written_anew() {
        let folder = std::env::temp_dir().join(format!("narrowsd-left-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("near-source-1");
        let file = written(&path, &BTreeMap::new()).unwrap();
        let lock = File::open(&path).unwrap();
        let mut left = Left { path: path.clone(), file, records: 0, held: BTreeMap::new(), _lock: lock };
        left.note(7, None).unwrap();
        for cookie in 100..10_000 {
            left.note(cookie, Some(Rate::from_mbps(1))).unwrap();
            left.let_go(cookie).unwrap();
            assert!(fs::metadata(&path).unwrap().len() <= ((FEW + 1) * RECORD) as u64);
        }
        assert_eq!(last(&fs::read(&path).unwrap()), BTreeMap::from([(7, None)]));
        left.let_go(7).unwrap();
        left.end().unwrap();
        assert!(!path.exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
