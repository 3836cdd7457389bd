//! Flow control: what is written of it, and whether nothing is lost and nothing stands still for ever.

use std::collections::BTreeMap;

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
pub(super) fn check(graph: &Graph) -> Result<(), Problem> {
    let mut room = vec![Bytes::ZERO; graph.nodes.len()];
    if graph.links.iter().any(|link| link.pauses.is_some()) {
        graph.links.iter().for_each(|link| room[link.to as usize] += room_after_pause(link, graph.mtu));
    }
    for link in &graph.links {
        if let Some(Ingress { limit, thresholds }) = link.ingress {
            if matches!(limit, Limit::Packets(_)) {
                let sentence = format!("the memory for what comes over `{}` is stated in packets", link.name);
                return Err(Problem::new(sentence, "state `limit` in bytes: `buffering = \"input\"` counts them"));
            }
            let needed = room_after_pause(link, graph.mtu);
            check_headroom(&link.name, thresholds, limit, needed, false, graph.mtu)?;
        }
        if let Some(thresholds) = link.pauses {
            check_headroom(&link.name, Some(thresholds), link.limit, room[link.from as usize], link.pooled, graph.mtu)?;
        }
    }
    match cycle(graph) {
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

/// What may still come over a link whose far end pauses it. A host's stack lies before its port.
fn room_after_pause(link: &Link, mtu: Mtu) -> Bytes {
    headroom(link.rate, link.delay.saturating_sub(link.stack), mtu.packet())
}

fn check_headroom(
    name: &str,
    thresholds: Option<Thresholds>,
    limit: Limit,
    needed: Bytes,
    pooled: bool,
    mtu: Mtu,
) -> Result<(), Problem> {
    let Some(Thresholds { xoff, may_lose: false, .. }) = thresholds else { return Ok(()) };
    let help = "make `limit` larger or `xoff` smaller; or accept loss: `may-lose = true`";
    let bytes = match limit {
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
    let sentence = format!("beyond `xoff` the memory of `{name}` has {headroom}, and {needed} may come after a pause");
    Err(Problem::new(sentence, help))
}

/// Links that may be paused, each by what waits for the next, and the last by what waits for the first.
fn cycle(graph: &Graph) -> Option<Vec<u32>> {
    let mut pauses = vec![false; graph.nodes.len()];
    for link in graph.links.iter().filter(|link| link.pauses.is_some()) {
        pauses[link.from as usize] = true;
    }
    let can_be_paused =
        |link: &Link| link.ingress.is_some_and(|memory| memory.thresholds.is_some()) || pauses[link.to as usize];
    let paused: Vec<bool> = graph.links.iter().map(can_be_paused).collect();
    if !paused.contains(&true) {
        return None;
    }
    let mut next: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    Routes::new(graph).for_each_turn(|link, then| {
        if paused[link as usize] && paused[then as usize] {
            next.entry(link).or_default().push(then);
        }
    });
    next.values_mut().for_each(|links| {
        links.sort_unstable();
        links.dedup();
    });
    // Depth first: a link that is met again on the way closes a cycle.
    let mut done = vec![false; graph.links.len()];
    for &start in next.keys() {
        let mut way: Vec<(u32, usize)> = vec![(start, 0)];
        while let Some((link, turn)) = way.last_mut() {
            let link = *link;
            let onward = next.get(&link).and_then(|links| links.get(*turn)).copied().filter(|_| !done[link as usize]);
            *turn += 1;
            match onward {
                None => {
                    done[link as usize] = true;
                    way.pop();
                }
                Some(onward) => {
                    if let Some(first) = way.iter().position(|&(on_way, _)| on_way == onward) {
                        return Some(way[first..].iter().map(|&(link, _)| link).collect());
                    }
                    if !done[onward as usize] {
                        way.push((onward, 0));
                    }
                }
            }
        }
    }
    None
}
