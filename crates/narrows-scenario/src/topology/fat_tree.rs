//! A three-level fat tree of k-port switches [Al-Fares 2008 §3]: k pods of k/2 edge and k/2 aggregation switches, k²/4
//! core switches, k³/4 hosts. Aggregation switch i of every pod reaches the core switches i·k/2 … (i+1)·k/2 − 1.
//!
//! Names: hosts `p1e2-3` (pod, edge switch, host), switches `edge-p1e2`, `aggregation-p1a1`, `core-1`. Racks count from
//! 1 over all pods.

use narrows_core::component::Parameter;
use narrows_core::units::{Rate, Span};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Builder, LinkSpec, Named, Network, Stack, count, edge_class, number};
use crate::error::{Judged, Problem};
use crate::experiment::host::Host;
use crate::experiment::located::Located;
use crate::experiment::network::LinkClass;
use narrows_plan::{Graph, Role};

/// 40³/4 = 16 000 hosts; two ports more would be more hosts than a network may have.
const MAX_PORTS: u32 = 40;

const K: Parameter = number("k", 4, (2, MAX_PORTS), "ports of each switch, even: k³/4 hosts");
pub(super) const KEYS: &[Parameter] = &[K];

/// Parameters of a fat tree.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FatTree {
    /// Ports of each switch, even: k³/4 hosts.
    pub k: Option<Located<u32>>,
    /// Links between switches.
    #[serde(default)]
    pub fabric: LinkClass,
    /// The hosts' links, where they differ from `fabric`.
    #[serde(default)]
    pub edge: LinkClass,
    /// The hosts' stack.
    #[serde(default)]
    pub host: Host,
}

impl Network for FatTree {
    fn host(&self) -> &Host {
        &self.host
    }

    fn resolve(&self, _: &mut Named) -> Judged<Graph> {
        let k = count(&K, self.k.as_ref())?;
        if let (false, Some(at)) = (k.is_multiple_of(2), &self.k) {
            return Err(Problem::new(format!("k is {k}, which is odd"), "choose an even number").at(&at.span));
        }
        let half = k / 2;
        let base = LinkSpec::limited(100, Rate::from_gbps(10), Span::from_us(1));
        let fabric = base.with(&self.fabric)?;
        let edge_spec = fabric.with(edge_class(&self.edge)?)?;
        let mut builder = Builder::new(Stack::of(&self.host, 0)?);
        let rack = |pod: u32, edge: u32| u16::try_from((pod - 1) * half + edge).expect("at most 800 racks");
        for pod in 1..=k {
            for edge in 1..=half {
                for host in 1..=half {
                    builder.host(format!("p{pod}e{edge}-{host}"), 0, rack(pod, edge));
                }
            }
        }
        let cores: Vec<u32> =
            (1..=half * half).map(|core| builder.switch(format!("core-{core}"), 0, 0, fabric.pool)).collect();
        let mut host = 0;
        for pod in 1..=k {
            let edges: Vec<u32> = (1..=half)
                .map(|edge| builder.switch(format!("edge-p{pod}e{edge}"), 0, rack(pod, edge), fabric.pool))
                .collect();
            let aggregations: Vec<u32> =
                (1..=half).map(|own| builder.switch(format!("aggregation-p{pod}a{own}"), 0, 0, fabric.pool)).collect();
            for edge in &edges {
                for _ in 0..half {
                    builder.attach(host, *edge, &edge_spec);
                    host += 1;
                }
                for aggregation in &aggregations {
                    builder.join(*edge, *aggregation, Role::Fabric, &fabric);
                }
            }
            for (index, aggregation) in aggregations.iter().enumerate() {
                for core in &cores[index * half as usize..(index + 1) * half as usize] {
                    builder.join(*aggregation, *core, Role::Fabric, &fabric);
                }
            }
        }
        Ok(builder.graph)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_plan::NodeKind;

    #[test]
    fn four_ports_make_sixteen_hosts_and_twenty_switches() {
        let graph = FatTree::default().resolve(&mut Named::new()).unwrap();
        assert_eq!(graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).count(), 16);
        assert_eq!(graph.nodes.len(), 36);
        assert_eq!(graph.links.len(), 2 * (16 + 16 + 16));
        for (index, node) in graph.nodes.iter().enumerate() {
            let ports = graph.links.iter().filter(|link| link.from as usize == index).count();
            assert_eq!(ports, if node.kind == NodeKind::Host { 1 } else { 4 }, "{}", node.name);
        }
    }
}
