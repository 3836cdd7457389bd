//! `struct tcp_congestion_ops`: the hooks that a controller has.

use std::ffi::{CStr, c_void};

use crate::socket::{AckSample, RateSample, Socket};

/// `TCP_CONG_NEEDS_ECN`.
pub(crate) const NEEDS_ECN: u32 = 2;
/// What happened to a sender: `enum tcp_ca_event`.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    TxStart = 0,
    CwndRestart = 1,
    CompleteCwr = 2,
    Loss = 3,
}

type Of<A, R = ()> = Option<unsafe extern "C-unwind" fn(*mut Socket, A) -> R>;
type Plain<R = ()> = Option<unsafe extern "C-unwind" fn(*mut Socket) -> R>;

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Ops {
    pub(crate) ssthresh: Plain<u32>,
    pub(crate) cong_avoid: Option<unsafe extern "C-unwind" fn(*mut Socket, u32, u32)>,
    pub(crate) set_state: Of<u8>,
    pub(crate) cwnd_event: Of<Event>,
    pub(crate) in_ack_event: Of<u32>,
    pub(crate) pkts_acked: Of<*const AckSample>,
    pub(crate) min_tso_segs: Plain<u32>,
    /// With the arguments that it has since Linux 6.10, or [before](CongControlBefore).
    pub(crate) cong_control: Option<CongControl>,
    pub(crate) undo_cwnd: Plain<u32>,
    pub(crate) sndbuf_expand: Plain<u32>,
    pub(crate) get_info: *const c_void,
    pub(crate) name: [u8; 16],
    pub(crate) owner: *const c_void,
    pub(crate) key: u32,
    pub(crate) flags: u32,
    pub(crate) init: Plain,
    pub(crate) release: Plain,
}

pub(crate) type CongControl = unsafe extern "C-unwind" fn(*mut Socket, u32, i32, *const RateSample);
pub(crate) type CongControlBefore = unsafe extern "C-unwind" fn(*mut Socket, *const RateSample);

impl Ops {
    /// What the kernel asks of a controller before it registers it, and this one has not.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        match (self.ssthresh, self.undo_cwnd, self.cong_avoid, self.cong_control) {
            (None, ..) => Some("ssthresh"),
            (_, None, ..) => Some("undo_cwnd"),
            (_, _, None, None) => Some("cong_avoid or cong_control"),
            _ if self.name[0] == 0 => Some("a name"),
            _ if !self.name.contains(&0) => Some("a name of at most 15 characters"),
            _ => None,
        }
    }

    /// As `ss` shows it.
    pub(crate) fn name(&self) -> String {
        let name = CStr::from_bytes_until_nul(&self.name).map_or(&self.name[..], CStr::to_bytes);
        name.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' }).collect()
    }
}
