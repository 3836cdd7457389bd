//! A queue for each flow, in turn, and no AQM in any (Linux `sch_fq` without its pacing): the port of a host with Linux's default
//! stack, or fair queueing by itself. Whose turn it is decides [FQ-CoDel's](super::fq_codel) scheduler.

use alloc::vec;
use alloc::vec::Vec;

use super::fq_codel::{self, FlowQueues};
use super::{Aqms, Queues};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::units::Bytes;

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "fq",
    about: "A queue for each flow in turn, without an AQM.",
    source: "[Linux] [RFC 8290]",
    parameters: parameters! {
        "queues": Kind::Count, Value::Count(fq_codel::QUEUES as u64), (1, fq_codel::MAX_QUEUES as u64),
            "among which a hash spreads the flows";
        "quantum": Kind::Bytes, Value::Bytes(fq_codel::QUANTUM), (1, fq_codel::MAX_QUANTUM.get()),
            "IP bytes that a queue sends in its turn";
    },
};

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// Among which flows are spread by a hash: 1 to 65,536.
    pub queues: u32,
    /// IP bytes that a queue sends in its turn.
    pub quantum: Bytes,
}

impl Config {
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        let queues = u32::try_from(settings.count("queues")).unwrap_or(fq_codel::MAX_QUEUES);
        Ok(Config { queues, quantum: settings.bytes("quantum") })
    }
    pub(super) fn values(&self) -> Vec<Value> {
        vec![Value::Count(self.queues.into()), Value::Bytes(self.quantum)]
    }
    pub(super) const fn queues(&self) -> Queues {
        Queues::Flows
    }
    pub(super) const fn aqm(&self) -> Aqms {
        Aqms::None
    }
    pub(super) fn build(&self, seed: u64) -> FlowQueues {
        FlowQueues::new(self.queues, self.quantum, seed)
    }
}
