//! One of our ends and a host with smoltcp's stack, on a virtual clock, with a link between them.

use narrows_core::packet::{Flags, Segment, Tag};
use narrows_core::tcp::{Endpoint, Event, Stack};
use narrows_core::units::{Bytes, Span, Time};

use crate::link::{End, Link};
use crate::pair::build;
use crate::theirs::Theirs;
use crate::wire::{Heard, Wire, extent};

/// A test ends by then: far beyond all back-off.
const END: Time = Time::from_ns(100_000 * 1_000_000_000);
/// And after no more moments.
const MAX_MOMENTS: usize = 200_000;
/// Of the one message in either direction.
const MESSAGE: Tag = Tag(1);

/// Looks on, and panics when an end does what it must not do.
#[allow(unused_variables, reason = "names say what a method gets")]
pub(crate) trait Watch {
    /// Our end sends it, and offers a window up to `edge`.
    fn we_sent(&mut self, now: Time, segment: &Segment, edge: u64) {}
    /// Our end hears it now.
    fn we_hear(&mut self, now: Time, heard: &Heard) {}
    /// Our end has heard it, and has not answered.
    fn we_heard(&mut self, now: Time, heard: &Heard, ours: &Endpoint) {}
    /// Our end has said what it had to say.
    fn we_are_silent(&mut self, now: Time, ours: &Endpoint) {}
    /// Bytes of ours got there, where `edge` was told last; then smoltcp expects `next`.
    fn they_got(&mut self, extent: (u64, u64), edge: u64, next: u64) {}
}

pub(crate) struct Meeting<W> {
    pub(crate) now: Time,
    pub(crate) ours: Endpoint,
    pub(crate) stack: Stack,
    pub(crate) theirs: Theirs,
    pub(crate) watch: W,
    /// Messages that our application got.
    pub(crate) delivered: Vec<Tag>,
    /// When it got the last.
    pub(crate) whole_at: Option<Time>,
    link: Link,
    wire: Wire,
    /// The last byte that their application writes.
    their_last: u64,
    their_edge: u64,
}

impl<W: Watch> Meeting<W> {
    /// They have `bytes` to send; our SYN has the number `our_first`.
    pub(crate) fn new(
        (controller, stack): (&str, Stack),
        our_first: u32,
        (theirs, bytes): (Theirs, u64),
        link: Link,
        watch: W,
    ) -> Meeting<W> {
        Meeting {
            now: Time::ZERO,
            ours: Endpoint::closed(build(controller, &stack, 1), &stack),
            stack,
            theirs,
            watch,
            delivered: Vec::new(),
            whole_at: None,
            link,
            wire: Wire::new(our_first, &stack),
            their_last: bytes,
            their_edge: 0,
        }
    }

    /// We open, and send a message.
    pub(crate) fn we_open(&mut self, bytes: u64) {
        self.theirs.listen();
        self.ours.open(Tag(0));
        self.ours.offer(Bytes::new(bytes), MESSAGE);
        self.settle();
    }

    /// They open.
    pub(crate) fn they_open(&mut self) {
        self.theirs.connect();
        self.poll_theirs();
    }

    /// Runs until nothing more is to come; panics if that never comes about.
    pub(crate) fn run(&mut self) {
        for _ in 0..MAX_MOMENTS {
            if !self.step() {
                return;
            }
            if self.link.due() == Time::NEVER && self.ours.is_idle() && self.theirs.is_done() {
                // Delayed acknowledgements are still to go.
                let rest = self.now + Span::from_secs(1);
                while self.next_moment() <= rest {
                    self.step();
                }
                return;
            }
        }
        let snapshot = self.ours.snapshot(self.now, &self.stack);
        panic!("stuck at {}: {snapshot:?}, they expect {}", self.now, self.theirs.next());
    }

    fn next_moment(&mut self) -> Time {
        let ours = self.ours.deadline().min(self.ours.pacing_deadline());
        ours.min(self.theirs.due(self.now)).min(self.link.due())
    }

    fn step(&mut self) -> bool {
        let moment = self.next_moment();
        if moment > END {
            return false;
        }
        self.now = self.now.max(moment);
        while let Some((to, bytes)) = self.link.take(self.now) {
            match to {
                End::Ours => self.we_hear(&bytes),
                End::Theirs => self.they_hear(bytes),
            }
        }
        self.poll_theirs();
        if self.ours.deadline() <= self.now {
            self.ours.handle_timeout(self.now, &self.stack);
        }
        self.settle();
        true
    }

    fn we_hear(&mut self, bytes: &[u8]) {
        let mut heard = self.wire.decode(bytes);
        let (start, end) = extent(&heard.segment);
        assert_eq!(heard.payload, crate::bytes::stream(start, end));
        // What an application reads in the bytes: where the message ends.
        let ends_message = heard.segment.length > 0 && end == self.their_last + 1;
        heard.segment.flags = heard.segment.flags.with_if(Flags::END, ends_message);
        heard.segment.tag = MESSAGE;
        self.watch.we_hear(self.now, &heard);
        self.ours.handle_segment(self.now, &heard.segment, &self.stack);
        self.watch.we_heard(self.now, &heard, &self.ours);
        self.settle();
    }

    fn they_hear(&mut self, bytes: Vec<u8>) {
        let edge = self.their_edge;
        let extent = self.wire.our_extent(&bytes);
        self.theirs.arrive(bytes);
        self.poll_theirs();
        self.watch.they_got(extent, edge, self.theirs.next());
    }

    fn poll_theirs(&mut self) {
        for bytes in self.theirs.poll(self.now) {
            self.their_edge = self.wire.decode(&bytes).edge;
            self.link.send(self.now, End::Ours, bytes);
        }
    }

    /// Lets our end speak at the present moment.
    fn settle(&mut self) {
        while let Some(event) = self.ours.poll_event() {
            if let Event::Delivered(tag) = event {
                self.delivered.push(tag);
                self.whole_at = Some(self.now);
            }
        }
        while let Some(segment) = self.ours.poll_transmit(self.now, &self.stack) {
            self.watch.we_sent(self.now, &segment, self.wire.our_edge(&segment));
            self.link.send(self.now, End::Theirs, self.wire.encode(&segment));
        }
        self.watch.we_are_silent(self.now, &self.ours);
    }
}
