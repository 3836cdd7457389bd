//! Where flows go, as expected shares: shortest paths by hops, and at every switch an even split over the links that
//! lie on one. Used to state loads; drivers route packets themselves, by the same rule.

use std::collections::{BTreeMap, VecDeque};

use crate::plan::{Graph, NodeKind, Pairs};

/// Two hosts with no path between them, by node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPath {
    /// The sender, or a host on its switch.
    pub from: u32,
    /// The receiver.
    pub to: u32,
}

/// A graph prepared for questions about paths.
#[derive(Debug)]
pub struct Routes<'a> {
    graph: &'a Graph,
    /// Links out of each node.
    out: Vec<Vec<u32>>,
    /// Links into each node.
    into: Vec<Vec<u32>>,
}

/// A share of all flows, entering the fabric at a switch.
type Entry = (u32, f64);

impl<'a> Routes<'a> {
    /// Prepares a graph.
    pub fn new(graph: &'a Graph) -> Routes<'a> {
        let mut routes = Routes { graph, out: vec![vec![]; graph.nodes.len()], into: vec![vec![]; graph.nodes.len()] };
        for (index, link) in (0_u32..).zip(&graph.links) {
            routes.out[link.from as usize].push(index);
            routes.into[link.to as usize].push(index);
        }
        routes
    }

    fn is_host(&self, node: u32) -> bool {
        self.graph.nodes[node as usize].kind == NodeKind::Host
    }

    /// The switch a host hangs on, and the links to and from it.
    fn home(&self, host: u32) -> (u32, u32, u32) {
        let (up, down) = (self.out[host as usize][0], self.into[host as usize][0]);
        (self.graph.links[up as usize].to, up, down)
    }

    /// Hops from every switch to this one, hosts never in between; `u32::MAX` where there is no way.
    fn distances(&self, target: u32) -> (Vec<u32>, Vec<u32>) {
        let mut distance = vec![u32::MAX; self.graph.nodes.len()];
        let mut order = vec![];
        let mut queue = VecDeque::from([target]);
        distance[target as usize] = 0;
        while let Some(node) = queue.pop_front() {
            order.push(node);
            for link in &self.into[node as usize] {
                let from = self.graph.links[*link as usize].from;
                if !self.is_host(from) && distance[from as usize] == u32::MAX {
                    distance[from as usize] = distance[node as usize] + 1;
                    queue.push_back(from);
                }
            }
        }
        (distance, order)
    }

    /// Links out of a node that bring one a hop nearer.
    fn nearer<'b>(&'b self, node: u32, distance: &'b [u32]) -> impl Iterator<Item = u32> + 'b {
        self.out[node as usize].iter().copied().filter(move |link| {
            let to = self.graph.links[*link as usize].to as usize;
            distance[to] != u32::MAX && distance[to] + 1 == distance[node as usize]
        })
    }

    /// Adds to `share` what flows from these switches towards `target` put on each link between switches. Returns the
    /// first switch without a way.
    fn spread(&self, target: u32, entries: &[Entry], share: &mut [f64]) -> Result<(), u32> {
        let (distance, order) = self.distances(target);
        let mut here = vec![0.0; self.graph.nodes.len()];
        for (switch, weight) in entries {
            if distance[*switch as usize] == u32::MAX {
                return Err(*switch);
            }
            here[*switch as usize] += weight;
        }
        for node in order.into_iter().rev() {
            let weight = here[node as usize];
            if weight == 0.0 || node == target {
                continue;
            }
            #[expect(clippy::cast_precision_loss, reason = "links of one switch are few")]
            let part = weight / self.nearer(node, &distance).count() as f64;
            let links: Vec<u32> = self.nearer(node, &distance).collect();
            for link in links {
                share[link as usize] += part;
                here[self.graph.links[link as usize].to as usize] += part;
            }
        }
        Ok(())
    }

    /// For every link, the share of flows between these pairs that crosses it.
    #[expect(clippy::cast_precision_loss, reason = "numbers of hosts are far below 2^53")]
    pub fn crossing(&self, pairs: &Pairs) -> Result<Vec<f64>, NoPath> {
        let mut share = vec![0.0; self.graph.links.len()];
        // Towards each switch: which share of the flows enters where. And one receiver there, for messages.
        let mut towards: BTreeMap<u32, (u32, Vec<Entry>)> = BTreeMap::new();
        match pairs {
            Pairs::Listed(listed) => {
                let one = 1.0 / listed.len() as f64;
                let mut counts: BTreeMap<(u32, u32), (u32, u32)> = BTreeMap::new();
                for (source, destination) in listed {
                    let (entry, up, _) = self.home(*source);
                    let (exit, _, down) = self.home(*destination);
                    share[up as usize] += one;
                    share[down as usize] += one;
                    counts.entry((exit, entry)).or_insert((0, *destination)).0 += 1;
                }
                for ((exit, entry), (count, destination)) in counts {
                    towards.entry(exit).or_insert((destination, vec![])).1.push((entry, f64::from(count) * one));
                }
            }
            Pairs::Between { sources, destinations } => {
                let nodes = self.graph.nodes.len();
                let (mut sends, mut receives) = (vec![false; nodes], vec![false; nodes]);
                sources.iter().for_each(|host| sends[*host as usize] = true);
                destinations.iter().for_each(|host| receives[*host as usize] = true);
                let both = sources.iter().filter(|host| receives[**host as usize]).count() as f64;
                let total = sources.len() as f64 * destinations.len() as f64 - both;
                // Per switch: senders, receivers, hosts that are both.
                let mut at: BTreeMap<u32, (f64, f64, f64, u32)> = BTreeMap::new();
                for source in sources {
                    let (switch, up, _) = self.home(*source);
                    let others = destinations.len() as f64 - f64::from(receives[*source as usize]);
                    share[up as usize] += others / total;
                    let here = at.entry(switch).or_default();
                    here.0 += 1.0;
                    here.2 += f64::from(receives[*source as usize]);
                }
                for destination in destinations {
                    let (switch, _, down) = self.home(*destination);
                    let others = sources.len() as f64 - f64::from(sends[*destination as usize]);
                    share[down as usize] += others / total;
                    let here = at.entry(switch).or_default();
                    here.1 += 1.0;
                    here.3 = *destination;
                }
                for (exit, (_, receivers, _, destination)) in at.iter().filter(|(_, here)| here.1 > 0.0) {
                    let entries = at.iter().filter(|(_, here)| here.0 > 0.0).map(|(entry, here)| {
                        let own = if entry == exit { here.2 } else { 0.0 };
                        (*entry, (here.0 * receivers - own) / total)
                    });
                    towards.insert(*exit, (*destination, entries.collect()));
                }
            }
        }
        for (exit, (destination, entries)) in towards {
            self.spread(exit, &entries, &mut share).map_err(|switch| {
                let link =
                    self.into[switch as usize].iter().find(|link| self.is_host(self.graph.links[**link as usize].from));
                NoPath { from: link.map_or(switch, |link| self.graph.links[*link as usize].from), to: destination }
            })?;
        }
        Ok(share)
    }

    /// One shortest path between two different hosts, link by link: at every switch the first of the links.
    pub fn path(&self, source: u32, destination: u32) -> Result<Vec<u32>, NoPath> {
        let (entry, up, _) = self.home(source);
        let (exit, _, down) = self.home(destination);
        let (distance, _) = self.distances(exit);
        let mut links = vec![up];
        let mut node = entry;
        while node != exit {
            let link = self.nearer(node, &distance).next().ok_or(NoPath { from: source, to: destination })?;
            links.push(link);
            node = self.graph.links[link as usize].to;
        }
        links.push(down);
        Ok(links)
    }
}
