//! The plan's network with one more answer than [`Network`] gives: when something is due next. A driver on a real clock
//! must know how long it may sleep.
//!
//! Every link is cut: the nodes are coloured so that no link joins two of one colour, each colour is a part of the network,
//! and what a port accepts for its link lies here, in the order of arrival, until its time has come. Then the part that owns
//! the far end takes it, and at once says what becomes of it. Events come in the order of [`Network::next`], time and then
//! link, and the parts' counters together are the whole network's.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use narrows_core::probe::{DropReason, NoProbe};
use narrows_core::units::{Bytes, Packets, Span, Time};
use narrows_network::partition::MOST_PARTS;
use narrows_network::{Carried, Counters, Event, GraphError, Network, Offered, Partition, Payload};
use narrows_scenario::plan::{Graph, NodeKind};

/// Why a plan's network cannot be emulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    /// It is no network.
    #[error("the network of the plan is not usable: {0}")]
    Graph(#[from] GraphError),
    /// Too many switches are all linked to each other.
    #[error("node {node} is linked to nodes of all {MOST_PARTS} colours: the network is too densely meshed to emulate")]
    TooDense {
        /// The node.
        node: u32,
    },
}

/// See the [module](self).
#[derive(Debug)]
pub struct Fabric<P> {
    parts: Vec<Network<P>>,
    /// By link: the parts of its two ends.
    ends: Vec<(u32, u32)>,
    /// By link: accepted and not yet arrived, oldest first.
    wires: Vec<VecDeque<(Time, P)>>,
    /// The first packet of each wire that has one.
    due: BinaryHeap<Reverse<(Time, u32)>>,
    inside: usize,
}

impl<P: Payload> Fabric<P> {
    /// A network at rest; `seed` as for [`Network::new`].
    ///
    /// # Errors
    /// If the graph is no network, or cannot be coloured.
    pub fn new(graph: &Graph, seed: u64) -> Result<Fabric<P>, FabricError> {
        // A graph that is no network is refused before it is looked at closely.
        Network::<P>::new(graph, seed)?;
        let colours = colours(graph)?;
        let partition = apart(graph, &colours);
        let parts = (0..partition.count()).map(|part| Network::part(graph, seed, &partition, part));
        Ok(Fabric {
            parts: parts.collect::<Result<_, _>>()?,
            ends: graph.links.iter().map(|link| (partition.part_of(link.from), partition.part_of(link.to))).collect(),
            wires: graph.links.iter().map(|_| VecDeque::new()).collect(),
            due: BinaryHeap::with_capacity(graph.links.len()),
            inside: 0,
        })
    }

    /// The one link out of a host.
    pub fn host_link(&self, host: u32) -> u32 {
        self.parts[0].host_link(host)
    }

    /// The links that a packet of a flow takes from one host to another, in order.
    pub fn path(&self, from: u32, to: u32, flow_hash: u32) -> Vec<u32> {
        self.parts[0].path(from, to, flow_hash)
    }

    /// Offers a packet to a host's port. `now` is not before the last event, nor before what [`Fabric::next_at`] says.
    pub fn offer(&mut self, now: Time, link: u32, packet: P) -> Offered {
        debug_assert!(self.next_at().is_none_or(|at| at >= now), "what is due first is handled first");
        let part = self.ends[link as usize].0;
        let offered = self.parts[part as usize].offer(now, link, packet, &mut NoProbe);
        self.inside += usize::from(matches!(offered, Offered::Accepted { .. }));
        self.collect(part);
        offered
    }

    /// When something is due next: nothing happens before.
    pub fn next_at(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// The next packet that reaches a host, or is dropped, up to and including `until`.
    pub fn next(&mut self, until: Time) -> Option<(Time, Event<P>)> {
        while let Some(&Reverse((at, link))) = self.due.peek()
            && at <= until
        {
            self.due.pop();
            let wire = &mut self.wires[link as usize];
            let (_, packet) = wire.pop_front().expect("a wire that is due has a packet");
            if let Some(&(next, _)) = wire.front() {
                self.due.push(Reverse((next, link)));
            }
            let part = self.ends[link as usize].1;
            let network = &mut self.parts[part as usize];
            network.import(Carried { link, at, packet });
            let event = network.next(at, &mut NoProbe);
            self.collect(part);
            if let Some((_, event)) = event {
                self.inside -= 1;
                return Some((at, event));
            }
        }
        None
    }

    /// Packets inside: accepted, and neither delivered nor dropped since.
    pub fn inside(&self) -> usize {
        self.inside
    }

    /// What a port holds, the packet in service included.
    pub fn backlog(&mut self, now: Time, link: u32) -> (Bytes, Packets) {
        let part = self.ends[link as usize].0;
        self.parts[part as usize].backlog(now, link)
    }

    /// Every port begins to count anew.
    pub fn reset_counters(&mut self, now: Time) {
        for part in &mut self.parts {
            part.reset_counters(now);
        }
    }

    /// Every port's counters, by link. Those of the port are its own part's; what its wire lost, the far end's part has
    /// counted.
    ///
    /// # Panics
    /// If a port has lost track of a packet.
    pub fn counters(&mut self, now: Time) -> Vec<Counters> {
        let by_part: Vec<Vec<Counters>> = self.parts.iter_mut().map(|part| part.finish(now)).collect();
        let of = |part: u32, link: usize| &by_part[part as usize][link];
        let lost = DropReason::Impairment as usize;
        let merged = self.ends.iter().enumerate().map(|(link, &(from, to))| {
            let mut counters = *of(from, link);
            counters.dropped[lost] = of(to, link).dropped[lost];
            counters
        });
        merged.collect()
    }

    /// Packets that ports accepted.
    pub fn packet_hops(&self) -> u64 {
        self.parts.iter().map(Network::packet_hops).sum()
    }

    /// Puts what a part's ports have accepted onto its wires.
    fn collect(&mut self, part: u32) {
        for to in (0..u32::try_from(self.parts.len()).expect("few parts")).filter(|&to| to != part) {
            for Carried { link, at, packet } in self.parts[part as usize].exports(to).drain(..) {
                let wire = &mut self.wires[link as usize];
                if wire.is_empty() {
                    self.due.push(Reverse((at, link)));
                }
                wire.push_back((at, packet));
            }
        }
    }
}

/// A colour for each node, none the same at both ends of a link: greedily, switches first, in the order of the plan.
fn colours(graph: &Graph) -> Result<Vec<u16>, FabricError> {
    const NONE: u16 = u16::MAX;
    let mut neighbours = vec![Vec::new(); graph.nodes.len()];
    for link in &graph.links {
        neighbours[link.from as usize].push(link.to as usize);
        neighbours[link.to as usize].push(link.from as usize);
    }
    let mut colours = vec![NONE; graph.nodes.len()];
    let of_kind = |kind| (0..).zip(&graph.nodes).filter(move |(_, node)| node.kind == kind).map(|(id, _)| id);
    for node in of_kind(NodeKind::Switch).chain(of_kind(NodeKind::Host)) {
        let mut taken = [false; MOST_PARTS];
        for &neighbour in &neighbours[node as usize] {
            if let Some(taken) = taken.get_mut(usize::from(colours[neighbour])) {
                *taken = true;
            }
        }
        let free = taken.iter().position(|taken| !taken).ok_or(FabricError::TooDense { node })?;
        colours[node as usize] = u16::try_from(free).expect("few colours");
    }
    Ok(colours)
}

/// A part for each colour. Partitions are made from sites and need a look-ahead; neither is what is meant here, so both are
/// put in their place in a copy of the graph.
fn apart(graph: &Graph, colours: &[u16]) -> Partition {
    let mut graph = graph.clone();
    for (node, colour) in graph.nodes.iter_mut().zip(colours) {
        node.site = *colour;
    }
    for link in &mut graph.links {
        link.delay = Span::from_ps(1);
    }
    Partition::by_site(&graph, Span::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::queue::aqm::Size;
    use narrows_core::queue::{AqmConfig, Limit};
    use narrows_core::units::Rate;
    use narrows_scenario::plan::{Link, Node, Role};
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Numbered {
        number: u32,
        to: u32,
        size: u32,
        marked: bool,
    }

    impl Payload for Numbered {
        fn ip_bytes(&self) -> u32 {
            self.size
        }
        fn destination(&self) -> u32 {
            self.to
        }
        fn flow_hash(&self) -> u32 {
            self.number % 3
        }
        fn ecn_capable(&self) -> bool {
            true
        }
        fn mark(&mut self) {
            self.marked = true;
        }
    }

    /// Three hosts on the corners of a triangle of switches, which needs three colours; its sides are narrow, mark and lose.
    fn triangle(host_delay: Span) -> Graph {
        let node = |name: &str, kind| Node { name: name.into(), kind, site: 0, rack: 0, pool: None };
        let mut nodes: Vec<Node> = ["a", "b", "c"].map(|name| node(name, NodeKind::Host)).into();
        nodes.extend(["x", "y", "z"].map(|name| node(name, NodeKind::Switch)));
        let mut links = Vec::new();
        let mut both = |a: u32, b: u32, rate, delay, role, limit, loss| {
            for (from, to) in [(a, b), (b, a)] {
                let aqm =
                    (role == Role::Fabric).then(|| AqmConfig::Threshold { mark_at: Size::Packets(Packets::new(2)) });
                links.push(Link {
                    name: format!("{from}->{to}"),
                    from,
                    to,
                    rate: Rate::from_mbps(rate),
                    delay,
                    stack: Span::ZERO,
                    role,
                    limit,
                    pooled: false,
                    aqm,
                    loss,
                    jitter: Span::ZERO,
                    watched: false,
                });
            }
        };
        for host in 0..3 {
            both(host, host + 3, 100, host_delay, Role::Host, Limit::Unlimited, 0);
        }
        let few = Limit::Packets(Packets::new(4));
        for (a, b) in [(3, 4), (4, 5), (5, 3)] {
            both(a, b, 40, Span::from_us(300), Role::Fabric, few, 1 << 29);
        }
        Graph { nodes, links }
    }

    proptest! {
        /// The same packets at the same times: the same events, counters and backlogs as from the network in one piece.
        #[test]
        fn it_is_the_network_in_one_piece(delay_us in 0u64..50, seed in 0u64..4,
            offers in prop::collection::vec((0u64..400, 0u32..3, 1u32..3, 40u32..1_500), 1..200))
        {
            let graph = triangle(Span::from_us(delay_us));
            let mut whole: Network<Numbered> = Network::new(&graph, seed).unwrap();
            let mut fabric: Fabric<Numbered> = Fabric::new(&graph, seed).unwrap();
            prop_assert_eq!(fabric.parts.len(), 3);
            let (mut now, mut expected, mut seen) = (Time::ZERO, Vec::new(), Vec::new());
            let (mut accepted, mut gone) = (0, 0);
            for (number, (wait_us, from, by, size)) in (0..).zip(offers) {
                now += Span::from_us(wait_us);
                expected.extend(std::iter::from_fn(|| whole.next(now, &mut NoProbe)));
                seen.extend(std::iter::from_fn(|| fabric.next(now)));
                let (packet, link) = (Numbered { number, to: (from + by) % 3, size, marked: false }, fabric.host_link(from));
                let offered = fabric.offer(now, link, packet);
                prop_assert_eq!(offered, whole.offer(now, link, packet, &mut NoProbe));
                accepted += 1;
                for link in 0..12 {
                    prop_assert_eq!(fabric.backlog(now, link), whole.backlog(now, link));
                }
            }
            // Until the last one, each event no sooner than it was announced.
            while let Some(at) = fabric.next_at() {
                match fabric.next(at) {
                    Some((time, event)) => {
                        prop_assert_eq!(time, at);
                        seen.push((time, event));
                    }
                    None => prop_assert!(fabric.next_at().is_none_or(|next| next >= at)),
                }
                now = at;
            }
            expected.extend(std::iter::from_fn(|| whole.next(now, &mut NoProbe)));
            prop_assert!(seen.is_sorted_by_key(|(time, _)| *time));
            gone += seen.len();
            prop_assert_eq!((&seen, gone, fabric.inside()), (&expected, accepted, 0));
            prop_assert_eq!(fabric.counters(now), whole.finish(now));
            prop_assert_eq!(fabric.packet_hops(), whole.packet_hops());
        }
    }

    #[test]
    fn a_graph_that_is_no_network_is_refused() {
        let mut graph = triangle(Span::ZERO);
        graph.links.remove(0);
        assert!(matches!(Fabric::<Numbered>::new(&graph, 1), Err(FabricError::Graph(_))));
    }

    #[test]
    fn seventeen_switches_that_are_all_linked_are_too_many() {
        let mut graph = triangle(Span::ZERO);
        let template = graph.links[6].clone();
        let first = u32::try_from(graph.nodes.len()).unwrap();
        for number in 0..17 {
            let mut node = graph.nodes[3].clone();
            node.name = format!("m{number}");
            graph.nodes.push(node);
        }
        for from in first..first + 17 {
            for to in (first..first + 17).chain([3]).filter(|&to| to != from) {
                graph.links.push(Link { name: format!("{from}->{to}"), from, to, ..template.clone() });
            }
        }
        assert_eq!(Fabric::<Numbered>::new(&graph, 1).unwrap_err(), FabricError::TooDense { node: first + 15 });
    }
}
