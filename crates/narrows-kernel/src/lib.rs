//! The controllers in the running kernel.
pub mod parameters;
