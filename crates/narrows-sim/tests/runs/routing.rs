//! Routing policies, from an experiment's text to the results, against closed forms.

use std::collections::BTreeSet;

use narrows_core::queue::Limit;
use narrows_core::queue::aqm::threshold::Config as Threshold;
use narrows_core::units::{Packets, Span, Time};
use narrows_plan::Plan;
use narrows_results::{PortRow, Results};

use crate::partition::on_one_core;
use crate::plans::run;
use crate::tracing::alone;

/// Two leaves, and as many spines and hosts on each leaf as said: by default a leaf's uplinks have the rate of its hosts.
fn plan(spines: u32, hosts: u32, routing: &str, traffic: &str) -> Plan {
    let text = format!(
        "routing = {routing}\n[topology.leaf-spine]\nleaves = 2\nspines = {spines}\nhosts-per-leaf = {hosts}\n\
         edge = {{ rate = \"10Gbps\", limit = \"unlimited\" }}\nfabric = {{ limit = \"unlimited\" }}\n\
         host = {{ offload-segments = 1, receive-offload = \"off\", ack-every = 1 }}\n\
         [[traffic]]\n{traffic}\n\
         [[arm]]\nname = \"A\"\n[run]\nend = \"20ms\"\ndrain = \"10ms\"\n"
    );
    narrows_scenario::load_str(&text, &Default::default(), &Default::default())
        .unwrap_or_else(|error| panic!("{}", error.render()))
        .plans
        .remove(0)
}

/// One flow from one leaf to the other, which sends a datagram of 1,538 bytes on the wire at this rate all the time.
fn datagrams(rate: &str) -> String {
    format!("transport = {{ datagram = {{ rate = \"{rate}\" }} }}\nlong = {{}}\nfrom = \"l1-1\"\nto = \"l2-1\"")
}

/// The ports of the first leaf to the spines.
fn uplinks<'a>(plan: &Plan, results: &'a Results) -> Vec<&'a PortRow> {
    let is_uplink = |port: &&PortRow| plan.network.links[port.port as usize].name.starts_with("leaf-1->spine-");
    results.ports.iter().filter(is_uplink).collect()
}

/// Packets over each uplink.
fn sent(plan: &Plan, results: &Results) -> Vec<u64> {
    uplinks(plan, results).iter().map(|port| port.sent_packets).collect()
}

/// Whether so many draws fell on equally likely places as they would, within four standard deviations of each.
fn is_even(counts: &[u64]) -> bool {
    let (all, share) = (counts.iter().sum::<u64>() as f64, 1.0 / counts.len() as f64);
    let deviation = (all * share * (1.0 - share)).sqrt();
    counts.iter().all(|count| (*count as f64 - all * share).abs() < 4.0 * deviation)
}

#[test]
fn a_flow_keeps_one_path_or_sprays_its_packets_over_all() {
    let run_with = |routing: &str| {
        let plan = plan(4, 1, routing, &datagrams("500Mbps"));
        let results = run(&plan, 1);
        let counts = sent(&plan, &results);
        // 20 ms at 500 Mbit/s; none is lost on the way.
        assert_eq!(counts.iter().sum::<u64>(), 813, "{routing}: {counts:?}");
        assert_eq!(results.flows[0].received_bytes, 813 * 1_472);
        counts
    };
    for routing in ["\"ecmp\"", "{ flowlet = { gap = \"25us\" } }"] {
        let counts = run_with(routing);
        assert_eq!(counts.iter().filter(|count| **count > 0).count(), 1, "{routing}: {counts:?}");
    }
    let sprayed = run_with("\"spray\"");
    assert!(is_even(&sprayed), "{sprayed:?}");
}

/// A datagram each 123.04 µs: a gap of less makes each a flowlet of its own.
#[test]
fn a_flowlet_begins_after_a_gap() {
    for (gap, paths) in [("124us", 1), ("123us", 4)] {
        let plan = plan(4, 1, &format!("{{ flowlet = {{ gap = \"{gap}\" }} }}"), &datagrams("100Mbps"));
        let results = run(&plan, 1);
        let counts = sent(&plan, &results);
        assert_eq!(counts.iter().sum::<u64>(), 163);
        assert_eq!(counts.iter().filter(|count| **count > 0).count(), paths, "{gap}: {counts:?}");
        assert!(paths == 1 || is_even(&counts), "{gap}: {counts:?}");
    }
}

/// Eight flows of TCP, each from another host to another, over eight uplinks. By hashes some meet: all together have the rate
/// of the links that were hit. Sprayed, each has its host's line, but for what packets that overtake each other cost.
#[test]
fn sprayed_flows_do_not_collide() {
    let permutation =
        "connections = \"fresh-established\"\ncc = \"newreno\"\nlong = {}\nfrom = \"l1-*\"\nto = \"l2-*\"";
    // What a line carries in 20 ms, but for a base RTT.
    let line = 10e9 * (1448.0 / 1538.0) * 20e-3 / 8.0;
    for seed in 1..4 {
        let shares = |routing: &str| -> (Vec<f64>, usize) {
            let plan = plan(8, 8, routing, permutation);
            let results = run(&plan, seed);
            let hit = sent(&plan, &results).iter().filter(|packets| **packets > 0).count();
            (results.flows.iter().map(|flow| flow.received_bytes as f64 / line).collect(), hit)
        };
        let (hashed, hit) = shares("\"ecmp\"");
        assert!(hit < 8 && (hashed.iter().sum::<f64>() / hit as f64 - 1.0).abs() < 0.01, "{hit}: {hashed:?}");
        let (sprayed, hit) = shares("\"spray\"");
        assert!(hit == 8 && sprayed.iter().all(|share| (0.95..=1.0).contains(share)), "{sprayed:?}");
    }
}

/// Of a dropped packet the trace tells the port that dropped it, whichever path it had taken.
#[test]
fn a_trace_tells_which_port_dropped_a_sprayed_packet() {
    let one = "connections = \"fresh-established\"\ncc = \"newreno\"\nlong = {}\nfrom = \"l1-1\"\nto = \"l2-1\"";
    let (_, _, trace) = alone(plan(4, 1, "\"spray\"", one), |plan| {
        for link in plan.network.links.iter_mut().filter(|link| link.name.starts_with("leaf-1->spine-")) {
            link.limit = Limit::Packets(Packets::new(2));
        }
    });
    let plan = plan(4, 1, "\"spray\"", one);
    let dropped = trace.hops.iter().filter(|hop| hop.dropped);
    let ports: BTreeSet<&str> = dropped.map(|hop| plan.network.links[hop.port as usize].name.as_str()).collect();
    assert_eq!(
        ports.into_iter().collect::<Vec<_>>(),
        (1..=4).map(|n| format!("leaf-1->spine-{n}")).collect::<Vec<_>>()
    );
}

/// Four flows of DCTCP over four uplinks, whose queues mark. By hashes some meet, and share a line for good. Where hosts draw other
/// labels after three congested rounds, each finds a path where nobody else is, and keeps it: there its own queue is the host's, which
/// does not mark. What they have had then is nearly all that the lines carry.
#[test]
fn flows_that_rehash_find_paths_of_their_own() {
    let flows = "connections = \"fresh-established\"\ncc = \"dctcp\"\nlong = {}\nfrom = \"l1-*\"\nto = \"l2-*\"";
    let line = 10e9 * (1448.0 / 1538.0) * 20e-3 / 8.0;
    let shares = |routing: &str, seed: u64| -> Vec<f64> {
        let mut plan = plan(4, 4, routing, flows);
        for link in plan.network.links.iter_mut().filter(|link| link.name.starts_with("leaf-1->spine-")) {
            link.aqm = Some(Threshold::at(65));
        }
        plan.schedule.warmup = Span::from_ms(60);
        plan.schedule.end = Time::ZERO + Span::from_ms(80);
        let results = run(&plan, seed);
        let changes: u32 = results.flows.iter().filter_map(|flow| flow.path_changes).sum();
        assert_eq!(changes > 0, routing != "\"ecmp\"");
        results.flows.iter().map(|flow| flow.delivered_after_warmup_bytes as f64 / line).collect()
    };
    for seed in 1..6 {
        // They have what the links carry that were hit.
        let hashed: f64 = shares("\"ecmp\"", seed).iter().sum();
        let rehashed = shares("{ rehash = { rounds = 3, threshold = 0.02 } }", seed);
        assert!(hashed < 3.01 && rehashed.iter().all(|share| (0.98..=1.01).contains(share)), "{hashed} {rehashed:?}");
    }
}

/// Where nothing is marked and no timer expires, rehashing is ECMP, flow by flow.
#[test]
fn flows_that_need_not_rehash_take_the_paths_of_ecmp() {
    let flows = "connections = \"fresh-established\"\ncc = \"newreno\"\nlong = {}\nfrom = \"l1-*\"\nto = \"l2-*\"";
    for seed in 1..4 {
        let rows = |routing: &str| run(&plan(4, 4, routing, flows), seed);
        let (mut hashed, rehashed) = (rows("\"ecmp\""), rows("\"rehash\""));
        for flow in &mut hashed.flows {
            assert_eq!(flow.path_changes.replace(0), None);
        }
        assert_eq!(hashed.flows, rehashed.flows);
        assert_eq!(hashed.ports, rehashed.ports);
    }
}

/// The path of a flow goes down for good after 5 ms, and its host hears of it by the timeout alone.
#[test]
fn a_timeout_leads_off_a_dead_path() {
    let flow = "connections = \"fresh-established\"\ncc = \"newreno\"\nlong = {}\nfrom = \"l1-1\"\nto = \"l2-1\"";
    for seed in 1..4 {
        let after_outage = |routing: &str| {
            let traffic = |event: &str| format!("{flow}{event}");
            let healthy = plan(8, 1, routing, &traffic(""));
            let path = uplinks(&healthy, &run(&healthy, seed)).iter().position(|port| port.sent_packets > 0);
            let event =
                format!("\n[[event]]\nlink = \"leaf-1->spine-{}\"\nat = \"5ms\"\ndown = true", path.unwrap() + 1);
            let mut plan = plan(8, 1, routing, &traffic(&event));
            plan.schedule.end = Time::ZERO + Span::from_secs(1);
            let results = run(&plan, seed);
            let flow = &results.flows[0];
            assert!(flow.timeouts > 0);
            // Nothing is marked.
            assert_eq!(flow.path_changes, (routing == "\"rehash\"").then_some(flow.timeouts));
            flow.received_bytes
        };
        // In 5 ms it had no more than 6.25 MB; a timeout takes 200 ms at least, and some labels lead back to the dead link.
        assert!(after_outage("\"ecmp\"") < 6_250_000);
        assert!(after_outage("\"rehash\"") > 20_000_000);
    }
}

/// The path of a flow's acknowledgements goes down for good: the sender's timeouts change the path of data alone, and the receiver
/// hears the same data again and again.
#[test]
fn acknowledgements_leave_a_dead_path_too() {
    let flow = "connections = \"fresh-established\"\ncc = \"newreno\"\nlong = {}\nfrom = \"l1-1\"\nto = \"l2-1\"";
    for seed in 1..4 {
        let after_outage = |routing: &str| {
            let healthy = plan(8, 1, routing, flow);
            let back = |port: &&PortRow| {
                let name = &healthy.network.links[port.port as usize].name;
                name.starts_with("leaf-2->spine-") && port.sent_packets > 0
            };
            let results = run(&healthy, seed);
            let path = healthy.network.links[results.ports.iter().find(back).unwrap().port as usize].name.clone();
            let event = format!("\n[[event]]\nlink = \"{path}\"\nat = \"5ms\"\ndown = true");
            let mut plan = plan(8, 1, routing, &format!("{flow}{event}"));
            plan.schedule.end = Time::ZERO + Span::from_secs(1);
            run(&plan, seed).flows[0].received_bytes
        };
        assert!(after_outage("\"ecmp\"") < 6_250_000);
        // Two timeouts, of 200 and 400 ms, and as many again for each label that leads back.
        assert!(after_outage("\"rehash\"") > 20_000_000);
    }
}

/// The trace of a flow that changes its path has all of its packets, on all of its paths.
#[test]
fn a_trace_follows_a_flow_that_rehashes() {
    let one = "connections = \"fresh-established\"\ncc = \"dctcp\"\nlong = {}\nfrom = \"l1-1\"\nto = \"l2-1\"";
    let rehash = "{ rehash = { rounds = 1, threshold = 0.01, idle-rounds = 0 } }";
    let marks = |plan: &mut Plan| {
        for link in plan.network.links.iter_mut().filter(|link| link.name.starts_with("leaf-1->spine-")) {
            link.aqm = Some(Threshold::at(1));
        }
    };
    let (_, _, trace) = alone(plan(4, 1, rehash, one), marks);
    let mut plan = plan(4, 1, rehash, one);
    marks(&mut plan);
    let sent = sent(&plan, &run(&plan, 1));
    for (uplink, packets) in (1..).zip(&sent) {
        let name = format!("leaf-1->spine-{uplink}");
        let hops = trace.hops.iter().filter(|hop| plan.network.links[hop.port as usize].name == name).count() as u64;
        // Some have come to the port and not left it at the end.
        assert!(hops > 0 && (*packets..packets + 10).contains(&hops), "{name}: {hops} of {sent:?}");
    }
}

/// Flows that overlap open more connections than their pool keeps, which need numbers beside the labels: found by random search.
#[test]
fn pools_grow_where_hosts_label_paths() {
    let flows = "cc = \"newreno\"\nbetween = \"all\"\nconnections = { persistent = { pool = 1 } }\nsize = { fixed = \"200KB\" }\n\
                 arrivals = { poisson = { rate = \"30000/s\" } }";
    let results = run(&plan(2, 2, "\"rehash\"", flows), 1);
    let opened: BTreeSet<u32> = results.flows.iter().map(|flow| flow.connection).collect();
    // Of four hosts with three pools of one.
    assert!(opened.len() > 100, "{opened:?}");
}

#[test]
fn an_outage_on_any_possible_path_is_met() {
    let event = "\n[[event]]\nlink = \"leaf-1->spine-3\"\nat = \"5ms\"\ndown = true";
    for (routing, seed) in [("\"spray\"", 1), ("\"spray\"", 2), ("\"spray\"", 3)] {
        let plan = plan(4, 1, routing, &format!("{}{event}", datagrams("100Mbps")));
        let results = run(&plan, seed);
        assert_eq!(results.flows[0].events_met.as_deref(), Some("0"), "{routing}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    for routing in ["\"spray\"", "{ flowlet = { gap = \"5us\" } }"] {
        let traffic = "connections = \"fresh-established\"\ncc = \"cubic\"\nlong = {}\nfrom = \"l1-*\"\nto = \"l2-*\"";
        let plan = plan(3, 3, routing, traffic);
        let in_steps = on_one_core(&plan, 5);
        assert_eq!(run(&plan, 5), in_steps, "{routing}");
        assert_ne!(in_steps.flows, run(&plan, 6).flows, "{routing}");
    }
}

/// 1,000 bytes are 1,090 on the wire: 0.872 us at 10 Gbit/s, twice, and 87.2 us at 100 Mbit/s, or 21.8 us at 400 Mbit/s. Of two
/// equally short paths that differ, the quicker one gives the ideal time, whichever a flow's hash selects.
#[test]
fn the_ideal_time_is_that_of_the_quickest_of_unlike_paths() {
    let text = "cc = \"cubic\"\n[topology.graph]\nswitches = [{ name = \"s\" }, { name = \"t\" }]\n\
         hosts = [{ name = \"a\", switch = \"s\" }, { name = \"b\", switch = \"t\" }]\n\
         links = [{ ends = [\"s\", \"t\"], both = { rate = \"400Mbps\", delay = \"20ms\" } },\n\
                  { ends = [\"s\", \"t\"], both = { rate = \"100Mbps\", delay = \"4ms\" } }]\n\
         fabric = { rate = \"10Gbps\", delay = \"10us\" }\n\
         [[traffic]]\nlong = { flows = 32, stagger = \"200ms\", size = \"1KB\" }\nfrom = \"a\"\nto = \"b\"\n\
         connections = \"fresh-established\"\n\
         [[arm]]\nname = \"A\"\n[run]\nend = \"7s\"\n";
    let plan = narrows_scenario::load_str(text, &Default::default(), &Default::default())
        .unwrap_or_else(|error| panic!("{}", error.render()))
        .plans
        .remove(0);
    let results = run(&plan, 1);
    let (quick, slow) = (872 * 2 + 87_200 + 4_020_000, 872 * 2 + 21_800 + 20_020_000);
    assert!(results.flows.iter().all(|flow| flow.ideal_fct_ns == quick));
    let times: BTreeSet<u64> = results.flows.iter().filter_map(|flow| flow.fct_ns).collect();
    assert_eq!(times, BTreeSet::from([quick, slow]));
    assert_eq!(results.flows.len(), 32);
}
