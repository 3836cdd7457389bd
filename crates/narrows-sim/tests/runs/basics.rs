//! Whole runs against what must be so.

use crate::plans::{Dumbbell, flow, run};
use narrows_core::units::{Bytes, Span};
use narrows_plan::{Connections, Pattern};

/// Payload of a full segment over its length on the wire.
const GOODPUT: f64 = 1448.0 / 1538.0;

#[test]
fn a_long_flow_fills_the_link_with_goodput() {
    let network = Dumbbell::default();
    let results = run(&network.long("newreno", false, Span::from_secs(4)), 1);
    let port = &results.ports[network.bottleneck()];
    assert!(port.utilisation > 0.999 && port.utilisation <= 1.0, "{}", port.utilisation);
    let goodput = results.flows[0].delivered_after_warmup_bytes as f64 * 8.0 / 3.0;
    assert!((goodput / (1e9 * GOODPUT) - 1.0).abs() < 2e-3, "{goodput}");
}

#[test]
fn a_lone_small_flow_takes_its_ideal_time_plus_the_handshake() {
    let network = Dumbbell::default();
    let flows = vec![flow(Span::from_ms(1), 0, 1, Some(10_000))];
    let mut plan = network.plan("newreno", false, Span::from_ms(100), Pattern::List(flows));
    let fresh = run(&plan, 1).flows[0].clone();
    plan.traffic[0].connections = Connections::FreshEstablished;
    let established = run(&plan, 1).flows[0].clone();
    assert_eq!(established.fct_ns, Some(established.ideal_fct_ns));
    let handshake = fresh.fct_ns.unwrap() - fresh.ideal_fct_ns;
    // An RTT and the serialisation of a SYN and its answer, 98 bytes each at two speeds.
    assert!((10_000_000..10_003_000).contains(&handshake), "{handshake}");
}

#[test]
fn a_request_is_answered_over_a_persistent_connection() {
    let network = Dumbbell::default();
    let flows = (0..3).map(|i| {
        let mut flow = flow(Span::from_ms(100 * i), 1, 0, Some(50_000));
        flow.request = Some(Bytes::new(100));
        flow
    });
    let mut plan = network.plan("newreno", false, Span::from_ms(300), Pattern::List(flows.collect()));
    plan.traffic[0].connections = Connections::Persistent { pool: 1 };
    let results = run(&plan, 1);
    assert_eq!(results.flows.iter().map(|flow| flow.connection).collect::<Vec<_>>(), [0, 0, 0]);
    for flow in &results.flows {
        // 35 segments need two further rounds of an initial window of 10.
        let rounds = (flow.fct_ns.unwrap() - flow.ideal_fct_ns) / 10_000_000;
        assert!(rounds <= 2, "{flow:?}");
        assert!(flow.fct_ns.unwrap() >= flow.ideal_fct_ns);
    }
}

#[test]
fn the_same_plan_and_seed_give_the_same_rows() {
    let network = Dumbbell { pairs: 4, limit: 60, ..Dumbbell::default() };
    let plan = network.long("newreno", false, Span::from_secs(1));
    assert_eq!(run(&plan, 7), run(&plan, 7));
}
