//! What a run leaves behind: plain rows, the same whoever made it, simulator or testbed, and what both make them of.
//!
//! | module | what it is |
//! |---|---|
//! | `rows` | the rows themselves |
//! | `ports` | a port's counters and the looks at its backlog become its row |
//! | `ideal` | how long a transfer takes on an empty network |
//! | `capture` | packets of a traced run as a capture file |
//! | `events` | what changes at links, and which flows meet it |
//! | `trace` | what a traced run leaves behind beside these |
//! | `tables` | the rows as Arrow tables, with what each column means |
#![forbid(unsafe_code)]

#[cfg(feature = "capture")]
pub mod capture;
mod events;
mod ideal;
mod ports;
mod rows;
#[cfg(feature = "tables")]
pub mod tables;
pub mod trace;

pub use ideal::Ideal;
pub use rows::{BridgeRow, EventRow, FlowRow, PortRow, Quantity, RankRow, RequestRow, Results, SeriesRow};
