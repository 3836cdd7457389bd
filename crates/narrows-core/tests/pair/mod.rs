//! Two ends on a virtual clock with a path between them that a test may make as bad as it likes.

use narrows_core::cc::{Context, Controller, Settings, spec};
use narrows_core::nic::merge::Merging;
use narrows_core::nic::receive::ReceiveQueue;
use narrows_core::packet::{Ecn, Flags, Mtu, Segment, Tag};
use narrows_core::rng::{SmallStream, Stream};
use narrows_core::tcp::profile::Profile;
use narrows_core::tcp::{EcnMode, Endpoint, Event, Stack, initial_path};
use narrows_core::units::{Bytes, Rate, Span, Time};

/// What may happen to a segment on its way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Of a thousand segments so many are lost, marked, sent twice, or late by up to `late`.
    pub lost: u64,
    pub marked: u64,
    pub doubled: u64,
    pub delayed: u64,
    pub late: Span,
    /// Of a thousand bare acknowledgements so many are lost, whatever `lost` says.
    pub deaf: u64,
    /// Acknowledgements leave only at multiples of this, all at once, in their order.
    pub compressed: Span,
}

/// Decides over the segment that an end sent as its n-th.
pub type DropIf = Box<dyn Fn(usize, usize, &Segment) -> bool>;

/// The adapter of an end's host: what it receives, and what a poll makes of that.
#[derive(Default)]
pub struct Adapter {
    queue: ReceiveQueue<Segment>,
    ready: Vec<Segment>,
}

impl Adapter {
    /// A segment arrives.
    pub fn arrive(&mut self, now: Time, segment: Segment, stack: &Stack) {
        match &stack.profile.receive_offload {
            Some(config) => {
                self.queue.arrive(now, segment, config);
            }
            None => self.ready.push(segment),
        }
    }

    /// When it is to be polled.
    pub fn due(&self) -> Time {
        if self.ready.is_empty() { self.queue.due() } else { Time::ZERO }
    }

    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.ready.is_empty()
    }

    /// What the end's stack gets by now, in order.
    pub fn poll(&mut self, now: Time, stack: &Stack) -> Vec<Segment> {
        let mut up = std::mem::take(&mut self.ready);
        if let Some(config) = stack.profile.receive_offload.filter(|_| self.queue.due() <= now) {
            let (mut packets, mut merging) = (Vec::new(), Merging::default());
            self.queue.poll(now, &mut packets, &config);
            for part in packets.chunks(usize::from(config.budget)) {
                part.iter().for_each(|segment| merging.handle((), segment, &config, |(), run| up.push(*run)));
                merging.flush(|(), run| up.push(*run));
            }
        }
        up
    }
}

/// A path in each direction: one-way delay, an optional bottleneck at the sender's side, and weather.
pub struct Pair {
    pub now: Time,
    pub ends: [Endpoint; 2],
    pub stack: Stack,
    pub delay: Span,
    pub rate: Option<Rate>,
    /// Room at the bottleneck in front of end 0's path, packets.
    pub room: usize,
    pub weather: Weather,
    pub delivered: [Vec<Tag>; 2],
    pub dropped: usize,
    pub sent: Vec<(Time, usize, Segment)>,
    pub keep_sent: bool,
    /// Drops the segment if this says so: (end, ordinal of the segment that end sent, segment).
    pub drop_if: Option<DropIf>,
    /// Checks both ends' invariants whenever they have fallen silent.
    pub watchful: bool,
    late_deadlines: usize,
    ordinal: [usize; 2],
    free_at: [Time; 2],
    departures: [Vec<Time>; 2],
    air: Vec<(Time, u64, usize, Segment)>,
    adapters: [Adapter; 2],
    order: u64,
    random: Stream,
}

pub fn stack_for(controller: &str, profile: Profile, ecn: EcnMode) -> Stack {
    let spec = spec(controller).expect("a registered controller");
    Stack { profile, ecn, line_rate: Rate::from_gbps(1), delivery_rate: spec.needs_delivery_rate, mtu: Mtu::ETHERNET }
}

pub fn build(controller: &str, stack: &Stack, seed: u64) -> Controller {
    let spec = spec(controller).expect("a registered controller");
    let values: Vec<_> = spec.parameters.iter().map(|parameter| parameter.default).collect();
    let context = Context {
        settings: Settings::new(spec.parameters, &values),
        path: &initial_path(stack),
        random: SmallStream::new(seed),
    };
    Controller::build(controller, &context).expect("a registered controller")
}

impl Pair {
    pub fn new(controller: &str, stack: Stack, delay: Span, seed: u64) -> Pair {
        let ends = [
            Endpoint::closed(build(controller, &stack, seed), &stack),
            Endpoint::closed(build(controller, &stack, seed + 1), &stack),
        ];
        Pair {
            now: Time::ZERO,
            ends,
            stack,
            delay,
            rate: None,
            room: usize::MAX,
            weather: Weather::default(),
            delivered: [Vec::new(), Vec::new()],
            dropped: 0,
            sent: Vec::new(),
            keep_sent: false,
            drop_if: None,
            watchful: true,
            late_deadlines: 0,
            ordinal: [0; 2],
            free_at: [Time::ZERO; 2],
            departures: [Vec::new(), Vec::new()],
            air: Vec::new(),
            adapters: Default::default(),
            order: 0,
            random: Stream::named(seed, "pair"),
        }
    }

    pub fn open(&mut self) {
        self.ends[0].open(Tag(0));
        self.settle();
    }

    pub fn offer(&mut self, end: usize, bytes: u64, tag: u32) {
        self.ends[end].offer(Bytes::new(bytes), Tag(tag));
        self.settle();
    }

    /// Lets both ends speak at the present moment.
    pub fn settle(&mut self) {
        for end in 0..2 {
            while let Some(event) = self.ends[end].poll_event() {
                if let Event::Delivered(tag) = event {
                    self.delivered[end].push(tag);
                }
            }
            let mut beyond = 0;
            let mut had_room = self.has_room(end);
            while let Some(segment) = self.ends[end].poll_transmit(self.now, &self.stack) {
                if segment.length > 0 && !had_room {
                    beyond += 1;
                }
                self.transmit(end, segment);
                had_room = self.has_room(end);
            }
            // A probe of the tail, and the first segment after a timeout.
            assert!(beyond <= 1, "{beyond} segments beyond the window at {}", self.now);
            self.check_limit(end);
            if self.watchful {
                self.check(end);
            }
        }
    }

    fn has_room(&self, end: usize) -> bool {
        u64::from(self.ends[end].in_flight()) < self.ends[end].window().get()
    }

    /// What an end remembers of its small queue's limit is the limit.
    fn check_limit(&self, end: usize) {
        let limit = self.ends[end].small_queue_limit(&self.stack);
        assert!(self.ends[end].has_room(limit - Bytes::new(1), &self.stack), "{limit:?} at {}", self.now);
        assert!(!self.ends[end].has_room(limit, &self.stack), "{limit:?} at {}", self.now);
    }

    /// What must hold of an end whenever it has fallen silent.
    fn check(&mut self, end: usize) {
        let endpoint = &self.ends[end];
        let (deadline, pacing) = (endpoint.deadline(), endpoint.pacing_deadline());
        // A timer that another end's turn at this very moment may still serve is not due yet.
        if deadline <= self.now {
            self.late_deadlines += 1;
            assert!(self.late_deadlines < 8, "the deadline {deadline} stays due at {}", self.now);
        } else {
            self.late_deadlines = 0;
        }
        assert!(pacing > self.now, "pacing waits for {pacing} at {}", self.now);
        let outstanding = endpoint.outstanding();
        assert!(endpoint.window().get() >= 1 && (outstanding == 0 || !endpoint.is_idle()));
        if outstanding > 0 {
            assert!(deadline < Time::NEVER, "{outstanding} outstanding and no timer");
        }
    }

    fn happens(&mut self, per_mille: u64) -> bool {
        per_mille > 0 && self.random.below(1000) < per_mille
    }

    fn transmit(&mut self, end: usize, mut segment: Segment) {
        if self.keep_sent {
            self.sent.push((self.now, end, segment));
        }
        let ordinal = self.ordinal[end];
        self.ordinal[end] += 1;
        if self.drop_if.as_ref().is_some_and(|drop| drop(end, ordinal, &segment)) || self.happens(self.weather.lost) {
            self.dropped += 1;
            return;
        }
        let bare = segment.length == 0 && !segment.flags.contains(Flags::SYN);
        if bare && self.happens(self.weather.deaf) {
            self.dropped += 1;
            return;
        }
        let mut leaves = self.now;
        let slot = self.weather.compressed.as_ps();
        if bare && slot > 0 {
            leaves = Time::from_ps(self.now.as_ps().div_ceil(slot) * slot);
        }
        if let Some(rate) = self.rate {
            let now = self.now;
            self.departures[end].retain(|&at| at > now);
            if end == 0 && self.departures[end].len() >= self.room {
                self.dropped += 1;
                return;
            }
            leaves = self.free_at[end].max(leaves) + rate.time_for(Bytes::new(segment.ip_bytes().get() + 38));
            self.free_at[end] = leaves;
            self.departures[end].push(leaves);
        }
        if segment.ecn == Ecn::Capable && self.happens(self.weather.marked) {
            segment.ecn = Ecn::Marked;
        }
        let mut arrives = leaves + self.delay;
        if self.happens(self.weather.delayed) {
            arrives += Span::from_ps(self.random.below(self.weather.late.as_ps().max(1)));
        }
        let copies = if self.happens(self.weather.doubled) { 2 } else { 1 };
        for copy in 0..copies {
            self.order += 1;
            self.air.push((arrives + Span::from_us(copy * 7), self.order, 1 - end, segment));
        }
    }

    fn next_moment(&self) -> Time {
        let in_air = self.air.iter().map(|entry| entry.0).min().unwrap_or(Time::NEVER);
        let timers = self.ends.iter().map(|end| end.deadline().min(end.pacing_deadline())).min();
        let polls = self.adapters[0].due().min(self.adapters[1].due());
        in_air.min(timers.unwrap_or(Time::NEVER)).min(polls)
    }

    /// Runs one moment; false when nothing will ever happen again or the next moment lies beyond `until`.
    pub fn step(&mut self, until: Time) -> bool {
        let moment = self.next_moment();
        if moment == Time::NEVER || moment > until {
            return false;
        }
        self.now = self.now.max(moment);
        let now = self.now;
        let mut due: Vec<_> = self.air.iter().copied().filter(|entry| entry.0 <= now).collect();
        self.air.retain(|entry| entry.0 > now);
        due.sort_by_key(|entry| (entry.0, entry.1));
        for (_, _, end, segment) in due {
            self.adapters[end].arrive(now, segment, &self.stack);
            if self.adapters[end].due() <= now {
                self.poll(end);
            }
        }
        for end in 0..2 {
            self.poll(end);
        }
        for end in &mut self.ends {
            if end.deadline() <= now {
                end.handle_timeout(now, &self.stack);
            }
        }
        self.settle();
        true
    }

    /// What an end's adapter has for its stack by now.
    fn poll(&mut self, end: usize) {
        for segment in self.adapters[end].poll(self.now, &self.stack) {
            self.ends[end].handle_segment(self.now, &segment, &self.stack);
            self.settle();
        }
    }

    pub fn run_until(&mut self, until: Time) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// Until both ends are idle, or `until`.
    pub fn run_until_idle(&mut self, until: Time) -> bool {
        loop {
            if self.ends.iter().all(|end| end.is_idle())
                && self.air.is_empty()
                && self.adapters.iter().all(Adapter::is_idle)
            {
                return true;
            }
            if !self.step(until) {
                return self.ends.iter().all(|end| end.is_idle());
            }
        }
    }
}
