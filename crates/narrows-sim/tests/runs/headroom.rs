//! Nothing is lost with priority flow control and the computed headroom, whatever the network, the thresholds and the traffic; no
//! packet is forgotten, and nothing stands still for ever.

mod scenario;

use self::scenario::{QUIET, Scenario};
use narrows_plan::{NodeKind, Plan, Role};
use narrows_results::{PortRow, Results};
use narrows_sim::Simulation;

const SCENARIOS: u64 = 1_000;
/// Far more than any of them takes.
const MAX_EVENTS: u64 = 10_000_000;

/// The results of a run that ends.
fn run(plan: &Plan, seed: u64) -> Results {
    let mut simulation = Simulation::new(plan, seed).expect("a plan that can be run");
    assert!(!simulation.advance(MAX_EVENTS), "scenario {seed} goes on at {:?}", simulation.progress());
    simulation.finish()
}

fn dropped(results: &Results) -> u64 {
    let of_port = |port: &PortRow| {
        let at_port = port.dropped_limit_packets + port.dropped_pool_packets + port.dropped_aqm_packets;
        at_port + port.dropped_outage_packets + port.dropped_impairment_packets
    };
    results.ports.iter().map(of_port).sum()
}

/// By node, packets that came to it and packets that it sent, when nothing is on its way.
fn balance(plan: &Plan, results: &Results) -> Vec<[u64; 2]> {
    let mut balance = vec![[0; 2]; plan.network.nodes.len()];
    for (link, port) in plan.network.links.iter().zip(&results.ports) {
        balance[link.to as usize][0] += port.sent_packets;
        balance[link.from as usize][1] += port.sent_packets;
    }
    balance
}

#[test]
fn nothing_is_lost_with_the_computed_headroom() {
    // Scenarios in which hosts were paused, or switches; and in which so with output buffering.
    let (mut hosts, mut switches, mut output) = (0, 0, 0);
    for seed in 0..SCENARIOS {
        let scenario = Scenario::draw(seed);
        let plan = scenario.tight_plan();
        let results = run(&plan, seed);
        assert_eq!(dropped(&results), 0, "scenario {seed}\n{scenario:#?}");
        for flow in &results.flows {
            let done = flow.fct_ns.is_some_and(|fct| flow.start_ns + fct < QUIET.as_ns() / 2);
            // A flow without a size that stops before its handshake is over has sent nothing.
            let sent = flow.received_bytes > 0 || flow.handshake_ns.is_none() && flow.timeouts == 0;
            let is_long = flow.fct_ns.is_none() && flow.size_bytes == flow.received_bytes && sent;
            assert!(done || is_long, "scenario {seed}: {flow:?}\n{scenario:#?}");
        }
        for (node, [came, went]) in plan.network.nodes.iter().zip(balance(&plan, &results)) {
            assert!(node.kind == NodeKind::Host || came == went, "scenario {seed}: {} {came} {went}", node.name);
        }
        let is_output = plan.network.links.iter().any(|link| link.pauses.is_some());
        let (mut of_host, mut of_switch) = (false, false);
        for (link, port) in plan.network.links.iter().zip(&results.ports) {
            assert!(port.longest_pause_ns < QUIET.as_ns() / 2, "scenario {seed}: `{}` stays paused", link.name);
            let seen = if link.role == Role::Host { &mut of_host } else { &mut of_switch };
            *seen |= port.paused_ns > 0;
        }
        hosts += u64::from(of_host);
        switches += u64::from(of_switch);
        output += u64::from(is_output && of_host);
    }
    let seen = [hosts, switches, output];
    assert!(seen.iter().all(|&count| count > SCENARIOS / 4) && hosts > SCENARIOS / 2, "{seen:?}");
}

/// The headroom is not idle: where half of it is missing, packets are lost in many scenarios, and in a few where a tenth is.
#[test]
fn packets_are_lost_with_less_headroom() {
    let losing = |percent: u64| {
        let loses =
            |&seed: &u64| dropped(&run(&Scenario::with_headroom(Scenario::draw(seed).tight_plan(), percent), seed)) > 0;
        (0..SCENARIOS / 4).filter(loses).count()
    };
    let (half, most) = (losing(50), losing(90));
    assert!(half > 25 && most > 2, "{half} and {most}");
}
