//! AQMs: where they hold a queue, from the experiment's text to the rows.

use narrows_results::{PortRow, Results};

use super::measure::{bottleneck_of, jain};

/// The port that is the bottleneck for `flows` long flows of NewReno over 100 Mbit/s and 20 ms, its buffer 1000 packets.
fn bottleneck(flows: u32, aqm: &str, ecn: bool) -> PortRow {
    bottleneck_and_results(flows, &format!("aqm = {aqm}"), ecn, "").0
}

/// As above with these keys of the port and this other traffic, and the whole run.
fn bottleneck_and_results(flows: u32, port: &str, ecn: bool, other: &str) -> (PortRow, Results) {
    let text = format!(
        r#"
        [topology.dumbbell]
        pairs = 5
        fabric = {{ rate = "100Mbps", delay = "10ms", limit = "1000pkt", {port} }}
        edge = {{ rate = "1Gbps", delay = "1us", limit = "unlimited", aqm = "none" }}
        host = {{ profile = "linux-6", stack-delay = {{ tx = "0s", rx = "0s", jitter = "20us" }} }}
        [[traffic]]
        name = "long"
        from = "left-*"
        to = "right-*"
        long = {{ flows = {flows}, spread = "100ms" }}
        {other}
        [[arm]]
        name = "newreno"
        cc = "newreno"
        ecn = {ecn}
        [run]
        end = "40s"
        warmup = "10s"
        "#
    );
    bottleneck_of(&text)
}

/// The line's time for the mean queue of full packets, ms.
fn delay_ms(port: &PortRow) -> f64 {
    port.queue_mean_bytes * 1538.0 / 1500.0 * 8.0 / 1e8 * 1e3
}

/// The steps of the probability add up to nearly nothing over a long time, and so do the distances from the target.
#[test]
fn pie_holds_the_delay_at_its_target_whatever_the_load() {
    for (flows, target) in [(20, 15.0), (60, 15.0), (40, 5.0)] {
        for ecn in [false, true] {
            let port = bottleneck(flows, &format!("{{ pie = {{ target = \"{target}ms\" }} }}"), ecn);
            assert!((delay_ms(&port) / target - 1.0).abs() < 0.05, "{flows} {ecn}: {}", delay_ms(&port));
            assert!(port.utilisation > 0.97, "{}", port.utilisation);
            assert_eq!(port.dropped_limit_packets, 0);
            assert_eq!(port.marked_packets > 0, ecn);
        }
    }
    // 1000 packets are 123 ms, of which the flows fill most.
    assert!(delay_ms(&bottleneck(60, "\"none\"", false)) > 60.0);
}

/// CoDel holds the delay of a standing queue near its target, with drops or marks, and the link is full [RFC 8289 §1].
#[test]
fn codel_keeps_a_standing_queue_near_its_target() {
    for ecn in [false, true] {
        let port = bottleneck(4, "\"codel\"", ecn);
        assert!((1.0..8.0).contains(&delay_ms(&port)), "{ecn}: {}", delay_ms(&port));
        assert!(port.utilisation > 0.9, "{}", port.utilisation);
        assert_eq!(port.dropped_limit_packets, 0);
        assert_eq!((port.dropped_aqm_packets == 0, port.marked_packets > 0), (ecn, ecn), "{ecn}");
    }
    assert!(delay_ms(&bottleneck(4, "\"none\"", false)) > 20.0);
}

/// Flows share the link equally, and one that sends a packet now and then passes their queues [RFC 8290 §1]: with CoDel in each
/// queue, and where only the port's limit drops.
#[test]
fn flow_queues_share_equally_and_let_sparse_flows_pass() {
    let sparse = r#"
        [[traffic]]
        name = "sparse"
        from = "left-1"
        to = "right-1"
        arrivals = { poisson = { rate = "20/s" } }
        size = { fixed = "1KB" }
        connections = "fresh-established"
    "#;
    // One in a hundred has the queue of a long flow, by its hash.
    let small = |results: &Results| {
        let sparse = results.flows.iter().filter(|flow| flow.size_bytes == 1_000);
        let mut all: Vec<f64> = sparse.filter_map(|flow| flow.fct_ns).map(|ns| ns as f64 / 1e6).collect();
        assert!(all.len() > 500, "{}", all.len());
        all.sort_by(f64::total_cmp);
        all[all.len() * 95 / 100]
    };
    let mut own: f64 = 0.0;
    for scheduler in ["fq-codel", "fq"] {
        let (port, results) = bottleneck_and_results(10, &format!("scheduler = \"{scheduler}\""), false, sparse);
        let long = results.flows.iter().filter(|flow| flow.size_bytes != 1_000);
        let long: Vec<f64> = long.map(|flow| flow.delivered_after_warmup_bytes as f64).collect();
        assert_eq!(long.len(), 10);
        assert!(jain(&long) > 0.99, "{scheduler}: {long:?}");
        assert!(port.utilisation > 0.9, "{scheduler}: {}", port.utilisation);
        let drops = (port.dropped_aqm_packets > 0, port.dropped_limit_packets > 0);
        assert_eq!(drops, (scheduler == "fq-codel", scheduler == "fq"), "{scheduler}");
        own = own.max(small(&results));
    }
    let (_, codel) = bottleneck_and_results(10, "aqm = \"codel\"", false, sparse);
    // One way and the service of a full packet: 10 ms and at most 0.3 more. Behind the others' queue it is more.
    let shared = small(&codel);
    assert!(own < 10.6 && shared > own + 1.0, "{own} ms, {shared} ms");
}

/// Flows that follow marks keep the link below the share at which a phantom queue drains, and the port's own queue short
/// [HULL §3.1]; a threshold on that queue itself keeps it at the threshold, and the link full.
#[test]
fn a_phantom_queue_trades_a_share_of_the_link_for_a_short_queue() {
    let port = |aqm: &str| {
        let text = format!(
            r#"
            [topology.dumbbell]
            pairs = 2
            fabric = {{ rate = "1Gbps", delay = "100us", limit = "500pkt", aqm = {aqm} }}
            edge = {{ rate = "10Gbps", delay = "5us", limit = "unlimited", aqm = "none" }}
            [topology.dumbbell.host]
            profile = "linux-6"
            offload-segments = 1
            receive-offload = "off"
            stack-delay = {{ tx = "5us", rx = "5us", jitter = "2us" }}
            [[traffic]]
            from = "left-*"
            to = "right-*"
            long = {{ flows = 2, spread = "10ms" }}
            [[arm]]
            name = "dctcp"
            cc = "dctcp"
            [run]
            end = "2s"
            warmup = "200ms"
            "#
        );
        bottleneck_of(&text).0
    };
    let real = port("{ threshold = { mark-at = \"20pkt\" } }");
    assert!(real.utilisation > 0.99 && real.queue_mean_bytes > 25_000.0, "{}", real.queue_mean_bytes);
    for (drain, at, longest) in [(0.9, "arrival", 8_000.0), (0.9, "departure", 12_000.0), (0.8, "departure", 6_000.0)] {
        let port = port(&format!("{{ phantom = {{ mark-at = \"20pkt\", drain = {drain}, at = \"{at}\" }} }}"));
        assert!((drain - 0.06..drain + 0.001).contains(&port.utilisation), "{drain} {at}: {}", port.utilisation);
        assert!(port.queue_mean_bytes < longest, "{drain} {at}: {} B", port.queue_mean_bytes);
        assert!(port.marked_packets > 0 && port.dropped_limit_packets == 0, "{drain} {at}");
    }
}
