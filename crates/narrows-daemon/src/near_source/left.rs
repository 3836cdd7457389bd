//! Which connections are held, in a file: should this process be killed, the one after it lets go of them.
//!
//! A record for each change: a connection's cookie, which no other socket has before the machine is switched off, and the rate
//! that it is to be held to when it is let go, or that it was let go. The last one counts. When most of the file is out of
//! date it is written anew.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use narrows_core::units::Rate;
use narrows_kernel::{Connection, Error};
use narrows_testbed::agent::set_most_rate;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// What goes with the machine's being switched off, as cookies do.
const FOLDER: &str = "/run/narrows";
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
        let before = held.len();
        if !held.is_empty() {
            let living: BTreeMap<u64, Connection> =
                all().map_err(io::Error::other)?.into_iter().map(|found| (found.cookie, found)).collect();
            // What is there and cannot be reached stays in the file.
            held.retain(|cookie, rate| living.get(cookie).is_some_and(|found| !let_go(found, *rate)));
        }
        let freed = before - held.len();
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

/// Holds a connection to what it is to be held to; whether it needs no more.
fn let_go(found: &Connection, rate: Option<Rate>) -> bool {
    match found.socket() {
        Ok(socket) => set_most_rate(&socket, rate).is_ok(),
        Err(error) => error == Errno::NOTCONN,
    }
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
    use super::*;

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
