//! Long-lived flows with staggered starts and stops.
//!
//! Flow i is sent by the senders in turn; a sender's flows go to its receivers in turn, beginning as many receivers
//! down the list as the sender stands in its own, so that equal lists make a ring and disjoint lists make pairs.

use std::collections::BTreeMap;

use narrows_core::units::{Bytes, Span, Time};

use super::pairs::Group;
use super::{Scene, positive};
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::traffic::Long;
use narrows_plan::{FlowStart, Pairs};

/// Most long-lived flows.
const MOST: u32 = 1_000_000;

pub(super) fn resolve(
    long: &Located<Long>,
    groups: &[Group],
    request: Option<Bytes>,
    scene: &Scene<'_>,
) -> Judged<Vec<FlowStart>> {
    let senders: Vec<Senders<'_>> = groups.iter().map(|group| Senders::of(&group.pairs)).collect();
    let all: usize = senders.iter().map(|senders| senders.own.len()).sum();
    let flows = match &long.flows {
        None => u32::try_from(all).unwrap_or(u32::MAX),
        Some(flows) if flows.value == 0 => return Err(Problem::zero("the number of flows").at(&flows.span)),
        Some(flows) => flows.value,
    };
    if flows > MOST {
        let span = long.flows.as_ref().map_or(&long.span, |flows| &flows.span);
        return Err(Problem::too_many("long-lived flows", flows.into(), MOST.into()).at(span));
    }
    let size = long.size.as_ref().map(positive("a size")).transpose()?;
    if let (Some(_), Some(stop)) = (size, &long.stop) {
        return Err(Problem::not_here("stop", "with `size`").at(&stop.span));
    }
    let start = long.start.as_ref().map_or(Time::ZERO, |at| at.value.0);
    let stagger = long.stagger.as_ref().map_or(Span::ZERO, |by| by.value.0);
    let spread = long.spread.as_ref().map_or(Span::ZERO, |by| by.value.0);
    let stop_stagger = long.stop_stagger.as_ref().map_or(Span::ZERO, |by| by.value.0);
    let mut list = vec![];
    for index in 0..flows as usize {
        let group = &senders[index % senders.len()];
        let turn = index / senders.len();
        let (own, round) = (turn % group.own.len(), turn / group.own.len());
        let (source, destination) = group.flow(own, round);
        let at = start + stagger.saturating_mul(index as u64);
        let stop = long.stop.as_ref().map(|stop| stop.value.0 + stop_stagger.saturating_mul(index as u64));
        if let (Some(end), Some(written)) = (stop, &long.stop)
            && end <= at + spread
        {
            return Err(Problem::ends_before_start("a long-lived flow", at + spread, end).at(&written.span));
        }
        if at + spread >= scene.end {
            let span = long.start.as_ref().map_or(&long.span, |start| &start.span);
            return Err(Problem::ends_before_start("the run", at + spread, scene.end).at(span));
        }
        list.push(FlowStart { at, spread, source, destination, size, stop, request });
    }
    list.sort_by_key(|flow| flow.at);
    Ok(list)
}

/// Those who send, and to whom.
struct Senders<'a> {
    /// Each sender, and its own place among the receivers.
    own: Vec<(u32, Option<usize>)>,
    /// Receivers of all; none where every sender has one of its own.
    receivers: &'a [u32],
    /// The one receiver of each sender, where pairs are listed.
    listed: &'a [(u32, u32)],
}

impl<'a> Senders<'a> {
    fn of(pairs: &'a Pairs) -> Senders<'a> {
        match pairs {
            Pairs::Listed(listed) => {
                Senders { own: listed.iter().map(|(from, _)| (*from, None)).collect(), receivers: &[], listed }
            }
            Pairs::Between { sources, destinations } => {
                let places: BTreeMap<u32, usize> = destinations.iter().copied().zip(0..).collect();
                let own = sources.iter().map(|host| (*host, places.get(host).copied()));
                // A sender that is the only receiver has nobody to send to.
                let own = own.filter(|(_, place)| place.is_none() || destinations.len() > 1).collect();
                Senders { own, receivers: destinations, listed: &[] }
            }
        }
    }

    /// Sender and receiver of the `round`-th flow of the sender at this place.
    fn flow(&self, place: usize, round: usize) -> (u32, u32) {
        if let Some(pair) = self.listed.get(place) {
            return *pair;
        }
        let (sender, itself) = self.own[place];
        let others = self.receivers.len() - usize::from(itself.is_some());
        let index = (place + round) % others;
        let skipped = itself.is_some_and(|itself| index >= itself);
        (sender, self.receivers[index + usize::from(skipped)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_make_rings_and_disjoint_lists_make_pairs() {
        let flows = |pairs: &Pairs, count: usize| {
            let senders = Senders::of(pairs);
            let own = senders.own.len();
            (0..count).map(|turn| senders.flow(turn % own, turn / own)).collect::<Vec<_>>()
        };
        let ring = Pairs::Between { sources: vec![0, 1, 2], destinations: vec![0, 1, 2] };
        assert_eq!(flows(&ring, 6), [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1)]);
        let apart = Pairs::Between { sources: vec![0, 1], destinations: vec![5, 6, 7] };
        assert_eq!(flows(&apart, 4), [(0, 5), (1, 6), (0, 6), (1, 7)]);
    }
}
