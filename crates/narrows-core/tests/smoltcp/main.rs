//! Our TCP against another one, smoltcp's: as its sender, as its receiver, and beside it.
//!
//! Between the two go IPv4 packets, which smoltcp's own codec writes and reads. Each test holds both to what RFCs say
//! of what one of them hears from the other, whatever the link loses, doubles, delays and reorders.
#![allow(missing_docs, reason = "tests")]

mod bytes;
mod link;
mod meeting;
#[path = "../pair/mod.rs"]
#[allow(dead_code, unreachable_pub, clippy::cast_possible_truncation, reason = "a test uses the part it needs")]
mod pair;
mod ranges;
mod receiving;
mod same_arrivals;
mod sending;
mod theirs;
mod wire;
