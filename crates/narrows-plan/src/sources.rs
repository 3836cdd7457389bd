//! Which sources a plan's results depend on. A build script digests them (`narrows-sources`): the engine, and each component.
//! A result of the same plan, seed and version is the same; an edited component changes only the versions of plans that use it.

use std::collections::{BTreeMap, BTreeSet};

use narrows_core::cc::external::is_python;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Pattern, Plan, of_json};

/// Digests of the sources of a program that makes runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sources {
    /// The package's version: `0.1.0`.
    pub package: String,
    /// Of all that every run depends on.
    pub engine: String,
    /// Of each component, by name: `cc/cubic`, `queue/aqm/red`.
    pub components: BTreeMap<String, String>,
}

impl Sources {
    /// From the package's version and what the build script wrote.
    pub fn new(package: &str, (engine, components): (&str, &[(&str, &str)])) -> Sources {
        let components = components.iter().map(|(name, digest)| ((*name).to_owned(), (*digest).to_owned())).collect();
        Sources { package: package.to_owned(), engine: engine.to_owned(), components }
    }

    /// With one more component.
    #[must_use]
    pub fn with(mut self, name: &str, digest: &str) -> Sources {
        self.components.insert(name.to_owned(), digest.to_owned());
        self
    }

    /// Package and engine, as a program names itself: `0.1.0+28a3734c`.
    pub fn program(&self) -> String {
        format!("{}+{}", self.package, self.engine)
    }

    /// The digests of what the plan uses, by name; the engine is `engine`. A component without sources here, such as a
    /// controller of the kernel's own, is left out.
    pub fn of(&self, plan: &Plan) -> BTreeMap<String, String> {
        let used = plan.components();
        let mut digests: BTreeMap<String, String> = self
            .components
            .iter()
            .filter(|(name, _)| used.contains(*name))
            .map(|(n, d)| (n.clone(), d.clone()))
            .collect();
        digests.insert("engine".to_owned(), self.engine.clone());
        digests
    }

    /// The version of a plan's results: [`program`](Self::program), a dot, and eight digits of the components.
    pub fn version(&self, plan: &Plan) -> String {
        let value = serde_json::to_value(self.of(plan)).expect("texts by name are JSON");
        format!("{}.{:08x}", self.program(), of_json(&value) >> 96)
    }
}

impl Plan {
    /// The components that the plan uses, by the name of their sources.
    pub fn components(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for controller in self.traffic.iter().map(|traffic| &traffic.controller) {
            found.insert(match &controller.program {
                // What runs the file; the file itself is a part of the plan.
                Some(program) if is_python(&program.file) => "cc/in-python".to_owned(),
                Some(_) => "cc/in-c".to_owned(),
                None => format!("cc/{}", controller.name.replace('-', "_")),
            });
        }
        found.extend(self.network.routing.iter().map(|routing| format!("routing/{}", routing.module())));
        for traffic in &self.traffic {
            if let Pattern::App(kind) = &traffic.pattern {
                found.insert(format!("app/{}", kind.module()));
            }
        }
        for link in &self.network.links {
            if let Some(Value::Object(aqm)) =
                link.aqm.map(|aqm| serde_json::to_value(aqm).expect("it is part of a plan"))
            {
                found.extend(aqm.keys().map(|name| format!("queue/aqm/{name}")));
            }
            found.extend(link.all_functions().iter().map(|function| format!("link/{}", function.module())));
            found.extend((!link.events.is_empty()).then(|| "link/schedule".to_owned()));
            found.extend(link.congestion_point.iter().map(|_| "queue/congestion_point".to_owned()));
            found.extend(link.scheduler.iter().map(|scheduler| {
                let stem = scheduler.spec().name.replace('-', "_");
                format!("queue/scheduler/{stem}")
            }));
            found.extend((link.ingress.is_some() || link.pauses.is_some()).then(|| "queue/pfc".to_owned()));
            found.extend(link.bridge.iter().map(|_| "edge/dcib".to_owned()));
        }
        let others = self.traffic.iter().filter(|traffic| !traffic.transport.is_tcp());
        found.extend(others.map(|traffic| format!("transport/{}", traffic.transport.spec().name)));
        found
    }
}
