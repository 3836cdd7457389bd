//! The structures of `kit/include/vmlinux.h`, field by field.

use std::ffi::c_void;
use std::mem::{offset_of, size_of};

use crate::ops::Ops;

/// Octets of a controller's own state.
pub(crate) const PRIVATE: usize = 104;
/// What stands behind a controller's own state.
pub(crate) const GUARD: u64 = 0x6e61_7272_6f77_7321;
/// A threshold that there is none yet.
pub(crate) const INFINITE: u32 = 0x7fff_ffff;
/// `SK_PACING_NEEDED`.
pub(crate) const PACING_NEEDED: u32 = 1;
/// Low bits of [`Connection::ca_state`].
pub(crate) const STATE: u8 = 0x1f;

#[repr(C)]
#[derive(Clone, Debug)]
pub(crate) struct Sock {
    pub(crate) state: u8,
    pub(crate) num: u16,
    pub(crate) pacing_status: u32,
    pub(crate) pacing_rate: u64,
    pub(crate) max_pacing_rate: u64,
    pub(crate) gso_max_size: u32,
    pub(crate) pacing_shift: u32,
    pub(crate) storage: *mut c_void,
    pub(crate) random: u64,
}

#[repr(C)]
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) sock: Sock,
    pub(crate) ops: *const Ops,
    pub(crate) rto: u32,
    pub(crate) ca_state: u8,
    pub(crate) ack_pending: u8,
    pub(crate) private: [u64; PRIVATE / 8],
    /// Always [`GUARD`]: a function that writes beyond its state changes it.
    pub(crate) guard: [u64; 4],
}

#[repr(C)]
#[derive(Clone, Debug)]
pub(crate) struct Socket {
    pub(crate) connection: Connection,
    pub(crate) mstamp: u64,
    pub(crate) delivered_mstamp: u64,
    pub(crate) clock_cache: u64,
    pub(crate) wstamp_ns: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) rcv_nxt: u32,
    pub(crate) snd_nxt: u32,
    pub(crate) snd_una: u32,
    pub(crate) write_seq: u32,
    pub(crate) mss_cache: u32,
    pub(crate) advmss: u32,
    pub(crate) srtt_us: u32,
    /// Time and value, three times.
    pub(crate) rtt_min: [u32; 6],
    pub(crate) packets_out: u32,
    pub(crate) sacked_out: u32,
    pub(crate) in_flight: u32,
    pub(crate) max_packets_out: u32,
    pub(crate) cwnd: u32,
    pub(crate) cwnd_cnt: u32,
    pub(crate) cwnd_clamp: u32,
    pub(crate) ssthresh: u32,
    pub(crate) prior_cwnd: u32,
    pub(crate) prior_ssthresh: u32,
    pub(crate) high_seq: u32,
    pub(crate) delivered: u32,
    pub(crate) delivered_ce: u32,
    pub(crate) lost: u32,
    pub(crate) app_limited: u32,
    pub(crate) lsndtime: u32,
    /// The peer's timestamp of the last acknowledgement, and the echo of ours.
    pub(crate) timestamps: [u32; 2],
    pub(crate) ecn_flags: u8,
    /// Bit 0: the window is what limited the sender.
    pub(crate) limited: u8,
}

#[repr(C)]
pub(crate) struct AckSample {
    pub(crate) pkts_acked: u32,
    pub(crate) rtt_us: i32,
    pub(crate) in_flight: u32,
}

#[repr(C)]
pub(crate) struct RateSample {
    pub(crate) prior_mstamp: u64,
    pub(crate) prior_delivered: u32,
    pub(crate) delivered: i32,
    pub(crate) interval_us: i64,
    pub(crate) snd_interval_us: u32,
    pub(crate) rcv_interval_us: u32,
    pub(crate) rtt_us: i64,
    pub(crate) losses: i32,
    pub(crate) acked_sacked: u32,
    pub(crate) prior_in_flight: u32,
    pub(crate) last_end_seq: u32,
    pub(crate) is_app_limited: bool,
    pub(crate) is_ack_delayed: bool,
}

/// What `narrows_layout` of `runtime.c` must say.
pub(crate) const LAYOUT: [usize; 15] = [
    size_of::<Socket>(),
    offset_of!(Sock, pacing_rate),
    offset_of!(Connection, rto),
    offset_of!(Connection, private),
    offset_of!(Connection, guard),
    offset_of!(Socket, mstamp),
    offset_of!(Socket, rtt_min),
    offset_of!(Socket, cwnd),
    offset_of!(Socket, ecn_flags),
    size_of::<RateSample>(),
    offset_of!(RateSample, interval_us),
    offset_of!(RateSample, is_app_limited),
    size_of::<Ops>(),
    offset_of!(Ops, name),
    offset_of!(Ops, init),
];
