//! A client asks many servers at once, waits for every answer, and asks again: partition/aggregate, the pattern behind
//! incast [DCTCP §2.1].

use crate::units::Time;

/// The client's side, in a closed loop: the next query follows the last answer at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScatterGather {
    servers: u32,
    left: u32,
    waiting: u32,
    asked_at: Time,
}

/// A query that all servers have answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// When the first request was offered.
    pub asked_at: Time,
    /// When the last answer was whole.
    pub answered_at: Time,
}

impl ScatterGather {
    /// A client of `servers` (at least one) that asks `repeats` times.
    pub const fn new(servers: u32, repeats: u32) -> ScatterGather {
        ScatterGather { servers, left: repeats, waiting: 0, asked_at: Time::ZERO }
    }

    /// Begins the next query: the number of servers to ask now, or `None` when an answer is awaited or all is done.
    pub fn poll_query(&mut self, now: Time) -> Option<u32> {
        if self.waiting > 0 || self.left == 0 || self.servers == 0 {
            return None;
        }
        self.left -= 1;
        self.waiting = self.servers;
        self.asked_at = now;
        Some(self.servers)
    }

    /// An answer is whole; the query, if it was the last one awaited.
    ///
    /// # Panics
    /// If no answer is awaited.
    pub fn handle_answer(&mut self, now: Time) -> Option<Completed> {
        self.waiting = self.waiting.checked_sub(1).expect("each request has one answer");
        (self.waiting == 0).then_some(Completed { asked_at: self.asked_at, answered_at: now })
    }

    /// Whether every query is answered.
    pub const fn is_done(&self) -> bool {
        self.left == 0 && self.waiting == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_ends_with_its_last_answer_and_the_next_follows() {
        let mut client = ScatterGather::new(3, 2);
        assert_eq!(client.poll_query(Time::from_ns(5)), Some(3));
        assert_eq!(client.poll_query(Time::from_ns(6)), None);
        assert_eq!(client.handle_answer(Time::from_ns(7)), None);
        assert_eq!(client.handle_answer(Time::from_ns(8)), None);
        let done = client.handle_answer(Time::from_ns(9)).unwrap();
        assert_eq!((done.asked_at, done.answered_at), (Time::from_ns(5), Time::from_ns(9)));
        assert_eq!(client.poll_query(Time::from_ns(9)), Some(3));
        assert!(!client.is_done());
        for _ in 0..3 {
            client.handle_answer(Time::from_ns(10));
        }
        assert!(client.is_done());
        assert_eq!(client.poll_query(Time::from_ns(10)), None);
    }
}
