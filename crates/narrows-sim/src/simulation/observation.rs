//! What is measured while a run goes on, and the rows that it leaves behind.

use std::collections::BTreeSet;

use narrows_core::cc::Controller;

use super::*;
use crate::packet::flow_hash;

impl Simulation<'_> {
    /// The controller of a flow's sender while its connection lives.
    pub fn controller(&mut self, flow: u32) -> Option<&Controller> {
        let flow = self.flows.get(flow)?;
        let slot = self.slot_of(flow.connection, flow.source)?;
        self.connections.end(slot).endpoint.controller()
    }

    /// Segments that living connections have sent and that are not acknowledged: what memory per packet is measured by.
    /// Looks at every connection.
    pub fn outstanding(&mut self) -> u64 {
        let slots = self.connections.living_slots();
        slots.into_iter().map(|slot| u64::from(self.connections.end(slot).endpoint.outstanding())).sum()
    }

    pub(super) fn handle_sample(&mut self, now: Time, entity: Entity) {
        let sampling = &self.plan.sampling;
        let every = match entity.id() {
            WARMUP => {
                self.end_warmup(now);
                return;
            }
            END => {
                self.end_measurement(now);
                return;
            }
            QUEUES => {
                self.sample_queues(now);
                sampling.queues
            }
            WINDOWS => {
                self.sample_windows(now);
                sampling.windows
            }
            GOODPUT => {
                self.sample_goodput(now);
                sampling.goodput
            }
            _ => {
                self.sample_throughput(now);
                sampling.throughput
            }
        };
        if now + every <= self.plan.schedule.end {
            self.network.arm(entity, now + every);
        }
    }

    pub(super) fn end_warmup(&mut self, now: Time) {
        self.network.reset_counters(now);
        self.note_living();
        self.note_arrived(|flow| &mut flow.arrived_at_warmup);
    }

    /// Nothing begins any more and nothing more is measured: ports are read, flows without a size stop, and the rest may
    /// finish.
    fn end_measurement(&mut self, now: Time) {
        self.ports = Some(self.port_rows(now));
        self.note_living();
        self.note_arrived(|flow| &mut flow.arrived_at_end);
        for number in std::mem::take(&mut self.windows_of) {
            if self.flows[number].size.is_none() {
                self.stop_flow(now, number);
            }
        }
    }

    /// The network has dropped a packet: its place in the pool is free, and what it carried is counted for its flow.
    #[inline(never)]
    pub(super) fn note_dropped(&mut self, packet: Packet) {
        let packet = self.without_telemetry(packet).0;
        let Some(packet) = self.bridges.lost(packet) else { return };
        if let Some(recorder) = &mut self.recorder {
            recorder.dropped.push(packet);
        }
        let segment = packet.unpack(&mut self.pool);
        if segment.length == 0 {
            return;
        }
        if packet.is_datagram() {
            self.settle(segment.length);
        }
        match self.flows.place(self.names.name(segment.tag)) {
            Some(number) => self.flows[number].note_dropped((segment.length.into(), 1)),
            None => {
                let (bytes, packets) = self.dropped_in_passing.entry(segment.tag.0).or_default();
                *bytes += u64::from(segment.length);
                *packets += 1;
            }
        }
    }

    /// Takes what living ends have counted so far into their flows.
    /// What has arrived of each flow, each byte once: delivered, or behind a hole.
    fn note_arrived(&mut self, field: impl Fn(&mut Flow) -> &mut u64) {
        for flow in self.flows.iter_mut() {
            *field(flow) = flow.delivered;
        }
        for slot in self.connections.living_slots() {
            let end = self.connections.end(slot);
            let Some(current) = end.receiving else { continue };
            let flow = &mut self.flows[current.flow];
            let arrived = flow.delivered + end.endpoint.tallies().beyond_bytes;
            *field(flow) = arrived.min(flow.size.map_or(u64::MAX, Bytes::get));
        }
    }

    fn note_living(&mut self) {
        for slot in self.connections.living_slots() {
            self.note_sent(slot);
            self.note_received(slot);
        }
    }

    pub(super) fn sample_queues(&mut self, now: Time) {
        for (&link, samples) in &mut self.queue_samples {
            let (bytes, _) = self.network.backlog(now, link);
            if now >= Time::ZERO + self.plan.schedule.warmup {
                samples.push(u32::try_from(bytes.get()).unwrap_or(u32::MAX));
            }
            self.series.push(SeriesRow::new(now, link, Quantity::QueueBytes, bytes.get()));
        }
    }

    pub(super) fn sample_windows(&mut self, now: Time) {
        let flows = &self.flows;
        self.windows_of.retain(|number| !flows[*number].stopped);
        for &number in &self.windows_of {
            let flow = &self.flows[number];
            if !self.owns(flow.source) {
                continue;
            }
            let Some(slot) = self.slot_of(flow.connection, flow.source) else { continue };
            let end = self.connections.end(slot);
            // A connection carries one flow with a size after the other.
            if flow.size.is_some() && end.sending.is_none_or(|current| current.flow != number) {
                continue;
            }
            let stack = self.stacks.get(end.place.stack);
            let pacing = end.endpoint.pacing(stack);
            let window = end.endpoint.window().map(|window| (Quantity::WindowPackets, window.get()));
            let pacing = pacing.map(|rate| (Quantity::PacingBps, rate.as_bps()));
            let near = end.endpoint.near_source_rate(now, stack).map(|rate| (Quantity::NearSourceBps, rate.as_bps()));
            let samples = [window, pacing, near].into_iter().flatten();
            self.series.extend(samples.map(|(quantity, value)| SeriesRow::new(now, number, quantity, value)));
        }
    }

    pub(super) fn sample_goodput(&mut self, now: Time) {
        let width = self.plan.sampling.goodput;
        for (number, reported) in std::mem::take(&mut self.goodput_of) {
            if !self.owns(self.flows[number].destination) {
                self.goodput_of.push((number, reported));
                continue;
            }
            let delivered = self.delivered_of(number);
            let new = delivered - reported;
            let flow = &self.flows[number];
            // A flow that was stopped is told of until the bin in which nothing more came, one that is done until that of its
            // last byte.
            if flow.done == Time::NEVER && (!flow.stopped || new > 0) {
                self.goodput_of.push((number, delivered));
            }
            let goodput = Rate::of(Bytes::new(new), width).as_bps();
            self.series.push(SeriesRow::new(now, number, Quantity::GoodputBps, goodput));
        }
    }

    pub(super) fn sample_throughput(&mut self, now: Time) {
        let width = self.plan.sampling.throughput;
        for (&link, last) in &mut self.sent_samples {
            let sent = self.network.sent(now, link);
            let new = sent - std::mem::replace(last, sent);
            self.series.push(SeriesRow::new(now, link, Quantity::SentBps, Rate::of(new, width).as_bps()));
        }
    }

    /// Payload of a flow delivered in order so far.
    pub(super) fn delivered_of(&mut self, number: u32) -> u64 {
        let flow = &self.flows[number];
        let Some(slot) = self.slot_of(flow.connection, flow.destination) else { return flow.delivered };
        let end = self.connections.end(slot);
        match end.receiving {
            Some(current) if current.flow == number => {
                let delivered = end.endpoint.tallies().delivered_bytes - current.base.delivered_bytes;
                delivered.min(flow.size.map_or(u64::MAX, Bytes::get))
            }
            _ => flow.delivered,
        }
    }

    /// The rows of the run as far as it has come.
    ///
    /// # Panics
    /// If the network lost track of a packet.
    pub fn finish(self) -> Results {
        let (plan, partition) = (self.plan, self.partition.clone());
        let survey = Survey { names: self.names.clone(), numbering: self.connections.numbering };
        merge(plan, &survey, &partition, vec![self.notes()])
    }

    /// By tag, the links that packets of the flows that were opened here take or may take, both ways; nothing where no link changes.
    fn paths(&self) -> BTreeMap<u32, BTreeSet<u32>> {
        let mut paths = BTreeMap::new();
        if self.plan.network.links.iter().all(|link| link.events.is_empty()) {
            return paths;
        }
        for flow in self.flows.iter() {
            let Some(connection) =
                flow.connection.filter(|&connection| self.owns(self.connections.numbering.opener(connection)))
            else {
                continue;
            };
            let ways = |from, to| self.network.possible_links(from, to, flow_hash(connection, to));
            let there = ways(flow.source, flow.destination);
            let both = there.into_iter().chain(ways(flow.destination, flow.source));
            let changes = |link: &u32| !self.plan.network.links[*link as usize].events.is_empty();
            let links = both.filter(changes).collect();
            paths.insert(self.names.tag(flow.name).0, links);
        }
        paths
    }

    /// What this part has noted.
    ///
    /// # Panics
    /// If the network lost track of a packet.
    pub(crate) fn notes(mut self) -> Notes {
        let now = self.now;
        self.note_living();
        let ports = self.ports.take().unwrap_or_else(|| self.port_rows(now));
        let ranks = RankRow::of_programs(&self.apps, self.plan.schedule.end);
        // Every packet of the drain is accounted for as well.
        self.network.finish(now);
        let paths = self.paths();
        let place_of = |tag| self.flows.place(self.names.name(Tag(tag)));
        let trace = self.recorder.as_ref().map(|recorder| recorder.rows(self.plan, &self.flows, place_of));
        Notes {
            trace: trace.unwrap_or_default(),
            paths,
            flows: self.flows,
            dropped_in_passing: self.dropped_in_passing,
            queries: self.queries,
            ports,
            series: self.series,
            bridges: self.bridges.rows(),
            ranks,
            packet_hops: self.network.packet_hops(),
            events: self.network.events(),
            ended: now,
        }
    }

    pub(super) fn port_rows(&mut self, now: Time) -> Vec<PortRow> {
        let counters = self.network.finish(now);
        let rows = (0..).zip(&self.plan.network.links).zip(&counters).map(|((port, link), counters)| {
            let looks = self.queue_samples.remove(&port).unwrap_or_default();
            PortRow::new(port, link, counters, looks, now)
        });
        rows.collect()
    }
}
