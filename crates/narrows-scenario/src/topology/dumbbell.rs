//! A dumbbell: hosts `left-1` … on `switch-left`, `right-1` … on `switch-right`, one fabric link between the switches.

use narrows_core::component::Parameter;
use narrows_core::units::{Rate, Span};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Builder, LinkSpec, MAX_HOSTS, Named, Network, Stack, count, edge_class, number};
use crate::error::Judged;
use crate::experiment::host::Host;
use crate::experiment::located::Located;
use crate::experiment::network::LinkClass;
use narrows_plan::{Graph, Role};

const PAIRS: Parameter = number("pairs", 2, (1, MAX_HOSTS / 2), "hosts on each side");
pub(super) const KEYS: &[Parameter] = &[PAIRS];

/// Parameters of a dumbbell.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Dumbbell {
    /// Hosts on each side.
    pub pairs: Option<Located<u32>>,
    /// The link between the two switches.
    #[serde(default)]
    pub fabric: LinkClass,
    /// The hosts' links, where they differ from `fabric`.
    #[serde(default)]
    pub edge: LinkClass,
    /// The hosts' stack.
    #[serde(default)]
    pub host: Host,
}

impl Network for Dumbbell {
    fn host(&self) -> &Host {
        &self.host
    }

    fn resolve(&self, _: &mut Named) -> Judged<Graph> {
        let pairs = count(&PAIRS, self.pairs.as_ref())?;
        let base = LinkSpec::limited(100, Rate::from_gbps(1), Span::from_us(5));
        let fabric = base.with(&self.fabric)?;
        let edge = fabric.with(edge_class(&self.edge)?)?;
        let mut builder = Builder::new(Stack::of(&self.host, 0)?);
        for (rack, side) in [(1, "left"), (2, "right")] {
            for host in 1..=pairs {
                builder.host(format!("{side}-{host}"), 0, rack);
            }
        }
        let left = builder.switch("switch-left".to_owned(), 0, 1, fabric.pool);
        let right = builder.switch("switch-right".to_owned(), 0, 2, fabric.pool);
        for host in 0..pairs {
            builder.attach(host, left, &edge);
            builder.attach(pairs + host, right, &edge);
        }
        builder.join(left, right, Role::Fabric, &fabric);
        Ok(builder.graph)
    }
}
