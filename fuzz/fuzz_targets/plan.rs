//! A plan comes as JSON from whoever calls `narrowsd run`: whatever it says, it is refused or is the same when it is written
//! and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_plan::Plan;

fuzz_target!(|text: &[u8]| {
    if let Ok(plan) = serde_json::from_slice::<Plan>(text) {
        let written = serde_json::to_string(&plan).expect("a plan is JSON");
        let again: Plan = serde_json::from_str(&written).expect("what was written is a plan");
        assert!(again == plan && again.hash() == plan.hash(), "another plan: {written}");
    }
});
