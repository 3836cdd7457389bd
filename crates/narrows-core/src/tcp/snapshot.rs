//! A sender as it stands, for whoever looks on.

use crate::cc::{Limit, Phase};
use crate::packet::Seq;
use crate::units::{Packets, Rate, Span};

/// The sending half of a connection's end at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The congestion window in force.
    pub window: Packets,
    /// Of the controller; [`Packets`]' maximum before the first reduction.
    pub slow_start_threshold: Packets,
    /// The pacing rate in force, IP bits per second; `None` without pacing.
    pub pacing: Option<Rate>,
    /// The rate to which a near-source switch holds it, if one does.
    pub near_source: Option<Rate>,
    /// The smoothed RTT [RFC 6298 §2]; `None` before the first sample.
    pub srtt: Option<Span>,
    /// The minimum RTT that the transport knows of.
    pub min_rtt: Option<Span>,
    /// The retransmission timeout without backoff.
    pub rto: Span,
    /// Segments thought to be in the network: sent, neither delivered nor lost.
    pub in_flight: u32,
    /// Segments sent and not acknowledged in sequence.
    pub outstanding: u32,
    /// Whether it recovers from congestion, and how.
    pub phase: Phase,
    /// First byte not acknowledged.
    pub una: Seq,
    /// First byte not sent.
    pub nxt: Seq,
    /// End of what the application has offered.
    pub offered: Seq,
    /// Retransmission timeouts so far.
    pub timeouts: u32,
    /// What kept it from sending more when it was asked last.
    pub held_by: Limit,
}
