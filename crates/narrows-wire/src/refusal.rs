//! Why a notification was not believed, and how often.

use std::fmt;

/// Why a notification was not believed. In the order in which they are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Not the layout: another length, an unknown version or kind, something where nothing may be.
    Malformed,
    /// It crossed a router: it is not from the switch that this host hangs on [RFC 5082].
    TooFar,
    /// Nobody known says that it sent this to this address, or it came from another.
    UnknownSender,
    /// Not by who holds the sender's key.
    Unauthenticated,
    /// Said too long ago, or in the future.
    Stale,
    /// Said before what was last believed of this sender, or the same once more.
    Replayed,
    /// It says that there is no congestion, or more than there can be.
    Feedback,
    /// This host has no such connection.
    UnknownFlow,
    /// The host cannot say whether it has it, or cannot reach it, now.
    NotNow,
    /// The byte that it quotes is not in flight.
    NotInFlight,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Refusal; 10] = [
        Refusal::Malformed,
        Refusal::TooFar,
        Refusal::UnknownSender,
        Refusal::Unauthenticated,
        Refusal::Stale,
        Refusal::Replayed,
        Refusal::Feedback,
        Refusal::UnknownFlow,
        Refusal::NotNow,
        Refusal::NotInFlight,
    ];

    /// Its name in tables and counters.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::Malformed => "malformed",
            Refusal::TooFar => "too-far",
            Refusal::UnknownSender => "unknown-sender",
            Refusal::Unauthenticated => "unauthenticated",
            Refusal::Stale => "stale",
            Refusal::Replayed => "replayed",
            Refusal::Feedback => "feedback",
            Refusal::UnknownFlow => "unknown-flow",
            Refusal::NotNow => "not-now",
            Refusal::NotInFlight => "not-in-flight",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What became of notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Believed, and acted on.
    pub taken: u64,
    refused: [u64; Refusal::ALL.len()],
}

impl Tally {
    /// One more.
    pub fn count<T>(&mut self, outcome: &Result<T, Refusal>) {
        match outcome {
            Ok(_) => self.taken += 1,
            Err(refusal) => self.refused[*refusal as usize] += 1,
        }
    }

    /// Those of another as well.
    pub fn add(&mut self, other: &Tally) {
        self.taken += other.taken;
        self.refused.iter_mut().zip(other.refused).for_each(|(own, other)| *own += other);
    }

    /// How many were refused for this reason.
    pub const fn refused(&self, refusal: Refusal) -> u64 {
        self.refused[refusal as usize]
    }

    /// How many were refused for each reason, in their order.
    pub fn by_reason(&self) -> impl Iterator<Item = (Refusal, u64)> {
        Refusal::ALL.into_iter().map(|refusal| (refusal, self.refused(refusal)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count() {
        let mut tally = Tally::default();
        for (place, refusal) in Refusal::ALL.into_iter().enumerate() {
            (0..=place).for_each(|_| tally.count::<()>(&Err(refusal)));
        }
        tally.count(&Ok(()));
        assert_eq!(tally.taken, 1);
        assert!(tally.by_reason().map(|(_, count)| count).eq(1..=10));
        let mut twice = tally;
        twice.add(&tally);
        assert_eq!(twice.taken, 2);
        assert!(twice.by_reason().all(|(refusal, count)| count == 2 * tally.refused(refusal)));
    }
}
