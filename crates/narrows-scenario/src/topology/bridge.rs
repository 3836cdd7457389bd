//! Edge pairs: what is written of one, and what it is at a link of some rate and delay.

use narrows_core::component::{Settings, Value};
use narrows_core::edge::dcib::{Config, SPEC};
use narrows_core::units::{Rate, Span};

use crate::error::Problem;
use narrows_plan::{Graph, Link, NodeKind};

/// The edge pair with these values at a link of this rate and delay.
pub(super) fn at(values: &[Value], rate: Rate, delay: Span) -> Config {
    Config::of(&Settings::new(SPEC.parameters, values), rate, delay + delay)
}

/// Refuses edge pairs with a host at one end, in one direction only, or at a port that is served packet by packet.
pub(super) fn check(graph: &Graph) -> Result<(), Problem> {
    for (link, is_served) in graph.links.iter().zip(graph.served()).filter(|(link, _)| link.bridge.is_some()) {
        let refuse = |sentence: String, help: &str| Err(Problem::new(sentence, help));
        if [link.from, link.to].iter().any(|&end| graph.nodes[end as usize].kind == NodeKind::Host) {
            let sentence = format!("`{}` has an edge pair (`bridge`), and a host at one end", link.name);
            return refuse(sentence, "an edge pair joins two routers: write it in `wan`, or at a link of two switches");
        }
        // Of parallel links, any may be the way back.
        let is_back = |back: &&Link| (back.from, back.to) == (link.to, link.from) && back.bridge.is_some();
        if !graph.links.iter().any(|back| is_back(&back)) {
            let sentence = format!("`{}` has an edge pair (`bridge`) in one direction only", link.name);
            return refuse(sentence, "write it in `both`: its acknowledgements go the other way");
        }
        if is_served || link.ingress.is_some() {
            let sentence = format!(
                "`{}` has an edge pair (`bridge`), whose port is a plain FIFO, and is served packet by packet",
                link.name
            );
            return refuse(
                sentence,
                "set `scheduler = \"fifo\"`, `flow-control = \"none\"` and an AQM that acts on arrivals there, or \
                 `bridge = \"none\"`",
            );
        }
    }
    Ok(())
}
