//! Which address a host or a switch has: from its number in the plan, and for hosts back.
//!
//! The addresses exist inside the run's own namespaces only, so that they can clash with nothing outside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most hosts of one run: each is a namespace and a device of the kernel.
pub const MAX_HOSTS: u32 = 1 << 12;

/// Network 10.77.0.0/16; host 0 is 10.77.0.1.
const FIRST_V4: u32 = 0x0a4d_0001;
/// Bits of the IPv4 network.
pub(crate) const PREFIX_V4: u8 = 16;
/// Network fd4e:4152:524f:5753::/64, unique local [RFC 4193]; host 0 is …::1.
const FIRST_V6: u128 = 0xfd4e_4152_524f_5753_0000_0000_0000_0001;
/// Switch 0 is 10.77.128.0 and fd4e:4152:524f:5753:1::.
const FIRST_SWITCH_V4: u32 = 0x0a4d_8000;
const FIRST_SWITCH_V6: u128 = 0xfd4e_4152_524f_5753_0001_0000_0000_0000;
/// Bits of the IPv6 network.
pub(crate) const PREFIX_V6: u8 = 64;

/// The IPv4 address of a host, by its node's index, below [`MAX_HOSTS`].
pub const fn v4(host: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_V4 + host)
}

/// The IPv6 address of a host.
pub const fn v6(host: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(FIRST_V6 + host as u128)
}

/// The IPv4 address of a switch, by its node's index. Beyond 2¹⁵ nodes they begin anew.
pub const fn switch_v4(switch: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_SWITCH_V4 + switch % (1 << 15))
}

/// The IPv6 address of a switch.
pub const fn switch_v6(switch: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(FIRST_SWITCH_V6 + switch as u128)
}

/// The host with this address; `None` if it cannot be one. Whether the plan has it is for the caller to know.
pub fn host(address: IpAddr) -> Option<u32> {
    let number = match address {
        IpAddr::V4(address) => address.to_bits().checked_sub(FIRST_V4),
        IpAddr::V6(address) => address.to_bits().checked_sub(FIRST_V6).and_then(|number| u32::try_from(number).ok()),
    };
    number.filter(|&number| number < MAX_HOSTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_hosts_and_others_name_none() {
        for number in [0, 1, 255, 256, MAX_HOSTS - 1] {
            assert_eq!(host(v4(number).into()), Some(number));
            assert_eq!(host(v6(number).into()), Some(number));
        }
        for other in ["10.77.0.0", "10.77.16.1", "10.76.255.255", "127.0.0.1", "224.0.0.1", "::1", "ff02::2"] {
            assert_eq!(host(other.parse().unwrap()), None, "{other}");
        }
        for switch in [0, 1, 4_000] {
            assert_eq!((host(switch_v4(switch).into()), host(switch_v6(switch).into())), (None, None));
        }
        assert!(switch_v4((1 << 15) - 2) < Ipv4Addr::new(10, 77, 255, 255));
        assert!(v4(MAX_HOSTS - 1) < Ipv4Addr::new(10, 77, 255, 255), "no host has the broadcast address");
    }
}
