//! An end of a connection after an event that touched it.

use narrows_core::cc::{Limit, Phase};
use narrows_core::tcp::Snapshot;
use narrows_core::transport::{Endpoint, Machine};
use narrows_core::units::Time;

use crate::connections::End;
use narrows_core::tcp::Stack;

/// What keeps a sender from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Handshake,
    Window,
    ReceiveWindow,
    Pacing,
    NearSource,
    /// Enough of it waits in the host's port.
    HostPort,
    /// The limiter in the host's adapter.
    Adapter,
    /// There is nothing to send.
    Application,
}

impl Wait {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Wait::Handshake => "handshake",
            Wait::Window => "window",
            Wait::ReceiveWindow => "receive-window",
            Wait::Pacing => "pacing",
            Wait::NearSource => "near-source",
            Wait::HostPort => "host-port",
            Wait::Adapter => "adapter",
            Wait::Application => "application",
        }
    }
}

/// What an event was to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// This packet arrived.
    Packet(u32),
    /// The retransmission timer expired.
    Timeout,
    /// Another timer did.
    Timer,
    /// A flow began.
    Start,
    Other,
}

impl Trigger {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Trigger::Packet(_) => "packet",
            Trigger::Timeout => "timeout",
            Trigger::Timer => "timer",
            Trigger::Start => "start",
            Trigger::Other => "other",
        }
    }
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) at: Time,
    pub(crate) trigger: Trigger,
    pub(crate) wait: Wait,
    /// The flow that it sends, or the last: its place among the run's.
    pub(crate) flow: u32,
    pub(crate) host: u32,
    /// Of TCP.
    pub(crate) snapshot: Option<Snapshot>,
}

/// What keeps an end from sending more now.
pub(crate) fn wait_of(end: &mut End, now: Time, stack: &Stack) -> Wait {
    let waiting = end.waiting.bytes(now);
    let is_behind = end.waiting.is_behind();
    let is_full = |machine: &dyn Machine| !machine.has_room(waiting, stack);
    let of_window = |machine: &dyn Machine, snapshot: Snapshot, has_more: bool| match snapshot.held_by {
        _ if has_more && is_full(machine) => Wait::HostPort,
        Limit::Window => Wait::Window,
        Limit::Receiver => Wait::ReceiveWindow,
        Limit::Application => Wait::Application,
        Limit::Pacing => Wait::Pacing,
        Limit::NearSource => Wait::NearSource,
    };
    match &end.endpoint {
        Endpoint::Tcp(tcp) if !tcp.is_established() => Wait::Handshake,
        _ if is_behind => Wait::Adapter,
        Endpoint::Tcp(tcp) => {
            let snapshot = tcp.snapshot(now, stack);
            let has_more = snapshot.nxt < snapshot.offered || snapshot.phase == Phase::Loss;
            of_window(tcp, snapshot, has_more)
        }
        Endpoint::Rdma(rdma) => of_window(rdma, rdma.snapshot(), !rdma.is_quiescent()),
        Endpoint::Datagram(datagram) if is_full(datagram) => Wait::HostPort,
        Endpoint::Datagram(datagram) if datagram.pacing_deadline() < Time::NEVER => Wait::Pacing,
        Endpoint::Datagram(_) => Wait::Application,
    }
}
