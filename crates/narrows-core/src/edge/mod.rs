//! What an edge router does with the packets that pass it, one file or folder for each function.
//!
//! An edge router stands where a site meets the WAN. It has two sides: *inside* is its own site, *outside* the
//! WAN and the other sites' edges beyond it. Each function is a machine without input or output, driven by the simulator,
//! the emulator and the daemon alike.

pub mod dcib;

/// Every edge function's [`Spec`](crate::component::Spec).
pub const SPECS: &[crate::component::Spec] = &[dcib::SPEC];
