//! Who may send to whom: relations of place become groups of ordered pairs.
//!
//! A relation that has several directions becomes one group each, so that every direction carries the same load exactly
//! and draws from streams of its own: `web/1-2` is from site 1 to site 2, `web/rack-3` from rack 3 to the others.

use std::collections::BTreeMap;

use narrows_core::rng::Stream;

use super::Scene;
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::traffic::{Between, Traffic};
use crate::select;
use narrows_plan::{NodeKind, Pairs};

/// Ordered pairs that share a process.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The traffic's name, with its direction if there are several.
    pub(crate) name: String,
    /// The pairs.
    pub(crate) pairs: Pairs,
    /// Its share of the traffic's flows: of its ordered pairs among all. From [`by_sender`], its share of the sender's.
    pub(crate) weight: f64,
}

/// Each group's senders apart, `web/h1`: each has a process of its own. A sender that stands in several groups divides its
/// flows among them as its receivers are divided; the weights are these shares and add up to 1 for each sender.
pub(super) fn by_sender(groups: Vec<Group>, scene: &Scene<'_>) -> Vec<Group> {
    let mut apart: Vec<(u32, Group)> = vec![];
    let mut all: BTreeMap<u32, f64> = BTreeMap::new();
    for group in groups {
        for (sender, pairs) in senders(group.pairs) {
            let (name, weight) = (format!("{}/{}", group.name, scene.name(sender)), receivers(sender, &pairs));
            *all.entry(sender).or_default() += weight;
            apart.push((sender, Group { name, pairs, weight }));
        }
    }
    let share = |(sender, group): (u32, Group)| Group { weight: group.weight / all[&sender], ..group };
    apart.into_iter().map(share).collect()
}

/// The senders of these pairs that have a receiver, each with its own pairs.
fn senders(pairs: Pairs) -> Vec<(u32, Pairs)> {
    match pairs {
        Pairs::Between { sources, destinations } => sources
            .into_iter()
            .filter(|source| destinations.iter().any(|destination| destination != source))
            .map(|source| (source, Pairs::Between { sources: vec![source], destinations: destinations.clone() }))
            .collect(),
        Pairs::Listed(listed) => {
            let mut by_source: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
            for pair in listed {
                by_source.entry(pair.0).or_default().push(pair);
            }
            by_source.into_iter().map(|(source, pairs)| (source, Pairs::Listed(pairs))).collect()
        }
    }
}

/// How many receivers this only sender of these pairs has.
#[expect(clippy::cast_precision_loss, reason = "numbers of hosts are far below 2^53")]
fn receivers(sender: u32, pairs: &Pairs) -> f64 {
    match pairs {
        Pairs::Between { destinations, .. } => destinations.iter().filter(|to| **to != sender).count() as f64,
        Pairs::Listed(listed) => listed.len() as f64,
    }
}

/// The groups of a traffic. At least one, each with at least one pair, weights adding up to 1.
pub(super) fn groups(name: &str, written: &Located<Traffic>, scene: &Scene<'_>) -> Judged<Vec<Group>> {
    if written.between.is_none() && written.from.is_none() && written.to.is_none() {
        return Err(Problem::missing("between", "between = \"all\"").at(&written.span));
    }
    let active = active(written, scene)?;
    let side = |said: Option<&Located<_>>| -> Judged<Vec<u32>> {
        let mut hosts = match said {
            Some(selector) => select::hosts(scene.graph, selector)?,
            None => (0_u32..)
                .zip(&scene.graph.nodes)
                .filter(|(_, node)| node.kind == NodeKind::Host)
                .map(|(i, _)| i)
                .collect(),
        };
        hosts.retain(|host| active[*host as usize]);
        Ok(hosts)
    };
    let (sources, destinations) = (side(written.from.as_ref())?, side(written.to.as_ref())?);
    let node = |host: u32| &scene.graph.nodes[host as usize];
    let span = written.between.as_ref().map_or(&written.span, |between| &between.span);
    let mut parts: Vec<(String, Vec<u32>, Vec<u32>)> = vec![];
    match written.between.as_ref().map(|between| between.value) {
        None | Some(Between::All) => parts.push((String::new(), sources, destinations)),
        Some(Between::Datacenters) => {
            let mut sites: Vec<u16> = scene.graph.nodes.iter().map(|node| node.site).collect();
            sites.sort_unstable();
            sites.dedup();
            if sites.len() < 2 {
                return Err(Problem::no_pairs("all hosts stand in one datacenter").at(span));
            }
            for one in &sites {
                for other in sites.iter().filter(|other| *other != one) {
                    let of = |hosts: &[u32], site: u16| {
                        hosts.iter().copied().filter(|host| node(*host).site == site).collect()
                    };
                    parts.push((format!("/{one}-{other}"), of(&sources, *one), of(&destinations, *other)));
                }
            }
        }
        Some(relation @ (Between::Racks | Between::SameRack)) => {
            let mut racks: Vec<(u16, u16)> = scene.graph.nodes.iter().map(|node| (node.rack, node.site)).collect();
            racks.sort_unstable();
            racks.dedup();
            for (rack, site) in racks.into_iter().filter(|(rack, _)| *rack != 0) {
                let from = sources.iter().copied().filter(|host| node(*host).rack == rack).collect();
                let same = relation == Between::SameRack;
                let other = |host: &u32| node(*host).site == site && (node(*host).rack == rack) == same;
                parts.push((format!("/rack-{rack}"), from, destinations.iter().copied().filter(other).collect()));
            }
        }
        Some(Between::Permutation) => {
            let mut hosts = sources;
            let receives = members(scene.graph.nodes.len(), &destinations);
            hosts.retain(|host| receives[*host as usize]);
            let pairs = permutation(name, &hosts);
            if pairs.is_empty() {
                return Err(Problem::no_pairs("a permutation needs two hosts that may both send and receive").at(span));
            }
            return Ok(vec![Group { name: name.to_owned(), pairs: Pairs::Listed(pairs), weight: 1.0 }]);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "numbers of pairs are below 2^53")]
    let ordered = |from: &[u32], to: &[u32]| {
        let receives = members(scene.graph.nodes.len(), to);
        let both = from.iter().filter(|host| receives[**host as usize]).count();
        (from.len() * to.len() - both) as f64
    };
    let weights: Vec<f64> = parts.iter().map(|(_, from, to)| ordered(from, to)).collect();
    let total: f64 = weights.iter().sum();
    if total == 0.0 {
        return Err(Problem::no_pairs("no sender is left that has a receiver other than itself").at(span));
    }
    let several = weights.iter().filter(|weight| **weight > 0.0).count() > 1;
    let group = |((suffix, sources, destinations), weight): ((String, Vec<u32>, Vec<u32>), f64)| Group {
        name: if several { format!("{name}{suffix}") } else { name.to_owned() },
        pairs: Pairs::Between { sources, destinations },
        weight: weight / total,
    };
    Ok(parts.into_iter().zip(weights).filter(|(_, weight)| *weight > 0.0).map(group).collect())
}

/// Whether each node is in the list.
fn members(nodes: usize, list: &[u32]) -> Vec<bool> {
    let mut members = vec![false; nodes];
    list.iter().for_each(|node| members[*node as usize] = true);
    members
}

/// Which hosts take part: of each rack the first `active`.
fn active(written: &Located<Traffic>, scene: &Scene<'_>) -> Judged<Vec<bool>> {
    let nodes = &scene.graph.nodes;
    let Some(most) = &written.active else { return Ok(vec![true; nodes.len()]) };
    let mut seen = std::collections::BTreeMap::<(u16, u16), u32>::new();
    let mut active = vec![];
    for node in nodes {
        let rank = if node.kind == NodeKind::Host { seen.entry((node.site, node.rack)).or_default() } else { &mut 0 };
        active.push(*rank < most.value);
        *rank += 1;
    }
    let largest = seen.values().copied().max().unwrap_or(0);
    if most.value == 0 || most.value > largest {
        return Err(Problem::out_of_range("active", most.value, "1", largest).at(&most.span));
    }
    Ok(active)
}

/// A cyclic permutation of the hosts [Sattolo 1986]: every host sends to one other. It depends on the traffic's name
/// alone, so that all seeds and arms share it.
fn permutation(name: &str, hosts: &[u32]) -> Vec<(u32, u32)> {
    if hosts.len() < 2 {
        return vec![];
    }
    let mut stream = Stream::named(0, &format!("permutation/{name}"));
    let mut shuffled = hosts.to_vec();
    for last in (1..shuffled.len()).rev() {
        let other = usize::try_from(stream.below(last as u64)).expect("below a usize");
        shuffled.swap(last, other);
    }
    hosts.iter().copied().zip(shuffled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_never_sends_to_itself() {
        for count in 2..40 {
            let hosts: Vec<u32> = (0..count).collect();
            let pairs = permutation("t", &hosts);
            let mut receivers: Vec<u32> = pairs.iter().map(|(_, to)| *to).collect();
            receivers.sort_unstable();
            assert_eq!(receivers, hosts);
            assert!(pairs.iter().all(|(from, to)| from != to));
        }
    }
}
