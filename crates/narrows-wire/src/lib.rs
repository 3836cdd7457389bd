//! What our machines tell each other in datagrams, as docs/reference/wire.md lays it out for others.
//!
//! Bytes in, values out, no sockets and no clock: the emulated switch writes notifications with it, a host's daemon reads
//! them, two edge routers speak to each other, and tests do all of it. Whatever comes from outside may be forged; [`admission`] says
//! which notifications are believed, [`tunnel::End`] what of the far edge's.

pub mod admission;
pub mod key;
pub mod notification;
pub mod refusal;
pub mod tunnel;

pub use admission::{Admission, Pair, Sender};
pub use key::{Key, Keys};
pub use notification::{Flow, Notification};
pub use refusal::{Refusal, Tally};
