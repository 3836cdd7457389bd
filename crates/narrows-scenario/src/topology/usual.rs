//! What a topology is by default, as keys that a file may set: found in the network itself.

use narrows_core::component::{Kind, Parameter, Spec, Value};
use narrows_core::queue::Limit;
use narrows_core::units::Span;
use narrows_plan::{Graph, Link, NodeKind, Role};

use super::{FULL_PACKET, MAX_RATE, Named, Topology};

/// Keys of each class of links, as paths: rate, delay, limit, and the size and alpha of a pool.
const FABRIC: [&str; 5] = ["fabric.rate", "fabric.delay", "fabric.limit", "fabric.pool.size", "fabric.pool.alpha"];
const EDGE: [&str; 5] = ["edge.rate", "edge.delay", "edge.limit", "edge.pool.size", "edge.pool.alpha"];
const WAN: [&str; 5] = ["wan.rate", "wan.delay", "wan.limit", "wan.pool.size", "wan.pool.alpha"];

/// The network of this name, of which nothing is said; one that is written node by node is empty.
fn network(name: &str) -> Graph {
    let topology = Topology::usual(name).expect("a registered topology");
    topology.network().resolve(&mut Named::new()).unwrap_or_else(|_| panic!("the default {name} is right"))
}

/// All keys of a topology: its own, then what its links and hosts are by default. `edge` has what differs
/// from `fabric`.
pub(crate) fn keys(topology: &Spec) -> Vec<Parameter> {
    let graph = network(topology.name);
    let first = |role: Role| graph.links.iter().find(|link| link.role == role);
    // Where no links join switches, `fabric` is of hosts' links.
    let fabric = first(Role::Fabric).or(first(Role::Edge)).map(|link| class(FABRIC, &graph, link)).unwrap_or_default();
    let edge = first(Role::Edge).map(|link| class(EDGE, &graph, link)).unwrap_or_default();
    let differs = |key: &Parameter| {
        let path = key.name.replacen("edge", "fabric", 1);
        !fabric.iter().any(|other| other.name == path && other.default == key.default)
    };
    let edge: Vec<Parameter> = edge.into_iter().filter(differs).collect();
    let wan = first(Role::Wan).map(|link| class(WAN, &graph, link)).unwrap_or_default();
    let stack = |name, role, about| {
        let range = Some((0, Span::from_secs(1).as_ps()));
        let key = |link: &Link| Parameter { name, kind: Kind::Span, default: Value::Span(link.stack), range, about };
        first(role).map(key)
    };
    let out = stack("host.stack-delay.tx", Role::Host, "time in a host's stack, on the way out");
    let back = stack("host.stack-delay.rx", Role::Edge, "the same, on the way in");
    let mut keys = topology.parameters.to_vec();
    for key in [fabric, edge, wan].concat().into_iter().chain(out).chain(back) {
        if !keys.iter().any(|own| own.name == key.name) {
            keys.push(key);
        }
    }
    keys
}

fn class(names: [&'static str; 5], graph: &Graph, link: &Link) -> Vec<Parameter> {
    let [rate, delay, limit, size, alpha] = names;
    let key = |name, kind, default, range, about| Parameter { name, kind, default, range: Some(range), about };
    let own = Value::Span(link.delay.saturating_sub(link.stack));
    let mut keys = vec![
        key(rate, Kind::Rate, Value::Rate(link.rate), (1, MAX_RATE.as_bps()), "rate of each direction"),
        key(delay, Kind::Span, own, (0, Span::from_secs(60).as_ps()), "propagation delay of each direction"),
    ];
    match link.limit {
        Limit::Packets(packets) => {
            keys.push(key(limit, Kind::Size, Value::Packets(packets), (1, 1 << 32), "what a port may hold"));
        }
        Limit::Bytes(bytes) => {
            keys.push(key(limit, Kind::Bytes, Value::Bytes(bytes), (FULL_PACKET, 1 << 42), "what a port may hold"));
        }
        Limit::Unlimited => {}
    }
    if let Some(pool) = graph.nodes[link.from as usize].pool.filter(|_| link.pooled) {
        let about = "memory that the ports of a switch share";
        keys.push(key(size, Kind::Bytes, Value::Bytes(pool.size), (FULL_PACKET, 1 << 42), about));
        let about = "dynamic threshold: a port may hold alpha times the free pool";
        let (kind, value) = (Kind::Real { bits: 16 }, Value::Real(pool.alpha.into()));
        keys.push(key(alpha, kind, value, (1, 65_535 << 16), about));
    }
    keys
}

/// What nodes are called by default: the first and the last host, and the first switch of each kind.
pub(crate) fn names(topology: &str) -> (Vec<String>, Vec<String>) {
    let graph = network(topology);
    let of = |kind| graph.nodes.iter().filter(move |node| node.kind == kind).map(|node| node.name.clone());
    let hosts = of(NodeKind::Host).next().into_iter().chain(of(NodeKind::Host).next_back()).collect();
    let kind = |name: &str| name.split(|c: char| c.is_ascii_digit()).next().map(str::to_owned);
    let mut switches: Vec<String> = vec![];
    for name in of(NodeKind::Switch) {
        if !switches.iter().any(|known| kind(known) == kind(&name)) {
            switches.push(name);
        }
    }
    (hosts, switches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::TOPOLOGIES;

    /// What a key is called in its file: the first part of its path.
    fn first_part(key: &Parameter) -> &str {
        key.name.split('.').next().unwrap()
    }

    #[test]
    fn the_keys_of_a_topology_are_those_that_its_file_may_have() {
        let schema = crate::json_schema();
        for topology in TOPOLOGIES {
            let shapes = schema["$defs"]["Topology"]["oneOf"].as_array().unwrap();
            let shape = shapes.iter().find_map(|shape| shape["properties"].get(topology.name)).expect(topology.name);
            let name = shape["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
            let known = schema["$defs"][name]["properties"].as_object().unwrap();
            let keys = keys(topology);
            for key in &keys {
                assert!(known.contains_key(first_part(key)), "{} has no `{}`", topology.name, key.name);
            }
            for key in known.keys().filter(|key| topology.name != "graph" && *key != "edge") {
                assert!(keys.iter().any(|own| first_part(own) == key), "{}: `{key}` is not listed", topology.name);
            }
        }
    }

    #[test]
    fn what_is_usual_is_what_a_file_that_says_it_gets() {
        for topology in TOPOLOGIES.iter().filter(|topology| topology.name != "graph") {
            let mut lines = format!("[topology.{}]\n", topology.name);
            for key in keys(topology).iter().filter(|key| key.default != Value::Auto) {
                let value = crate::describe_value(key, key.default);
                let bare = matches!(key.kind, Kind::Count | Kind::Real { .. });
                lines +=
                    &if bare { format!("{} = {value}\n", key.name) } else { format!("{} = \"{value}\"\n", key.name) };
            }
            let rest = "[[traffic]]\nlong = {}\nbetween = \"permutation\"\n[[arm]]\nname = \"A\"\ncc = \"newreno\"\n[run]\nend = \"1s\"\n";
            let mut said = crate::tests::plans(&format!("{lines}{rest}")).remove(0).network;
            said.links.iter_mut().for_each(|link| link.watched = false);
            assert_eq!(said, network(topology.name), "{lines}");
        }
    }
}
