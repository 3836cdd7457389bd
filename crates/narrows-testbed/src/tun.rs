//! A host's network device: what the host sends is read here, what is written here reaches it.
//!
//! The device lives as long as this end of it is open, and so is gone with its process, however that ends.

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{self, Errno};
use rustix::ioctl::{Setter, ioctl};

use crate::address;
use crate::netlink::Netlink;

/// The device's name in its host's namespace.
pub const NAME: &str = "narrows0";
/// Packets that may wait between the host and the emulator. What does not fit is lost unseen by the plan's queues: so many
/// that an emulator that stands still for a second loses nothing at 200 Mbps.
const QUEUE_LENGTH: u32 = 20_000;
/// IFF_TUN, and no header before each packet [<linux/if_tun.h>].
const TUN_WITHOUT_HEADER: u16 = 0x0001 | 0x1000;
/// TUNSETIFF.
const SET_INTERFACE: rustix::ioctl::Opcode = rustix::ioctl::opcode::write::<libc::c_int>(b'T', 202);

/// `struct ifreq`, as far as TUNSETIFF reads it: the rest of its union is padding.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    padding: [u8; 22],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>(), "the kernel copies a whole ifreq");

/// See the [module](self).
#[derive(Debug)]
pub struct Tun {
    file: OwnedFd,
}

impl Tun {
    /// Makes the device of a host, by its number, in the namespace that the calling thread is in, with addresses, a route to all
    /// other hosts and an MTU, bytes. Without IPv6 in the kernel it has an IPv4 address only.
    ///
    /// # Errors
    /// What the kernel says: without the capability to administer the namespace's network, without `/dev/net/tun`, or where
    /// there is such a device already.
    pub fn open(host: u32, mtu: u16) -> io::Result<Tun> {
        let file = open("/dev/net/tun", OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        let mut request = InterfaceRequest { name: [0; 16], flags: TUN_WITHOUT_HEADER, padding: [0; 22] };
        request.name[..NAME.len()].copy_from_slice(NAME.as_bytes());
        #[allow(unsafe_code, reason = "an ioctl is known by its number alone")]
        // SAFETY: TUNSETIFF reads a `struct ifreq`, whose size and layout `InterfaceRequest` has.
        unsafe {
            ioctl(&file, Setter::<SET_INTERFACE, InterfaceRequest>::new(request))?;
        }
        let netlink = Netlink::open()?;
        let index = netlink.index(NAME)?;
        netlink.set_up(index, Some(u32::from(mtu)), Some(QUEUE_LENGTH))?;
        netlink.add_address(index, IpAddr::V4(address::v4(host)), address::PREFIX_V4)?;
        match netlink.add_address(index, IpAddr::V6(address::v6(host)), address::PREFIX_V6) {
            // An MTU below 1280 has no IPv6 either.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::AFNOSUPPORT | Errno::ACCESS | Errno::INVAL | Errno::NODEV) => {}
            Err(error) => return Err(error),
        }
        Ok(Tun { file })
    }

    /// Has TCP send through the device at most so many segments at once, of the namespace that the calling thread is in.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set_segments_at_once(&self, segments: u32) -> io::Result<()> {
        let netlink = Netlink::open()?;
        netlink.set_segments_at_once(netlink.index(NAME)?, segments)
    }

    /// Has connections to a host, by its number, begin with a window of so many packets.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set_initial_window(&self, peer: u32, packets: u32) -> io::Result<()> {
        let netlink = Netlink::open()?;
        netlink.add_route(netlink.index(NAME)?, address::v4(peer), packets)
    }

    /// The next packet that the host has sent: its length in `buffer`. `None` if there is none now.
    ///
    /// # Errors
    /// What the kernel says of the device.
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match io::read(&self.file, buffer) {
            Ok(length) => Ok(Some(length)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a packet to the host.
    ///
    /// # Errors
    /// If the host's kernel does not take it.
    #[inline]
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        io::write(&self.file, packet).map(|_| ())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
