//! Experiments as people write them, from the text to the plans.

use narrows_core::cc::{EcnUse, Spec};
use narrows_core::cc::{Kind, Parameter, Value};
use narrows_core::units::{Packets, Span};

use super::*;

mod answers;
mod errors;
mod experiments;
mod sources;

/// Controllers of these tests: names and parameters as in the papers, so that the tests do not move with the registry.
pub(crate) static CONTROLLERS: &[&Spec] = &[
    &Spec { name: "newreno", ecn: EcnUse::Optional, parameters: &[], ..PLAIN },
    &Spec { name: "cubic", ecn: EcnUse::Optional, parameters: &[], ..PLAIN },
    &Spec { name: "vegas", ecn: EcnUse::Optional, parameters: VEGAS, ..PLAIN },
    &Spec { name: "bbr", ecn: EcnUse::Optional, parameters: &[], ..PLAIN },
    &Spec { name: "dctcp", ecn: EcnUse::Exact, parameters: &[], ..PLAIN },
    &Spec { name: "gemini", ecn: EcnUse::Exact, parameters: GEMINI, ..PLAIN },
];

const PLAIN: Spec = Spec {
    name: "",
    title: "",
    about: "",
    source: "",
    ecn: EcnUse::Optional,
    kernel: narrows_core::cc::Kernel::None,
    needs_delivery_rate: false,
    parameters: &[],
};

const VEGAS: &[Parameter] = &[
    Parameter {
        name: "alpha",
        kind: Kind::Packets,
        default: Value::Packets(Packets::new(2)),
        range: Some((1, 1_000)),
        about: "",
    },
    Parameter {
        name: "beta",
        kind: Kind::Packets,
        default: Value::Packets(Packets::new(4)),
        range: Some((1, 1_000)),
        about: "",
    },
];

const GEMINI: &[Parameter] = &[
    Parameter {
        name: "beta",
        kind: Kind::Real { bits: 10 },
        default: Value::Real(205),
        range: Some((1, 1_024)),
        about: "",
    },
    Parameter {
        name: "t",
        kind: Kind::Span,
        default: Value::Span(Span::from_ms(5)),
        range: Some((Span::from_us(1).as_ps(), Span::from_secs(1).as_ps())),
        about: "",
    },
    Parameter { name: "k", kind: Kind::Packets, default: Value::Auto, range: Some((1, 100_000)), about: "" },
    Parameter { name: "delay", kind: Kind::Switch, default: Value::Switch(true), range: None, about: "" },
    Parameter {
        name: "growth",
        kind: Kind::Choice(&["fresh", "frozen"]),
        default: Value::Choice(0),
        range: None,
        about: "",
    },
];

/// Expands with the tests' controllers.
pub(crate) fn expand(text: &str, overrides: &Overrides) -> Result<Experiment, Box<Error>> {
    let limits = &Limits::default();
    Loader { file: "experiment.toml", name: "test", folder: None, overrides, limits, controllers: CONTROLLERS }
        .expand(text.to_owned())
}

/// The same, of a text that is right.
pub(crate) fn plans(text: &str) -> Vec<narrows_plan::Plan> {
    expand(text, &Overrides::default()).unwrap_or_else(|error| panic!("{}", error.render())).plans
}
