//! Which connections are held, in a file: should this process be killed, the one after it lets go of them.
//!
//! A record for each connection when it is first held: its cookie, which no other socket has before the machine is switched
//! off, and the rate that it was held to before. The file is emptied when nothing is held.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use narrows_core::units::Rate;
use narrows_kernel::Connections;
use narrows_testbed::agent::set_most_rate;

/// What goes with the machine's being switched off, as cookies do.
const FOLDER: &str = "/run/narrows";
const RECORD: usize = 16;

#[derive(Debug)]
pub(super) struct Left {
    path: PathBuf,
    file: File,
}

impl Left {
    /// The file of a network namespace. Lets go of what a killed process left held; how many connections that was.
    pub(super) fn take_over(namespace: u32, all: &Connections) -> io::Result<(Left, usize)> {
        std::fs::create_dir_all(FOLDER)?;
        let path = Path::new(FOLDER).join(format!("near-source-{namespace}"));
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(&path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut freed = 0;
        if !bytes.is_empty() {
            let living = all.all().map_err(io::Error::other)?;
            // The first record of a connection says what it was before anything was changed.
            for (cookie, before) in records(&bytes).rev() {
                let found = living.iter().find(|found| found.cookie == cookie);
                let Some(Ok(socket)) = found.map(narrows_kernel::Connection::socket) else { continue };
                set_most_rate(&socket, before)?;
                freed += 1;
            }
            file.set_len(0)?;
        }
        Ok((Left { path, file }, freed))
    }

    /// A connection is held from now on; before, it was held to this rate, or to none.
    pub(super) fn note(&mut self, cookie: u64, before: Option<Rate>) -> io::Result<()> {
        let before = before.map_or(u64::MAX, Rate::as_bps);
        let record = [cookie.to_ne_bytes(), before.to_ne_bytes()].concat();
        self.file.write_all(&record)
    }

    /// Nothing is held.
    pub(super) fn empty(&mut self) -> io::Result<()> {
        self.file.set_len(0)
    }

    /// Nothing is held any more, nor will be.
    pub(super) fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

fn records(bytes: &[u8]) -> impl DoubleEndedIterator<Item = (u64, Option<Rate>)> {
    bytes.chunks_exact(RECORD).map(|record| {
        let number = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| record[at + i]));
        (number(0), Some(number(8)).filter(|&bps| bps != u64::MAX).map(Rate::from_bps))
    })
}
