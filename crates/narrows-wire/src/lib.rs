//! What our machines tell each other in datagrams, as docs/wire.md lays it out for others.
//!
//! Bytes in, values out, no sockets and no clock: the emulated switch writes notifications with it, a host's daemon reads
//! them, and tests do both. Whatever comes from outside may be forged; [`admission`] says what is believed.

pub mod admission;
pub mod key;
pub mod notification;
pub mod refusal;

pub use admission::{Admission, Pair, Sender};
pub use key::Key;
pub use notification::{Flow, Notification};
pub use refusal::{Refusal, Tally};
