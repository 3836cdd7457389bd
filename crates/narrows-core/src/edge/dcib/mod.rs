//! The DCIB pair: two edge routers that choose which packets the WAN may drop, and repair those losses between
//! themselves, without the hosts noticing [Bahnasy 2025, DCIB].
//!
//! A few of the packets with data that go out are *marked*: they become Not-ECT, so that a congested router of a
//! cooperative WAN drops them first, and a copy of each is kept. All others look ECN-capable there, and are spared. The far edge
//! acknowledges each marked packet; what it does not acknowledge is retransmitted. Until it comes, the far edge holds back what
//! follows of the same connection, so that the receiving host sees no hole and the sending one no duplicate
//! acknowledgements. What cannot be repaired in time the hosts notice, and repair themselves.
//!
//! | part | what it does |
//! |---|---|
//! | [`Edge`] | one end of the pair: it transmits and receives |
//! | `choose` | which packets are marked |
//! | `transmit` | marks, keeps copies, sends again |
//! | `liveness` | whether there is a far edge that acknowledges |
//! | `round_trip` | how long that takes |
//! | `receive` | acknowledges, drops what came twice, undoes the marks |
//! | `seen` | which marked packets have come already |
//! | `resequence` | holds back what comes after a hole |
//! | `hush` | instead of that: holds back the acknowledgements that tell of the hole |
//!
//! # Driving it
//! Hand each packet to [`Edge::handle_inside`] or [`Edge::handle_outside`], call [`Edge::handle_timeout`] when
//! [`Edge::deadline`] has come, and after each of these take what is to be sent from [`Edge::poll_transmit`] until it has
//! no more. Calls come in the order of time.
//!
//! # Sessions
//! Nothing is marked before the far edge has answered. Each greeting carries a clock's reading above all earlier ones; the answer
//! names a session, and marked packets of any other session are refused. An edge that was restarted knows no session, so that the
//! other, hearing nothing, stops marking and greets again.
//!
//! The documents are silent on most of this: `docs/reference/algorithms/dcib.md` says what was decided.

mod choose;
mod edge;
mod hush;
mod liveness;
mod receive;
mod resequence;
mod round_trip;
mod seen;
mod spec;
mod transmit;

pub use choose::{Chooser, Share};
pub use edge::Edge;
pub use receive::ReceiveCounters;
pub use spec::{CHOICES, SPEC};
pub use transmit::TransmitCounters;

use crate::packet::Ecn;
use crate::units::{Bytes, Rate, Span};

/// What a marked packet is longer by: 12 bytes that say which it is, and 16 that prove who says so.
pub const SHIM_BYTES: Bytes = Bytes::new(28);
/// An acknowledgement, a greeting or its answer, as an IP packet.
pub const CONTROL_BYTES: Bytes = Bytes::new(64);

/// What an edge must know of a packet. A clone is a packet of its own.
pub trait Packet: Clone {
    /// Names a direction of a TCP connection.
    type Flow: Copy + Ord + core::fmt::Debug;

    /// Size of the IP packet.
    fn ip_bytes(&self) -> Bytes;
    /// The ECN bits of its IP header.
    fn ecn(&self) -> Ecn;
    /// Sets them.
    fn set_ecn(&mut self, ecn: Ecn);
    /// Its TCP segment; `None` if it is no TCP, or not to be touched for any other reason.
    fn segment(&self) -> Option<Segment<Self::Flow>>;
}

/// What an edge must know of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<F> {
    /// The direction that it travels in.
    pub flow: F,
    /// The opposite direction of the same connection.
    pub reverse: F,
    /// First sequence number.
    pub seq: u32,
    /// Sequence numbers that it takes: its bytes of data, and one for each of SYN and FIN.
    pub length: u32,
    /// Bytes of data.
    pub payload: u32,
    /// It opens the connection.
    pub syn: bool,
    /// The next byte that its sender expects, if it says so.
    pub ack: Option<u32>,
}

impl<F> Segment<F> {
    /// The sequence number after its last one.
    pub const fn end(&self) -> u32 {
        self.seq.wrapping_add(self.length)
    }
}

/// What travels between the edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<P> {
    /// A packet as its host sent it.
    Plain(P),
    /// A packet of a host without ECN that was made ECT(0) to be spared: the far edge undoes it. Costs no byte.
    Disguised(P),
    /// A packet that may be lost, or a repair of one.
    Marked(P, Shim),
    /// A marked packet has come, first or again.
    Acknowledgement {
        /// Of the packet.
        session: u32,
        /// Of the packet.
        number: u32,
        /// Of the packet.
        tries: u8,
    },
    /// Asks for a session.
    Greeting {
        /// What the sender's clock read, or more: above those of all earlier greetings of this edge.
        clock: u64,
        /// Drawn anew for each.
        token: u64,
    },
    /// Answers a greeting.
    Welcome {
        /// The greeting's.
        token: u64,
        /// What marked packets are to name.
        session: u32,
    },
}

impl<P: Packet> Message<P> {
    /// Size as an IP packet in the WAN.
    pub fn ip_bytes(&self) -> Bytes {
        match self {
            Message::Plain(packet) | Message::Disguised(packet) => packet.ip_bytes(),
            Message::Marked(packet, _) => packet.ip_bytes() + SHIM_BYTES,
            _ => CONTROL_BYTES,
        }
    }

    /// Whether it goes ahead of other packets: repairs, acknowledgements, greetings and their answers do.
    pub fn is_urgent(&self) -> bool {
        match self {
            Message::Plain(_) | Message::Disguised(_) => false,
            Message::Marked(_, shim) => shim.is_repair(),
            _ => true,
        }
    }
}

/// What a marked packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shim {
    /// The session that its number is of.
    pub session: u32,
    /// Counts marked packets.
    pub number: u32,
    /// The ECN bits that its host gave it.
    pub ecn: Ecn,
    /// How often it has been sent with this: from 1.
    pub tries: u8,
}

impl Shim {
    /// Whether it was sent before.
    pub const fn is_repair(&self) -> bool {
        self.tries > 1
    }
}

/// How the hosts are kept from noticing a hole that may still be repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Hiding {
    /// The receiving edge holds back what follows of the connection.
    Resequence,
    /// The same, but not once it is known that no marked packet is missing.
    #[default]
    ResequenceRepairable,
    /// The sending edge holds back the duplicate acknowledgements.
    Snoop,
    /// They notice.
    Nothing,
}

/// What the far edge does with a congestion mark on a packet of a host without ECN, which cannot be told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Marks {
    /// Takes it off, and the congestion is known to nobody.
    #[default]
    Clear,
    /// Drops the packet, which that host understands [RFC 6040 §4.2].
    Drop,
}

impl Marks {
    /// For plans, which leave it out.
    #[cfg(feature = "serde")]
    fn is_clear(&self) -> bool {
        *self == Marks::Clear
    }
}

/// Parameters of an edge; both of a pair have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Config {
    /// `R`: nothing beyond this rate is marked.
    pub rate: Rate,
    /// `m`: the part of the packets that is marked, and of `rate` that marked ones may have.
    pub share: Share,
    /// Which of the packets.
    pub chooser: Chooser,
    /// `N_retx`: how often a packet is retransmitted at most.
    pub repairs: u8,
    /// The RTT between the edges, until it has been measured.
    pub round_trip: Span,
    /// `B_clone`: bytes of copies at most.
    pub store: Bytes,
    /// How holes are hidden.
    pub hiding: Hiding,
    /// `H_B`: how long a hole is hidden at most.
    pub hold: Span,
    /// `B_reseq`: bytes of held packets at most.
    pub held: Bytes,
    /// What becomes of congestion marks on packets of hosts without ECN. The first of these is left out of a plan's text.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Marks::is_clear"))]
    pub marks: Marks,
}

/// Copies are kept for so many RTTs at the rate at which they are made: the near router's own queue may take another one, and what is
/// lost waits for its repair.
const STORED_ROUND_TRIPS: u64 = 4;

impl Config {
    /// The parameters that follow from the link's rate, the marked share and the RTT.
    pub fn new(rate: Rate, share: Share, round_trip: Span) -> Config {
        let longer = Span::from_ps(round_trip.as_ps().saturating_add(round_trip.as_ps() / 2));
        Config {
            rate,
            share,
            chooser: Chooser::Sampled,
            repairs: 3,
            round_trip,
            store: share.of(rate).bytes_in(round_trip.saturating_mul(STORED_ROUND_TRIPS)),
            hiding: Hiding::default(),
            hold: longer + Span::from_ms(2),
            held: rate.bytes_in(longer),
            marks: Marks::default(),
        }
    }
}

/// What an edge sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit<P> {
    /// Into its own site.
    Inside(P),
    /// To the far edge.
    Outside(Message<P>),
    /// Nowhere: it is dropped as a sign of congestion, for whoever counts losses.
    Dropped(P),
}
