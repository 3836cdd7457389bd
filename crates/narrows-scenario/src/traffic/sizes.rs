//! Sizes of flows from tables, built in or in files.

use crate::error::Problem;
use narrows_plan::SizeDistribution;

/// The built-in tables: name, sentence, source, points. Adding one: a file in `data/`, and a line here.
pub(crate) const BUILT_IN: &[(&str, &str, &str, &str)] = &[
    (
        "web-search",
        "Requests and responses of a web search cluster, 1.71 MB on average.",
        "[DCTCP §2.2]",
        include_str!("../../data/web-search.cdf"),
    ),
    (
        "data-mining",
        "Flows of a data-mining cluster: most are tiny, most bytes are of the largest.",
        "[VL2 §3.1]",
        include_str!("../../data/data-mining.cdf"),
    ),
    ("cache", "Flows of a cluster of caches.", "", include_str!("../../data/cache.cdf")),
];

/// Most points of a table.
const MAX_POINTS: usize = 10_000;
/// What may be wrong with a line.
const NOT_TWO_NUMBERS: &str = "a line is a size in bytes and a cumulative probability";
const SIZES_GO_DOWN: &str = "sizes must not go down";
const PROBABILITIES_GO_DOWN: &str = "cumulative probabilities must not go down";
const DOES_NOT_END_AT_ONE: &str = "the last cumulative probability must be 1 (or 100)";
const TOO_LARGE: &str = "a distribution has at most 10000 points, and sizes of at most 10 TB";
const EMPTY: &str = "every size is zero";
/// Largest size: 10 TB.
const LARGEST: u64 = 10_000_000_000_000;

/// Names of the built-in distributions.
pub fn built_in_names() -> Vec<String> {
    BUILT_IN.iter().map(|(name, ..)| (*name).to_owned()).collect()
}

/// The built-in distribution of this name.
pub fn built_in(name: &str) -> Option<SizeDistribution> {
    let (.., text) = BUILT_IN.iter().find(|(known, ..)| *known == name)?;
    Some(parse(name, text).expect("the built-in tables are tested"))
}

/// Reads lines of a size in bytes and a cumulative probability, ascending; `#` begins a comment. Probabilities that
/// end at 100 are percents. The first interval begins at (0, 0).
pub fn parse(name: &str, text: &str) -> Result<SizeDistribution, Problem> {
    let fail = |line: usize, fault| {
        let help = match fault {
            DOES_NOT_END_AT_ONE => "end the table with the largest size and probability 1",
            _ => "write it like `10000 0.15`, ascending",
        };
        Problem::in_line(name, line, fault, help)
    };
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
            return Err(fail(number, NOT_TWO_NUMBERS));
        };
        let size = whole_bytes(size).ok_or_else(|| fail(number, NOT_TWO_NUMBERS))?;
        let probability: f64 = probability.parse().map_err(|_| fail(number, NOT_TWO_NUMBERS))?;
        if !probability.is_finite() || probability < 0.0 {
            return Err(fail(number, NOT_TWO_NUMBERS));
        }
        if size > LARGEST || points.len() >= MAX_POINTS {
            return Err(fail(number, TOO_LARGE));
        }
        if let Some((before, below)) = points.last() {
            if size < *before {
                return Err(fail(number, SIZES_GO_DOWN));
            }
            if probability < *below {
                return Err(fail(number, PROBABILITIES_GO_DOWN));
            }
        }
        points.push((size, probability));
    }
    let Some((largest, end)) = points.last().copied() else { return Err(fail(1, NOT_TWO_NUMBERS)) };
    let percent = end == 100.0;
    if !percent && end != 1.0 {
        return Err(fail(last_line, DOES_NOT_END_AT_ONE));
    }
    if largest == 0 {
        return Err(fail(last_line, EMPTY));
    }
    if percent {
        points.iter_mut().for_each(|(_, probability)| *probability /= 100.0);
    }
    if points[0].1 > 0.0 {
        points.insert(0, (0, 0.0));
    }
    Ok(SizeDistribution { name: name.to_owned(), points })
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
    use narrows_core::rng::Stream;
    use narrows_core::units::Bytes;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn means_and_spreads_are_the_published_ones() {
        let mean = |name| built_in(name).unwrap().mean();
        assert_eq!(libm::round(mean("web-search")), 1_711_250.0);
        assert_eq!(libm::round(mean("data-mining")), 12_658_199.0);
        assert_eq!(libm::round(mean("cache")), 342.0);
        let spread = |name| libm::sqrt(built_in(name).unwrap().variance());
        assert!((3.96e6..3.98e6).contains(&spread("web-search")), "{}", spread("web-search"));
        assert!((85.6e6..85.8e6).contains(&spread("data-mining")));
        assert!((2.4e3..2.6e3).contains(&spread("cache")));
    }

    #[test]
    fn sampled_means_stay_within_four_standard_errors() {
        for name in built_in_names() {
            let sizes = built_in(&name).unwrap();
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
        let ones = parse("t", "10000 0.15\n20000 0.2\n30000 1\n").unwrap();
        let hundreds = parse("t", "# bytes percent\n0 0\n10000 15\n20000 20\n30000 100\n").unwrap();
        assert_eq!(ones, hundreds);
        assert_eq!(ones.quantile(0.6), Bytes::new(25_000));
        assert_eq!(ones.quantile(0.0), Bytes::new(1));
        assert_eq!(ones.quantile(1.0), Bytes::new(30_000));
    }

    #[test]
    fn the_median_is_where_the_table_says() {
        let median = built_in("web-search").unwrap().quantile(0.5);
        assert!((73_000..73_200).contains(&median.get()));
        assert_eq!(SizeDistribution::fixed(Bytes::new(7)).quantile(0.4), Bytes::new(7));
    }

    #[test]
    fn broken_tables_are_refused() {
        let fault = |text| match parse("t", text) {
            Err(problem) => problem.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(fault("1 0.5\n2 0.9\n"), format!("t:2: {DOES_NOT_END_AT_ONE}"));
        assert_eq!(fault("5 0.5\n2 1\n"), format!("t:2: {SIZES_GO_DOWN}"));
        assert_eq!(fault("1 0.5\n2 0.4\n3 1"), format!("t:2: {PROBABILITIES_GO_DOWN}"));
        assert_eq!(fault("1 one"), format!("t:1: {NOT_TWO_NUMBERS}"));
        assert_eq!(fault("1 2 3"), format!("t:1: {NOT_TWO_NUMBERS}"));
        assert_eq!(fault("1 nan"), format!("t:1: {NOT_TWO_NUMBERS}"));
        assert_eq!(fault("0 0.5\n0 1"), format!("t:2: {EMPTY}"));
        assert_eq!(fault(""), format!("t:1: {NOT_TWO_NUMBERS}"));
    }

    proptest! {
        #[test]
        fn no_table_makes_the_reader_panic(text in "[0-9. e#\n-]{0,60}") {
            if let Ok(sizes) = parse("t", &text) {
                prop_assert!(sizes.mean() >= 0.0 && sizes.quantile(0.5).get() >= 1);
            }
        }

        #[test]
        fn quantiles_rise(a in 0.0f64..1.0, b in 0.0f64..1.0) {
            let sizes = built_in("data-mining").unwrap();
            prop_assert!(sizes.quantile(a.min(b)) <= sizes.quantile(a.max(b)));
        }
    }
}
