//! The explicit model: an event for each departure, and nothing clever.

use super::port::{Held, Port};
use super::{Case, Seen, order};
use crate::support::Packet;
use narrows_core::link::{Change, Event as LinkEvent, Fate};
use narrows_core::queue::aqm::{Arrival, Departure, Size, Verdict};
use narrows_core::queue::pfc::pause_time;
use narrows_core::queue::scheduler::Discipline;
use narrows_core::queue::{AqmConfig, Backlog, DropReason, Limit};
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_network::Payload;
use narrows_plan::{Graph, NodeKind};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// Added to a link, what is urgent on it, where it comes by a wire of its own.
const URGENT: u32 = 1_000;
/// Added to a link, what is late on its wire.
const LATE: u32 = 100_000;
/// One bit, where rates are per second and times in picoseconds.
const BIT: u128 = 1_000_000_000_000;

/// Kinds of events at equal times, in their order.
const CHANGE: u32 = 0;
const SERVICE: u32 = 1;
const READY: u32 = 2;
const ARRIVAL: u32 = 3;
const START: u32 = 4;
const SAMPLE: u32 = 5;

struct Explicit<'a> {
    case: &'a Case,
    ports: Vec<Port>,
    served: Vec<bool>,
    /// Time, kind, identifier.
    events: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Links over which frames are to be sent.
    frames: VecDeque<usize>,
    /// By link and priority: whether too much came over it.
    over: BTreeSet<(usize, u8)>,
    /// By link and priority: by how many reasons it is paused.
    claims: BTreeMap<(usize, u8), u32>,
    seen: Vec<Seen>,
    left: Vec<Seen>,
    /// What was dropped after it was accepted, and when.
    withdrawn: BTreeMap<u32, u64>,
}

impl Explicit<'_> {
    /// Links of this case come in pairs, one for each direction.
    fn back(link: usize) -> usize {
        link ^ 1
    }

    fn is_host(&self, node: u32) -> bool {
        self.case.graph.nodes[node as usize].kind == NodeKind::Host
    }

    fn of_switch(&self, node: u32) -> impl Iterator<Item = &Held> {
        let links = self.case.graph.links.iter();
        self.ports.iter().zip(links).filter(move |(_, link)| link.from == node).flat_map(|(port, _)| port.held())
    }

    /// What the switch at its end holds of a link, of one priority or all.
    fn memory(&self, link: usize, priority: Option<u8>) -> u64 {
        self.of_switch(self.case.graph.links[link].to)
            .filter(|(packet, from, _)| *from == Some(link) && priority.is_none_or(|priority| packet.class == priority))
            .map(|(packet, ..)| u64::from(packet.size))
            .sum()
    }

    fn claim(&mut self, link: usize, priority: u8, more: bool) {
        let claims = self.claims.entry((link, priority)).or_default();
        let before = *claims;
        if more {
            *claims += 1
        } else {
            *claims -= 1
        }
        if before == 0 || *claims == 0 {
            self.frames.push_back(Self::back(link));
        }
    }

    fn offer(&mut self, now: u64, link: u32, from: Option<usize>, mut packet: Packet) {
        let description = &self.case.graph.links[link as usize];
        let port = &mut self.ports[link as usize];
        let queue = port.queue_of(&packet);
        let (bytes, packets) = port.backlog_of(queue);
        port.advance(now);
        let (bytes, packets) =
            if port.dual.is_some() { (port.bytes(), port.held().count() as u64) } else { (bytes, packets) };
        let together = port.flows.is_some() || port.dual.is_some();
        let (share, shares) = if together { (port.bytes(), 1) } else { (bytes, port.waiting.len() as u64) };
        let shares_limit = port.flows.is_none();
        let size = u64::from(packet.size);
        let ingress = from.and_then(|from| self.case.graph.links[from].ingress);
        if let Some(narrows_plan::Ingress { limit: Limit::Bytes(most), .. }) = ingress
            && self.memory(from.unwrap(), None) + size > most.get()
        {
            return self.drop(now, link, DropReason::Limit, packet);
        }
        if self.ports[link as usize].is_down {
            return self.drop(now, link, DropReason::Outage, packet);
        }
        let phantom = self.ports[link as usize].phantoms.get_mut(queue).map(|aqm| {
            aqm.decide(&Arrival {
                now: Time::from_ps(now),
                size: Bytes::new(packet.size.into()),
                backlog: Backlog::EMPTY,
                idle_since: Time::ZERO,
                ecn_capable: packet.capable,
            })
        });
        let fits = match description.limit {
            _ if !shares_limit => true,
            Limit::Unlimited => true,
            Limit::Packets(most) => packets < most.get() / shares,
            Limit::Bytes(most) => bytes + size <= most.get() / shares,
        };
        if !fits {
            return self.drop(now, link, DropReason::Limit, packet);
        }
        if description.pooled {
            let pool = self.case.graph.nodes[description.from as usize].pool.unwrap();
            let ports = self.ports.iter().zip(&self.case.graph.links);
            let used: u64 =
                ports.filter(|(_, l)| l.pooled && l.from == description.from).map(|(port, _)| port.bytes()).sum();
            let free = pool.size.get() - used;
            if size > free || (share + size) * shares * 65_536 > u64::from(pool.alpha) * free {
                return self.drop(now, link, DropReason::Pool, packet);
            }
        }
        let is_marked = is_above(description.aqm, false, bytes, packets) || phantom == Some(Verdict::Mark);
        if packet.capable && is_marked {
            packet.marked = true;
            self.ports[link as usize].marked += 1;
        }
        let of_served_host = self.is_host(description.from) && self.served[link as usize];
        let port = &mut self.ports[link as usize];
        port.pass(now);
        port.waiting[queue].push_back((packet, from, now));
        if of_served_host {
            let ready = now + description.stack.as_ps();
            port.ready.push_back(ready);
            self.events.push(Reverse((ready, READY, link)));
        }
        if port.waiting[queue].len() == 1 && (port.dual.is_some() || !port.is_paused(queue)) {
            port.turns.push_back(queue);
        }
        if let Some(flows) = &mut port.flows
            && !flows.new.contains(&queue)
            && !flows.old.contains(&queue)
        {
            flows.new.push_back(queue);
            flows.credits[queue] = flows.quantum;
        }
        if let Some(from) = from {
            self.pause_whoever_fills(link as usize, from, packet.class);
        }
        loop {
            let port = &self.ports[link as usize];
            let is_within = match description.limit {
                Limit::Packets(most) => port.held().count() as u64 <= most.get(),
                Limit::Bytes(most) => port.bytes() <= most.get(),
                Limit::Unlimited => true,
            };
            if shares_limit || is_within {
                break;
            }
            let waits = |queue: &VecDeque<Held>| queue.iter().map(|(packet, ..)| u64::from(packet.size)).sum::<u64>();
            let most = port.waiting.iter().map(waits).max().unwrap();
            let longest = port.waiting.iter().position(|queue| waits(queue) == most).unwrap();
            self.withdraw(now, link, longest, DropReason::Limit);
        }
        let port = &mut self.ports[link as usize];
        port.max = port.max.max(port.bytes());
        if self.ports[link as usize].in_service.is_none() {
            self.begin(now, link);
        }
    }

    fn pause_whoever_fills(&mut self, link: usize, from: usize, priority: u8) {
        let graph = &self.case.graph;
        if let Some(thresholds) = graph.links[from].ingress.and_then(|memory| memory.thresholds)
            && self.memory(from, Some(priority)) > thresholds.xoff.get()
            && self.over.insert((from, priority))
        {
            self.claim(from, priority, true);
        }
        if let Some(thresholds) = graph.links[link].pauses {
            let port = &self.ports[link];
            let pauses = port.bytes() > thresholds.xoff.get() || !port.feeders.is_empty();
            if pauses && !port.feeders.contains(&(from, priority)) {
                self.ports[link].feeders.push((from, priority));
                self.claim(from, priority, true);
            }
        }
    }

    /// The first packet of a queue is dropped.
    fn withdraw(&mut self, now: u64, link: u32, queue: usize, reason: DropReason) {
        let port = &mut self.ports[link as usize];
        port.pass(now);
        port.advance(now);
        let held = port.waiting[queue].pop_front().unwrap();
        if port.waiting[queue].is_empty() {
            port.leave(queue);
        }
        port.dropped[reason as usize] += 1;
        self.withdrawn.insert(held.0.id, now);
        self.resume_whoever_fills(link as usize, held);
    }

    fn resume_whoever_fills(&mut self, link: usize, (packet, from, _): Held) {
        let (graph, priority) = (&self.case.graph, packet.class);
        let Some(from) = from else { return };
        if let Some(thresholds) = graph.links[from].ingress.and_then(|memory| memory.thresholds)
            && self.memory(from, Some(priority)) <= thresholds.xon.get()
            && self.over.remove(&(from, priority))
        {
            self.claim(from, priority, false);
        }
        if let Some(thresholds) = graph.links[link].pauses
            && self.ports[link].bytes() <= thresholds.xon.get()
        {
            for (from, priority) in std::mem::take(&mut self.ports[link].feeders) {
                self.claim(from, priority, false);
            }
        }
    }

    fn drop(&mut self, now: u64, link: u32, reason: DropReason, packet: Packet) {
        self.ports[link as usize].dropped[reason as usize] += 1;
        self.seen.push(Seen::Dropped(now, packet.id));
    }

    /// Whoever is next goes into service, if anybody may. What its AQM drops is dropped first.
    fn begin(&mut self, now: u64, link: u32) {
        let description = &self.case.graph.links[link as usize];
        let size = loop {
            let frame = std::mem::take(&mut self.ports[link as usize].frame_due).then(|| self.frame(link as usize));
            let port = &mut self.ports[link as usize];
            if let Some(packet) = frame.or_else(|| port.urgent.pop_front()) {
                (port.in_service, port.is_urgent) = (Some((packet, None, now)), true);
                break u64::from(packet.size);
            }
            port.is_urgent = false;
            port.advance(now);
            let Some(queue) = port.next_queue(now) else { return };
            let (packet, _, came) = port.waiting[queue][0];
            let (bytes, packets) = port.backlog_of(queue);
            let (bytes, packets) = (bytes - u64::from(packet.size), packets - 1);
            let above = is_above(description.aqm, true, bytes, packets);
            let mut verdict = if above && packet.capable { Verdict::Mark } else { Verdict::Pass };
            let backlog = Backlog { bytes: Bytes::new(bytes), packets: Packets::new(packets) };
            let sojourn = Span::from_ps(now - came);
            let departure = Departure {
                now: Time::from_ps(now),
                sojourn,
                size: Bytes::new(packet.size.into()),
                backlog,
                ecn_capable: packet.capable,
            };
            if let Some(phantom) = port.phantoms.get_mut(queue) {
                verdict = phantom.leaves(&departure);
            } else if let Some(codel) = port.codels.get_mut(queue) {
                verdict = codel.leaves(&departure);
            } else if let Some(dual) = &mut port.dual {
                verdict = dual.leaves(queue, &departure);
            }
            match verdict {
                Verdict::Drop => {
                    self.withdraw(now, link, queue, DropReason::Aqm);
                    continue;
                }
                Verdict::Mark => {
                    port.waiting[queue][0].0.marked = true;
                    port.marked += 1;
                }
                Verdict::Pass => {}
            }
            break port.send(queue);
        };
        let port = &mut self.ports[link as usize];
        (port.work, port.worked_at, port.begun_at) = (u128::from((size + 38).max(84)) * 8 * BIT, now, now);
        self.expect_end(now, link);
    }

    /// A frame that goes out over a link: what is paused of the other direction now.
    fn frame(&self, over: usize) -> Packet {
        let paused = Self::back(over);
        let is_paused = |priority: &u8| self.claims.get(&(paused, *priority)).is_some_and(|claims| *claims > 0);
        let priorities = (0..8).filter(is_paused).fold(0, |priorities, priority| priorities | 1 << priority);
        Packet::pause(priorities, pause_time(Rate::from_bps(self.ports[paused].rate))).unwrap()
    }

    /// Frames that have come to be due: each goes out when what is in service has left, and says what holds then.
    fn send_frames(&mut self, now: u64) {
        while let Some(over) = self.frames.pop_front() {
            let link = u32::try_from(over).unwrap();
            self.service_ends(now, link);
            let port = &mut self.ports[over];
            port.frames += u64::from(!port.frame_due);
            port.frame_due = true;
            if port.in_service.is_none() {
                self.begin(now, link);
            }
        }
    }

    /// The packet in service ends when its rest is done at the rate of now.
    fn expect_end(&mut self, now: u64, link: u32) {
        let port = &mut self.ports[link as usize];
        port.service_due = now + u64::try_from(port.work.div_ceil(u128::from(port.rate))).unwrap();
        self.events.push(Reverse((port.service_due, SERVICE, link)));
    }

    fn change(&mut self, now: u64, link: u32, change: Change) {
        let port = &mut self.ports[link as usize];
        match change {
            Change::Rate(rate) => {
                let done = u128::from(now - port.worked_at) * u128::from(port.rate);
                (port.work, port.worked_at) = (port.work.saturating_sub(done), now);
                port.rate = rate.as_bps();
                if port.in_service.is_some() {
                    self.expect_end(now, link);
                }
            }
            Change::Down => {
                port.pass(now);
                let mut waiting: Vec<Held> = port.in_service.take().into_iter().collect();
                if !self.served[link as usize] {
                    waiting.extend(port.waiting[0].drain(..));
                }
                port.dropped[DropReason::Outage as usize] += waiting.len() as u64;
                (port.is_down, port.service_due) = (true, u64::MAX);
                for (packet, from, came) in waiting {
                    self.ports[link as usize].wire.push_back((packet, now));
                    let at = now + self.case.graph.links[link as usize].least_delay().as_ps();
                    self.events.push(Reverse((at, ARRIVAL, link)));
                    self.resume_whoever_fills(link as usize, (packet, from, came));
                }
                for queue in 0..self.ports[link as usize].waiting.len() {
                    while !self.ports[link as usize].waiting[queue].is_empty() {
                        self.withdraw(now, link, queue, DropReason::Outage);
                    }
                }
                if let Some(flows) = &mut self.ports[link as usize].flows {
                    flows.new.clear();
                    flows.old.clear();
                }
            }
            Change::Up => port.is_down = false,
            Change::Delay(_) | Change::Loss(_) => {}
        }
    }

    /// What becomes of a packet on the wire of a link that it has left at `left`: when it arrives, and whether it is late;
    /// `None` if it is lost.
    fn crosses(&mut self, link: u32, left: u64, packet: &Packet) -> Option<(u64, bool)> {
        let events = &self.case.graph.links[link as usize].events;
        let delay = events.iter().rev().find_map(|event| match event.change {
            Change::Delay(delay) if event.at.as_ps() <= left => Some(delay),
            _ => None,
        });
        let went_down = |from: u64, until: u64| {
            events.iter().any(|event| event.change == Change::Down && (from..until).contains(&event.at.as_ps()))
        };
        if went_down(left, left + 1) {
            return None;
        }
        let description = &self.case.graph.links[link as usize];
        // A host's stack is before its port where that is served.
        let is_before = self.served[link as usize] && self.is_host(description.from);
        let stack = if is_before { description.stack.as_ps() } else { 0 };
        let port = &mut self.ports[link as usize];
        let arrival = port.in_order.max(left + delay.unwrap_or(description.delay).as_ps() - stack);
        port.in_order = arrival;
        if went_down(left, arrival) {
            port.dropped[DropReason::Cut as usize] += 1;
            return None;
        }
        let mut extra = 0;
        for function in &mut port.functions {
            match function.decide(packet.size > 0) {
                Fate::Arrives => {}
                Fate::Late(more) => extra += more.as_ps(),
                Fate::Lost => {
                    port.dropped[DropReason::Impairment as usize] += 1;
                    return None;
                }
            }
        }
        port.were_late += u64::from(extra > 0);
        Some((arrival + extra, extra > 0))
    }

    fn service_ends(&mut self, now: u64, link: u32) {
        let description = &self.case.graph.links[link as usize];
        let port = &mut self.ports[link as usize];
        // A change of the line may have moved it.
        if port.service_due != now {
            return;
        }
        port.service_due = u64::MAX;
        port.pass(now);
        let held = port.in_service.take().unwrap();
        let (is_urgent, stack) = (port.is_urgent, description.stack.as_ps());
        let beside = is_urgent && stack > 0;
        if beside {
            port.urgent_wire.push_back(held.0)
        } else {
            port.wire.push_back((held.0, now))
        }
        if !is_urgent {
            port.sent.0 += 1;
            port.sent.1 += u64::from(held.0.size);
            self.resume_whoever_fills(link as usize, held);
            if self.served[link as usize] && self.is_host(description.from) {
                self.left.push(Seen::Left(now, link, held.0.id));
            }
        }
        self.begin(now, link);
        // A host's stack is before its port where that is served.
        let before = beside || self.served[link as usize] && self.is_host(description.from);
        let at = now + description.least_delay().as_ps() - if before { stack } else { 0 };
        self.events.push(Reverse((at, ARRIVAL, if beside { URGENT + link } else { link })));
    }

    fn arrives(&mut self, now: u64, link: u32) {
        if link >= LATE {
            let (_, packet) = self.ports[(link - LATE) as usize].late.pop_first().unwrap();
            return self.reaches(now, link - LATE, packet);
        }
        let (beside, link) = (link >= URGENT, link % URGENT);
        let port = &mut self.ports[link as usize];
        let (packet, left) =
            if beside { (port.urgent_wire.pop_front().unwrap(), now) } else { port.wire.pop_front().unwrap() };
        if let Some((priorities, _)) = packet.pause {
            let paused = Self::back(link as usize);
            self.ports[paused].set_pauses(now, priorities);
            if self.ports[paused].in_service.is_none() {
                self.begin(now, u32::try_from(paused).unwrap());
            }
            return;
        }
        if beside {
            return self.reaches(now, link, packet);
        }
        let Some((at, _)) = self.crosses(link, left, &packet) else {
            self.seen.push(Seen::Dropped(now, packet.id));
            return;
        };
        let port = &mut self.ports[link as usize];
        let is_turn = port.late.keys().all(|(late, _)| *late > now);
        if at == now && is_turn {
            return self.reaches(now, link, packet);
        }
        port.came += 1;
        port.late.insert((at, port.came), packet);
        self.events.push(Reverse((at, ARRIVAL, LATE + link)));
    }

    fn reaches(&mut self, now: u64, link: u32, packet: Packet) {
        let node = self.case.graph.links[link as usize].to;
        match self.case.graph.nodes[node as usize].kind {
            NodeKind::Host => self.seen.push(Seen::Arrived(now, node, packet)),
            NodeKind::Switch => {
                self.offer(now, towards(&self.case.graph, node, packet.destination), Some(link as usize), packet);
            }
        }
    }

    fn run(mut self) -> (Vec<Seen>, BTreeMap<u32, u64>) {
        let graph = &self.case.graph;
        self.events.extend((0..).zip(&self.case.packets).map(|(i, packet)| Reverse((packet.0, START, i))));
        self.events.extend((0..).zip(&self.case.samples).map(|(i, &at)| Reverse((at, SAMPLE, i))));
        self.events.push(Reverse((self.case.reset, SAMPLE, u32::MAX)));
        let links = (0..).zip(&graph.links);
        let changes: Vec<(u32, LinkEvent)> =
            links.flat_map(|(link, of)| of.events.iter().map(move |event| (link, *event))).collect();
        self.events.extend((0..).zip(&changes).map(|(i, (_, event))| Reverse((event.at.as_ps(), CHANGE, i))));
        while let Some(Reverse((now, class, id))) = self.events.pop() {
            if now > self.case.end {
                break;
            }
            match class {
                CHANGE => {
                    let (link, event) = changes[id as usize];
                    self.change(now, link, event.change);
                }
                SERVICE => self.service_ends(now, id),
                READY => {
                    if self.ports[id as usize].in_service.is_none() {
                        self.begin(now, id);
                    }
                }
                ARRIVAL => self.arrives(now, id),
                START => {
                    let (_, host, packet) = self.case.packets[id as usize];
                    self.offer(now, towards(graph, host, packet.destination), None, packet);
                }
                _ if id == u32::MAX => {
                    for port in &mut self.ports {
                        port.begun_before = port.begun(now);
                        (port.dropped, port.marked, port.were_late) = ([0; DropReason::COUNT], 0, 0);
                        (port.sent, port.max, port.integral, port.touched) = ((0, 0), port.bytes(), 0, now);
                        (port.paused_for, port.longest_pause, port.paused_since, port.frames) = (0, 0, now, 0);
                    }
                }
                _ => {
                    for (link, port) in (0..).zip(&self.ports) {
                        self.seen.push(Seen::Backlog(now, link, port.bytes(), port.held().count() as u64));
                    }
                }
            }
            self.send_frames(now);
        }
        let end = self.case.end;
        self.left.sort_by_key(order);
        self.seen.append(&mut self.left);
        for (link, port) in (0..).zip(&mut self.ports) {
            port.pass(end);
            let changes = !self.case.graph.links[link as usize].events.is_empty();
            let begun = [port.begun_before, port.begun(end)].map(|begun| if changes { 0 } else { begun });
            let running = if port.paused.contains(&true) { end - port.paused_since } else { 0 };
            let Port { sent, max, integral, dropped, marked, frames, .. } = *port;
            let told = [marked, port.paused_for + running, port.longest_pause.max(running), frames, port.were_late];
            self.seen.push(Seen::Counters(link, sent.0, sent.1, max, integral, begun, dropped, told));
        }
        (self.seen, self.withdrawn)
    }
}

/// Whether a threshold is exceeded, of a packet that comes or of one that leaves.
fn is_above(aqm: Option<AqmConfig>, leaves: bool, bytes: u64, packets: u64) -> bool {
    match aqm {
        Some(AqmConfig::Threshold(aqm)) if aqm.at_dequeue == leaves => match aqm.mark_at {
            Size::Packets(k) => packets > k.get(),
            Size::Bytes(k) => bytes > k.get(),
        },
        _ => false,
    }
}

/// What happens, and what was dropped after it had been accepted, and when.
pub(super) fn explicit(case: &Case) -> (Vec<Seen>, BTreeMap<u32, u64>) {
    let ports = case.graph.links.iter().map(Port::new).collect();
    let (events, frames, seen, left) = (BinaryHeap::new(), VecDeque::new(), Vec::new(), Vec::new());
    let (over, claims) = (BTreeSet::new(), BTreeMap::new());
    let (served, withdrawn) = (case.graph.served(), BTreeMap::new());
    Explicit { case, ports, served, events, frames, over, claims, seen, left, withdrawn }.run()
}

/// The link towards `destination` in a tree: the one behind which it can be found.
fn towards(graph: &Graph, from: u32, destination: u32) -> u32 {
    fn leads(graph: &Graph, link: usize, destination: u32) -> bool {
        let (back, here) = (graph.links[link].from, graph.links[link].to);
        here == destination
            || (0..graph.links.len()).any(|next| {
                graph.links[next].from == here && graph.links[next].to != back && leads(graph, next, destination)
            })
    }
    let link = (0..graph.links.len()).find(|&link| graph.links[link].from == from && leads(graph, link, destination));
    u32::try_from(link.unwrap()).unwrap()
}
