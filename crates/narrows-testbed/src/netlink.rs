//! Sets up a network device of the namespace that the thread is in: the few requests of rtnetlink(7) that this takes.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;

use rustix::io::{self, Errno};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{netdevice, netlink, recv, sendto, socket_with};

// <linux/netlink.h>, <linux/rtnetlink.h>, <linux/if_link.h>, <linux/if_addr.h>
const ERROR: u16 = 2;
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const REQUEST_ACK: u16 = 1 | 4;
const CREATE: u16 = 0x400;
const CREATE_EXCLUSIVE: u16 = 0x200 | CREATE;
const LINK_MTU: u16 = 4;
const LINK_QUEUE_LENGTH: u16 = 13;
const LINK_SEGMENTS_AT_ONCE: u16 = 40;
const ADDRESS: u16 = 1;
const ADDRESS_LOCAL: u16 = 2;
/// Of a route: its destination, its device, its metrics, and of these the initial window.
const ROUTE_DESTINATION: u16 = 1;
const ROUTE_DEVICE: u16 = 4;
const ROUTE_METRICS: u16 = 8;
const METRIC_INITIAL_WINDOW: u16 = 11;
/// Of a route: in the main table, made at boot time, to what is on the link, a plain one.
const MAIN_BOOT_LINK_UNICAST: [u8; 4] = [254, 3, 253, 1];
const UP: u32 = 1;
/// The address is used at once: nobody on a TUN device could be asked whether it is a duplicate.
const NO_DUPLICATE_DETECTION: u8 = 2;
const HEADER: usize = 16;

/// A socket to the kernel's network configuration, of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Netlink> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Netlink { socket })
    }

    /// The index of the device of this name.
    pub(crate) fn index(&self, name: &str) -> io::Result<u32> {
        // Devices are asked for through a socket of the internet.
        let inet = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        netdevice::name_to_index(inet, name)
    }

    /// Sets the device up; with an MTU, bytes, and a queue length, packets, where they are given.
    pub(crate) fn set_up(&self, index: u32, mtu: Option<u32>, queue_length: Option<u32>) -> io::Result<()> {
        let mut request = Request::new(NEW_LINK, REQUEST_ACK);
        // struct ifinfomsg: family and padding, type, index, flags, and which flags change.
        request.bytes(&[0; 4]).u32(index).u32(UP).u32(UP);
        for (kind, value) in [(LINK_MTU, mtu), (LINK_QUEUE_LENGTH, queue_length)] {
            if let Some(value) = value {
                request.attribute(kind, &value.to_ne_bytes());
            }
        }
        self.ask(request)
    }

    /// Has the kernel cut what TCP sends through the device into pieces of at most so many segments.
    pub(crate) fn set_segments_at_once(&self, index: u32, segments: u32) -> io::Result<()> {
        let mut request = Request::new(NEW_LINK, REQUEST_ACK);
        request.bytes(&[0; 4]).u32(index).u32(0).u32(0);
        request.attribute(LINK_SEGMENTS_AT_ONCE, &segments.to_ne_bytes());
        self.ask(request)
    }

    /// Makes a route to one host through the device, whose connections begin with a window of so many packets.
    pub(crate) fn add_route(&self, index: u32, destination: Ipv4Addr, initial_window: u32) -> io::Result<()> {
        let mut request = Request::new(NEW_ROUTE, REQUEST_ACK | CREATE);
        // struct rtmsg: family, bits of the destination, of the source, class, then table, protocol, scope, type, and flags.
        #[allow(clippy::cast_possible_truncation, reason = "the family is 2")]
        request.bytes(&[AddressFamily::INET.as_raw() as u8, 32, 0, 0]).bytes(&MAIN_BOOT_LINK_UNICAST).u32(0);
        let mut metrics = Request(Vec::new());
        metrics.attribute(METRIC_INITIAL_WINDOW, &initial_window.to_ne_bytes());
        request
            .attribute(ROUTE_DESTINATION, &destination.octets())
            .attribute(ROUTE_DEVICE, &index.to_ne_bytes())
            .attribute(ROUTE_METRICS, &metrics.0);
        self.ask(request)
    }

    /// Gives the device an address, and with it a route to its network.
    pub(crate) fn add_address(&self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        #[allow(clippy::cast_possible_truncation, reason = "the families are 2 and 10")]
        let family = match address {
            IpAddr::V4(_) => AddressFamily::INET,
            IpAddr::V6(_) => AddressFamily::INET6,
        }
        .as_raw() as u8;
        let mut request = Request::new(NEW_ADDRESS, REQUEST_ACK | CREATE_EXCLUSIVE);
        // struct ifaddrmsg: family, prefix, flags, scope, index.
        request.bytes(&[family, prefix, NO_DUPLICATE_DETECTION, 0]).u32(index);
        let (v4, v6);
        let octets: &[u8] = match address {
            IpAddr::V4(address) => {
                v4 = address.octets();
                &v4
            }
            IpAddr::V6(address) => {
                v6 = address.octets();
                &v6
            }
        };
        request.attribute(ADDRESS_LOCAL, octets).attribute(ADDRESS, octets);
        self.ask(request)
    }

    /// Sends a request and waits for its acknowledgement.
    fn ask(&self, request: Request) -> io::Result<()> {
        let kernel = netlink::SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &request.finish(), SendFlags::empty(), &kernel)?;
        let mut answer = [0; 4_096];
        let ((), length) = {
            let (_, length) = recv(&self.socket, &mut answer, RecvFlags::empty())?;
            ((), length)
        };
        outcome(&answer[..length.min(answer.len())])
    }
}

/// What an acknowledgement says.
fn outcome(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    let error = answer.get(HEADER..HEADER + 4).map(|code| i32::from_ne_bytes([code[0], code[1], code[2], code[3]]));
    match (kind, error) {
        (Some(ERROR), Some(0)) => Ok(()),
        (Some(ERROR), Some(code)) => Err(Errno::from_raw_os_error(code.wrapping_neg())),
        _ => Err(Errno::PROTO),
    }
}

/// A message while it is written.
#[derive(Debug)]
struct Request(Vec<u8>);

impl Request {
    fn new(kind: u16, flags: u16) -> Request {
        let mut request = Request(vec![0; 4]);
        // Length, to be filled in; then type, flags, sequence, sender.
        request.bytes(&kind.to_ne_bytes()).bytes(&flags.to_ne_bytes()).u32(1).u32(0);
        request
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Request {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u32(&mut self, value: u32) -> &mut Request {
        self.bytes(&value.to_ne_bytes())
    }

    /// An attribute of a few bytes, padded to a multiple of four.
    fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Request {
        let length = u16::try_from(value.len() + 4).expect("attributes are short");
        self.bytes(&length.to_ne_bytes()).bytes(&kind.to_ne_bytes()).bytes(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("messages are short");
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_aligned_and_know_their_length() {
        let mut request = Request::new(NEW_LINK, REQUEST_ACK);
        request.attribute(LINK_MTU, &[1, 2, 3, 4]).attribute(7, &[9]);
        let bytes = request.finish();
        assert_eq!(bytes.len(), 32);
        assert_eq!(bytes[..4], 32_u32.to_ne_bytes());
        assert_eq!(bytes[24..], [5_u16.to_ne_bytes().as_slice(), &7_u16.to_ne_bytes(), &[9, 0, 0, 0]].concat());
    }

    #[test]
    fn answers_are_errors_acknowledgements_or_not_understood() {
        let answer = |kind: u16, code: i32| {
            let mut bytes = vec![0; 20];
            bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
            bytes[16..].copy_from_slice(&code.to_ne_bytes());
            bytes
        };
        assert_eq!(outcome(&answer(ERROR, 0)), Ok(()));
        assert_eq!(outcome(&answer(ERROR, -1)), Err(Errno::PERM));
        assert_eq!(outcome(&answer(NEW_LINK, 0)), Err(Errno::PROTO));
        assert_eq!(outcome(&answer(ERROR, 0)[..19]), Err(Errno::PROTO));
    }
}
