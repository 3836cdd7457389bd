//! Sizes of flows: a cumulative distribution, linear between its points.

use narrows_core::rng::Stream;
use narrows_core::units::Bytes;

use crate::error::{CdfFault, Problem};
use crate::plan::SizeDistribution;

/// The built-in tables, by name.
const BUILT_IN: &[(&str, &str)] = &[
    ("web-search", include_str!("../../data/web-search.cdf")),
    ("data-mining", include_str!("../../data/data-mining.cdf")),
    ("cache", include_str!("../../data/cache.cdf")),
];

/// Most points of a table.
const MOST_POINTS: usize = 10_000;
/// Largest size: 10 TB.
const LARGEST: u64 = 10_000_000_000_000;

/// Names of the built-in distributions.
pub fn built_in_names() -> Vec<String> {
    BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// A number uniform over the open interval from 0 to 1, with 53 bits.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
pub(crate) fn unit(stream: &mut Stream) -> f64 {
    ((stream.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

impl SizeDistribution {
    /// The built-in distribution of this name.
    pub fn built_in(name: &str) -> Option<SizeDistribution> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Some(SizeDistribution::parse(name, text).expect("the built-in tables are tested"))
    }

    /// One size for all.
    pub fn fixed(size: Bytes) -> SizeDistribution {
        SizeDistribution { name: format!("fixed {size}"), points: vec![(size.get(), 0.0), (size.get(), 1.0)] }
    }

    /// Reads lines of a size in bytes and a cumulative probability, ascending; `#` begins a comment. Probabilities that
    /// end at 100 are percents. The first interval begins at (0, 0).
    pub fn parse(name: &str, text: &str) -> Result<SizeDistribution, Problem> {
        let fail = |line: usize, fault| Problem::Distribution { file: name.to_owned(), line, fault };
        let mut points: Vec<(u64, f64)> = vec![];
        let mut last_line = 1;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            last_line = number;
            let mut columns = line.split_whitespace();
            let (Some(size), Some(probability), None) = (columns.next(), columns.next(), columns.next()) else {
                return Err(fail(number, CdfFault::NotTwoNumbers));
            };
            let size = whole_bytes(size).ok_or_else(|| fail(number, CdfFault::NotTwoNumbers))?;
            let probability: f64 = probability.parse().map_err(|_| fail(number, CdfFault::NotTwoNumbers))?;
            if !probability.is_finite() || probability < 0.0 {
                return Err(fail(number, CdfFault::NotTwoNumbers));
            }
            if size > LARGEST || points.len() >= MOST_POINTS {
                return Err(fail(number, CdfFault::TooLarge));
            }
            if let Some((before, below)) = points.last() {
                if size < *before {
                    return Err(fail(number, CdfFault::SizesGoDown));
                }
                if probability < *below {
                    return Err(fail(number, CdfFault::ProbabilitiesGoDown));
                }
            }
            points.push((size, probability));
        }
        let Some((largest, end)) = points.last().copied() else { return Err(fail(1, CdfFault::NotTwoNumbers)) };
        let percent = end == 100.0;
        if !percent && end != 1.0 {
            return Err(fail(last_line, CdfFault::DoesNotEndAtOne));
        }
        if largest == 0 {
            return Err(fail(last_line, CdfFault::Empty));
        }
        if percent {
            points.iter_mut().for_each(|(_, probability)| *probability /= 100.0);
        }
        if points[0].1 > 0.0 {
            points.insert(0, (0, 0.0));
        }
        Ok(SizeDistribution { name: name.to_owned(), points })
    }

    /// Mean size, bytes.
    #[expect(clippy::cast_precision_loss, reason = "sizes are below 2^53")]
    pub fn mean(&self) -> f64 {
        self.points.windows(2).map(|w| (w[1].1 - w[0].1) * (w[0].0 as f64 + w[1].0 as f64) / 2.0).sum()
    }

    /// Variance of the size, bytes².
    #[expect(clippy::cast_precision_loss, reason = "sizes are below 2^53")]
    pub fn variance(&self) -> f64 {
        let square = self.points.windows(2).map(|w| {
            let (low, high) = (w[0].0 as f64, w[1].0 as f64);
            (w[1].1 - w[0].1) * (low * low + low * high + high * high) / 3.0
        });
        square.sum::<f64>() - self.mean() * self.mean()
    }

    /// The size at a cumulative probability between 0 and 1: linear interpolation, rounded down, at least 1 byte.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes are positive and below 2^53"
    )]
    pub fn quantile(&self, probability: f64) -> Bytes {
        let above = self.points.partition_point(|(_, cumulative)| *cumulative < probability);
        let above = above.clamp(1, self.points.len() - 1);
        let ((low, below), (high, upto)) = (self.points[above - 1], self.points[above]);
        let share = if upto > below { ((probability - below) / (upto - below)).clamp(0.0, 1.0) } else { 1.0 };
        let size = low as f64 + share * (high - low) as f64;
        Bytes::new((libm::floor(size) as u64).max(1))
    }

    /// One size.
    pub fn sample(&self, stream: &mut Stream) -> Bytes {
        self.quantile(unit(stream))
    }

    /// `count` sizes, one from each of as many equally probable strata, in random order: their sum strays little from
    /// `count` times the mean even where the tail is heavy.
    #[expect(clippy::cast_precision_loss, reason = "numbers of flows are far below 2^53")]
    pub fn stratified(&self, count: usize, stream: &mut Stream) -> Vec<Bytes> {
        let mut sizes: Vec<Bytes> =
            (0..count).map(|stratum| self.quantile((stratum as f64 + unit(stream)) / count as f64)).collect();
        for last in (1..count).rev() {
            let other = usize::try_from(stream.below(last as u64 + 1)).expect("below a usize");
            sizes.swap(last, other);
        }
        sizes
    }
}

/// A whole number of bytes, also written `1e6` or `1000.0`.
fn whole_bytes(text: &str) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and in range")]
    text.parse::<u64>().ok().or_else(|| {
        let value = text.parse::<f64>().ok()?;
        ((0.0..1e15).contains(&value) && libm::floor(value) == value).then_some(value as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn means_and_spreads_are_the_published_ones() {
        let mean = |name| SizeDistribution::built_in(name).unwrap().mean();
        assert_eq!(libm::round(mean("web-search")), 1_711_250.0);
        assert_eq!(libm::round(mean("data-mining")), 12_658_199.0);
        assert_eq!(libm::round(mean("cache")), 342.0);
        let spread = |name| libm::sqrt(SizeDistribution::built_in(name).unwrap().variance());
        assert!((3.96e6..3.98e6).contains(&spread("web-search")), "{}", spread("web-search"));
        assert!((85.6e6..85.8e6).contains(&spread("data-mining")));
        assert!((2.4e3..2.6e3).contains(&spread("cache")));
    }

    #[test]
    fn sampled_means_stay_within_four_standard_errors() {
        for name in built_in_names() {
            let sizes = SizeDistribution::built_in(&name).unwrap();
            let mut stream = Stream::named(3, "sizes");
            let count = 200_000;
            let sum: f64 = (0..count).map(|_| sizes.sample(&mut stream).get() as f64).sum();
            let error = libm::sqrt(sizes.variance() / f64::from(count));
            // Rounding down takes half a byte.
            assert!((sum / f64::from(count) - sizes.mean()).abs() < 4.0 * error + 1.0, "{name}");
        }
    }

    #[test]
    fn both_dialects_are_the_same_table() {
        let ones = SizeDistribution::parse("t", "10000 0.15\n20000 0.2\n30000 1\n").unwrap();
        let hundreds = SizeDistribution::parse("t", "# bytes percent\n0 0\n10000 15\n20000 20\n30000 100\n").unwrap();
        assert_eq!(ones, hundreds);
        assert_eq!(ones.quantile(0.6), Bytes::new(25_000));
        assert_eq!(ones.quantile(0.0), Bytes::new(1));
        assert_eq!(ones.quantile(1.0), Bytes::new(30_000));
    }

    #[test]
    fn the_median_is_where_the_table_says() {
        let median = SizeDistribution::built_in("web-search").unwrap().quantile(0.5);
        assert!((73_000..73_200).contains(&median.get()));
        assert_eq!(SizeDistribution::fixed(Bytes::new(7)).quantile(0.4), Bytes::new(7));
    }

    #[test]
    fn broken_tables_are_refused() {
        let fault = |text| match SizeDistribution::parse("t", text) {
            Err(Problem::Distribution { line, fault, .. }) => (line, fault),
            other => panic!("{other:?}"),
        };
        assert_eq!(fault("1 0.5\n2 0.9\n"), (2, CdfFault::DoesNotEndAtOne));
        assert_eq!(fault("5 0.5\n2 1\n"), (2, CdfFault::SizesGoDown));
        assert_eq!(fault("1 0.5\n2 0.4\n3 1"), (2, CdfFault::ProbabilitiesGoDown));
        assert_eq!(fault("1 one"), (1, CdfFault::NotTwoNumbers));
        assert_eq!(fault("1 2 3"), (1, CdfFault::NotTwoNumbers));
        assert_eq!(fault("1 nan"), (1, CdfFault::NotTwoNumbers));
        assert_eq!(fault("0 0.5\n0 1"), (2, CdfFault::Empty));
        assert_eq!(fault(""), (1, CdfFault::NotTwoNumbers));
    }

    proptest! {
        #[test]
        fn no_table_makes_the_reader_panic(text in "[0-9. e#\n-]{0,60}") {
            if let Ok(sizes) = SizeDistribution::parse("t", &text) {
                prop_assert!(sizes.mean() >= 0.0 && sizes.quantile(0.5).get() >= 1);
            }
        }

        #[test]
        fn quantiles_rise(a in 0.0f64..1.0, b in 0.0f64..1.0) {
            let sizes = SizeDistribution::built_in("data-mining").unwrap();
            prop_assert!(sizes.quantile(a.min(b)) <= sizes.quantile(a.max(b)));
        }
    }
}
