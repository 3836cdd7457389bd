//! A star: hosts `h1`, `h2` … on the one switch `switch` [DCTCP §4]. By default: 1 Gbps, a base RTT of
//! 100 µs, and 4 MB of shared memory of which one hot port gets about 700 KB.

use narrows_core::component::Parameter;
use narrows_core::queue::PoolConfig;
use narrows_core::units::{Bytes, Rate, Span};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Builder, LinkSpec, MAX_HOSTS, Named, Network, Stack, count, edge_class, number};
use crate::error::Judged;
use crate::experiment::host::Host;
use crate::experiment::located::Located;
use crate::experiment::network::LinkClass;
use narrows_plan::Graph;

/// α = 0.21: α/(1+α) of 4 MB is 694 KB [DCTCP §4.1: "around 700KB"].
const POOL: PoolConfig = PoolConfig { size: Bytes::new(4_000_000), alpha: 13_763 };

const HOSTS: Parameter = number("hosts", 3, (1, MAX_HOSTS), "hosts on the switch");
pub(super) const KEYS: &[Parameter] = &[HOSTS];

/// Parameters of a star.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Star {
    /// Hosts on the switch.
    pub hosts: Option<Located<u32>>,
    /// The hosts' links.
    #[serde(default)]
    pub fabric: LinkClass,
    /// The same links, where something differs from `fabric`.
    #[serde(default)]
    pub edge: LinkClass,
    /// The hosts' stack.
    #[serde(default)]
    pub host: Host,
}

impl Network for Star {
    fn host(&self) -> &Host {
        &self.host
    }

    fn resolve(&self, _: &mut Named) -> Judged<Graph> {
        let hosts = count(&HOSTS, self.hosts.as_ref())?;
        let base = LinkSpec { pool: Some(POOL), ..LinkSpec::plain(Rate::from_gbps(1), Span::from_us(5)) };
        let fabric = base.with(&self.fabric)?;
        let edge = fabric.with(edge_class(&self.edge)?)?;
        let mut builder = Builder::new(Stack::of(&self.host, 20)?);
        for host in 1..=hosts {
            builder.host(format!("h{host}"), 0, 1);
        }
        let switch = builder.switch("switch".to_owned(), 0, 1, fabric.pool);
        for host in 0..hosts {
            builder.attach(host, switch, &edge);
        }
        Ok(builder.graph)
    }
}
