//! `key=value` on a command line, as an experiment would write the parameter.

use std::collections::BTreeSet;

use narrows_kernel::{Controller, Settings};
use narrows_scenario::parameter_value;

use super::refused;
use crate::failure::Failure;

/// Changes `settings` by each of `written`.
///
/// # Errors
/// Code 2: no `=`, an unknown key, one that is there twice, or a value that the parameter does not take.
pub(super) fn apply(controller: &Controller, settings: &mut Settings, written: &[String]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for text in written {
        let Some((name, value)) = text.split_once('=') else {
            return Err(Failure::input(format_args!("`{text}` is not key=value")).help("write it like t=5ms"));
        };
        if !seen.insert(name) {
            return Err(Failure::input(format_args!("`{name}` is given twice")).help("give it once"));
        }
        let value = parameter_value(controller.spec, name, value).map_err(|problem| refused::by_scenario(&problem))?;
        settings.set(name, value).map_err(refused::by_kernel)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::cc::Value;
    use narrows_core::units::{Packets, Rate, Span};
    use narrows_kernel::controllers::find;

    fn applied(written: &[&str]) -> Result<Settings, Failure> {
        let gemini = find("gemini").expect("it is in the table");
        let mut settings = Settings::defaults(gemini);
        let written: Vec<String> = written.iter().map(|text| (*text).to_owned()).collect();
        apply(gemini, &mut settings, &written).map(|()| settings)
    }

    #[test]
    fn every_kind_is_written_as_in_an_experiment() {
        let written =
            ["capacity=10Gbps", "t=200us", "k=300pkt", "beta=0.25", "ecn=false", "g-shift=5", "gate=timer-base"];
        let settings = applied(&written).expect("all are good");
        let expected = [
            ("capacity", Value::Rate(Rate::from_gbps(10))),
            ("t", Value::Span(Span::from_us(200))),
            ("k", Value::Packets(Packets::new(300))),
            ("beta", Value::Real(1 << 18)),
            ("ecn", Value::Switch(false)),
            ("g-shift", Value::Count(5)),
            ("gate", Value::Choice(1)),
        ];
        for (name, value) in expected {
            assert_eq!(settings.get(name), Some(value), "{name}");
        }
        assert_eq!(applied(&["f=auto"]).expect("it is good").get("f"), Some(Value::Auto));
        let twice = applied(&["f=1", "t=5ms", "f=auto"]).expect_err("which of them?").to_string();
        assert!(twice.contains("`f` is given twice"), "{twice}");
    }

    #[test]
    fn refusals_say_what_to_write() {
        let refusals =
            ["t", "gama=1", "bta=0.2", "beta=1.5", "beta=fast", "t=5", "t=auto", "gate=sq", "k=-1pkt", "ecn=1", "t="];
        let said: Vec<String> =
            refusals.iter().map(|text| format!("{text}: {}", applied(&[text]).expect_err("it is refused"))).collect();
        insta::assert_snapshot!(said.join("\n"));
    }
}
