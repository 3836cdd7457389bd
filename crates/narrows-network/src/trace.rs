//! What a traced network notes of its packets, for drivers that show a run in detail.
//!
//! A network that is not traced pays nothing: what is noted here passes through code that plain links and ports do not run. A
//! traced one does the same as one that is not, packet by packet.

use narrows_core::units::{Span, Time};

/// What happened to a packet, or at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<P> {
    /// When.
    pub at: Time,
    /// The link, or the port that it begins at.
    pub link: u32,
    /// What.
    pub what: Happened<P>,
}

/// See [`Note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened<P> {
    /// The driver, or a switch whose routing policy chose the port, offered it to the port; whether that took it the driver knows.
    Offered(P),
    /// It would have reached the far end with the least delay of a link whose delay changes, which reorders, or which loses
    /// packets: it is lost there, or [arrives](Happened::Arrived) at once or later.
    Crossed(P),
    /// It reached the far end.
    Arrived(P),
    /// The far end paused these priorities of the port, a bit for each, for so long, and resumed the others.
    Paused {
        /// A bit for each.
        priorities: u8,
        /// Unless it is told anew.
        time: Span,
    },
}

impl<P> Happened<P> {
    /// The packet that it happened to, to be changed; `None` of what happened to a port.
    pub fn packet_mut(&mut self) -> Option<&mut P> {
        match self {
            Happened::Offered(packet) | Happened::Crossed(packet) | Happened::Arrived(packet) => Some(packet),
            Happened::Paused { .. } => None,
        }
    }
}

/// The notes that were not taken yet.
#[derive(Clone, Debug)]
pub(crate) struct Trace<P> {
    pub(crate) notes: Vec<Note<P>>,
    /// By port: whether nothing happens on its wire but a delay.
    pub(crate) plain: Vec<bool>,
}
