//! Every flow of a run, from its start to its row.
//!
//! A flow is named by the plan: its traffic entry and its place in the entry's own sequence. Open traffic is the same
//! for whoever draws it, and a client asks its servers by turns, so that the two ends of a flow know it by one
//! [`Tag`] without having met, even where different parts of the network own them.

use std::ops::{Index, IndexMut};

use narrows_core::app::{Begins, FlowStart};
use narrows_core::packet::Tag;
use narrows_core::units::{Bytes, Span, Time};
use narrows_plan::flows::Name;

/// Flows that one run can name: 0 is no tag, and an entry without flows that comes last begins where all others end.
pub(crate) const MAX_FLOWS: u64 = u32::MAX as u64 - 1;

/// Names as tags: each traffic entry has a range of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// The first tag of each entry, ascending; the first of all is 1.
    first: Vec<u32>,
}

impl Names {
    /// Ranges for entries that begin so many flows; `None` if there are more of them than tags. Closed loops get what they
    /// ask for while that is there; else none gets less than an equal share of what is left.
    pub(crate) fn new(entries: &[Begins]) -> Option<Names> {
        let (mut counted, mut loops) = (0_u64, 0);
        for entry in entries {
            match entry {
                Begins::Exactly(flows) => counted = counted.saturating_add(*flows),
                Begins::AtMost(_) => loops += 1,
            }
        }
        let mut left = MAX_FLOWS.checked_sub(counted)?;
        let mut next = 1;
        let first = entries.iter().map(|entry| {
            let first = u32::try_from(next).expect("no more than all tags are given away");
            next += match *entry {
                Begins::Exactly(flows) => flows,
                Begins::AtMost(flows) => {
                    let given = flows.min(left / loops);
                    left -= given;
                    loops -= 1;
                    given
                }
            };
            first
        });
        Some(Names { first: first.collect() })
    }

    pub(crate) fn tag(&self, name: Name) -> Tag {
        let tag = self.first[name.traffic as usize].checked_add(name.sequence).expect("fewer than 2³² flows");
        assert!(self.first.get(name.traffic as usize + 1).is_none_or(|&next| tag < next), "an entry outgrew its range");
        Tag(tag)
    }

    pub(crate) fn name(&self, tag: Tag) -> Name {
        let traffic = self.first.partition_point(|&first| first <= tag.0) - 1;
        Name { traffic: u32::try_from(traffic).expect("a plan has few entries"), sequence: tag.0 - self.first[traffic] }
    }
}

/// One flow while it goes on and after. Where its ends belong to different parts, each part keeps one of these, and
/// writes what its end sees; see [`Flow::merge`].
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) name: Name,
    /// Known where it is opened, and on the other end from the first packet on.
    pub(crate) connection: Option<u32>,
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// `None` for a flow without an end of its own.
    pub(crate) size: Option<Bytes>,
    /// Where it is opened: the query that it belongs to, by place among the part's own.
    pub(crate) query: Option<u32>,
    /// Where it is opened, and of open traffic.
    pub(crate) start: Time,
    /// When it was whole; [`Time::NEVER`] before.
    pub(crate) done: Time,
    pub(crate) ideal: Span,
    pub(crate) rtt_sum: Span,
    pub(crate) rtt_count: u64,
    pub(crate) retransmitted_bytes: u64,
    pub(crate) timeouts: u32,
    /// When the connection was established, if it was opened for this flow; else [`Time::NEVER`].
    pub(crate) established: Time,
    pub(crate) syn_retransmits: u8,
    /// What retransmission timers of both ends waited that expired.
    pub(crate) rto_wait: Span,
    /// When the first byte came; [`Time::NEVER`] before.
    pub(crate) first_byte: Time,
    pub(crate) near_source_cuts: u32,
    pub(crate) path_changes: u32,
    pub(crate) marked_bytes: u64,
    /// Dropped by ports and wires of this part: payload, and packets that had some.
    pub(crate) dropped_bytes: u64,
    pub(crate) dropped_packets: u32,
    /// Arrived by the end of the warm-up and of the arrivals (`u64::MAX` before), each byte once, in whatever order.
    pub(crate) arrived_at_warmup: u64,
    pub(crate) arrived_at_end: u64,
    /// Delivered in order.
    pub(crate) delivered: u64,
    /// Its sender has no more to send.
    pub(crate) stopped: bool,
}

impl Flow {
    pub(crate) fn new(name: Name, start: &FlowStart, query: Option<u32>) -> Flow {
        Flow {
            name,
            connection: None,
            source: start.source,
            destination: start.destination,
            size: start.size,
            query,
            start: start.at,
            done: Time::NEVER,
            ideal: Span::ZERO,
            rtt_sum: Span::ZERO,
            rtt_count: 0,
            retransmitted_bytes: 0,
            timeouts: 0,
            established: Time::NEVER,
            syn_retransmits: 0,
            rto_wait: Span::ZERO,
            first_byte: Time::NEVER,
            near_source_cuts: 0,
            path_changes: 0,
            marked_bytes: 0,
            dropped_bytes: 0,
            dropped_packets: 0,
            arrived_at_warmup: 0,
            arrived_at_end: u64::MAX,
            delivered: 0,
            stopped: false,
        }
    }

    /// Payload, and packets that had some, were dropped.
    pub(crate) fn note_dropped(&mut self, (bytes, packets): (u64, u32)) {
        self.dropped_bytes += bytes;
        self.dropped_packets += packets;
    }

    /// Takes what the other part knows of the same flow: it has its source, or else its destination.
    pub(crate) fn merge(&mut self, other: &Flow, has_source: bool) {
        debug_assert_eq!(self.name, other.name);
        self.note_dropped((other.dropped_bytes, other.dropped_packets));
        self.rto_wait += other.rto_wait;
        if has_source {
            self.rtt_sum = other.rtt_sum;
            self.rtt_count = other.rtt_count;
            self.retransmitted_bytes = other.retransmitted_bytes;
            self.timeouts = other.timeouts;
            self.near_source_cuts = other.near_source_cuts;
            self.path_changes = other.path_changes;
        } else {
            self.done = other.done;
            self.first_byte = other.first_byte;
            self.marked_bytes = other.marked_bytes;
            self.arrived_at_warmup = other.arrived_at_warmup;
            self.arrived_at_end = other.arrived_at_end;
            self.delivered = other.delivered;
        }
    }
}

/// The flows that one part has an end of, by the order in which it learned of them, and by name.
#[derive(Clone, Debug)]
pub(crate) struct Flows {
    list: Vec<Flow>,
    /// By traffic entry and sequence: the place in the list, or [`UNKNOWN`].
    places: Vec<Vec<u32>>,
}

const UNKNOWN: u32 = u32::MAX;

impl Flows {
    pub(crate) fn new(entries: usize) -> Flows {
        Flows { list: Vec::new(), places: vec![Vec::new(); entries] }
    }

    /// Takes a flow in; its place.
    pub(crate) fn push(&mut self, flow: Flow) -> u32 {
        let place = u32::try_from(self.list.len()).ok().filter(|&place| place != UNKNOWN);
        let place = place.expect("fewer than 2³² flows");
        let sequence = flow.name.sequence as usize;
        let places = &mut self.places[flow.name.traffic as usize];
        if places.len() <= sequence {
            places.resize(sequence + 1, UNKNOWN);
        }
        places[sequence] = place;
        self.list.push(flow);
        place
    }

    /// The place of a flow, if this part has learned of it.
    pub(crate) fn place(&self, name: Name) -> Option<u32> {
        let place = self.places[name.traffic as usize].get(name.sequence as usize);
        place.copied().filter(|&place| place != UNKNOWN)
    }

    pub(crate) fn get(&self, place: u32) -> Option<&Flow> {
        self.list.get(place as usize)
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Flow> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Flow> {
        self.list.iter_mut()
    }
}

impl Index<u32> for Flows {
    type Output = Flow;

    fn index(&self, place: u32) -> &Flow {
        &self.list[place as usize]
    }
}

impl IndexMut<u32> for Flows {
    fn index_mut(&mut self, place: u32) -> &mut Flow {
        &mut self.list[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::app::Begins::{AtMost, Exactly};

    /// How many flows of each entry can be named, after the names themselves were seen to be each one's own.
    fn room(entries: &[Begins]) -> Vec<u64> {
        let names = Names::new(entries).expect("enough tags");
        let ends = names.first.iter().skip(1).map(|&first| u64::from(first)).chain([MAX_FLOWS + 1]);
        let room: Vec<u64> = names.first.iter().zip(ends).map(|(&first, end)| end - u64::from(first)).collect();
        for (traffic, &count) in (0..).zip(&room) {
            for sequence in [0, count.saturating_sub(1)].into_iter().filter(|&sequence| sequence < count) {
                let name = Name { traffic, sequence: u32::try_from(sequence).unwrap() };
                assert_eq!(names.name(names.tag(name)), name);
            }
        }
        room
    }

    #[test]
    fn a_closed_loop_has_a_name_for_every_flow_that_it_can_begin() {
        assert_eq!(room(&[AtMost(12), Exactly(3), AtMost(5), Exactly(0)])[..3], [12, 3, 5]);
    }

    #[test]
    fn closed_loops_that_ask_for_all_tags_share_them_and_leave_room_for_entries_that_follow() {
        let (all, endless) = (MAX_FLOWS, AtMost(u64::MAX));
        for (entries, expected) in [
            (vec![endless, Exactly(0)], vec![all, 0]),
            (vec![Exactly(3), endless, Exactly(0)], vec![3, all - 3, 0]),
            (vec![endless, endless, Exactly(1), Exactly(0)], vec![(all - 1) / 2, all - 1 - (all - 1) / 2, 1, 0]),
            (vec![AtMost(7), endless, Exactly(1)], vec![7, all - 8, 1]),
            (vec![Exactly(all), Exactly(0)], vec![all, 0]),
            (vec![Exactly(all), endless, Exactly(0)], vec![all, 0, 0]),
        ] {
            assert_eq!(room(&entries), expected);
        }
    }

    #[test]
    fn more_flows_than_tags_have_no_names() {
        assert!(Names::new(&[Exactly(MAX_FLOWS), Exactly(1)]).is_none());
        assert!(Names::new(&[Exactly(u64::MAX), Exactly(u64::MAX), AtMost(1)]).is_none());
    }

    #[test]
    fn every_name_has_a_tag_of_its_own() {
        let entries = [Exactly(2), AtMost(1000), Exactly(0), Exactly(3), AtMost(1000)];
        let names = Names::new(&entries).unwrap();
        let mut tags = Vec::new();
        for (traffic, flows) in [(0, 2), (1, 1000), (3, 3), (4, 1000)] {
            for sequence in 0..flows {
                let name = Name { traffic, sequence };
                assert_eq!(names.name(names.tag(name)), name);
                tags.push(names.tag(name).0);
            }
        }
        assert!(tags.is_sorted() && tags[0] == 1);
        tags.dedup();
        assert_eq!(tags.len(), 2005);
    }
}
