//! The hosts as an experiment writes them: a named profile, and what differs from it.

use narrows_core::nic::receive;
use narrows_core::tcp::near_source;
use narrows_core::tcp::profile::{self, Buffers, BurstSizing, LossDetection, Profile, RtoVariance};
use narrows_core::units::{Bytes, Packets, Rate, Span};
use schemars::JsonSchema;
use serde::Deserialize;

use super::located::Located;
use super::quantity::Quantity;
use crate::units::Ppm;

/// A host's stack: a named profile and overrides of its fields.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Host {
    /// `"linux-4.9"`, `"linux-6"`, `"dctcp-2010"`, `"freebsd-cee"`; default: `linux-4.9`.
    pub profile: Option<Located<String>>,
    /// The largest IP packet of the network, 576 to 9216 bytes; default: 1500. The topology's hosts only.
    pub mtu: Option<Located<u16>>,
    /// Time in the stack, per direction. It is added to the delay of the host's links, outgoing and incoming.
    pub stack_delay: Option<Located<StackDelay>>,
    /// How the host's own port serves connections: `"fifo"`, `"fq"`; default: fifo. The topology's hosts only.
    pub port: Option<Located<HostPort>>,
    /// The clock of each host's port is slower than its nominal rate by a share drawn for each host and seed, up to this;
    /// default: 0ppm. The topology's hosts only.
    pub clock_spread: Option<Located<Quantity<Ppm>>>,
    /// Initial window, packets.
    pub initial_window: Option<Located<Quantity<Packets>>>,
    /// Floor of the retransmission timeout.
    pub min_rto: Option<Located<Quantity<Span>>>,
    /// Timeout before the first sample.
    pub initial_rto: Option<Located<Quantity<Span>>>,
    /// Ceiling of the backed-off timeout.
    pub max_rto: Option<Located<Quantity<Span>>>,
    /// Whether the floor is of the whole timeout (true) or of its variance term (false, Linux).
    pub min_rto_is_total: Option<bool>,
    /// `"duplicate-acks"` or `"rack"`.
    pub loss_detection: Option<Detection>,
    /// Tail loss probes.
    pub tail_loss_probe: Option<bool>,
    /// Early retransmit.
    pub early_retransmit: Option<bool>,
    /// Undo of spurious reductions.
    pub undo: Option<bool>,
    /// Full segments per delayed acknowledgement.
    pub ack_every: Option<Located<u8>>,
    /// The kernel's clock tick, 0 for none: timers of loss detection expire with one.
    pub clock_tick: Option<Located<Quantity<Span>>>,
    /// Least wait before a lone segment is acknowledged.
    pub delayed_ack: Option<Located<Quantity<Span>>>,
    /// Segments acknowledged at once at the start.
    pub quick_acks: Option<Located<u8>>,
    /// Whether the window shrinks after idling.
    pub restart_after_idle: Option<bool>,
    /// Most segments handed to the port in one piece; 1 turns segmentation offload off.
    pub offload_segments: Option<Located<u8>>,
    /// When the adapter's receive queue interrupts, and what a poll merges: `"off"`, `"linux-4.9"`, `"linux-6"` or
    /// `{ custom = { … } }`, which changes the profile's.
    pub receive_offload: Option<Located<ReceiveOffload>>,
    /// Pacing of every sender by the host (fq), percent of the window per RTT.
    pub host_pacing: Option<Located<HostPacing>>,
    /// Most unsent data of a connection in its host's port, as time at its pacing rate.
    pub small_queue: Option<Located<Quantity<Span>>>,
    /// And no more than this, however high that rate.
    pub small_queue_bytes: Option<Located<Quantity<Bytes>>>,
    /// Receive buffer.
    pub receive_buffer: Option<Located<Quantity<Bytes>>>,
    /// Whether every segment is acknowledged at once while the offered window grows.
    pub acks_window_growth: Option<bool>,
    /// Whether a piece of more than one segment ends pushed, and a full pushed segment is acknowledged at once.
    pub push_bursts: Option<bool>,
    /// Whether SYNs and bare acknowledgements are ECN-capable where the controller needs ECN.
    pub capable_acks: Option<bool>,
    /// How many segments go in one piece: `"linux-4.0"`, `"linux-4.9"` or `"linux-6"`.
    pub burst_sizing: Option<Sizing>,
    /// Most time that reports of a hole wait for others; 0 tells each at once.
    pub sack_compression: Option<Located<Quantity<Span>>>,
    /// What a retransmission timeout adds to the smoothed RTT: `"linux-maximum"` or `"smoothed"`.
    pub rto_variance: Option<Variance>,
    /// The deviation that a smoothed variance begins with; 0 for half of the first sample.
    pub initial_rtt_variance: Option<Located<Quantity<Span>>>,
    /// Whether TCP timestamps count microseconds, not milliseconds.
    pub microsecond_timestamps: Option<bool>,
    /// Full segments that may wait beyond a hole, further ones being dropped; 0 for no bound.
    pub reassembly_segments: Option<Located<u16>>,
    /// Socket buffers that grow, of sender and receiver: `"off"`, `"freebsd"` or `{ custom = { … } }`.
    pub adaptive_buffers: Option<Located<AdaptiveBuffers>>,
    /// What a host remembers of others for new connections: `"off"`, `"freebsd"` or `{ custom = { … } }`.
    pub host_cache: Option<Located<HostCache>>,
    /// How senders respond to an adjacent switch that notifies them of congestion: `"off"`, `"standard"`, `"software"` or
    /// `{ custom = { … } }`; default: off.
    pub near_source: Option<Located<NearSource>>,
    /// The same in the host's network adapter: a rate-limited queue for all that goes to one other host; `custom` changes the
    /// values of `standard`; default: off.
    pub nic_limiter: Option<Located<NearSource>>,
}

/// How a host's own port serves connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostPort {
    /// One queue for all.
    Fifo,
    /// A queue for each connection, served in turn, as by Linux's `fq`: a paced packet does not wait behind a burst of another.
    Fq,
}

/// What a retransmission timeout adds to the smoothed RTT.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variance {
    /// The largest mean deviation of a round, as Linux.
    LinuxMaximum,
    /// Four times the smoothed deviation [RFC 6298 §2.3].
    Smoothed,
}

/// Socket buffers that grow by a step whenever more than 7/8 of one went through within an RTT.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdaptiveBuffers {
    /// None: the receiver has `receive-buffer`, the sender no bound.
    Off,
    /// 128 KiB to 256 KiB, by 16 KiB.
    Freebsd,
    /// With what differs from that.
    Custom(CustomBuffers),
}

/// What differs from FreeBSD's buffers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CustomBuffers {
    /// At first; default: 128 KiB.
    pub first: Option<Located<Quantity<Bytes>>>,
    /// By so much at once; default: 16 KiB.
    pub step: Option<Located<Quantity<Bytes>>>,
    /// To no more than this; default: 256 KiB.
    pub most: Option<Located<Quantity<Bytes>>>,
}

/// A cache of RTT, its variance, threshold and window of each other host.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostCache {
    /// None.
    Off,
    /// New connections begin with 3 to 64 segments.
    Freebsd,
    /// With what differs from that.
    Custom(CustomCache),
}

/// What differs from FreeBSD's cache.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CustomCache {
    /// Least window that a connection begins with; default: 3 packets.
    pub min_window: Option<Located<Quantity<Packets>>>,
    /// Largest; default: 64 packets.
    pub max_window: Option<Located<Quantity<Packets>>>,
}

/// The adapter's receive queue.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveOffload {
    /// Each packet reaches the stack as it arrives, by itself.
    Off,
    /// An interrupt each 50 us at most, above 1 Gbit/s each 8; a poll merges up to 44 segments of each of eight flows at once.
    #[serde(rename = "linux-4.9")]
    Linux49,
    /// The same of 64 flows at once.
    #[serde(rename = "linux-6")]
    Linux6,
    /// With what differs from the profile's; from `linux-4.9`, if that has none.
    Custom(CustomOffload),
}

/// What differs from the profile's receive offload.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CustomOffload {
    /// Most segments merged into one, 1 to 64; 1 merges none; default: 44.
    pub segments: Option<Located<u8>>,
    /// Flows of which a poll holds segments at once, 1 to 64; default: 8.
    pub flows: Option<Located<u8>>,
    /// Packets after which a poll hands up what it holds; default: 64.
    pub budget: Option<Located<u16>>,
    /// Least time between two interrupts; default: 50 us up to 1 Gbit/s, 8 us above.
    pub interrupt_gap: Option<Located<Quantity<Span>>>,
    /// What the first packet waits for others before it interrupts; default: 0.
    pub interrupt_delay: Option<Located<Quantity<Span>>>,
    /// So many packets do not wait any longer; default: 0, no number.
    pub interrupt_frames: Option<Located<u16>>,
}

/// The near-source loop's sender: QCN's reaction point [802.1Qau; Annulus].
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NearSource {
    /// Does not listen.
    Off,
    /// As the standard sets it for adapters.
    Standard,
    /// On the time scale of a datacenter.
    Software,
    /// As `software`, with what differs.
    Custom(Box<ReactionPoint>),
}

/// What differs from the reaction point called `software`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReactionPoint {
    /// Bytes of a cycle of recovery; default: 150 KB.
    pub byte_cycle: Option<Located<Quantity<Bytes>>>,
    /// Time of a cycle of recovery; default: 500 us.
    pub timer: Option<Located<Quantity<Span>>>,
    /// The small step of the target rate; default: 1/2000 of the line rate.
    pub active: Option<Located<Quantity<Rate>>>,
    /// The growing step; default: 1/200 of the line rate.
    pub hyper_active: Option<Located<Quantity<Rate>>>,
    /// The minimum rate; default: 1/1000 of the line rate.
    pub floor: Option<Located<Quantity<Rate>>>,
    /// What the limit begins at; default: the rate of the last 30 us.
    pub start: Option<Start>,
    /// The limit ends after so long without a notification and anything sent; default: 100 ms.
    pub forget: Option<Located<Quantity<Span>>>,
}

/// What a limit begins at.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// The line rate.
    LineRate,
    /// The rate sent within the last one to two of this.
    Recent(Located<Quantity<Span>>),
}

/// Time that a packet spends in a host's stack; default: the topology's.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StackDelay {
    /// On the way out.
    pub tx: Option<Located<Quantity<Span>>>,
    /// On the way in.
    pub rx: Option<Located<Quantity<Span>>>,
    /// Every packet begins to leave up to so much later, at random; their order stays. Default: none.
    pub jitter: Option<Located<Quantity<Span>>>,
}

/// Pacing by the host, whole percents.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostPacing {
    /// In slow start; Linux 200.
    pub slow_start: Located<u16>,
    /// In congestion avoidance; Linux 120.
    pub avoidance: Located<u16>,
}

/// How losses are found.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detection {
    /// Three segments above a hole.
    DuplicateAcks,
    /// By time.
    Rack,
}

/// How many segments go in one piece.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub enum Sizing {
    /// As `linux-4.9`, without waiting for more while marks reduce the window.
    #[serde(rename = "linux-4.0")]
    Linux40,
    /// A millisecond's worth; controllers that pace choose for themselves.
    #[serde(rename = "linux-4.9")]
    Linux49,
    /// Longer pieces on short paths; where a controller paces, what it states is the least.
    #[serde(rename = "linux-6")]
    Linux6,
}

/// A field of `$base` as it is said, by what is taken of what is said; as it is there if nothing is.
macro_rules! over {
    ($own:ident over $base:ident: $($($field:ident),* => |$said:ident| $value:expr;)*) => {{
        let mut all = $base;
        $($(if let Some($said) = &$own.$field {
            all.$field = $value;
        })*)*
        all
    }};
}

impl Host {
    /// `base` with what is said here.
    pub fn over(&self, base: Profile) -> Profile {
        over! { self over base:
            initial_window, min_rto, initial_rto, max_rto, clock_tick, delayed_ack, small_queue,
            small_queue_bytes, sack_compression, initial_rtt_variance => |said| said.value.0;
            reassembly_segments, ack_every, quick_acks, offload_segments => |said| said.value;
            min_rto_is_total, tail_loss_probe, early_retransmit, undo, restart_after_idle, acks_window_growth,
            push_bursts, capable_acks, microsecond_timestamps => |said| *said;
            loss_detection => |said| match said {
                Detection::DuplicateAcks => LossDetection::DuplicateAcks,
                Detection::Rack => LossDetection::Rack,
            };
            host_pacing => |said| Some((said.slow_start.value, said.avoidance.value));
            receive_buffer => |said| said.value.0.get();
            burst_sizing => |said| match said {
                Sizing::Linux40 => BurstSizing::Linux40,
                Sizing::Linux49 => BurstSizing::Linux49,
                Sizing::Linux6 => BurstSizing::Linux6,
            };
            rto_variance => |said| match said {
                Variance::LinuxMaximum => RtoVariance::LinuxMaximum,
                Variance::Smoothed => RtoVariance::Smoothed,
            };
            adaptive_buffers => |said| said.value.resolved();
            host_cache => |said| said.value.resolved();
            near_source => |said| said.value.resolved(near_source::ReactionPoint::SOFTWARE);
            receive_offload => |said| said.value.resolved(base.receive_offload);
            nic_limiter => |said| said.value.resolved(near_source::ReactionPoint::STANDARD);
        }
    }
}

impl ReceiveOffload {
    /// What it says; `base` is what `custom` changes.
    fn resolved(&self, base: Option<receive::ReceiveOffload>) -> Option<receive::ReceiveOffload> {
        match self {
            ReceiveOffload::Off => None,
            ReceiveOffload::Linux49 => Some(receive::ReceiveOffload::LINUX_4_9),
            ReceiveOffload::Linux6 => Some(receive::ReceiveOffload::LINUX_6),
            ReceiveOffload::Custom(differs) => {
                let base = base.unwrap_or(receive::ReceiveOffload::LINUX_4_9);
                Some(over! { differs over base:
                    segments, flows => |said| said.value;
                    budget, interrupt_frames => |said| said.value;
                    interrupt_gap => |said| Some(said.value.0);
                    interrupt_delay => |said| said.value.0;
                })
            }
        }
    }
}

impl AdaptiveBuffers {
    pub(crate) fn resolved(&self) -> Option<Buffers> {
        match self {
            AdaptiveBuffers::Off => None,
            AdaptiveBuffers::Freebsd => Some(Buffers::FREEBSD),
            AdaptiveBuffers::Custom(differs) => {
                let base = Buffers::FREEBSD;
                Some(over! { differs over base: first, step, most => |said| said.value.0; })
            }
        }
    }
}

impl HostCache {
    pub(crate) fn resolved(&self) -> Option<profile::HostCache> {
        match self {
            HostCache::Off => None,
            HostCache::Freebsd => Some(profile::HostCache::FREEBSD),
            HostCache::Custom(differs) => {
                let base = profile::HostCache::FREEBSD;
                Some(over! { differs over base: min_window, max_window => |said| said.value.0; })
            }
        }
    }
}

impl NearSource {
    /// What it says; `base` is what `custom` changes.
    fn resolved(&self, base: near_source::ReactionPoint) -> Option<near_source::ReactionPoint> {
        match self {
            NearSource::Off => None,
            NearSource::Standard => Some(near_source::ReactionPoint::STANDARD),
            NearSource::Software => Some(near_source::ReactionPoint::SOFTWARE),
            NearSource::Custom(differs) => Some(differs.over(base)),
        }
    }
}

impl ReactionPoint {
    /// `base` with what is said here.
    fn over(&self, base: near_source::ReactionPoint) -> near_source::ReactionPoint {
        over! { self over base:
            byte_cycle, timer, forget => |said| said.value.0;
            active, hyper_active, floor => |said| near_source::Step::Fixed(said.value.0);
            start => |said| match said {
                Start::LineRate => near_source::Start::LineRate,
                Start::Recent(span) => near_source::Start::Recent(span.value.0),
            };
        }
    }
}
