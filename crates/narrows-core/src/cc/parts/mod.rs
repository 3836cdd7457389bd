//! Bricks that two or more controllers share.

pub mod fractional;
pub mod reno;
pub mod windowed;
