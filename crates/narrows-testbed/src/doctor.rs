//! Whether this machine can run hosts of its own kernel, and if not, what it lacks.

use std::fmt;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};

/// What is missing for live runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The capability to make namespaces and devices.
    Privilege,
    /// `/dev/net/tun`; with what opening it said.
    Tun(Errno),
    /// A folder for names and locks below `/run`.
    Run,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Privilege => write!(f, "live runs need root (CAP_SYS_ADMIN and CAP_NET_ADMIN)"),
            Missing::Tun(error) => write!(f, "/dev/net/tun cannot be opened ({error}): load the kernel module `tun`"),
            Missing::Run => write!(f, "/run cannot be written: namespaces have their names there"),
        }
    }
}

impl std::error::Error for Missing {}

/// Looks whether hosts can be made here.
///
/// # Errors
/// The first thing that is missing.
pub fn examine() -> Result<(), Missing> {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    if !capabilities(None).is_ok_and(|sets| sets.effective.contains(needed)) {
        return Err(Missing::Privilege);
    }
    open("/dev/net/tun", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(Missing::Tun)?;
    if rustix::fs::access("/run", rustix::fs::Access::WRITE_OK).is_err() {
        return Err(Missing::Run);
    }
    Ok(())
}
