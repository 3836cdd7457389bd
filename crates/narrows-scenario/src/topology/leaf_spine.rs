//! A leaf-spine network, a Clos network of two tiers: every leaf switch has links to every spine switch, and hosts hang
//! on leaves only. Between hosts of two leaves there is an equally short path over each link from the leaf to a spine.
//! By default it is the network on which pFabric was evaluated: 144 hosts at 10 Gbps, and as much capacity above a leaf
//! as below it.
//!
//! Names: hosts `l1-1` … `l9-16` (leaf, host), switches `leaf-1`, `spine-1`. Racks are leaves, from 1. Parallel links
//! are told apart by their place: `leaf-1->spine-1#2`.

use narrows_core::component::{Kind, Parameter, Value};
use narrows_core::units::{Rate, Span};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Builder, LinkSpec, MAX_HOSTS, MAX_RATE, Named, Network, Stack, count, edge_class, number};
use crate::controller::shown;
use crate::error::{Judged, Problem};
use crate::experiment::host::Host;
use crate::experiment::located::Located;
use crate::experiment::network::LinkClass;
use crate::experiment::quantity::Fraction;
use narrows_plan::{Graph, Role};

/// Most spines, and most links from a leaf to each of them: 4 096 uplinks, the most among which one switch may choose.
const MAX_SPINES: u32 = 512;
const MAX_PARALLEL: u32 = 8;
/// Most links between leaves and spines. All switches together choose among at most 2¹⁹ links, and each of these is one
/// for its leaf and, where it has parallel ones, another for its spine.
const MAX_UPLINKS: u64 = 1 << 18;

const LEAVES: Parameter = number("leaves", 9, (1, MAX_HOSTS), "leaf switches");
const SPINES: Parameter = number("spines", 4, (1, MAX_SPINES), "spine switches");
const HOSTS: Parameter = number("hosts-per-leaf", 16, (1, MAX_HOSTS), "hosts on each leaf");
const PARALLEL: Parameter = number("parallel-links", 1, (1, MAX_PARALLEL), "links between each leaf and each spine");
const RATIO: Parameter = Parameter {
    name: "oversubscription",
    kind: Kind::Real { bits: 32 },
    default: Value::Real(1 << 32),
    range: Some(((1 << 32) / 100 + 1, 1_000 << 32)),
    about: "the rate of a leaf's hosts over that of its uplinks; not allowed with `fabric.rate`",
};
const UPLINK: Parameter = Parameter {
    name: "fabric.rate",
    kind: Kind::Rate,
    default: Value::Auto,
    range: Some((1, MAX_RATE.as_bps())),
    about: "rate of each direction; auto: as `oversubscription` and `edge.rate` have it",
};
pub(super) const KEYS: &[Parameter] = &[LEAVES, SPINES, HOSTS, PARALLEL, RATIO, UPLINK];

/// Parameters of a leaf-spine network.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LeafSpine {
    /// Leaf switches.
    pub leaves: Option<Located<u32>>,
    /// Spine switches.
    pub spines: Option<Located<u32>>,
    /// Hosts on each leaf.
    pub hosts_per_leaf: Option<Located<u32>>,
    /// Links between each leaf and each spine.
    pub parallel_links: Option<Located<u32>>,
    /// Rate of a leaf's hosts over the rate of its uplinks, from 0.01 to 1000: the rate of links between leaves and
    /// spines follows from it and from `edge.rate`. 1 where neither it nor `fabric.rate` is said.
    pub oversubscription: Option<Located<Fraction>>,
    /// Links between leaves and spines.
    #[serde(default)]
    pub fabric: LinkClass,
    /// The hosts' links, where they differ from `fabric`.
    #[serde(default)]
    pub edge: LinkClass,
    /// The hosts' stack.
    #[serde(default)]
    pub host: Host,
}

impl LeafSpine {
    /// What the rate of so many links from a leaf to the spines is, to the nearest bit/s, where `fabric` states none.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and rates of links are far below 2^53 bit/s"
    )]
    fn uplink_rate(&self, hosts: u32, host_rate: Rate, uplinks: u32) -> Judged<Rate> {
        let ratio = self.oversubscription.as_ref().map_or(Fraction(1.0), |written| written.value);
        if let (Some(written), Some((least, most))) = (&self.oversubscription, RATIO.range)
            && !(least..=most).contains(&ratio.scaled(32))
        {
            let [least, most] = [least, most].map(|end| shown(RATIO.kind, end));
            return Err(Problem::out_of_range(RATIO.name, ratio.0, least, most).at(&written.span));
        }
        let exact = host_rate.as_bps() as f64 * f64::from(hosts) / (f64::from(uplinks) * ratio.0);
        let rate = Rate::from_bps(libm::rint(exact) as u64);
        let cause = self.oversubscription.as_ref().map(|written| &written.span);
        match cause.or(self.edge.rate.as_ref().map(|rate| &rate.span)) {
            Some(at) if rate.as_bps() == 0 || rate > MAX_RATE => {
                let sentence = format!("links between leaves and spines would have {rate}, outside 1bps to {MAX_RATE}");
                Err(Problem::new(sentence, "change `oversubscription`, or the rate of the hosts' links").at(at))
            }
            _ => Ok(rate),
        }
    }
}

impl Network for LeafSpine {
    fn host(&self) -> &Host {
        &self.host
    }

    fn resolve(&self, _: &mut Named) -> Judged<Graph> {
        let leaves = count(&LEAVES, self.leaves.as_ref())?;
        let spines = count(&SPINES, self.spines.as_ref())?;
        let hosts = count(&HOSTS, self.hosts_per_leaf.as_ref())?;
        let parallel = count(&PARALLEL, self.parallel_links.as_ref())?;
        let all = u64::from(leaves) * u64::from(hosts);
        if let (true, Some(at)) = (all > MAX_HOSTS.into(), self.hosts_per_leaf.as_ref().or(self.leaves.as_ref())) {
            return Err(Problem::too_many("hosts", all, MAX_HOSTS.into()).at(&at.span));
        }
        let uplinks = spines * parallel;
        let all = u64::from(leaves) * u64::from(uplinks);
        if let (true, Some(at)) = (all > MAX_UPLINKS, self.spines.as_ref().or(self.leaves.as_ref())) {
            return Err(Problem::too_many("links between leaves and spines", all, MAX_UPLINKS).at(&at.span));
        }

        let base = LinkSpec::limited(100, Rate::from_gbps(10), Span::from_us(1));
        let mut fabric = base.with(&self.fabric)?;
        let edge = fabric.with(edge_class(&self.edge)?)?;
        match (&self.fabric.rate, &self.oversubscription) {
            (None, _) => fabric.link.rate = self.uplink_rate(hosts, edge.link.rate, uplinks)?,
            (Some(_), None) => {}
            (Some(rate), Some(_)) => {
                return Err(Problem::not_here("rate", "in `fabric` with `oversubscription`").at(&rate.span));
            }
        }

        let mut builder = Builder::new(Stack::of(&self.host, 0)?);
        let rack = |leaf: u32| u16::try_from(leaf).expect("at most 4096 leaves");
        for leaf in 1..=leaves {
            for host in 1..=hosts {
                builder.host(format!("l{leaf}-{host}"), 0, rack(leaf));
            }
        }
        let tops: Vec<u32> =
            (1..=spines).map(|spine| builder.switch(format!("spine-{spine}"), 0, 0, fabric.pool)).collect();
        for leaf in 1..=leaves {
            let switch = builder.switch(format!("leaf-{leaf}"), 0, rack(leaf), fabric.pool);
            for host in (leaf - 1) * hosts..leaf * hosts {
                builder.attach(host, switch, &edge);
            }
            for spine in &tops {
                for place in 1..=parallel {
                    builder.join(switch, *spine, Role::Fabric, &fabric);
                    let suffix = if parallel > 1 { format!("#{place}") } else { String::new() };
                    builder.graph.links.iter_mut().rev().take(2).for_each(|link| link.name.push_str(&suffix));
                }
            }
        }
        Ok(builder.graph)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tests::{expand, plans};
    use narrows_plan::NodeKind;

    /// An experiment over a leaf-spine network with these keys.
    fn experiment(keys: &str) -> String {
        format!(
            "[topology.leaf-spine]\n{keys}\n[[traffic]]\nlong = {{ size = \"1MB\" }}\nfrom = \"l1-1\"\n\
             [[arm]]\nname = \"A\"\ncc = \"newreno\"\n[run]\nend = \"1s\"\n"
        )
    }

    fn network(keys: &str) -> Graph {
        plans(&experiment(keys)).remove(0).network
    }

    fn refusal(keys: &str) -> String {
        match expand(&experiment(keys), &crate::Overrides::default()) {
            Ok(_) => panic!("accepted: {keys}"),
            Err(error) => error.render(),
        }
    }

    fn rate(graph: &Graph, name: &str) -> Rate {
        graph.links.iter().find(|link| link.name == name).expect(name).rate
    }

    /// Links of a shortest path from one host to another, and how many such paths there are.
    fn shortest(graph: &Graph, from: &str, to: &str) -> (u32, u64) {
        let at = |name: &str| u32::try_from(graph.nodes.iter().position(|node| node.name == name).unwrap()).unwrap();
        let mut reached = BTreeMap::from([(at(from), 1)]);
        let mut seen: Vec<u32> = vec![at(from)];
        for hops in 1.. {
            let mut next: BTreeMap<u32, u64> = BTreeMap::new();
            for link in graph.links.iter().filter(|link| !seen.contains(&link.to)) {
                if let Some(ways) = reached.get(&link.from) {
                    *next.entry(link.to).or_default() += ways;
                }
            }
            if let Some(ways) = next.get(&at(to)) {
                return (hops, *ways);
            }
            assert!(!next.is_empty(), "no path from {from} to {to}");
            seen.extend(next.keys());
            reached = next;
        }
        unreachable!("the loop ends by itself")
    }

    #[test]
    fn nodes_links_and_ports_are_as_many_as_the_closed_form_says() {
        for (leaves, spines, hosts, parallel) in [(1, 1, 2, 1), (2, 1, 4, 1), (3, 2, 5, 1), (4, 3, 2, 2), (9, 4, 16, 1)]
        {
            let keys =
                format!("leaves = {leaves}\nspines = {spines}\nhosts-per-leaf = {hosts}\nparallel-links = {parallel}");
            let graph = network(&keys);
            assert_eq!(graph.nodes.len(), leaves * hosts + leaves + spines);
            assert_eq!(graph.links.len(), 2 * (leaves * hosts + leaves * spines * parallel));
            let mut names: Vec<&str> = graph.links.iter().map(|link| link.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), graph.links.len());
            for (index, node) in graph.nodes.iter().enumerate() {
                let ports = graph.links.iter().filter(|link| link.from as usize == index).count();
                let expected = match (node.kind, node.rack) {
                    (NodeKind::Host, _) => 1,
                    (NodeKind::Switch, 0) => leaves * parallel,
                    (NodeKind::Switch, _) => hosts + spines * parallel,
                };
                assert_eq!(ports, expected, "{}", node.name);
            }
        }
    }

    #[test]
    fn two_links_lie_between_hosts_of_a_leaf_and_four_between_leaves_by_each_spine() {
        for (spines, parallel) in [(1, 1), (3, 1), (4, 1), (2, 3)] {
            let keys = format!("leaves = 3\nspines = {spines}\nhosts-per-leaf = 2\nparallel-links = {parallel}");
            let graph = network(&keys);
            assert_eq!(shortest(&graph, "l1-1", "l1-2"), (2, 1));
            // Up over any of the parallel links of any spine, and down over any of its own.
            assert_eq!(shortest(&graph, "l1-2", "l3-1"), (4, spines * parallel * parallel));
        }
    }

    #[test]
    fn hosts_of_a_leaf_share_a_rack() {
        let graph = network("leaves = 3\nspines = 2\nhosts-per-leaf = 2");
        let racks: Vec<(&str, u16)> = graph.nodes.iter().map(|node| (node.name.as_str(), node.rack)).collect();
        assert_eq!(racks[..6], [("l1-1", 1), ("l1-2", 1), ("l2-1", 2), ("l2-2", 2), ("l3-1", 3), ("l3-2", 3)]);
        assert_eq!(racks[6..], [("spine-1", 0), ("spine-2", 0), ("leaf-1", 1), ("leaf-2", 2), ("leaf-3", 3)]);
    }

    #[test]
    fn the_default_is_pfabrics_network() {
        let graph = LeafSpine::default().resolve(&mut Named::new()).unwrap();
        let hosts = graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
        assert_eq!((hosts, graph.nodes.len()), (144, 144 + 9 + 4));
        assert_eq!(rate(&graph, "l9-16->leaf-9"), Rate::from_gbps(10));
        assert_eq!(rate(&graph, "spine-4->leaf-1"), Rate::from_gbps(40));
    }

    #[test]
    fn rates_of_uplinks_follow_from_oversubscription() {
        for (keys, host, uplink) in [
            ("hosts-per-leaf = 8\nspines = 2", 10_000, 40_000),
            ("hosts-per-leaf = 8\nspines = 2\noversubscription = 4", 10_000, 10_000),
            ("hosts-per-leaf = 8\nspines = 2\nparallel-links = 2\noversubscription = 4", 10_000, 5_000),
            ("hosts-per-leaf = 8\nspines = 2\noversubscription = 0.5\nedge = { rate = \"1Gbps\" }", 1_000, 8_000),
            // What `fabric` says is of hosts' links too, as in all topologies.
            ("hosts-per-leaf = 8\nspines = 2\nfabric = { rate = \"25Gbps\" }", 25_000, 25_000),
            ("fabric = { rate = \"100Gbps\" }\nedge = { rate = \"25Gbps\" }", 25_000, 100_000),
        ] {
            let graph = network(keys);
            let up = graph.links.iter().find(|link| link.name.starts_with("leaf-1->spine-1")).unwrap();
            assert_eq!((rate(&graph, "leaf-1->l1-1"), up.rate), (Rate::from_mbps(host), Rate::from_mbps(uplink)));
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_way_out() {
        for (keys, sentence, help) in [
            ("leaves = 0", "leaves is 0, outside 1 to 16384", "choose a value from 1 to 16384"),
            ("spines = 0", "spines is 0, outside 1 to 512", "choose a value from 1 to 512"),
            ("hosts-per-leaf = 0", "hosts-per-leaf is 0, outside 1 to 16384", "choose a value from 1 to 16384"),
            ("parallel-links = 9", "parallel-links is 9, outside 1 to 8", "choose a value from 1 to 8"),
            (
                "leaves = 4096\nhosts-per-leaf = 4096",
                "hosts: 16777216 is more than the 16384 that are allowed",
                "make the experiment smaller",
            ),
            ("leaves = 1025", "hosts: 16400 is more than the 16384 that are allowed", "make the experiment smaller"),
            (
                "leaves = 4096\nhosts-per-leaf = 1\nspines = 512\nparallel-links = 8",
                "links between leaves and spines: 16777216 is more than the 262144 that are allowed",
                "make the experiment smaller",
            ),
            (
                "oversubscription = 2\nfabric = { rate = \"40Gbps\" }",
                "`rate` is not allowed in `fabric` with `oversubscription`",
                "remove it",
            ),
            ("oversubscription = 0", "oversubscription is 0, outside 0.01 to 1000", "choose a value"),
            (
                "oversubscription = 0.01\nedge = { rate = \"1Tbps\" }",
                "links between leaves and spines would have 400000Gbps, outside 1bps to 100000Gbps",
                "change `oversubscription`",
            ),
            (
                "hosts-per-leaf = 1\nedge = { rate = \"1bps\" }",
                "links between leaves and spines would have 0bps, outside 1bps to 100000Gbps",
                "or the rate of the hosts' links",
            ),
        ] {
            let said = refusal(keys);
            assert!(said.contains(sentence) && said.contains(help), "{said}");
        }
    }
}
