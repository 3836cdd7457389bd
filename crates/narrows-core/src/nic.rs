//! A host's network adapter: its receive queue ([`receive`]), what is merged of that ([`merge`]), and a limiter of what it sends.
//!
//! The limiter is QCN's reaction point in an adapter: one rate-limited queue for all that goes to one destination, which delays every
//! frame, whatever it carries [802.1Qau].
//!
//! The rate is that of the [reaction point](crate::tcp::near_source). Frames leave the queue in the order in which they came, at
//! that rate; while there is no limit they pass. The transport above is not told: it sees a longer RTT, and a full queue as loss.

pub mod merge;
pub mod receive;

use alloc::collections::VecDeque;

use crate::rng::SmallStream;
use crate::tcp::near_source::{NearSource, ReactionPoint};
use crate::units::{Bytes, Rate, Time};

/// IP bytes that the queue of one flow holds at most: the buffer of an adapter.
pub const QUEUE: Bytes = Bytes::new(512_000);

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handed {
    /// It goes to the port now.
    Passed,
    /// It waits; [`RateLimiter::release`] gives it back.
    Queued,
    /// The queue is full.
    Dropped,
}

/// The queue of one flow. Calls come in the order of time.
#[derive(Clone, Debug)]
pub struct RateLimiter<P> {
    point: NearSource,
    frames: VecDeque<(P, Bytes)>,
    held: Bytes,
}

impl<P> RateLimiter<P> {
    /// Without a limit. The stream jitters the cycles of recovery.
    pub fn new(stream: SmallStream) -> RateLimiter<P> {
        RateLimiter { point: NearSource::new(stream), frames: VecDeque::new(), held: Bytes::ZERO }
    }

    /// A congestion notification with this feedback, 1 to 63. `line` is the rate of the adapter's link.
    pub fn notify(&mut self, now: Time, feedback: u8, line: Rate, config: &ReactionPoint) {
        self.point.catch_up(now, line, config);
        self.point.notify(now, feedback, line, config);
    }

    /// The limit in force, if there is one.
    pub fn rate(&mut self, now: Time, line: Rate, config: &ReactionPoint) -> Option<Rate> {
        self.point.catch_up(now, line, config);
        self.point.rate()
    }

    /// The flow hands over a frame of this size, in IP bytes.
    pub fn offer(&mut self, now: Time, frame: P, size: Bytes, line: Rate, config: &ReactionPoint) -> Handed {
        self.point.catch_up(now, line, config);
        if self.frames.is_empty() && self.point.next() <= now {
            self.point.on_sent(now, size, line, config);
            return Handed::Passed;
        }
        if self.held + size > QUEUE {
            return Handed::Dropped;
        }
        self.held += size;
        self.frames.push_back((frame, size));
        Handed::Queued
    }

    /// A frame whose time has come.
    pub fn release(&mut self, now: Time, line: Rate, config: &ReactionPoint) -> Option<P> {
        self.point.catch_up(now, line, config);
        if self.point.next() > now {
            return None;
        }
        let (frame, size) = self.frames.pop_front()?;
        self.held -= size;
        self.point.on_sent(now, size, line, config);
        Some(frame)
    }

    /// When the next frame's time comes at the latest; [`Time::NEVER`] while none waits.
    pub fn wake_at(&self) -> Time {
        if self.frames.is_empty() { Time::NEVER } else { self.point.next().min(self.point.deadline()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;
    use std::vec::Vec;

    const LINE: Rate = Rate::from_gbps(10);
    const POINT: ReactionPoint = ReactionPoint::STANDARD;
    const FULL: Bytes = Bytes::new(1_500);

    #[test]
    fn frames_pass_until_a_notification_and_then_leave_at_the_rate_that_it_sets() {
        let mut limiter = RateLimiter::new(SmallStream::new(1));
        assert_eq!(limiter.offer(Time::ZERO, 0, FULL, LINE, &POINT), Handed::Passed);
        assert_eq!(limiter.wake_at(), Time::NEVER);
        limiter.notify(Time::ZERO, 63, LINE, &POINT);
        // 1 - 63/128 of the line.
        let rate = Rate::from_bps(10_000_000_000 * 65 / 128);
        assert_eq!(limiter.rate(Time::ZERO, LINE, &POINT), Some(rate));
        for frame in 1..=50 {
            let handed = limiter.offer(Time::ZERO, frame, FULL, LINE, &POINT);
            assert_eq!(handed, if frame == 1 { Handed::Passed } else { Handed::Queued });
        }
        let (mut now, mut left) = (Time::ZERO, Vec::new());
        while limiter.wake_at() < Time::NEVER {
            now = limiter.wake_at();
            left.extend(limiter.release(now, LINE, &POINT));
        }
        assert_eq!(left, (2..=50).collect::<Vec<_>>(), "in their order");
        // 50 frames before the first cycle of 150 KB is over, each a frame's time at the rate after the one before.
        assert_eq!(now, Time::ZERO + rate.time_for(FULL) * 49);
    }

    #[test]
    fn a_full_queue_drops() {
        let mut limiter = RateLimiter::new(SmallStream::new(1));
        limiter.notify(Time::ZERO, 63, LINE, &POINT);
        let handed = (0..400).map(|frame| limiter.offer(Time::ZERO, frame, FULL, LINE, &POINT));
        let dropped = handed.filter(|handed| *handed == Handed::Dropped).count();
        // One passes, 341 full ones fit into 512 KB.
        assert_eq!(dropped, 400 - 1 - 341);
        assert_eq!(limiter.frames.len(), 341);
    }

    #[test]
    fn without_notifications_the_rate_comes_back_and_everything_passes_again() {
        let mut limiter = RateLimiter::new(SmallStream::new(1));
        limiter.notify(Time::ZERO, 63, LINE, &POINT);
        let mut now = Time::ZERO;
        // Five cycles of fast recovery leave 1/32 of the cut, and steps of 5 and 50 Mbit/s the rest.
        while limiter.rate(now, LINE, &POINT).is_some() && now < Time::ZERO + Span::from_secs(2) {
            let _ = limiter.offer(now, (), FULL, LINE, &POINT);
            while limiter.release(now, LINE, &POINT).is_some() {}
            now += Span::from_us(1);
        }
        assert!(now < Time::ZERO + Span::from_ms(100), "{now}");
        assert_eq!(limiter.offer(now, (), FULL, LINE, &POINT), Handed::Passed);
    }
}
