//! AQMs: where they hold a queue, from the experiment's text to the rows.

use narrows_results::PortRow;

use crate::plans::run;

/// The port that is the bottleneck for `flows` long flows of NewReno over 100 Mbit/s and 20 ms, its buffer 1000 packets.
fn bottleneck(flows: u32, aqm: &str, ecn: bool) -> PortRow {
    let text = format!(
        r#"
        [topology.dumbbell]
        pairs = 5
        fabric = {{ rate = "100Mbps", delay = "10ms", limit = "1000pkt", aqm = {aqm} }}
        edge = {{ rate = "1Gbps", delay = "1us", limit = "unlimited", aqm = "none" }}
        host = {{ profile = "linux-6", stack-delay = {{ tx = "0s", rx = "0s", jitter = "20us" }} }}
        [[traffic]]
        name = "long"
        from = "left-*"
        to = "right-*"
        long = {{ flows = {flows}, spread = "100ms" }}
        [[arm]]
        name = "newreno"
        cc = "newreno"
        ecn = {ecn}
        [run]
        end = "40s"
        warmup = "10s"
        "#
    );
    let experiment = narrows_scenario::load_str(&text, &Default::default(), &Default::default());
    let plan = experiment.unwrap_or_else(|error| panic!("{error}")).plans.remove(0);
    let index = plan.network.links.iter().position(|link| link.name == "switch-left->switch-right");
    run(&plan, 1).ports.swap_remove(index.expect("the dumbbell's only link between switches"))
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
