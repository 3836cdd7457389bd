//! The TCP connections of this host's processes: a BPF program finds them among all open files, and a connection's socket is
//! lent for a moment to whoever has something to ask or to set.
//!
//! The kernel has no call that changes another process' socket. It lets a privileged process have a second descriptor of it
//! (`pidfd_getfd`, Linux 5.6), which takes microseconds; walking all connections with a program that may set options
//! (`bpf_iter/tcp`) takes hundreds on a host with a usual hash table.

use crate::controllers::object;
use crate::error::Error;
use crate::record::{Fields, address};
use crate::said;
use libbpf_rs::{ObjectBuilder, libbpf_sys};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of `struct narrows_connection`.
const BYTES: usize = 80;
/// Inode of the PID namespace that a kernel begins with, `PROC_PID_INIT_INO` [<linux/proc_ns.h>].
const FIRST_PIDS: u64 = 0xefff_fffc;

/// Finds connections, on any thread. Those of all network namespaces.
#[derive(Debug)]
pub struct Connections {
    /// What keeps the program, and what a walk begins from.
    link: OwnedFd,
}

/// A connection of some process, as it was when it was found.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The kernel's number for the socket; no other ever has it.
    pub cookie: u64,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Inode of its network namespace.
    pub namespace: u32,
    /// Its oldest byte that is not acknowledged.
    pub unacknowledged: u32,
    /// The byte that it sends next.
    pub next: u32,
    /// Bytes acknowledged so far, as `TCP_INFO` counts them.
    pub acked: u64,
    /// A process that has it open.
    pub process: u32,
    /// The number of its file there.
    pub file: i32,
}

impl Connections {
    /// Loads the program. It does nothing until it is asked.
    ///
    /// # Errors
    /// [`Error::OtherPids`], [`Error::NoPrivileges`], [`Error::Rejected`], [`Error::Bpf`].
    pub fn load() -> Result<Connections, Error> {
        // The program tells processes by the numbers that they have there.
        let pids = Path::new("/proc/self/ns/pid");
        if fs::metadata(pids).map_err(Error::file(pids))?.ino() != FIRST_PIDS {
            return Err(Error::OtherPids);
        }
        said::listen();
        let open = ObjectBuilder::default().open_memory(object!("connections"));
        let refused = |source| Error::refused("connections", source);
        let object = open.map_err(refused)?.load().map_err(refused)?;
        let program = object.progs_mut().next().expect("the object was compiled from this crate's sources");
        let link = program.attach().map_err(|source| Error::of("look at processes' files", source))?;
        let link = link.as_fd().try_clone_to_owned();
        Ok(Connections { link: link.map_err(|error| Error::of("keep the program", error.into()))? })
    }

    /// All of them that a process has open now, those that end meanwhile perhaps not. A connection that several processes
    /// share comes once for each. Takes 100 to 300 us on a host with a few
    /// processes, and longer with their files.
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn all(&self) -> Result<Vec<Connection>, Error> {
        let failed = |source| Error::of("look at processes' files", source);
        let mut bytes = Vec::new();
        // SAFETY: the call takes a descriptor that is open, and what it returns is one of our own, or an error.
        let files = unsafe {
            match libbpf_sys::bpf_iter_create(self.link.as_raw_fd()) {
                files if files < 0 => return Err(failed(libbpf_rs::Error::from_raw_os_error(-files))),
                files => OwnedFd::from_raw_fd(files),
            }
        };
        let (mut files, mut part) = (File::from(files), [0; 1 << 14]);
        loop {
            match files.read(&mut part) {
                Ok(0) => break,
                Ok(count) => bytes.extend_from_slice(&part[..count]),
                // The kernel pauses after a million files of which nothing is told.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        Ok(bytes.chunks_exact(BYTES).map(Connection::read).collect())
    }
}

impl Connection {
    fn read(record: &[u8]) -> Connection {
        let mut fields = Fields(record);
        let cookie = fields.u64();
        let acked = fields.u64();
        let process = fields.u32();
        let file = fields.u32().cast_signed();
        let (unacknowledged, next) = (fields.u32(), fields.u32());
        let namespace = fields.u32();
        let family = fields.u32();
        let (local_port, remote_port) = (fields.u16(), fields.u16());
        fields.u32();
        let local = SocketAddr::new(address(family, fields.take()), local_port);
        let remote = SocketAddr::new(address(family, fields.take()), remote_port);
        Connection { cookie, local, remote, namespace, unacknowledged, next, acked, process, file }
    }

    /// Its socket, to be dropped at once: as long as it is held, the connection does not end when its process closes it.
    ///
    /// # Errors
    /// [`Errno::NOTCONN`] if the process has closed it or has ended; what the kernel says otherwise.
    pub fn socket(&self) -> rustix::io::Result<OwnedFd> {
        let gone = |error| if matches!(error, Errno::BADF | Errno::SRCH) { Errno::NOTCONN } else { error };
        let process = i32::try_from(self.process).ok().and_then(Pid::from_raw).ok_or(Errno::NOTCONN)?;
        let process = pidfd_open(process, PidfdFlags::empty()).map_err(gone)?;
        let socket = pidfd_getfd(&process, self.file, PidfdGetfdFlags::empty()).map_err(gone)?;
        // Both numbers may stand for others by now.
        match sockopt::socket_cookie(&socket) {
            Ok(cookie) if cookie == self.cookie => Ok(socket),
            _ => Err(Errno::NOTCONN),
        }
    }
}
