//! What network a plan has, in words: its links by what they are for, what their ports do, and its hosts.

use std::collections::{BTreeMap, BTreeSet};

use narrows_core::queue::Limit;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::Bytes;
use narrows_plan::{Graph, Link, Node, NodeKind, Plan, Role};
use serde::Serialize;
use serde_json::Value;

use super::paths::Paths;
use crate::differences;

/// Kinds of links that are told one by one for each role.
const MAX_KINDS: usize = 6;
/// Settings by which hosts may differ from a profile that still names them.
const MAX_OVERRIDES: usize = 6;

/// A plan's network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkSummary {
    /// Its nodes: `32 hosts in 4 racks; 4 leaf, 2 spine`.
    pub nodes: String,
    /// RTT of hosts when nothing queues, by how far they are apart.
    pub base_rtts: Vec<BaseRtt>,
    /// Its paths, and what its ports hold.
    pub paths: Paths,
    /// The largest IP packet.
    pub mtu: Bytes,
    /// How switches choose among equally short paths, and its parameters; empty for ECMP.
    pub routing: String,
    /// The profile of the hosts' TCP: its name and what differs from it, for each traffic that has another than the first.
    pub profiles: Vec<String>,
    /// Its links, by role and by what is told of them.
    pub links: Vec<LinkSummary>,
    /// Positions of links whose near ends may be paused.
    pub pausable: Vec<usize>,
    /// Positions of links at whose near ends pauses are to keep packets from being dropped.
    pub guarded: Vec<usize>,
}

/// RTT of hosts when nothing queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BaseRtt {
    /// How far they are apart.
    pub hosts: &'static str,
    /// Of the nearest, over the quickest of equally short paths, nanoseconds.
    pub least_ns: u64,
    /// Of the farthest, over the slowest, nanoseconds.
    pub largest_ns: u64,
}

/// Links of one role that are alike; where a role has more than [`MAX_KINDS`] kinds all of its links, each value with how many have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkSummary {
    /// `host`, `edge`, `fabric` or `wan`.
    pub role: &'static str,
    /// How many, each direction counted.
    pub links: usize,
    /// Their rate.
    pub rate: String,
    /// Their delay, with what of it is in hosts' stacks.
    pub delay: String,
    /// How much waits there.
    pub buffer: String,
    /// Active queue management and congestion points, with their thresholds.
    pub aqm: String,
    /// How several queues are served.
    pub scheduler: String,
    /// What is written into packets for controllers that read it.
    pub telemetry: String,
    /// Who is paused, and when.
    pub flow_control: String,
    /// The edge routers at its ends.
    pub bridge: String,
}

impl NetworkSummary {
    /// Of a plan, whose hosts all have paths.
    pub fn of(plan: &Plan) -> NetworkSummary {
        let graph = &plan.network;
        let (pausable, guarded) = pauses(graph);
        let mut of_hosts: Vec<&Profile> = vec![];
        for traffic in plan.traffic.iter().filter(|traffic| traffic.transport.is_tcp()) {
            if !of_hosts.contains(&&traffic.profile) {
                of_hosts.push(&traffic.profile);
            }
        }
        let mut profiles = vec![];
        for told in of_hosts.into_iter().map(profile) {
            if !profiles.contains(&told) {
                profiles.push(told);
            }
        }
        let paths = Paths::of(graph);
        NetworkSummary {
            nodes: nodes(graph),
            base_rtts: paths.base_rtts.iter().map(BaseRtt::of).collect(),
            paths,
            mtu: Bytes::new(graph.mtu.get().into()),
            routing: graph.routing.as_ref().map(differences::routing).unwrap_or_default(),
            profiles,
            links: Role::ALL.into_iter().flat_map(|role| LinkSummary::of_role(graph, role)).collect(),
            pausable,
            guarded,
        }
    }
}

impl BaseRtt {
    fn of((hosts, rtts): &(&'static str, [u64; 2])) -> BaseRtt {
        let [least_ns, largest_ns] = rtts.map(|rtt| rtt / 1_000);
        BaseRtt { hosts, least_ns, largest_ns }
    }
}

impl LinkSummary {
    fn of_role(graph: &Graph, role: Role) -> Vec<LinkSummary> {
        let own: Vec<&Link> = graph.links.iter().filter(|link| link.role == role).collect();
        let mut kinds: Vec<Vec<&Link>> = vec![];
        for &link in &own {
            match kinds.iter().position(|kind| are_alike(graph, kind[0], link)) {
                Some(kind) => kinds[kind].push(link),
                None if kinds.len() == MAX_KINDS => return vec![LinkSummary::of(graph, role, &own)],
                None => kinds.push(vec![link]),
            }
        }
        kinds.iter().map(|kind| LinkSummary::of(graph, role, kind)).collect()
    }

    fn of(graph: &Graph, role: Role, links: &[&Link]) -> LinkSummary {
        let prefix = role.name();
        let facts = &mut BTreeMap::new();
        differences::tell_links(graph, prefix, links, facts);
        let fact = |what: &str| facts.get(&format!("{prefix}.{what}")).cloned();
        let delay = [
            fact("delay"),
            fact("stack").map(|it| format!("{it} of it in the host's stack")),
            fact("jitter").map(|it| format!("jitter {it}")),
            fact("clock-spread").map(|it| format!("up to {it} slower")),
        ];
        let memory = fact("limit of the input").map(|it| format!("{it} for each link at the switch that it leads to"));
        let pool =
            fact("pool.size").map(|size| format!("shared {size}, alpha {}", fact("pool.alpha").unwrap_or_default()));
        let limit = fact("limit").filter(|limit| limit != "unlimited" || memory.is_none() && pool.is_none());

        let pauses = fact("flow-control");
        let counted =
            pauses.is_some().then(|| if fact("buffering").is_some() { "of each input" } else { "of each output" });
        LinkSummary {
            role: role.name(),
            links: links.len(),
            rate: fact("rate").unwrap_or_default(),
            delay: joined(delay),
            buffer: joined([limit, memory, pool]),
            aqm: joined([
                of_kind(facts, &format!("{prefix}.aqm.")),
                of_kind(facts, &format!("{prefix}.congestion-point.")),
            ]),
            scheduler: fact("scheduler").unwrap_or_default(),
            telemetry: fact("telemetry").unwrap_or_default(),
            flow_control: joined([pauses, counted.map(str::to_owned)]),
            bridge: of_kind(facts, &format!("{prefix}.bridge.")).unwrap_or_default(),
        }
    }
}

/// Whether the same is told of both links.
fn are_alike(graph: &Graph, one: &Link, other: &Link) -> bool {
    let pool = |link: &Link| graph.nodes[link.from as usize].pool.filter(|_| link.pooled);
    let wire = |link: &Link| (link.rate, link.delay, link.stack, link.jitter, link.clock_spread);
    let flow_control = |link: &Link| (link.ingress, link.pauses, link.bridge);
    wire(one) == wire(other)
        && (one.limit, pool(one), one.aqm) == (other.limit, pool(other), other.aqm)
        && one.congestion_point == other.congestion_point
        && (&one.scheduler, one.telemetry) == (&other.scheduler, other.telemetry)
        && flow_control(one) == flow_control(other)
}

/// Links whose near ends may be paused, and those at which pauses are to prevent drops.
///
/// With input buffering a switch pauses the links that fill their part of its memory, else all that may fill a port. What finds
/// the memory of a link full counts as dropped at the port that it would have left by, which has no limit of its own then. A port
/// that has a limit and pauses nobody, such as that of the WAN, may drop.
fn pauses(graph: &Graph) -> (Vec<usize>, Vec<usize>) {
    let by_input = |link: &Link| link.ingress.is_some_and(|memory| memory.thresholds.is_some());
    let by_output: BTreeSet<u32> =
        graph.links.iter().filter(|link| link.pauses.is_some()).map(|link| link.from).collect();
    let pausing: BTreeSet<u32> =
        by_output.iter().copied().chain(graph.links.iter().filter(|link| by_input(link)).map(|link| link.to)).collect();
    let positions = |of: &dyn Fn(&Link) -> bool| {
        graph.links.iter().enumerate().filter(|(_, link)| of(link)).map(|(position, _)| position).collect()
    };
    (
        positions(&|link| by_input(link) || by_output.contains(&link.to)),
        positions(&|link| {
            link.pauses.is_some() || pausing.contains(&link.from) && matches!(link.limit, Limit::Unlimited)
        }),
    )
}

fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What facts say below a prefix, `PREFIX threshold.mark-at` as `threshold mark-at 65pkt`.
fn of_kind(facts: &BTreeMap<String, String>, prefix: &str) -> Option<String> {
    let mut kinds: Vec<(&str, Vec<String>)> = vec![];
    for (path, value) in facts.range(prefix.to_owned()..).take_while(|(path, _)| path.starts_with(prefix)) {
        let (kind, parameter) = path[prefix.len()..].split_once('.').unwrap_or((&path[prefix.len()..], ""));
        let text = format!("{parameter} {value}").trim().to_owned();
        match kinds.last_mut() {
            Some((last, own)) if *last == kind => own.push(text),
            _ => kinds.push((kind, vec![text])),
        }
    }
    let told: Vec<String> = kinds.into_iter().map(|(kind, own)| format!("{kind}: {}", own.join(", "))).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn nodes(graph: &Graph) -> String {
    let of = |kind: NodeKind| graph.nodes.iter().filter(move |node| node.kind == kind);
    let hosts = of(NodeKind::Host).count();
    let racks = different(of(NodeKind::Host), |node| (node.site, node.rack));
    let sites = different(of(NodeKind::Host), |node| (node.site, 0));
    // By the beginning of their names: `leaf-1` and `leaf-2` are two of `leaf`.
    let mut kinds: Vec<(&str, usize)> = vec![];
    for node in of(NodeKind::Switch) {
        let kind = node.name.split(|letter: char| letter == '-' || letter.is_ascii_digit()).next().unwrap_or_default();
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let named = !kinds.is_empty() && kinds.iter().all(|(kind, _)| !kind.is_empty()) && kinds.len() <= 6;
    let switches = if named && kinds[0].0 != "switch" {
        kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
    } else {
        of(NodeKind::Switch).count().to_string()
    };
    let place =
        [(racks, "rack"), (sites, "datacenter")].map(|(count, what)| (count > 1).then(|| format!("{count} {what}s")));
    let places: Vec<String> = place.into_iter().flatten().collect();
    let within = if places.is_empty() { String::new() } else { format!(" in {}", places.join(" of ")) };
    format!("{hosts} hosts{within}; switches: {switches}")
}

fn different<'a>(nodes: impl Iterator<Item = &'a Node>, of: impl Fn(&Node) -> (u16, u16)) -> usize {
    nodes.map(of).collect::<BTreeSet<_>>().len()
}

/// The named profile that says most of it, and in what it differs.
fn profile(own: &Profile) -> String {
    let settings = |profile: &Profile| -> BTreeMap<String, Value> {
        match serde_json::to_value(profile) {
            Ok(Value::Object(map)) => map.into_iter().filter(|(_, value)| !value.is_null()).collect(),
            _ => BTreeMap::new(),
        }
    };
    let mine = settings(own);
    let nearest = Profile::NAMED.iter().map(|(name, named)| {
        let theirs = settings(named);
        let keys = mine.keys().chain(theirs.keys().filter(|key| !mine.contains_key(*key)));
        let other: Vec<&str> = keys.filter(|key| mine.get(*key) != theirs.get(*key)).map(String::as_str).collect();
        (other.len(), *name, other.join(", "))
    });
    match nearest.min_by_key(|(count, ..)| *count) {
        Some((0, name, _)) => name.to_owned(),
        Some((count, name, other)) if count <= MAX_OVERRIDES => format!("{name}, but for {other}"),
        _ => "none that has a name".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        title = "t"
        cc = "dctcp"
        [topology.leaf-spine]
        leaves = 4
        spines = 2
        hosts-per-leaf = 8
        edge = { rate = "10Gbps" }
        fabric = { rate = "40Gbps", delay = "1us", limit = "200KB", buffering = "input", flow-control = { pfc = { xoff = "97KB", xon = "80KB" } }, aqm = { threshold = { mark-at = "65pkt" } } }
        host = { profile = "linux-6", min-rto = "5ms", stack-delay = { tx = "5us", rx = "6us" } }
        [[traffic]]
        name = "t"
        from = "l1-1"
        to = "l2-1"
        long = { flows = 1 }
        [[arm]]
        name = "a"
        [run]
        end = "1s"
    "#;

    /// A host on each of two switches.
    fn two_switches(keys: &str) -> Plan {
        let nodes = r#"switches = [{ name = "s" }, { name = "t" }]
            hosts = [{ name = "a", switch = "s" }, { name = "b", switch = "t" }]"#;
        crate::tests::one_flow(&format!("[topology.graph]\n{nodes}\n{keys}"), "a", "b")
    }

    fn summary(text: &str) -> NetworkSummary {
        NetworkSummary::of(&crate::tests::plans(text)[0])
    }

    #[test]
    fn a_network_is_told_by_its_nodes_links_and_hosts() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&summary(TEXT)).unwrap());
    }

    #[test]
    fn ports_with_several_queues_and_a_limit_are_told_with_both() {
        let text = TEXT.replace(
            r#"limit = "200KB", buffering = "input", flow-control = { pfc = { xoff = "97KB", xon = "80KB" } }"#,
            r#"limit = "300pkt", scheduler = { strict-priority = { classes = 2 } }"#,
        );
        let links = summary(&text).links;
        let fabric = links.iter().find(|links| links.role == "fabric").unwrap();
        assert_eq!(fabric.buffer, "300pkt");
        assert_eq!(fabric.scheduler, "strict-priority, classes 2");
        assert_eq!(fabric.flow_control, "");
    }

    /// A rate is told with the delay of the same links, and not by its own order.
    #[test]
    fn links_that_differ_are_told_apart_until_they_are_many() {
        let with = |rates: &[u64]| {
            let links = rates.iter().map(|rate| {
                format!(
                    "{{ ends = [\"s\", \"t\"], both = {{ rate = \"{rate}Mbps\", delay = \"{}us\" }} }}",
                    10_000 / rate
                )
            });
            let links = links.collect::<Vec<_>>().join(", ");
            let fabric = NetworkSummary::of(&two_switches(&format!("links = [{links}]")))
                .links
                .into_iter()
                .filter(|links| links.role == "fabric");
            fabric.map(|it| (it.links, it.rate, it.delay)).collect::<Vec<_>>()
        };
        let expected = [(2, "1Gbps", "10us"), (4, "100Mbps", "100us")];
        assert_eq!(
            with(&[1_000, 100, 100]),
            expected.map(|(links, rate, delay)| (links, rate.to_owned(), delay.to_owned()))
        );
        assert_eq!(with(&[1, 2, 3, 4, 5, 6]).len(), MAX_KINDS);
        let together = with(&[1, 2, 3, 4, 5, 6, 7]);
        assert_eq!((together.len(), together[0].0), (1, 14));
        assert!(together[0].1.contains("1Mbps ×2") && together[0].1.contains("7Mbps ×2"), "{together:?}");
    }

    /// Of two switches of which one link pauses, by what it holds at its outputs or its inputs: who is paused, and where packets
    /// are not to be dropped.
    #[test]
    fn those_may_be_paused_who_fill_a_memory_that_pauses() {
        let with = |fabric: &str, links: &str| {
            let plan = two_switches(&format!("{links}\nfabric = {{ {fabric} }}"));
            let network = NetworkSummary::of(&plan);
            let named = |positions: &[usize]| {
                let mut names: Vec<_> = positions.iter().map(|&at| plan.network.links[at].name.clone()).collect();
                names.sort();
                names.join(" ")
            };
            (named(&network.pausable), named(&network.guarded))
        };
        let alike = r#"links = [{ ends = ["s", "t"] }]"#;
        assert_eq!(with(r#"limit = "200KB""#, alike), (String::new(), String::new()));
        let thresholds = r#"flow-control = { pfc = { xoff = "97KB", xon = "80KB" } }"#;
        let by_output = with(&format!(r#"limit = "200KB", {thresholds}"#), alike);
        let by_input = with(&format!(r#"limit = "200KB", buffering = "input", {thresholds}"#), alike);
        let into_switches = "a->s b->t s->t t->s".to_owned();
        let out_of_switches = "s->a s->t t->b t->s".to_owned();
        assert_eq!(by_output, (into_switches, out_of_switches));
        assert_eq!(by_input, by_output);
        // A port with a limit of its own that pauses nobody may drop, though its switch pauses who fills its memory.
        let own = "{ limit = \"50KB\", buffering = \"output\", flow-control = \"none\" }";
        let from_t = format!("links = [{{ ends = [\"s\", \"t\"], backward = {own} }}]");
        let (_, guarded) = with(&format!(r#"limit = "200KB", buffering = "input", {thresholds}"#), &from_t);
        assert_eq!(guarded, "s->a s->t t->b");
    }

    #[test]
    fn hosts_of_different_datacenters_are_as_far_apart_as_the_wan_is_long() {
        let text = r#"
            title = "t"
            cc = "cubic"
            [topology.two-datacenters]
            servers = 2
            wan = { delay = "10ms" }
            [[traffic]]
            name = "t"
            from = "a1-1"
            to = "b1-1"
            long = { flows = 1 }
            [[arm]]
            name = "a"
            [run]
            end = "1s"
        "#;
        let rtts = summary(text).base_rtts;
        let across = rtts.iter().find(|rtt| rtt.hosts == "in different datacenters").unwrap();
        assert!((20_000_000..21_000_000).contains(&across.least_ns), "{across:?}");
        assert!(rtts.iter().all(|rtt| rtt.least_ns <= rtt.largest_ns));
        assert!(rtts.iter().any(|rtt| rtt.hosts == "in a rack" && rtt.largest_ns < 1_000_000));
    }

    #[test]
    fn the_base_rtt_is_that_of_the_farthest_hosts_too() {
        let text = r#"
            cc = "dctcp"
            [topology.graph]
            switches = [{ name = "s" }]
            hosts = [{ name = "near", count = 20, switch = "s" }, { name = "far", count = 2, switch = "s", link = { delay = "20ms" } }]
            [[traffic]]
            long = {}
            from = "far-1"
            to = "near-1"
            [[arm]]
            name = "it"
            [run]
            end = "1s"
        "#;
        let rtts = summary(text).base_rtts;
        let [found] = &rtts[..] else { panic!("one rack") };
        assert!(found.least_ns < 1_000_000 && (80_000_000..81_000_000).contains(&found.largest_ns), "{found:?}");
    }
}
