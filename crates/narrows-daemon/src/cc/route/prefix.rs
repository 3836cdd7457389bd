//! Which destinations a route is for.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address and how many of its bits count; the others are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    pub(super) const fn is_v6(&self) -> bool {
        self.address.is_ipv6()
    }

    pub(super) const fn length(&self) -> u8 {
        self.length
    }

    /// Whether no connection to another machine can have such a destination.
    pub(super) const fn is_never_remote(&self) -> bool {
        self.address.is_multicast() || self.address.is_loopback()
    }
}

/// `192.0.2.0/24`, `2001:db8::/32`, one address, or `default`, which is IPv4's.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(text: &str) -> Result<Prefix, String> {
    if text == "default" {
        return Ok(Prefix { address: Ipv4Addr::UNSPECIFIED.into(), length: 0 });
    }
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().map_err(|_| format!("`{address}` is no address"))?;
    let most = most(&address);
    let length = match length {
        None => most,
        Some(text) => text
            .parse()
            .ok()
            .filter(|length| *length <= most && text.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or_else(|| format!("the length is a number from 0 to {most}"))?,
    };
    let network = masked(address, length);
    if network != address {
        return Err(format!("it has bits behind its length: {network}/{length} is the network"));
    }
    Ok(Prefix { address, length })
}

const fn most(address: &IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

/// As `ip` prints it: one address without a length.
impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        if self.length < most(&self.address) { write!(f, "/{}", self.length) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_an_address_and_a_length() {
        for (text, written) in [
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("192.0.2.7/32", "192.0.2.7"),
            ("default", "0.0.0.0/0"),
            ("::/0", "::/0"),
            ("2001:db8::1", "2001:db8::1"),
            ("2001:DB8::/32", "2001:db8::/32"),
        ] {
            assert_eq!(parse(text).map(|prefix| prefix.to_string()), Ok(written.to_owned()));
        }
        for wrong in
            ["192.0.2.1/24", "192.0.2.0/33", "2001:db8::1/32", "host", "192.0.2.0/", "192.0.2.0/+24", "/24", ""]
        {
            parse(wrong).expect_err(wrong);
        }
        let said = parse("192.0.2.1/24").expect_err("it is no network");
        assert_eq!(said, "it has bits behind its length: 192.0.2.0/24 is the network");
    }
}
