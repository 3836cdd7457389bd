//! Bridges: what is written of one, and what it is at a link of some rate and delay.

use narrows_core::edge::dcib::{Chooser, Config, Hiding, Share};
use narrows_core::units::{Bytes, Rate, Span};

use super::{FULL_PACKET, bounded};
use crate::error::{Judged, Problem};
use crate::experiment::bridge::{self, Choose, Dcib};
use crate::experiment::located::Located;
use crate::experiment::quantity::Quantity;
use narrows_plan::{Graph, NodeKind};

/// As many as a packet's count of tries has room for.
const MOST_REPAIRS: u64 = 14;

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

pub(super) fn bridge_of(written: &bridge::Bridge) -> Judged<Option<Bridge>> {
    let bridge::Bridge::Dcib(dcib) = written else { return Ok(None) };
    let Dcib { share, choose, rate, round_trip, repairs, store, hiding, hold, held } = &**dcib;
    if let Some(repairs) = repairs {
        bounded("repairs", repairs, repairs.value, MOST_REPAIRS)?;
    }
    Ok(Some(Bridge {
        share: share.as_ref().map_or(Ok(Share::TENTH), |share| {
            if share.0 > 0.0 && share.0 <= 1.0 {
                return Ok(Share::from_q32(share.scaled(32).max(1)));
            }
            let [what, value, least, most] = ["share", &share.0.to_string(), "above 0", "1"].map(str::to_owned);
            Err(Problem::OutOfRange { what, value, least, most }.at(&share.span))
        })?,
        chooser: match choose {
            Some(Choose::Bernoulli) => Chooser::Bernoulli,
            Some(Choose::Band) => Chooser::Band,
            Some(Choose::Sampled) | None => Chooser::Sampled,
        },
        hiding: match hiding {
            Some(bridge::Hiding::ResequenceRepairable) => Hiding::ResequenceRepairable,
            Some(bridge::Hiding::Snoop) => Hiding::Snoop,
            Some(bridge::Hiding::Nothing) => Hiding::Nothing,
            Some(bridge::Hiding::Resequence) | None => Hiding::Resequence,
        },
        repairs: repairs.as_ref().and_then(|repairs| u8::try_from(repairs.value).ok()).unwrap_or(3),
        rate: within("rate", rate.as_ref(), Rate::from_mbps(1), Rate::from_gbps(100_000))?,
        round_trip: within("round-trip", round_trip.as_ref(), Span::from_us(1), Span::from_secs(60))?,
        store: within("store", store.as_ref(), Bytes::new(FULL_PACKET), Bytes::new(1 << 42))?,
        hold: within("hold", hold.as_ref(), Span::from_us(1), Span::from_secs(60))?,
        held: within("held", held.as_ref(), Bytes::new(FULL_PACKET), Bytes::new(1 << 42))?,
    }))
}

fn within<T: Copy + PartialOrd + std::fmt::Display>(
    what: &str,
    written: Option<&Located<Quantity<T>>>,
    least: T,
    most: T,
) -> Judged<Option<T>> {
    match written {
        Some(written) if !(least..=most).contains(&written.value.0) => {
            let [value, least, most] = [written.value.0, least, most].map(|value| value.to_string());
            Err(Problem::OutOfRange { what: what.to_owned(), value, least, most }.at(&written.span))
        }
        written => Ok(written.map(|written| written.value.0)),
    }
}

/// Refuses bridges that nobody could be at both ends of, and such as would sit beside what decides late who is next.
pub(super) fn check(graph: &Graph) -> Result<(), Problem> {
    for link in graph.links.iter().filter(|link| link.bridge.is_some()) {
        let refuse = |sentence: String, help: &str| Err(Problem::Malformed { sentence, help: Some(help.to_owned()) });
        if [link.from, link.to].iter().any(|&end| graph.nodes[end as usize].kind == NodeKind::Host) {
            let sentence = format!("`{}` has a bridge, and a host at one end", link.name);
            return refuse(sentence, "a bridge joins two routers: write it in `wan`, or at a link of two switches");
        }
        let back = graph.links.iter().find(|back| (back.from, back.to) == (link.to, link.from));
        if back.is_none_or(|back| back.bridge.is_none()) {
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
