//! Urgent queues: beside a link a port of highest priority, served before the link's own: for notifications inside a site, and for
//! what the two routers of an edge pair retransmit and tell each other.

use super::{NONE, Offered, Ports, index, wire_bytes};
use crate::network::Payload;
use crate::port::First;
use narrows_core::queue::Limit;
use narrows_core::units::{Span, Time};
use narrows_plan::{Graph, Link, NodeKind, Role};

impl<P: Payload> Ports<P> {
    /// One beside each edge pair's link, and beside every link inside a site where anything sends `notifications`, at the link's
    /// rate. A served port has such a queue of its own, and one here for its wire alone, where it leads to a host with a stack.
    /// Notifications end below the stack of a host.
    pub(super) fn add_urgent_queues(&mut self, graph: &Graph, served: &[bool], notifications: bool, seed: u64) {
        let is_host = |node: u32| graph.nodes[node as usize].kind == NodeKind::Host;
        for (id, link) in graph.links.iter().enumerate() {
            let inside = is_inside(graph, link);
            let (name, loss) = match link.bridge {
                None if served[id] && (link.stack == Span::ZERO || is_host(link.from)) => {
                    self.urgent_queues.push(NONE);
                    continue;
                }
                None if served[id] => (format!("{}/urgent", link.name), 0),
                Some(_) => (format!("{}/urgent", link.name), link.loss),
                None if notifications && inside => (format!("{}/notifications", link.name), 0),
                None => {
                    self.urgent_queues.push(NONE);
                    continue;
                }
            };
            self.urgent_queues.push(index(self.ports.len()));
            self.beside.push(index(id));
            let queue = Link {
                name,
                delay: link.delay.saturating_sub(link.stack),
                limit: Limit::Unlimited,
                pooled: false,
                aqm: None,
                congestion_point: None,
                scheduler: None,
                ingress: None,
                pauses: None,
                loss,
                // What edges say and repair meets what all meets on the wire; notifications are never lost.
                functions: if link.bridge.is_some() { link.functions.clone() } else { Vec::new() },
                events: Vec::new(),
                jitter: Span::ZERO,
                ..link.clone()
            };
            self.add(&queue, (false, self.ports[id].far_end()), NONE, None, seed);
            if served[id] {
                let added = index(self.ports.len() - 1);
                self.ports[added as usize].special = true;
                self.served[self.ports[id].served as usize].urgent_wire = added;
            }
        }
    }

    /// The urgent queue beside a link, if it has one.
    pub(crate) fn urgent_queue(&self, link: u32) -> Option<u32> {
        self.urgent_queues.get(link as usize).copied().filter(|&queue| queue != NONE)
    }

    /// Whether this is no link but an urgent queue.
    #[inline(always)]
    pub(crate) fn is_urgent_queue(&self, link: u32) -> bool {
        link >= self.links
    }

    /// The link that this is, or is the urgent queue of.
    pub(crate) fn link_of(&self, link: u32) -> u32 {
        link.checked_sub(self.links).map_or(link, |queue| self.beside[queue as usize])
    }

    /// A notification goes out beside the traffic of `link`: it waits for the packet in service and for those before it in
    /// its `queue`, and the traffic waits for it.
    pub(crate) fn notify(&mut self, now: Time, link: u32, queue: u32, packet: P) -> (Offered, Option<First>) {
        self.settle(now, link);
        let main = &self.ports[link as usize];
        let first = (main.held_packets > 0).then(|| self.store.first_unsettled(&main.ring));
        let ready = first.map_or(now, |record| {
            let departure = Time::from_ps(record.at.as_ps() - main.delay.as_ps());
            let service = self.rules[link as usize].line.time_for(wire_bytes(record.packet.ip_bytes()));
            // Behind an earlier notification it may not have begun.
            if departure.since(now).as_ps() > service { now } else { departure.max(now) }
        });
        let free_before = self.ports[queue as usize].free_at.max(ready);
        let (offered, first) = self.admit(now, ready, queue, packet);
        let Offered::Accepted { departure, .. } = offered else { unreachable!("an urgent queue refuses nothing") };
        let main = &mut self.ports[link as usize];
        main.free_at = main.free_at.max(now) + departure.since(free_before);
        (offered, first)
    }

    /// Number of links and urgent queues.
    pub(crate) fn with_urgent_queues(&self) -> u32 {
        index(self.ports.len())
    }
}

/// Whether a link does not leave its site: notifications may take it.
pub(super) fn is_inside(graph: &Graph, link: &Link) -> bool {
    link.role != Role::Wan && !graph.crosses(link.from, link.to)
}
