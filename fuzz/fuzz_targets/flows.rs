//! A list of flows is untrusted text: it is refused with a line of it and with help, or its flows are between hosts that
//! there are, and written again they are the same flows.
#![no_main]

use std::fmt::Write;

use libfuzzer_sys::fuzz_target;
use narrows_core::units::Time;
use narrows_scenario::traffic::listed::parse;

const HOSTS: usize = 8;

fuzz_target!(|text: &str| match parse("list", text, HOSTS) {
    Ok(flows) => {
        let mut written = format!("{}\n", flows.len());
        for flow in &flows {
            assert!(flow.source != flow.destination && flow.source.max(flow.destination) < 8, "{flow:?}");
            let size = flow.size.expect("a listed flow has a size").get();
            assert!(size > 0);
            let ps = flow.at.since(Time::ZERO).as_ps();
            let (whole, part) = (ps / 1_000_000_000_000, ps % 1_000_000_000_000);
            let _ = writeln!(written, "{} {} 3 100 {size} {whole}.{part:012}", flow.source, flow.destination);
        }
        assert_eq!(parse("list", &written, HOSTS).expect("what was written is a list"), flows);
    }
    Err(problem) => {
        let said = problem.to_string();
        let line = said.strip_prefix("list:").and_then(|rest| rest.split_once(": ")).map(|(line, _)| line);
        let line: usize = line.and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("no line: {said}"));
        assert!(line >= 1 && line <= text.lines().count().max(1), "{said}");
        assert!(problem.help().is_some_and(|help| !help.is_empty()));
    }
});
