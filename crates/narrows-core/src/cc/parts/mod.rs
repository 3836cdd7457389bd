//! Bricks that two or more controllers share.

pub mod bandwidth;
pub mod fractional;
pub mod reno;
pub mod windowed;
