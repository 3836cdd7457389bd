//! Marking on the instantaneous queue [DCTCP §3.1]: what DCTCP, GEMINI and most datacenter controllers are given.
//!
//! A packet that arrives while the queue is above K is marked if it is ECN-capable. The queue is what the port holds
//! just before, the packet in service included and the arriving one not. The AQM never drops: what does not understand
//! ECN passes unmarked.
//!
//! With `at-dequeue` a packet is marked when its service begins, by what then remains behind it: the mark tells of a queue
//! that is younger by the time that the packet waited.

use alloc::vec;
use alloc::vec::Vec;

use super::{Arrival, Context, Departure, Onset, Size, Verdict};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::queue::{AqmConfig, Backlog};
use crate::units::Packets;

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "threshold",
    about: "Marks an ECN-capable packet that finds more than this queued.",
    source: "[DCTCP §3.1]",
    parameters: parameters! {
        "mark-at": Kind::Size, Value::Required, "K: the queue above which packets are marked";
        "at-dequeue": Kind::Switch, Value::Switch(false),
            "judges a packet when its service begins, by what remains behind it";
    },
};

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// K.
    pub mark_at: Size,
    /// Judges a packet when its service begins. Left out of the plan's text if not.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "core::ops::Not::not"))]
    pub at_dequeue: bool,
}

impl Config {
    /// The AQM that marks above so many packets.
    pub const fn at(packets: u64) -> AqmConfig {
        AqmConfig::Threshold(Config { mark_at: Size::Packets(Packets::new(packets)), at_dequeue: false })
    }
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        Ok(Config { mark_at: settings.size("mark-at"), at_dequeue: settings.switch("at-dequeue") })
    }
    pub(super) fn values(&self) -> Vec<Value> {
        vec![self.mark_at.value(), Value::Switch(self.at_dequeue)]
    }
    pub(super) const fn marks(&self) -> bool {
        true
    }
    pub(super) const fn draws(&self) -> bool {
        false
    }
    pub(super) const fn judges_departures(&self) -> bool {
        self.at_dequeue
    }
    pub(super) const fn onset(&self) -> Onset {
        Onset::Queue(self.mark_at)
    }
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    mark_at: Size,
    at_dequeue: bool,
}

impl Threshold {
    pub(super) fn build(config: &Config, _context: &Context) -> Threshold {
        Threshold { mark_at: config.mark_at, at_dequeue: config.at_dequeue }
    }

    #[inline]
    pub(super) fn decide(&mut self, arrival: &Arrival) -> Verdict {
        if self.at_dequeue { Verdict::Pass } else { self.verdict(arrival.backlog, arrival.ecn_capable) }
    }

    pub(super) fn leaves(&mut self, departure: &Departure) -> Verdict {
        if self.at_dequeue { self.verdict(departure.backlog, departure.ecn_capable) } else { Verdict::Pass }
    }

    fn verdict(&self, backlog: Backlog, ecn_capable: bool) -> Verdict {
        let above = self.mark_at.counted(backlog) > self.mark_at.get();
        if above && ecn_capable { Verdict::Mark } else { Verdict::Pass }
    }

    pub(super) fn indifferent_up_to(&self) -> Option<Backlog> {
        if self.at_dequeue {
            return Some(Backlog::MAX);
        }
        Some(match self.mark_at {
            Size::Packets(packets) => Backlog { packets, ..Backlog::MAX },
            Size::Bytes(bytes) => Backlog { bytes, ..Backlog::MAX },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Aqm;
    use crate::rng::SmallStream;
    use crate::units::{Bytes, Rate, Span, Time};

    fn verdict(mark_at: Size, bytes: u64, packets: u64, ecn_capable: bool) -> Verdict {
        let context = Context { rate: Rate::from_gbps(1), stream: SmallStream::new(0) };
        let backlog = Backlog { bytes: Bytes::new(bytes), packets: Packets::new(packets) };
        let arrival =
            Arrival { now: Time::ZERO, size: Bytes::new(1_500), backlog, idle_since: Time::ZERO, ecn_capable };
        Aqm::new(&AqmConfig::Threshold(Config { mark_at, at_dequeue: false }), &context).decide(&arrival)
    }

    #[test]
    fn a_packet_is_marked_above_the_threshold_and_not_at_it() {
        let k = Size::Packets(Packets::new(20));
        assert_eq!(verdict(k, 90_000, 20, true), Verdict::Pass);
        assert_eq!(verdict(k, 900, 21, true), Verdict::Mark);
        let k = Size::Bytes(Bytes::new(30_000));
        assert_eq!(verdict(k, 30_000, 90, true), Verdict::Pass);
        assert_eq!(verdict(k, 30_001, 1, true), Verdict::Mark);
    }

    #[test]
    fn what_does_not_understand_ecn_passes() {
        assert_eq!(verdict(Size::Packets(Packets::ZERO), 90_000, 90, false), Verdict::Pass);
    }

    #[test]
    fn at_dequeue_it_judges_what_is_behind_and_no_arrival() {
        let context = Context { rate: Rate::from_gbps(1), stream: SmallStream::new(0) };
        let config = Config { mark_at: Size::Packets(Packets::new(20)), at_dequeue: true };
        let mut aqm = Aqm::new(&AqmConfig::Threshold(config), &context);
        let backlog = |packets| Backlog { bytes: Bytes::new(9), packets: Packets::new(packets) };
        let arrival = Arrival {
            now: Time::ZERO,
            size: Bytes::new(1_500),
            backlog: backlog(99),
            idle_since: Time::ZERO,
            ecn_capable: true,
        };
        assert_eq!(aqm.decide(&arrival), Verdict::Pass);
        let mut leaves = |behind, ecn_capable| {
            aqm.leaves(&Departure {
                now: Time::ZERO,
                sojourn: Span::ZERO,
                size: Bytes::new(1_500),
                backlog: backlog(behind),
                ecn_capable,
            })
        };
        assert_eq!([leaves(20, true), leaves(21, false)], [Verdict::Pass; 2]);
        assert_eq!(leaves(21, true), Verdict::Mark);
    }
}
