//! A program is untrusted text: it is refused with a line of it and with help, or it is read, written as GOAL, and read
//! again as the same program.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_core::app::program::goal;

fuzz_target!(|text: &str| match goal::read(text) {
    Ok(schedule) => {
        let written = schedule.to_string();
        let again = goal::read(&written).unwrap_or_else(|fault| panic!("{fault}\n{written}"));
        assert!(again == schedule, "another program:\n{written}\n{again}");
    }
    Err(fault) => {
        let lines = text.matches('\n').count() + 1;
        assert!(fault.line >= 1 && fault.line as usize <= lines, "line {} of {lines}", fault.line);
        assert!(!fault.what.is_empty() && !fault.help.is_empty());
    }
});
