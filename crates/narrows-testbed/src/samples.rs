//! What of the ports is measured while a run goes on: backlogs at the plan's interval, counters from the end of the warm-up to
//! the end of the arrivals. The same moments as in the simulator, in the network's own time: exact, however late the thread.

use narrows_core::units::{Bytes, Span, Time};
use narrows_network::{Counters, Network, Payload};
use narrows_plan::{Graph, Sampling, Schedule};

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

#[cfg(test)]
mod tests {
    use narrows_scenario::{Limits, Overrides, load_str};

    use super::*;

    /// A packet of 1500 bytes to the second host.
    #[derive(Clone, Copy, Default)]
    struct Full;

    impl Payload for Full {
        fn ip_bytes(&self) -> u32 {
            1_500
        }

        fn destination(&self) -> u32 {
            1
        }

        fn flow_hash(&self) -> u32 {
            0
        }

        fn ecn_capable(&self) -> bool {
            false
        }

        fn mark(&mut self) {}
    }

    /// What hosts send to open connections is carried before the plan's time zero.
    #[test]
    fn the_first_bin_begins_with_the_plan() {
        let text = r#"
            topology.star = {}
            sample.throughput = "1ms"
            [[traffic]]
            long = {}
            from = "h1"
            to = "h2"
            [[arm]]
            name = "cubic"
            cc = "cubic"
            [run]
            end = "2ms"
        "#;
        let mut plan = load_str(text, &Overrides::default(), &Limits::default()).unwrap().plans.remove(0);
        let mut network: Network<Full> = Network::new(&plan.network, 1).unwrap();
        let link = network.host_link(0);
        for (id, own) in (0..).zip(&mut plan.network.links) {
            own.watched = id == link;
        }
        let plan_begins = Span::from_ms(50);
        let mut samples = Samples::new(&plan.network, &plan.schedule, &plan.sampling, plan_begins);
        // So many packets leave before the plan begins, in its first bin and in its second.
        let offers = [(10, 7), (50_100, 2), (51_100, 3)];
        for (at_us, packets) in offers {
            let at = Time::ZERO + Span::from_us(at_us);
            while let Some(due) = samples.next_at().filter(|&due| due <= at) {
                while network.next(due).is_some() {}
                samples.take(due, &mut network);
            }
            while network.next(at).is_some() {}
            for _ in 0..packets {
                network.offer(at, link, Full);
            }
        }
        while let Some(due) = samples.next_at() {
            while network.next(due).is_some() {}
            samples.take(due, &mut network);
        }
        let sent = |at_ms, packets: u64| Sent {
            at: Time::ZERO + Span::from_ms(at_ms),
            link,
            bytes: Bytes::new(1_500 * packets),
        };
        assert_eq!(samples.sent, [sent(1, 2), sent(2, 3)]);
    }
}
