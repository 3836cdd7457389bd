//! The recorder's view of a run: it is told what happens, and looks at what an event has touched.

use std::collections::BTreeMap;

use super::*;
use crate::packet::flow_hash;
use crate::trace::{Look, Selection, TracedFlow, Trigger, key, wait_of};

impl Simulation<'_> {
    /// Records what happens to these flows from now on; before anything has happened, and in a run of one part.
    pub(crate) fn record(&mut self, selection: Selection) {
        self.network.trace();
        self.recorder = Some(Box::new(Recorder::new(selection, self.connections.numbering)));
    }

    /// As [`run`](Self::run), with a recorder.
    #[inline(never)]
    pub(super) fn run_recorded(&mut self, until: Time, budget: u64) -> Option<u64> {
        for handled in 0..budget {
            let Some((now, event)) = self.network.next(until) else {
                self.now = until;
                return Some(budget - handled);
            };
            self.now = now;
            let host = self.host_of(&event);
            let timer = match &event {
                Event::Due(entity) if entity.class() == Class::Timer => {
                    let end = self.connections.end_if_alive(entity.slot() >> 1);
                    end.map(|end| key(end.connection, end.place.side()))
                }
                _ => None,
            };
            self.handle(now, event);
            let handed_up =
                host.map(|host| (host, self.adapters.as_ref().is_none_or(|adapters| adapters.is_idle(host))));
            self.look(now, timer, handed_up);
        }
        None
    }

    /// The host whose stack may get packets by an event.
    fn host_of(&self, event: &Event<Packet>) -> Option<u32> {
        match event {
            Event::Arrival { host, .. } => Some(*host),
            Event::Due(entity) if entity.class() == Class::Start && entity.id() >= POLLS => {
                u32::try_from(entity.id() - POLLS).ok()
            }
            _ => None,
        }
    }

    /// A flow has begun: it is traced if it was asked for.
    pub(super) fn record_flow(&mut self, now: Time, number: u32, tag: Tag) {
        let Some(mut recorder) = self.recorder.take() else { return };
        let (flow, numbering) = (&self.flows[number], self.connections.numbering);
        let (name, start, source, destination) = (flow.name, flow.start, flow.source, flow.destination);
        if let Some(connection) = flow.connection
            && recorder.wants(name, start, source, destination)
        {
            recorder.begin(TracedFlow { place: number, tag: tag.0, connection, source, start });
            for (side, host, peer) in
                [source, destination].map(|host| (numbering.side(host, connection), host, source + destination - host))
            {
                let slot = self.connections.slot(connection, side);
                let end = slot.map(|slot| self.connections.end(slot));
                let una =
                    end.and_then(|end| Some(end.endpoint.snapshot(now, self.stacks.get(end.place.stack))?.una.get()));
                let log = recorder.ends.get_mut(&key(connection, side)).expect("it was just put there");
                log.path = self.network.path(host, peer, flow_hash(connection, peer));
                log.latest[0] = log.latest[0].max(una.unwrap_or(0));
            }
            recorder.started.insert(key(connection, numbering.side(source, connection)));
        }
        self.recorder = Some(recorder);
    }

    /// Takes over what the network noted, before what packets have in the pool gives way to others.
    pub(super) fn note(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            self.network.take_notes(&mut recorder.notes);
            // A tracer knows packets as their hosts sent them.
            for packet in recorder.notes.iter_mut().filter_map(|note| note.what.packet_mut()) {
                if let Some(place) = packet.wrapped().filter(|_| self.has_telemetry) {
                    *packet = packet.unwrap(self.network.kept_beside_telemetry(place), 0);
                }
            }
            recorder.take(self.plan, &self.pool, &self.flows);
        }
    }

    /// After an event: takes over what the network noted, and looks at the ends that it has touched. What has arrived at the
    /// host `handed_up` has gone to its stack: all of it, or what waits for no poll.
    fn look(&mut self, now: Time, timer: Option<(u32, u8)>, handed_up: Option<(u32, bool)>) {
        self.note();
        let Some(mut recorder) = self.recorder.take() else { return };
        if let Some((host, all)) = handed_up {
            recorder.hand_up(now, host, all);
        }
        let mut touched: BTreeMap<(u32, u8), Option<u32>> = std::mem::take(&mut recorder.touched);
        let started = std::mem::take(&mut recorder.started);
        let known = started.iter().chain(timer.iter()).filter(|end| recorder.looks_at(**end));
        for end in known {
            touched.entry(*end).or_default();
        }
        for (end, packet) in touched {
            let side = if end.1 == 0 { Side::Opener } else { Side::Other };
            let Some(slot) = self.connections.slot(end.0, side) else { continue };
            let one = self.connections.end(slot);
            let stack = self.stacks.get(one.place.stack);
            let log = recorder.ends.get_mut(&end).expect("only what is traced is touched");
            let snapshot = one.endpoint.snapshot(now, stack);
            let timeouts = |look: &Look| look.snapshot.map_or(0, |snapshot| snapshot.timeouts);
            let before = log.looks.last().map_or(0, timeouts);
            let trigger = match packet {
                Some(packet) => Trigger::Packet(packet),
                None if snapshot.is_some_and(|snapshot| snapshot.timeouts > before) => Trigger::Timeout,
                None if timer == Some(end) => Trigger::Timer,
                None if started.contains(&end) => Trigger::Start,
                None => Trigger::Other,
            };
            let last = log.looks.last().map_or(u32::MAX, |look| look.flow);
            let flow = one.sending.map_or(last, |current| current.flow);
            let wait = wait_of(one, now, stack);
            let host = one.place.host;
            log.looks.push(Look { at: now, trigger, wait, flow, host, snapshot });
        }
        self.recorder = Some(recorder);
    }
}
