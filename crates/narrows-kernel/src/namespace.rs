//! Which network namespace something applies to.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::Error;

/// To which network namespace parameters apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// To each that has none of its own.
    Every,
    /// To the one with this cookie (`SO_NETNS_COOKIE`), from 1: no other has it until the machine is switched off. An inode,
    /// which tools show, is given to another namespace once this one has ended.
    Cookie(u64),
}

impl Namespace {
    /// The namespace behind a file such as `/run/netns/NAME` or `/proc/PID/ns/net`. A thread of its own enters it.
    ///
    /// # Errors
    /// [`Error::File`]: it leads to no namespace, the caller may not enter it, or the kernel is older than 5.14 and knows no
    /// cookies of namespaces.
    pub fn of(path: &Path) -> Result<Namespace, Error> {
        let file = File::open(path).map_err(Error::file(path))?;
        let ask = move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            cookie_here()
        };
        let cookie = std::thread::scope(|scope| scope.spawn(ask).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        cookie.map(Namespace::Cookie).map_err(Error::file(path))
    }

    pub(crate) fn key(self) -> [u8; 8] {
        match self {
            Namespace::Every => 0_u64.to_ne_bytes(),
            Namespace::Cookie(cookie) => cookie.to_ne_bytes(),
        }
    }
}

/// The cookie of the namespace that this thread is in.
///
/// # Errors
/// Sockets cannot be opened, or the kernel is older than 5.14 and knows no cookies of namespaces.
pub fn cookie_here() -> io::Result<u64> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let (mut cookie, mut size) = (0_u64, libc::socklen_t::try_from(size_of::<u64>()).unwrap_or(0));
    // SAFETY: the kernel writes at most `size` bytes, which is the size of what the pointer leads to.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut size,
        )
    };
    if outcome == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}
