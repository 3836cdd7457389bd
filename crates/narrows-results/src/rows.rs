//! Plain rows, in the order of the plan's identifiers.

use narrows_core::edge::dcib::{Edge, Packet, ReceiveCounters, TransmitCounters};
use narrows_core::units::Time;

/// One flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRow {
    /// Number of the flow, in the order in which flows began.
    pub flow: u32,
    /// The connection that carried it.
    pub connection: u32,
    /// The query that it answers, if any.
    pub request: Option<u32>,
    /// Index of the node that sent its bytes.
    pub source: u32,
    /// Index of the node that received them.
    pub destination: u32,
    /// Whether the two stand in different datacenters.
    pub inter: bool,
    /// Index of the plan's traffic entry.
    pub traffic: u32,
    /// Bytes of payload; for a flow without a size, what was delivered.
    pub size_bytes: u64,
    /// When it was offered, or its request sent.
    pub start_ns: u64,
    /// From then to the last byte in order at the destination; `None` if it did not finish.
    pub fct_ns: Option<u64>,
    /// The same transfer on an empty network.
    pub ideal_fct_ns: u64,
    /// Mean of the sender's RTT samples during the flow; `None` without a sample.
    pub rtt_mean_ns: Option<u64>,
    /// Payload bytes retransmitted during the flow.
    pub retransmitted_bytes: u64,
    /// Expiries of the sender's retransmission timer during the flow.
    pub timeouts: u32,
    /// From its start until its connection was established; `None` of one that was open already, and if that never happened.
    pub handshake_ns: Option<u64>,
    /// SYNs of its connection that were retransmitted during the flow; `None` where a kernel does not tell.
    pub syn_retransmits: Option<u32>,
    /// What the retransmission timers had waited that expired during the flow: the sender's, and the opener's of its SYN and
    /// request. `None` where a kernel does not tell.
    pub rto_wait_ns: Option<u64>,
    /// From its start until its first byte was at the destination; `None` if none came.
    pub first_byte_ns: Option<u64>,
    /// Payload bytes that arrived marked during the flow.
    pub marked_bytes: u64,
    /// Payload bytes, of it or of its request, in packets that the network dropped, each as often as it was; `None` where
    /// packets are the kernel's.
    pub dropped_bytes: Option<u64>,
    /// Notifications of adjacent switches that its sender took.
    pub near_source_cuts: u64,
    /// Payload bytes delivered in order after the warm-up.
    pub delivered_after_warmup_bytes: u64,
}

/// One query of a scatter-and-gather client.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestRow {
    /// Number of the query.
    pub request: u32,
    /// Index of the client's node.
    pub client: u32,
    /// When its first request was offered.
    pub start_ns: u64,
    /// Until the last answer was whole; `None` if the run ended before.
    pub completion_ns: Option<u64>,
    /// Answers.
    pub responses: u32,
}

/// One port, from the end of the warm-up to the end of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct PortRow {
    /// Index of the link.
    pub port: u32,
    /// Packets whose last bit left.
    pub sent_packets: u64,
    /// Their IP bytes.
    pub sent_bytes: u64,
    /// Dropped for the port's own limit.
    pub dropped_limit_packets: u64,
    /// Dropped for the switch's pool.
    pub dropped_pool_packets: u64,
    /// Dropped by the AQM.
    pub dropped_aqm_packets: u64,
    /// Lost on the wire.
    pub dropped_impairment_packets: u64,
    /// Marked.
    pub marked_packets: u64,
    /// Samples of its congestion point that told of congestion.
    pub congestion_samples: u64,
    /// Time-weighted mean backlog, IP bytes.
    pub queue_mean_bytes: f64,
    /// Median of the sampled backlog; `None` where it is not sampled.
    pub queue_p50_bytes: Option<u64>,
    /// 99th percentile of the sampled backlog.
    pub queue_p99_bytes: Option<u64>,
    /// Largest backlog.
    pub queue_max_bytes: u64,
    /// Share of the time in which the line was busy.
    pub utilisation: f64,
    /// Length of the time measured.
    pub measured_ns: u64,
}

/// One end of a bridge, from the beginning of the run to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct BridgeRow {
    /// Index of the link that it sends over.
    pub bridge: u32,
    /// What it did with packets from its site.
    pub transmitted: TransmitCounters,
    /// What it did with packets from the other end.
    pub received: ReceiveCounters,
    /// Duplicate acknowledgements from the other end that it did not pass on.
    pub hushed_packets: u64,
    /// The RTT to the other end, smoothed, at the end.
    pub round_trip_ns: u64,
}

impl BridgeRow {
    /// What an edge has done that sends over the link `bridge`.
    pub fn new<P: Packet>(bridge: u32, edge: &Edge<P>) -> BridgeRow {
        BridgeRow {
            bridge,
            transmitted: edge.transmitted(),
            received: edge.received(),
            hushed_packets: edge.hushed(),
            round_trip_ns: edge.round_trip().as_ns(),
        }
    }
}

/// What a series measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Backlog of a port, IP bytes.
    QueueBytes,
    /// A sender's congestion window, packets.
    WindowPackets,
    /// The rate at which a sender paces, IP bits per second; no sample of one that does not pace.
    PacingBps,
    /// The rate to which an adjacent switch limits a sender, IP bits per second; no sample while none does.
    NearSourceBps,
    /// Payload delivered in order per second, over the bin that ends now.
    GoodputBps,
    /// What a port sent per second, IP bits, over the bin that ends now.
    SentBps,
}

impl Quantity {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::QueueBytes => "queue_bytes",
            Quantity::WindowPackets => "window_packets",
            Quantity::PacingBps => "pacing_bps",
            Quantity::NearSourceBps => "near_source_bps",
            Quantity::GoodputBps => "goodput_bps",
            Quantity::SentBps => "sent_bps",
        }
    }

    /// Whether it is one of a port, whose `entity` is a link; else it is one of a flow.
    pub const fn is_of_port(self) -> bool {
        matches!(self, Quantity::QueueBytes | Quantity::SentBps)
    }

    /// Which of the samplers takes it, in the order in which they act at one time. Window and rates are looked at
    /// together.
    const fn sampler(self) -> u8 {
        match self {
            Quantity::QueueBytes => 0,
            Quantity::WindowPackets | Quantity::PacingBps | Quantity::NearSourceBps => 1,
            Quantity::GoodputBps => 2,
            Quantity::SentBps => 3,
        }
    }
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesRow {
    /// When.
    pub time_ns: u64,
    /// Index of the link for a port's quantity, number of the flow otherwise.
    pub entity: u32,
    /// Of what.
    pub quantity: Quantity,
    /// How much.
    pub value: f64,
}

impl SeriesRow {
    /// A sample of this at `at`.
    pub fn new(at: Time, entity: u32, quantity: Quantity, value: u64) -> SeriesRow {
        SeriesRow { time_ns: at.as_ns(), entity, quantity, value: real(value) }
    }

    /// Puts samples into the order of results: time, then sampler, then entity. A sender's window and rates keep the
    /// order that they have.
    pub fn sort(series: &mut [SeriesRow]) {
        series.sort_by_key(|row| (row.time_ns, row.quantity.sampler(), row.entity));
    }
}

/// Everything a run leaves behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// By number.
    pub flows: Vec<FlowRow>,
    /// By number.
    pub requests: Vec<RequestRow>,
    /// By index of the link.
    pub ports: Vec<PortRow>,
    /// By time, then quantity, then entity.
    pub series: Vec<SeriesRow>,
    /// By index of the link; none where there are no bridges.
    pub bridges: Vec<BridgeRow>,
    /// Packets serialised out of a port, warm-up included.
    pub packet_hops: u64,
    /// Entries of the agenda handled.
    pub events: u64,
    /// When the run ended.
    pub ended_ns: u64,
}

/// A count as a real number.
#[allow(clippy::cast_precision_loss, reason = "results are read as real numbers; counts stay below 2⁵³")]
pub(crate) fn real(value: u64) -> f64 {
    value as f64
}
