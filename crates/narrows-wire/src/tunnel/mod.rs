//! What two edge routers of the DCIB pair tell each other, in UDP datagrams that go the way of the hosts' own packets. Everything is in
//! network byte order.
//!
//! | bytes | a marked packet | an acknowledgement |
//! |---|---|---|
//! | 0 | version and kind: 0x11 | 0x12 |
//! | 1 | its host's ECN bits in the low two, above them how often it was sent, 1 to 15, in four; zero | zero; as which try it came; zero |
//! | 2–3 | the tunnel | likewise |
//! | 4–7 | the session | likewise |
//! | 8–11 | its number in the session | the marked packet's |
//! | 12–27 | tag | tag |
//! | 28– | the IP packet as its host sent it | – |
//!
//! | a greeting | a welcome | what |
//! |---|---|---|
//! | 0–3 | 0–3 | 0x13, 0x14; the DSCP of disguised packets at who sent it, 0 for none; the tunnel |
//! | 4–27 | 4–27 | nonce, at random |
//! | 28–35 | – | clock |
//! | 36–43 | 28–35 | token, the same in both |
//! | – | 36–39 | the session |
//! | – | 40–55 | salt, at random |
//! | 44–59 | 56–71 | tag |
//!
//! Tags are those of ChaCha20-Poly1305 [RFC 8439 §2.8], with XChaCha20's nonce of 24 bytes in greetings and welcomes; nothing is
//! encrypted. docs/reference/wire.md says what they are over, where the keys come from, and why a replay changes nothing.

mod end;
mod keys;
mod layout;
mod window;

pub use end::{End, Opened};
pub use keys::{NameError, Names};
pub use layout::{
    ACKNOWLEDGEMENT, GREETING, HEADER, Kind, MARKED, MAX_SIGN, MAX_TRIES, Path, SALT, SHIM, Shim, Unverified, WELCOME,
};

use std::fmt;

/// The UDP port that datagrams between edges go to, unless configured: below those that hosts draw for their own ends.
pub const PORT: u16 = 8_936;

/// Why a datagram between edges was not believed. In the order in which they are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Not the layout of its kind.
    Malformed,
    /// It names a session that there is not.
    UnknownSession,
    /// Not by who holds the key, or not in this direction.
    Unauthenticated,
    /// It has come before, or something later of the same.
    Replayed,
    /// It answers a greeting that is not the last one.
    Unasked,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Refusal; 5] =
        [Refusal::Malformed, Refusal::UnknownSession, Refusal::Unauthenticated, Refusal::Replayed, Refusal::Unasked];

    /// Its name in tables and counters.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::Malformed => "malformed",
            Refusal::UnknownSession => "unknown-session",
            Refusal::Unauthenticated => "unauthenticated",
            Refusal::Replayed => "replayed",
            Refusal::Unasked => "unasked",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
