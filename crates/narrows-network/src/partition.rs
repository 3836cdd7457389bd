//! How a network is cut into parts that run apart: a part owns nodes, and with them the ports of the links out of them.
//!
//! A link between two parts is a *cut*. A packet that its port accepts arrives no sooner than the link's delay after
//! it left, so that a part may run that far ahead of those that send to it: the delay, the least that it has during the
//! run, is its look-ahead, and nothing that one part does is ever undone [Chandy 1979].

use std::collections::BTreeMap;

use narrows_core::units::Span;
use narrows_plan::Graph;

/// Most parts of a partition. Sites beyond them share the last one.
pub const MAX_PARTS: usize = 16;

/// Which part each node belongs to, and how far apart the parts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// By node.
    parts: Vec<u32>,
    /// By part: the parts with a cut into it, each with the least delay of those cuts.
    sources: Vec<Vec<(u32, Span)>>,
}

impl Partition {
    /// Everything in one part.
    pub fn whole(graph: &Graph) -> Partition {
        Partition { parts: vec![0; graph.nodes.len()], sources: vec![Vec::new()] }
    }

    /// A part for each site, numbered in the order of the sites. One part where there is one site, and where a cut has
    /// less delay than `least`, or none, or a port that is served packet by packet, or a bridge: there would be no look-ahead. And
    /// one part where ports write telemetry.
    pub fn by_site(graph: &Graph, least: Span) -> Partition {
        let mut sites: Vec<u16> = graph.nodes.iter().map(|node| node.site).collect();
        sites.sort_unstable();
        sites.dedup();
        let part_of = |site: u16| {
            let place = sites.binary_search(&site).expect("the sites are the nodes'");
            u32::try_from(place.min(MAX_PARTS - 1)).expect("few parts")
        };
        let parts: Vec<u32> = graph.nodes.iter().map(|node| part_of(node.site)).collect();
        let mut delays: BTreeMap<(u32, u32), Span> = BTreeMap::new();
        for (link, is_served) in graph.links.iter().zip(graph.served()) {
            let (from, to) = (parts[link.from as usize], parts[link.to as usize]);
            if from != to {
                let least_delay = link.least_delay();
                let delay = delays.entry((to, from)).or_insert(least_delay);
                // What such a port sends next is decided when it sends it, and told by its far end's arrivals.
                let is_late = is_served || link.bridge.is_some();
                let look_ahead = if is_late { Span::ZERO } else { least_delay };
                *delay = look_ahead.min(*delay);
            }
        }
        // Telemetry lies in the memory of one part.
        let has_telemetry = graph.links.iter().any(|link| link.telemetry);
        if has_telemetry || delays.values().any(|&delay| delay < least || delay == Span::ZERO) {
            return Partition::whole(graph);
        }
        let mut sources = vec![Vec::new(); sites.len().clamp(1, MAX_PARTS)];
        for ((to, from), delay) in delays {
            sources[to as usize].push((from, delay));
        }
        Partition { parts, sources }
    }

    /// Number of parts; at least one.
    pub fn count(&self) -> u32 {
        u32::try_from(self.sources.len()).expect("few parts")
    }

    /// The part of a node.
    pub fn part_of(&self, node: u32) -> u32 {
        self.parts[node as usize]
    }

    /// The parts that send into this one, by number, each with the least delay of a link from it: what this part has
    /// heard by `t` from one of them is complete up to `t` plus that.
    pub fn sources(&self, part: u32) -> &[(u32, Span)] {
        &self.sources[part as usize]
    }
}

#[cfg(test)]
mod tests {
    use narrows_core::queue::SchedulerConfig;
    use narrows_core::queue::scheduler::drr;
    use narrows_core::units::Rate;
    use narrows_plan::{Link, Node, NodeKind, Role};

    use super::*;

    fn graph(sites: &[u16], links: &[(u32, u32, u64)]) -> Graph {
        let node = |&site| Node { site, ..Node::new("", NodeKind::Switch) };
        let link = |&(from, to, us): &(u32, u32, u64)| {
            Link::new(format!("{from}->{to}"), (from, to), Role::Wan, Rate::from_gbps(1), Span::from_us(us))
        };
        Graph { nodes: sites.iter().map(node).collect(), links: links.iter().map(link).collect(), ..Graph::default() }
    }

    #[test]
    fn the_look_ahead_is_the_least_delay_of_the_links_between_two_parts() {
        let graph = graph(&[7, 3, 7], &[(0, 1, 900), (2, 1, 700), (1, 0, 400), (0, 2, 1)]);
        let partition = Partition::by_site(&graph, Span::ZERO);
        assert_eq!([0, 1, 2].map(|node| partition.part_of(node)), [1, 0, 1]);
        assert_eq!(partition.sources(0), [(1, Span::from_us(700))]);
        assert_eq!(partition.sources(1), [(0, Span::from_us(400))]);
    }

    #[test]
    fn without_a_look_ahead_there_is_one_part() {
        let apart = graph(&[1, 2], &[(0, 1, 900), (1, 0, 0)]);
        assert_eq!(Partition::by_site(&apart, Span::ZERO), Partition::whole(&apart));
        let near = graph(&[1, 2], &[(0, 1, 900), (1, 0, 900)]);
        assert_eq!(Partition::by_site(&near, Span::from_ms(1)).count(), 1);
        assert_eq!(Partition::by_site(&near, Span::from_us(900)).count(), 2);
        let mut classes = near;
        classes.links[0].scheduler = Some(SchedulerConfig::Drr(drr::Config { weights: vec![1, 1] }));
        assert_eq!(Partition::by_site(&classes, Span::ZERO).count(), 1);
    }
}
