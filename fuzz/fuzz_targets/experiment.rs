//! An experiment is untrusted text: whatever it says, it is expanded or refused, and a refusal can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_scenario::{Limits, Overrides, load_str};

fuzz_target!(|text: &str| {
    if let Err(error) = load_str(text, &Overrides::default(), &Limits::default()) {
        assert!(!error.render().is_empty());
    }
});
