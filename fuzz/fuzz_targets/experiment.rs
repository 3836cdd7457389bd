//! An experiment is untrusted text: whatever it says, it is refused with its line and with help, or expanded to plans that
//! are the same when they are written as JSON and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_core::units::Bytes;
use narrows_plan::Plan;
use narrows_scenario::{Limits, Overrides, load_str};

/// Large networks take seconds to expand, and nothing else happens than in small ones.
const LIMITS: Limits = Limits { memory: Bytes::new(4_000_000) };

fuzz_target!(|text: &str| match load_str(text, &Overrides::default(), &LIMITS) {
    Ok(experiment) => {
        assert!(!experiment.seeds.is_empty() && experiment.plans.len() == experiment.summaries.len());
        // The first of many: the others differ from it by little.
        for plan in experiment.plans.iter().take(2) {
            let written = serde_json::to_string(plan).expect("a plan is JSON");
            let again: Plan = serde_json::from_str(&written).expect("what was written is a plan");
            assert!(again == *plan && again.hash() == plan.hash(), "another plan: {written}");
        }
    }
    Err(error) => {
        let shown = error.render();
        assert!(!shown.is_empty());
        if let Some((line, column)) = error.line_and_column() {
            // Behind the text comes a newline, where what is missing at its end is found to be so.
            assert!((1..=text.matches('\n').count() + 2).contains(&line) && column >= 1, "{shown}");
            assert!(shown.starts_with(&format!("experiment.toml:{line}:{column}: ")), "{shown}");
        } else {
            assert!(shown.starts_with("experiment.toml: "), "{shown}");
        }
        let steers = |character: char| character.is_control() && !"\n\t".contains(character);
        assert!(!shown.contains(steers), "{shown:?}");
    }
});
