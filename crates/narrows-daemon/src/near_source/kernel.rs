//! The kernel's connections as the reaction points see them.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::{fs, io};

use narrows_core::units::Rate;
use narrows_testbed::near_source::reactor::{Connections, Reached};
use narrows_wire::Flow;

use super::borrowed::Borrowed;
use super::left::Left;
use super::table::Table;

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
        let (left, freed) = Left::take_over(self.namespace, || self.table.all())?;
        self.left = Some(left);
        Ok(freed)
    }

    /// Looks ahead, if it is time.
    pub(super) fn keep_fresh(&self) {
        self.table.keep_fresh();
    }

    /// Nothing more will be held.
    pub(super) fn end_record(&mut self) {
        if let Some(Err(error)) = self.left.take().map(Left::end) {
            eprintln!("warning: the record of held connections is out of date: {error}");
        }
    }
}

impl Connections for Kernel {
    type Lent = Borrowed;

    fn lend(&mut self, flow: &Flow) -> Reached<Borrowed> {
        self.table.lend(&(self.namespace, *flow))
    }

    fn look_again(&mut self) {
        self.table.look_again();
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
