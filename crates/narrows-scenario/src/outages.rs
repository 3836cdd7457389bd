//! What events of links may not be meant to do: nothing, or to cut hosts off. Routes are found once, before the run: no
//! outage changes them.

use std::collections::BTreeSet;

use narrows_core::units::Time;

use crate::warnings::listed;
use narrows_plan::{Graph, Link, NodeKind, Plan};

/// Most outages that are looked at.
const MAX_LOOKS: usize = 100;

/// A sentence, and what to do about it.
type Said = (String, String);

/// All that there is to say.
pub(crate) fn doubts(plan: &Plan) -> Vec<Said> {
    let mut said = vec![];
    said.extend(late(plan));
    let over = plan.schedule.end + plan.schedule.drain;
    let goes_down = |link: &&Link| link.schedule().outages().iter().any(|(down, _)| *down < over);
    let down: Vec<&Link> = plan.network.links.iter().filter(|link| !link.events.is_empty()).filter(goes_down).collect();
    if down.is_empty() {
        return said;
    }
    let names: Vec<&str> = down.iter().map(|link| link.name.as_str()).collect();
    said.push((
        format!(
            "no route changes while {} {} down: packets that lead there are lost",
            listed(&names),
            are(names.len())
        ),
        "routes are shortest paths, found before the run; compare with a network without the link for what rerouting \
         would give"
            .to_owned(),
    ));
    said.extend(one_way(plan, &down));
    said.extend(cut_off(plan));
    said
}

fn are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

/// Events that take effect when the run is over.
fn late(plan: &Plan) -> Option<Said> {
    let over = plan.schedule.end + plan.schedule.drain;
    let times = plan.network.links.iter().flat_map(|link| &link.events).map(|event| event.at);
    let (late, all) = times.fold((0, 0), |(late, all), at| (late + u32::from(at >= over), all + 1));
    (late > 0).then(|| {
        let take = if late == 1 { "takes" } else { "take" };
        (
            format!("{late} of {all} changes of links {take} effect after the run, whose end with `drain` is {over}"),
            "move the events, or `run.end`; in a quick run `run.quick.set` may move them: `\"event.NAME.at\" = \"5ms\"`"
                .to_owned(),
        )
    })
}

/// Links that go down in one direction alone.
fn one_way(plan: &Plan, down: &[&Link]) -> Option<Said> {
    let outages = |link: &Link| link.schedule().outages().to_vec();
    let alone = |link: &&&Link| {
        let mut back = plan.network.links.iter().filter(|back| (back.from, back.to) == (link.to, link.from));
        !back.any(|back| outages(back) == outages(link))
    };
    let names: Vec<&str> = down.iter().filter(alone).map(|link| link.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        (
            format!("{} {} down in one direction alone", listed(&names), if names.len() == 1 { "goes" } else { "go" }),
            "an interface without a carrier neither sends nor receives: name both directions, such as `link = [\"a->b\", \
             \"b->a\"]`"
                .to_owned(),
        )
    })
}

/// Hosts that no path joins to the others while links are down, whatever the routes.
fn cut_off(plan: &Plan) -> Option<Said> {
    let graph = &plan.network;
    let outages: Vec<(usize, Vec<(Time, Time)>)> = (graph.links.iter().enumerate())
        .filter(|(_, link)| !link.events.is_empty())
        .map(|(index, link)| (index, link.schedule().outages().to_vec()))
        .collect();
    let begins: BTreeSet<Time> = outages.iter().flat_map(|(_, outages)| outages).map(|(down, _)| *down).collect();
    let over = plan.schedule.end + plan.schedule.drain;
    let whole = joined(graph, &BTreeSet::new());
    begins.into_iter().filter(|at| *at < over).take(MAX_LOOKS).find_map(|at| {
        let is_down = |outages: &[(Time, Time)]| outages.iter().find(|(down, up)| (*down..*up).contains(&at)).copied();
        let down: Vec<(usize, Time)> =
            outages.iter().filter_map(|(link, outages)| Some((*link, is_down(outages)?.1))).collect();
        let rest = joined(graph, &down.iter().map(|(link, _)| *link).collect());
        let lost: Vec<&str> =
            whole.iter().filter(|host| !rest.contains(host)).map(|&host| graph.nodes[host].name.as_str()).collect();
        let until = down.iter().map(|(_, up)| *up).min().unwrap_or(over);
        let until = if until >= over { "to the end of the run".to_owned() } else { format!("to {until}") };
        (!lost.is_empty()).then(|| {
            (
                format!("no path joins {} to the other hosts from {at} {until}", listed(&lost)),
                "shorten the outage, or give the network another path".to_owned(),
            )
        })
    })
}

/// The most hosts that can all send to each other and be answered, without these links.
fn joined(graph: &Graph, without: &BTreeSet<usize>) -> BTreeSet<usize> {
    let hosts: Vec<usize> = (0..graph.nodes.len()).filter(|node| graph.nodes[*node].kind == NodeKind::Host).collect();
    let mut next = vec![[vec![], vec![]]; graph.nodes.len()];
    for (_, link) in graph.links.iter().enumerate().filter(|(index, _)| !without.contains(index)) {
        next[link.from as usize][0].push(link.to as usize);
        next[link.to as usize][1].push(link.from as usize);
    }
    let reached = |from: usize, way: usize| {
        let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
        while let Some(node) = open.pop() {
            open.extend(next[node][way].iter().filter(|node| seen.insert(**node)));
        }
        seen
    };
    let of = |from: usize| -> BTreeSet<usize> {
        let (there, back) = (reached(from, 0), reached(from, 1));
        hosts.iter().copied().filter(|host| there.contains(host) && back.contains(host)).collect()
    };
    // A few will do: those cut off are few, or everything is apart.
    let some = [0, hosts.len() / 2, hosts.len().saturating_sub(1)].into_iter().filter_map(|place| hosts.get(place));
    some.rev().map(|host| of(*host)).max_by_key(BTreeSet::len).unwrap_or_default()
}
