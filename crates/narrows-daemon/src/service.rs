//! A command as a service: it says that it is ready, and waits until it is told to end.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The signals that end a service in order: Ctrl-C, `kill` and a terminal that is closed.
#[derive(Debug)]
pub(crate) struct Ending(libc::sigset_t);

impl Ending {
    /// From now on they wait until [`Ending::wait`]: what was begun is also undone. Call it before threads are made.
    pub(crate) fn hold() -> Ending {
        // SAFETY: a signal set is plain data; the calls fill it in and read it.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            Ending(set)
        }
    }

    /// Returns when one of them comes.
    pub(crate) fn wait(&self) {
        let mut signal = 0;
        // SAFETY: both outlive the call.
        while unsafe { libc::sigwait(&raw const self.0, &raw mut signal) } != 0 {}
    }
}

/// Tells the service manager that started this process (`Type=notify`), if one did, that it is ready.
///
/// # Errors
/// If the manager's socket cannot be reached.
pub(crate) fn ready() -> io::Result<()> {
    let Some(path) = env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let address = match path.to_string_lossy().strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(&path)?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address).map(|_| ())
}
