//! Who may enter a port's buffer, and with which mark. Deciding only: the packets themselves are stored by the driver.
//!
//! The driver keeps a port's [`Backlog`] and asks three machines about every arrival: the port's AQM
//! ([`aqm::Aqm`]), its own [`Limit`], and its switch's shared [`Pool`]. All three are monotone where it matters: what
//! they grant for a backlog they also grant for a smaller one. A driver that only knows an upper bound of the backlog
//! may therefore act on a "yes" at once, and needs the exact figure only to be sure of a "no".
//!
//! Where a port has several queues, its [`Scheduler`] says whose packet leaves next.

pub mod aqm;
pub mod congestion_point;
pub mod limits;
pub mod pfc;
pub mod scheduler;

use crate::units::{Bytes, Packets};

pub use aqm::{Aqm, AqmConfig};
pub use congestion_point::{CongestionPoint, CongestionPointConfig, Feedback};
pub use limits::{Limit, Pool, PoolConfig};
pub use scheduler::{Scheduler, SchedulerConfig};

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// The port's own limit.
    Limit,
    /// The switch's shared pool.
    Pool,
    /// Active queue management.
    Aqm,
    /// The link is down, or went down while it waited.
    Outage,
    /// On the wire: an impairment that the experiment asked for.
    Impairment,
    /// On the wire: the link went down.
    Cut,
}

impl DropReason {
    /// Number of reasons: counters have one for each.
    pub const COUNT: usize = 6;
}

/// What a port holds. The packet in service counts until its last bit has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Backlog {
    /// IP bytes.
    pub bytes: Bytes,
    /// Packets.
    pub packets: Packets,
}

impl Backlog {
    /// An empty port.
    pub const EMPTY: Backlog = Backlog { bytes: Bytes::ZERO, packets: Packets::ZERO };
    /// More than any port holds.
    pub const MAX: Backlog = Backlog { bytes: Bytes::new(u64::MAX), packets: Packets::new(u64::MAX) };
}
