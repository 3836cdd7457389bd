//! Every component that an experiment chooses by name, for help, documents and schemas: what the registries say.

use narrows_core::app::program::generate;
use narrows_core::cc::{self, EcnUse};
use narrows_core::component::{Kind, Parameter, Spec};
use narrows_core::edge;
use narrows_core::link::{LOSSES, REORDERINGS};
use narrows_core::queue::{aqm, congestion_point, scheduler};
use narrows_core::routing;
use narrows_core::tcp::profile::Profile;
use narrows_core::transport;
use serde_json::{Value as Json, json};

use crate::controller::{describe_value, shown};
use crate::topology::{TOPOLOGIES, usual};
use crate::traffic::sizes::BUILT_IN;

/// A component of one of these kinds.
#[derive(Clone, Debug)]
pub struct Listed {
    /// `controller`, `aqm`, `scheduler`, `congestion-point`, `edge`, `transport`, `program`, `loss`, `reordering`, `routing`, `topology`, `size-distribution`,
    /// `profile`.
    pub kind: &'static str,
    /// As experiments write it.
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Where it is defined; keys of `docs/references.toml`. Empty where it is defined here.
    pub source: &'static str,
    /// What an experiment may set; of profiles see the schema.
    pub parameters: Vec<Parameter>,
}

/// All of them, kind by kind, in the order of their registries.
pub fn components() -> Vec<Listed> {
    let plain = |kind| move |(name, about, source)| Listed { kind, name, about, source, parameters: vec![] };
    let controllers = cc::SPECS.iter().map(|spec| Listed {
        kind: "controller",
        name: spec.name,
        about: spec.about,
        source: spec.source,
        parameters: spec.parameters.to_vec(),
    });
    let parts = |kind, specs: &'static [Spec]| {
        specs.iter().map(move |spec| {
            let Spec { name, about, source, parameters } = *spec;
            Listed { kind, name, about, source, parameters: parameters.to_vec() }
        })
    };
    let topologies = parts("topology", TOPOLOGIES)
        .zip(TOPOLOGIES)
        .map(|(listed, topology)| Listed { parameters: usual::keys(topology), ..listed });
    let profiles = Profile::NAMED.iter().map(|(name, _)| {
        let (about, source) = Profile::about(name);
        Listed { kind: "profile", name, about, source, parameters: vec![] }
    });
    let sizes = BUILT_IN.iter().map(|(name, about, source, _)| (*name, *about, *source));
    controllers
        .chain(parts("aqm", aqm::SPECS))
        .chain(parts("scheduler", scheduler::SPECS))
        .chain(parts("congestion-point", congestion_point::SPECS))
        .chain(parts("edge", edge::SPECS))
        .chain(parts("transport", transport::SPECS))
        .chain(parts("program", generate::SPECS))
        .chain(parts("loss", LOSSES))
        .chain(parts("reordering", REORDERINGS))
        .chain(parts("routing", &[routing::ECMP]))
        .chain(parts("routing", routing::SPECS))
        .chain(topologies)
        .chain(sizes.map(plain("size-distribution")))
        .chain(profiles)
        .collect()
}

impl Listed {
    /// As JSON: kind, name, about, source, parameters; of a controller its title and use of ECN too, of a topology what its
    /// first and last host and a switch of each kind are called by default.
    pub fn json(&self) -> Json {
        let parameters: Vec<Json> = self.parameters.iter().map(parameter).collect();
        let mut json = json!({
            "kind": self.kind, "name": self.name, "about": self.about, "source": self.source, "parameters": parameters,
        });
        if let Some(spec) = cc::SPECS.iter().find(|spec| self.kind == "controller" && spec.name == self.name) {
            json["title"] = spec.title.into();
            json["ecn"] = ecn(spec.ecn).into();
        }
        if self.kind == "topology" {
            let (hosts, switches) = usual::names(self.name);
            json["hosts"] = hosts.into();
            json["switches"] = switches.into();
        }
        json
    }
}

/// A controller's use of ECN, as lists of controllers have it.
pub fn ecn(of: EcnUse) -> &'static str {
    match of {
        EcnUse::Optional => "optional",
        EcnUse::Exact => "exact",
        EcnUse::L4s => "l4s",
    }
}

fn parameter(parameter: &Parameter) -> Json {
    let kind = match parameter.kind {
        Kind::Real { bits } => json!({ "real": { "bits": bits } }),
        Kind::Choice(names) => json!({ "choice": names }),
        Kind::Counts(shortest, longest) => json!({ "counts": [shortest, longest] }),
        other => json!(format!("{other:?}").to_lowercase()),
    };
    json!({
        "name": parameter.name,
        "kind": kind,
        "default": describe_value(parameter, parameter.default),
        "range": parameter.range.map(|(least, most)| [shown(parameter.kind, least), shown(parameter.kind, most)]),
        "about": parameter.about,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_has_a_name_of_its_kind_and_a_sentence() {
        let all = components();
        for (index, component) in all.iter().enumerate() {
            let same = |other: &Listed| (other.kind, other.name) == (component.kind, component.name);
            assert!(!all[..index].iter().any(same), "{}", component.name);
            assert!(component.about.ends_with('.') || component.kind == "controller", "{}", component.name);
            assert!(component.kind != "profile" || !component.source.is_empty(), "{}", component.name);
            assert!(component.parameters.iter().all(|parameter| !parameter.about.is_empty()), "{}", component.name);
            // A tenth in units of 2⁻³² that is cut and not rounded is told as 0.0999999999.
            for parameter in component.parameters.iter().filter(|it| matches!(it.kind, Kind::Real { .. })) {
                let told = describe_value(parameter, parameter.default);
                assert!(told.len() <= 9, "{} of {}: {told}", parameter.name, component.name);
            }
        }
    }
}
