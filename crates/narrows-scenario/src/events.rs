//! What changes at links during a run: each `[[event]]` is judged, and put to the links that it names.

use std::collections::BTreeMap;

use narrows_core::units::{Rate, Span, Time};

use crate::controller::real_text;
use crate::error::{Judged, Problem};
use crate::experiment::event::Event as Written;
use crate::experiment::located::Located;
use crate::select;
use crate::topology::{MAX_DELAY, MAX_RATE, Named, bounded, excluded, flow_control, probability};
use narrows_plan::{Change, Event, FunctionConfig, Graph, Link};

/// Longest outage of a stated length.
const MAX_OUTAGE: Span = Span::from_secs(86_400);
/// Most events of one link.
const MAX_EVENTS: usize = 10_000;

/// Puts events to the links of a network.
pub(crate) fn place(written: &[Located<Written>], network: &mut Graph, named: &Named) -> Judged<()> {
    // By link: each change, and where it is written.
    let mut placed: Vec<Vec<(Event, &Located<Written>)>> = vec![vec![]; network.links.len()];
    for event in written {
        let changes = changes(event)?;
        for pattern in &event.link.value.0 {
            let span = if pattern.span.is_empty() { event.link.span.clone() } else { pattern.span.clone() };
            for link in select::links(network, named, &Located { value: pattern.value.clone(), span })? {
                if placed[link].last().is_some_and(|(_, last)| last.span == event.span) {
                    continue;
                }
                placed[link].extend(changes.iter().map(|change| (*change, event)));
            }
        }
    }
    let mut firsts = BTreeMap::new();
    for (link, mut placed) in placed.into_iter().enumerate() {
        if placed.len() > MAX_EVENTS {
            let what = format!("events of `{}`", network.links[link].name);
            return Err(Problem::too_many(&what, placed.len() as u64, MAX_EVENTS as u64).at(&placed[MAX_EVENTS].1.span));
        }
        placed.sort_by_key(|(event, _)| (event.at, event.change == Change::Down));
        check(&placed, network, link)?;
        let stack = network.links[link].stack;
        network.links[link].events = (placed.iter())
            .map(|(event, _)| match event.change {
                Change::Delay(delay) => Event { change: Change::Delay(delay + stack), ..*event },
                _ => *event,
            })
            .collect();
        firsts.extend(placed.first().map(|(_, first)| (link, first.span.clone())));
    }
    if let Some((link, obstacle)) = network.excluded()
        && let Some(span) = firsts.get(&link)
    {
        return Err(excluded(network, link, obstacle).at(span));
    }
    // The headroom must be enough at every rate that a link has.
    match firsts.into_values().min_by_key(|span| span.start) {
        Some(first) => flow_control::check(network).map_err(|problem| problem.at(&first)),
        None => Ok(()),
    }
}

/// What one event changes, and when.
fn changes(event: &Located<Written>) -> Judged<Vec<Event>> {
    let Written { at, rate, delay, loss, outage, down, up, .. } = &event.value;
    let at = at.value.0;
    let one = |change| vec![Event { at, change }];
    let mut found = vec![];
    if let Some(rate) = rate {
        if rate.value.0 == Rate::from_bps(0) {
            let help = "choose a rate above zero; to take the link down, write `outage = \"50ms\"` or `down = true`";
            return Err(Problem::new("the rate of a link is zero", help).at(&rate.span));
        }
        bounded("the rate of a link", rate, rate.value.0, MAX_RATE)?;
        found.push(one(Change::Rate(rate.value.0)));
    }
    if let Some(delay) = delay {
        bounded("the delay of a link", delay, delay.value.0, MAX_DELAY)?;
        found.push(one(Change::Delay(delay.value.0)));
    }
    if let Some(loss) = loss {
        found.push(one(Change::Loss(probability(loss.0, &loss.span)?)));
    }
    if let Some(outage) = outage {
        if outage.value.0 == Span::ZERO {
            return Err(Problem::zero("the length of an outage").at(&outage.span));
        }
        bounded("the length of an outage", outage, outage.value.0, MAX_OUTAGE)?;
        found.push(vec![Event { at, change: Change::Down }, Event { at: at + outage.value.0, change: Change::Up }]);
    }
    for (said, change, other) in [(down, Change::Down, "up"), (up, Change::Up, "down")] {
        let Some(said) = said else { continue };
        if !said.value {
            let sentence = format!("`{}` is true, or left out", if change == Change::Down { "down" } else { "up" });
            return Err(Problem::new(sentence, format!("write `{other} = true`")).at(&said.span));
        }
        found.push(one(change));
    }
    match <[Vec<Event>; 1]>::try_from(found) {
        Ok([changes]) => Ok(changes),
        Err(_) => {
            let keys = ["rate", "delay", "loss", "outage", "down", "up"];
            Err(Problem::one_of("an event", &keys).at(&event.span))
        }
    }
}

/// Refuses events of one link, in the order of time, that contradict each other or what the link has.
fn check(placed: &[(Event, &Located<Written>)], network: &Graph, link: usize) -> Judged<()> {
    let name = &network.links[link].name;
    let refuse =
        |event: &Located<Written>, sentence: String, help: &str| Err(Problem::new(sentence, help).at(&event.span));
    let mut down_since: Option<Time> = None;
    for (place, (event, at)) in placed.iter().enumerate() {
        let twice = |(other, _): &&(Event, &Located<Written>)| {
            other.at == event.at && std::mem::discriminant(&other.change) == std::mem::discriminant(&event.change)
        };
        match (event.change, down_since) {
            (Change::Down, Some(since)) => {
                let sentence = format!("`{name}` goes down at {}, and is down since {since}", event.at);
                return refuse(at, sentence, "outages of a link must not overlap: move one, or make it shorter");
            }
            (Change::Up, None) => {
                let sentence = format!("`{name}` comes up at {}, and is not down", event.at);
                return refuse(at, sentence, "write `down = true` at an earlier time, or leave this event out");
            }
            (Change::Down, None) => down_since = Some(event.at),
            (Change::Up, Some(_)) => down_since = None,
            (Change::Loss(_), _) if network.links[link].functions.iter().any(loses) => {
                let sentence = format!("`{name}` has a loss function of its own, and an event changes its `loss`");
                return refuse(at, sentence, "write the link's `loss` as a share, or leave this event out");
            }
            _ if placed[..place].iter().any(|other| twice(&other)) => {
                let sentence = format!("two events change the same of `{name}` at {}", event.at);
                return refuse(at, sentence, "keep one of them");
            }
            _ => {}
        }
    }
    Ok(())
}

/// The changes of a link, as people read them.
pub(crate) fn told(link: &Link) -> String {
    let told = link.events.iter().map(|event| match event.change {
        Change::Rate(rate) => format!("rate {rate} at {}", event.at),
        Change::Delay(delay) => format!("delay {} at {}", delay.saturating_sub(link.stack), event.at),
        Change::Loss(loss) => format!("loss {} at {}", real_text(loss.into(), 32), event.at),
        Change::Down => format!("down at {}", event.at),
        Change::Up => format!("up at {}", event.at),
    });
    told.collect::<Vec<String>>().join(", ")
}

fn loses(function: &FunctionConfig) -> bool {
    function.key() == narrows_core::link::Key::Loss
}
