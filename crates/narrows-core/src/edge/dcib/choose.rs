//! Which packets are marked: a share of those below a rate.

use super::Config;
use crate::rng::SmallStream;
use crate::units::{Bytes, Rate, Span, Time};

/// A part of a whole, in units of 2⁻³²; never above 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Share(u64);

impl Share {
    /// All of it.
    pub const WHOLE: Share = Share(1 << 32);
    /// A tenth, to within 2⁻³²: what the pair marks where nothing else is said.
    pub const TENTH: Share = Share(429_496_730);

    /// So many times 2⁻³², at most all.
    pub const fn from_q32(parts: u64) -> Share {
        if parts > Share::WHOLE.0 { Share::WHOLE } else { Share(parts) }
    }

    /// In units of 2⁻³².
    pub const fn as_q32(self) -> u64 {
        self.0
    }

    /// The part of a rate, rounded down.
    pub const fn of(self, rate: Rate) -> Rate {
        rate.scaled(self.0, Share::WHOLE.0)
    }
}

/// The rule by which packets are chosen. All of them choose among packets with data only, at most a share `m` of the rate
/// `R`, and none beyond `R`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Chooser {
    /// Evenly, so that one of every 1/m is.
    #[default]
    Sampled,
    /// Each with probability `m`.
    Bernoulli,
    /// Those beyond `(1 − m) · R` and below `R`: all of the uppermost band, and none while the load is lower.
    Band,
}

/// What may pass at once below `R` and among the marked: what either rate is in an RTT, for windows come in bursts, and
/// at least so many full packets.
const MIN_BURST: u64 = 50 * 1_500;
const MIN_MARKED_BURST: u64 = 20 * 1_500;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Choose {
    chooser: Chooser,
    share: Share,
    profile: Bucket,
    /// Of the marked.
    part: Bucket,
    /// Of what lies below a band.
    lower: Bucket,
    /// Of what the even choice has owed so far, the part below 1, in units of 2⁻³².
    owed: u64,
    stream: SmallStream,
}

impl Choose {
    /// The stream decides which packet is the first, and draws.
    pub(super) fn new(config: &Config, mut stream: SmallStream) -> Choose {
        let Config { rate, share, chooser, round_trip, .. } = *config;
        let part = share.of(rate);
        let lower = Rate::from_bps(rate.as_bps() - part.as_bps());
        let owed = stream.below(Share::WHOLE.0);
        let bucket = |rate: Rate, least: u64| Bucket::new(rate, rate.bytes_in(round_trip).max(Bytes::new(least)));
        Choose {
            chooser,
            share,
            profile: bucket(rate, MIN_BURST),
            part: bucket(part, MIN_MARKED_BURST),
            lower: bucket(lower, MIN_BURST),
            owed,
            stream,
        }
    }

    /// Whether a packet with data of this size is to be marked.
    pub(super) fn choose(&mut self, now: Time, size: Bytes) -> bool {
        // A packet counts towards the rate whether it is chosen or not.
        let below = self.profile.take(now, size);
        match self.chooser {
            Chooser::Sampled => {
                self.owed += self.share.0;
                let chosen = self.owed >= Share::WHOLE.0;
                if chosen {
                    self.owed -= Share::WHOLE.0;
                }
                chosen && below && self.part.take(now, size)
            }
            Chooser::Bernoulli => {
                let chosen = self.stream.below(Share::WHOLE.0) < self.share.0;
                chosen && below && self.part.take(now, size)
            }
            Chooser::Band => !self.lower.take(now, size) && below && self.part.take(now, size),
        }
    }
}

/// A token bucket: it fills at a rate up to a depth, and a packet takes its size or nothing.
#[derive(Clone, Debug)]
struct Bucket {
    rate: Rate,
    depth: Span,
    /// When it will have been full if nothing more is taken: time stands for tokens, so that no fraction is lost.
    full_at: Time,
}

impl Bucket {
    fn new(rate: Rate, depth: Bytes) -> Bucket {
        Bucket { rate, depth: rate.time_for(depth), full_at: Time::ZERO }
    }

    fn take(&mut self, now: Time, size: Bytes) -> bool {
        if self.rate.as_bps() == 0 {
            return false;
        }
        let full_at = self.full_at.max(now) + self.rate.time_for(size);
        let taken = full_at.since(now) <= self.depth;
        if taken {
            self.full_at = full_at;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FULL: Bytes = Bytes::new(1_500);
    const RATE: Rate = Rate::from_gbps(10);
    const ROUND_TRIP: Span = Span::from_ms(1);

    fn config(chooser: Chooser, share: Share) -> Config {
        Config { chooser, ..Config::new(RATE, share, ROUND_TRIP) }
    }

    /// Of `count` packets at `load` percent of the rate: how many are chosen, and at what rate.
    fn chosen(chooser: Chooser, share: Share, load: u64, count: u64) -> (u64, Rate) {
        let mut choose = Choose::new(&config(chooser, share), SmallStream::new(1));
        let between = Span::from_ps(RATE.time_for(FULL).as_ps() * 100 / load);
        let times = (0..count).map(|i| Time::from_ps(i * between.as_ps()));
        let chosen = times.filter(|&now| choose.choose(now, FULL)).count() as u64;
        (chosen, Rate::of(Bytes::new(chosen * FULL.get()), Span::from_ps(count * between.as_ps())))
    }

    #[test]
    fn a_tenth_is_marked_at_half_load() {
        for chooser in [Chooser::Sampled, Chooser::Bernoulli] {
            let (marked, _) = chosen(chooser, Share::TENTH, 50, 100_000);
            assert!((9_500..=10_500).contains(&marked), "{chooser:?}: {marked}");
        }
        assert_eq!(chosen(Chooser::Band, Share::TENTH, 50, 100_000).0, 0);
    }

    #[test]
    fn at_twice_the_rate_no_more_than_its_share_is_marked() {
        for chooser in [Chooser::Sampled, Chooser::Bernoulli, Chooser::Band] {
            let (marked, rate) = chosen(chooser, Share::TENTH, 200, 1_000_000);
            // An RTT's burst beyond it, once in 600 ms.
            let most = Share::TENTH.of(RATE).as_bps() * 1_002 / 1_000;
            assert!(rate.as_bps() <= most && marked > 2_000, "{chooser:?}: {marked} packets, {rate}");
        }
    }

    #[test]
    fn a_band_is_marked_where_the_load_reaches_into_it() {
        let (marked, _) = chosen(Chooser::Band, Share::TENTH, 95, 100_000);
        assert!((4_400..5_600).contains(&marked), "{marked}: 5 of 95 are beyond nine tenths");
    }

    #[test]
    fn all_are_marked_where_the_share_is_whole() {
        assert_eq!(chosen(Chooser::Sampled, Share::WHOLE, 90, 1_000).0, 1_000);
        assert_eq!(chosen(Chooser::Bernoulli, Share::WHOLE, 90, 1_000).0, 1_000);
    }

    proptest! {
        /// Whatever comes when: in any time the marked bytes are within the share of the rate and one burst.
        #[test]
        fn marked_bytes_stay_below_their_rate(
            packets in prop::collection::vec((0_u64..3_000_000, 40_u64..9_000), 1..300),
            chooser in prop::sample::select(&[Chooser::Sampled, Chooser::Bernoulli, Chooser::Band][..]),
            share in 1_u64..=1 << 32,
        ) {
            let share = Share::from_q32(share);
            let mut choose = Choose::new(&config(chooser, share), SmallStream::new(5));
            let (mut now, mut marked) = (Time::ZERO, 0);
            for (gap, size) in packets {
                now += Span::from_ps(gap);
                if choose.choose(now, Bytes::new(size)) {
                    marked += size;
                }
            }
            let burst = share.of(RATE).bytes_in(ROUND_TRIP).get().max(MIN_MARKED_BURST);
            let most = share.of(RATE).bytes_in(now.since(Time::ZERO)).get() + burst + 1;
            prop_assert!(marked <= most);
        }
    }
}
