//! What a run leaves behind: plain rows, the same whoever made it, simulator or testbed, and what both make them of.
//!
//! | module | what it is |
//! |---|---|
//! | `rows` | the rows themselves |
//! | `ports` | a port's counters and the looks at its backlog become its row |
//!
//! Columns and files are made elsewhere.
#![forbid(unsafe_code)]

mod ports;
mod rows;

pub use rows::{FlowRow, PortRow, Quantity, RequestRow, Results, SeriesRow};
