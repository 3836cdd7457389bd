//! The seam between a driver and the transports: whatever a flow runs over, its end is driven the same way.
//!
//! `handle` what arrived or `handle_timeout`, then `poll_into` until there is nothing, then read the deadlines. [`Machine`] is
//! what the packet path asks of a transport; a driver that knows which one it has calls it without a further choice.
//! [`Endpoint`] holds any of them and answers what is asked rarely.
//!
//! # Adding a transport
//! A file with its `SPEC`, what a plan says of it and its [`Machine`]; a variant of [`Transport`] and of [`Endpoint`].

use super::tcp::{self, Event, Refusal, Snapshot, Stack, Tallies};
use crate::cc::Controller;
use crate::component::{Settings, Spec};
use crate::packet::{Mtu, Segment, Tag};
use crate::rng::SmallStream;
use crate::telemetry::Hop;
use crate::units::{Bytes, Packets, Rate, Time};

pub mod datagram;
pub mod rdma;

pub use datagram::Datagram;
pub use rdma::Rdma;

/// TCP: everything about it is said of hosts and controllers.
const TCP: Spec = Spec {
    name: "tcp",
    about: "A reliable stream with congestion control: the traffic's controller and its hosts' profile.",
    source: "[RFC 9293]",
    parameters: &[],
};

/// Every transport's [`Spec`].
pub const SPECS: &[Spec] = &[TCP, datagram::SPEC, rdma::SPEC];

/// What a traffic's flows run over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Transport {
    /// A connection for each flow, or one for many.
    #[default]
    Tcp,
    /// Datagrams at a constant rate.
    Datagram(datagram::Config),
    /// Connections between adapters.
    Rdma(rdma::Config),
}

impl Transport {
    /// The transport called `name` with these values; `None` if there is none.
    pub fn new(name: &str, settings: &Settings<'_>) -> Option<Transport> {
        match name {
            "tcp" => Some(Transport::Tcp),
            "datagram" => Some(Transport::Datagram(datagram::Config::new(settings))),
            "rdma" => Some(Transport::Rdma(rdma::Config::new(settings))),
            _ => None,
        }
    }
    /// What it is.
    pub const fn spec(&self) -> &'static Spec {
        match self {
            Transport::Tcp => &SPECS[0],
            Transport::Datagram(_) => &SPECS[1],
            Transport::Rdma(_) => &SPECS[2],
        }
    }
    /// Whether it is TCP: then plans leave it out.
    pub fn is_tcp(&self) -> bool {
        *self == Transport::Tcp
    }
    /// Whether every message arrives: then it has connections and a controller.
    pub const fn is_reliable(&self) -> bool {
        !matches!(self, Transport::Datagram(_))
    }
    /// Payload of a full packet, bytes.
    pub const fn payload(&self, mtu: Mtu) -> u16 {
        match self {
            Transport::Tcp => mtu.segment_payload(),
            Transport::Datagram(_) => mtu.datagram_payload(),
            Transport::Rdma(_) => mtu.rdma_payload(),
        }
    }
    /// IP and transport headers of a packet with data, bytes.
    pub const fn headers(&self) -> u64 {
        match self {
            Transport::Tcp => crate::packet::HEADER_BYTES,
            Transport::Datagram(_) => crate::packet::DATAGRAM_HEADER_BYTES,
            Transport::Rdma(_) => crate::packet::RDMA_HEADER_BYTES,
        }
    }
}

/// What the packet path asks of a transport's end.
pub trait Machine {
    /// The next packet to send now, into an empty `segment`; false if there is none. Without `room`, while the host's port holds
    /// enough of this end, only what carries no data may go.
    fn poll_into(&mut self, segment: &mut Segment, now: Time, room: bool, stack: &Stack) -> bool;
    /// A deadline may have passed; calling early does nothing.
    fn handle_timeout(&mut self, now: Time, stack: &Stack);
    /// The earliest timer but pacing's; [`Time::NEVER`] for none.
    fn deadline(&self) -> Time;
    /// When pacing lets the next packet go; [`Time::NEVER`] unless pacing alone holds something back.
    fn pacing_deadline(&self) -> Time;
    /// Whether the host's port may be given more of this end while so many bytes of it wait there.
    fn has_room(&self, waiting: Bytes, stack: &Stack) -> bool;
    /// Whether the next poll is sure to find nothing and to change nothing; false says nothing.
    fn is_quiescent(&self) -> bool;
    /// Whether nothing is left to do for what was offered.
    fn is_idle(&self) -> bool;
    /// By which switches choose among equal paths for the packet that was polled last, beside its flow.
    fn path_label(&self) -> u32 {
        0
    }
}

macro_rules! forward {
    ($(fn $name:ident($self:ty $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        impl Machine for tcp::Endpoint {
            $(#[inline(always)]
            fn $name(self: $self $(, $argument: $type)*) -> $result {
                tcp::Endpoint::$name(self $(, $argument)*)
            })*
        }
    };
}

forward! {
    fn poll_into(&mut Self, segment: &mut Segment, now: Time, room: bool, stack: &Stack) -> bool;
    fn handle_timeout(&mut Self, now: Time, stack: &Stack) -> ();
    fn deadline(&Self) -> Time;
    fn pacing_deadline(&Self) -> Time;
    fn has_room(&Self, waiting: Bytes, stack: &Stack) -> bool;
    fn is_quiescent(&Self) -> bool;
    fn is_idle(&Self) -> bool;
    fn path_label(&Self) -> u32;
}

/// One end of a flow over any transport.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all are TCP's, and lie in a driver's table by value")]
pub enum Endpoint {
    /// One end of a connection.
    Tcp(tcp::Endpoint),
    /// The sender of datagrams; their receiver keeps no state.
    Datagram(Datagram),
    /// One end of a connection between adapters.
    Rdma(Rdma),
}

impl Endpoint {
    /// TCP's end, if it is one.
    pub fn tcp(&self) -> Option<&tcp::Endpoint> {
        if let Endpoint::Tcp(end) = self { Some(end) } else { None }
    }
    /// The same, to be changed.
    pub fn tcp_mut(&mut self) -> Option<&mut tcp::Endpoint> {
        if let Endpoint::Tcp(end) = self { Some(end) } else { None }
    }
    /// Begins the handshake, where there is one.
    pub fn open(&mut self, tag: Tag) {
        if let Endpoint::Tcp(end) = self {
            end.open(tag);
        }
    }
    /// The end as what drives it sees it: the same code for all transports, where TCP has none of its own.
    #[inline(never)]
    pub fn machine(&mut self) -> &mut dyn Machine {
        match self {
            Endpoint::Tcp(end) => end,
            Endpoint::Datagram(end) => end,
            Endpoint::Rdma(end) => end,
        }
    }
    /// Offers a message of `bytes`.
    pub fn offer(&mut self, bytes: Bytes, tag: Tag) {
        match self {
            Endpoint::Tcp(end) => end.offer(bytes, tag),
            Endpoint::Datagram(end) => end.offer(bytes, tag),
            Endpoint::Rdma(end) => end.offer(bytes, tag),
        }
    }
    /// Takes back what is offered but not yet sent.
    pub fn stop(&mut self) {
        match self {
            Endpoint::Tcp(end) => end.stop(),
            Endpoint::Datagram(end) => end.stop(),
            Endpoint::Rdma(end) => end.stop(),
        }
    }
    /// What happened since the last call: nothing ever does to datagrams.
    pub fn poll_event(&mut self) -> Option<Event> {
        match self {
            Endpoint::Tcp(end) => end.poll_event(),
            Endpoint::Datagram(_) => None,
            Endpoint::Rdma(end) => end.poll_event(),
        }
    }
    /// Whether there is an event to poll.
    #[inline]
    pub fn has_event(&self) -> bool {
        match self {
            Endpoint::Tcp(end) => end.has_event(),
            _ => self.has_event_of_others(),
        }
    }
    #[inline(never)]
    fn has_event_of_others(&self) -> bool {
        if let Endpoint::Rdma(end) = self { end.has_event() } else { false }
    }
    /// A deadline may have passed.
    #[inline]
    pub fn handle_timeout(&mut self, now: Time, stack: &Stack) {
        match self {
            Endpoint::Tcp(end) => end.handle_timeout(now, stack),
            other => other.machine().handle_timeout(now, stack),
        }
    }
    /// The earliest timer but pacing's.
    #[inline]
    pub fn deadline(&self) -> Time {
        match self {
            Endpoint::Tcp(end) => end.deadline(),
            _ => self.deadline_of_others(),
        }
    }
    #[inline(never)]
    fn deadline_of_others(&self) -> Time {
        if let Endpoint::Rdma(end) = self { end.deadline() } else { Time::NEVER }
    }
    /// What ports wrote into a packet of this end came back.
    pub fn handle_telemetry(&mut self, hops: &[Hop]) {
        match self {
            Endpoint::Tcp(end) => end.handle_telemetry(hops),
            Endpoint::Datagram(_) => {}
            Endpoint::Rdma(end) => end.handle_telemetry(hops),
        }
    }
    /// Listens to near-source switches, where the transport does.
    pub fn listen(&mut self, stream: SmallStream, stack: &Stack) {
        if let Endpoint::Tcp(end) = self {
            end.listen(stream, stack);
        }
    }
    /// A near-source switch tells of congestion.
    ///
    /// # Errors
    /// If it is not to be believed, or this transport does not listen; nothing is changed then.
    pub fn handle_notification(&mut self, now: Time, feedback: u8, seq: u32, stack: &Stack) -> Result<(), Refusal> {
        match self {
            Endpoint::Tcp(end) => end.handle_notification(now, feedback, seq, stack),
            Endpoint::Datagram(_) | Endpoint::Rdma(_) => Err(Refusal::Off),
        }
    }
    /// The rate that a near-source switch holds this end at, if one does.
    pub fn near_source_rate(&mut self, now: Time, stack: &Stack) -> Option<Rate> {
        self.tcp_mut().and_then(|end| end.near_source_rate(now, stack))
    }
    /// The congestion window in force, where there is one.
    pub fn window(&self) -> Option<Packets> {
        match self {
            Endpoint::Tcp(end) => Some(end.window()),
            Endpoint::Datagram(_) => None,
            Endpoint::Rdma(end) => Some(end.window()),
        }
    }
    /// The pacing rate in force, of a transport that has one.
    pub fn pacing(&self, stack: &Stack) -> Option<Rate> {
        match self {
            Endpoint::Tcp(end) => end.pacing(stack),
            Endpoint::Datagram(_) => None,
            Endpoint::Rdma(end) => end.pacing(),
        }
    }
    /// The controller, where there is one.
    pub fn controller(&self) -> Option<&Controller> {
        match self {
            Endpoint::Tcp(end) => Some(end.controller()),
            Endpoint::Datagram(_) => None,
            Endpoint::Rdma(end) => Some(end.controller()),
        }
    }
    /// Packets sent and not acknowledged.
    pub fn outstanding(&self) -> u32 {
        match self {
            Endpoint::Tcp(end) => end.outstanding(),
            Endpoint::Datagram(_) => 0,
            Endpoint::Rdma(end) => end.outstanding(),
        }
    }
    /// The sending half as it stands now, of a transport that has a window.
    pub fn snapshot(&self, now: Time, stack: &Stack) -> Option<Snapshot> {
        match self {
            Endpoint::Tcp(end) => Some(end.snapshot(now, stack)),
            Endpoint::Datagram(_) => None,
            Endpoint::Rdma(end) => Some(end.snapshot()),
        }
    }
    /// SYNs retransmitted.
    pub fn syn_retransmits(&self) -> u8 {
        self.tcp().map_or(0, tcp::Endpoint::syn_retransmits)
    }
    /// How often it has drawn another path since the last call.
    pub fn take_path_changes(&mut self) -> u32 {
        if let Endpoint::Tcp(end) = self { end.take_path_changes() } else { 0 }
    }
    /// Whether it may carry data now.
    pub fn is_established(&self) -> bool {
        self.tcp().is_none_or(tcp::Endpoint::is_established)
    }
    /// Bytes of datagrams sent so far.
    pub fn datagram_bytes(&self) -> Option<Bytes> {
        if let Endpoint::Datagram(end) = self { Some(end.sent()) } else { None }
    }
    /// What has been counted; of datagrams their receiver counts.
    pub fn tallies(&self) -> Tallies {
        match self {
            Endpoint::Tcp(end) => end.tallies(),
            Endpoint::Datagram(_) => Tallies::default(),
            Endpoint::Rdma(end) => end.tallies(),
        }
    }
}
