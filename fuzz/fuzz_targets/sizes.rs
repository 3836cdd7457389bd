//! A table of sizes is untrusted text: it is refused with a line of it and with help, or its quantiles rise between 1 and
//! its largest size, its mean is one of its sizes, and written again it is the same table.
#![no_main]

use std::fmt::Write;

use libfuzzer_sys::fuzz_target;
use narrows_scenario::traffic::sizes::parse;

fuzz_target!(|text: &str| match parse("table", text) {
    Ok(sizes) => {
        let largest = sizes.points.last().expect("a table has points").0;
        let quantiles: Vec<u64> = (0..=16).map(|part| sizes.quantile(f64::from(part) / 16.0).get()).collect();
        assert!(quantiles.is_sorted() && quantiles[0] >= 1 && quantiles[16] <= largest, "{quantiles:?} of {largest}");
        let mean = sizes.mean();
        // Sums of up to ten thousand products are that exact.
        assert!((0.0..=largest as f64 * (1.0 + 1e-9)).contains(&mean), "{mean} of {largest}");
        let variance = sizes.variance();
        assert!(variance.is_finite() && variance >= -1e-9 * largest as f64 * largest as f64, "{variance}");
        let written = sizes.points.iter().fold(String::new(), |mut written, (size, probability)| {
            let _ = writeln!(written, "{size} {probability}");
            written
        });
        assert_eq!(parse("table", &written).expect("what was written is a table"), sizes);
    }
    Err(problem) => {
        let said = problem.to_string();
        let line = said.strip_prefix("table:").and_then(|rest| rest.split_once(": ")).map(|(line, _)| line);
        let line: usize = line.and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("no line: {said}"));
        assert!(line >= 1 && line <= text.lines().count().max(1), "{said}");
        assert!(problem.help().is_some_and(|help| !help.is_empty()));
    }
});
