//! What kind of host this is: every constant of the stack that results depend on, by name.

use super::near_source::ReactionPoint;
use crate::component::Value;
use crate::nic::receive::ReceiveOffload;
use crate::packet::timestamp;
use crate::units::{Bytes, Packets, Span, Time};

/// β of 204/256, and no HyStart [FreeBSD `cc_cubic.h`]; α and β [FreeBSD `cc_vegas.c`].
const FREEBSD_CONTROLLERS: &[(&str, &str, Value)] = &[
    ("cubic", "beta", Value::Real(816)),
    ("cubic", "hystart", Value::Switch(false)),
    ("vegas", "alpha", Value::Packets(Packets::new(1))),
    ("vegas", "beta", Value::Packets(Packets::new(3))),
];

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum LossDetection {
    /// Three segments delivered above a hole [RFC 6675 §4]; a lost retransmission waits for the timer.
    DuplicateAcks,
    /// As `DuplicateAcks`, but holes count as well (FACK, until Linux 4.15), and a retransmission is lost once something sent
    /// later was delivered (Linux 4.4 to 4.17).
    DuplicateAcksThenTime,
    /// By time alone, with an adaptive reordering window and a timer [RFC 8985].
    Rack,
}

/// How many segments segmentation offload puts into one piece (Linux `tcp_tso_autosize`), and when it waits for more
/// (`tcp_tso_should_defer`). Named for the last kernels that do so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum BurstSizing {
    /// A millisecond's worth, at least two; controllers that pace choose for themselves.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "linux-4.9"))]
    Linux49,
    /// As `linux-4.9`, but it waits for nothing while marks reduce the window: each acknowledgement sends what it allows.
    #[cfg_attr(feature = "serde", serde(rename = "linux-4.0"))]
    Linux40,
    /// 1/1024 s worth of payload, and on short paths 64 KB more, halved for each 512 us of the minimum RTT (5.18
    /// `tcp_tso_rtt_log`); where a controller paces, what it states is the least (4.20).
    #[cfg_attr(feature = "serde", serde(rename = "linux-6"))]
    Linux6,
}

impl BurstSizing {
    /// What plans leave out.
    #[cfg(feature = "serde")]
    fn is_first(&self) -> bool {
        *self == BurstSizing::Linux49
    }
}

/// What a retransmission timeout adds to the smoothed RTT, before any floor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum RtoVariance {
    /// The largest mean deviation of a round, which falls slowly (Linux `tcp_rtt_estimator`).
    #[default]
    LinuxMaximum,
    /// Four times the smoothed deviation, at least a tick of 1 us [RFC 6298 §2.3].
    Smoothed,
}

impl RtoVariance {
    /// What plans leave out.
    #[cfg(feature = "serde")]
    fn is_linux(&self) -> bool {
        *self == RtoVariance::LinuxMaximum
    }
}

/// A cache of what connections learned of each host, for those that follow; see [`host_cache`](super::host_cache).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct HostCache {
    /// Least window that a connection begins with.
    pub min_window: Packets,
    /// Largest.
    pub max_window: Packets,
}

impl HostCache {
    /// 3 to 64 segments.
    pub const FREEBSD: HostCache = HostCache { min_window: Packets::new(3), max_window: Packets::new(64) };
}

/// Socket buffers that grow, of sender and receiver alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Buffers {
    /// At first.
    pub first: Bytes,
    /// By so much at once.
    pub step: Bytes,
    /// To no more than this.
    pub most: Bytes,
}

impl Buffers {
    /// 128 KiB to 256 KiB, by 16 KiB.
    pub const FREEBSD: Buffers =
        Buffers { first: Bytes::new(128 << 10), step: Bytes::new(16 << 10), most: Bytes::new(256 << 10) };
}

/// Whether nothing is said by it: then it is not written.
#[cfg(feature = "serde")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

/// Every constant of a host's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Profile {
    /// Initial window [RFC 6928].
    pub initial_window: Packets,
    /// Floor of the variance term of the retransmission timeout: RTO ≥ SRTT + this (Linux).
    pub min_rto: Span,
    /// Retransmission timeout before the first sample [RFC 6298 §2.1].
    pub initial_rto: Span,
    /// Ceiling of the backed-off timeout.
    pub max_rto: Span,
    /// Whether the floor applies to the whole timeout (true: [RFC 6298 §2.4]) or to its variance term (false: Linux).
    pub min_rto_is_total: bool,
    /// How losses are found.
    pub loss_detection: LossDetection,
    /// Tail loss probes [RFC 8985 §7].
    pub tail_loss_probe: bool,
    /// Early retransmit for windows too small for three duplicate acknowledgements [RFC 5827].
    pub early_retransmit: bool,
    /// Undo of reductions that a timestamp echo or duplicate report proves spurious.
    pub undo: bool,
    /// Full segments per delayed acknowledgement; 1 acknowledges each.
    pub ack_every: u8,
    /// The kernel's clock tick (Linux: a second divided by `CONFIG_HZ`): timers of loss detection expire with one. 0: at any time.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Span::is_zero", default))]
    pub clock_tick: Span,
    /// Least wait before a lone segment is acknowledged.
    pub delayed_ack: Span,
    /// Segments acknowledged at once at the start of a connection.
    pub quick_acks: u8,
    /// Whether the window shrinks after idling longer than the timeout [RFC 5681 §4.1].
    pub restart_after_idle: bool,
    /// Most segments handed to the port in one piece; 1 is segmentation offload off. Linux: 44 (64 KB).
    pub offload_segments: u8,
    /// Moderation of interrupts, and what a poll merges; `None`: each packet reaches the stack as it arrives.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none", default))]
    pub receive_offload: Option<ReceiveOffload>,
    /// Pacing in slow start and in congestion avoidance, percent of window per RTT, for hosts that pace every
    /// sender (fq). `None`: only controllers that ask are paced.
    pub host_pacing: Option<(u16, u16)>,
    /// Most unsent bytes of a connection in its host's port, as time at its pacing rate (TCP small queues).
    pub small_queue: Span,
    /// And no more than this, however high the rate (Linux `tcp_limit_output_bytes`).
    pub small_queue_bytes: Bytes,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// Whether every segment is acknowledged at once while the offered window grows, from 64 KB by twice what arrives up to
    /// half of the buffer (Linux `tcp_grow_window`): a quarter of the buffer's bytes long.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "core::ops::Not::not", default))]
    pub acks_window_growth: bool,
    /// Whether a piece of more than one segment ends pushed (Linux 5.4), and a full pushed segment is acknowledged at once
    /// (6.6).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "core::ops::Not::not", default))]
    pub push_bursts: bool,
    /// Whether SYNs and bare acknowledgements are ECN-capable, too, where the controller needs ECN (Linux `tcp_ca_needs_ecn`).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "core::ops::Not::not", default))]
    pub capable_acks: bool,
    /// How many segments go in one piece.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "BurstSizing::is_first", default))]
    pub burst_sizing: BurstSizing,
    /// Most time that reports of a hole wait for others, beyond the first three; at most 5 % of the handshake's RTT.
    /// 0: each goes at once (Linux `tcp_comp_sack_delay_ns`, since 4.18).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Span::is_zero", default))]
    pub sack_compression: Span,
    /// What a retransmission timeout adds to the smoothed RTT.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "RtoVariance::is_linux", default))]
    pub rto_variance: RtoVariance,
    /// The deviation that a [smoothed](RtoVariance::Smoothed) variance begins with; 0: half of the first sample
    /// [RFC 6298 §2.2].
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Span::is_zero", default))]
    pub initial_rtt_variance: Span,
    /// Whether TCP timestamps count microseconds, not milliseconds.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "core::ops::Not::not", default))]
    pub microsecond_timestamps: bool,
    /// Full segments that may wait beyond a hole; further ones are dropped (FreeBSD `tcp_reass_maxqlen`). 0: no bound.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_zero", default))]
    pub reassembly_segments: u16,
    /// Socket buffers that grow; the sender's has no bound, and the receiver's is `receive_buffer`, without.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none", default))]
    pub adaptive_buffers: Option<Buffers>,
    /// What a host remembers of others; `None`: nothing.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none", default))]
    pub host_cache: Option<HostCache>,
    /// How senders answer to near-source switches that tell them of congestion; `None`: not at all.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none", default))]
    pub near_source: Option<ReactionPoint>,
    /// The rate limiters in a host's adapter, one for each other host, which answer to the same notifications; `None`: it has none.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none", default))]
    pub nic_limiter: Option<ReactionPoint>,
}

/// A window scale of 10: units of 1 KiB, what buffers of up to 64 MiB have.
pub const MIN_WINDOW_SCALE: u8 = 10;
/// The largest [RFC 7323 §2.3].
const MAX_WINDOW_SCALE: u8 = 14;

impl Profile {
    /// By how many bits the offered window is shifted, so that the whole receive buffer can be offered [RFC 7323 §2.2].
    pub const fn window_scale(&self) -> u8 {
        let mut scale = MIN_WINDOW_SCALE;
        while scale < MAX_WINDOW_SCALE && self.receive_buffer >> scale > u16::MAX as u64 + 1 {
            scale += 1;
        }
        scale
    }

    /// The hosts of the GEMINI paper: Linux 4.9 with its defaults [GEMINI §IV; Linux `tcp_input.c`, `tcp_output.c`, `tcp.h`].
    pub const LINUX_4_9: Profile = Profile {
        initial_window: Packets::new(10),
        min_rto: Span::from_ms(200),
        initial_rto: Span::from_secs(1),
        max_rto: Span::from_secs(120),
        min_rto_is_total: false,
        loss_detection: LossDetection::DuplicateAcksThenTime,
        tail_loss_probe: true,
        early_retransmit: true,
        undo: true,
        ack_every: 2,
        clock_tick: Span::ZERO,
        delayed_ack: Span::from_ms(40),
        quick_acks: 16,
        restart_after_idle: true,
        offload_segments: 44,
        receive_offload: Some(ReceiveOffload::LINUX_4_9),
        host_pacing: None,
        small_queue: Span::from_ms(1),
        small_queue_bytes: Bytes::new(256 << 10),
        receive_buffer: 64 << 20,
        acks_window_growth: false,
        push_bursts: false,
        capable_acks: false,
        burst_sizing: BurstSizing::Linux49,
        sack_compression: Span::ZERO,
        rto_variance: RtoVariance::LinuxMaximum,
        initial_rtt_variance: Span::ZERO,
        microsecond_timestamps: false,
        reassembly_segments: 0,
        adaptive_buffers: None,
        host_cache: None,
        near_source: None,
        nic_limiter: None,
    };

    /// Linux 6, until 6.15: RACK-TLP is the only loss detector. [Linux `tcp_input.c`, `tcp_output.c`] Debian's kernels tick 250
    /// times a second.
    pub const LINUX_6: Profile = Profile {
        clock_tick: Span::from_ms(4),
        loss_detection: LossDetection::Rack,
        early_retransmit: false,
        small_queue_bytes: Bytes::new(1 << 20),
        acks_window_growth: true,
        push_bursts: true,
        capable_acks: true,
        burst_sizing: BurstSizing::Linux6,
        sack_compression: Span::from_ms(1),
        receive_offload: Some(ReceiveOffload::LINUX_6),
        ..Profile::LINUX_4_9
    };

    /// The hosts of the DCTCP paper, a Windows of 2009: New Reno with SACK and a timeout of at least 300 ms [DCTCP §4]. A delayed
    /// acknowledgement of 40 ms would exceed the paper's shorter minimum of 10 ms and make each odd tail a spurious timeout.
    /// Every second segment is acknowledged: nothing merges segments on receipt, which Windows learnt in 2012. Pieces wait for
    /// nothing while marks reduce the window, which Linux learnt in 2015 (4.1).
    pub const DCTCP_2010: Profile = Profile {
        initial_window: Packets::new(2),
        min_rto: Span::from_ms(300),
        min_rto_is_total: true,
        loss_detection: LossDetection::DuplicateAcks,
        tail_loss_probe: false,
        early_retransmit: false,
        delayed_ack: Span::from_ms(1),
        quick_acks: 0,
        receive_offload: None,
        burst_sizing: BurstSizing::Linux40,
        ..Profile::LINUX_4_9
    };

    /// The hosts of the lossless-Ethernet paper: FreeBSD of 2010 with timers for datacenters \[CEE\]. No offload; its adapter's
    /// queue of 512 KB holds more than a connection's largest window.
    pub const FREEBSD_CEE: Profile = Profile {
        initial_window: Packets::new(3),
        min_rto: Span::from_ms(2),
        initial_rto: Span::from_ms(10),
        max_rto: Span::from_secs(64),
        min_rto_is_total: true,
        loss_detection: LossDetection::DuplicateAcks,
        tail_loss_probe: false,
        early_retransmit: false,
        undo: false,
        ack_every: 2,
        delayed_ack: Span::from_ms(1),
        quick_acks: 0,
        restart_after_idle: true,
        offload_segments: 1,
        receive_offload: None,
        small_queue: Span::from_secs(1),
        small_queue_bytes: Bytes::new(512 << 10),
        receive_buffer: 128 << 10,
        rto_variance: RtoVariance::Smoothed,
        initial_rtt_variance: Span::from_ms(20),
        microsecond_timestamps: true,
        reassembly_segments: 200,
        adaptive_buffers: Some(Buffers::FREEBSD),
        host_cache: Some(HostCache::FREEBSD),
        ..Profile::LINUX_4_9
    };

    /// The named profiles.
    pub const NAMED: &[(&str, Profile)] = &[
        ("linux-4.9", Profile::LINUX_4_9),
        ("linux-6", Profile::LINUX_6),
        ("dctcp-2010", Profile::DCTCP_2010),
        ("freebsd-cee", Profile::FREEBSD_CEE),
    ];

    /// What the named profile is, and where it is defined.
    pub fn about(name: &str) -> (&'static str, &'static str) {
        match name {
            "linux-4.9" => ("Linux 4.9 with its defaults, the hosts of the GEMINI paper.", "[GEMINI §IV]"),
            "linux-6" => ("Linux 6, until 6.15: RACK-TLP is the only loss detector.", "[Linux]"),
            "dctcp-2010" => {
                ("The hosts of the DCTCP paper: New Reno with SACK, a timeout of at least 300 ms.", "[DCTCP §4]")
            }
            "freebsd-cee" => (
                "FreeBSD of 2010 with timers for datacenters, the hosts of the lossless-Ethernet paper: host cache, growing \
                 buffers, stack delays, its own β of CUBIC, α and β of Vegas.",
                "[CEE] [FreeBSD]",
            ),
            _ => ("", ""),
        }
    }

    /// Time in the stack of a host of the named profile, on the way out and on the way in, where the profile says so.
    pub fn stack_delay(name: &str) -> Option<(Span, Span)> {
        // [CEE] measured, per segment.
        (name == "freebsd-cee").then_some((Span::from_ns(9_500), Span::from_us(24)))
    }

    /// Parameters of controllers that hosts of the named profile set otherwise than by default: controller, parameter, value.
    pub fn controllers(name: &str) -> &'static [(&'static str, &'static str, Value)] {
        match name {
            "freebsd-cee" => FREEBSD_CONTROLLERS,
            _ => &[],
        }
    }

    /// How long a timer runs that is set for `span`: whole ticks, and until the next one after those [Linux `calc_index`]. The
    /// clocks of hosts tick at different moments: half a tick stands for that wait.
    #[inline(always)]
    pub fn timer(&self, span: Span) -> Span {
        if self.clock_tick == Span::ZERO { span } else { self.ticks(span) }
    }

    #[inline(never)]
    fn ticks(&self, span: Span) -> Span {
        self.clock_tick * span.as_ps().div_ceil(self.clock_tick.as_ps()) + self.clock_tick.div(2)
    }

    /// The clock of TCP timestamps [RFC 7323 §5.4].
    #[inline(always)]
    pub const fn timestamp(&self, now: Time) -> u32 {
        if self.microsecond_timestamps { microseconds(now) } else { timestamp(now) }
    }
}

/// A function of its own, lest the two clocks become one division by one divisor or the other.
#[inline(never)]
#[allow(clippy::cast_possible_truncation, reason = "timestamps wrap")]
const fn microseconds(now: Time) -> u32 {
    now.as_us() as u32
}
