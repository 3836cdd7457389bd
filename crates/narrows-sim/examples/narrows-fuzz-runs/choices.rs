//! The choices of which a random experiment is made. Recorded, they can be repeated, and made smaller one by one: the same
//! experiment with less in it.

use std::time::{Duration, Instant};

use narrows_core::rng::Stream;

/// A source of choices. The first alternative of each is the plainest, so that smaller numbers are smaller experiments.
pub(crate) struct Choices {
    drawn: Option<Stream>,
    given: Vec<u64>,
    used: Vec<u64>,
}

impl Choices {
    /// At random.
    pub(crate) fn drawn(seed: u64) -> Choices {
        Choices { drawn: Some(Stream::named(seed, "experiment")), given: Vec::new(), used: Vec::new() }
    }

    /// As they were made before; what is beyond them is the plainest.
    pub(crate) fn repeated(given: &[u64]) -> Choices {
        Choices { drawn: None, given: given.to_vec(), used: Vec::new() }
    }

    /// What has been chosen so far.
    pub(crate) fn used(&self) -> &[u64] {
        &self.used
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let chosen = match &mut self.drawn {
            Some(stream) => stream.below(bound),
            None => self.given.get(self.used.len()).copied().unwrap_or(0).min(bound - 1),
        };
        self.used.push(chosen);
        chosen
    }

    /// A number from one to another, both included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// Whether something that happens once in so many times happens now.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        // No is the plainer.
        self.below(times) == times - 1
    }

    /// One of these.
    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).expect("a short list")]
    }
}

/// Makes choices smaller as long as they still fail, at most for this long: left out in groups, then each set to 0, halved or
/// one less.
pub(crate) fn shrink(mut failing: Vec<u64>, time: Duration, fails: impl Fn(&[u64]) -> bool) -> Vec<u64> {
    let begin = Instant::now();
    loop {
        let before = failing.clone();
        for size in [16, 8, 4, 2, 1] {
            let mut at = failing.len();
            while at >= size && begin.elapsed() < time {
                let mut shorter = failing.clone();
                shorter.drain(at - size..at);
                if fails(&shorter) {
                    failing = shorter;
                }
                at = (at - 1).min(failing.len());
            }
        }
        for at in 0..failing.len() {
            for smaller in [|_| 0, |value| value / 2, |value: u64| value.saturating_sub(1)] {
                while failing[at] > 0 && begin.elapsed() < time {
                    let mut next = failing.clone();
                    next[at] = smaller(next[at]);
                    if !fails(&next) {
                        break;
                    }
                    failing = next;
                }
            }
        }
        if failing == before || begin.elapsed() >= time {
            return failing;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_repeated_and_the_rest_is_plain() {
        let mut drawn = Choices::drawn(7);
        let first: Vec<u64> = (1..50).map(|bound| drawn.below(bound)).collect();
        assert!(first.iter().any(|&value| value > 10));
        let mut repeated = Choices::repeated(drawn.used());
        assert_eq!((1..50).map(|bound| repeated.below(bound)).collect::<Vec<_>>(), first);
        assert_eq!([repeated.below(9), repeated.between(3, 9)], [0, 3]);
        assert!(!repeated.once_in(2));
    }

    #[test]
    fn what_fails_becomes_as_small_as_it_can() {
        let failing: Vec<u64> = (0..100).collect();
        let fails = |choices: &[u64]| choices.iter().any(|&choice| choice >= 17) && choices.len() >= 3;
        assert_eq!(shrink(failing, Duration::from_secs(10), fails), [0, 0, 17]);
    }
}
