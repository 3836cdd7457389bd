//! Paths of a network by how far hosts are apart, with base RTT, bottleneck and random losses; and what its ports may hold.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use narrows_core::queue::Limit;
use narrows_plan::{Graph, Link, NodeKind, Role};
use serde::Serialize;

use super::links;
use crate::route::Routes;

/// Kinds of paths that are listed.
const MAX_KINDS: usize = 8;
/// Kinds of hosts among which paths are looked at, those on one switch whose links are alike: so many of one site, of several
/// fewer, but two at least; and so many sites.
const MAX_GROUPS: usize = 16;
const MAX_SITES: usize = 32;
/// Different paths from one switch to another that are kept.
const MAX_WAYS: usize = 64;
/// How far hosts are apart: in one rack, in one datacenter, or farther.
const DISTANCES: [&str; 3] = ["in a rack", "in different racks", "in different datacenters"];
/// The same where there is one rack.
const ANY_TWO: &str = "any two";
/// Alpha of a pool is in units of 2⁻¹⁶.
const ALPHA_ONE: u128 = 1 << 16;

/// Paths and buffers of a network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paths {
    /// By distance, base RTT and bottleneck, least first.
    pub kinds: Vec<PathKind>,
    /// How many more there are at least, between those of their distance that are listed.
    pub left_out: usize,
    /// What ports hold, by role, rate and size.
    pub buffers: Vec<Buffer>,
    /// Of all kinds, those left out too: by distance the least and the largest base RTT, picoseconds.
    #[serde(skip)]
    pub(super) base_rtts: Vec<(&'static str, [u64; 2])>,
}

/// Paths of hosts that are equally far apart. Where several have equally few links, a packet may take any.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathKind {
    /// How far they are apart.
    pub hosts: &'static str,
    /// Two such hosts, by name.
    pub example: [String; 2],
    /// Links of the way there.
    pub links: u32,
    /// Equally short ways there of these two hosts that are like this one.
    pub ways: u64,
    /// Delays of links and stacks there and back, picoseconds, nothing for serialisation and queues: with the quickest and the
    /// slowest way back.
    pub base_rtt_ps: [u64; 2],
    /// Rate of the slowest link of the way there, bit/s.
    pub rate_bps: u64,
    /// Share of data packets that links of the way there lose at random, 0 to 1; without queues, and before events.
    pub loss: f64,
    /// Role and rate of each port of the way there.
    pub ports: BTreeSet<(&'static str, u64)>,
}

/// What ports of a role and rate may hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Buffer {
    /// `host`, `edge`, `fabric` or `wan`.
    pub role: &'static str,
    /// Their rate, bit/s.
    pub rate_bps: u64,
    /// How many.
    pub ports: usize,
    /// IP bytes, packets being of the largest size; none if it is unlimited.
    pub size_bytes: Option<u64>,
    /// `port`: the port's own limit; `shared`: what a pool grants one busy port; `input`: of a link into the switch.
    pub kind: &'static str,
}

/// From a switch to another: one of the paths with the fewest links.
#[derive(Clone, Debug)]
struct Way {
    delay_ps: u64,
    rate_bps: u64,
    links: u32,
    /// So many are alike.
    count: u64,
    /// Share of packets that no link loses.
    kept: f64,
    /// Role and rate of each: mostly those of the way that it goes on.
    ports: Rc<BTreeSet<(&'static str, u64)>>,
}

/// A network's links, and what each loses at random.
struct Links<'a> {
    graph: &'a Graph,
    lost: Vec<f64>,
}

impl Way {
    fn none() -> Way {
        Way { delay_ps: 0, rate_bps: u64::MAX, links: 0, count: 1, kept: 1.0, ports: Rc::default() }
    }

    /// The way with this link before or behind it.
    fn with(&self, links: &Links<'_>, number: u32) -> Way {
        let link = &links.graph.links[number as usize];
        let mut ports = Rc::clone(&self.ports);
        let port = (link.role.name(), link.rate.as_bps());
        if !ports.contains(&port) {
            Rc::make_mut(&mut ports).insert(port);
        }
        Way {
            delay_ps: self.delay_ps + link.delay.as_ps(),
            rate_bps: self.rate_bps.min(link.rate.as_bps()),
            links: self.links + 1,
            count: self.count,
            kept: self.kept * (1.0 - links.lost[number as usize]),
            ports,
        }
    }

    /// What tells it from others, to which it is equal otherwise. Products of the same factors may differ in their last bits.
    fn key(&self) -> (u64, u64, u64) {
        (self.delay_ps, self.rate_bps, rounded(self.kept))
    }
}

/// In units of 10⁻¹².
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 10¹²")]
fn rounded(share: f64) -> u64 {
    (share * 1e12 + 0.5) as u64
}

/// Hosts on one switch whose links are alike.
struct Group {
    /// The first two, by node.
    hosts: Vec<u32>,
    switch: u32,
    site: u16,
    rack: u16,
    /// Links to and from the switch.
    up: u32,
    down: u32,
}

impl Paths {
    /// Of a network whose hosts hang on switches.
    pub fn of(graph: &Graph) -> Paths {
        let mut kinds = kinds(graph);
        let hosts = graph.nodes.iter().filter(|node| node.kind == NodeKind::Host);
        let is_one_rack = hosts.map(|node| (node.site, node.rack)).collect::<BTreeSet<_>>().len() == 1;
        let mut base_rtts: Vec<(&str, [u64; 2])> = vec![];
        for kind in &mut kinds {
            if is_one_rack {
                kind.hosts = ANY_TWO;
            }
            let [least, largest] = kind.base_rtt_ps;
            match base_rtts.last_mut().filter(|(hosts, _)| *hosts == kind.hosts) {
                Some((_, all)) => *all = [all[0].min(least), all[1].max(largest)],
                None => base_rtts.push((kind.hosts, [least, largest])),
            }
        }
        let (kinds, left_out) = bounded(kinds);
        Paths { kinds, left_out, buffers: buffers(graph), base_rtts }
    }
}

/// One for each distance, base RTT, bottleneck and loss that there is.
fn kinds(graph: &Graph) -> Vec<PathKind> {
    let routes = Routes::new(graph);
    let links = Links { graph, lost: graph.links.iter().map(links::mean_loss).collect() };
    let groups = spread(&links, groups(&links, &routes));
    let mut ways: BTreeMap<u32, BTreeMap<u32, Vec<Way>>> = BTreeMap::new();
    for group in &groups {
        ways.entry(group.switch).or_insert_with(|| ways_to(&links, &routes, group.switch));
    }
    let between = |one: &Group, other: &Group| -> Vec<Way> {
        let ways = ways[&other.switch].get(&one.switch).into_iter().flatten();
        ways.map(|way| way.with(&links, one.up).with(&links, other.down)).collect()
    };
    let mut found: BTreeMap<(usize, [u64; 2], u64, u64), PathKind> = BTreeMap::new();
    for (place, one) in groups.iter().enumerate() {
        for (other_place, other) in groups.iter().enumerate() {
            let is_same = place == other_place;
            if is_same && one.hosts.len() < 2 {
                continue;
            }
            let back: Vec<u64> = between(other, one).iter().map(|way| way.delay_ps).collect();
            let (Some(quickest), Some(slowest)) = (back.iter().min(), back.iter().max()) else { continue };
            let apart = if one.site == other.site { usize::from(one.rack != other.rack) } else { 2 };
            let name = |host: u32| graph.nodes[host as usize].name.clone();
            let example = [one.hosts[0], other.hosts[if is_same { 1 } else { 0 }]].map(name);
            for there in between(one, other) {
                let base_rtt_ps = [quickest, slowest].map(|back| there.delay_ps + back);
                let (_, rate_bps, kept) = there.key();
                let kind =
                    found.entry((apart, base_rtt_ps, rate_bps, rounded(1.0) - kept)).or_insert_with(|| PathKind {
                        hosts: DISTANCES[apart],
                        example: example.clone(),
                        links: there.links,
                        ways: there.count,
                        base_rtt_ps,
                        rate_bps,
                        loss: 1.0 - there.kept,
                        ports: BTreeSet::new(),
                    });
                kind.ports.extend(there.ports.iter().copied());
            }
        }
    }
    found.into_values().collect()
}

/// From every switch that has one to this one, all that differ: by their first switch.
fn ways_to(links: &Links<'_>, routes: &Routes<'_>, target: u32) -> BTreeMap<u32, Vec<Way>> {
    let mut ways = BTreeMap::from([(target, vec![Way::none()])]);
    for (switch, nearer) in routes.nearer(target) {
        let mut different: BTreeMap<(u64, u64, u64), Way> = BTreeMap::new();
        for (link, to) in nearer {
            for way in ways[&to].iter().map(|way| way.with(links, link)) {
                let known = different.entry(way.key()).or_insert_with(|| Way { count: 0, ..way.clone() });
                known.count = known.count.saturating_add(way.count);
                if !known.ports.is_superset(&way.ports) {
                    Rc::make_mut(&mut known.ports).extend(way.ports.iter().copied());
                }
            }
        }
        // Quickest first: of very many the quickest and the slowest, which count for the ports of the others, too.
        let mut all: Vec<Way> = different.into_values().collect();
        if all.len() > MAX_WAYS {
            let beyond = MAX_WAYS / 2..all.len() - MAX_WAYS / 2;
            let ports: Vec<Rc<_>> = all.drain(beyond).map(|way| way.ports).collect();
            let slowest = all.last_mut().expect("many were kept");
            Rc::make_mut(&mut slowest.ports).extend(ports.iter().flat_map(|own| own.iter().copied()));
        }
        ways.insert(switch, all);
    }
    ways
}

fn groups(links: &Links<'_>, routes: &Routes<'_>) -> Vec<Group> {
    let mut groups: Vec<Group> = vec![];
    let mut places = BTreeMap::new();
    let graph = links.graph;
    for (host, node) in (0..).zip(&graph.nodes).take_while(|(_, node)| node.kind == NodeKind::Host) {
        let Some((switch, up, down)) = routes.home_of(host) else { continue };
        let alike = [up, down].map(|number| {
            let link = &graph.links[number as usize];
            (link.delay, link.rate, rounded(links.lost[number as usize]))
        });
        let place = *places.entry((switch, node.site, node.rack, alike)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group { hosts: vec![], switch, site: node.site, rack: node.rack, up, down });
        }
        let own = &mut groups[place].hosts;
        if own.len() < 2 {
            own.push(host);
        }
    }
    groups
}

/// Of each site all of few; of many those with the least and with the largest delays of their links.
fn spread(links: &Links<'_>, groups: Vec<Group>) -> Vec<Group> {
    let mut sites: BTreeMap<u16, Vec<Group>> = BTreeMap::new();
    for group in groups {
        sites.entry(group.site).or_default().push(group);
    }
    let room = (MAX_GROUPS / sites.len().max(1)).max(2);
    let of_site = |mut own: Vec<Group>| {
        let delay = |link: u32| links.graph.links[link as usize].delay;
        own.sort_by_key(|group| delay(group.up) + delay(group.down));
        if own.len() > room {
            own.drain(room / 2..own.len() - (room - room / 2));
        }
        own
    };
    sites.into_values().take(MAX_SITES).flat_map(of_site).collect()
}

/// All of few; of many, for each distance those with the least and the largest base RTTs. And how many are left out.
fn bounded(mut kinds: Vec<PathKind>) -> (Vec<PathKind>, usize) {
    let all = kinds.len();
    if all <= MAX_KINDS {
        return (kinds, 0);
    }
    let mut distances: Vec<usize> = kinds.chunk_by(|one, other| one.hosts == other.hosts).map(<[_]>::len).collect();
    let room = (MAX_KINDS / distances.len()).max(2);
    let mut begin = 0;
    for own in &mut distances {
        // The largest is last.
        let of_distance = begin..begin + *own;
        let largest = of_distance.clone().max_by_key(|place| kinds[*place].base_rtt_ps[1]).expect("it has some");
        kinds[largest..of_distance.end].rotate_left(1);
        begin = of_distance.end;
    }
    let mut kept = vec![];
    let mut begin = 0;
    for own in distances {
        let end = begin + own;
        let (first, last) = (room / 2, room - room / 2);
        kept.extend((begin..end).filter(|place| own <= room || *place < begin + first || *place >= end - last));
        begin = end;
    }
    let left_out = all - kept.len();
    let mut kinds: Vec<Option<PathKind>> = kinds.into_iter().map(Some).collect();
    (kept.into_iter().filter_map(|place| kinds[place].take()).collect(), left_out)
}

fn buffers(graph: &Graph) -> Vec<Buffer> {
    let mut counted: BTreeMap<(usize, u64, Option<u64>, &'static str), usize> = BTreeMap::new();
    for link in &graph.links {
        let role = Role::ALL.iter().position(|role| *role == link.role).expect("one of all");
        let (size, kind) = held(graph, link);
        *counted.entry((role, link.rate.as_bps(), size, kind)).or_default() += 1;
    }
    let told = counted.into_iter();
    told.map(|((role, rate_bps, size_bytes, kind), ports)| Buffer {
        role: Role::ALL[role].name(),
        rate_bps,
        ports,
        size_bytes,
        kind,
    })
    .collect()
}

/// Bytes that a port may hold, and what bounds them.
#[expect(clippy::cast_possible_truncation, reason = "a part of a pool")]
fn held(graph: &Graph, link: &Link) -> (Option<u64>, &'static str) {
    let bytes = |limit: Limit| match limit {
        Limit::Unlimited => None,
        Limit::Bytes(bytes) => Some(bytes.get()),
        Limit::Packets(packets) => Some(packets.get() * u64::from(graph.mtu.get())),
    };
    let pool = graph.nodes[link.from as usize].pool.filter(|_| link.pooled);
    let granted = pool.map(|pool| {
        let alpha = u128::from(pool.alpha);
        (u128::from(pool.size.get()) * alpha / (alpha + ALPHA_ONE)) as u64
    });
    let bounds = [
        (bytes(link.limit), "port"),
        (granted, "shared"),
        (link.ingress.and_then(|memory| bytes(memory.limit)), "input"),
    ];
    let least = bounds.into_iter().filter_map(|(bytes, kind)| bytes.map(|bytes| (bytes, kind))).min_by_key(|it| it.0);
    least.map_or((None, "port"), |(bytes, kind)| (Some(bytes), kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many ways are equally short, by how far hosts are apart, and of how many links each.
    fn ways(topology: &str) -> Vec<(&'static str, u32, u64)> {
        let plan = crate::tests::one_flow(topology, "*", "*");
        Paths::of(&plan.network).kinds.into_iter().map(|kind| (kind.hosts, kind.links, kind.ways)).collect()
    }

    #[test]
    fn equally_short_ways_are_counted() {
        let clos = ways("[topology.leaf-spine]\nleaves = 3\nspines = 5\nhosts-per-leaf = 2");
        assert_eq!(clos, [("in a rack", 2, 1), ("in different racks", 4, 5)]);
        // k/2 in a pod, and (k/2)² between pods [Al-Fares 2008 §3.1].
        let fat = ways("[topology.fat-tree]\nk = 6");
        assert_eq!(fat.iter().map(|(_, links, ways)| (*links, *ways)).collect::<Vec<_>>(), [(2, 1), (4, 3), (6, 9)]);
    }

    #[test]
    fn ways_that_differ_are_counted_apart() {
        let links = |delays: [u32; 3]| {
            let links = delays.map(|us| format!("{{ ends = [\"s\", \"t\"], both.delay = \"{us}us\" }}")).join(", ");
            format!(
                "[topology.graph]\nswitches = [{{ name = \"s\" }}, {{ name = \"t\" }}]\n\
                 hosts = [{{ name = \"a\", switch = \"s\" }}, {{ name = \"b\", switch = \"t\" }}]\nlinks = [{links}]"
            )
        };
        let counts = |delays| ways(&links(delays)).iter().map(|(_, _, ways)| *ways).collect::<Vec<_>>();
        assert_eq!(counts([3, 3, 3]), [3]);
        assert_eq!(counts([3, 9, 3]), [2, 1]);
        assert_eq!(counts([3, 9, 27]), [1, 1, 1]);
    }
}
