//! Both ends of a TCP connection: what Linux does and results depend on.
//!
//! [`Endpoint`] is the machine that a driver holds: one end, with a sending and a receiving half. Drive it so:
//! `handle_segment` or `handle_timeout`, then `poll_event` until `None`, then `poll_transmit` until `None`, then read
//! [`Endpoint::deadline`] and [`Endpoint::pacing_deadline`]. Every call is handed the time and the [`Stack`] of its host.
//!
//! | file | what it decides |
//! |---|---|
//! | `endpoint/fast_path` | the usual segments in straight lines: nothing that the others do not decide as well |
//! | `sender` | what to send next; what an acknowledgement means |
//! | `sender/timers` | when it acts unasked |
//! | `sender/bursts` | how much may go at once |
//! | `sender/recovery` | when an episode of loss or congestion begins and ends, and whether it was spurious |
//! | `scoreboard` | which outstanding segments are delivered, lost, retransmitted |
//! | `reduction` | the window during recovery (PRR) |
//! | `rtt` | smoothed and minimum RTT, the retransmission timeout |
//! | `rate` | delivery-rate samples |
//! | `pacer` | when the next piece may leave |
//! | `plb` | which of equal paths, where hosts choose it: protective load balancing |
//! | `buffers` | how large socket buffers are that grow (FreeBSD) |
//! | `host_cache` | what a host remembers of others (FreeBSD) |
//! | `near_source` | the limit that a near-source switch asks for (QCN) |
//! | `receiver` | order, acknowledgements, the echo of marks |
//! | `profile` | every constant, by the name of a real stack |

mod buffers;
mod endpoint;
pub mod host_cache;
pub mod near_source;
mod pacer;
mod plb;
pub mod profile;
mod rate;
mod receiver;
pub mod reduction;
pub(crate) mod rtt;
mod scoreboard;
mod sender;
mod snapshot;

pub use endpoint::{Endpoint, Event, FastPath, Tallies, initial_path};
pub use host_cache::Metrics;
pub use near_source::Refusal;
pub use snapshot::Snapshot;

use crate::packet::{Ecn, Mtu};
use crate::units::{Bytes, Rate};
use profile::Profile;

/// How a connection uses ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcnMode {
    /// Not at all.
    #[default]
    Off,
    /// An echo until the sender confirms, one reduction per window [RFC 3168].
    Classic,
    /// The exact runs of marks [RFC 8257 §3.2].
    Exact,
    /// The same, of packets that are ECT(1) [RFC 9331 §4.1].
    L4s,
}

impl EcnMode {
    /// The ECN bits of what carries no data, on a host whose bare segments may be capable.
    pub(crate) const fn of_bare_segments(self) -> Ecn {
        match self {
            EcnMode::Off | EcnMode::Classic => Ecn::NotCapable,
            EcnMode::Exact => Ecn::Capable,
            EcnMode::L4s => Ecn::Capable1,
        }
    }
}

/// What a connection's end takes from its host and its controller's needs; one value serves many connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The constants.
    pub profile: Profile,
    /// Use of ECN, on both ends alike.
    pub ecn: EcnMode,
    /// Line rate of the host's port.
    pub line_rate: Rate,
    /// The controller reads delivery-rate samples.
    pub delivery_rate: bool,
    /// The network's largest packet.
    pub mtu: Mtu,
}

impl Stack {
    /// Payload of a full segment, bytes.
    pub(crate) const fn mss(&self) -> u64 {
        self.mtu.segment_payload() as u64
    }

    /// IP bytes of a full segment.
    pub(crate) const fn packet(&self) -> Bytes {
        self.mtu.packet()
    }

    /// However slow a connection is, so much of it may wait in its host's port: two full packets (Linux
    /// `tcp_small_queue_check`).
    pub(crate) const fn min_small_queue(&self) -> Bytes {
        Bytes::new(2 * self.packet().get())
    }
}
