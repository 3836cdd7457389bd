//! The secret that a switch and the hosts below it share, or two edge routers.

use std::fmt;
use std::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroize;

/// Bytes of a key.
pub const LENGTH: usize = 32;
/// Bytes of a tag: HMAC-SHA-256, the first half [RFC 2104 §5].
pub const TAG: usize = 16;

/// A key of 256 bits. It is never shown, and its memory is zeroed when it is dropped; what HMAC and HKDF keep for a moment is not.
#[derive(Clone)]
pub struct Key([u8; LENGTH]);

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The key that an end uses, and one more that it believes: while the two that share a key change it, each in its own time.
#[derive(Clone, Debug)]
pub struct Keys {
    own: Key,
    other: Option<Key>,
}

impl Keys {
    /// Uses `own`, and believes both.
    pub const fn new(own: Key, other: Option<Key>) -> Keys {
        Keys { own, other }
    }

    /// The one that is used.
    pub const fn own(&self) -> &Key {
        &self.own
    }

    /// Those that are believed.
    pub fn believed(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.own).chain(&self.other)
    }
}

impl From<Key> for Keys {
    fn from(own: Key) -> Keys {
        Keys { own, other: None }
    }
}

/// Why a text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// Too short or too long.
    #[error("a key has 64 hexadecimal digits; this has {0}")]
    Length(usize),
    /// Something else than digits.
    #[error("a key has hexadecimal digits only")]
    Digit,
    /// All digits are the same: nobody drew it.
    #[error("a key whose digits are all the same was not drawn at random")]
    Trivial,
}

impl Key {
    /// A key of these bytes, which are random and known to nobody else.
    pub const fn new(bytes: [u8; LENGTH]) -> Key {
        Key(bytes)
    }

    /// Its bytes, to derive others from.
    pub(crate) const fn bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }

    /// From 64 hexadecimal digits; blanks around them do not count.
    ///
    /// # Errors
    /// [`NoKey`].
    pub fn parse(text: &str) -> Result<Key, NoKey> {
        let digits = text.trim().as_bytes();
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(NoKey::Digit);
        }
        if digits.len() != 2 * LENGTH {
            return Err(NoKey::Length(digits.len()));
        }
        if digits.iter().all(|digit| digit == &digits[0]) {
            return Err(NoKey::Trivial);
        }
        let mut key = Key([0; LENGTH]);
        for (byte, pair) in key.0.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(key)
    }

    /// The key that a host at this address shares with the holder of this one, who need not remember it: HMAC-SHA-256 of
    /// the address as of IPv6, 16 bytes; IPv4 is mapped, `::ffff:192.0.2.1`. Hosts hold only their own, so that one that was
    /// broken into deceives nobody but itself.
    pub fn of_host(&self, address: IpAddr) -> Key {
        let address = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        Key(self.mac(&address.octets()).finalize().into_bytes().into())
    }

    /// The tag of a message.
    pub fn tag(&self, message: &[u8]) -> [u8; TAG] {
        let whole = self.mac(message).finalize().into_bytes();
        std::array::from_fn(|i| whole[i])
    }

    /// Whether this is the message's tag. Takes as long whether it is or not.
    pub fn is_tag(&self, message: &[u8], tag: &[u8; TAG]) -> bool {
        self.mac(message).verify_truncated_left(tag).is_ok()
    }

    fn mac(&self, message: &[u8]) -> Hmac<Sha256> {
        Hmac::<Sha256>::new_from_slice(&self.0).expect("any length is a key").chain_update(message)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(…)")
    }
}

fn nibble(digit: u8) -> Result<u8, NoKey> {
    (digit as char).to_digit(16).and_then(|value| u8::try_from(value).ok()).ok_or(NoKey::Digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_the_first_half_of_the_published_one() {
        // [RFC 4231 §4.3], whose key of 4 bytes is as one of 32 with zeros behind it.
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(b"Jefe");
        let tag = Key::new(bytes).tag(b"what do ya want for nothing?");
        assert_eq!(
            tag,
            [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7]
        );
    }

    #[test]
    fn hosts_hold_keys_of_their_own() {
        let master = Key::new([1; LENGTH]);
        let of = |address: &str| master.of_host(address.parse().unwrap()).0;
        let known = of("192.0.2.1");
        assert_eq!(known, of("192.0.2.1"));
        assert!(["192.0.2.2", "c000:201::"].iter().all(|other| of(other) != known));
        assert_eq!(known, of("::ffff:192.0.2.1"), "one host, however its address is written");
        assert_ne!(known, master.0);
    }

    #[test]
    fn keys_are_read_from_digits() {
        let text = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
        let Key(bytes) = Key::parse(&format!(" {text}\n")).unwrap();
        assert!(bytes.iter().enumerate().all(|(i, &byte)| usize::from(byte) == i));
        assert_eq!(Key::parse("0001").unwrap_err(), NoKey::Length(4));
        assert_eq!(Key::parse(&text.replace('A', "g")).unwrap_err(), NoKey::Digit);
        assert_eq!(Key::parse(&"0".repeat(64)).unwrap_err(), NoKey::Trivial);
        assert_eq!(format!("{:?}", Key::parse(text).unwrap()), "Key(…)");
    }
}
