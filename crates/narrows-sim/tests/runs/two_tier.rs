//! Scatter and gather in two tiers, from an experiment's text to the results.

use std::collections::BTreeSet;

use narrows_core::queue::Limit;
use narrows_core::units::Bytes;
use narrows_plan::{Plan, Role};

use crate::plans::run;

fn plan(rate: &str) -> Plan {
    let text = format!(
        "[topology.leaf-spine]\nleaves = 4\nspines = 2\nhosts-per-leaf = 3\n\
         fabric = {{ rate = \"10Gbps\", delay = \"500ns\", limit = \"1MB\" }}\nhost = {{ initial-window = \"100pkt\" }}\n\
         [[traffic]]\nname = \"q\"\ntwo-tier = {{ arrivals = {{ poisson = {{ rate = \"{rate}\" }} }} }}\n\
         [[arm]]\nname = \"A\"\ncc = \"newreno\"\n[run]\nend = \"100ms\"\ndrain = \"1s\"\n"
    );
    narrows_scenario::load_str(&text, &Default::default(), &Default::default())
        .unwrap_or_else(|error| panic!("{}\n{text}", error.render()))
        .plans
        .remove(0)
}

#[test]
fn a_query_takes_two_tiers_of_requests_and_answers() {
    let results = run(&plan("100/s"), 3);
    let queries = results.requests.len();
    assert!(queries > 3);
    assert_eq!(results.flows.len(), queries * (4 + 4 * 2), "one for each rack, two in each rack");
    for request in &results.requests {
        assert_eq!(request.responses, 4);
        // Each tier opens connections, sends 20 KB there and 20 KB back: two handshakes of four links at 500 ns and more, and
        // 40 KB in each tier on a line of 10 Gbit/s; the client receives four answers, and an aggregator two.
        let tier = |answers: u64| 4_000 + 2 * 4_000 + (20_000 + answers * 20_000) * 8 / 10;
        let least = tier(4) + tier(2);
        let took = request.completion_ns.expect("done");
        assert!(took > least * 9 / 10 && took < least * 2, "{took} of {least}");
    }
    // What an aggregator is asked lasts longer than what it asks.
    let longest = |responses: bool| {
        let of = results.flows.iter().filter(|flow| flow.request.is_some() == responses);
        of.filter_map(|flow| flow.fct_ns).max().expect("done")
    };
    assert!(longest(true) > longest(false));
}

#[test]
fn racks_of_one_host_and_connections_that_are_kept_are_refused() {
    let refused = |hosts: u32, more: &str| {
        let text = format!(
            "[topology.leaf-spine]\nleaves = 2\nspines = 1\nhosts-per-leaf = {hosts}\nfabric = {{ rate = \"10Gbps\" }}\n\
             [[traffic]]\ntwo-tier = {{ arrivals = {{ poisson = {{ rate = \"1/s\" }} }} }}\n{more}\n\
             [[arm]]\nname = \"A\"\ncc = \"newreno\"\n[run]\nend = \"1s\"\n"
        );
        let error = narrows_scenario::load_str(&text, &Default::default(), &Default::default()).expect_err("refused");
        error.render()
    };
    assert!(refused(1, "").contains("its racks have between 1 and 1 hosts"));
    assert!(refused(2, "connections = { persistent = { pool = 1 } }").contains("persistent"));
}

/// Of each link: 20 KB there and 20 KB back for each flow, wherever the random clients and aggregators are.
#[test]
fn as_much_is_offered_as_ports_carry() {
    let plan = plan("20000/s");
    let results = run(&plan, 5);
    let offered = narrows_scenario::offered_load(&plan).expect("all hosts have a path");
    let drawn = results.requests.len() as f64 / 2_000.0;
    for role in [Role::Host, Role::Edge, Role::Fabric] {
        let of_role = || results.ports.iter().filter(|row| plan.network.links[row.port as usize].role == role);
        let carried: Vec<f64> = of_role().map(|row| row.utilisation).collect();
        let expected: Vec<f64> = of_role().map(|row| offered[row.port as usize] * drawn).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        // Handshakes and acknowledgements come on top.
        let more = mean(&carried) / mean(&expected);
        assert!((1.0..1.1).contains(&more), "{role:?}: {carried:?} {expected:?}");
        for (carried, expected) in carried.iter().zip(expected) {
            assert!((0.85..1.2).contains(&(carried / expected)), "{role:?}: {carried} for {expected}");
        }
    }
}

#[test]
fn queries_overlap_and_all_are_answered() {
    let results = run(&plan("20000/s"), 1);
    assert!(results.requests.len() > 1_500, "{}", results.requests.len());
    assert!(results.requests.iter().all(|request| request.completion_ns.is_some()));
}

/// Where packets are lost, most timeouts are of what aggregators ask; however the run is split, each counts for one request.
#[test]
fn timeouts_in_both_tiers_count_for_the_request() {
    let mut plan = plan("2000/s");
    for link in plan.network.links.iter_mut().filter(|link| link.role == Role::Edge) {
        link.limit = Limit::Bytes(Bytes::new(6_000));
    }
    let results = run(&plan, 2);
    let of = |answers: bool| {
        let flows = results.flows.iter().filter(|flow| flow.request.is_some() == answers);
        flows.map(|flow| flow.timeouts).sum::<u32>()
    };
    let (first, second) = (of(true), of(false));
    assert!(first > 0 && second > 0, "{first} and {second}");
    assert_eq!(results.requests.iter().map(|request| request.timeouts).sum::<u32>(), first + second);
    // By the flows that answer them alone fewer have some.
    let answered_late = results.flows.iter().filter(|flow| flow.timeouts > 0).filter_map(|flow| flow.request);
    let late = results.requests.iter().filter(|request| request.timeouts > 0).count();
    assert!(late > answered_late.collect::<BTreeSet<u32>>().len());
}
