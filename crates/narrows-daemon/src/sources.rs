//! What results of live runs depend on: the sources that the build script digests, and of each controller what its [`Spec`] says
//! and which of the kernel's stands for it.

use std::collections::BTreeMap;

use narrows_core::cc::{Parameter, SPECS, Spec, spec};
use narrows_plan::{Sources, of_json};
use serde_json::{Value as Json, json};

use crate::run::controllers;

/// With the kernel's usual controllers.
pub(crate) fn usual() -> Sources {
    of(&SPECS.iter().map(|spec| (spec.name.to_owned(), controllers::usual(spec.name))).collect())
}

/// With these of the kernel's controllers, by the plans' names.
pub(crate) fn of(names: &BTreeMap<String, String>) -> Sources {
    let mut sources = Sources::new(env!("CARGO_PKG_VERSION"), include!(concat!(env!("OUT_DIR"), "/sources.rs")));
    let programs = sources.components.clone();
    for (name, kernel) in names {
        if let Some(facts) = facts(name, kernel, &programs) {
            sources.components.insert(component(name), format!("{:08x}", of_json(&facts) >> 96));
        }
    }
    sources
}

/// What of a controller decides results; `None` if all is the kernel's. `programs` are the digests of our own.
fn facts(name: &str, kernel: &str, programs: &BTreeMap<String, String>) -> Option<Json> {
    let of_plan = spec(name).map(said);
    let program = narrows_kernel::controllers::find(kernel).ok().filter(|found| found.registered == kernel);
    let program = program.map(|found| (said(found.spec), &programs[&component(found.spec.name)]));
    (of_plan.is_some() || kernel != name).then(|| json!([of_plan, kernel, program]))
}

/// What a [`Spec`] says, but for what is for people.
fn said(spec: &Spec) -> Json {
    let Spec {
        name,
        title: _,
        about: _,
        source: _,
        ecn,
        kernel,
        needs_delivery_rate,
        needs_every_ack: _,
        needs_telemetry: _,
        draws: _,
        ordered: _,
        parameters,
    } = spec;
    let parameter = |parameter: &Parameter| {
        let Parameter { name, kind, default, range, about: _ } = parameter;
        json!([name, format!("{kind:?}"), default, range])
    };
    let parameters: Vec<Json> = parameters.iter().map(parameter).collect();
    json!([name, format!("{ecn:?}"), format!("{kernel:?}"), needs_delivery_rate, parameters])
}

fn component(controller: &str) -> String {
    format!("cc/{controller}")
}

#[cfg(test)]
mod tests {
    use narrows_core::cc::{EcnUse, Kernel, Kind, Value, newreno};

    use super::*;

    #[test]
    fn all_that_a_spec_says_counts_but_for_what_is_for_people() {
        const ONE: Parameter =
            Parameter { name: "a", kind: Kind::Count, default: Value::Count(1), range: Some((1, 2)), about: "A." };
        const SPEC: Spec = Spec { parameters: &[ONE], ..newreno::SPEC };
        for other in [
            Spec { kernel: Kernel::Twin, ..SPEC },
            Spec { kernel: Kernel::Own("other"), ..SPEC },
            Spec { ecn: EcnUse::Exact, ..SPEC },
            Spec { needs_delivery_rate: true, ..SPEC },
            Spec { parameters: &[Parameter { default: Value::Count(2), ..ONE }], ..SPEC },
            Spec { parameters: &[Parameter { range: None, ..ONE }], ..SPEC },
            Spec { parameters: &[Parameter { kind: Kind::Switch, ..ONE }], ..SPEC },
            Spec { parameters: &[Parameter { name: "b", ..ONE }], ..SPEC },
        ] {
            assert_ne!(said(&SPEC), said(&other), "{other:?}");
        }
        let described = Spec {
            title: "Another",
            about: "Another.",
            source: "RFC 6582",
            parameters: &[Parameter { about: "B.", ..ONE }],
            ..SPEC
        };
        assert_eq!(said(&SPEC), said(&described));
    }

    #[test]
    fn the_kernels_controller_counts_and_our_program_if_it_is_one() {
        let of = |names: &[(&str, &str)]| {
            let names = names.iter().map(|&(name, kernel)| (name.to_owned(), kernel.to_owned())).collect();
            of(&names).components
        };
        let usual = usual().components;
        assert!(SPECS.iter().all(|spec| usual.contains_key(&component(spec.name))));
        // A run that chooses what is usual has the version that the lab expects.
        assert_eq!(of(&[("newreno", "reno")])["cc/newreno"], usual["cc/newreno"]);
        assert_eq!(of(&[("dctcp", "narrows_dctcp")])["cc/dctcp"], usual["cc/dctcp"]);
        for (name, kernel) in [("newreno", "narrows_newreno"), ("newreno", "narrows_dctcp"), ("dctcp", "dctcp")] {
            assert_ne!(of(&[(name, kernel)])[&component(name)], usual[&component(name)], "{name}={kernel}");
        }
        // What only the kernel has, has no sources here, unless another stands for it.
        assert!(!of(&[("htcp", "htcp")]).contains_key("cc/htcp"));
        assert!(of(&[("htcp", "narrows_dctcp")]).contains_key("cc/htcp"));
        let program = |digest: &str| facts("newreno", "narrows_dctcp", &[("cc/dctcp".into(), digest.into())].into());
        assert_ne!(program("1"), program("2"));
    }
}
