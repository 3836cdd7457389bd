//! Whether there is a far edge that acknowledges: greetings, sessions, and the silence that ends one.

use crate::rng::SmallStream;
use crate::units::{Span, Time};

/// What is known of the far edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing. It was greeted so often without an answer.
    Unknown {
        /// When the next packet that would be marked greets it.
        greet_at: Time,
        unanswered: u32,
        /// The last greeting's, and when it was sent.
        asked: Option<(u64, Time)>,
    },
    /// It has answered.
    Known {
        session: u32,
        /// Since when a word of it is due: when the first packet was sent that could be acknowledged and of which, or after which, it has said
        /// nothing. Whether copies are kept still does not matter.
        due: Option<Time>,
    },
}

/// The far edge is greeted no more often than this while it does not answer.
const SLOWEST: Span = Span::from_secs(1);

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Liveness {
    state: State,
    /// Greetings carry readings above this.
    clock: u64,
    /// Draws tokens.
    stream: SmallStream,
}

impl Liveness {
    /// An edge that has just begun, when a clock that advances over restarts read this.
    pub(super) fn new(clock: u64, stream: SmallStream) -> Liveness {
        Liveness { state: Liveness::unknown(Time::ZERO), clock, stream }
    }

    fn unknown(greet_at: Time) -> State {
        State::Unknown { greet_at, unanswered: 0, asked: None }
    }

    /// The session in which packets may be marked now. If nothing was said for longer than `patience` while a word was due, the far edge, or the
    /// way there, is gone.
    pub(super) fn session(&self, now: Time, patience: Span) -> Option<u32> {
        self.current().filter(|_| self.silence(now) <= patience)
    }

    /// For how long a word has been due.
    pub(super) fn silence(&self, now: Time) -> Span {
        match self.state {
            State::Known { due: Some(due), .. } => now.since(due),
            _ => Span::ZERO,
        }
    }

    /// A packet is sent that the far edge is to acknowledge.
    pub(super) fn expect(&mut self, now: Time) {
        if let State::Known { due, .. } = &mut self.state {
            due.get_or_insert(now);
        }
    }

    /// The first of the packets that it is to acknowledge leaves this router's own queue only at `at`.
    pub(super) fn put_off(&mut self, at: Time) {
        if let State::Known { due: Some(due), .. } = &mut self.state {
            *due = at.max(*due);
        }
    }

    /// The session, though the far edge may be silent.
    pub(super) fn current(&self) -> Option<u32> {
        match self.state {
            State::Known { session, .. } => Some(session),
            State::Unknown { .. } => None,
        }
    }

    /// Whether a session that the far edge speaks of is this one.
    pub(super) fn is_current(&self, of: u32) -> bool {
        self.current() == Some(of)
    }

    /// It has spoken. `waiting` is when the oldest packet was sent that it is still to acknowledge; in the future if that waits in a queue.
    pub(super) fn hear(&mut self, now: Time, waiting: Option<Time>) {
        if let State::Known { due, .. } = &mut self.state {
            *due = waiting.map(|sent| sent.max(now));
        }
    }

    /// There is no session any more: nothing is left that the far edge could acknowledge.
    pub(super) fn lose(&mut self, now: Time) {
        if self.current().is_some() {
            self.state = Liveness::unknown(now);
        }
    }

    /// A packet would be marked and is not, as the far edge is not known: the clock and the token of a greeting, if it is time
    /// for one.
    pub(super) fn greet(&mut self, now: Time, timeout: Span) -> Option<(u64, u64)> {
        let State::Unknown { greet_at, unanswered, asked } = &mut self.state else { return None };
        if now < *greet_at {
            return None;
        }
        self.clock += 1;
        let token = self.stream.next_u64();
        *asked = Some((token, now));
        let wait = timeout.saturating_mul(1 << (*unanswered).min(10));
        *greet_at = now + wait.min(SLOWEST.max(timeout));
        *unanswered += 1;
        Some((self.clock, token))
    }

    /// The answer to a greeting: how long it took, if it is the one that was sent last.
    pub(super) fn welcome(&mut self, now: Time, answered: u64, session: u32) -> Option<Span> {
        match self.state {
            State::Unknown { asked: Some((token, sent)), .. } if token == answered => {
                self.state = State::Known { session, due: None };
                Some(now.since(sent))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Span = Span::from_ms(20);

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn it_greets_ever_more_rarely_and_knows_its_last_greeting_only() {
        let mut far = Liveness::new(7, SmallStream::new(1));
        let timeout = Span::from_ms(20);
        let mut tokens = std::vec::Vec::new();
        let greetings: std::vec::Vec<_> = (0..4_000)
            .filter_map(|ms| {
                let (clock, token) = far.greet(at(ms), timeout)?;
                tokens.push(token);
                Some((ms, clock))
            })
            .collect();
        assert_eq!(
            greetings,
            [(0, 8), (20, 9), (60, 10), (140, 11), (300, 12), (620, 13), (1_260, 14), (2_260, 15), (3_260, 16)]
        );
        assert_eq!(far.welcome(at(4_000), tokens[7], 1), None);
        assert_eq!(far.welcome(at(4_000), tokens[8], 1), Some(Span::from_ms(740)));
        assert_eq!(far.session(at(4_000), PATIENCE), Some(1));
        assert_eq!(far.greet(at(9_000), timeout), None);
        assert_eq!(far.welcome(at(9_000), tokens[8], 2), None, "an answer counts once");
    }

    #[test]
    fn silence_while_a_word_is_due_ends_the_marking_and_a_word_begins_it() {
        let mut far = Liveness::new(0, SmallStream::new(1));
        let (_, token) = far.greet(at(0), PATIENCE).unwrap();
        far.welcome(at(10), token, 5);
        assert_eq!(far.session(at(1_000), PATIENCE), Some(5), "nothing was asked of it");
        far.expect(at(1_000));
        far.expect(at(1_015));
        assert_eq!(far.session(at(1_020), PATIENCE), Some(5));
        assert_eq!(far.session(at(1_021), PATIENCE), None);
        assert!(!far.is_current(4) && far.is_current(5));
        far.hear(at(1_021), Some(at(1_015)));
        assert_eq!(far.session(at(1_041), PATIENCE), Some(5), "more was asked, and that is due from now on");
        far.hear(at(1_041), None);
        assert_eq!(far.session(at(9_000), PATIENCE), Some(5));
        far.expect(at(9_000));
        far.put_off(at(9_100));
        assert_eq!(far.session(at(9_120), PATIENCE), Some(5), "it left late");
        far.lose(at(1_100));
        assert_eq!(far.session(at(1_100), PATIENCE), None);
        assert_eq!(far.greet(at(1_100), PATIENCE).map(|greeting| greeting.0), Some(2));
    }
}
