//! Where what stands. Nothing that is read here is believed yet.

use std::net::IpAddr;

use super::Refusal;
use crate::key::TAG;

const VERSION: u8 = 1;

/// Bytes that all datagrams begin with: version and kind, flags, tunnel.
pub const HEADER: usize = 4;
/// Bytes ahead of a marked packet's tag, and of an acknowledgement's: also the nonce of the tag.
pub(super) const NUMBERED: usize = 12;
/// Bytes that a marked packet has ahead of the IP packet.
pub const SHIM: usize = NUMBERED + TAG;
/// Bytes of an acknowledgement.
pub const ACKNOWLEDGEMENT: usize = SHIM;
/// Bytes of the nonce of greetings and welcomes.
pub(super) const NONCE: usize = 24;
/// What the answering edge adds to the keys of a session, bytes.
pub const SALT: usize = 16;
/// Bytes of a greeting.
pub const GREETING: usize = HEADER + NONCE + 16 + TAG;
/// Bytes of a welcome.
pub const WELCOME: usize = HEADER + NONCE + 12 + SALT + TAG;
/// Smallest marked packet: that of an IPv4 header and a TCP header.
pub const MARKED: usize = SHIM + 40;
/// How often a marked packet can be sent.
pub const MAX_TRIES: u8 = 15;

/// Largest DSCP.
pub const MAX_SIGN: u8 = 63;

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A packet that may be lost, or a repair of one.
    Marked = 1,
    /// A marked packet has come.
    Acknowledgement = 2,
    /// Asks for a session.
    Greeting = 3,
    /// Answers a greeting.
    Welcome = 4,
}

impl Kind {
    /// What the first byte of a datagram of this version is.
    pub const fn first_byte(self) -> u8 {
        VERSION << 4 | self as u8
    }

    fn of(first_byte: u8) -> Option<Kind> {
        [Kind::Marked, Kind::Acknowledgement, Kind::Greeting, Kind::Welcome]
            .into_iter()
            .find(|kind| kind.first_byte() == first_byte)
    }
}

/// What names a marked packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shim {
    /// The session.
    pub session: u32,
    /// Its number in the session.
    pub number: u32,
    /// The two ECN bits that its host gave it.
    pub ecn: u8,
    /// How often it has been sent, this time included: 1 to [`MAX_TRIES`].
    pub tries: u8,
}

impl Shim {
    /// The bytes ahead of the tag.
    pub(super) fn bytes(self, tunnel: u16) -> [u8; NUMBERED] {
        debug_assert!(self.ecn < 4 && (1..=MAX_TRIES).contains(&self.tries));
        numbered(Kind::Marked, self.tries << 2 | self.ecn, tunnel, self.session, self.number)
    }
}

/// The bytes of an acknowledgement ahead of its tag.
pub(super) fn acknowledgement(tunnel: u16, session: u32, number: u32, tries: u8) -> [u8; NUMBERED] {
    debug_assert!((1..=MAX_TRIES).contains(&tries));
    numbered(Kind::Acknowledgement, tries << 2, tunnel, session, number)
}

fn numbered(kind: Kind, flags: u8, tunnel: u16, session: u32, number: u32) -> [u8; NUMBERED] {
    let mut bytes = [0; NUMBERED];
    bytes[..HEADER].copy_from_slice(&header(kind, flags, tunnel));
    bytes[4..8].copy_from_slice(&session.to_be_bytes());
    bytes[8..12].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The first bytes.
pub(super) fn header(kind: Kind, flags: u8, tunnel: u16) -> [u8; HEADER] {
    let [high, low] = tunnel.to_be_bytes();
    [kind.first_byte(), flags, high, low]
}

/// The addresses of the IP packet that a datagram travels in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// From.
    pub source: IpAddr,
    /// To.
    pub destination: IpAddr,
}

impl Path {
    /// Back.
    #[must_use]
    pub const fn reversed(self) -> Path {
        Path { source: self.destination, destination: self.source }
    }

    /// Both as of IPv6; IPv4 is mapped.
    pub(super) fn bytes(self) -> [u8; 32] {
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&octets(self.source));
        bytes[16..].copy_from_slice(&octets(self.destination));
        bytes
    }
}

/// A datagram of the right layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unverified<'a> {
    /// See [`Kind::Marked`].
    Marked {
        /// What names it.
        shim: Shim,
        /// Its tag.
        tag: &'a [u8; TAG],
        /// The IP packet.
        inner: &'a [u8],
    },
    /// See [`Kind::Acknowledgement`].
    Acknowledgement {
        /// The marked packet's.
        session: u32,
        /// The marked packet's.
        number: u32,
        /// The marked packet's.
        tries: u8,
        /// Its tag.
        tag: &'a [u8; TAG],
    },
    /// See [`Kind::Greeting`].
    Greeting {
        /// The DSCP of disguised packets at who sent it; 0 for none.
        sign: u8,
        /// Of the tag.
        nonce: &'a [u8; NONCE],
        /// Above those of all earlier ones.
        clock: u64,
        /// Drawn anew for each.
        token: u64,
        /// Its tag.
        tag: &'a [u8; TAG],
    },
    /// See [`Kind::Welcome`].
    Welcome {
        /// The DSCP of disguised packets at who sent it; 0 for none.
        sign: u8,
        /// Of the tag.
        nonce: &'a [u8; NONCE],
        /// The greeting's.
        token: u64,
        /// Of the session.
        session: u32,
        /// Goes into the session's keys.
        salt: [u8; SALT],
        /// Its tag.
        tag: &'a [u8; TAG],
    },
}

impl<'a> Unverified<'a> {
    /// Reads a datagram's payload. `None` if it is none of this tunnel and version: somebody else's, and to be left alone. Never panics,
    /// whatever the bytes.
    ///
    /// # Errors
    /// [`Refusal::Malformed`].
    pub fn parse(bytes: &'a [u8], tunnel: u16) -> Option<Result<Unverified<'a>, Refusal>> {
        let header: &[u8; HEADER] = bytes.first_chunk()?;
        let kind = Kind::of(header[0]).filter(|_| header[2..] == tunnel.to_be_bytes())?;
        Some(Unverified::of(kind, header[1], bytes).ok_or(Refusal::Malformed))
    }

    fn of(kind: Kind, flags: u8, bytes: &'a [u8]) -> Option<Unverified<'a>> {
        let fits = match kind {
            Kind::Marked => bytes.len() >= MARKED,
            Kind::Acknowledgement => bytes.len() == ACKNOWLEDGEMENT,
            Kind::Greeting => bytes.len() == GREETING,
            Kind::Welcome => bytes.len() == WELCOME,
        };
        let (ecn, tries) = (flags & 3, flags >> 2);
        let flags_fit = match kind {
            Kind::Marked => (1..=MAX_TRIES).contains(&tries),
            Kind::Acknowledgement => (1..=MAX_TRIES).contains(&tries) && ecn == 0,
            Kind::Greeting | Kind::Welcome => flags <= MAX_SIGN,
        };
        if !fits || !flags_fit {
            return None;
        }
        Some(match kind {
            Kind::Marked => {
                let shim = Shim { session: word(bytes, 4)?, number: word(bytes, 8)?, ecn, tries };
                Unverified::Marked { shim, tag: part(bytes, NUMBERED)?, inner: bytes.get(SHIM..)? }
            }
            Kind::Acknowledgement => Unverified::Acknowledgement {
                session: word(bytes, 4)?,
                number: word(bytes, 8)?,
                tries,
                tag: part(bytes, NUMBERED)?,
            },
            Kind::Greeting => Unverified::Greeting {
                sign: flags,
                nonce: part(bytes, HEADER)?,
                clock: long(bytes, 28)?,
                token: long(bytes, 36)?,
                tag: part(bytes, 44)?,
            },
            Kind::Welcome => Unverified::Welcome {
                sign: flags,
                nonce: part(bytes, HEADER)?,
                token: long(bytes, 28)?,
                session: word(bytes, 36)?,
                salt: *part(bytes, 40)?,
                tag: part(bytes, 56)?,
            },
        })
    }

    /// What it is.
    pub const fn kind(&self) -> Kind {
        match self {
            Unverified::Marked { .. } => Kind::Marked,
            Unverified::Acknowledgement { .. } => Kind::Acknowledgement,
            Unverified::Greeting { .. } => Kind::Greeting,
            Unverified::Welcome { .. } => Kind::Welcome,
        }
    }
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    part(bytes, at).copied().map(u32::from_be_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    part(bytes, at).copied().map(u64::from_be_bytes)
}
