//! A quantity is untrusted text: it is refused with help, or it is the number that is written, times its unit. A number that
//! is written again is the same; seeds are few and different.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use narrows_core::units::{Bytes, Packets, Rate, Span};
use narrows_scenario::experiment::{MAX_SEEDS, Seeds};
use narrows_scenario::units::{Decimal, Dimension, parse, parse_fraction};

fn check<D: Dimension>(text: &str, count: impl Fn(D) -> u64) {
    match parse::<D>(text).map(count) {
        Ok(count) => {
            let trimmed = text.trim();
            let split = trimmed.find(|c: char| !c.is_ascii_digit() && !".eE+".contains(c)).unwrap_or(trimmed.len());
            let (number, name) = trimmed.split_at(split);
            let found = D::UNITS.iter().find(|(unit, _)| *unit == name.trim_start());
            let (_, size) = found.unwrap_or_else(|| panic!("{text} has no unit"));
            let number: f64 = number.parse().unwrap_or_else(|_| panic!("{text} has no number"));
            let near = number * *size as f64;
            // The reader is exact; this is not.
            assert!((count as f64 - near).abs() <= near * 1e-9, "{text} is {count}, and not {near}");
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.help().is_empty()),
    }
}

fuzz_target!(|text: &str| {
    check(text, Span::as_ps);
    check(text, Rate::as_bps);
    check(text, Bytes::get);
    check(text, Packets::get);
    if let Some((number, rest)) = Decimal::read(text) {
        let read = text.len() - rest.len();
        assert!(read > 0 && text[..read].parse::<f64>().is_ok(), "{text}");
        let written = number.to_string();
        // More digits are refused; `1e20` after 30 of them is read.
        if written.len() <= 30 {
            let (again, nothing) = Decimal::read(&written).expect("what was written is a number");
            assert!(nothing.is_empty() && again.at_most(number) && number.at_most(again), "{number} of {text}");
        }
    }
    assert!(parse_fraction(text).is_none_or(|share| share.is_finite() && share >= 0.0));
    if let Some(Seeds(seeds)) = Seeds::parse(text) {
        assert!(!seeds.is_empty() && seeds.len() as u64 <= MAX_SEEDS);
        assert_eq!(seeds.iter().collect::<BTreeSet<_>>().len(), seeds.len());
    }
});
