//! Where flows go, as expected shares: shortest paths by hops, and at every switch an even split over the links that
//! lie on one. Used to state loads; drivers route packets themselves, by the same rule.

use std::collections::{BTreeMap, BTreeSet};

use narrows_core::units::Span;
use narrows_plan::{Graph, NodeKind, Pairs};

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
    /// How many nodes are hosts: they come first.
    hosts: u32,
    /// Each host's link out and link in.
    access: Vec<(u32, u32)>,
    /// Of each switch, links to other switches and where they lead, both counted from the first switch.
    out: Vec<Vec<(u32, u32)>>,
    /// Of each switch, the switches that have a link to it, once for each link.
    into: Vec<Vec<u32>>,
}

/// Amounts that enter the fabric at switches, on their way to one switch.
#[derive(Debug, Default)]
struct Towards {
    /// A host on the switch that they go to, for messages.
    receiver: u32,
    /// Amount by switch of entry.
    entries: BTreeMap<u32, f64>,
}

/// What a search from a switch needs, kept to be used again.
#[derive(Debug)]
struct Search {
    /// Hops to the target from each switch; `u32::MAX` where there is no way.
    distance: Vec<u32>,
    /// Switches in the order of their distance.
    order: Vec<u32>,
    /// Amount at each switch.
    here: Vec<f64>,
}

impl<'a> Routes<'a> {
    /// Prepares a graph whose hosts come first and have one link each way.
    pub fn new(graph: &'a Graph) -> Routes<'a> {
        let hosts = graph.nodes.iter().take_while(|node| node.kind == NodeKind::Host).count();
        let switches = graph.nodes.len() - hosts;
        let hosts = u32::try_from(hosts).expect("hosts are bounded far below 2^32");
        let mut routes = Routes {
            graph,
            hosts,
            access: vec![(0, 0); hosts as usize],
            out: vec![vec![]; switches],
            into: vec![vec![]; switches],
        };
        for (index, link) in (0_u32..).zip(&graph.links) {
            match (link.from < hosts, link.to < hosts) {
                (true, _) => routes.access[link.from as usize].0 = index,
                (_, true) => routes.access[link.to as usize].1 = index,
                _ => {
                    let (from, to) = (link.from - hosts, link.to - hosts);
                    routes.out[from as usize].push((index, to));
                    routes.into[to as usize].push(from);
                }
            }
        }
        routes
    }

    /// The switch that a host hangs on, counted from the first switch, and the links to and from it.
    pub(crate) fn home(&self, host: u32) -> (u32, u32, u32) {
        let (up, down) = self.access[host as usize];
        (self.graph.links[up as usize].to - self.hosts, up, down)
    }

    /// The same, if it hangs on one.
    pub(crate) fn home_of(&self, host: u32) -> Option<(u32, u32, u32)> {
        let links = &self.graph.links;
        let (up, down) = self.access[host as usize];
        let [up_link, down_link] = [links.get(up as usize)?, links.get(down as usize)?];
        let is_home = up_link.from == host && down_link.to == host && up_link.to >= self.hosts;
        is_home.then(|| self.home(host))
    }

    /// Whether a packet may take one of several equally short ways somewhere.
    pub(crate) fn has_choice(&self) -> bool {
        self.choices().next().is_some()
    }

    /// Links among which a switch may choose, as all of them begin equally short ways. The same ones may come more than once.
    pub(crate) fn choices(&self) -> impl Iterator<Item = Vec<u32>> {
        let homes: BTreeSet<u32> = (0..self.hosts).filter_map(|host| self.home_of(host)).map(|home| home.0).collect();
        let nearer = homes.into_iter().flat_map(|home| self.nearer(home));
        let links = nearer.map(|(_, links)| links.into_iter().map(|(link, _)| link).collect::<Vec<u32>>());
        links.filter(|links| links.len() > 1)
    }

    /// Of each other switch with a way to this one, all links that lead nearer, and where; the nearest switches first.
    pub(crate) fn nearer(&self, target: u32) -> Vec<(u32, Vec<(u32, u32)>)> {
        let mut search = self.search();
        self.aim(target, &mut search);
        let Search { distance, order, .. } = search;
        let of_switch = |switch: u32| {
            let nearer = |to: u32| distance[to as usize] < distance[switch as usize];
            self.out[switch as usize].iter().copied().filter(|(_, to)| nearer(*to)).collect()
        };
        order.iter().skip(1).map(|&switch| (switch, of_switch(switch))).collect()
    }

    fn search(&self) -> Search {
        let switches = self.out.len();
        Search { distance: vec![u32::MAX; switches], order: vec![], here: vec![0.0; switches] }
    }

    /// Finds the hops from every switch to this one.
    fn aim(&self, target: u32, search: &mut Search) {
        search.distance.fill(u32::MAX);
        search.order.clear();
        search.distance[target as usize] = 0;
        search.order.push(target);
        let mut next = 0;
        while let Some(switch) = search.order.get(next).copied() {
            next += 1;
            let hops = search.distance[switch as usize] + 1;
            for from in &self.into[switch as usize] {
                if search.distance[*from as usize] == u32::MAX {
                    search.distance[*from as usize] = hops;
                    search.order.push(*from);
                }
            }
        }
    }

    /// Adds to `carried` what goes `towards` this switch. Returns the first switch of entry without a way.
    fn spread(&self, target: u32, towards: &Towards, search: &mut Search, carried: &mut [f64]) -> Result<(), u32> {
        self.aim(target, search);
        let Search { distance, order, here } = search;
        here.fill(0.0);
        for (switch, amount) in &towards.entries {
            if distance[*switch as usize] == u32::MAX {
                return Err(*switch);
            }
            here[*switch as usize] += amount;
        }
        // From the farthest inwards; the target itself is the first of the order.
        for switch in order.iter().skip(1).rev() {
            let amount = here[*switch as usize];
            if amount == 0.0 {
                continue;
            }
            let nearer = |to: u32| distance[to as usize] < distance[*switch as usize];
            let links = &self.out[*switch as usize];
            #[expect(clippy::cast_precision_loss, reason = "links of one switch are few")]
            let part = amount / links.iter().filter(|(_, to)| nearer(*to)).count() as f64;
            for (link, to) in links.iter().filter(|(_, to)| nearer(*to)) {
                carried[*link as usize] += part;
                here[*to as usize] += part;
            }
        }
        Ok(())
    }

    /// Two hosts without a path between them, if there are such; every link is there in both directions.
    pub fn unconnected(&self) -> Option<NoPath> {
        if self.hosts == 0 {
            return None;
        }
        let mut search = self.search();
        self.aim(self.home(0).0, &mut search);
        let apart = (1..self.hosts).find(|host| search.distance[self.home(*host).0 as usize] == u32::MAX)?;
        Some(NoPath { from: apart, to: 0 })
    }

    /// For every link between switches, the links that a packet from any host to any other may take after it, ascending.
    ///
    /// A bit for each link out of the switch where it ends, so that each turn is kept once, whoever takes it.
    pub fn turns(&self) -> Vec<Vec<u32>> {
        let places = |widths: &mut dyn Iterator<Item = usize>| {
            let place = |begin: &mut usize, width: usize| Some(std::mem::replace(begin, *begin + width));
            widths.chain([0]).scan(0, place).collect::<Vec<usize>>()
        };
        let width = |switch: usize| self.out[switch].len().div_ceil(64);
        let of_switch = places(&mut (0..self.out.len()).map(width));
        let of_link = places(&mut self.graph.links.iter().map(|link| match link.to.checked_sub(self.hosts) {
            Some(to) if link.from >= self.hosts => width(to as usize),
            _ => 0,
        }));
        let mut nearer = vec![0_u64; of_switch.last().copied().unwrap_or(0)];
        let mut taken = vec![0_u64; of_link.last().copied().unwrap_or(0)];
        let mut homes: Vec<u32> = (0..self.hosts).map(|host| self.home(host).0).collect();
        homes.sort_unstable();
        homes.dedup();
        let mut search = self.search();
        let mut is_passed = vec![false; self.out.len()];
        for &target in &homes {
            self.aim(target, &mut search);
            let Search { distance, order, .. } = &search;
            let is_nearer = |from: u32, to: u32| distance[to as usize] < distance[from as usize];
            for &switch in order {
                let begin = of_switch[switch as usize];
                nearer[begin..of_switch[switch as usize + 1]].fill(0);
                for (place, &(_, to)) in self.out[switch as usize].iter().enumerate() {
                    nearer[begin + place / 64] |= u64::from(is_nearer(switch, to)) << (place % 64);
                }
            }
            is_passed.fill(false);
            homes.iter().for_each(|&home| is_passed[home as usize] = true);
            for &switch in order.iter().rev().filter(|&&switch| switch != target) {
                if !is_passed[switch as usize] {
                    continue;
                }
                for &(link, to) in self.out[switch as usize].iter().filter(|&&(_, to)| is_nearer(switch, to)) {
                    is_passed[to as usize] = true;
                    let turns = &mut taken[of_link[link as usize]..of_link[link as usize + 1]];
                    let then = &nearer[of_switch[to as usize]..];
                    turns.iter_mut().zip(then).for_each(|(turns, then)| *turns |= then);
                }
            }
        }
        let turns = |(id, link): (usize, &narrows_plan::Link)| {
            let taken = &taken[of_link[id]..of_link[id + 1]];
            let Some(out) = link.to.checked_sub(self.hosts).map(|to| &self.out[to as usize]) else { return vec![] };
            let is_taken = |place: &usize| taken.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 != 0);
            (0..out.len()).filter(is_taken).map(|place| out[place].0).collect()
        };
        self.graph.links.iter().enumerate().map(turns).collect()
    }

    /// For every link, the share of flows between these pairs that crosses it.
    ///
    /// # Errors
    /// If two of the pairs' hosts have no path between them.
    pub fn crossing(&self, pairs: &Pairs) -> Result<Vec<f64>, NoPath> {
        self.carried(&[(pairs, 1.0)])
    }

    /// For every link, what it carries of amounts that are spread evenly over their pairs: flows per second, bytes, or
    /// whatever the amounts count.
    ///
    /// # Errors
    /// If two of the pairs' hosts have no path between them.
    #[expect(clippy::cast_precision_loss, reason = "numbers of pairs are far below 2^53")]
    pub fn carried(&self, amounts: &[(&Pairs, f64)]) -> Result<Vec<f64>, NoPath> {
        let mut carried = vec![0.0; self.graph.links.len()];
        let mut towards: BTreeMap<u32, Towards> = BTreeMap::new();
        for (pairs, amount) in amounts {
            match pairs {
                Pairs::Listed(listed) => {
                    let one = amount / listed.len() as f64;
                    for (source, destination) in listed {
                        self.add(*source, *destination, one, &mut towards, &mut carried);
                    }
                }
                Pairs::Between { sources, destinations } => {
                    self.add_between(sources, destinations, *amount, &mut towards, &mut carried);
                }
            }
        }
        let mut search = self.search();
        for (target, towards) in &towards {
            self.spread(*target, towards, &mut search, &mut carried).map_err(|switch| {
                let from = (0..self.hosts).find(|host| self.home(*host).0 == switch);
                NoPath { from: from.unwrap_or(self.hosts + switch), to: towards.receiver }
            })?;
        }
        Ok(carried)
    }

    /// One pair's amount.
    fn add(&self, from: u32, to: u32, amount: f64, towards: &mut BTreeMap<u32, Towards>, carried: &mut [f64]) {
        let ((entry, up, _), (exit, _, down)) = (self.home(from), self.home(to));
        carried[up as usize] += amount;
        carried[down as usize] += amount;
        let towards = towards.entry(exit).or_default();
        towards.receiver = to;
        *towards.entries.entry(entry).or_default() += amount;
    }

    /// An amount uniform over ordered pairs of a sender and a receiver that differ.
    #[expect(clippy::cast_precision_loss, reason = "numbers of hosts are far below 2^53")]
    fn add_between(
        &self,
        sources: &[u32],
        destinations: &[u32],
        amount: f64,
        towards: &mut BTreeMap<u32, Towards>,
        carried: &mut [f64],
    ) {
        /// Of one switch.
        #[derive(Default)]
        struct At {
            senders: f64,
            receivers: f64,
            both: f64,
            receiver: u32,
        }
        let mut sends = vec![false; self.hosts as usize];
        let mut receives = sends.clone();
        sources.iter().for_each(|host| sends[*host as usize] = true);
        destinations.iter().for_each(|host| receives[*host as usize] = true);
        let both = sources.iter().filter(|host| receives[**host as usize]).count() as f64;
        let one = amount / (sources.len() as f64 * destinations.len() as f64 - both);
        let mut at: BTreeMap<u32, At> = BTreeMap::new();
        for source in sources {
            let (switch, up, _) = self.home(*source);
            let own = f64::from(receives[*source as usize]);
            carried[up as usize] += one * (destinations.len() as f64 - own);
            let at = at.entry(switch).or_default();
            at.senders += 1.0;
            at.both += own;
        }
        for destination in destinations {
            let (switch, _, down) = self.home(*destination);
            carried[down as usize] += one * (sources.len() as f64 - f64::from(sends[*destination as usize]));
            let at = at.entry(switch).or_default();
            at.receivers += 1.0;
            at.receiver = *destination;
        }
        for (exit, there) in at.iter().filter(|(_, there)| there.receivers > 0.0) {
            let towards = towards.entry(*exit).or_default();
            towards.receiver = there.receiver;
            for (entry, here) in at.iter().filter(|(_, here)| here.senders > 0.0) {
                let own = if entry == exit { here.both } else { 0.0 };
                *towards.entries.entry(*entry).or_default() += one * (here.senders * there.receivers - own);
            }
        }
    }

    /// One shortest path between two different hosts, link by link: at every switch the first of the links.
    ///
    /// # Errors
    /// If there is none.
    pub fn path(&self, source: u32, destination: u32) -> Result<Vec<u32>, NoPath> {
        let ((entry, up, _), (exit, _, down)) = (self.home(source), self.home(destination));
        let mut search = self.search();
        self.aim(exit, &mut search);
        if search.distance[entry as usize] == u32::MAX {
            return Err(NoPath { from: source, to: destination });
        }
        let mut links = vec![up];
        let mut switch = entry;
        while switch != exit {
            let distance = search.distance[switch as usize];
            let nearer = self.out[switch as usize].iter().find(|(_, to)| search.distance[*to as usize] < distance);
            let (link, to) = nearer.expect("a switch with a distance has a nearer neighbour");
            links.push(*link);
            switch = *to;
        }
        links.push(down);
        Ok(links)
    }

    /// Base RTT of each pair of different hosts: delays of links and stacks there and back, nothing for serialisation or
    /// queues. Of several shortest paths, among which a hash of the flow chooses, the quickest counts.
    ///
    /// # Errors
    /// If two of the pairs' hosts have no path between them.
    pub fn base_rtts(&self, pairs: &[(u32, u32)]) -> Result<Vec<Span>, NoPath> {
        let delay = |link: u32| self.graph.links[link as usize].delay;
        let mut search = self.search();
        // By the switch that they lead to: delays from every switch.
        let mut known: BTreeMap<u32, Vec<Option<Span>>> = BTreeMap::new();
        let mut one_way = |from: u32, to: u32| {
            let ((entry, up, _), (exit, _, down)) = (self.home(from), self.home(to));
            let delays = known.entry(exit).or_insert_with(|| self.delays_to(exit, &mut search));
            Some(delay(up) + delays[entry as usize]? + delay(down))
        };
        let both_ways = |&(one, other): &(u32, u32)| {
            let delay = one_way(one, other).zip(one_way(other, one)).map(|(there, back)| there + back);
            delay.ok_or(NoPath { from: one, to: other })
        };
        pairs.iter().map(both_ways).collect()
    }

    /// From every switch the delay of the quickest of the shortest paths to this one; `None` where there is no way.
    fn delays_to(&self, target: u32, search: &mut Search) -> Vec<Option<Span>> {
        self.aim(target, search);
        let Search { distance, order, .. } = search;
        let mut delays = vec![None; self.out.len()];
        delays[target as usize] = Some(Span::ZERO);
        for switch in order.iter().skip(1) {
            let nearer =
                self.out[*switch as usize].iter().filter(|(_, to)| distance[*to as usize] < distance[*switch as usize]);
            let through = nearer.map(|(link, to)| Some(self.graph.links[*link as usize].delay + delays[*to as usize]?));
            delays[*switch as usize] = through.min().expect("a switch with a distance has a nearer neighbour");
        }
        delays
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::plans;

    /// Hosts a and b; between their switches two links at once, and a way with more hops.
    const TEXT: &str = r#"
        [topology.graph]
        switches = [{ name = "s1" }, { name = "s2" }, { name = "s3" }]
        hosts = [{ name = "a", switch = "s1", link.delay = "1us" }, { name = "b", switch = "s2", link.delay = "1us" }]
        links = [
            { name = "slow", ends = ["s1", "s2"], forward.delay = "10us", backward.delay = "20us" },
            { name = "fast", ends = ["s1", "s2"], forward.delay = "20us", backward.delay = "6us" },
            { name = "in", ends = ["s1", "s3"], both.delay = "1us" },
            { name = "out", ends = ["s3", "s2"], both.delay = "1us" },
        ]
        [[traffic]]
        long = {}
        from = "a"
        to = "b"
        [[arm]]
        name = "cubic"
        cc = "cubic"
        [run]
        end = "1s"
    "#;

    #[test]
    fn a_base_rtt_is_that_of_the_quickest_of_the_shortest_paths_both_ways() {
        let graph = &plans(TEXT)[0].network;
        let rtts = Routes::new(graph).base_rtts(&[(0, 1), (1, 0)]).unwrap();
        assert_eq!(rtts, [Span::from_us(1 + 10 + 1 + 1 + 6 + 1); 2]);
    }
}
