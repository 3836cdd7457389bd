//! FQ-CoDel's scheduler: which of a port's flow queues sends next [RFC 8290].
//!
//! A flow's queue is chosen by a hash. One that begins to wait while it is in no list joins the *new* ones with a quantum
//! of credit; new queues go before *old* ones. A queue that has sent its credit gets another quantum and goes to the end of
//! the old ones; so does a new one that is found empty, and an old one that is found empty leaves. Flows that always wait
//! share by bytes, and what is sparse, less than a quantum in each round, goes first [RFC 8290 §4.2].
//!
//! Deciding only, as [`drr`](super::drr): the queues are the driver's, with a CoDel for each ([`codel`]). A packet that CoDel
//! drops costs its queue nothing ([`refund`](FlowQueues::refund)). Bytes are IP bytes.
//!
//! Queues are numbered in the order in which they were used first, so that a port has no more than its flows need.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::{Aqms, Arriving, Discipline, Queues};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::queue::AqmConfig;
use crate::queue::aqm::codel;
use crate::rng::mix;
use crate::units::{Bytes, Span};

/// The RFC's number of queues [RFC 8290 §4.1.1].
pub const QUEUES: u32 = 1_024;
/// Most queues of one port.
pub const MAX_QUEUES: u32 = 65_536;
/// The RFC's 1514 bytes without the Ethernet header of 14 [RFC 8290 §5.2.4]: a full packet.
pub const QUANTUM: Bytes = Bytes::new(1_500);
/// Largest quantum.
pub const MAX_QUANTUM: Bytes = Bytes::new(1_000_000);

const UNUSED: u32 = u32::MAX;

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "fq-codel",
    about: "A queue for each flow in turn, with CoDel in each.",
    source: "[RFC 8290]",
    parameters: parameters! {
        "queues": Kind::Count, Value::Count(QUEUES as u64), (1, MAX_QUEUES as u64), "among which a hash spreads the flows";
        "quantum": Kind::Bytes, Value::Bytes(QUANTUM), (1, MAX_QUANTUM.get()),
            "IP bytes that a queue sends in its turn; the default is the RFC's 1514 without the Ethernet header";
        "target": Kind::Span, Value::Span(Span::from_ms(5)), (codel::RANGE.0.as_ps(), codel::RANGE.1.as_ps()),
            "CoDel's: the wait that is good for a standing queue";
        "interval": Kind::Span, Value::Span(Span::from_ms(100)), (codel::RANGE.0.as_ps(), codel::RANGE.1.as_ps()),
            "CoDel's: how long packets may wait longer before one is dropped";
        "ecn": Kind::Switch, Value::Switch(true), "marks ECN-capable packets instead of dropping them";
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
    /// Of each queue.
    pub codel: codel::Config,
}

impl Config {
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        let queues = u32::try_from(settings.count("queues")).unwrap_or(MAX_QUEUES);
        let codel = codel::Config::new(settings)?;
        Ok(Config { queues, quantum: settings.bytes("quantum"), codel })
    }
    pub(super) fn values(&self) -> Vec<Value> {
        let mut values = vec![Value::Count(self.queues.into()), Value::Bytes(self.quantum)];
        values.extend(self.codel.values());
        values
    }
    pub(super) const fn queues(&self) -> Queues {
        Queues::Flows
    }
    pub(super) const fn aqm(&self) -> Aqms {
        Aqms::Each(AqmConfig::Codel(self.codel))
    }
    pub(super) fn build(&self, seed: u64) -> FlowQueues {
        FlowQueues::new(self.queues, self.quantum, seed)
    }
}

/// The flow queues of one port, and whose turn it is.
#[derive(Clone, Debug)]
pub struct FlowQueues {
    quantum: Bytes,
    /// So that each port has its own collisions.
    seed: u64,
    /// By hash: the number of the queue; [`UNUSED`].
    buckets: Vec<u32>,
    queues: Vec<Queue>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    chosen: usize,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    /// What it may send before its turn ends, IP bytes; the last packet may take it below 0.
    credit: i64,
    is_listed: bool,
    waits: bool,
}

impl FlowQueues {
    /// So many queues, none of them used.
    ///
    /// # Panics
    /// If there are none or more than [`MAX_QUEUES`], or the quantum is 0 or more than [`MAX_QUANTUM`].
    pub fn new(queues: u32, quantum: Bytes, seed: u64) -> FlowQueues {
        assert!((1..=MAX_QUEUES).contains(&queues), "a port has 1 to {MAX_QUEUES} flow queues");
        assert!(quantum > Bytes::ZERO && quantum <= MAX_QUANTUM, "a quantum is 1 to {MAX_QUANTUM}");
        let buckets = vec![UNUSED; usize::try_from(queues).expect("a few")];
        let (new, old) = (VecDeque::new(), VecDeque::new());
        FlowQueues { quantum, seed, buckets, queues: Vec::new(), new, old, chosen: 0 }
    }
}

impl Discipline for FlowQueues {
    fn queues(&self) -> usize {
        self.queues.len()
    }

    /// The queue of flows with this hash; a new one has the next number.
    #[allow(clippy::cast_possible_truncation, reason = "queues are few")]
    fn queue_of(&mut self, packet: &Arriving) -> usize {
        let hash = mix(u64::from(packet.flow_hash) ^ self.seed) >> 32;
        let place = (hash * self.buckets.len() as u64) >> 32;
        let bucket = &mut self.buckets[place as usize];
        if *bucket == UNUSED {
            *bucket = self.queues.len() as u32;
            self.queues.push(Queue { credit: 0, is_listed: false, waits: false });
        }
        *bucket as usize
    }

    fn wake(&mut self, queue: usize) {
        let state = &mut self.queues[queue];
        state.waits = true;
        if !state.is_listed {
            (state.is_listed, state.credit) = (true, signed(self.quantum));
            self.new.push_back(queue);
        }
    }

    /// The packet is paid for.
    fn choose(&mut self, first: impl Fn(usize) -> Bytes) -> Option<usize> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let queue = *list.front()?;
            let state = &mut self.queues[queue];
            if state.credit > 0 && state.waits {
                state.credit -= signed(first(queue));
                self.chosen = queue;
                return Some(queue);
            }
            list.pop_front();
            if state.credit <= 0 {
                state.credit += signed(self.quantum);
                self.old.push_back(queue);
            } else if is_new {
                self.old.push_back(queue);
            } else {
                state.is_listed = false;
            }
        }
    }

    /// Its queue stays in its list.
    fn rest(&mut self) {
        self.queues[self.chosen].waits = false;
    }

    fn leave(&mut self, queue: usize) {
        self.queues[queue].waits = false;
    }

    fn refund(&mut self, size: Bytes) {
        self.queues[self.chosen].credit += signed(size);
    }
}

fn signed(size: Bytes) -> i64 {
    i64::try_from(size.get()).expect("a packet or a quantum")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(flow_hash: u32) -> Arriving {
        Arriving { flow_hash, ..Arriving::default() }
    }

    fn queues(number: usize) -> FlowQueues {
        let mut queues = FlowQueues::new(MAX_QUEUES, QUANTUM, 1);
        (0..).map(|flow| queues.queue_of(&of(flow))).take_while(|&queue| queue + 1 < number).for_each(drop);
        assert_eq!(queues.queues(), number);
        queues
    }

    /// The sum squared over the number times the sum of squares [Jain 1984].
    fn is_fair(sent: &[u64], least_percent: u128) -> bool {
        let sum: u128 = sent.iter().map(|&bytes| u128::from(bytes)).sum();
        let squares: u128 = sent.iter().map(|&bytes| u128::from(bytes).pow(2)).sum();
        sum * sum * 100 >= squares * sent.len() as u128 * least_percent
    }

    #[test]
    fn a_sparse_flow_goes_before_those_that_have_sent_a_quantum() {
        let mut scheduler = queues(3);
        scheduler.wake(0);
        scheduler.wake(1);
        let full = |_: usize| QUANTUM;
        assert_eq!([0; 4].map(|_| scheduler.choose(full).unwrap()), [0, 1, 0, 1]);
        // New: its first packet is next, whoever's turn it was; then it has no more priority than others.
        scheduler.wake(2);
        assert_eq!([0; 6].map(|_| scheduler.choose(full).unwrap()), [2, 0, 2, 1, 0, 2]);
    }

    #[test]
    fn a_new_queue_that_is_found_empty_becomes_old_before_it_leaves() {
        let mut scheduler = queues(2);
        let small = |_: usize| Bytes::new(100);
        scheduler.wake(0);
        scheduler.wake(1);
        assert_eq!(scheduler.choose(small), Some(0));
        scheduler.rest();
        // 0 is empty and goes behind; what comes to it again waits there for its turn after 1's.
        assert_eq!(scheduler.choose(small), Some(1));
        scheduler.wake(0);
        assert_eq!([0; 15].map(|_| scheduler.choose(small).unwrap()), [[1; 14].as_slice(), &[0]].concat()[..]);
        let mut scheduler = queues(1);
        scheduler.wake(0);
        assert_eq!(scheduler.choose(small), Some(0));
        scheduler.rest();
        assert_eq!(scheduler.choose(small), None);
        scheduler.wake(0);
        // Forgotten: a whole quantum again.
        assert_eq!(scheduler.queues[0].credit, 1_500);
    }

    #[test]
    fn a_dropped_packet_costs_nothing() {
        let mut scheduler = queues(2);
        let full = |_: usize| QUANTUM;
        scheduler.wake(0);
        scheduler.wake(1);
        assert_eq!(scheduler.choose(full), Some(0));
        scheduler.refund(QUANTUM);
        assert_eq!([scheduler.choose(full), scheduler.choose(full)], [Some(0), Some(1)]);
    }

    proptest! {
        /// Whoever always waits sends as much as others, within a quantum and a packet, whatever packets are like.
        #[test]
        fn flows_that_always_wait_share_by_bytes(sizes in prop::collection::vec(40u64..9_000, 2..20), turns in 1usize..3_000) {
            let mut scheduler = queues(sizes.len());
            let mut sent = std::vec![0; sizes.len()];
            (0..sizes.len()).for_each(|queue| scheduler.wake(queue));
            for _ in 0..turns {
                let queue = scheduler.choose(|queue| Bytes::new(sizes[queue])).unwrap();
                sent[queue] += sizes[queue];
            }
            let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
            prop_assert!(most - least <= 1_500 + 9_000, "{sent:?}");
            prop_assert!(*least < 1_000_000 || is_fair(&sent, 99));
        }

        /// One flow and one queue, as far as the hash goes; and no queue beyond what was asked for.
        #[test]
        fn a_flow_stays_in_its_queue(number in 1u32..2_000, seed: u64, flows in prop::collection::vec(any::<u32>(), 1..100)) {
            let mut scheduler = FlowQueues::new(number, QUANTUM, seed);
            let first: Vec<usize> = flows.iter().map(|&flow| scheduler.queue_of(&of(flow))).collect();
            let again: Vec<usize> = flows.iter().map(|&flow| scheduler.queue_of(&of(flow))).collect();
            prop_assert_eq!(&first, &again);
            prop_assert!(scheduler.queues() <= usize::try_from(number).unwrap());
            prop_assert_eq!(first.iter().max().unwrap() + 1, scheduler.queues());
        }
    }
}
