//! TCP sockets of the namespace that the thread is in: non-blocking, without Nagle's algorithm, each with its controller.

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use narrows_core::units::{Rate, Span};
use rustix::io::{self, Errno};
use rustix::net::{AddressFamily, SocketAddrAny, SocketFlags, SocketType};
use rustix::net::{accept_with, bind, connect, getsockname, listen, socket_with, sockopt};

use crate::address;

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
/// The port of the listener of the first traffic entry.
const FIRST_PORT: u16 = 10_000;
/// What a connection without an end may hold back unsent at least, bytes: three packets of a slow one.
const MIN_UNSENT: u64 = 1 << 12;
/// And at most, if it is stopped before the run ends: 20 ms at 100 Mbps. Half of it is what there is for a late sender.
const MAX_UNSENT_STOPPED: u64 = 1 << 18;
/// And at most otherwise, where it leaves within [`MAX_DRAIN`], too.
const MAX_UNSENT: u64 = 1 << 20;
/// What waits unsent when the run ends is to be gone so soon.
const MAX_DRAIN: Span = Span::from_ms(500);
/// So long what waits unsent takes to leave, where the window holds less.
const UNSENT_TIME: Span = Span::from_ms(20);

/// The port on which hosts listen for a traffic entry.
pub(crate) fn port(traffic: u32) -> u16 {
    u16::try_from(traffic).ok().and_then(|traffic| FIRST_PORT.checked_add(traffic)).expect("a plan has few entries")
}

/// A listener for a traffic entry: what it accepts has this controller.
pub(crate) fn listener(host: u32, traffic: u32, congestion: &str) -> io::Result<OwnedFd> {
    let socket = stream(congestion)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(address::v4(host), port(traffic)))?;
    listen(&socket, 4_096)?;
    Ok(socket)
}

/// A connection that is being opened.
pub(crate) fn connection(peer: u32, traffic: u32, congestion: &str) -> io::Result<OwnedFd> {
    let socket = stream(congestion)?;
    match connect(&socket, &SocketAddrV4::new(address::v4(peer), port(traffic))) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// The next connection that a listener has; `None` if there is none now.
pub(crate) fn accepted(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    match accept_with(listener, FLAGS) {
        Ok(socket) => {
            sockopt::set_tcp_nodelay(&socket, true)?;
            Ok(Some(socket))
        }
        Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => Ok(None),
        Err(error) => Err(error),
    }
}

fn stream(congestion: &str) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, FLAGS, None)?;
    sockopt::set_tcp_congestion(&socket, congestion)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

/// The port of this end; 0 before there is one.
pub(crate) fn own_port(socket: &OwnedFd) -> u16 {
    let address: Option<std::net::SocketAddr> =
        getsockname(socket).ok().and_then(|address: SocketAddrAny| address.try_into().ok());
    address.map_or(0, |address| address.port())
}

/// The peer hears at once that this end is gone: nothing of it lingers.
pub(crate) fn abort(socket: &OwnedFd) {
    let _ = sockopt::set_socket_linger(socket, Some(std::time::Duration::ZERO));
}

/// Lets only so many bytes wait unsent, so that a stop takes effect soon: the kernel takes no more and, when half of it has
/// left, says that there is room.
pub(crate) fn limit_unsent(socket: &OwnedFd, bytes: u32) -> io::Result<()> {
    let unsent = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    #[allow(unsafe_code, reason = "no safe wrapper at hand")]
    // SAFETY: the pointer is to a live integer of the length that is said.
    let code = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            (&raw const unsent).cast(),
            libc::socklen_t::try_from(size_of::<libc::c_int>()).expect("four"),
        )
    };
    succeeded(code)
}

/// Bytes handed over and not yet acknowledged.
pub fn unacknowledged(socket: &OwnedFd) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    #[allow(unsafe_code, reason = "no safe wrapper at hand")]
    // SAFETY: the kernel writes one integer to a live one.
    let code = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    succeeded(code).map(|()| u32::try_from(bytes).unwrap_or(0))
}

/// The rate that others hold a connection to, `SO_MAX_PACING_RATE`; `None` if nobody does.
pub fn most_rate(socket: &OwnedFd) -> io::Result<Option<Rate>> {
    let mut rate = 0_u64;
    let mut length = libc::socklen_t::try_from(size_of::<u64>()).expect("eight");
    #[allow(unsafe_code, reason = "no safe wrapper at hand")]
    // SAFETY: the kernel writes at most `length` bytes, which is the size of the integer.
    let code = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw mut rate).cast(),
            &raw mut length,
        )
    };
    succeeded(code).map(|()| (rate != u64::MAX).then(|| Rate::from_bps(rate.saturating_mul(8))))
}

/// Holds a connection to a rate from now on, or to none; by its controller's pacing or the kernel's own.
pub fn set_most_rate(socket: &OwnedFd, rate: Option<Rate>) -> io::Result<()> {
    let bytes = rate.map_or(u64::MAX, |rate| rate.as_bps() / 8);
    #[allow(unsafe_code, reason = "no safe wrapper at hand")]
    // SAFETY: the pointer is to a live integer of the length that is said.
    let code = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const bytes).cast(),
            libc::socklen_t::try_from(size_of::<u64>()).expect("eight"),
        )
    };
    succeeded(code)
}

fn succeeded(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)) }
}

/// What the kernel tells of a connection [`struct tcp_info`, <linux/tcp.h>]. What an older kernel does not tell is zero.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    bytes: [u8; 248],
}

impl Info {
    /// Of a connection as it begins.
    pub(crate) const NONE: Info = Info { bytes: [0; 248] };

    /// Asks the kernel.
    pub fn of(socket: &OwnedFd) -> io::Result<Info> {
        let mut info = Info::NONE;
        let mut length = libc::socklen_t::try_from(info.bytes.len()).expect("a few hundred");
        #[allow(unsafe_code, reason = "no safe wrapper at hand")]
        // SAFETY: the kernel writes at most `length` bytes, which is the size of the array.
        let code = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        succeeded(code).map(|()| info)
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_ne_bytes(std::array::from_fn(|i| self.bytes[at + i]))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(std::array::from_fn(|i| self.bytes[at + i]))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(std::array::from_fn(|i| self.bytes[at + i]))
    }

    /// Whether it has ended: what its process may not know yet.
    pub const fn has_ended(&self) -> bool {
        // TCP_CLOSE
        self.bytes[0] == 7
    }

    /// Whether its handshake is over and it has not begun to end.
    pub const fn is_established(&self) -> bool {
        // TCP_ESTABLISHED
        self.bytes[0] == 1
    }

    /// Its state of congestion control, `enum tcp_ca_state`: 0 open, 1 disorder, 2 reduced by ECN, 3 recovery, 4 loss.
    pub const fn congestion_state(&self) -> u8 {
        self.bytes[1]
    }

    /// Segments sent and not acknowledged, and of these, those reported by SACK, found lost, and retransmitted since.
    pub fn outstanding(&self) -> [u32; 4] {
        [self.u32(24), self.u32(28), self.u32(32), self.u32(36)]
    }

    /// Slow start threshold, packets.
    pub fn threshold(&self) -> u32 {
        self.u32(76)
    }

    /// Whether the two ends agreed on ECN.
    pub(crate) const fn has_ecn(&self) -> bool {
        self.bytes[5] & 8 != 0
    }

    /// Smoothed RTT; `None` without a sample.
    pub(crate) fn round_trip(&self) -> Option<Span> {
        Some(Span::from_us(u64::from(self.u32(68)))).filter(|&span| span > Span::ZERO)
    }

    /// Congestion window, packets.
    pub fn window(&self) -> u32 {
        self.u32(80)
    }

    /// The rate at which it would pace.
    pub fn pacing(&self) -> Rate {
        Rate::from_bps(self.u64(104).saturating_mul(8))
    }

    /// Whether everything handed over was acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.u32(24) == 0 && self.unsent() == 0
    }

    /// So many bytes should wait unsent at most: two windows, the most that acknowledgements of an RTT ask for, or what
    /// leaves in [`UNSENT_TIME`]. Of one that is never stopped twice as many, as an acknowledgement that fills a hole asks for a
    /// window at once.
    #[allow(clippy::cast_possible_truncation, reason = "not more than `MAX_UNSENT`")]
    pub(crate) fn unsent_limit(&self, stops: bool) -> u32 {
        let (windows, most) = if stops { (2, MAX_UNSENT_STOPPED) } else { (4, MAX_UNSENT) };
        let windows = windows * u64::from(self.window()) * u64::from(self.u32(16));
        let rate = self.delivery_rate();
        let most = most.min(rate.bytes_in(MAX_DRAIN).get().max(MAX_UNSENT_STOPPED));
        windows.max(rate.bytes_in(UNSENT_TIME).get()).clamp(MIN_UNSENT, most) as u32
    }

    /// Bytes handed over and not yet sent for the first time.
    pub fn unsent(&self) -> u32 {
        self.u32(144)
    }

    /// Payload bytes acknowledged so far.
    pub fn acked(&self) -> u64 {
        self.u64(120)
    }

    /// How fast bytes were delivered recently, by the last rate sample; zero without one.
    pub fn delivery_rate(&self) -> Rate {
        Rate::from_bps(self.u64(160).saturating_mul(8))
    }

    /// Payload bytes sent so far, those retransmitted included.
    pub fn sent(&self) -> u64 {
        self.u64(200)
    }

    /// Payload bytes retransmitted so far.
    pub fn retransmitted(&self) -> u64 {
        self.u64(208)
    }

    /// Segments retransmitted so far; of a connection that has just been established, its SYNs.
    pub(crate) fn total_retransmits(&self) -> u32 {
        self.u32(100)
    }

    /// Expiries of the retransmission timer so far; from Linux 6.7 on.
    pub(crate) fn timeouts(&self) -> u32 {
        u32::from(self.u16(240))
    }
}
