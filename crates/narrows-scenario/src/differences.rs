//! What differs between plans, all of it, and whether an arm says so: the disclosure of a report.
//!
//! A plan is told as facts: a dotted path, as an experiment writes it, and a value as one writes it. Links are told by
//! role, so that one changed threshold is one difference and not two hundred. Plans that differ in what no fact tells
//! (two networks wired differently) differ in the fact `network`.

use std::collections::{BTreeMap, BTreeSet};

use narrows_core::app::Fact;
use narrows_core::cc::{SPECS, Spec};
use narrows_core::component;
use narrows_core::edge::dcib;
use narrows_core::nic::receive::ReceiveOffload;
use narrows_core::queue::{Limit, aqm, congestion_point};
use narrows_core::tcp::near_source::{ReactionPoint, Start, Step};
use narrows_core::transport::Transport;
use narrows_core::transport::datagram::SendRate;
use narrows_core::units::{Bytes, Span};
use serde_json::Value;

use crate::controller::{ECMP, describe_value, described, real_text};
use crate::events;
use narrows_core::queue::pfc::Thresholds;
use narrows_plan::{
    Connections, Graph, Link, LossOf, NodeKind, OnOff, Open, Pairs, Pattern, Plan, Role, RoutingConfig, Sampling,
    Traffic,
};

/// One fact that is not the same in all plans.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// What, as a dotted path.
    pub path: String,
    /// Its value in each plan, in the order given; `–` where a plan has no such thing.
    pub values: Vec<String>,
    /// Whether the plans that do not declare it agree on it.
    pub declared: bool,
}

/// What a limit is told with where packets count at the input.
const OF_THE_INPUT: &str = " of the input";

/// Every fact that is not the same in all of these plans, sorted by path.
pub fn differences(plans: &[&Plan]) -> Vec<Difference> {
    of(plans, SPECS)
}

pub(crate) fn of(plans: &[&Plan], controllers: &[&'static Spec]) -> Vec<Difference> {
    let facts: Vec<BTreeMap<String, String>> = plans.iter().map(|plan| facts(plan, controllers)).collect();
    let mut paths: Vec<&String> = facts.iter().flat_map(BTreeMap::keys).collect();
    paths.sort();
    paths.dedup();
    let value =
        |facts: &BTreeMap<String, String>, path: &String| facts.get(path).map_or("–", String::as_str).to_owned();
    let differing = paths.into_iter().filter_map(|path| {
        let values: Vec<String> = facts.iter().map(|facts| value(facts, path)).collect();
        if values.windows(2).all(|pair| pair[0] == pair[1]) {
            return None;
        }
        let silent = plans.iter().zip(&values).filter(|(plan, _)| !declares(plan, path)).map(|(_, value)| value);
        let silent: Vec<&String> = silent.collect();
        let declared = silent.windows(2).all(|pair| pair[0] == pair[1]);
        Some(Difference { path: path.clone(), values, declared })
    });
    told_once(plans, differing.collect())
}

/// One entry of an experiment may make traffic of many hosts, `web/h-1` to `web/h-45`: what all of it differs in alike is told
/// once, as `traffic.web/*`.
fn told_once(plans: &[&Plan], differences: Vec<Difference>) -> Vec<Difference> {
    let written = |name: &str| name.split_once('/').map(|(written, _)| written.to_owned());
    let mut made: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for traffic in plans.iter().flat_map(|plan| &plan.traffic) {
        if let Some(written) = written(&traffic.name) {
            made.entry(written).or_default().insert(&traffic.name);
        }
    }
    let key = |difference: &Difference| {
        let (name, fact) = scope(&difference.path);
        Some((name.and_then(written)?, fact.to_owned(), difference.values.clone()))
    };
    let mut alike = BTreeMap::new();
    for key in differences.iter().filter_map(key) {
        *alike.entry(key).or_insert(0) += 1;
    }
    let mut seen = BTreeSet::new();
    let mut told: Vec<Difference> = Vec::new();
    for mut difference in differences {
        if let Some(key) = key(&difference).filter(|key| alike[key] > 1 && alike[key] == made[&key.0].len()) {
            difference.path = format!("traffic.{}/*.{}", key.0, key.1);
            if !seen.insert(key) {
                continue;
            }
        }
        told.push(difference);
    }
    told.sort_by(|one, other| one.path.cmp(&other.path));
    told
}

/// Whether a plan's arm or axes set this fact, or something above or below it, or what it follows from.
fn declares(plan: &Plan, path: &str) -> bool {
    let (of, fact) = scope(path);
    // `traffic.web/1-2.cc` is of the traffic that is written as `web`.
    let of = of.map(|name| name.split('/').next().unwrap_or(name));
    plan.declared.iter().chain(&plan.axes).any(|(key, _)| {
        let (said_of, said) = scope(key);
        // What is said for all traffic may be told of one; what is said of one is told for all where all agree.
        let same = of.is_none() || said_of.is_none() || of == said_of;
        same && (within(said, fact) || within(fact, said) || follows(said_of.is_some(), said, fact))
    })
}

/// The traffic that a path is of, if it is of one, and the rest of the path.
fn scope(path: &str) -> (Option<&str>, &str) {
    let of = path.strip_prefix("traffic.").and_then(|rest| rest.split_once('.'));
    of.map_or((None, path), |(name, rest)| (Some(name), rest))
}

/// Whether a path is another, or below it.
fn within(outer: &str, inner: &str) -> bool {
    inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
}

/// Whether a fact follows from what is said under another name: that of one traffic's, or the topology's and all traffic's.
fn follows(of_traffic: bool, said: &str, fact: &str) -> bool {
    // What is told of links that are of one of these roles, and what is written for all links of a class. A limit is of
    // a port or of the memory at its input, as the buffering has it.
    let at_port = fact.strip_suffix(OF_THE_INPUT).unwrap_or(fact);
    let of_links = |roles: &[&str], rest: &str| {
        let fact = at_port;
        let rest = if rest == "buffering" && at_port.ends_with(".limit") { "limit" } else { rest };
        let told = roles.iter().filter_map(|role| fact.strip_prefix(role)?.strip_prefix('.'));
        told.into_iter().any(|told| rest.is_empty() || within(rest, told) || within(told, rest))
    };
    let any = |facts: &[&str]| facts.iter().any(|outer| within(outer, fact));
    let (first, rest) = said.split_once('.').unwrap_or((said, ""));
    let (second, third) = rest.split_once('.').unwrap_or((rest, ""));
    match (first, second) {
        // A controller brings its use of ECN and the telemetry that it reads, a profile all that hosts do.
        ("cc", _) => any(&["ecn"]) || of_links(&["edge", "fabric", "wan"], "telemetry"),
        ("host", "profile") => any(&["host"]),
        // Long-lived flows are listed, and who takes part in them.
        ("long", _) if of_traffic => any(&["flows"]),
        ("from" | "to" | "between" | "active", _) if of_traffic => any(&["flows", "between"]),
        ("request", _) if of_traffic => any(&["flows"]),
        // At a stated load.
        ("size", _) if of_traffic => any(&["arrivals"]),
        ("incast", "count" | "servers") if of_traffic => any(&["incast.servers", "incast.response"]),
        ("incast", "total") if of_traffic => any(&["incast.response"]),
        ("program", "generate") if of_traffic => match third.split_once('.') {
            Some((_, "ranks")) => any(&["program.ranks", "program.hosts"]),
            Some((_, parameter)) => fact.strip_prefix("program.").is_some_and(|told| within(told, parameter)),
            None => any(&["program"]),
        },
        _ if of_traffic => false,
        // Stack delays are in those of the hosts' links.
        ("host", "stack-delay") => {
            let out = third != "rx" && third != "jitter" && any(&["host-link.delay", "host-link.stack"]);
            let back = third != "tx" && third != "jitter" && any(&["edge.delay", "edge.stack"]);
            out || back || third != "tx" && third != "rx" && any(&["host-link.jitter"])
        }
        ("host", "port") => any(&["host-link.scheduler"]),
        ("host", "clock-spread") => any(&["host-link.clock-spread"]),
        // Hosts' links inherit from the fabric's.
        ("fabric", _) => of_links(&["fabric", "edge", "host-link"], rest),
        ("edge", _) => of_links(&["edge", "host-link"], rest),
        ("wan", _) => of_links(&["wan"], rest),
        // Of a graph, links by name are told with others of their role: `links.NAME.both.loss`, `hosts.NAME.link.rate`.
        ("links", _) => of_links(&["fabric", "wan"], third.split_once('.').map_or("", |(_, rest)| rest)),
        ("switches", _) => of_links(&["edge", "fabric", "wan"], third),
        ("hosts", _) if third == "link" => of_links(&["edge", "host-link"], ""),
        ("hosts", _) if third.starts_with("link.") => of_links(&["edge", "host-link"], &third["link.".len()..]),
        ("event", _) => of_links(&["host-link", "edge", "fabric", "wan"], "event"),
        ("servers" | "racks" | "pairs" | "hosts" | "k", _) => any(&["network"]),
        _ => false,
    }
}

/// A plan as facts.
fn facts(plan: &Plan, controllers: &[&'static Spec]) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    network(&plan.network, &mut facts);
    let schedule = &plan.schedule;
    facts.insert("run.end".to_owned(), schedule.end.to_string());
    facts.insert("run.drain".to_owned(), schedule.drain.to_string());
    facts.insert("run.warmup".to_owned(), schedule.warmup.to_string());
    let Sampling { queues, windows, goodput, throughput, flows } = &plan.sampling;
    for (name, every) in [("queues", queues), ("windows", windows), ("goodput", goodput), ("throughput", throughput)] {
        facts.insert(
            format!("sample.{name}"),
            if *every == Span::ZERO { "never".to_owned() } else { every.to_string() },
        );
    }
    if !flows.is_empty() {
        facts.insert("sample.flows".to_owned(), format!("{} {}", flows.len(), digest(flows)));
    }
    let watched: Vec<&str> =
        plan.network.links.iter().filter(|link| link.watched).map(|link| link.name.as_str()).collect();
    facts.insert("sample.watch".to_owned(), watched.join(" "));

    let of_each: Vec<BTreeMap<String, String>> =
        plan.traffic.iter().map(|traffic| stack(traffic, controllers)).collect();
    // By path: how many of the traffic entries say what the first that has it says.
    let mut agreed: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for (path, value) in of_each.iter().flatten() {
        let (first, count) = agreed.entry(path).or_insert((value, 0));
        *count += usize::from(first == value);
    }
    for (traffic, own) in plan.traffic.iter().zip(&of_each) {
        for (path, value) in own {
            // What all traffic agrees on is told once, without a name.
            if agreed[path.as_str()].1 == of_each.len() {
                facts.insert(path.clone(), value.clone());
            } else {
                facts.insert(format!("traffic.{}.{path}", traffic.name), value.clone());
            }
        }
        for (path, value) in pattern(&traffic.pattern) {
            facts.insert(format!("traffic.{}.{path}", traffic.name), value);
        }
        let connections = match traffic.connections {
            Connections::Fresh => "fresh".to_owned(),
            Connections::FreshEstablished => "fresh-established".to_owned(),
            Connections::Persistent { pool } => format!("persistent, {pool} at the start"),
            Connections::InOrder => "in-order".to_owned(),
        };
        facts.insert(format!("traffic.{}.connections", traffic.name), connections);
        if let Transport::Datagram(config) = traffic.transport {
            let rate = match config.rate {
                SendRate::Fixed(rate) => rate.to_string(),
                SendRate::Share(share) => format!("{} of the host's link", fraction(share)),
            };
            facts.insert(format!("traffic.{}.transport", traffic.name), "datagram".to_owned());
            facts.insert(format!("traffic.{}.transport.datagram.rate", traffic.name), rate);
        }
        if let Transport::Rdma(config) = traffic.transport {
            let at = |name| format!("traffic.{}.transport.rdma.{name}", traffic.name);
            facts.insert(format!("traffic.{}.transport", traffic.name), "rdma".to_owned());
            facts.insert(at("recovery"), config.recovery.name().to_owned());
            facts.insert(at("timeout"), config.timeout.to_string());
            facts.insert(at("ack-every"), config.ack_every.to_string());
            let interval = config.cnp_interval.map_or("none".to_owned(), |interval| interval.to_string());
            facts.insert(at("cnp-interval"), interval);
        }
        if traffic.service_class > 0 {
            facts.insert(format!("traffic.{}.service-class", traffic.name), traffic.service_class.to_string());
        }
    }
    facts
}

/// A routing policy and its parameters: `flowlet, gap 50us, entries 4096`.
pub(crate) fn routing(policy: &RoutingConfig) -> String {
    told(policy.spec(), &policy.values())
}

/// A component and a value for each of its parameters.
fn told(spec: &component::Spec, values: &[component::Value]) -> String {
    let values = spec.parameters.iter().zip(values);
    let told = values.map(|(parameter, value)| format!(", {} {}", parameter.name, describe_value(parameter, *value)));
    told.fold(spec.name.to_owned(), |told, value| told + &value)
}

/// The network's facts: of each role's links, `ROLE.SETTING`.
pub(crate) fn network(graph: &Graph, facts: &mut BTreeMap<String, String>) {
    let count = |kind: NodeKind| graph.nodes.iter().filter(|node| node.kind == kind).count();
    facts.insert("network.hosts".to_owned(), count(NodeKind::Host).to_string());
    facts.insert("network.switches".to_owned(), count(NodeKind::Switch).to_string());
    facts.insert("network.links".to_owned(), graph.links.len().to_string());
    facts.insert("routing".to_owned(), graph.routing.as_ref().map_or_else(|| ECMP.to_owned(), routing));
    facts.insert("host.mtu".to_owned(), format!("{} B", graph.mtu.get()));
    // What is told below is left out here: the rest is who is wired to whom, and the order of things.
    let wiring: Vec<_> = graph.links.iter().map(|link| (&link.name, link.from, link.to)).collect();
    let places: Vec<_> = graph.nodes.iter().map(|node| (&node.name, node.site, node.rack)).collect();
    facts.insert("network".to_owned(), digest(&(wiring, places)));
    for role in Role::ALL {
        let links: Vec<&Link> = graph.links.iter().filter(|link| link.role == role).collect();
        if links.is_empty() {
            continue;
        }
        tell_links(graph, if role == Role::Host { "host-link" } else { role.name() }, &links, facts);
    }
}

/// What these links are like, as facts whose paths begin with this name; where they differ, how many have which value.
pub(crate) fn tell_links(graph: &Graph, name: &str, links: &[&Link], facts: &mut BTreeMap<String, String>) {
    let mut tell = |what: &str, of: &dyn Fn(&Link) -> Option<String>| {
        let values: Vec<Option<String>> = links.iter().map(|link| of(link)).collect();
        if let Some(value) = grouped(&values) {
            facts.insert(format!("{name}.{what}"), value);
        }
    };
    tell("rate", &|link| Some(link.rate.to_string()));
    tell("delay", &|link| Some(link.delay.to_string()));
    tell("stack", &|link| (link.stack > Span::ZERO).then(|| link.stack.to_string()));
    tell("loss", &|link| (link.loss > 0).then(|| real_text(link.loss.into(), 32)));
    for (key, spec) in narrows_core::link::FUNCTIONS {
        tell_component(&mut tell, key.name(), spec, &|link| {
            Some(link.functions.iter().find(|it| it.spec().name == spec.name)?.values())
        });
    }
    tell("event", &|link| (!link.events.is_empty()).then(|| events::told(link)));
    tell("loss-of", &|link| (link.loss_of != LossOf::All).then(|| kebab(&link.loss_of)));
    tell_component(&mut tell, "bridge", &dcib::SPEC, &|link| Some(link.bridge?.values()));
    tell_component(&mut tell, "congestion-point", &congestion_point::SPEC, &|link| {
        Some(link.congestion_point?.values().to_vec())
    });
    tell("jitter", &|link| (link.jitter > Span::ZERO).then(|| link.jitter.to_string()));
    tell("clock-spread", &|link| (link.clock_spread > 0).then(|| format!("{}ppm", link.clock_spread)));
    tell("limit", &|link| {
        Some(match link.limit {
            Limit::Unlimited => "unlimited".to_owned(),
            Limit::Packets(packets) => packets.to_string(),
            Limit::Bytes(bytes) => bytes.to_string(),
        })
    });
    tell("scheduler", &|link| link.scheduler.as_ref().map(|scheduler| told(scheduler.spec(), &scheduler.values())));
    tell("telemetry", &|link| link.telemetry.then(|| "in data packets".to_owned()));
    tell("buffering", &|link| link.ingress.map(|_| "input".to_owned()));
    tell(&format!("limit{OF_THE_INPUT}"), &|link| {
        link.ingress.and_then(|memory| match memory.limit {
            Limit::Bytes(bytes) => Some(bytes.to_string()),
            Limit::Unlimited | Limit::Packets(_) => None,
        })
    });
    tell("flow-control", &|link| {
        let thresholds = link.pauses.or(link.ingress.and_then(|memory| memory.thresholds))?;
        let Thresholds { xoff, xon, may_lose } = thresholds;
        Some(format!("pfc, xoff {xoff}, xon {xon}{}", if may_lose { ", may lose" } else { "" }))
    });
    let pool = |link: &Link| graph.nodes[link.from as usize].pool.filter(|_| link.pooled);
    tell("pool.size", &|link| pool(link).map(|pool| pool.size.to_string()));
    tell("pool.alpha", &|link| pool(link).map(|pool| fraction(pool.alpha).to_string()));
    for spec in aqm::SPECS {
        let of = |link: &Link| link.aqm.filter(|aqm| aqm.spec().name == spec.name);
        tell_component(&mut tell, "aqm", spec, &|link| Some(of(link)?.values()));
    }
}

/// Each parameter of a component that links may have under this key, where `values` are those of a link that has it.
fn tell_component(
    tell: &mut impl FnMut(&str, &dyn Fn(&Link) -> Option<String>),
    key: &str,
    spec: &component::Spec,
    values: &dyn Fn(&Link) -> Option<Vec<component::Value>>,
) {
    for (index, parameter) in spec.parameters.iter().enumerate() {
        tell(&format!("{key}.{}.{}", spec.name, parameter.name), &|link| {
            let value = values(link)?[index];
            // A switch that is off by default is told where it is on.
            let off = component::Value::Switch(false);
            let is_silent = value == off && parameter.default == off;
            (!is_silent).then(|| describe_value(parameter, value))
        });
    }
}

/// A choice by the name that it is written by.
fn kebab(choice: &impl serde::Serialize) -> String {
    let Ok(Value::String(name)) = serde_json::to_value(choice) else { unreachable!("a choice is a name") };
    name
}

/// One value if all agree; otherwise each distinct one with how often it occurs, or nothing if none has one.
fn grouped(values: &[Option<String>]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value.as_deref().unwrap_or("–")).or_default() += 1;
    }
    match counts.len() {
        1 => values[0].clone(),
        _ => Some(counts.into_iter().map(|(value, count)| format!("{value} ×{count}")).collect::<Vec<_>>().join(", ")),
    }
}

/// Controller and hosts of a traffic.
fn stack(traffic: &Traffic, controllers: &[&'static Spec]) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let choice = &traffic.controller;
    facts.insert("cc".to_owned(), choice.name.clone());
    facts.insert("ecn".to_owned(), choice.ecn.to_string());
    for (parameter, value) in described(choice, controllers) {
        facts.insert(format!("cc.{}.{parameter}", choice.name), value);
    }
    for (parameter, value) in choice.program.iter().flat_map(|program| &program.parameters) {
        facts.insert(format!("cc.file.parameters.{parameter}"), value.clone());
    }
    let Ok(Value::Object(fields)) = serde_json::to_value(traffic.profile) else {
        unreachable!("a profile is an object")
    };
    /// Fields that JSON holds as picoseconds.
    const SPANS: &[&str] = &[
        "min-rto",
        "initial-rto",
        "max-rto",
        "delayed-ack",
        "small-queue",
        "sack-compression",
        "initial-rtt-variance",
    ];
    const BYTES: &[&str] = &["small-queue-bytes", "receive-buffer"];
    for (key, value) in fields {
        if key == "receive-offload" {
            continue;
        }
        let point = match key.as_str() {
            "near-source" => Some(traffic.profile.near_source.as_ref()),
            "nic-limiter" => Some(traffic.profile.nic_limiter.as_ref()),
            _ => None,
        };
        if let Some(point) = point {
            reaction_point(&key, point, &mut facts);
            continue;
        }
        let text = match (&value, value.as_u64()) {
            (_, Some(picoseconds)) if SPANS.contains(&key.as_str()) => Span::from_ps(picoseconds).to_string(),
            (_, Some(bytes)) if BYTES.contains(&key.as_str()) => Bytes::new(bytes).to_string(),
            (Value::String(text), _) => text.clone(),
            _ => value.to_string(),
        };
        facts.insert(format!("host.{key}"), text);
    }
    receive_offload(traffic.profile.receive_offload.as_ref(), &mut facts);
    facts
}

/// How packets reach the stack.
fn receive_offload(offload: Option<&ReceiveOffload>, facts: &mut BTreeMap<String, String>) {
    let mut tell = |what: &str, value: String| facts.insert(format!("host.receive-offload{what}"), value);
    let Some(offload) = offload else {
        tell("", "off".to_owned());
        return;
    };
    let ReceiveOffload { segments, flows, budget, interrupt_gap, interrupt_delay, interrupt_frames } = offload;
    tell("", "on".to_owned());
    tell(".segments", segments.to_string());
    tell(".flows", flows.to_string());
    tell(".budget", budget.to_string());
    tell(".interrupt-gap", interrupt_gap.map_or("by rate".to_owned(), |gap| gap.to_string()));
    tell(".interrupt-delay", interrupt_delay.to_string());
    tell(".interrupt-frames", interrupt_frames.to_string());
}

/// How senders respond to an adjacent switch: whether they do, and each parameter as one writes it.
fn reaction_point(key: &str, point: Option<&ReactionPoint>, facts: &mut BTreeMap<String, String>) {
    let mut tell = |what: &str, value: String| facts.insert(format!("host.{key}{what}"), value);
    let Some(point) = point else {
        tell("", "off".to_owned());
        return;
    };
    let step = |step: Step| match step {
        Step::Fixed(rate) => rate.to_string(),
        Step::LineOver(parts) => format!("line rate/{parts}"),
    };
    tell("", "on".to_owned());
    tell(".byte-cycle", point.byte_cycle.to_string());
    tell(".timer", point.timer.to_string());
    tell(".active", step(point.active));
    tell(".hyper-active", step(point.hyper_active));
    tell(".floor", step(point.floor));
    let start = match point.start {
        Start::LineRate => "line rate".to_owned(),
        Start::Recent(span) => format!("what was sent in {span}"),
    };
    tell(".start", start);
    tell(".forget", point.forget.to_string());
}

fn pattern(pattern: &Pattern) -> Vec<(String, String)> {
    let fact = |path: &str, value: String| (path.to_owned(), value);
    match pattern {
        Pattern::Open(open) => {
            let Open { mean_interarrival, sigma, on_off, sizes, pairs, exact, request } = open;
            let pairs_told = match pairs {
                Pairs::Listed(listed) => format!("{} pairs {}", listed.len(), digest(listed)),
                Pairs::Between { sources, destinations } => {
                    format!("{} to {} hosts {}", sources.len(), destinations.len(), digest(pairs))
                }
            };
            vec![
                fact(
                    "arrivals",
                    match (on_off, sigma) {
                        (Some(OnOff { on, off, gap, sigma }), _) => {
                            format!(
                                "every {gap} in ON periods of {on}, OFF for {off}, medians, log-normal, sigma {sigma}"
                            )
                        }
                        (None, None) => format!("every {mean_interarrival} on average"),
                        (None, Some(sigma)) => {
                            format!("every {mean_interarrival} on average, log-normal, sigma {sigma}")
                        }
                    },
                ),
                fact("size", format!("{} {}", sizes.name, digest(sizes))),
                fact("between", pairs_told),
                fact("exact", exact.to_string()),
                fact("request", request.map_or("none".to_owned(), |request| request.to_string())),
            ]
        }
        Pattern::List(list) => vec![fact("flows", format!("{} {}", list.len(), digest(list)))],
        Pattern::App(kind) => {
            let tell = |told: Fact| match told {
                Fact::Text(text) => text,
                Fact::Nodes(nodes) => format!("{} {}", nodes.len(), digest(&nodes)),
                Fact::Long(count, text) => format!("{count} {}", digest(&text)),
                Fact::Parameter(parameter, value) => describe_value(&parameter, value),
            };
            let facts = kind.rounds().facts().into_iter();
            facts.map(|(key, told)| fact(&format!("{}.{key}", kind.name()), tell(told))).collect()
        }
    }
}

/// A share that is kept in parts of 2¹⁶, as it was written: five decimals without zeros at the end.
fn fraction(parts: u32) -> f64 {
    (f64::from(parts) / 65_536.0 * 1e5).round() / 1e5
}

/// Eight digits that differ where things too long to tell differ.
fn digest(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).expect("parts of a plan are JSON");
    format!("#{:08x}", narrows_plan::of_json(&value) >> 96)
}

#[cfg(test)]
mod tests;
