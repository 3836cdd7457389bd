//! The socket that notifications come to.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use narrows_wire::notification::{LENGTH, PORT};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv4RecvTtl, Ipv6RecvHopLimit, RcvBuf, RcvBufForce, ReceiveTimestampns};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, getsockopt, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// Room for some ten thousand notifications, bytes: a second of an attack.
const BUFFER: usize = 1 << 23;

/// A datagram, as it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram {
    bytes: [u8; LENGTH + 1],
    length: usize,
    /// Where from.
    pub(super) from: IpAddr,
    /// What was left of its hop limit; 0 if the kernel does not say.
    pub(super) hop_limit: u8,
    /// When the kernel took it in, nanoseconds since 1970; 0 if it does not say.
    pub(super) came_ns: u64,
}

impl Datagram {
    /// Its payload. One that is longer than a notification is cut a byte later, so that it is none.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Receiver {
    socket: UdpSocket,
}

impl Receiver {
    /// Listens on this address; the unspecified one of IPv6 hears IPv4, too.
    pub(super) fn new(address: IpAddr) -> io::Result<Receiver> {
        let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
        if address.is_ipv6() {
            // Whatever the host's default is.
            sockopt::set_ipv6_v6only(&socket, false)?;
        }
        let room = make_room(&socket)?;
        if room < BUFFER {
            eprintln!(
                "warning: there is room for {} KB of notifications, where {} KB were asked for: net.core.rmem_max bounds it",
                room / 1_000,
                BUFFER / 1_000
            );
        }
        bind(&socket, &SocketAddr::new(address, PORT))?;
        let socket = UdpSocket::from(socket);
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        if address.is_ipv6() {
            setsockopt(&socket, Ipv6RecvHopLimit, &true)?;
        }
        // Also what comes to an IPv6 socket by IPv4.
        setsockopt(&socket, Ipv4RecvTtl, &true)?;
        Ok(Receiver { socket })
    }

    pub(super) const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// The next datagram; `None` if there is none now.
    pub(super) fn take(&self) -> io::Result<Option<Datagram>> {
        let mut bytes = [0; LENGTH + 1];
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let mut said = cmsg_space!(TimeSpec, libc::c_int, libc::c_int);
        let flags = MsgFlags::MSG_DONTWAIT;
        let taken = match recvmsg::<SockaddrStorage>(self.socket.as_raw_fd(), &mut parts, Some(&mut said), flags) {
            Ok(taken) => taken,
            // Without memory for it there is none either.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOMEM | Errno::ENOBUFS) => return Ok(None),
            // What an earlier answer of ours met with, if it had sent one.
            Err(Errno::ECONNREFUSED) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let length = taken.bytes;
        let from = taken.address.as_ref().and_then(address);
        let (mut hop_limit, mut came_ns) = (0, 0);
        for message in taken.cmsgs()? {
            match message {
                ControlMessageOwned::Ipv4Ttl(limit) | ControlMessageOwned::Ipv6HopLimit(limit) => {
                    hop_limit = u8::try_from(limit).unwrap_or(0);
                }
                ControlMessageOwned::ScmTimestampns(at) => came_ns = nanoseconds(at),
                _ => {}
            }
        }
        Ok(from.map(|from| Datagram { bytes, length, from, hop_limit, came_ns }))
    }
}

/// A burst of forgeries must not take the place of what is genuine. How many bytes there is room for.
fn make_room(socket: &impl AsFd) -> io::Result<usize> {
    // Who has CAP_NET_ADMIN may exceed the host's bound; others have what it allows.
    if setsockopt(socket, RcvBufForce, &BUFFER).is_err() {
        setsockopt(socket, RcvBuf, &BUFFER)?;
    }
    // The kernel doubles what it is asked for, because of what it keeps beside the bytes.
    Ok(getsockopt(socket, RcvBuf)? / 2)
}

fn address(from: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = from.as_sockaddr_in().map(|from| SocketAddr::from((from.ip(), from.port())));
    let v6 = from.as_sockaddr_in6().map(|from| SocketAddr::from((from.ip(), from.port())));
    v4.or(v6).map(|from| from.ip().to_canonical())
}

fn nanoseconds(at: TimeSpec) -> u64 {
    let (seconds, rest) = (u64::try_from(at.tv_sec()).unwrap_or(0), u64::try_from(at.tv_nsec()).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
