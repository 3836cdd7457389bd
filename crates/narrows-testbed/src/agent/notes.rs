//! What an agent has seen: each end of a flow writes what it knows, and the ends are put together afterwards.

use std::collections::BTreeMap;

use narrows_core::units::{Span, Time};
use narrows_plan::flows::Name;
use narrows_results::{Quantity, RankRow};

use crate::lateness::Histogram;

/// A flow, where its connection was opened. Times are on the plan's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// When the plan would have it begin.
    pub planned: Time,
    /// When it was offered, or its request sent.
    pub start: Time,
    /// The connection's number, as the simulator numbers them: by opener, then count.
    pub connection: u32,
    /// The query that it belongs to: its place among the host's own.
    pub query: Option<u32>,
    /// The opener's port.
    pub port: u16,
    /// How long it waited for the connection to be established; `None` of one that was open, and until then.
    pub handshake: Option<Span>,
    /// SYNs of the connection retransmitted meanwhile; `None` until it is established.
    pub syn_retransmits: Option<u32>,
}

/// A flow, where its bytes are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Sum of the smoothed RTTs seen.
    pub rtt_sum: Span,
    /// How many.
    pub rtt_count: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Whether the two ends agreed on ECN.
    pub ecn: bool,
}

/// A flow, where its bytes arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// When the first byte was there, on the plan's clock.
    pub first_byte: Option<Time>,
    /// When the last byte was there, on the plan's clock.
    pub done: Option<Time>,
    /// Bytes delivered by the end of the warm-up, by the end of the arrivals, and in all.
    pub delivered_at_warmup: u64,
    /// See above; `None` before.
    pub delivered_at_end: Option<u64>,
    /// See above.
    pub delivered: u64,
}

/// What one agent knows of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// If it opened it.
    pub opened: Option<Opened>,
    /// If it sends its bytes.
    pub sent: Option<Sent>,
    /// If it receives them.
    pub received: Option<Received>,
}

/// A query of a scatter-and-gather client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The plan's traffic entry.
    pub traffic: u32,
    /// Its number among the application's.
    pub number: u32,
    /// The node that asks.
    pub client: u32,
    /// Answers that complete it.
    pub awaited: u32,
    /// When its first request was offered, on the plan's clock.
    pub start: Time,
    /// Until the last answer was whole.
    pub completion: Option<Span>,
    /// Answers so far.
    pub responses: u32,
}

impl Query {
    /// An answer is whole.
    pub(super) fn answer(&mut self, now: Time) {
        self.responses += 1;
        if self.responses == self.awaited {
            self.completion = Some(now.since(self.start));
        }
    }
}

/// A sample of a flow without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, on the plan's clock.
    pub at: Time,
    /// Of which flow.
    pub flow: Name,
    /// Of what.
    pub quantity: Quantity,
    /// How much.
    pub value: u64,
}

/// Everything that an agent leaves behind.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// By name.
    pub flows: BTreeMap<Name, Flow>,
    /// By number.
    pub queries: Vec<Query>,
    /// By time.
    pub samples: Vec<Sample>,
    /// Of programs, by program.
    pub ranks: Vec<RankRow>,
    /// How late the agent did what was due.
    pub lateness: Histogram,
    /// How often a connection had sent all that it was given before the agent came to give it more: its flow was held up by the
    /// machine, not by the network.
    pub ran_dry: u64,
    /// Connections that failed: refused, timed out, reset, or not understood.
    pub failures: u64,
    /// Packets that the host's device dropped because the emulator did not read them in time.
    pub dropped_by_device: u64,
}
