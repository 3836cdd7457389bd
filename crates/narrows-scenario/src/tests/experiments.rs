//! The papers' set-ups, expanded.

use narrows_core::queue::aqm::Size;
use narrows_core::queue::aqm::threshold::Config as Threshold;
use narrows_core::queue::{AqmConfig, Limit};
use narrows_core::units::{Rate, Span, Time};

use super::*;
use crate::offered_load;
use crate::summary::Summary;
use narrows_core::transport::datagram::{self, SendRate};
use narrows_plan::flows::round_times;
use narrows_plan::{Connections, FlowStart, Kind, NodeKind, Open, Pairs, Pattern, Plan, Role, Transport};

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("../../tests/experiments/", $name, ".toml"))
    };
}

/// Largest and smallest load of the links of a role.
fn loads(plan: &Plan, role: Role) -> (f64, f64) {
    let load = offered_load(plan).unwrap();
    let of_role = plan.network.links.iter().zip(load).filter(|(link, _)| link.role == role).map(|(_, load)| load);
    of_role.fold((0.0, f64::INFINITY), |(most, least), load| (most.max(load), least.min(load)))
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-7
}

fn open(traffic: &narrows_plan::Traffic) -> &Open {
    match &traffic.pattern {
        Pattern::Open(open) => open,
        other => panic!("{other:?}"),
    }
}

fn list(plan: &Plan, traffic: usize) -> &[FlowStart] {
    match &plan.traffic[traffic].pattern {
        Pattern::List(list) => list,
        other => panic!("{other:?}"),
    }
}

fn name(plan: &Plan, node: u32) -> &str {
    &plan.network.nodes[node as usize].name
}

fn arm<'a>(plans: &'a [Plan], name: &str) -> &'a Plan {
    plans.iter().find(|plan| plan.arm == name).unwrap()
}

fn quick() -> Overrides {
    Overrides { quick: true, ..Overrides::default() }
}

#[test]
fn pattern_one_loads_the_wan_ninety_percent_each_way() {
    for text in [text!("gemini-fig04"), text!("gemini-fig13")] {
        for plan in &plans(text) {
            let names: Vec<&str> = plan.traffic.iter().map(|traffic| traffic.name.as_str()).collect();
            assert_eq!(names, ["web/1-2", "web/2-1"]);
            for traffic in &plan.traffic {
                let per_second = 1e12 / open(traffic).mean_interarrival.as_ps() as f64;
                assert!((61.85..61.95).contains(&per_second), "{per_second}");
                let Pairs::Between { sources, destinations } = &open(traffic).pairs else { panic!() };
                assert_eq!((sources.len(), destinations.len()), (8, 8));
            }
            assert!(near(loads(plan, Role::Wan).0, 0.9) && near(loads(plan, Role::Wan).1, 0.9));
            assert!(near(loads(plan, Role::Fabric).0, 0.45) && near(loads(plan, Role::Fabric).1, 0.45));
            assert!(near(loads(plan, Role::Host).0, 0.1125));
            assert!(near(loads(plan, Role::Edge).0, 0.1125));
        }
    }
}

#[test]
fn pattern_two_loads_the_racks_as_the_paper_states() {
    let plans = plans(text!("gemini-fig15"));
    let plan = &plans[0];
    let per_second = 1e12 / open(&plan.traffic[0]).mean_interarrival.as_ps() as f64;
    assert!((242.0..243.0).contains(&per_second), "{per_second}");
    assert!(near(loads(plan, Role::Wan).0, 0.9));
    assert!(near(loads(plan, Role::Fabric).0, 0.675) && near(loads(plan, Role::Fabric).1, 0.675));
}

#[test]
fn arms_carry_their_controllers_and_thresholds() {
    let plans = plans(text!("gemini-fig13"));
    let threshold =
        |name: &str, role: Role| arm(&plans, name).network.links.iter().find(|link| link.role == role).unwrap().aqm;
    let at = |packets| Some(Threshold::at(packets));
    for role in [Role::Edge, Role::Fabric] {
        assert_eq!(threshold("Cubic", role), None);
        assert_eq!(threshold("DCTCP", role), at(300));
        assert_eq!(threshold("GEMINI", role), at(50));
    }
    assert_eq!(threshold("GEMINI", Role::Wan), None);
    assert_eq!(threshold("GEMINI", Role::Host), None);
    let controller = |name: &str| &arm(&plans, name).traffic[0].controller;
    assert_eq!((controller("Cubic").ecn, controller("Cubic+ECN").ecn, controller("DCTCP").ecn), (false, true, true));
    assert_eq!(controller("Vegas-10").values, [Value::Packets(Packets::new(20)), Value::Packets(Packets::new(40))]);
    assert_eq!(arm(&plans, "BBR").traffic[1].connections, Connections::Persistent { pool: 5 });
    assert_eq!(arm(&plans, "GEMINI").declared.len(), 2);
}

#[test]
fn a_quick_run_is_shorter_and_exact() {
    let experiment = expand(text!("gemini-fig13"), &quick()).unwrap();
    assert_eq!(experiment.seeds, [1, 2, 3]);
    for plan in &experiment.plans {
        assert_eq!(plan.schedule.end, Time::ZERO + Span::from_secs(10));
        assert!(plan.traffic.iter().all(|traffic| open(traffic).exact));
    }
    assert_eq!(expand(text!("gemini-fig13"), &Overrides::default()).unwrap().seeds.len(), 10);
}

#[test]
fn arms_may_differ_in_where_flows_go() {
    let plans = plans(text!("gemini-fig05"));
    assert_eq!(plans.len(), 10);
    let (near, far) = (arm(&plans, "same datacenter"), arm(&plans, "other datacenter"));
    assert_eq!(name(near, list(near, 0)[9].source), "a1-10");
    assert_eq!(name(near, list(near, 0)[0].destination), "a2-1");
    assert_eq!(name(far, list(far, 0)[0].destination), "b1-1");
    assert_eq!(plans[1].axes, [("fabric.aqm.threshold.mark-at".to_owned(), "40pkt".to_owned())]);
    let watched: Vec<&str> =
        near.network.links.iter().filter(|link| link.watched).map(|link| link.name.as_str()).collect();
    assert_eq!(watched, ["tor-a1->border-a"]);
}

#[test]
fn axes_into_a_controller_leave_out_other_arms() {
    let plans = plans(text!("gemini-fig10"));
    assert_eq!(plans.iter().filter(|plan| plan.arm == "GEMINI").count(), 21);
    assert_eq!(plans.iter().filter(|plan| plan.arm == "Cubic").count(), 1);
    let axes: Vec<&str> = plans[1].axes.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(axes, ["0.2", "0.5ms"]);
    assert_eq!(plans[1].traffic[0].controller.values[..2], [Value::Real(205), Value::Span(Span::from_us(500))]);
    let destinations: Vec<&str> = list(&plans[0], 0).iter().map(|flow| name(&plans[0], flow.destination)).collect();
    assert_eq!(destinations.iter().filter(|name| **name == "b1-1").count(), 5);
    let bottleneck = &Summary::of(&plans[0]).bottlenecks[0];
    assert_eq!((bottleneck.link.as_str(), bottleneck.long_flows), ("border-a->border-b", 10.0));
    assert_eq!(expand(text!("gemini-fig10"), &quick()).unwrap().plans.len(), 7);
}

#[test]
fn groups_start_and_stop_one_after_the_other() {
    let plans = plans(text!("gemini-fig11"));
    let plan = &plans[0];
    let second = |s| Time::ZERO + Span::from_secs(s);
    for (group, start, stop) in [(0, 0, 150), (1, 50, 200), (2, 100, 250)] {
        assert_eq!(list(plan, group).len(), 10);
        assert!(list(plan, group).iter().all(|flow| flow.at == second(start) && flow.stop == Some(second(stop))));
    }
}

#[test]
fn a_wide_area_delay_makes_the_round_trips_of_the_paper() {
    let plans = plans(text!("gemini-fig12"));
    assert_eq!(plans.len(), 10);
    for (plan, times) in plans.iter().zip([4, 8, 16, 32, 64]) {
        let delay = |(source, destination)| -> Span {
            let routes = route::Routes::new(&plan.network);
            let path = routes.path(source, destination).unwrap();
            path.iter().map(|link| plan.network.links[*link as usize].delay).sum()
        };
        let inter = list(plan, 1)[0];
        let round_trip = delay((inter.source, inter.destination)) + delay((inter.destination, inter.source));
        assert_eq!(round_trip, Span::from_us(200) * times);
    }
    assert_eq!(plans[0].traffic[0].controller.values[2], Value::Packets(Packets::new(300)));
    let hot = &Summary::of(&plans[0]).bottlenecks[0];
    assert_eq!((hot.link.as_str(), hot.long_flows), ("tor-a1->border-a", 8.0));
}

#[test]
fn an_incast_sweeps_servers_and_timeouts() {
    let experiment = expand(text!("dctcp-incast"), &Overrides::default()).unwrap();
    assert_eq!(experiment.plans.len(), 2 * 2 * 40);
    for (index, plan) in experiment.plans.iter().enumerate() {
        let Pattern::App(Kind::Incast(incast)) = &plan.traffic[0].pattern else { panic!() };
        let servers = index % 40 + 1;
        assert_eq!(incast.servers.len(), servers);
        assert_eq!(incast.response, Bytes::new(1_000_000_u64.div_ceil(servers as u64)));
        assert_eq!(name(plan, incast.client), "h1");
        assert_eq!(
            plan.traffic[0].profile.min_rto,
            if index % 80 < 40 { Span::from_ms(300) } else { Span::from_ms(10) }
        );
        let port = plan.network.links.iter().find(|link| link.name == "switch->h1").unwrap();
        assert_eq!((port.limit, port.pooled), (Limit::Packets(Packets::new(100)), false));
    }
    let quick = expand(text!("dctcp-incast"), &quick()).unwrap();
    assert_eq!(quick.plans.len(), 2 * 2 * 5);
    let Pattern::App(Kind::Incast(incast)) = &quick.plans[0].traffic[0].pattern else { panic!() };
    assert_eq!((incast.repeats, incast.servers.len()), (50, 5));
}

const SENDERS: &str = r#"
[topology.two-datacenters]

[[traffic]]
name = "long"
long = { flows = 2 }
from = "a1-*"
to = "b1-1"

[[arm]]
name = "dctcp"
cc = "dctcp"

[[arm]]
name = "gemini"
cc = "gemini"

[sweep]
"fabric.aqm.threshold.mark-at, cc.gemini.k" = ["20pkt", "40pkt"]
"cc.gemini.beta" = [0.2, 0.4]

[run]
end = "1s"
"#;

#[test]
fn an_axis_sets_several_paths_together() {
    let told = |plan: &Plan| {
        let port = plan.network.links.iter().find(|link| link.role == Role::Fabric).unwrap();
        let Some(AqmConfig::Threshold(Threshold { mark_at, .. })) = port.aqm else { panic!("{:?}", port.aqm) };
        let k = plan.traffic[0].controller.values.iter().find(|value| matches!(value, Value::Packets(_))).copied();
        (mark_at, k)
    };
    let plans = plans(SENDERS);
    assert_eq!(plans.len(), 2 + 2 * 2);
    for (index, plan) in plans.iter().enumerate() {
        let packets = if matches!(index, 0 | 2 | 3) { 20 } else { 40 };
        let (mark_at, k) = told(plan);
        assert_eq!(mark_at, Size::Packets(Packets::new(packets)));
        assert_eq!(plan.axes[0], ("fabric.aqm.threshold.mark-at".to_owned(), format!("{packets}pkt")));
        // DCTCP is not told, and has one axis only.
        assert_eq!((k.is_some(), plan.axes.len()), if index < 2 { (false, 1) } else { (true, 2) });
    }
    // A path that the caller fixes leaves the axis, the other stays.
    let sets = vec![("cc.gemini.k".to_owned(), "50pkt".to_owned())];
    let fixed = expand(SENDERS, &Overrides { sets, ..Overrides::default() }).unwrap().plans;
    assert_eq!(fixed.len(), plans.len());
    assert_eq!(told(&fixed[4]).0, Size::Packets(Packets::new(40)));
    assert_eq!(told(&fixed[4]).1, told(&fixed[2]).1);
}

/// A cluster: queries at random times, and bursts of flows from each host.
const CLUSTER: &str = r#"
    [topology.star]
    hosts = 4
    [[traffic]]
    name = "query"
    incast = { clients = "h*", servers = "h*", response = "2KB", arrivals = { poisson = { rate = "7/s" } } }
    [[traffic]]
    name = "background"
    arrivals = { log-normal = { mean = "135ms", sigma = 2 } }
    size = { fixed = "1MB" }
    from = ["h1", "h2", "h3"]
    to = ["h1", "h4"]
    [[arm]]
    name = "dctcp"
    cc = "dctcp"
    [run]
    end = "100s"
"#;

#[test]
fn queries_and_bursts_belong_to_each_host() {
    let plan = &plans(CLUSTER)[0];
    let names: Vec<&str> = plan.traffic.iter().map(|traffic| traffic.name.as_str()).collect();
    let queries = ["query/h1", "query/h2", "query/h3", "query/h4"];
    assert_eq!(names, [&queries[..], &["background/h1", "background/h2", "background/h3"]].concat());
    let Pattern::App(Kind::Incast(incast)) = &plan.traffic[0].pattern else { panic!() };
    assert_eq!((incast.repeats, incast.servers.len()), (0, 3));
    assert_eq!(incast.mean_interarrival, Some(Span::from_ps(142_857_142_857)));
    let Pattern::App(Kind::Incast(second)) = &plan.traffic[1].pattern else { panic!() };
    let times = |incast, name| round_times(incast, 1, name, &plan.schedule).unwrap().collect::<Vec<_>>();
    let asked = times(incast, "query/h1");
    assert!((600..800).contains(&asked.len()) && asked.is_sorted(), "{}", asked.len());
    assert_ne!(asked, times(second, "query/h2"));
    for traffic in &plan.traffic[4..] {
        assert_eq!((open(traffic).mean_interarrival, open(traffic).sigma), (Span::from_ms(135), Some(2.0)));
    }
    // The receiver h4 gets all of h1's, and half of the others'; three answers to each of its own queries as well.
    let bits = (2.0 / 0.135 * 1e6 + 7.0 * 3.0 * 2e3) * 8.0;
    let (most, _) = loads(plan, Role::Edge);
    assert!(near(most, bits / 1e9 * 1_538.0 / 1_448.0), "{most}");
    assert!((Summary::of(plan).traffic[0].flows - 2_100.0).abs() < 1e-3);
}

#[test]
fn an_exchange_is_among_the_hosts_that_are_named_and_tells_its_messages() {
    let text = r#"
    [topology.star]
    hosts = 5
    [[traffic]]
    all-to-all = { hosts = ["h1", "h4", "h2"], size = "30KB" }
    [[traffic]]
    connections = "fresh"
    all-to-all = { hosts = "h*", size = "3KB", in-rounds = true, repeats = 7, start = "2ms" }
    [[arm]]
    name = "newreno"
    cc = "newreno"
    [run]
    end = "1s"
    "#;
    let plan = &plans(text)[0];
    let of = |index: usize| match &plan.traffic[index].pattern {
        Pattern::App(Kind::AllToAll(all)) => all,
        other => panic!("{other:?}"),
    };
    let (once, rounds) = (of(0), of(1));
    assert_eq!(once.hosts.iter().map(|host| name(plan, *host)).collect::<Vec<_>>(), ["h1", "h4", "h2"]);
    assert_eq!((once.in_rounds, once.repeats, once.start), (false, 1, Time::ZERO));
    assert_eq!((rounds.in_rounds, rounds.repeats, rounds.start), (true, 7, Time::ZERO + Span::from_ms(2)));
    assert_eq!((rounds.hosts.len(), rounds.size), (5, Bytes::new(3_000)));
    assert_eq!(plan.traffic[0].connections, Connections::Persistent { pool: 1 });
    assert_eq!(plan.traffic[1].connections, Connections::Fresh);
    let told: Vec<(f64, Option<f64>)> =
        Summary::of(plan).traffic.iter().map(|kind| (kind.flows, kind.mean_size_bytes)).collect();
    assert_eq!(told, [(3.0 * 2.0, Some(30_000.0)), (7.0 * 5.0 * 4.0, Some(3_000.0))]);
}

#[test]
fn plans_without_random_queries_and_bursts_do_not_mention_them() {
    let json = serde_json::to_string(&plans(text!("dctcp-incast"))[0]).unwrap();
    assert!(!json.contains("interarrival"));
    let json = serde_json::to_string(&plans(text!("gemini-fig13"))[0]).unwrap();
    assert!(!json.contains("sigma"));
    let json = serde_json::to_string(&plans(CLUSTER)[0]).unwrap();
    assert!(json.contains("sigma") && !json.contains("on-off"));
}

#[test]
fn a_permutation_uses_every_host_once() {
    let plans = plans(text!("fat-tree-permutation"));
    let flows = list(&plans[0], 0);
    assert_eq!(flows.len(), 16);
    let mut receivers: Vec<u32> = flows.iter().map(|flow| flow.destination).collect();
    receivers.sort_unstable();
    assert_eq!(receivers, (0..16).collect::<Vec<u32>>());
}

#[test]
fn a_graph_has_two_bottlenecks() {
    let plans = plans(text!("dctcp-multihop"));
    let plan = &plans[0];
    assert_eq!(plan.network.nodes.iter().filter(|node| node.kind == NodeKind::Host).count(), 61);
    let summary = Summary::of(plan);
    let names: Vec<&str> = summary.bottlenecks.iter().map(|bottleneck| bottleneck.link.as_str()).collect();
    assert_eq!(names[0], "triumph-2->r1");
    assert!(names.contains(&"triumph-1->scorpion"), "{names:?}");
}

#[test]
fn several_controllers_share_a_run() {
    let text = text!("gemini-fig12").replace("name = \"inter\"", "name = \"inter\"\ncc = \"bbr\"");
    let plan = &plans(&text)[0];
    assert_eq!((plan.traffic[0].controller.name.as_str(), plan.traffic[1].controller.name.as_str()), ("gemini", "bbr"));
    assert_eq!((plan.traffic[0].controller.ecn, plan.traffic[1].controller.ecn), (true, false));
}

#[test]
fn even_splits_spread_a_load_over_a_fat_tree() {
    let text = text!("fat-tree-permutation")
        .replace(
            "long = { size = \"2MB\" }",
            "arrivals = { poisson = { load = 0.5, of = \"host\" } }\nsize = { fixed = \"1MB\" }",
        )
        .replace("\"permutation\"", "\"all\"");
    let plan = &plans(&text)[0];
    assert!(near(loads(plan, Role::Host).0, 0.5) && near(loads(plan, Role::Edge).1, 0.5));
    // 14 of 15 other hosts are under another edge switch, 12 in another pod; 2 uplinks for 2 hosts each.
    let load = offered_load(plan).unwrap();
    let of =
        |name: &str| plan.network.links.iter().position(|link| link.name == name).map(|index| load[index]).unwrap();
    assert!(near(of("edge-p1e1->aggregation-p1a1"), 0.5 * 14.0 / 15.0));
    assert!(near(of("aggregation-p1a1->core-1"), 0.5 * 12.0 / 15.0));
    assert!(near(of("core-1->aggregation-p4a1"), 0.5 * 12.0 / 15.0));
}

#[test]
fn flows_of_the_same_rack_and_of_different_racks_are_all_flows_of_a_datacenter() {
    let text = |between: &str| {
        format!(
            r#"
            cc = "cubic"
            [topology.leaf-spine]
            leaves = 3
            hosts-per-leaf = 4
            [[traffic]]
            name = "t"
            arrivals = {{ poisson = {{ rate = "10/s" }} }}
            size = {{ fixed = "1KB" }}
            between = "{between}"
            [[arm]]
            name = "cubic"
            [run]
            end = "1s"
            "#
        )
    };
    let pairs = |between: &str| -> std::collections::BTreeSet<(u32, u32)> {
        let plan = plans(&text(between)).remove(0);
        let mut pairs = std::collections::BTreeSet::new();
        for traffic in &plan.traffic {
            let Pattern::Open(open) = &traffic.pattern else { panic!() };
            let narrows_plan::Pairs::Between { sources, destinations } = &open.pairs else { panic!() };
            for from in sources {
                pairs.extend(destinations.iter().filter(|to| *to != from).map(|to| (*from, *to)));
            }
        }
        pairs
    };
    let (same, other, all) = (pairs("same-rack"), pairs("racks"), pairs("all"));
    assert_eq!((same.len(), other.len(), all.len()), (3 * 4 * 3, 12 * 8, 12 * 11));
    assert!(same.is_disjoint(&other));
    assert_eq!(same.union(&other).copied().collect::<std::collections::BTreeSet<_>>(), all);
}

#[test]
fn several_traffics_share_a_load() {
    let of_wan = |load: &str| {
        let text = text!("gemini-fig13").replacen("load = 0.9, of = \"wan\"", &format!("{load}, of = \"wan\""), 1);
        assert_ne!(text, text!("gemini-fig13"));
        loads(&plans(&text)[0], Role::Wan).0
    };
    assert!(near(of_wan("load = 0.6, part = 0.25"), of_wan("load = 0.15")));
    assert!(near(of_wan("load = 0.6, part = 1"), of_wan("load = 0.6")));
}

#[test]
fn a_caller_overrides_arms_and_axes() {
    let set = |path: &str, value: &str| (path.to_owned(), value.to_owned());
    let overrides = Overrides {
        sets: vec![
            set("fabric.rate", "2Gbps"),
            set("fabric.aqm.threshold.mark-at", "7pkt"),
            set("run.end", "3s"),
            set("run.seeds", "4..6"),
        ],
        quick: true,
    };
    let experiment = expand(text!("gemini-fig05"), &overrides).unwrap();
    assert_eq!((experiment.plans.len(), experiment.seeds), (2, vec![4, 5, 6]));
    let link = experiment.plans[0].network.links.iter().find(|link| link.role == Role::Fabric).unwrap();
    assert_eq!(link.rate, Rate::from_gbps(2));
    assert_eq!(link.aqm, Some(Threshold::at(7)));
    assert_eq!(experiment.plans[0].schedule.end, Time::ZERO + Span::from_secs(3));
    let controller = Overrides { sets: vec![set("cc.gemini.beta", "0.5")], ..Overrides::default() };
    let experiment = expand(text!("gemini-fig13"), &controller).unwrap();
    assert_eq!(arm(&experiment.plans, "GEMINI").traffic[0].controller.values[0], Value::Real(512));
    assert_eq!(arm(&experiment.plans, "DCTCP").traffic[0].controller.values, []);
}

#[test]
fn plans_are_written_as_json_and_read_back() {
    for text in [text!("gemini-fig13"), text!("gemini-fig11"), text!("dctcp-incast"), text!("dctcp-multihop")] {
        for plan in plans(text) {
            let json = serde_json::to_string(&plan).unwrap();
            let back: Plan = serde_json::from_str(&json).unwrap();
            assert_eq!(back, plan);
            assert_eq!(back.hash(), plan.hash());
        }
    }
}

#[test]
fn hashes_name_what_is_run_and_not_what_it_is_called() {
    let plans = plans(text!("gemini-fig13"));
    let one = arm(&plans, "DCTCP");
    let mut other = one.clone();
    other.arm = "renamed".to_owned();
    other.experiment = "renamed".to_owned();
    other.axes.push(("a".to_owned(), "b".to_owned()));
    other.declared.clear();
    assert_eq!(one.hash(), other.hash());
    other.schedule.end += Span::from_ps(1);
    assert_ne!(one.hash(), other.hash());
    let mut hashes: Vec<String> = plans.iter().map(Plan::hash).collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), plans.len());
}

#[test]
fn two_figures_of_the_same_set_up_share_their_runs() {
    let (fig04, fig13) = (plans(text!("gemini-fig04")), plans(text!("gemini-fig13")));
    assert_eq!(arm(&fig04, "DCTCP").hash(), arm(&fig13, "DCTCP").hash());
}

#[test]
fn the_hash_of_a_plan_is_pinned() {
    // A change here renames all results: it is intended only together with a change of the plan's fields.
    insta::assert_snapshot!(plans(text!("fat-tree-permutation"))[0].hash());
}

#[test]
fn a_summary_tells_size_and_cost() {
    let plans = plans(text!("gemini-fig13"));
    let mut summary = Summary::of(arm(&plans, "GEMINI"));
    // Six digits are enough for people, and the same on every machine.
    let rounded = |value: &mut f64| *value = format!("{value:.4e}").parse().unwrap();
    rounded(&mut summary.packets);
    rounded(&mut summary.packet_hops);
    for traffic in &mut summary.traffic {
        traffic
            .flows_per_second
            .iter_mut()
            .chain(&mut traffic.mean_size_bytes)
            .chain([&mut traffic.flows])
            .chain(&mut traffic.counted)
            .for_each(rounded);
    }
    summary.roles.iter_mut().flat_map(|role| [&mut role.mean_load, &mut role.max_load]).for_each(rounded);
    summary.bottlenecks.iter_mut().for_each(|bottleneck| rounded(&mut bottleneck.load));
    let settling = summary.settling.as_mut().unwrap();
    [&mut settling.load, &mut settling.filled, &mut settling.spread].into_iter().for_each(rounded);
    settling.correlation_seconds.iter_mut().for_each(rounded);
    summary.cpu_time = Span::from_secs(summary.cpu_time.as_ms() / 1_000);
    insta::assert_snapshot!(serde_json::to_string_pretty(&summary).unwrap());
}

#[test]
fn every_field_of_a_profile_can_be_set() {
    let profile = serde_json::to_value(narrows_core::tcp::profile::Profile::LINUX_4_9).unwrap();
    let schema = json_schema();
    let known = schema["$defs"]["Host"]["properties"].as_object().unwrap();
    for field in profile.as_object().unwrap().keys() {
        assert!(known.contains_key(field), "{field} cannot be set by an experiment");
    }
}

#[test]
fn the_documents_example_is_an_experiment() {
    let page = include_str!("../../../../docs/reference/experiment-file.md");
    let examples: Vec<&str> = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let whole: Vec<&str> = examples.into_iter().filter(|example| example.contains("[run]")).collect();
    assert_eq!(whole.len(), 1, "one complete example");
    assert!(!plans(whole[0]).is_empty());
}

/// Three datacenters: a host of the first may send to one host of the second and two of the third.
pub(super) const THREE_SITES: &str = r#"
    [topology.graph]
    switches = [{ name = "s1", site = 1 }, { name = "s2", site = 2 }, { name = "s3", site = 3 }]
    hosts = [{ name = "x", count = 2, switch = "s1" }, { name = "y", switch = "s2" }, { name = "z", count = 2, switch = "s3" }]
    links = [{ ends = ["s1", "s2"] }, { ends = ["s1", "s3"] }, { ends = ["s2", "s3"] }]
    [[traffic]]
    name = "web"
    arrivals = { log-normal = { mean = "150ms", sigma = 2 } }
    size = { fixed = "1MB" }
    between = "datacenters"
    [[arm]]
    name = "cubic"
    cc = "cubic"
    [run]
    end = "100s"
"#;

#[test]
fn a_sender_with_several_directions_keeps_its_mean() {
    let plan = &plans(THREE_SITES)[0];
    let mean = |name: &str| open(plan.traffic.iter().find(|traffic| traffic.name == name).unwrap()).mean_interarrival;
    assert_eq!(plan.traffic.len(), 5 * 2);
    // A third of its flows to y, two thirds to the hosts z; half of y's to either side.
    assert_eq!((mean("web/1-2/x-1"), mean("web/1-3/x-1")), (Span::from_ms(450), Span::from_ms(225)));
    assert_eq!((mean("web/2-1/y"), mean("web/2-3/y")), (Span::from_ms(300), Span::from_ms(300)));
    let bits = 1e6 / 0.15 * 8.0 * 1_538.0 / 1_448.0;
    let load = offered_load(plan).unwrap();
    for (link, load) in plan.network.links.iter().zip(load).filter(|(link, _)| link.role == Role::Host) {
        assert!((load * link.rate.as_bps() as f64 / bits - 1.0).abs() < 1e-9, "{}: {load}", link.name);
    }
}

/// A star whose hosts send to each other.
const STAR: &str = r#"
[topology.star]
hosts = 4
fabric = { rate = "10Gbps" }
[[traffic]]
name = "web"
arrivals = { poisson = { load = 0.4, of = "host" } }
size = { fixed = "1MB" }
between = "all"
[[arm]]
name = "A"
cc = "cubic"
[run]
end = "1s"
"#;

#[test]
fn the_mtu_is_a_fact_of_the_plan_and_ethernets_is_left_out() {
    let of = |mtu: u32| plans(&STAR.replace("hosts = 4", &format!("hosts = 4\nhost = {{ mtu = {mtu} }}"))).remove(0);
    let (usual, jumbo) = (plans(STAR).remove(0), of(9_000));
    assert!(!serde_json::to_string(&usual).unwrap().contains("mtu"));
    assert_eq!((of(1_500).hash(), jumbo.network.mtu.get()), (usual.hash(), 9_000));
    assert_ne!(jumbo.hash(), usual.hash());
    // The same load of the wire is more flows of larger packets, and fewer packets.
    let rate = |plan: &Plan| match &plan.traffic[0].pattern {
        Pattern::Open(open) => 1e12 / open.mean_interarrival.as_ps() as f64,
        other => panic!("{other:?}"),
    };
    let expected = (8_948.0 / 9_038.0) / (1_448.0 / 1_538.0);
    assert!((rate(&jumbo) / rate(&usual) / expected - 1.0).abs() < 1e-6);
    for plan in [&usual, &jumbo] {
        let load = offered_load(plan).unwrap();
        assert!(load.iter().all(|load| (load - 0.4).abs() < 1e-6), "{load:?}");
    }
    let packets = |plan: &Plan| Summary::of(plan).packets;
    // With an acknowledgement for every fourth packet and a handshake.
    let of_flow = |payload: f64| 1e6 / payload * 1.25 + 3.0;
    let ratio = packets(&usual) / packets(&jumbo) * expected;
    assert!((ratio / (of_flow(1_448.0) / of_flow(8_948.0)) - 1.0).abs() < 1e-3, "{ratio}");
}

#[test]
fn datagrams_have_no_controller_and_no_connection() {
    let with =
        |transport: &str| plans(&STAR.replace("between", &format!("transport = {transport}\nbetween"))).remove(0);
    assert_eq!(with("\"tcp\"").hash(), plans(STAR)[0].hash());
    let plan = with("{ datagram = { rate = \"50 %\" } }");
    let traffic = &plan.traffic[0];
    let share = datagram::Config { rate: SendRate::Share(1 << 15) };
    assert_eq!(traffic.transport, Transport::Datagram(share));
    assert_eq!((traffic.controller.name.as_str(), traffic.connections), ("none", Connections::FreshEstablished));
    assert!(plan.components().contains("transport/datagram") && !plan.components().contains("cc/cubic"));
    // A load is of the wire, whatever the headers.
    let load = offered_load(&plan).unwrap();
    assert!(load.iter().all(|load| (load - 0.4).abs() < 1e-6), "{load:?}");
    let fixed = with("{ datagram = { rate = \"5Gbps\" } }").traffic[0].transport;
    assert_eq!(fixed, Transport::Datagram(datagram::Config { rate: SendRate::Fixed(Rate::from_gbps(5)) }));
}

#[test]
fn datagrams_of_a_rate_of_their_own_are_offered_while_they_are_sent() {
    let text = r#"
        [topology.dumbbell]
        pairs = 2
        fabric = { rate = "1Gbps" }
        [[traffic]]
        name = "voice"
        from = "left-1"
        to = "right-1"
        transport = { datagram = { rate = "300Mbps" } }
        long = { start = "200ms", stop = "700ms" }
        [[traffic]]
        name = "bulk"
        from = "left-2"
        to = "right-2"
        long = {}
        [[arm]]
        name = "cubic"
        cc = "cubic"
        [run]
        end = "1s"
    "#;
    let summary = Summary::of(&plans(text)[0]);
    let middle = &summary.bottlenecks[0];
    assert_eq!(middle.link, "switch-left->switch-right");
    assert!((middle.load - 0.15).abs() < 1e-9, "half of the time: {}", middle.load);
    assert!((middle.long_flows - 1.0).abs() < 1e-9, "the other takes what is left: {}", middle.long_flows);
    let hosts = summary.roles.iter().find(|role| role.role == "host").unwrap();
    assert!((hosts.max_load - 0.15).abs() < 1e-9, "{hosts:?}");
}

/// What schemes and axes set counts for the plans that have it, wherever it stands in the file.
#[test]
fn plans_are_bounded_by_what_is_read_for_all_of_them() {
    let of = |arms: &str, rest: &str, sweep: &str| {
        let text = format!(
            "{arms}\n[topology.star]\nhosts = 3\n[[traffic]]\nlong = {{}}\nfrom = \"h1\"\nto = \"h2\"\n{rest}\n{sweep}\n\
             [run]\nend = \"1s\"\n"
        );
        crate::load_str(&text, &Default::default(), &Default::default()).map(|experiment| experiment.plans.len())
    };
    let arm = |name: &str, set: &str| format!("[[arm]]\nname = \"{name}\"\ncc = \"cubic\"\n{set}");
    let sweep = |to: u32| format!("[sweep]\n\"traffic.traffic-1.long.flows\" = \"1..{to}\"");
    // Schemes on both sides of everything else, and an axis.
    assert_eq!(of("", &arm("a", ""), &sweep(300)).unwrap(), 300);
    let spread = format!("{}\n{}", sweep(300), arm("b", ""));
    assert_eq!(of(&format!("{}\n", arm("a", "")), "", &spread).unwrap(), 600);
    // 2 MB for each of 600 plans are more than 2³⁰ bytes.
    let names = vec!["\"h1\""; 500_000].join(",");
    let large = arm("a", &format!("set = {{ \"traffic.traffic-1.from\" = [{names}] }}"));
    let refused = of("", &large, &sweep(600)).unwrap_err().render();
    assert!(refused.contains("bytes of keys and values of all plans"), "{}", &refused[..300]);
}
