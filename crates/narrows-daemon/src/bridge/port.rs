//! Where frames leave: a raw socket on an interface, past its queueing discipline.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use narrows_core::units::Span;
use narrows_testbed::lateness::Histogram;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::frame::Departing;
use super::work::monotonic_ns;

/// Frames of one call.
const BATCH: usize = 64;
/// Room for frames that the device has not sent yet, bytes.
const BUFFER: libc::c_int = 1 << 22;
/// How long a full device is waited for, all in all, before what is to be sent is dropped.
const PATIENCE: Duration = Duration::from_millis(1);

/// What became of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) sent: u64,
    /// The device had no room.
    pub(super) dropped: u64,
    /// The device does not take them: too long, or it is down.
    pub(super) refused: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Port {
    socket: OwnedFd,
    pub(super) counters: Counters,
}

impl Port {
    /// Sends on the interface of this number.
    pub(super) fn open(index: u32) -> io::Result<Port> {
        use std::os::fd::FromRawFd as _;
        // SAFETY: what the call returns is an own descriptor, or an error.
        let socket = unsafe {
            // Of no protocol: nothing is received.
            match libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0) {
                socket if socket < 0 => return Err(io::Error::last_os_error()),
                socket => OwnedFd::from_raw_fd(socket),
            }
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, BUFFER)?;
        // SAFETY: an address is plain data, and outlives the call.
        let bound = unsafe {
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = u16::try_from(libc::AF_PACKET).map_err(io::Error::other)?;
            address.sll_ifindex = i32::try_from(index).map_err(io::Error::other)?;
            let size = libc::socklen_t::try_from(size_of_val(&address)).map_err(io::Error::other)?;
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size)
        };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Port { socket, counters: Counters::default() })
    }

    /// Sends all of these, or drops them: it waits for a millisecond at most. How long each was here is noted, if `delay` is given.
    pub(super) fn send(&mut self, frames: &mut VecDeque<Departing>, mut delay: Option<&mut Histogram>) {
        let mut waited = false;
        while !frames.is_empty() {
            let gone = match self.send_some(frames) {
                Ok(sent) => {
                    self.counters.sent += sent as u64;
                    sent
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => 0,
                    Some(libc::EAGAIN) if !waited => {
                        waited = true;
                        let mut wanted = [PollFd::new(self.socket.as_fd(), PollFlags::POLLOUT)];
                        let _ = ppoll(&mut wanted, Some(TimeSpec::from_duration(PATIENCE)), None);
                        0
                    }
                    Some(libc::EAGAIN) => {
                        self.counters.dropped += frames.len() as u64;
                        frames.len()
                    }
                    Some(libc::ENOBUFS | libc::ENOMEM) => {
                        self.counters.dropped += 1;
                        1
                    }
                    _ => {
                        self.counters.refused += 1;
                        1
                    }
                },
            };
            let now_ns = if delay.is_some() { monotonic_ns() } else { 0 };
            for frame in frames.drain(..gone) {
                if let Some(delay) = &mut delay
                    && frame.came_ns > 0
                {
                    delay.record(Span::from_ns(now_ns.saturating_sub(frame.came_ns)));
                }
            }
        }
    }

    /// Sends the first few; how many it sent.
    fn send_some(&self, frames: &VecDeque<Departing>) -> io::Result<usize> {
        // SAFETY: vectors and headers are plain data; what they point to outlives the call.
        unsafe {
            let mut vectors: [libc::iovec; BATCH] = std::mem::zeroed();
            let mut headers: [libc::mmsghdr; BATCH] = std::mem::zeroed();
            let mut count = 0;
            for ((frame, vector), header) in frames.iter().zip(&mut vectors).zip(&mut headers) {
                let bytes = frame.bytes();
                // It is read from alone.
                vector.iov_base = bytes.as_ptr().cast_mut().cast();
                vector.iov_len = bytes.len();
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                count += 1;
            }
            match libc::sendmmsg(self.socket.as_raw_fd(), headers.as_mut_ptr(), count, 0) {
                sent if sent < 0 => Err(io::Error::last_os_error()),
                sent => Ok(usize::try_from(sent).unwrap_or(0)),
            }
        }
    }
}

fn set(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = libc::socklen_t::try_from(size_of_val(&value)).map_err(io::Error::other)?;
    // SAFETY: the value outlives the call.
    let outcome = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), size) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
