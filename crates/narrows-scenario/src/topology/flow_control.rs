//! Flow control: what is written of it, and whether nothing is lost and nothing stands still for ever.

use narrows_core::packet::Mtu;
use narrows_core::queue::Limit;
use narrows_core::queue::pfc::{Thresholds, headroom};
use narrows_core::units::Bytes;
use narrows_plan::{Graph, Ingress, Link, NodeKind};

use super::FULL_PACKET;
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::network::FlowControl;
use crate::route::Routes;

/// What a class of links says.
pub(super) fn resolve(written: &Located<FlowControl>) -> Judged<Option<Thresholds>> {
    let FlowControl::Pfc(pfc) = &written.value else { return Ok(None) };
    let (xoff, xon) = (pfc.xoff.value.0, pfc.xon.value.0);
    if xoff.get() < FULL_PACKET {
        return Err(Problem::no_room("`xoff`", xoff.get()).at(&pfc.xoff.span));
    }
    if xon > xoff {
        return Err(Problem::out_of_range("xon", xon, "0B", format!("xoff, {xoff}")).at(&pfc.xon.span));
    }
    Ok(Some(Thresholds { xoff, xon, may_lose: pfc.may_lose }))
}

/// Puts a link's limit and thresholds to where they count.
pub(super) fn place(link: &mut Link, counts_by_input: bool, thresholds: Option<Thresholds>, nodes: [NodeKind; 2]) {
    let [from, to] = nodes;
    if counts_by_input {
        let limit = std::mem::replace(&mut link.limit, Limit::Unlimited);
        link.ingress = (to == NodeKind::Switch).then_some(Ingress { limit, thresholds });
    } else if from == NodeKind::Switch {
        link.pauses = thresholds;
    }
}

/// Refuses memory that does not hold what may come after a pause, unless packets may be lost; and cycles of links that may
/// all wait for each other.
pub(crate) fn check(graph: &Graph) -> Result<(), Problem> {
    let can_be_paused = graph.can_be_paused();
    if !graph.links.iter().any(|link| link.ingress.is_some() || link.pauses.is_some()) {
        return Ok(());
    }
    let after_pause = after_pause(graph);
    // By node: what may come over all links to it, of one class and of all that they serve apart.
    let mut room = vec![[Bytes::ZERO; 2]; graph.nodes.len()];
    for (link, &after) in graph.links.iter().zip(&after_pause) {
        let [of_one, of_all] = &mut room[link.to as usize];
        *of_one += after;
        *of_all += Bytes::new(after.get() * link.classes() as u64);
    }
    // Each class is paused by itself: a memory for all has a part for each.
    let classes = graph.links.iter().map(Link::classes).max().unwrap_or(1);
    for (link, &needed) in graph.links.iter().zip(&after_pause) {
        if let Some(Ingress { limit, thresholds }) = link.ingress {
            if matches!(limit, Limit::Packets(_)) {
                let sentence = format!("the memory for what comes over `{}` is stated in packets", link.name);
                return Err(Problem::new(sentence, "state `limit` in bytes: `buffering = \"input\"` counts them"));
            }
            check_headroom(&link.name, thresholds, (limit, classes), needed, false, graph.mtu)?;
        }
        if let Some(thresholds) = link.pauses {
            let classes = link.classes();
            let [of_one, of_all] = room[link.from as usize];
            let needed = if classes == 1 { of_all } else { of_one };
            check_headroom(&link.name, Some(thresholds), (link.limit, classes), needed, link.pooled, graph.mtu)?;
        }
    }
    match cycle(graph, &can_be_paused) {
        None => Ok(()),
        Some(links) => {
            let names: Vec<&str> = links.iter().map(|&link| graph.links[link as usize].name.as_str()).collect();
            let sentence = format!("with flow control these links may all wait for each other: {}", names.join(", "));
            Err(Problem::new(
                sentence,
                "break the cycle: shortest paths must not lead around it, or set `flow-control = \"none\"`",
            ))
        }
    }
}

/// By link, what may still come over it when its far end pauses it, at its highest rate while the way back is at its lowest. A
/// host's stack lies before its port. Without a way back nobody can be paused.
fn after_pause(graph: &Graph) -> Vec<Bytes> {
    let line = |link: &Link, is_back: bool| {
        let [least, greatest] = link.schedule().extreme_rates();
        (if is_back { least } else { greatest }, link.delay.saturating_sub(link.stack))
    };
    let after = |(link, back): (&Link, Option<u32>)| match back {
        Some(back) => headroom(line(link, false), line(&graph.links[back as usize], true), graph.mtu.packet()),
        None => Bytes::ZERO,
    };
    graph.links.iter().zip(graph.reverses()).map(after).collect()
}

/// `limit` is of so many classes together, each with an equal share.
fn check_headroom(
    name: &str,
    thresholds: Option<Thresholds>,
    (limit, classes): (Limit, usize),
    needed: Bytes,
    pooled: bool,
    mtu: Mtu,
) -> Result<(), Problem> {
    let Some(Thresholds { xoff, may_lose: false, .. }) = thresholds else { return Ok(()) };
    let help = "make `limit` larger or `xoff` smaller; or accept loss: `may-lose = true`";
    let bytes = match limit.share(classes as u64) {
        Limit::Unlimited if !pooled => return Ok(()),
        Limit::Bytes(bytes) => bytes,
        Limit::Packets(packets) => packets.bytes(mtu.packet()),
        Limit::Unlimited => {
            let sentence = format!("`{name}` pauses who fills it, and shares a pool: what it may hold is not known");
            return Err(Problem::new(sentence, "give it a `limit` of its own, or accept loss: `may-lose = true`"));
        }
    };
    let headroom = bytes.saturating_sub(xoff);
    if headroom >= needed {
        return Ok(());
    }
    let memory = match classes {
        1 => format!("the memory of `{name}`"),
        _ => format!("one of {classes} equal shares of the memory of `{name}`"),
    };
    let sentence = format!("beyond `xoff` {memory} has {headroom}, and {needed} may come after a pause");
    Err(Problem::new(sentence, help))
}

/// Whether so many classes of traffic may fill a memory that is to lose nothing, before each of them is paused.
pub(crate) fn may_overflow(graph: &Graph, classes: usize) -> bool {
    let overflows = |(link, needed): (&Link, Bytes)| {
        let Some(Ingress { limit, thresholds }) = link.ingress else { return false };
        check_headroom(&link.name, thresholds, (limit, classes), needed, false, graph.mtu).is_err()
    };
    graph.links.iter().zip(after_pause(graph)).any(overflows)
}

/// Links that may be paused, each by what waits for the next, and the last by what waits for the first.
fn cycle(graph: &Graph, can_be_paused: &[bool]) -> Option<Vec<u32>> {
    if !can_be_paused.contains(&true) {
        return None;
    }
    let turns = Routes::new(graph).turns();
    // Depth first: a link that is met again on the way closes a cycle.
    let (mut done, mut is_on_way) = (vec![false; graph.links.len()], vec![false; graph.links.len()]);
    for start in (0..).take(graph.links.len()).filter(|&link: &u32| can_be_paused[link as usize]) {
        if done[start as usize] {
            continue;
        }
        let mut way = vec![(start, 0)];
        is_on_way[start as usize] = true;
        while let Some((link, turn)) = way.last_mut() {
            let Some(&onward) = turns[*link as usize].get(*turn) else {
                (done[*link as usize], is_on_way[*link as usize]) = (true, false);
                way.pop();
                continue;
            };
            *turn += 1;
            if is_on_way[onward as usize] {
                let first = way.iter().position(|&(link, _)| link == onward).expect("it is on the way");
                return Some(way[first..].iter().map(|&(link, _)| link).collect());
            }
            if can_be_paused[onward as usize] && !done[onward as usize] {
                is_on_way[onward as usize] = true;
                way.push((onward, 0));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::units::{Rate, Span};
    use narrows_plan::{Node, Role};

    /// A fat tree of so many ports, of which each edge switch has one host.
    fn fat_tree(ports: u32) -> Graph {
        let half = ports / 2;
        let (edges, cores) = (ports * half, half * half);
        let kinds = [(edges, NodeKind::Host), (2 * edges + cores, NodeKind::Switch)];
        let nodes = kinds.into_iter().flat_map(|(count, kind)| (0..count).map(move |_| Node::new("", kind))).collect();
        let mut graph = Graph { nodes, ..Graph::default() };
        let mut join = |one: u32, other: u32| {
            for ends in [(one, other), (other, one)] {
                let mut link = Link::new("", ends, Role::Fabric, Rate::from_gbps(10), Span::from_us(1));
                let thresholds = Thresholds { xoff: Bytes::new(9_000), xon: Bytes::new(9_000), may_lose: true };
                link.ingress = Some(Ingress { limit: Limit::Unlimited, thresholds: Some(thresholds) });
                graph.links.push(link);
            }
        };
        let (edge, aggregation, core) = (edges, 2 * edges, 3 * edges);
        for place in 0..edges {
            join(place, edge + place);
            for other in 0..half {
                join(edge + place, aggregation + place / half * half + other);
                join(aggregation + place, core + place % half * half + other);
            }
        }
        graph
    }

    #[test]
    fn a_fat_tree_of_48_ports_is_searched_with_each_turn_kept_once() {
        let graph = fat_tree(if cfg!(debug_assertions) { 16 } else { 48 });
        assert_eq!(check(&graph), Ok(()));
        let turns: usize = Routes::new(&graph).turns().iter().map(Vec::len).sum();
        assert!(turns < 50 * graph.links.len(), "{turns}");
    }
}
