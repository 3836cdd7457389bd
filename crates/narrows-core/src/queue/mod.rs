//! Who may enter a port's buffer, and with which mark. Deciding only: the packets themselves are stored by the driver.

pub mod aqm;
pub mod limits;

pub use aqm::AqmConfig;
pub use limits::{Limit, PoolConfig};
