//! The emulator between real network stacks. Every test says why it was skipped where the machine cannot run it; all run one
//! after the other, for they share two things: the clock and the processors.
#![cfg(target_os = "linux")]

mod agents;
mod data_plane;
mod leftovers;
mod support;
