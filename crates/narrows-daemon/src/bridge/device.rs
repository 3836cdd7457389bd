//! An interface of this machine: what it is, what is set on it, and how it was before.

use std::ffi::CStr;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use narrows_kernel::bridge::Interface;
use nix::ifaddrs::getifaddrs;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use serde::{Deserialize, Serialize};

/// What `ioctl` calls the settings of an adapter: to read one, and to write it.
const SEGMENTATION: (u32, u32) = (0x1e, 0x1f);
const RECEIVE_OFFLOAD: (u32, u32) = (0x2b, 0x2c);
const FLAGS: (u32, u32) = (0x25, 0x26);
/// Of the flags: large receive offload.
const LARGE_RECEIVE: u32 = 1 << 15;

/// The kernel's number for interfaces of bare IP packets, as modems have them.
const RAW_IP: u16 = 519;

/// How frames begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// With an Ethernet header.
    Ethernet,
    /// With that of IP.
    Raw,
}

/// What is set on an interface, and is put back in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Was {
    pub(super) name: String,
    pub(super) index: u32,
    /// It took in frames for others.
    promiscuous: bool,
    /// It joined packets that came, cut long ones that went, and joined them in the adapter.
    offloads: [bool; 3],
    /// The qdisc for programs was made for ours.
    pub(super) made_qdisc: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Device {
    name: String,
    socket: OwnedFd,
}

#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

impl Device {
    /// An interface of the network namespace that the thread is in.
    pub(super) fn of(name: &str) -> io::Result<Device> {
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        let device = Device { name: name.to_owned(), socket };
        device.index()?;
        Ok(device)
    }

    fn request(&self) -> io::Result<libc::ifreq> {
        // SAFETY: a request is plain data.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let bytes = self.name.as_bytes();
        if bytes.len() >= request.ifr_name.len() {
            return Err(io::ErrorKind::NotFound.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
            *to = libc::c_char::from_ne_bytes([*from]);
        }
        Ok(request)
    }

    fn ask(&self, call: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: the request outlives the call, and so does what it points to.
        let outcome = unsafe { libc::ioctl(self.socket.as_raw_fd(), call as _, std::ptr::from_mut(request)) };
        if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn index(&self) -> io::Result<u32> {
        let mut request = self.request()?;
        self.ask(libc::SIOCGIFINDEX as _, &mut request)?;
        // SAFETY: the call has filled this member in.
        let index = unsafe { request.ifr_ifru.ifru_ifindex };
        u32::try_from(index).map_err(io::Error::other)
    }

    /// Number and address, and how its frames begin; `None` if they begin in a way that is not known here.
    pub(super) fn interface(&self) -> io::Result<Option<(Interface, Link)>> {
        let mut request = self.request()?;
        self.ask(libc::SIOCGIFHWADDR as _, &mut request)?;
        // SAFETY: the call has filled this member in.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let link = match address.sa_family {
            libc::ARPHRD_ETHER => Link::Ethernet,
            libc::ARPHRD_NONE | RAW_IP => Link::Raw,
            _ => return Ok(None),
        };
        let mac = std::array::from_fn(|at| address.sa_data[at].to_ne_bytes()[0]);
        Ok(Some((Interface { index: self.index()?, mac }, link)))
    }

    /// Bytes of an IP packet at most.
    pub(super) fn longest(&self) -> io::Result<u16> {
        let mut request = self.request()?;
        self.ask(libc::SIOCGIFMTU as _, &mut request)?;
        // SAFETY: the call has filled this member in.
        let longest = unsafe { request.ifr_ifru.ifru_mtu };
        Ok(u16::try_from(longest).unwrap_or(u16::MAX))
    }

    fn flags(&self) -> io::Result<libc::c_short> {
        let mut request = self.request()?;
        self.ask(libc::SIOCGIFFLAGS as _, &mut request)?;
        // SAFETY: the call has filled this member in.
        Ok(unsafe { request.ifr_ifru.ifru_flags })
    }

    /// Whether it is up.
    pub(super) fn is_up(&self) -> io::Result<bool> {
        Ok(self.flags()? & flag(libc::IFF_UP) != 0)
    }

    fn set_promiscuous(&self, on: bool) -> io::Result<()> {
        let flags = self.flags()?;
        let promiscuous = flag(libc::IFF_PROMISC);
        let mut request = self.request()?;
        request.ifr_ifru.ifru_flags = if on { flags | promiscuous } else { flags & !promiscuous };
        self.ask(libc::SIOCSIFFLAGS as _, &mut request)
    }

    fn adapter(&self, command: u32, data: u32) -> io::Result<u32> {
        let mut value = Value { command, data };
        let mut request = self.request()?;
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        self.ask(libc::SIOCETHTOOL as _, &mut request)?;
        Ok(value.data)
    }

    /// The offloads that join or cut packets; what an adapter does not know it does not do.
    fn offloads(&self) -> [bool; 3] {
        let read = |(command, _), mask| self.adapter(command, 0).is_ok_and(|value| value & mask != 0);
        [read(RECEIVE_OFFLOAD, 1), read(SEGMENTATION, 1), read(FLAGS, LARGE_RECEIVE)]
    }

    fn set_offloads(&self, wanted: [bool; 3]) -> io::Result<()> {
        let [receive, segmentation, large] = self.offloads();
        if receive != wanted[0] {
            self.adapter(RECEIVE_OFFLOAD.1, wanted[0].into())?;
        }
        if segmentation != wanted[1] {
            self.adapter(SEGMENTATION.1, wanted[1].into())?;
        }
        if large != wanted[2] {
            let others = self.adapter(FLAGS.0, 0)? & !LARGE_RECEIVE;
            self.adapter(FLAGS.1, others | if wanted[2] { LARGE_RECEIVE } else { 0 })?;
        }
        Ok(())
    }

    /// How it is now.
    pub(super) fn was(&self) -> io::Result<Was> {
        Ok(Was {
            name: self.name.clone(),
            index: self.index()?,
            promiscuous: self.flags()? & flag(libc::IFF_PROMISC) != 0,
            offloads: self.offloads(),
            made_qdisc: false,
        })
    }

    /// Takes in frames for others, and joins none: so a router sees what is on the wire. It stays so when the process ends.
    pub(super) fn listen(&self) -> io::Result<()> {
        if self.interface()?.is_some_and(|(_, link)| link == Link::Ethernet) {
            self.set_promiscuous(true)?;
        }
        self.set_offloads([false; 3])
    }

    /// Puts back what was.
    pub(super) fn restore(&self, was: &Was) -> io::Result<()> {
        self.set_promiscuous(was.promiscuous)?;
        self.set_offloads(was.offloads)
    }

    /// Its addresses.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        let Ok(all) = getifaddrs() else { return vec![] };
        (all.filter(|one| one.interface_name == self.name))
            .filter_map(|one| {
                let address = one.address?;
                let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
                v4.or(address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
            })
            .collect()
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the flags that are used here are among the low ones")]
const fn flag(flag: libc::c_int) -> libc::c_short {
    flag as libc::c_short
}

/// What a name may be, so that files can be called by it.
pub(super) fn is_name(name: &str) -> bool {
    let fits = (1..libc::IFNAMSIZ).contains(&name.len()) && name != "." && name != "..";
    fits && !name.bytes().any(|byte| byte == b'/' || byte.is_ascii_whitespace() || byte == 0)
        && CStr::from_bytes_with_nul(&[name.as_bytes(), &[0]].concat()).is_ok()
}
