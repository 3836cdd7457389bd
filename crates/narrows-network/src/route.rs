//! Which link a packet takes next: shortest paths by hops, all equal ones kept.
//!
//! Every host hangs on one switch, so the table is kept by (switch, switch of the destination) and the last hop comes
//! from the destination itself. Among several next links a packet takes the one that its flow's hash selects, mixed
//! with a salt of the switch, so that a flow keeps its path and two switches in a row choose independently; or the one
//! that a number selects which a [routing policy](narrows_core::routing) says.
//!
//! Built once, from the graph; packets only read it.

use narrows_core::rng::Stream;
use narrows_core::routing::salted;
use narrows_plan::{Graph, NodeKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Why a graph is not a network: what is wrong with a link or a node of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says what it is")]
pub enum GraphError {
    #[error("link {0} begins or ends at a node that does not exist")]
    UnknownNode(u32),
    #[error("link {0} has a rate of zero")]
    ZeroRate(u32),
    #[error("host {0} must have exactly one link out and one link in")]
    HostLinks(u32),
    #[error("link {0} draws on a pool that its node does not have")]
    NoPool(u32),
    #[error("link {0} has a congestion point and begins at a host")]
    HostSamples(u32),
    #[error("link {0} has a scheduler, or an AQM that judges packets that leave, and begins at a host")]
    HostClasses(u32),
    #[error("link {0} has an edge pair, and a host at one end")]
    HostBridges(u32),
    #[error("link {0} is an edge pair's, whose port is a plain FIFO, and is served packet by packet")]
    ServedBridge(u32),
    #[error("link {0} is an edge pair's, which carries no packets with telemetry, and ports write it")]
    BridgedTelemetry(u32),
    #[error("link {0} is an edge pair's, which knows a flow by its label, and hosts change labels")]
    BridgedLabels(u32),
    #[error("`{link}`: {obstacle}")]
    Excluded { link: String, obstacle: &'static str },
    #[error("link {0} has no link back that could carry pause frames")]
    NoWayBack(u32),
    #[error(
        "node {0} chooses among too many equally short ways: at most {MAX_EQUAL} at one node, and {MAX_MEMBERS} in all"
    )]
    TooManyWays(u32),
    #[error("host {from} has no path to host {to}")]
    Unreachable { from: u32, to: u32 },
}

const NONE: u32 = u32::MAX;
/// Set in a table entry that names a group of equal links rather than a link: their number, less one, and above it the
/// place of the first among the members.
const GROUP: u32 = 1 << 31;
const NUMBER_BITS: u32 = 12;
/// Most members of one group, and of all groups together.
const MAX_EQUAL: usize = 1 << NUMBER_BITS;
const MAX_MEMBERS: usize = (GROUP >> NUMBER_BITS) as usize;
/// Most entries of the table of only links: 4 MB.
const MAX_ONLY: usize = 1 << 20;

/// Where a host hangs.
#[derive(Clone, Copy, Debug)]
struct Attachment {
    /// Index among switches of the node that feeds it; [`NONE`] for a switch, or a host fed by a host.
    switch: u32,
    /// Index of that switch among those with hosts: the table's column.
    edge: u32,
    /// The link that ends at the host.
    down: u32,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    /// By node.
    attachments: Vec<Attachment>,
    /// By switch, then by edge switch: a link, a group, or [`NONE`].
    table: Vec<u32>,
    edges: usize,
    /// By switch, then by node: the link to take. Empty where [paths](Self::needs_paths) are needed.
    only: Vec<u32>,
    nodes: usize,
    /// The links of all groups.
    members: Vec<u32>,
    /// By switch.
    salts: Vec<u64>,
}

#[allow(clippy::cast_possible_truncation, reason = "identifiers of nodes and links are 32-bit in the plan")]
impl Routes {
    /// `switches` gives each node's index among switches, [`NONE`] for hosts.
    pub(crate) fn new(graph: &Graph, seed: u64) -> Result<Routes, GraphError> {
        let switches = switch_indices(graph);
        let mut attachments = vec![Attachment { switch: NONE, edge: NONE, down: NONE }; graph.nodes.len()];
        let mut uplinks = vec![NONE; graph.nodes.len()];
        for (id, link) in graph.links.iter().enumerate() {
            let id = id as u32;
            if link.from as usize >= graph.nodes.len() || link.to as usize >= graph.nodes.len() {
                return Err(GraphError::UnknownNode(id));
            }
            for (node, place) in
                [(link.to, &mut attachments[link.to as usize].down), (link.from, &mut uplinks[link.from as usize])]
            {
                if graph.nodes[node as usize].kind == NodeKind::Host && std::mem::replace(place, id) != NONE {
                    return Err(GraphError::HostLinks(node));
                }
            }
        }
        let mut edges = Vec::new();
        for (node, attachment) in attachments.iter_mut().enumerate() {
            if graph.nodes[node].kind == NodeKind::Switch {
                continue;
            }
            if attachment.down == NONE || uplinks[node] == NONE {
                return Err(GraphError::HostLinks(node as u32));
            }
            let feeder = graph.links[attachment.down as usize].from;
            attachment.switch = switches[feeder as usize];
            if attachment.switch != NONE {
                let edge = edges.iter().position(|&edge| edge == feeder).unwrap_or_else(|| {
                    edges.push(feeder);
                    edges.len() - 1
                });
                attachment.edge = edge as u32;
            }
        }
        let mut routes = Routes {
            attachments,
            table: Vec::new(),
            edges: edges.len(),
            only: Vec::new(),
            nodes: graph.nodes.len(),
            members: Vec::new(),
            salts: Vec::new(),
        };
        routes.fill(graph, &switches, &edges)?;
        for node in graph.nodes.iter().filter(|node| node.kind == NodeKind::Switch) {
            routes.salts.push(Stream::named(seed, &format!("ecmp/{}", node.name)).next_u64());
        }
        routes.check_reachability(graph, &switches, &uplinks)?;
        let switches = routes.salts.len();
        if routes.members.is_empty() && switches * routes.nodes <= MAX_ONLY {
            let links =
                (0..switches).flat_map(|switch| (0..routes.nodes).map(move |node| (switch as u32, node as u32)));
            routes.only = links.map(|(switch, node)| routes.entry(switch, node)).collect();
        }
        Ok(routes)
    }

    fn fill(&mut self, graph: &Graph, switches: &[u32], edges: &[u32]) -> Result<(), GraphError> {
        let count = switches.iter().filter(|&&switch| switch != NONE).count();
        // Links between switches, by the node they end at and by the node they begin at.
        let mut into = vec![Vec::new(); graph.nodes.len()];
        let mut out_of = vec![Vec::new(); graph.nodes.len()];
        for (id, link) in graph.links.iter().enumerate() {
            if switches[link.from as usize] != NONE && switches[link.to as usize] != NONE {
                into[link.to as usize].push(link.from);
                out_of[link.from as usize].push((id as u32, link.to));
            }
        }
        self.table = vec![NONE; count * edges.len()];
        let mut known = BTreeMap::new();
        for (column, &edge) in edges.iter().enumerate() {
            let mut hops = vec![NONE; graph.nodes.len()];
            hops[edge as usize] = 0;
            let mut frontier = VecDeque::from([edge]);
            while let Some(node) = frontier.pop_front() {
                for &neighbour in &into[node as usize] {
                    if hops[neighbour as usize] == NONE {
                        hops[neighbour as usize] = hops[node as usize] + 1;
                        frontier.push_back(neighbour);
                    }
                }
            }
            for (node, &switch) in switches.iter().enumerate() {
                if switch == NONE || hops[node] == NONE || hops[node] == 0 {
                    continue;
                }
                let nearer: Vec<u32> = out_of[node]
                    .iter()
                    .filter(|(_, to)| hops[*to as usize] != NONE && hops[*to as usize] + 1 == hops[node])
                    .map(|&(link, _)| link)
                    .collect();
                self.table[switch as usize * edges.len() + column] = match nearer[..] {
                    [link] => link,
                    _ => match known.get(&nearer) {
                        Some(&group) => group,
                        None => {
                            let group = self.add_group(&nearer).ok_or(GraphError::TooManyWays(node as u32))?;
                            known.insert(nearer, group);
                            group
                        }
                    },
                };
            }
        }
        Ok(())
    }

    /// The table entry of a new group; `None` if there is no room for it.
    fn add_group(&mut self, links: &[u32]) -> Option<u32> {
        let first = self.members.len();
        if links.len() > MAX_EQUAL || first + links.len() > MAX_MEMBERS {
            return None;
        }
        self.members.extend_from_slice(links);
        Some(GROUP | (first as u32) << NUMBER_BITS | (links.len() - 1) as u32)
    }

    fn check_reachability(&self, graph: &Graph, switches: &[u32], uplinks: &[u32]) -> Result<(), GraphError> {
        let hosts = || (0..graph.nodes.len()).filter(|&node| graph.nodes[node].kind == NodeKind::Host);
        // Hosts that send into one switch reach the same hosts.
        let mut entries: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for host in hosts() {
            entries.entry(graph.links[uplinks[host] as usize].to).or_default().push(host);
        }
        for (&entry, senders) in &entries {
            for to in hosts() {
                let Some(&from) = senders.iter().find(|&&from| from != to) else { continue };
                let attachment = self.attachments[to];
                let reached = match switches[entry as usize] {
                    NONE => entry as usize == to,
                    switch if switch == attachment.switch => true,
                    _ if attachment.switch == NONE => false,
                    switch => self.table[switch as usize * self.edges + attachment.edge as usize] != NONE,
                };
                if !reached {
                    return Err(GraphError::Unreachable { from: from as u32, to: to as u32 });
                }
            }
        }
        Ok(())
    }

    /// Whether [`only_link`](Self::only_link) does not know the way: there are several equal ones somewhere, or too many hosts.
    pub(crate) fn needs_paths(&self) -> bool {
        self.only.is_empty()
    }

    /// Whether there are several equal ways somewhere.
    pub(crate) fn has_choice(&self) -> bool {
        !self.members.is_empty()
    }

    /// The link that a packet to host `destination` takes out of the switch with this index; `None` where paths are
    /// [needed](Self::needs_paths).
    #[inline(always)]
    pub(crate) fn only_link(&self, switch: u32, destination: u32) -> Option<u32> {
        self.only.get(switch as usize * self.nodes + destination as usize).copied()
    }

    /// Out of the switch with this index to a host: a link, a group, or [`NONE`].
    pub(crate) fn entry(&self, switch: u32, destination: u32) -> u32 {
        let attachment = self.attachments[destination as usize];
        if attachment.switch == switch {
            return attachment.down;
        }
        self.table.get(switch as usize * self.edges + attachment.edge as usize).copied().unwrap_or(NONE)
    }

    /// The same of any network. Its flow's hash is asked where there is a choice.
    #[inline(never)]
    pub(crate) fn next_link(&self, switch: u32, destination: u32, flow_hash: impl FnOnce() -> u32) -> u32 {
        self.selected_link(switch, destination, || salted(flow_hash(), self.salts[switch as usize]))
    }

    /// What ECMP mixes into hashes at each switch.
    pub(crate) fn salts(&self) -> &[u64] {
        &self.salts
    }

    /// The same by another number than that of the flow's hash: all of its bits count alike.
    #[inline(always)]
    pub(crate) fn selected_link(&self, switch: u32, destination: u32, number: impl FnOnce() -> u32) -> u32 {
        let entry = self.entry(switch, destination);
        match self.ways(&entry) {
            [link] => *link,
            ways => ways[((u64::from(number()) * ways.len() as u64) >> 32) as usize],
        }
    }

    /// The links that a table entry stands for.
    #[inline(always)]
    pub(crate) fn ways<'a>(&'a self, entry: &'a u32) -> &'a [u32] {
        if entry & GROUP == 0 {
            return std::slice::from_ref(entry);
        }
        let group = entry & !GROUP;
        let (first, number) = (group >> NUMBER_BITS, (group & ((1 << NUMBER_BITS) - 1)) + 1);
        &self.members[first as usize..(first + number) as usize]
    }

    /// The switch that a host hangs on, as an index, and the link from there to it.
    pub(crate) fn home_of(&self, host: u32) -> Option<(u32, u32)> {
        let attachment = self.attachments[host as usize];
        (attachment.switch != NONE).then_some((attachment.switch, attachment.down))
    }

    /// All links that a packet to a host may take which is at the switch with this index, on any of the equally short ways.
    /// `far_switch` tells the switch at the end of a link, if that is one.
    pub(crate) fn all_links(
        &self,
        switch: u32,
        destination: u32,
        far_switch: impl Fn(u32) -> Option<u32>,
    ) -> BTreeSet<u32> {
        let (mut found, mut open) = (BTreeSet::new(), vec![switch]);
        while let Some(switch) = open.pop() {
            let entry = self.entry(switch, destination);
            let fresh = self.ways(&entry).iter().filter(|&&link| found.insert(link));
            open.extend(fresh.filter_map(|&link| far_switch(link)));
        }
        found
    }
}

/// Each node's index among the switches, [`NONE`] for a host.
#[allow(clippy::cast_possible_truncation, reason = "identifiers of nodes are 32-bit in the plan")]
pub(crate) fn switch_indices(graph: &Graph) -> Vec<u32> {
    let mut switches = 0;
    graph
        .nodes
        .iter()
        .map(|node| match node.kind {
            NodeKind::Host => NONE,
            NodeKind::Switch => {
                switches += 1;
                switches - 1
            }
        })
        .collect()
}
