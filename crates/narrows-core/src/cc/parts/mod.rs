//! Bricks that two or more controllers share.

pub mod reno;
pub mod windowed;
