//! Both ends of a TCP connection.

pub mod profile;
