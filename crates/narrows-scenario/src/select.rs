//! Hosts and links by name, glob or role.

use std::collections::BTreeSet;

use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::selector::Selector;
use crate::topology::Named;
use narrows_plan::{Graph, NodeKind, Role};

/// Whether `text` matches a pattern in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn host_names(graph: &Graph) -> Vec<String> {
    graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).map(|node| node.name.clone()).collect()
}

/// The host of this name.
pub(crate) fn host(graph: &Graph, name: &Located<String>) -> Judged<u32> {
    let found = (0_u32..).zip(&graph.nodes).find(|(_, node)| node.kind == NodeKind::Host && node.name == name.value);
    found.map(|(index, _)| index).ok_or_else(|| Problem::no_such("host", name, host_names(graph)).at(&name.span))
}

/// Every host.
pub(crate) fn all_hosts(graph: &Graph) -> Vec<u32> {
    (0_u32..).zip(&graph.nodes).filter(|(_, node)| node.kind == NodeKind::Host).map(|(index, _)| index).collect()
}

/// The hosts that a selector names, each once, in its order.
pub(crate) fn hosts(graph: &Graph, selector: &Located<Selector>) -> Judged<Vec<u32>> {
    let (mut hosts, mut chosen) = (vec![], vec![false; graph.nodes.len()]);
    for pattern in &selector.value.0 {
        let mut any = false;
        for (index, node) in (0_u32..).zip(&graph.nodes) {
            if node.kind == NodeKind::Host && matches(&pattern.value, &node.name) {
                any = true;
                if !std::mem::replace(&mut chosen[index as usize], true) {
                    hosts.push(index);
                }
            }
        }
        if !any {
            let span = if pattern.span.is_empty() { &selector.span } else { &pattern.span };
            return Err(Problem::no_such("host", pattern, host_names(graph)).at(span));
        }
    }
    if hosts.is_empty() {
        return Err(Problem::no_pairs("the list of hosts is empty").at(&selector.span));
    }
    Ok(hosts)
}

/// The links of a role, or whose names match, that of a link's two directions included; at least one.
pub(crate) fn links(graph: &Graph, named: &Named, pattern: &Located<String>) -> Judged<Vec<usize>> {
    let found: Vec<usize> = match Role::ALL.into_iter().find(|role| role.name() == pattern.value) {
        Some(role) => (0..graph.links.len()).filter(|index| graph.links[*index].role == role).collect(),
        None => {
            let own = named.iter().filter(|(name, _)| matches(&pattern.value, name)).flat_map(|(_, links)| *links);
            let direct = (0..graph.links.len()).filter(|index| matches(&pattern.value, &graph.links[*index].name));
            direct.chain(own).collect::<BTreeSet<_>>().into_iter().collect()
        }
    };
    if found.is_empty() {
        let has = |role: &Role| graph.links.iter().any(|link| link.role == *role);
        let roles = Role::ALL.into_iter().filter(has).map(|role| role.name().to_owned());
        let known = roles.chain(named.keys().cloned());
        let known = known.chain(graph.links.iter().map(|link| link.name.clone())).collect();
        return Err(Problem::no_such("link", pattern, known).at(&pattern.span));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("a1-*", "a1-12", true),
            ("a1-*", "a2-1", false),
            ("*", "x", true),
            ("a1-1", "a1-12", false),
            ("*-1", "a1-1", true),
            ("a*-*2", "a1-12", true),
            ("a*a", "a", false),
            ("a*b*c", "abc", true),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
