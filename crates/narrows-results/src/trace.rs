//! What a traced run leaves behind beside its results: packets hop by hop, senders event by event, and where the time of
//! flows went.

use narrows_core::packet::{Ecn, Flags, SackBlocks};

use crate::rows::row;
#[cfg(feature = "tables")]
use crate::rows::{NONE, value};
#[cfg(feature = "tables")]
use crate::tables::{Columns, Run, column};

row! {
    /// A packet of a traced flow at one port.
    #[derive(Copy)]
    HopRow of hops in trace, |row, run|
    {
        /// The link.
        port: u32;
        /// Node that sends the packet.
        source: u32;
        /// Node that it is for.
        destination: u32;
        /// Whether that node opened its connection, and which of the connections that its opener opened it is.
        from_opener: bool;
        /// See there.
        opened: u32;
        /// What its header says.
        flags: Flags;
        /// The ECN bits with which it came to the port.
        ecn: Ecn;
        /// In units of 2^`window_scale` bytes.
        window: u16;
        /// That of its connection.
        window_scale: u8;
        /// The TCP timestamps.
        timestamps: (u32, u32);
        /// Ranges of bytes that arrived out of order.
        sack: SackBlocks;
        /// Whether it is a datagram.
        is_datagram: bool;
        /// Whether the port sent it.
        left: bool;
    }
    packet: u32, NONE, "Number of the packet within the trace, in the order in which senders handed them over. A retransmission is another packet.";
    hop: u32, NONE, "Number of the port on the packet's way; 0 is the sending host's own.";
    flow: u32, NONE, "The flow (row of `flows`) whose data it carries, or, of acknowledgements, whose connection it is of.";
    connection: u32, NONE, "Its connection.";
    source, NONE, "Node that sends the packet." = run.node(row.source);
    destination, NONE, "Node that it is for." = run.node(row.destination);
    port, NONE, "`from->to`." = run.link(row.port).name.as_str();
    offered_ns: u64, "ns", "When it came to the port; at a host's own port, when the transport handed it over.";
    waited_ns: u64, "ns", "How long it waited there until its first bit was sent; for what did not leave, 0.";
    arrived_ns: Option<u64>, "ns", "When it reached the link's far end. Null if it was dropped at the port or lost on the wire, or was still on its way when the run ended.";
    dropped: bool, NONE, "Whether the port dropped it, or the wire lost it.";
    marked: bool, NONE, "Whether the port marked it.";
    ecn, NONE, "ECN bits with which it came to the port: `not-ect`, `ect0`, `ect1`, `ce`." = ecn_name(row.ecn);
    flags, NONE, "Flags of its TCP header, separated by `|`; `datagram` of datagrams; of RDMA `RDMA` and what the packet is." = flag_names(row.flags, row.is_datagram);
    seq: u64, "bytes", "Offset of its first byte in the stream of its direction; the first is 1, and a SYN is at 0. On the wire, its low 32 bits.";
    ack: u64, "bytes", "The same of what it acknowledges, in the stream of the other direction.";
    payload_bytes: u32, "bytes", "Data that it carries.";
    ip_bytes: u32, "bytes", "Size of the IP packet.";
    retransmission: bool, NONE, "Whether all of its data had been sent before.";
}

/// Names of a header's flags as users know them.
#[cfg(feature = "tables")]
pub(crate) fn flag_names(flags: Flags, is_datagram: bool) -> String {
    if is_datagram {
        return "datagram".into();
    }
    let of_rdma = [(Flags::RDMA, "RDMA"), (Flags::ACK, "ACK"), (Flags::NAK, "NAK"), (Flags::ECE, "ECE")];
    let of_tcp =
        [(Flags::SYN, "SYN"), (Flags::PSH, "PSH"), (Flags::ACK, "ACK"), (Flags::ECE, "ECE"), (Flags::CWR, "CWR")];
    let all = if flags.contains(Flags::RDMA) { of_rdma.as_slice() } else { &of_tcp };
    let set: Vec<&str> = all.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| *name).collect();
    set.join("|")
}

#[cfg(feature = "tables")]
fn ecn_name(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotCapable => "not-ect",
        Ecn::Capable1 => "ect1",
        Ecn::Capable => "ect0",
        Ecn::Marked => "ce",
    }
}

row! {
    /// A sender of a traced flow after something happened to it.
    SenderRow of senders in trace, |row, run|
    {
        /// The node that it is on.
        host: u32;
    }
    time_ns: u64, "ns", "Simulated time.";
    flow: u32, NONE, "The flow (row of `flows`) that it was sending, or the last.";
    node, NONE, "Node that it is on." = run.node(row.host);
    event: &'static str, NONE, "What happened: `packet` arrived, mostly an acknowledgement; `timeout`, of retransmission; `timer`, such as pacing's; `start`, of a flow; `other`, such as room in the host's port.";
    window_packets: Option<u64>, "packets", "Congestion window. Null of datagrams, as all that follow.";
    slow_start_threshold_packets: Option<u64>, "packets", "Of the controller. Null before the first reduction, and of controllers that have none.";
    pacing_bps: Option<u64>, "bit/s", "Pacing rate, IP bits. Null without pacing.";
    near_source_bps: Option<u64>, "bit/s", "Rate to which an adjacent switch limits it. Null while none does.";
    srtt_ns: Option<u64>, "ns", "Smoothed RTT. Null before the first sample.";
    min_rtt_ns: Option<u64>, "ns", "Minimum RTT that it knows of.";
    rto_ns: Option<u64>, "ns", "Retransmission timeout, without backoff.";
    in_flight_packets: Option<u32>, "packets", "Packets sent, neither delivered nor thought lost.";
    outstanding_packets: Option<u32>, "packets", "Packets sent and not acknowledged in sequence.";
    phase: Option<&'static str>, NONE, "`open`; `ecn`, a reduction after marks; `recovery`, from losses; `loss`, after a timeout.";
    acknowledged_bytes: Option<u64>, "bytes", "Bytes of the connection acknowledged in sequence.";
    sent_bytes: Option<u64>, "bytes", "Bytes of the connection sent, each once.";
    waits_for: &'static str, NONE, "What keeps it from sending more: `handshake`, `window`, `receive-window`, `pacing`, `near-source` (its rate), `host-port` (enough of it waits there), `adapter` (its limiter), `application` (nothing to send).";
}

row! {
    /// A stretch of a traced flow's time.
    #[derive(Copy)]
    TimeRow of times in trace, |row, run|
    {
        /// The link, if it is at one.
        link: Option<u32>;
    }
    flow: u32, NONE, "The flow (row of `flows`).";
    from_ns: u64, "ns", "Since the flow's start.";
    until_ns: u64, "ns", "The same; the first stretch begins at 0, each other where the one before it ends, and the last ends at the flow's `fct_ns`.";
    reason: &'static str, NONE, "What the flow's last byte waited for: `handshake`; `request`, the transfer of it and the time of the application that answers; `window`, `receive-window`, `pacing`, `near-source`, `host-port`, `adapter`, as `waits_for` of `senders`; `retransmission`, from a lost transmission to the next, or to where its repair was held back by pacing, a near-source limit or the host; `timeout`, the same up to the expiry of the retransmission timer; `probe-timeout`, the same where the timer of a tail loss probe or of RACK had it retransmitted [RFC 8985]; `delivery`, its last packet's way; `application`, nothing to send; `unknown`, before the trace began.";
    place: &'static str, NONE, "Where that time went: `wire`, sending and propagation, stacks of hosts included; `queue`, in a port; `pause`, in a port that was paused; `event`, an outage, or what reordering and changes of delay added; `edge-pair`; `receive-queue`, in the adapter of a host until it interrupted; `receiver`, from then until it acknowledged; `sender`.";
    port, NONE, "The port of `wire`, `queue`, `pause`, `event` and `edge-pair`: `from->to`. Null elsewhere." = row.link.map(|link| run.link(link).name.clone());
}

row! {
    /// A port on the way of a traced flow was paused or resumed.
    #[derive(Copy)]
    PauseRow of pauses in trace, |row, run|
    {
        /// The link.
        port: u32;
    }
    time_ns: u64, "ns", "Simulated time at which the frame reached the port.";
    port, NONE, "`from->to`." = run.link(row.port).name.as_str();
    priorities: u32, NONE, "Which priorities it pauses, a bit for each; the others are resumed.";
    for_ns: u64, "ns", "For how long, unless another frame comes.";
}

/// What tracing a run adds to its results; empty where it was not traced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// By packet, then hop.
    pub hops: Vec<HopRow>,
    /// By time.
    pub senders: Vec<SenderRow>,
    /// By flow, then time.
    pub times: Vec<TimeRow>,
    /// By time.
    pub pauses: Vec<PauseRow>,
}
