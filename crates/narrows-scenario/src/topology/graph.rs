//! Any network, node by node: switches, hosts that hang on them, links between switches.

use std::collections::{BTreeMap, BTreeSet};

use narrows_core::queue::Limit;
use narrows_core::units::{Packets, Rate, Span};

use super::{Builder, LinkSpec, MOST_HOSTS, MOST_LINKS, Named, Stack, count, pool_of, without_pool};
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::network::{Graph as Written, SwitchRole};
use narrows_plan::{Graph, Role};

/// Longest name of a node.
const LONGEST_NAME: usize = 64;

pub(super) fn resolve(written: &Written, named: &mut Named) -> Judged<Graph> {
    let base =
        LinkSpec { limit: Limit::Packets(Packets::new(100)), ..LinkSpec::plain(Rate::from_gbps(1), Span::from_us(5)) };
    let fabric = base.with(&written.fabric)?;
    let edge_class = without_pool(&written.edge, "in `edge`: it is the switch's, and stands in `fabric`")?;
    let wan = LinkSpec {
        limit: Limit::Packets(Packets::new(10_000)),
        ..LinkSpec::plain(Rate::from_gbps(1), Span::from_ms(5))
    }
    .with(without_pool(&written.wan, "on a wide-area link")?)?;
    let mut builder = Builder::new(Stack::of(&written.host, 0)?);
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    let mut take = |name: &str, at: &Located<String>| -> Judged<()> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
            let sentence = format!("`{}` cannot name a node", name.chars().take(LONGEST_NAME).collect::<String>());
            let help = Some("use letters, digits, `-` and `_`, at most 64".to_owned());
            return Err(Problem::Malformed { sentence, help }.at(&at.span));
        }
        match names.insert(name.to_owned(), 0) {
            None => Ok(()),
            Some(_) => Err(Problem::Duplicate { what: "nodes", name: name.to_owned() }.at(&at.span)),
        }
    };
    let switch_names: Vec<&str> = written.switches.iter().map(|switch| switch.name.as_str()).collect();
    let places: BTreeMap<&str, usize> = switch_names.iter().copied().zip(0..).collect();
    let switch_at = |name: &Located<String>| -> Judged<usize> {
        places.get(name.as_str()).copied().ok_or_else(|| {
            let known = switch_names.iter().copied().map(str::to_owned).collect();
            Problem::UnknownName { what: "switch", name: name.value.clone(), known }.at(&name.span)
        })
    };

    // A pool stated at a switch is that of all its fabric ports; a link's own limit then takes its port out of it.
    let fabric_at = |home: usize| -> Judged<LinkSpec> {
        let pool = written.switches[home].pool.as_ref().map(pool_of).transpose()?;
        Ok(LinkSpec { pool: pool.or(fabric.pool), ..fabric.clone() })
    };

    let mut homes = vec![];
    for group in &written.hosts {
        let home = switch_at(&group.switch)?;
        let spec = fabric_at(home)?.with(edge_class)?.with(without_pool(&group.link, "on a host's link")?)?;
        let many = count("count", group.count.as_ref(), 1, MOST_HOSTS)?;
        let switch = &written.switches[home];
        for index in 1..=many {
            let name =
                if group.count.is_some() { format!("{}-{index}", group.name.value) } else { group.name.value.clone() };
            take(&name, &group.name)?;
            if homes.len() == MOST_HOSTS as usize {
                let value = homes.len() as u64 + 1;
                return Err(Problem::TooMany { what: "hosts", value, most: MOST_HOSTS.into() }.at(&group.span));
            }
            builder.host(name, switch.site, switch.rack);
            homes.push((home, spec.clone()));
        }
    }
    if let (true, Some(last)) = (2 * (homes.len() + written.links.len()) as u64 > MOST_LINKS, written.links.last()) {
        let value = 2 * (homes.len() + written.links.len()) as u64;
        return Err(Problem::TooMany { what: "links", value, most: MOST_LINKS }.at(&last.span));
    }
    let mut switches = vec![];
    for switch in &written.switches {
        take(&switch.name.value, &switch.name)?;
        let pool = fabric_at(switches.len())?.pool;
        switches.push(builder.switch(switch.name.value.clone(), switch.site, switch.rack, pool));
    }
    for (host, (home, spec)) in homes.iter().enumerate() {
        let host = u32::try_from(host).expect("hosts are bounded");
        builder.attach(host, switches[*home], spec);
    }
    let mut ends = vec![];
    for link in &written.links {
        let [one, other] = &link.ends.value[..] else {
            let sentence = format!("a link has two ends, and {} are named", link.ends.len());
            let help = Some("write `ends = [\"s1\", \"s2\"]`".to_owned());
            return Err(Problem::Malformed { sentence, help }.at(&link.ends.span));
        };
        ends.push((switch_at(one)?, switch_at(other)?));
    }
    // How many links join the same two switches, and how many of them are made.
    let mut parallel: BTreeMap<(usize, usize), (u32, u32)> = BTreeMap::new();
    for (one, other) in &ends {
        parallel.entry((*one.min(other), *one.max(other))).or_default().0 += 1;
    }
    let mut link_names = BTreeSet::new();
    for (link, (one, other)) in written.links.iter().zip(ends) {
        if one == other {
            let sentence = format!("a link joins `{}` to itself", switch_names[one]);
            return Err(Problem::Malformed { sentence, help: None }.at(&link.ends.span));
        }
        let crosses = written.switches[one].site != written.switches[other].site;
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
        let duplicate = |name| Problem::Duplicate { what: "links", name };
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
    Ok(builder.graph)
}
