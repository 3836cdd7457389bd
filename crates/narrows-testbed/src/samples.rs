//! What of the ports is measured while a run goes on: backlogs at the plan's interval, counters from the end of the warm-up to
//! the end of the arrivals. The same moments as in the simulator, in the network's own time: exact, however late the thread.

use narrows_core::units::{Bytes, Span, Time};
use narrows_network::{Counters, Network, Payload};
use narrows_scenario::plan::{Graph, Sampling, Schedule};

/// One look at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// When, on the plan's clock.
    pub at: Time,
    /// The port: a link's index.
    pub link: u32,
    /// IP bytes held, the packet in service included.
    pub bytes: Bytes,
}

/// What a port sent in a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The end of the bin, on the plan's clock.
    pub at: Time,
    /// The port: a link's index.
    pub link: u32,
    /// IP bytes of which the last bit left.
    pub bytes: Bytes,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Samples {
    /// Links whose backlog is sampled.
    watched: Vec<u32>,
    every: Span,
    plan_begins: Span,
    end: Time,
    /// On the network's clock, as `end`; [`Time::NEVER`] once it is over.
    warmup: Time,
    next_sample: Time,
    bin: Span,
    /// On the network's clock: when a bin ends. The first to end is that before the plan's time zero, which nobody is told of.
    next_bin: Time,
    /// By watched link, what it had sent when the last bin ended.
    sent_before: Vec<Bytes>,
    /// What watched ports sent, by time and then link.
    pub sent: Vec<Sent>,
    /// Every look at a watched port, by time and then link.
    pub backlogs: Vec<Backlog>,
    /// Every port's counters between warm-up and end, by link; empty until then.
    pub counters: Vec<Counters>,
    /// When they were read, on the network's clock, as they are.
    pub read_at: Time,
}

impl Samples {
    /// Nothing measured yet. The plan's time zero is `plan_begins` on the network's clock.
    pub fn new(graph: &Graph, schedule: &Schedule, sampling: &Sampling, plan_begins: Span) -> Samples {
        let on_clock = |at: Time| at + plan_begins;
        let watched: Vec<u32> = (0..).zip(&graph.links).filter(|(_, link)| link.watched).map(|(id, _)| id).collect();
        let samples = sampling.queues > Span::ZERO && !watched.is_empty();
        let bins = sampling.throughput > Span::ZERO && !watched.is_empty();
        Samples {
            sent_before: vec![Bytes::ZERO; watched.len()],
            watched,
            every: sampling.queues,
            plan_begins,
            end: on_clock(schedule.end),
            warmup: on_clock(Time::ZERO + schedule.warmup),
            next_sample: if samples { on_clock(Time::ZERO + sampling.queues) } else { Time::NEVER },
            bin: sampling.throughput,
            next_bin: if bins { on_clock(Time::ZERO) } else { Time::NEVER },
            sent: Vec::new(),
            backlogs: Vec::new(),
            counters: Vec::new(),
            read_at: Time::ZERO,
        }
    }

    /// When something is measured next, on the network's clock.
    pub fn next_at(&self) -> Option<Time> {
        let next = self.warmup.min(self.next_sample).min(self.next_bin).min(self.end);
        (next != Time::NEVER).then_some(next)
    }

    /// Measures what is due at `now`, which is what [`Samples::next_at`] says: after all else that happens then.
    pub fn take<P: Payload>(&mut self, now: Time, network: &mut Network<P>) {
        if self.warmup == now {
            self.warmup = Time::NEVER;
            network.reset_counters(now);
        }
        if self.next_sample == now {
            let at = self.plan_time(now);
            self.backlogs.extend(self.watched.iter().map(|&link| Backlog {
                at,
                link,
                bytes: network.backlog(now, link).0,
            }));
            self.next_sample = if now + self.every <= self.end { now + self.every } else { Time::NEVER };
        }
        if self.next_bin == now {
            let at = self.plan_time(now);
            for (&link, before) in self.watched.iter().zip(&mut self.sent_before) {
                let sent = network.sent(now, link);
                let bytes = sent - std::mem::replace(before, sent);
                if at > Time::ZERO {
                    self.sent.push(Sent { at, link, bytes });
                }
            }
            self.next_bin = if now + self.bin <= self.end { now + self.bin } else { Time::NEVER };
        }
        if self.end == now {
            self.end = Time::NEVER;
            self.finish(now, network);
        }
    }

    /// Reads the counters if the run ended before its measurement did.
    ///
    /// # Panics
    /// If a port has lost track of a packet.
    pub fn finish<P: Payload>(&mut self, now: Time, network: &mut Network<P>) {
        // Every packet of the drain is accounted for as well.
        let counters = network.finish(now);
        if self.counters.is_empty() {
            self.counters = counters;
            self.read_at = now;
        }
    }

    fn plan_time(&self, at: Time) -> Time {
        Time::ZERO + at.since(Time::ZERO + self.plan_begins)
    }
}
