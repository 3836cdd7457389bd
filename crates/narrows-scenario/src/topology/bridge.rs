//! Bridges: what is written of one, and what it is at a link of some rate and delay.

use narrows_core::component::Settings;
use narrows_core::edge;
use narrows_core::edge::dcib::{Chooser, Config, Hiding, Share};
use narrows_core::units::{Bytes, Rate, Span};

use crate::controller;
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::selector::EdgePair;
use narrows_plan::{Graph, Link, NodeKind};

/// What a link's class says of a bridge; the rest follows from the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bridge {
    share: Share,
    chooser: Chooser,
    hiding: Hiding,
    repairs: u8,
    rate: Option<Rate>,
    round_trip: Option<Span>,
    store: Option<Bytes>,
    hold: Option<Span>,
    held: Option<Bytes>,
}

impl Bridge {
    /// At a link.
    pub(super) fn at(self, rate: Rate, delay: Span) -> Config {
        let rate = self.rate.unwrap_or(rate);
        let round_trip = self.round_trip.unwrap_or(delay + delay);
        let usual = Config::new(rate, self.share, round_trip);
        Config {
            chooser: self.chooser,
            hiding: self.hiding,
            repairs: self.repairs,
            store: self.store.unwrap_or(usual.store),
            hold: self.hold.unwrap_or(usual.hold),
            held: self.held.unwrap_or(usual.held),
            ..usual
        }
    }
}

pub(super) fn bridge_of(written: &Located<EdgePair>) -> Judged<Option<Bridge>> {
    let chosen = controller::chosen("edge function", edge::SPECS, &written.value.0, &written.span)?;
    Ok(chosen.map(|(spec, values)| {
        let settings = Settings::new(spec.parameters, &values);
        Bridge {
            share: Share::from_q32(settings.real("share")),
            chooser: match settings.choice("choose") {
                "bernoulli" => Chooser::Bernoulli,
                "band" => Chooser::Band,
                _ => Chooser::Sampled,
            },
            hiding: match settings.choice("hiding") {
                "resequence-repairable" => Hiding::ResequenceRepairable,
                "snoop" => Hiding::Snoop,
                "nothing" => Hiding::Nothing,
                _ => Hiding::Resequence,
            },
            repairs: u8::try_from(settings.count("repairs")).unwrap_or(u8::MAX),
            rate: settings.rate_or_auto("rate"),
            round_trip: settings.span_or_auto("round-trip"),
            store: settings.bytes_or_auto("store"),
            hold: settings.span_or_auto("hold"),
            held: settings.bytes_or_auto("held"),
        }
    }))
}

/// Refuses bridges that nobody could be at both ends of, and such as would sit beside what decides late who is next.
pub(super) fn check(graph: &Graph) -> Result<(), Problem> {
    for link in graph.links.iter().filter(|link| link.bridge.is_some()) {
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
        if let Some(port) = graph.links.iter().find(|link| link.scheduler.is_some()) {
            let sentence = format!(
                "`{}` has a bridge and `{}` serves several classes: one network cannot have both yet",
                link.name, port.name
            );
            return refuse(sentence, "set `scheduler = \"fifo\"`, or `bridge = \"none\"`");
        }
    }
    Ok(())
}
