//! Named topologies, from an experiment's text to the results, against closed forms.

use std::collections::BTreeSet;

use crate::plans::run;
use narrows_plan::Plan;
use narrows_results::{PortRow, Results};

/// Payload of a full segment over its length on the wire.
const GOODPUT: f64 = 1448.0 / 1538.0;
/// Neither offload nor delayed acknowledgements: what closed forms assume.
const SMOOTH: &str = "host = { offload-segments = 1, receive-offload = \"off\", ack-every = 1 }";

/// The plan of an experiment: a network and who sends over it, for half a second of which the first tenth does not count.
fn plan(network: &str, traffic: &str) -> Plan {
    let text = format!(
        "[topology.leaf-spine]\n{network}\n{SMOOTH}\n[[traffic]]\nconnections = \"fresh-established\"\n{traffic}\n\
         [[arm]]\nname = \"A\"\ncc = \"newreno\"\n[run]\nend = \"500ms\"\nwarmup = \"50ms\"\n"
    );
    narrows_scenario::load_str(&text, &Default::default(), &Default::default())
        .unwrap_or_else(|error| panic!("{}", error.render()))
        .plans
        .remove(0)
}

fn port<'a>(plan: &Plan, results: &'a Results, name: &str) -> &'a PortRow {
    &results.ports[plan.network.links.iter().position(|link| link.name == name).expect(name)]
}

/// Payload per second that each flow delivered after the warm-up, bit/s.
fn goodputs(results: &Results) -> Vec<f64> {
    let seconds = results.ports[0].measured_ns as f64 / 1e9;
    results.flows.iter().map(|flow| flow.delivered_after_warmup_bytes as f64 * 8.0 / seconds).collect()
}

fn near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 2e-3
}

/// Two leaves, and a flow from each host of the first to one of the second, which has no other.
const ACROSS: &str = "long = {}\nfrom = \"l1-*\"\nto = \"l2-*\"";

#[test]
fn a_round_trip_between_leaves_crosses_four_links_each_way() {
    let network = "leaves = 2\nspines = 3\nhosts-per-leaf = 2\nfabric = { rate = \"40Gbps\", delay = \"3us\" }\n\
                   edge = { rate = \"10Gbps\", delay = \"2us\" }";
    let one = |from: &str, to: &str| {
        let list =
            format!("flows = {{ list = [{{ from = \"{from}\", to = \"{to}\", at = \"1ms\", size = \"1448B\" }}] }}");
        run(&plan(network, &list), 1).flows[0].clone()
    };
    // A full segment has 1538 bytes on the wire and its acknowledgement 90. A byte takes 800 ps at 10 Gbit/s and 200 ps
    // at 40 Gbit/s.
    let across = one("l1-1", "l2-2");
    let edge = 2 * (1538 + 90) * 800 + 4 * 2_000_000;
    let fabric = 2 * (1538 + 90) * 200 + 4 * 3_000_000;
    assert!(across.rtt_mean_ns.unwrap().abs_diff((edge + fabric) / 1_000) <= 1, "{across:?}");
    let one_way = 2 * 1538 * (800 + 200) + 2 * 2_000_000 + 2 * 3_000_000;
    assert!(across.fct_ns.unwrap().abs_diff(one_way / 1_000) <= 1, "{across:?}");
    let within = one("l1-1", "l1-2");
    assert!(within.rtt_mean_ns.unwrap().abs_diff(edge / 1_000) <= 1, "{within:?}");
}

#[test]
fn without_oversubscription_every_host_has_its_line() {
    let network = "leaves = 2\nspines = 1\nhosts-per-leaf = 4\nedge = { rate = \"1Gbps\" }";
    let plan = plan(network, ACROSS);
    let results = run(&plan, 1);
    assert_eq!(results.flows.iter().map(|flow| flow.destination).collect::<BTreeSet<_>>().len(), 4);
    for goodput in goodputs(&results) {
        assert!(near(goodput, 1e9 * GOODPUT), "{goodput}");
    }
    assert!(near(port(&plan, &results, "leaf-1->spine-1").utilisation, 1.0));
}

#[test]
fn at_four_to_one_the_hosts_share_a_quarter_of_their_lines() {
    let network = "leaves = 2\nspines = 1\nhosts-per-leaf = 4\noversubscription = 4\nedge = { rate = \"1Gbps\" }";
    let plan = plan(network, ACROSS);
    let results = run(&plan, 1);
    let total: f64 = goodputs(&results).iter().sum();
    assert!(near(total, 4e9 / 4.0 * GOODPUT), "{total}");
    let full = port(&plan, &results, "leaf-1->spine-1");
    assert!(full.utilisation > 0.998 && full.dropped_limit_packets > 0, "{full:?}");
    // What came through the bottleneck never waits again.
    assert_eq!(port(&plan, &results, "spine-1->leaf-2").dropped_limit_packets, 0);
}

#[test]
fn flows_that_meet_at_a_spine_share_its_link_and_others_do_not() {
    let network = "leaves = 2\nspines = 2\nhosts-per-leaf = 2\nfabric = { rate = \"1Gbps\" }";
    let plan = plan(network, ACROSS);
    let mut seen = BTreeSet::new();
    for seed in 1..=8 {
        let results = run(&plan, seed);
        let used = ["leaf-1->spine-1", "leaf-1->spine-2"]
            .into_iter()
            .filter(|name| port(&plan, &results, name).sent_packets > 0)
            .count();
        let total: f64 = goodputs(&results).iter().sum();
        assert!(near(total, used as f64 * 1e9 * GOODPUT), "{used} uplinks, {total}");
        seen.insert(used);
    }
    // Each happens to half of the seeds.
    assert_eq!(seen, BTreeSet::from([1, 2]));
}

#[test]
fn as_many_uplinks_of_a_leaf_as_are_allowed_can_be_chosen_among() {
    let network = "leaves = 2\nspines = 512\nhosts-per-leaf = 1\nparallel-links = 8";
    let plan = plan(network, "long = { size = \"1MB\" }\nfrom = \"l1-1\"\nto = \"l2-1\"");
    assert_eq!(plan.network.links.len(), 2 * (2 + 2 * 4_096));
    assert!(run(&plan, 1).flows[0].fct_ns.is_some());
}

/// Beyond 4,096 hosts connections are numbered otherwise, and nothing else changes.
#[test]
fn as_many_hosts_as_are_allowed_can_send() {
    let completion = |hosts: u32| {
        let text = format!(
            "[topology.star]\nhosts = {hosts}\n{SMOOTH}\n[[traffic]]\nlong = {{ size = \"1MB\" }}\n\
             from = \"h{}\"\nto = \"h{hosts}\"\n[[arm]]\nname = \"A\"\ncc = \"newreno\"\n[run]\nend = \"500ms\"\n",
            hosts - 1
        );
        let experiment = narrows_scenario::load_str(&text, &Default::default(), &Default::default());
        let experiment = experiment.unwrap_or_else(|error| panic!("{}", error.render()));
        run(&experiment.plans[0], 1).flows[0].fct_ns.expect("it has the time")
    };
    let [few, usual, many, most] = [3, 4_096, 4_097, 16_384].map(completion);
    assert_eq!([usual, many, most], [few; 3]);
}
