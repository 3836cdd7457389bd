//! Receive offload (GRO): segments of a flow in a row that one poll finds reach the stack as one, and one acknowledgement
//! answers them all [Linux `tcp_gro_receive`].
//!
//! A run ends at a hole, at another mark, timestamp or acknowledgement, at a segment that is shorter than the first or pushed,
//! at 64 KB, and with the poll. A segment of another message ends it, too: it stands for the header that the message begins
//! with, which a segment here carries as its tag.

use alloc::vec::Vec;

use super::receive::ReceiveOffload;
use crate::packet::{Flags, HEADER_BYTES, Segment};

/// Most payload of a run: the length field of IP counts the headers.
const MAX_BYTES: u64 = 65_535 - HEADER_BYTES;

/// Flags in which the segments of a run may differ.
const FREE: Flags = Flags::PSH.with(Flags::END).with(Flags::CWR);

/// What a poll holds. `K` names a flow, in one direction.
#[derive(Clone, Debug)]
pub struct Merging<K> {
    /// The oldest first.
    held: Vec<Run<K>>,
}

#[derive(Clone, Copy, Debug)]
struct Run<K> {
    key: K,
    /// The first segment with what has joined it.
    segment: Segment,
    /// Payload of the first.
    size: u16,
    count: u8,
}

impl<K> Default for Merging<K> {
    fn default() -> Merging<K> {
        Merging { held: Vec::new() }
    }
}

impl<K: Copy + PartialEq> Merging<K> {
    /// The poll comes to a segment. `deliver` gets what goes to the stack now: the run before it if it does not join that,
    /// itself or the run with it if nothing may follow.
    pub fn handle(&mut self, key: K, segment: &Segment, config: &ReceiveOffload, mut deliver: impl FnMut(K, &Segment)) {
        // Most often the flow is that of the segment before.
        let place = self.held.iter().rposition(|run| run.key == key);
        if let Some(place) = place {
            let run = &mut self.held[place];
            if run.continues(segment) {
                run.join(segment);
                if run.is_over(segment, config) {
                    let run = self.held.remove(place);
                    deliver(key, &run.segment);
                }
                return;
            }
            let run = self.held.remove(place);
            deliver(key, &run.segment);
        }
        let run = Run { key, segment: *segment, size: segment.length, count: 1 };
        if segment.length == 0 || run.is_over(segment, config) {
            deliver(key, segment);
            return;
        }
        if self.held.len() >= usize::from(config.flows) {
            let oldest = self.held.remove(0);
            deliver(oldest.key, &oldest.segment);
        }
        self.held.push(run);
    }

    /// The run of one flow: something comes that may not overtake it.
    pub fn flush_one(&mut self, key: K, mut deliver: impl FnMut(K, &Segment)) {
        if let Some(place) = self.held.iter().rposition(|run| run.key == key) {
            let run = self.held.remove(place);
            deliver(key, &run.segment);
        }
    }

    /// The poll is over.
    pub fn flush(&mut self, mut deliver: impl FnMut(K, &Segment)) {
        self.held.drain(..).for_each(|run| deliver(run.key, &run.segment));
    }
}

impl<K> Run<K> {
    fn continues(&self, next: &Segment) -> bool {
        let run = &self.segment;
        next.seq == run.seq.wrapping_add(u32::from(run.length))
            && next.ack == run.ack
            && next.ecn == run.ecn
            && next.timestamp == run.timestamp
            && next.timestamp_echo == run.timestamp_echo
            && next.flags.with(FREE) == run.flags.with(FREE)
            && !next.flags.contains(Flags::CWR)
            && next.tag == run.tag
            && (1..=self.size).contains(&next.length)
            && u64::from(run.length) + u64::from(next.length) <= MAX_BYTES
    }

    fn join(&mut self, next: &Segment) {
        self.segment.length += next.length;
        self.segment.flags = self.segment.flags.with(next.flags);
        self.count += 1;
    }

    /// Whether nothing may follow the segment that came last.
    fn is_over(&self, last: &Segment, config: &ReceiveOffload) -> bool {
        last.length < self.size || last.flags.contains(Flags::PSH) || self.count >= config.segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, Tag};
    use proptest::prelude::*;

    const MSS: u16 = 1448;
    const CONFIG: ReceiveOffload = ReceiveOffload::LINUX_4_9;

    fn piece(number: u32) -> Segment {
        Segment {
            seq: 1 + number * u32::from(MSS),
            ack: 1,
            length: MSS,
            flags: Flags::ACK,
            tag: Tag(1),
            ..Segment::default()
        }
    }

    /// What a poll of these hands up: first byte and length, by flow.
    fn poll(segments: &[(u8, Segment)], config: &ReceiveOffload) -> Vec<(u8, Segment)> {
        let (mut merging, mut up) = (Merging::default(), Vec::new());
        for (key, segment) in segments {
            merging.handle(*key, segment, config, |key, run| up.push((key, *run)));
        }
        merging.flush(|key, run| up.push((key, *run)));
        up
    }

    fn lengths(segments: &[Segment]) -> Vec<u32> {
        let one: Vec<_> = segments.iter().map(|segment| (0, *segment)).collect();
        poll(&one, &CONFIG).iter().map(|(_, run)| u32::from(run.length).div_ceil(u32::from(MSS))).collect()
    }

    #[test]
    fn a_run_ends_at_44_segments_and_64_kilobytes() {
        let pieces: Vec<_> = (0..100).map(piece).collect();
        assert_eq!(lengths(&pieces), [44, 44, 12]);
        // Of 8948 bytes seven fit into 64 KB.
        let jumbo = |number: u32| Segment { seq: 1 + number * 8_948, length: 8_948, ..piece(0) };
        let runs = poll(&(0..15).map(|number| (0, jumbo(number))).collect::<Vec<_>>(), &CONFIG);
        assert_eq!(runs.iter().map(|(_, run)| run.length / 8_948).collect::<Vec<_>>(), [7, 7, 1]);
    }

    #[test]
    fn a_run_ends_at_each_change_that_the_kernel_looks_at() {
        let changed = |change: fn(&mut Segment)| {
            let mut pieces: Vec<_> = (0..6).map(piece).collect();
            pieces[3..].iter_mut().for_each(change);
            lengths(&pieces)
        };
        assert_eq!(changed(|_| {}), [6]);
        assert_eq!(changed(|piece| piece.ecn = Ecn::Marked), [3, 3]);
        assert_eq!(changed(|piece| piece.timestamp = 1), [3, 3]);
        assert_eq!(changed(|piece| piece.timestamp_echo = 1), [3, 3]);
        assert_eq!(changed(|piece| piece.ack = 2), [3, 3]);
        assert_eq!(changed(|piece| piece.tag = Tag(2)), [3, 3]);
        assert_eq!(changed(|piece| piece.seq += u32::from(MSS)), [3, 3], "a hole");
        assert_eq!(changed(|piece| piece.flags = Flags::ACK.with(Flags::ECE)), [3, 3]);
        // One that says that the window was reduced begins a run and joins none; a pushed one ends its own.
        assert_eq!(changed(|piece| piece.flags = Flags::ACK.with(Flags::CWR)), [3, 1, 1, 1]);
        assert_eq!(changed(|piece| piece.flags = Flags::ACK.with(Flags::PSH)), [4, 1, 1]);
        // Neither does a window end a run, as in Linux.
        assert_eq!(changed(|piece| piece.window = 7), [6]);
        let mut short: Vec<_> = (0..4).map(piece).collect();
        short[3].length = 100;
        assert_eq!(lengths(&short), [4], "a short one is the last of its run");
    }

    #[test]
    fn only_so_many_flows_are_held_and_the_oldest_goes_first() {
        let turn = |number| (0..9).map(move |key| (key, piece(number)));
        let segments: Vec<_> = turn(0).chain(turn(1)).collect();
        // Nine flows in turn: each new one pushes out the oldest, so that nothing merges.
        let up = poll(&segments, &CONFIG);
        assert_eq!(up.len(), 18);
        assert_eq!(up.iter().map(|(key, _)| *key).collect::<Vec<_>>(), (0..9).chain(0..9).collect::<Vec<_>>());
        assert_eq!(poll(&segments, &ReceiveOffload::LINUX_6).len(), 9);
    }

    #[test]
    fn an_acknowledgement_does_not_overtake_data() {
        let bare = Segment { length: 0, ..piece(2) };
        let up = poll(&[(0, piece(0)), (0, piece(1)), (0, bare)], &CONFIG);
        assert_eq!(up.iter().map(|(_, run)| run.length).collect::<Vec<_>>(), [2 * MSS, 0]);
    }

    proptest! {
        /// What goes up is what came: each flow's bytes in their order, marked as they came, none twice or lost.
        #[test]
        fn bytes_go_up_as_they_came(
            drawn in prop::collection::vec((0_u8..12, 0_u8..20, 0_u32..4), 1..400),
            segments in 1_u8..64,
            flows in 1_u8..16,
        ) {
            let config = ReceiveOffload { segments, flows, interrupt_gap: None, ..CONFIG };
            let mut next = [1_u32; 12];
            let came: Vec<(u8, Segment)> = drawn.iter().map(|&(key, kind, stamp)| {
                let at = &mut next[usize::from(key)];
                let length = match kind { 0 => 0, 1 => 100, _ => MSS };
                // Now and then a segment is missing, or comes again.
                if kind == 2 { *at += u32::from(MSS); }
                if kind == 3 { *at = at.saturating_sub(u32::from(MSS)).max(1); }
                let ecn = if kind == 4 { Ecn::Marked } else { Ecn::Capable };
                let flags = Flags::ACK.with_if(Flags::PSH, kind == 5);
                let segment = Segment { seq: *at, length, ecn, flags, timestamp: stamp / 3, ..piece(0) };
                *at += u32::from(length);
                (key, segment)
            }).collect();
            let up = poll(&came, &config);
            let bytes = |of: &[(u8, Segment)], key: u8| -> Vec<(u32, Ecn, u32)> {
                let own = of.iter().filter(|(other, _)| *other == key).map(|(_, segment)| segment);
                own.flat_map(|one| {
                    (0..u32::from(one.length)).step_by(4).map(|at| (one.seq + at, one.ecn, one.timestamp))
                }).collect()
            };
            for key in 0..12 {
                prop_assert_eq!(bytes(&up, key), bytes(&came, key));
            }
            let bare = |of: &[(u8, Segment)]| of.iter().filter(|(_, segment)| segment.length == 0).count();
            prop_assert_eq!(bare(&up), bare(&came));
            let most = u32::from(segments) * u32::from(MSS);
            prop_assert!(up.iter().all(|(_, run)| u32::from(run.length) <= most));
        }
    }
}
