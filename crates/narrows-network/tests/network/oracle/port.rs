//! A port of the explicit model, and what its disciplines choose.

use super::SEED;
use crate::support::Packet;
use narrows_core::link::{Context, Function, FunctionConfig};
use narrows_core::queue::aqm::codel::{self, Codel};
use narrows_core::queue::aqm::{self, Aqm};
use narrows_core::queue::scheduler::{Discipline, DualPi2};
use narrows_core::queue::{AqmConfig, DropReason, SchedulerConfig};
use narrows_core::rng::{Stream, mix};
use narrows_core::units::{Bytes, Time};
use narrows_network::Payload;
use narrows_plan::Link;
use std::collections::{BTreeMap, VecDeque};

/// A packet in a port, the link over which it came, and when.
pub(super) type Held = (Packet, Option<usize>, u64);

/// FQ-CoDel's lists as published [RFC 8290 §4].
pub(super) struct FlowQueues {
    /// By bucket: the number of its queue, counted by first use.
    numbers: BTreeMap<u64, usize>,
    buckets: u64,
    seed: u64,
    pub(super) quantum: i64,
    /// In each queue; `None`: nothing.
    codel: Option<codel::Config>,
    pub(super) credits: Vec<i64>,
    pub(super) new: VecDeque<usize>,
    pub(super) old: VecDeque<usize>,
}

pub(super) struct Port {
    pub(super) scheduler: Option<SchedulerConfig>,
    pub(super) flows: Option<FlowQueues>,
    pub(super) dual: Option<DualPi2>,
    /// By queue, where there is CoDel.
    pub(super) codels: Vec<Codel>,
    /// By queue, where there is a phantom queue.
    pub(super) phantoms: Vec<Aqm>,
    /// What waits, by queue; and what goes before.
    pub(super) waiting: Vec<VecDeque<Held>>,
    /// When what waits has passed the host's stack.
    pub(super) ready: VecDeque<u64>,
    pub(super) urgent: VecDeque<Packet>,
    /// Whether a frame goes out before that.
    pub(super) frame_due: bool,
    /// Urgent ones have no origin, and do not count.
    pub(super) in_service: Option<Held>,
    pub(super) is_urgent: bool,
    pub(super) serving: usize,
    /// When it went into service.
    pub(super) begun_at: u64,
    pub(super) begun_before: u64,
    /// Deficit round robin as published: queues that wait in the order of their turns, what each has been given and not
    /// sent, and whether the first has had its quantum in this turn.
    pub(super) turns: VecDeque<usize>,
    pub(super) quanta: Vec<u64>,
    pub(super) deficits: Vec<u64>,
    pub(super) given: bool,
    /// By priority.
    pub(super) paused: [bool; 8],
    pub(super) paused_since: u64,
    pub(super) paused_for: u64,
    pub(super) longest_pause: u64,
    pub(super) frames: u64,
    /// Whom the port itself has paused.
    pub(super) feeders: Vec<(usize, u8)>,
    /// On the wire, and when each left.
    pub(super) wire: VecDeque<(Packet, u64)>,
    pub(super) rate: u64,
    pub(super) is_down: bool,
    /// What is left to do of the packet in service, as of the last change, and when it will be done.
    pub(super) work: u128,
    pub(super) worked_at: u64,
    pub(super) service_due: u64,
    pub(super) functions: Vec<Function>,
    /// When the last packet that kept its place arrives; what is late, by arrival and number; how many came so far.
    pub(super) in_order: u64,
    pub(super) late: BTreeMap<(u64, u64), Packet>,
    pub(super) came: u64,
    pub(super) were_late: u64,
    pub(super) urgent_wire: VecDeque<Packet>,
    pub(super) sent: (u64, u64),
    pub(super) dropped: [u64; DropReason::COUNT],
    pub(super) marked: u64,
    pub(super) max: u64,
    pub(super) integral: u128,
    pub(super) touched: u64,
}

impl Port {
    pub(super) fn new(link: &Link) -> Port {
        let flow_queues = |queues: u32, quantum: Bytes, codel| FlowQueues {
            numbers: BTreeMap::new(),
            buckets: u64::from(queues),
            seed: Stream::named(SEED, &format!("flow-queues/{}", link.name)).next_u64(),
            quantum: i64::try_from(quantum.get()).unwrap(),
            codel,
            credits: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
        };
        let flows = match &link.scheduler {
            Some(SchedulerConfig::Fq(scheduler)) => Some(flow_queues(scheduler.queues, scheduler.quantum, None)),
            Some(SchedulerConfig::FqCodel(scheduler)) => {
                Some(flow_queues(scheduler.queues, scheduler.quantum, Some(scheduler.codel)))
            }
            _ => None,
        };
        let weights = match &link.scheduler {
            None => vec![1],
            Some(SchedulerConfig::StrictPriority(scheduler)) => vec![1; usize::from(scheduler.classes)],
            Some(SchedulerConfig::Drr(scheduler)) => scheduler.weights.clone(),
            Some(SchedulerConfig::Fq(_) | SchedulerConfig::FqCodel(_)) => Vec::new(),
            Some(SchedulerConfig::DualPi2(_)) => vec![15, 1],
        };
        let dual = match &link.scheduler {
            Some(SchedulerConfig::DualPi2(config)) => Some(DualPi2::new(*config)),
            _ => None,
        };
        let codels = match link.aqm {
            Some(AqmConfig::Codel(config)) => vec![Codel::new(config); weights.len()],
            _ => Vec::new(),
        };
        let phantoms = match link.aqm {
            Some(config @ AqmConfig::Phantom(_)) => {
                let context = aqm::Context { rate: link.rate, stream: Stream::named(SEED, "of none").small() };
                vec![Aqm::new(&config, &context); weights.len()]
            }
            _ => Vec::new(),
        };
        let function = |config: &FunctionConfig| {
            let stream = Stream::named(SEED, &format!("{}/{}", config.key().name(), link.name)).small();
            Function::new(config, Context { stream })
        };
        Port {
            scheduler: link.scheduler.clone(),
            flows,
            dual,
            codels,
            phantoms,
            waiting: vec![VecDeque::new(); weights.len()],
            ready: VecDeque::new(),
            urgent: VecDeque::new(),
            frame_due: false,
            in_service: None,
            is_urgent: false,
            serving: 0,
            begun_at: 0,
            begun_before: 0,
            turns: VecDeque::new(),
            deficits: vec![0; weights.len()],
            quanta: weights.into_iter().map(|weight| 1_500 * u64::from(weight)).collect(),
            given: false,
            paused: [false; 8],
            paused_since: 0,
            paused_for: 0,
            longest_pause: 0,
            frames: 0,
            feeders: Vec::new(),
            wire: VecDeque::new(),
            rate: link.rate.as_bps(),
            is_down: false,
            work: 0,
            worked_at: 0,
            service_due: u64::MAX,
            functions: link.functions.iter().map(function).collect(),
            in_order: 0,
            late: BTreeMap::new(),
            came: 0,
            were_late: 0,
            urgent_wire: VecDeque::new(),
            sent: (0, 0),
            dropped: [0; DropReason::COUNT],
            marked: 0,
            max: 0,
            integral: 0,
            touched: 0,
        }
    }
    /// Where a packet waits: a flow's queue is there from its first packet on.
    pub(super) fn queue_of(&mut self, packet: &Packet) -> usize {
        if let Some(flows) = &mut self.flows {
            let bucket = ((mix(u64::from(packet.flow) ^ flows.seed) >> 32) * flows.buckets) >> 32;
            let next = flows.numbers.len();
            let queue = *flows.numbers.entry(bucket).or_insert(next);
            if queue == self.waiting.len() {
                self.waiting.push(VecDeque::new());
                self.codels.extend(flows.codel.map(Codel::new));
                flows.credits.push(0);
            }
            return queue;
        }
        match &self.dual {
            Some(_) => usize::from(!packet.is_l4s()),
            None if self.waiting.len() == 1 => 0,
            None => usize::from(packet.class),
        }
    }
    pub(super) fn held(&self) -> impl Iterator<Item = &Held> {
        self.waiting.iter().flatten().chain(self.in_service.iter().filter(|_| !self.is_urgent))
    }
    /// What a queue holds, the packet in service included.
    pub(super) fn backlog_of(&self, queue: usize) -> (u64, u64) {
        let in_service = self.in_service.iter().filter(|_| !self.is_urgent && self.serving == queue);
        let held = || self.waiting[queue].iter().chain(in_service.clone());
        (held().map(|(packet, ..)| u64::from(packet.size)).sum(), held().count() as u64)
    }
    pub(super) fn bytes(&self) -> u64 {
        self.held().map(|(packet, ..)| u64::from(packet.size)).sum()
    }
    pub(super) fn has_classes(&self) -> bool {
        self.scheduler.is_some() && self.flows.is_none() && self.dual.is_none()
    }
    fn is_round_robin(&self) -> bool {
        matches!(self.scheduler, Some(SchedulerConfig::Drr(_) | SchedulerConfig::DualPi2(_)))
    }
    /// The scheduler of a dual queue takes its steps up to now, before what waits changes.
    pub(super) fn advance(&mut self, now: u64) {
        let came = [0, 1].map(|queue| Some(Time::from_ps(self.waiting.get(queue)?.front()?.2)));
        if let Some(dual) = &mut self.dual {
            dual.advance(Time::from_ps(now), |queue| came[queue]);
        }
    }
    pub(super) fn is_paused(&self, queue: usize) -> bool {
        if self.has_classes() { self.paused[queue] } else { self.paused.contains(&true) }
    }
    /// The queue whose first packet would be sent, if any may.
    pub(super) fn next_queue(&mut self, now: u64) -> Option<usize> {
        if self.ready.front().is_some_and(|&ready| ready > now) {
            return None;
        }
        if self.flows.is_some() {
            return if self.paused.contains(&true) { None } else { self.next_flow() };
        }
        if self.dual.is_some() && self.paused.contains(&true) {
            return None;
        }
        if !self.is_round_robin() {
            return (0..self.waiting.len()).find(|&queue| !self.waiting[queue].is_empty() && !self.is_paused(queue));
        }
        loop {
            let &queue = self.turns.front()?;
            if !std::mem::replace(&mut self.given, true) {
                self.deficits[queue] += self.quanta[queue];
            }
            if u64::from(self.waiting[queue][0].0.size) <= self.deficits[queue] {
                return Some(queue);
            }
            self.turns.rotate_left(1);
            self.given = false;
        }
    }
    pub(super) fn next_flow(&mut self) -> Option<usize> {
        let flows = self.flows.as_mut().unwrap();
        loop {
            let from_new = !flows.new.is_empty();
            let &queue = if from_new { flows.new.front() } else { flows.old.front() }?;
            let take = |flows: &mut FlowQueues| {
                if from_new {
                    flows.new.pop_front()
                } else {
                    flows.old.pop_front()
                };
            };
            if flows.credits[queue] <= 0 {
                flows.credits[queue] += flows.quantum;
                take(flows);
                flows.old.push_back(queue);
            } else if !self.waiting[queue].is_empty() {
                return Some(queue);
            } else {
                take(flows);
                if from_new {
                    flows.old.push_back(queue);
                }
            }
        }
    }
    /// The first packet of a queue goes into service: its size.
    pub(super) fn send(&mut self, queue: usize) -> u64 {
        let held = self.waiting[queue].pop_front().unwrap();
        let size = u64::from(held.0.size);
        self.ready.pop_front();
        (self.in_service, self.serving) = (Some(held), queue);
        if let Some(flows) = &mut self.flows {
            flows.credits[queue] -= i64::try_from(size).unwrap();
        }
        if self.is_round_robin() {
            self.deficits[queue] -= size;
            if self.waiting[queue].is_empty() {
                self.turns.pop_front();
                (self.deficits[queue], self.given) = (0, false);
            }
        }
        size
    }
    pub(super) fn set_pauses(&mut self, now: u64, priorities: u8) {
        let any = self.paused.contains(&true);
        let queues = if self.flows.is_some() || self.dual.is_some() { 0 } else { self.waiting.len() };
        let before: Vec<bool> = (0..queues).map(|queue| self.is_paused(queue)).collect();
        self.paused = std::array::from_fn(|priority| priorities & 1 << priority != 0);
        match (any, self.paused.contains(&true)) {
            (false, true) => self.paused_since = now,
            (true, false) => {
                self.paused_for += now - self.paused_since;
                self.longest_pause = self.longest_pause.max(now - self.paused_since);
            }
            _ => {}
        }
        for (queue, was_paused) in before.into_iter().enumerate() {
            match (was_paused, self.is_paused(queue)) {
                (false, true) => self.leave(queue),
                (true, false) if !self.waiting[queue].is_empty() => self.turns.push_back(queue),
                _ => {}
            }
        }
    }
    /// A queue has nothing more to send, or may not: its turn and what it was given are gone.
    pub(super) fn leave(&mut self, queue: usize) {
        if self.is_round_robin() {
            self.given &= self.turns.front() != Some(&queue);
            self.deficits[queue] = 0;
        }
        self.turns.retain(|&other| other != queue);
    }
    /// How long the packet in service has been so.
    pub(super) fn begun(&self, now: u64) -> u64 {
        self.in_service.filter(|_| !self.is_urgent).map_or(0, |_| now - self.begun_at)
    }
    /// Adds the time since the last change to the integral.
    pub(super) fn pass(&mut self, now: u64) {
        self.integral += u128::from(self.bytes()) * u128::from(now - self.touched);
        self.touched = now;
    }
}
