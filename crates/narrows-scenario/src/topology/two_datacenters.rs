//! Two datacenters [GEMINI §IV]: per site one border router, two racks, a link between the border routers. Traffic
//! between racks goes through the border router; there is no direct link between rack switches.
//!
//! Names: hosts `a1-1` … `a2-12`, `b1-1` …; switches `tor-a1`, `border-a`. Sites are 1 and 2, racks 1 to 4. A border
//! router's ports towards its racks are fabric ports of the same kind as the racks', with a pool of their own; its
//! WAN port has a buffer apart.

use narrows_core::component::Parameter;
use narrows_core::queue::PoolConfig;
use narrows_core::units::{Bytes, Rate, Span};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Builder, LinkSpec, MAX_HOSTS, Named, Network, Stack, count, edge_class, number, without_pool};
use crate::error::{Judged, Problem};
use crate::experiment::host::Host;
use crate::experiment::located::Located;
use crate::experiment::network::LinkClass;
use narrows_plan::{Graph, Role};

/// One hot port tops out at a sixth of 4 MB, the paper's "~450 packets" [GEMINI §IV].
const POOL: PoolConfig = PoolConfig { size: Bytes::new(4_000_000), alpha: 13_107 };

const SERVERS: Parameter = number("servers", 12, (1, MAX_HOSTS / 2), "servers in each rack");
const RACKS: Parameter = number("racks", 2, (1, 1_024), "racks in each datacenter");
pub(super) const KEYS: &[Parameter] = &[SERVERS, RACKS];

/// Parameters of two datacenters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TwoDatacenters {
    /// Servers in each rack.
    pub servers: Option<Located<u32>>,
    /// Racks in each datacenter.
    pub racks: Option<Located<u32>>,
    /// Links inside a datacenter.
    #[serde(default)]
    pub fabric: LinkClass,
    /// Links between a switch and a host, where they differ from `fabric`.
    #[serde(default)]
    pub edge: LinkClass,
    /// The link between the border routers.
    #[serde(default)]
    pub wan: LinkClass,
    /// The hosts' stack.
    #[serde(default)]
    pub host: Host,
}

impl Network for TwoDatacenters {
    fn host(&self) -> &Host {
        &self.host
    }

    fn resolve(&self, _: &mut Named) -> Judged<Graph> {
        let servers = count(&SERVERS, self.servers.as_ref())?;
        let racks = u16::try_from(count(&RACKS, self.racks.as_ref())?).expect("at most 1024");
        let hosts = 2 * u64::from(servers) * u64::from(racks);
        if let (true, Some(at)) = (hosts > MAX_HOSTS.into(), self.servers.as_ref().or(self.racks.as_ref())) {
            return Err(Problem::too_many("hosts", hosts, MAX_HOSTS.into()).at(&at.span));
        }
        let gigabit = Rate::from_gbps(1);
        let fabric = LinkSpec { pool: Some(POOL), ..LinkSpec::plain(gigabit, Span::from_us(5)) }.with(&self.fabric)?;
        let edge = fabric.with(edge_class(&self.edge)?)?;
        let wan =
            LinkSpec::limited(10_000, gigabit, Span::from_us(4_890)).with(without_pool(&self.wan, "on a WAN link")?)?;

        let mut builder = Builder::new(Stack::of(&self.host, 45)?);
        let sites = [(1, 'a'), (2, 'b')];
        let rack_of = |site: u16, rack: u16| (site - 1) * racks + rack;
        for (site, letter) in sites {
            for rack in 1..=racks {
                for server in 1..=servers {
                    builder.host(format!("{letter}{rack}-{server}"), site, rack_of(site, rack));
                }
            }
        }
        let mut borders = vec![];
        let mut host = 0;
        for (site, letter) in sites {
            let tors: Vec<u32> = (1..=racks)
                .map(|rack| builder.switch(format!("tor-{letter}{rack}"), site, rack_of(site, rack), fabric.pool))
                .collect();
            let border = builder.switch(format!("border-{letter}"), site, 0, fabric.pool);
            for tor in tors {
                for _ in 0..servers {
                    builder.attach(host, tor, &edge);
                    host += 1;
                }
                builder.join(tor, border, Role::Fabric, &fabric);
            }
            borders.push(border);
        }
        builder.join(borders[0], borders[1], Role::Wan, &wan);
        Ok(builder.graph)
    }
}

#[cfg(test)]
mod tests {
    use narrows_core::queue::Limit;
    use narrows_core::units::Packets;

    use super::*;

    fn path_delay(graph: &Graph, names: &[&str]) -> Span {
        names
            .windows(2)
            .map(|pair| {
                let name = format!("{}->{}", pair[0], pair[1]);
                graph.links.iter().find(|link| link.name == name).expect(&name).delay
            })
            .sum()
    }

    #[test]
    fn base_round_trips_are_the_papers() {
        let graph = TwoDatacenters::default().resolve(&mut Named::new()).unwrap();
        assert_eq!(path_delay(&graph, &["a1-1", "tor-a1", "a1-2"]) * 2, Span::from_us(200));
        assert_eq!(path_delay(&graph, &["a1-1", "tor-a1", "border-a", "tor-a2", "a2-1"]) * 2, Span::from_us(220));
        let across = ["a1-1", "tor-a1", "border-a", "border-b", "tor-b2", "b2-12"];
        assert_eq!(path_delay(&graph, &across) * 2, Span::from_ms(10));
    }

    #[test]
    fn the_default_has_forty_eight_hosts_and_six_switches() {
        let graph = TwoDatacenters::default().resolve(&mut Named::new()).unwrap();
        assert_eq!(graph.nodes.len(), 54);
        assert_eq!(graph.links.len(), 2 * (48 + 4 + 1));
        let wan = graph.links.iter().find(|link| link.name == "border-a->border-b").unwrap();
        assert_eq!((wan.limit, wan.pooled, wan.aqm), (Limit::Packets(Packets::new(10_000)), false, None));
        let down = graph.links.iter().find(|link| link.name == "border-a->tor-a1").unwrap();
        assert_eq!((down.limit, down.pooled, down.role), (Limit::Unlimited, true, Role::Fabric));
    }
}
