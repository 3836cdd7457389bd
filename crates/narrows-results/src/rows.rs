//! Plain rows, in the order of the plan's identifiers, and the Arrow columns that they become. A column is declared
//! here once: name, unit, description. `docs/reference/results.md` is made of it.

use narrows_core::app::{App, Application, RankTimes};
use narrows_core::edge::dcib::{Edge, Packet, ReceiveCounters, TransmitCounters};
use narrows_core::units::Time;

use crate::trace::Trace;

#[cfg(feature = "tables")]
use crate::tables::{Columns, Run, column};

/// Of names, and of numbers without a dimension.
#[cfg(feature = "tables")]
pub(crate) const NONE: &str = "–";

/// Declares a row: what it holds beside its columns, then its columns in their order. One with a type is a field too;
/// one with a value is made from the row and its run.
macro_rules! row {
    (
        $(#[$meta:meta])* $row:ident of $table:ident $(in $part:ident)?, |$at:ident, $run:ident|
        { $($(#[$about:meta])* $held:ident: $of:ty;)* }
        $($column:ident $(: $type:ty)?, $unit:expr, $description:literal $(= $value:expr)?;)*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $row {
            $($(#[$about])* pub $held: $of,)*
            $($(#[doc = $description] pub $column: $type,)?)*
        }

        #[cfg(feature = "tables")]
        impl $row {
            pub(crate) fn columns($run: &Run<'_>) -> Columns {
                let rows = &$run.results$(.$part)?.$table;
                vec![$({
                    let value = |$at: &$row| value!($at.$column $(, $value)?);
                    column(stringify!($column), $unit, $description, rows.iter().map(value))
                }),*]
            }
        }
    };
}

#[cfg(feature = "tables")]
macro_rules! value {
    ($row:ident.$column:ident) => {
        $row.$column
    };
    ($row:ident.$column:ident, $value:expr) => {
        $value
    };
}

pub(crate) use row;
#[cfg(feature = "tables")]
pub(crate) use value;

row! {
    /// One flow.
    FlowRow of flows, |row, run|
    {
        /// Whether the two stand in different datacenters.
        inter: bool;
        /// Index of the plan's traffic entry.
        traffic: u32;
        /// Numbers of events.
        events_met: Option<String>;
    }
    flow: u32, NONE, "Number of the flow within its run, in the order of its start.";
    connection: u32, NONE, "The connection that carried it; persistent ones carry many flows.";
    request: Option<u32>, NONE, "The request (row of `requests`) to which it is a response, if any.";
    source: u32, NONE, "Node that sends the flow's bytes." = run.node(row.source);
    destination: u32, NONE, "Node that receives them." = run.node(row.destination);
    class, NONE,
        "`intra`: both ends in one datacenter; `inter`: the flow crosses the WAN."
        = if row.inter { "inter" } else { "intra" };
    workload, NONE, "Name of the traffic entry that it belongs to." = run.traffic(row).name.as_str();
    transport, NONE, "`tcp`; `rdma`: between adapters; or `datagram`: sent at a constant rate, nothing retransmitted."
        = run.traffic(row).transport.spec().name;
    controller, NONE, "Congestion controller of the sender; `none` of datagrams." = run.traffic(row).controller.name.as_str();
    size_bytes: u64, "bytes", "Application bytes to deliver; for a flow without a size, those delivered.";
    start_ns: u64, "ns", "Simulated time at which its first byte was offered, or its request sent.";
    fct_ns: Option<u64>, "ns",
        "Flow completion time: from `start_ns` to the last byte delivered in order; of datagrams, to the last packet if all arrived. Null if unfinished.";
    ideal_fct_ns: u64, "ns", "The same transfer on an empty network: store-and-forward, framing, request leg included; over the quickest of equally short paths.";
    slowdown, NONE, "`fct_ns / ideal_fct_ns`, at least 1. Null if unfinished." = row.slowdown();
    rtt_mean_ns: Option<u64>, "ns", "Mean of the sender's RTT samples. Null without a sample.";
    retransmitted_bytes: u64, "bytes", "Application bytes that were retransmitted.";
    timeouts: u32, NONE, "Retransmission timeouts that fired during the flow.";
    handshake_ns: Option<u64>, "ns",
        "From `start_ns` until its connection was established. Null if the connection was open already, or was never established.";
    syn_retransmits: Option<u32>, NONE,
        "SYNs of its connection that were retransmitted during the flow. Null in a live run if the connection was not established.";
    rto_wait_ns: Option<u64>, "ns",
        "Sum of the retransmission timeouts that expired during the flow: the sender's, and the opener's for its SYN and request. One may expire after the last byte, if an acknowledgement was lost. Null in a live run: the kernel does not report it.";
    first_byte_ns: Option<u64>, "ns", "From `start_ns` until its first byte arrived at the destination. Null if none arrived.";
    marked_bytes: u64, "bytes", "Payload bytes that arrived with a congestion mark, duplicates included.";
    dropped_bytes: Option<u64>, "bytes",
        "Payload of the flow, or of its request, in packets that the network dropped, counted as often as they were dropped. Null in a live run.";
    dropped_packets: Option<u64>, "packets", "Packets with that payload, each time one was dropped. Null in a live run.";
    near_source_cuts: u64, NONE,
        "Notifications of adjacent congested switches that its sender accepted, each a reduction of its near-source rate.";
    path_changes: Option<u32>, NONE,
        "Times that its sender drew its path anew with `routing = \"rehash\"`. Null with another policy, and in a live run.";
    received_bytes: u64, "bytes", "Payload delivered in order; of datagrams, in any order.";
    delivered_after_warmup_bytes: u64, "bytes",
        "Payload that arrived between the end of the warm-up and the end of arrivals (`end`), each byte once; in a live run that was delivered in order then. A program's message that follows another on its connection counts from where that is whole.";
    events_met, NONE,
        "Rows of `events`, separated by commas, that were in force at a link of its path, or of a path that it may have taken with `routing`, in either direction, while it went on. Null if none was, and in a live run."
        = row.events_met.clone();
    finished, NONE, "Whether the last byte was delivered before the run stopped." = row.fct_ns.is_some();
    unfinished, NONE,
        "Why it did not finish: `dropped`, packets of a datagram flow, which are not retransmitted; `run-ended`, before its last byte, or it has no size. Null if it finished."
        = row.unfinished(!run.traffic(row).transport.is_reliable());
}

impl FlowRow {
    /// Why it did not finish; a flow over datagrams does not once one of them is dropped.
    #[cfg(feature = "tables")]
    fn unfinished(&self, datagrams: bool) -> Option<&'static str> {
        let dropped = datagrams && self.dropped_packets.is_some_and(|packets| packets > 0);
        self.fct_ns.is_none().then_some(if dropped { "dropped" } else { "run-ended" })
    }

    /// Completion time over ideal completion time, at least 1.
    #[cfg(feature = "tables")]
    #[allow(clippy::cast_precision_loss, reason = "times stay below 2⁵³ ns, 104 days")]
    fn slowdown(&self) -> Option<f64> {
        self.fct_ns.map(|fct| (fct as f64 / self.ideal_fct_ns.max(1) as f64).max(1.0))
    }
}

row! {
    /// One query of a scatter-and-gather client.
    RequestRow of requests, |row, run|
    {}
    request: u32, NONE, "Number of the request within its run.";
    client: u32, NONE, "Node that sent the request." = run.node(row.client);
    start_ns: u64, "ns", "Simulated time at which the client sent the request.";
    completion_ns: Option<u64>, "ns", "From `start_ns` to the last byte of the last response. Null if unfinished.";
    responses: u32, NONE, "Responses received.";
    timeouts: u32, NONE,
        "Retransmission timeouts of the flows that answer it, and of `two-tier` of those by which its aggregators are answered.";
}

row! {
    /// One port, from the end of the warm-up to the end of the run.
    PortRow of ports, |row, run|
    {
        /// Lost on the wire as the experiment states, but for outages.
        dropped_impairment_packets: u64;
    }
    port: u32, NONE, "Index of the link in the plan.";
    name, NONE, "`from->to`." = run.link(row.port).name.as_str();
    node, NONE, "Node that the port belongs to." = run.node(run.link(row.port).from);
    role, NONE,
        "`host`: a host's own port; `edge`: a switch's port towards a host; `fabric`: between its switches; `wan`: between datacenters."
        = run.link(row.port).role.name();
    sent_packets: u64, "packets", "Packets transmitted, of every kind.";
    sent_bytes: u64, "bytes", "IP bytes transmitted; framing is not counted.";
    dropped_packets, "packets",
        "Packets dropped: the sum of the four reasons that follow."
        = row.dropped_limit_packets + row.dropped_pool_packets + row.dropped_aqm_packets + row.dropped_outage_packets;
    dropped_limit_packets: u64, "packets", "Dropped because the port's own limit was reached.";
    dropped_pool_packets: u64, "packets", "Dropped because the switch's shared memory was full.";
    dropped_aqm_packets: u64, "packets", "Dropped by the AQM.";
    dropped_outage_packets: u64, "packets",
        "Dropped because the link was down, or went down while they waited; they are not among `sent_packets`.";
    lost_on_wire_packets, "packets",
        "Lost on the wire after the port, as the experiment states." = row.dropped_impairment_packets + row.lost_in_outage_packets;
    lost_in_outage_packets: u64, "packets", "Of these, those that were under way when the link went down.";
    late_packets: u64, "packets", "Delayed on the wire by `reorder`, so that later ones could overtake them.";
    marked_packets: u64, "packets", "Packets that left with a congestion mark set here.";
    congestion_samples: u64, NONE,
        "Samples of the port's congestion point that showed congestion; senders in its scope were notified.";
    paused_ns: u64, "ns", "Time during which the far end had paused it, by one priority at least.";
    longest_pause_ns: u64, "ns", "The longest time without a break for which it was paused.";
    pause_frames: u64, "packets", "Frames sent that pause or resume the other end of the link, refreshes included; they are not among `sent_packets`.";
    queue_mean_bytes: f64, "bytes", "Backlog, IP bytes, weighted by time; the packet in service counts.";
    queue_p50_bytes: Option<u64>, "bytes",
        "Backlog that half of the samples do not exceed. Null where the port is not sampled.";
    queue_p99_bytes: Option<u64>, "bytes",
        "Backlog that 99 % of the samples do not exceed. Null where the port is not sampled.";
    queue_max_bytes: u64, "bytes", "Largest backlog.";
    rate_bps, "bit/s", "Line rate; the one at the beginning, where it changes." = run.link(row.port).rate.as_bps();
    utilisation: f64, NONE, "Wire bits sent, framing included, over what the line had room for: `rate_bps × measured_ns`, or the integral of its rate, outages left out, where it changes. 0 to 1.";
    measured_ns: u64, "ns", "Length of the time that the counters cover.";
}

row! {
    /// One end of a bridge, from the beginning of the run to its end.
    BridgeRow of bridges, |row, run|
    {
        /// What it did with packets from its site.
        transmitted: TransmitCounters;
        /// What it did with packets from the other end.
        received: ReceiveCounters;
    }
    bridge: u32, NONE, "The link that it sends over, `from->to`." = run.link(row.bridge).name.as_str();
    node, NONE, "The router that it is." = run.node(run.link(row.bridge).from);
    data_packets, "packets", "With data, from its own site." = row.transmitted.data_packets;
    marked_packets, "packets", "Of these, those that were made loss-eligible: a copy was kept." = row.transmitted.marked_packets;
    marked_bytes, "bytes", "Their IP bytes, as received." = row.transmitted.marked_bytes.get();
    unmarked_store_full_packets, "packets", "Chosen and not marked: no room for a copy." = row.transmitted.store_full;
    unmarked_far_silent_packets, "packets",
        "Chosen and not marked: the other router was silent." = row.transmitted.far_silent;
    unmarked_severe_packets, "packets",
        "Chosen and not marked: most of the last thousand marked ones were lost." = row.transmitted.severe;
    fast_repairs, "packets", "Retransmitted because later ones were acknowledged." = row.transmitted.fast_repairs;
    late_repairs, "packets", "Retransmitted because their timer expired." = row.transmitted.late_repairs;
    needless_repairs, "packets", "Of both, spurious ones: the first try arrived." = row.transmitted.needless_repairs;
    repaired_packets, "packets", "Marked packets of which a repair arrived first." = row.transmitted.repaired;
    given_up_packets, "packets", "Marked packets that were never acknowledged." = row.transmitted.given_up;
    store_max_bytes, "bytes", "Maximum bytes of copies at once." = row.transmitted.store_max.get();
    sessions, NONE,
        "How often the two routers agreed on a session; 1 if neither fell silent." = row.transmitted.sessions;
    round_trip_ns: u64, "ns", "Smoothed RTT to the other router when the run ended.";
    received_marked_packets, "packets", "Marked packets from the other end, each once." = row.received.marked_packets;
    duplicate_packets, "packets", "Marked packets from there that had arrived before: dropped." = row.received.duplicates;
    cleared_marks, "packets", "CE marks cleared from packets of hosts without ECN." = row.received.cleared_marks;
    dropped_marks, "packets", "Packets of hosts without ECN that were dropped because they had a CE mark (`marks = \"drop\"`)." = row.received.dropped_marks;
    held_packets, "packets", "Held back because one before them was missing." = row.received.held_packets;
    held_max_bytes, "bytes", "Maximum bytes held back at once." = row.received.held_max.get();
    filled_holes, NONE, "Holes that were filled while they were hidden." = row.received.filled_holes;
    late_holes, NONE, "Holes that were shown to the host because their time was over." = row.received.late_holes;
    plain_holes, NONE, "Holes that were shown to the host because they would not be filled." = row.received.plain_holes;
    overflows, NONE, "Times that a connection's held packets were released for lack of memory." = row.received.overflows;
    hushed_packets: u64, "packets", "Duplicate acknowledgements from the other end, not passed on.";
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

row! {
    /// A change of a link at a stated time.
    EventRow of events_at_links, |row, run|
    {}
    event: u32, NONE, "Number of the event within the run, in the order of time.";
    time_ns: u64, "ns", "Simulated time at which it takes effect.";
    until_ns: Option<u64>, "ns", "When the next event of its kind at the same port does, or the link comes up. Null if it lasts.";
    port: u32, NONE, "Index of the link in the plan.";
    name, NONE, "`from->to`." = run.link(row.port).name.as_str();
    kind: &'static str, NONE, "`rate`, `delay`, `loss` or `outage`.";
    value: Option<f64>, "see kind",
        "Rate in bit/s, delay in ns (without stack delays of hosts), or share of packets lost. Null for an outage.";
    flows: u32, NONE, "Number of flows that met it; 0 in a live run.";
}

row! {
    /// One rank of a program.
    RankRow of ranks, |row, run|
    {
        /// Index of the plan's traffic entry.
        traffic: u32;
        /// The node that it runs on.
        host: u32;
    }
    workload, NONE, "Name of the program: of its traffic entry." = run.entry(row.traffic).name.as_str();
    controller, NONE, "Congestion controller of its messages." = run.entry(row.traffic).controller.name.as_str();
    rank: u32, NONE, "Number of the rank in its program.";
    node, NONE, "Node that it runs on." = run.node(row.host);
    start_ns: u64, "ns", "Simulated time at which the program started.";
    end_ns: Option<u64>, "ns", "Simulated time at which its last operation ended. Null if one had not ended by the end of arrivals (`end`).";
    compute_ns: u64, "ns", "Time during which at least one of its processors computed.";
    wait_ns: u64, "ns", "Time during which none did, until its end, or the end of arrivals if it did not end.";
    operations: u32, NONE, "Operations of the rank: computations, sends and receives.";
    operations_ended: u32, NONE, "Those of them that ended.";
    finished, NONE, "Whether all ended." = row.end_ns.is_some();
}

impl RankRow {
    /// What all programs among the applications of a plan have done, at a driver's hosts, in a run whose arrivals end at `end`.
    pub fn of_programs(apps: &[App<'_>], end: Time) -> Vec<RankRow> {
        let of = |(traffic, app): (u32, &App<'_>)| {
            let row = move |times: RankTimes| RankRow {
                traffic,
                host: times.host,
                rank: times.rank,
                start_ns: times.start.as_ns(),
                end_ns: times.end.map(Time::as_ns),
                compute_ns: times.computed.as_ns(),
                wait_ns: (times.end.unwrap_or(end.max(times.start)).since(times.start)).as_ns()
                    - times.computed.as_ns(),
                operations: times.operations,
                operations_ended: times.ended,
            };
            app.rank_times().into_iter().map(row)
        };
        (0..).zip(apps).flat_map(of).collect()
    }

    /// Puts ranks into the order of results: program, then rank.
    pub fn sort(ranks: &mut [RankRow]) {
        ranks.sort_by_key(|row| (row.traffic, row.rank));
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

row! {
    /// One sample.
    #[derive(Copy)]
    SeriesRow of series, |row, run|
    {}
    time_ns: u64, "ns", "Simulated time of the sample; for rates, the end of the bin.";
    entity: u32, NONE, "What was sampled: a port's name, or a flow." = run.entity(row);
    quantity: Quantity, NONE,
        "`queue_bytes` (backlog of a port), `window_packets` (congestion window), `pacing_bps` (IP bits, of senders that pace), `near_source_bps` (IP bits, of senders that an adjacent switch limits), `goodput_bps` (of a bin), `sent_bps` (IP bits that left a port in a bin)."
        = row.quantity.name();
    value: f64, "see quantity", "The value, in the unit that ends the quantity's name.";
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
    /// By number; none where no link changes.
    pub events_at_links: Vec<EventRow>,
    /// By index of the link; none where there are no bridges.
    pub bridges: Vec<BridgeRow>,
    /// By program, then rank; none where there are no programs.
    pub ranks: Vec<RankRow>,
    /// What tracing adds.
    pub trace: Trace,
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
