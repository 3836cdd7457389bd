//! Experiments as people write them, from the text to the plans.

use narrows_core::cc::{EcnUse, Spec};
use narrows_core::cc::{Kind, Parameter, Value};
use narrows_core::units::{Packets, Span};

use super::*;

mod answers;
mod bursts;
mod charts;
mod errors;
mod experiments;
mod in_c;
mod links;
mod named_axes;
mod ports;
mod programs;
mod routing;
mod settling;
mod sources;

/// Controllers of these tests: names and parameters as in the papers, so that the tests do not move with the registry.
pub(crate) static CONTROLLERS: &[&Spec] = &[
    &Spec { name: "newreno", ecn: EcnUse::Optional, parameters: &[], ..PLAIN },
    &Spec { name: "cubic", ecn: EcnUse::Optional, parameters: &[], ..PLAIN },
    &Spec { name: "vegas", ecn: EcnUse::Optional, parameters: VEGAS, ordered: &[("alpha", "beta")], ..PLAIN },
    &Spec { name: "bbr", ecn: EcnUse::Optional, needs_delivery_rate: true, ..PLAIN },
    &Spec { name: "dctcp", ecn: EcnUse::Exact, parameters: &[], ..PLAIN },
    &Spec { name: "gemini", ecn: EcnUse::Exact, parameters: GEMINI, ..PLAIN },
    &Spec { name: "swift", ecn: EcnUse::Optional, needs_every_ack: true, ..PLAIN },
    &Spec { name: "hpcc", ecn: EcnUse::Optional, needs_telemetry: true, ..PLAIN },
    &Spec { name: "dcqcn", ecn: EcnUse::Exact, parameters: DCQCN, ..PLAIN },
];

const PLAIN: Spec = Spec {
    name: "",
    title: "",
    about: "",
    source: "",
    ecn: EcnUse::Optional,
    kernel: narrows_core::cc::Kernel::None,
    needs_delivery_rate: false,
    needs_every_ack: false,
    needs_telemetry: false,
    draws: false,
    ordered: &[],
    parameters: &[],
};

const fn parameter(name: &'static str, kind: Kind, default: Value, range: Option<(u64, u64)>) -> Parameter {
    Parameter { name, kind, default, range, about: "" }
}

const VEGAS: &[Parameter] = &[
    parameter("alpha", Kind::Packets, Value::Packets(Packets::new(2)), Some((1, 1_000))),
    parameter("beta", Kind::Packets, Value::Packets(Packets::new(4)), Some((1, 1_000))),
];

const DCQCN: &[Parameter] = &[parameter("window", Kind::Span, Value::Span(Span::from_ms(4)), A_SECOND)];

const A_SECOND: Option<(u64, u64)> = Some((Span::from_us(1).as_ps(), Span::from_secs(1).as_ps()));

const GEMINI: &[Parameter] = &[
    parameter("beta", Kind::Real { bits: 10 }, Value::Real(205), Some((1, 1_024))),
    parameter("t", Kind::Span, Value::Span(Span::from_ms(5)), A_SECOND),
    parameter("k", Kind::Packets, Value::Auto, Some((1, 100_000))),
    parameter("delay", Kind::Switch, Value::Switch(true), None),
    parameter("growth", Kind::Choice(&["fresh", "frozen"]), Value::Choice(0), None),
];

/// Expands with the tests' controllers.
pub(crate) fn expand(text: &str, overrides: &Overrides) -> Result<Experiment, Box<Error>> {
    expand_in(None, text, overrides, &Limits::default())
}

/// The same, for a file in a folder and a machine with these limits.
fn expand_in(
    folder: Option<&Path>,
    text: &str,
    overrides: &Overrides,
    limits: &Limits,
) -> Result<Experiment, Box<Error>> {
    let loader = Loader { file: "experiment.toml", name: "test", folder, overrides, limits, controllers: CONTROLLERS };
    loader.expand(text.to_owned())
}

/// What is said of a text that is refused.
fn refused(text: &str) -> String {
    match expand(text, &Overrides::default()) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.render(),
    }
}

/// What is said of a text each time one of its parts is replaced by another.
fn all_refused(text: &str, cases: &[(&str, &str)]) -> String {
    let one = |(from, to): &(&str, &str)| {
        assert!(text.contains(from), "nothing to replace: {from}");
        refused(&text.replacen(from, to, 1)) + "\n"
    };
    cases.iter().map(one).collect()
}

/// A plan of this topology in which CUBIC sends one long flow from one of these hosts to the other.
pub(crate) fn one_flow(topology: &str, from: &str, to: &str) -> narrows_plan::Plan {
    let text = format!(
        "cc = \"cubic\"\n{topology}\n[[traffic]]\nfrom = \"{from}\"\nto = \"{to}\"\nlong = {{ flows = 1 }}\n\
         [[arm]]\nname = \"a\"\n[run]\nend = \"1s\"\n"
    );
    plans(&text).remove(0)
}

/// The plans of a text that is right.
pub(crate) fn plans(text: &str) -> Vec<narrows_plan::Plan> {
    expand(text, &Overrides::default()).unwrap_or_else(|error| panic!("{}", error.render())).plans
}
