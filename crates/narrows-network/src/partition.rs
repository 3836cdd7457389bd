//! How a network is cut into parts that run apart: a part owns nodes, and with them the ports of the links out of them.
//!
//! A link between two parts is a *cut*. A packet that its port accepts arrives no sooner than the link's delay after
//! it left, so that a part may run that far ahead of those that send to it: the delay, the least that it has during the
//! run, is its look-ahead, and nothing that one part does is ever undone [Chandy 1979].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use narrows_core::units::Span;
use narrows_plan::{Graph, NodeKind};

/// Most parts of a partition. Sites beyond them share the last one.
pub const MAX_PARTS: u32 = 16;

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
    /// no delay, or a port that is served packet by packet, or a bridge: there would be no look-ahead. And one part where ports write
    /// telemetry.
    pub fn by_site(graph: &Graph) -> Partition {
        let mut sites: Vec<u16> = graph.nodes.iter().map(|node| node.site).collect();
        sites.sort_unstable();
        sites.dedup();
        let part_of = |site: u16| {
            let place = sites.binary_search(&site).expect("the sites are the nodes'");
            u32::try_from(place).expect("few sites").min(MAX_PARTS - 1)
        };
        let parts = graph.nodes.iter().map(|node| part_of(node.site)).collect();
        Partition::cut(graph, parts).unwrap_or_else(|| Partition::whole(graph))
    }

    /// Up to `most` parts with about as many hosts in each, a rack in one of them: the hosts of a switch, and the switch. Racks that
    /// follow each other in the graph stay together; every other switch goes where most of its links to hosts' side lead, and where
    /// that does not decide, as for the spine, they are dealt out. One part where there is one rack, where [`by_site`](Self::by_site)
    /// has one for what a cut's links are, and where congestion points send notifications, which no cut lets through.
    pub fn by_rack(graph: &Graph, most: u32) -> Partition {
        let most = most.clamp(1, MAX_PARTS);
        if graph.links.iter().any(|link| link.congestion_point.is_some()) {
            return Partition::whole(graph);
        }
        let parts = numbered_anew(parts_of_racks(graph, most));
        Partition::cut(graph, parts).unwrap_or_else(|| Partition::whole(graph))
    }

    /// These parts, if there are several and each has a look-ahead.
    fn cut(graph: &Graph, parts: Vec<u32>) -> Option<Partition> {
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
        let count = parts.iter().max().map_or(1, |&last| last as usize + 1);
        if count == 1 || has_telemetry || delays.values().any(Span::is_zero) {
            return None;
        }
        let mut sources = vec![Vec::new(); count];
        for ((to, from), delay) in delays {
            sources[to as usize].push((from, delay));
        }
        Some(Partition { parts, sources })
    }

    /// The least of all look-aheads; `None` where no part waits for another.
    pub fn look_ahead(&self) -> Option<Span> {
        self.sources.iter().flatten().map(|&(_, delay)| delay).min()
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

/// By node, which part it is in: see [`Partition::by_rack`].
fn parts_of_racks(graph: &Graph, most: u32) -> Vec<u32> {
    let mut neighbours = vec![Vec::new(); graph.nodes.len()];
    for link in &graph.links {
        neighbours[link.from as usize].push(link.to as usize);
    }
    let is_host = |node: usize| graph.nodes[node].kind == NodeKind::Host;
    let hosts = |node: usize| neighbours[node].iter().filter(|&&next| is_host(next)).count() as u64;
    let all: u64 = (0..graph.nodes.len()).filter(|&node| !is_host(node)).map(hosts).sum();
    let mut parts = vec![None; graph.nodes.len()];
    let mut before = 0;
    for rack in (0..graph.nodes.len()).filter(|&node| !is_host(node) && hosts(node) > 0) {
        // By the rack's middle, so that few hosts at an end do not decide.
        let part = (2 * before + hosts(rack)) * u64::from(most) / (2 * all);
        before += hosts(rack);
        parts[rack] = Some(u32::try_from(part).expect("few parts"));
        neighbours[rack].iter().filter(|&&next| is_host(next)).for_each(|&host| parts[host] = parts[rack]);
    }
    // From the racks outwards: those that only such reach whose part is known.
    let mut level: Vec<usize> =
        (0..graph.nodes.len()).filter(|&node| parts[node].is_some() && !is_host(node)).collect();
    while !level.is_empty() {
        let reached = level.iter().flat_map(|&node| &neighbours[node]).copied();
        let next: BTreeSet<usize> = reached.filter(|&node| parts[node].is_none()).collect();
        let known = parts.clone();
        let mut dealt = vec![0_u32; most as usize];
        for &node in &next {
            let leads_to = |part: u32| neighbours[node].iter().filter(|&&to| known[to] == Some(part)).count();
            let best = (0..most).min_by_key(|&part| (Reverse(leads_to(part)), dealt[part as usize], part));
            let best = best.expect("there are parts");
            dealt[best as usize] += 1;
            parts[node] = Some(best);
        }
        level = next.into_iter().collect();
    }
    // What no link leads to is anywhere.
    parts.into_iter().map(Option::unwrap_or_default).collect()
}

/// The parts that have nodes, numbered in their order.
fn numbered_anew(parts: Vec<u32>) -> Vec<u32> {
    let used: BTreeSet<u32> = parts.iter().copied().collect();
    parts.into_iter().map(|part| u32::try_from(used.range(..part).count()).expect("few parts")).collect()
}

#[cfg(test)]
mod tests {
    use narrows_core::queue::scheduler::drr;
    use narrows_core::queue::{CongestionPointConfig, SchedulerConfig};
    use narrows_core::units::{Bytes, Rate};
    use narrows_plan::{CongestionPoint, Link, Node, Role, Scope};

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
        let partition = Partition::by_site(&graph);
        assert_eq!([0, 1, 2].map(|node| partition.part_of(node)), [1, 0, 1]);
        assert_eq!(partition.sources(0), [(1, Span::from_us(700))]);
        assert_eq!(partition.sources(1), [(0, Span::from_us(400))]);
    }

    #[test]
    fn without_a_look_ahead_there_is_one_part() {
        let apart = graph(&[1, 2], &[(0, 1, 900), (1, 0, 0)]);
        assert_eq!(Partition::by_site(&apart), Partition::whole(&apart));
        let mut classes = graph(&[1, 2], &[(0, 1, 900), (1, 0, 900)]);
        assert_eq!(Partition::by_site(&classes).count(), 2);
        classes.links[0].scheduler = Some(SchedulerConfig::Drr(drr::Config { weights: vec![1, 1] }));
        assert_eq!(Partition::by_site(&classes).count(), 1);
    }

    /// Switches of two levels, as many hosts at each of the first as given, and every two of different levels joined.
    fn leaf_spine(hosts: &[u32], spines: u32) -> Graph {
        let (leaves, all) = (u32::try_from(hosts.len()).unwrap(), hosts.iter().sum::<u32>());
        let node = |at| Node::new("", if at < all { NodeKind::Host } else { NodeKind::Switch });
        let homes = (0..leaves).flat_map(|leaf| std::iter::repeat_n(all + leaf, hosts[leaf as usize] as usize));
        let mut pairs: Vec<(u32, u32)> = (0..all).zip(homes).collect();
        pairs.extend((0..leaves).flat_map(|leaf| (0..spines).map(move |spine| (all + leaf, all + leaves + spine))));
        let link = |pair: (u32, u32)| Link::new("", pair, Role::Fabric, Rate::from_gbps(1), Span::from_us(1));
        let links = pairs.into_iter().flat_map(|(one, other)| [link((one, other)), link((other, one))]).collect();
        Graph { nodes: (0..all + leaves + spines).map(node).collect(), links, ..Graph::default() }
    }

    #[test]
    fn racks_are_shared_out_by_their_hosts_and_the_spine_is_dealt_out() {
        let graph = leaf_spine(&[3, 1, 2, 2], 2);
        let partition = Partition::by_rack(&graph, 2);
        let parts: Vec<u32> = (0..14).map(|node| partition.part_of(node)).collect();
        assert_eq!(parts, [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1]);
        assert_eq!((partition.count(), partition.look_ahead()), (2, Some(Span::from_us(1))));
        // Few racks, few parts.
        assert_eq!(Partition::by_rack(&graph, 16).count(), 4);
        assert_eq!(Partition::by_rack(&leaf_spine(&[9], 1), 2), Partition::whole(&leaf_spine(&[9], 1)));
    }

    #[test]
    fn where_congestion_points_send_notifications_racks_stay_together() {
        let mut graph = leaf_spine(&[2, 2], 1);
        assert_eq!(Partition::by_rack(&graph, 2).count(), 2);
        let sampling = CongestionPointConfig { set_point: Bytes::new(1), weight: 2, sample_base: Bytes::new(1) };
        graph.links[9].congestion_point = Some(CongestionPoint { sampling, scope: Scope::Tor });
        assert_eq!(Partition::by_rack(&graph, 2).count(), 1);
    }
}
