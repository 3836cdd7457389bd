//! Any network, node by node: switches, hosts that hang on them, links between switches.

use std::collections::{BTreeMap, BTreeSet};

use narrows_core::component::Parameter;
use narrows_core::units::{Rate, Span};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Builder, LinkSpec, MAX_HOSTS, MAX_LINKS, Named, Network, Stack, count, edge_class, number, pool_of, without_pool,
};
use crate::error::{Judged, Problem};
use crate::experiment::host::Host;
use crate::experiment::located::Located;
use crate::experiment::network::{LinkClass, Pool};
use crate::route::{NoPath, Routes};
use narrows_plan::{Graph, Role};

/// Longest name of a node.
const MAX_NAME: usize = 64;

/// Of a network written node by node nothing is usual.
pub(super) const KEYS: &[Parameter] = &[];
const COUNT: Parameter = number("count", 1, (1, MAX_HOSTS), "hosts that are alike");

/// Parameters of any network. Every link inherits from the class of its role.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Written {
    /// Switches.
    #[serde(default)]
    pub switches: Vec<Located<Switch>>,
    /// Hosts, each on one switch.
    #[serde(default)]
    pub hosts: Vec<Located<HostGroup>>,
    /// Links between switches.
    #[serde(default)]
    pub links: Vec<Located<SwitchLink>>,
    /// What links between switches of one site inherit.
    #[serde(default)]
    pub fabric: LinkClass,
    /// What hosts' links inherit, where it differs from `fabric`.
    #[serde(default)]
    pub edge: LinkClass,
    /// What links between sites inherit.
    #[serde(default)]
    pub wan: LinkClass,
    /// The hosts' stack.
    #[serde(default)]
    pub host: Host,
}

/// A switch of a graph.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Switch {
    /// Unique among all nodes.
    pub name: Located<String>,
    /// The datacenter it stands in; default: 0.
    #[serde(default)]
    pub site: u16,
    /// The rack it stands in, unique over all sites; 0 for none.
    #[serde(default)]
    pub rack: u16,
    /// Memory that its ports share, where it differs from its links' class.
    pub pool: Option<Located<Pool>>,
}

/// Hosts of a graph that are alike.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostGroup {
    /// The host's name; with `count`, `name-1`, `name-2` and so on.
    pub name: Located<String>,
    /// How many; without it, one.
    pub count: Option<Located<u32>>,
    /// The switch they hang on.
    pub switch: Located<String>,
    /// What differs from the class on their links, both directions.
    #[serde(default)]
    pub link: LinkClass,
}

/// A link between two switches of a graph, both directions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SwitchLink {
    /// A name to `set` and `watch` it by.
    pub name: Option<Located<String>>,
    /// The two switches.
    #[schemars(with = "(String, String)")]
    pub ends: Located<Vec<Located<String>>>,
    /// `"fabric"` or `"wan"`; default: `wan` if the sites differ.
    pub role: Option<Located<SwitchRole>>,
    /// What differs from the class, both directions.
    #[serde(default)]
    pub both: LinkClass,
    /// What differs from the first end to the second.
    #[serde(default)]
    pub forward: LinkClass,
    /// What differs from the second end to the first.
    #[serde(default)]
    pub backward: LinkClass,
}

/// What a link between switches is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchRole {
    /// Inside a datacenter.
    Fabric,
    /// Between datacenters.
    Wan,
}

impl Network for Written {
    fn host(&self) -> &Host {
        &self.host
    }

    fn resolve(&self, named: &mut Named) -> Judged<Graph> {
        let base = LinkSpec::limited(100, Rate::from_gbps(1), Span::from_us(5));
        let fabric = base.with(&self.fabric)?;
        let edge = edge_class(&self.edge)?;
        let wan = LinkSpec::limited(10_000, Rate::from_gbps(1), Span::from_ms(5))
            .with(without_pool(&self.wan, "on a WAN link")?)?;
        let mut builder = Builder::new(Stack::of(&self.host, 0)?);
        let mut names: BTreeMap<String, u32> = BTreeMap::new();
        let mut take = |name: &str, at: &Located<String>| -> Judged<()> {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
                let sentence = format!("`{}` cannot name a node", name.chars().take(MAX_NAME).collect::<String>());
                return Err(Problem::new(sentence, "use letters, digits, `-` and `_`, at most 64").at(&at.span));
            }
            match names.insert(name.to_owned(), 0) {
                None => Ok(()),
                Some(_) => Err(Problem::duplicate("nodes", name).at(&at.span)),
            }
        };
        let switch_names: Vec<&str> = self.switches.iter().map(|switch| switch.name.as_str()).collect();
        let places: BTreeMap<&str, usize> = switch_names.iter().copied().zip(0..).collect();
        let switch_at = |name: &Located<String>| -> Judged<usize> {
            places
                .get(name.as_str())
                .copied()
                .ok_or_else(|| Problem::unknown_name("switch", name, &switch_names).at(&name.span))
        };

        // A pool stated at a switch is that of all its fabric ports; a link's own limit then takes its port out of it.
        let fabric_at = |home: usize| -> Judged<LinkSpec> {
            let pool = self.switches[home].pool.as_ref().map(pool_of).transpose()?;
            Ok(LinkSpec { pool: pool.or(fabric.pool), ..fabric.clone() })
        };

        let mut homes = vec![];
        for group in &self.hosts {
            let home = switch_at(&group.switch)?;
            let spec = fabric_at(home)?.with(edge)?.with(without_pool(&group.link, "on a host's link")?)?;
            let many = count(&COUNT, group.count.as_ref())?;
            let switch = &self.switches[home];
            for index in 1..=many {
                let name = if group.count.is_some() {
                    format!("{}-{index}", group.name.value)
                } else {
                    group.name.value.clone()
                };
                take(&name, &group.name)?;
                if homes.len() == MAX_HOSTS as usize {
                    let value = homes.len() as u64 + 1;
                    return Err(Problem::too_many("hosts", value, MAX_HOSTS.into()).at(&group.span));
                }
                builder.host(name, switch.site, switch.rack);
                homes.push((home, spec.clone(), &group.span));
            }
        }
        if let (true, Some(last)) = (2 * (homes.len() + self.links.len()) as u64 > MAX_LINKS, self.links.last()) {
            let value = 2 * (homes.len() + self.links.len()) as u64;
            return Err(Problem::too_many("links", value, MAX_LINKS).at(&last.span));
        }
        let mut switches = vec![];
        for switch in &self.switches {
            take(&switch.name.value, &switch.name)?;
            let pool = fabric_at(switches.len())?.pool;
            switches.push(builder.switch(switch.name.value.clone(), switch.site, switch.rack, pool));
        }
        for (host, (home, spec, _)) in homes.iter().enumerate() {
            let host = u32::try_from(host).expect("hosts are bounded");
            builder.attach(host, switches[*home], spec);
        }
        let mut ends = vec![];
        for link in &self.links {
            let [one, other] = &link.ends.value[..] else {
                let sentence = format!("a link has two ends, and {} are named", link.ends.len());
                return Err(Problem::new(sentence, "write `ends = [\"s1\", \"s2\"]`").at(&link.ends.span));
            };
            ends.push((switch_at(one)?, switch_at(other)?));
        }
        // How many links join the same two switches, and how many of them are made.
        let mut parallel: BTreeMap<(usize, usize), (u32, u32)> = BTreeMap::new();
        for (one, other) in &ends {
            parallel.entry((*one.min(other), *one.max(other))).or_default().0 += 1;
        }
        let mut link_names = BTreeSet::new();
        for (link, (one, other)) in self.links.iter().zip(ends) {
            if one == other {
                let sentence = format!("a link joins `{}` to itself", switch_names[one]);
                return Err(Problem::malformed(sentence).at(&link.ends.span));
            }
            let crosses = self.switches[one].site != self.switches[other].site;
            let role = match link.role.as_ref().map(|role| role.value) {
                Some(SwitchRole::Wan) => Role::Wan,
                Some(SwitchRole::Fabric) => Role::Fabric,
                None if crosses => Role::Wan,
                None => Role::Fabric,
            };
            let (links, made) = parallel.get_mut(&(one.min(other), one.max(other))).expect("every link was counted");
            *made += 1;
            // Links that join the same switches are told apart by a name of their own, or else by their place.
            let own = link.name.as_ref().map_or_else(|| made.to_string(), |name| name.value.clone());
            let suffix = if *links > 1 { format!("#{own}") } else { String::new() };
            let duplicate = |name| Problem::duplicate("links", name);
            if let Some(name) = &link.name {
                let first = builder.graph.links.len();
                if named.insert(name.value.clone(), [first, first + 1]).is_some() {
                    return Err(duplicate(name.value.clone()).at(&name.span));
                }
            }
            for (from, to, differs) in [(one, other, &link.forward), (other, one, &link.backward)] {
                let class = if role == Role::Wan { wan.clone() } else { fabric_at(from)? };
                let both = class.with(without_pool(&link.both, "on one link: it is the switch's")?)?;
                let spec = both.with(without_pool(differs, "on one link: it is the switch's")?)?;
                builder.link(switches[from], switches[to], role, &spec);
                let made = builder.graph.links.last_mut().expect("one was made");
                made.name.push_str(&suffix);
                if *links > 1 && !link_names.insert(made.name.clone()) {
                    return Err(duplicate(made.name.clone()).at(&link.span));
                }
            }
        }
        if let Some(NoPath { from, to }) = Routes::new(&builder.graph).unconnected() {
            let [from, to] = [from, to].map(|host| host as usize);
            let names = [from, to].map(|host| &builder.graph.nodes[host].name);
            let sentence = format!("no path leads from `{}` to `{}`", names[0], names[1]);
            return Err(Problem::new(sentence, "add a link between their switches").at(homes[from].2));
        }
        Ok(builder.graph)
    }
}
