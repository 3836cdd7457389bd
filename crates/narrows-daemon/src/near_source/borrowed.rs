//! A connection's socket, for a moment.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use narrows_core::units::Rate;
use narrows_testbed::agent::{Info, most_rate, set_most_rate, unacknowledged};
use narrows_testbed::near_source::reactor::{Lent, Look};
use rustix::net::sockopt;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Borrowed {
    /// Until it is given back.
    socket: Option<OwnedFd>,
    cookie: u64,
    /// Where acknowledged bytes are counted from: a sequence number.
    first: u32,
}

impl Borrowed {
    pub(super) const fn new(socket: OwnedFd, cookie: u64, first: u32) -> Borrowed {
        Borrowed { socket: Some(socket), cookie, first }
    }

    fn socket(&self) -> &OwnedFd {
        self.socket.as_ref().expect("it is given back with the value")
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let linger = sockopt::socket_linger(self.socket()).ok().flatten();
        let Some(socket) = self.socket.take().filter(|_| linger > Some(Duration::ZERO)) else { return };
        // Should its process have closed it meanwhile, this is the close that waits. Where there can be no thread, here.
        let _ = thread::Builder::new().spawn(move || drop(socket));
    }
}

impl Lent for Borrowed {
    fn cookie(&self) -> u64 {
        self.cookie
    }

    #[allow(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
    fn look(&self) -> Option<Look> {
        // Asked before and after: what is acknowledged or written in between is counted as in flight still, or already, and
        // nothing is missed.
        let before = unacknowledged(self.socket()).ok()?;
        let info = Info::of(self.socket()).ok().filter(|info| !info.has_ended())?;
        let handed_over = unacknowledged(self.socket()).ok()?.max(before);
        let una = self.first.wrapping_add(info.acked() as u32);
        let delivered = info.delivery_rate();
        Some(Look {
            unacknowledged: una,
            next: una.wrapping_add(handed_over.saturating_sub(info.unsent())),
            sent: info.sent(),
            // Before the first rate sample, what it would send at.
            recent: if delivered == Rate::default() { info.pacing() } else { delivered },
        })
    }

    fn held(&self) -> Option<Rate> {
        most_rate(self.socket()).ok().flatten()
    }

    fn hold(&self, rate: Option<Rate>) -> bool {
        set_most_rate(self.socket(), rate).is_ok()
    }
}
