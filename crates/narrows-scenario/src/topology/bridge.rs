//! Bridges: what is written of one, and what it is at a link of some rate and delay.

use narrows_core::component::{Settings, Value};
use narrows_core::edge::dcib::{Chooser, Config, Hiding, Marks, SPEC, Share};
use narrows_core::units::{Rate, Span};

use crate::error::Problem;
use narrows_plan::{Graph, Link, NodeKind};

/// The bridge with these values at a link: what is not said follows from it.
pub(super) fn at(values: &[Value], rate: Rate, delay: Span) -> Config {
    let settings = Settings::new(SPEC.parameters, values);
    let share = Share::from_q32(settings.real("share"));
    let round_trip = settings.span_or_auto("round-trip").unwrap_or(delay + delay);
    let usual = Config::new(settings.rate_or_auto("rate").unwrap_or(rate), share, round_trip);
    Config {
        chooser: match settings.choice("choose") {
            "bernoulli" => Chooser::Bernoulli,
            "band" => Chooser::Band,
            _ => Chooser::Sampled,
        },
        hiding: match settings.choice("hiding") {
            "resequence" => Hiding::Resequence,
            "snoop" => Hiding::Snoop,
            "nothing" => Hiding::Nothing,
            _ => Hiding::ResequenceRepairable,
        },
        marks: if settings.choice("marks") == "drop" { Marks::Drop } else { Marks::Clear },
        repairs: u8::try_from(settings.count("repairs")).unwrap_or(u8::MAX),
        store: settings.bytes_or_auto("store").unwrap_or(usual.store),
        hold: settings.span_or_auto("hold").unwrap_or(usual.hold),
        held: settings.bytes_or_auto("held").unwrap_or(usual.held),
        ..usual
    }
}

/// Refuses bridges that nobody could be at both ends of, and such as would sit beside what decides late who is next.
pub(super) fn check(graph: &Graph) -> Result<(), Problem> {
    for (link, is_served) in graph.links.iter().zip(graph.served()).filter(|(link, _)| link.bridge.is_some()) {
        let refuse = |sentence: String, help: &str| Err(Problem::new(sentence, help));
        if [link.from, link.to].iter().any(|&end| graph.nodes[end as usize].kind == NodeKind::Host) {
            let sentence = format!("`{}` has a bridge, and a host at one end", link.name);
            return refuse(sentence, "a bridge joins two routers: write it in `wan`, or at a link of two switches");
        }
        // Of parallel links, any may be the way back.
        let is_back = |back: &&Link| (back.from, back.to) == (link.to, link.from) && back.bridge.is_some();
        if !graph.links.iter().any(|back| is_back(&back)) {
            let sentence = format!("`{}` has a bridge in one direction only", link.name);
            return refuse(sentence, "write it in `both`: its acknowledgements go the other way");
        }
        if is_served || link.ingress.is_some() {
            let sentence =
                format!("`{}` has a bridge, whose port is a plain FIFO, and is served packet by packet", link.name);
            return refuse(
                sentence,
                "set `scheduler = \"fifo\"`, `flow-control = \"none\"` and an AQM that acts on arrivals there, or \
                 `bridge = \"none\"`",
            );
        }
    }
    Ok(())
}
