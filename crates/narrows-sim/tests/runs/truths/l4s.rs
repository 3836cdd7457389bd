//! DualPI2 and Prague: coexistence with flows that are not L4S, and low delay for those that are.

use narrows_core::units::Rate;
use narrows_results::{FlowRow, PortRow, Results};

use super::measure::{bottleneck_of, goodputs, jain, packets_per_second};

const LINE: Rate = Rate::from_mbps(100);

/// So many flows of Prague and of a classic controller over 100 Mbit/s and an RTT of 30 ms, the port of which has these keys.
fn results(prague: u32, classic: u32, controller: &str, ecn: bool, port: &str) -> (PortRow, Results) {
    let kinds = [("l4s", prague, "\"prague\"".to_owned()), ("classic", classic, format!("\"{controller}\""))];
    let traffic: String = kinds
        .iter()
        .filter(|(_, flows, _)| *flows > 0)
        .map(|(name, flows, cc)| {
            let ecn = if *name == "classic" { format!("ecn = {ecn}") } else { String::new() };
            format!(
                "[[traffic]]\nname = \"{name}\"\nfrom = \"left-*\"\nto = \"right-*\"\ncc = {cc}\n{ecn}\n\
                 long = {{ flows = {flows}, spread = \"100ms\" }}\n"
            )
        })
        .collect();
    let text = format!(
        r#"
        [topology.dumbbell]
        pairs = 4
        fabric = {{ rate = "100Mbps", delay = "15ms", limit = "2000pkt", {port} }}
        edge = {{ rate = "1Gbps", delay = "1us", limit = "unlimited", aqm = "none" }}
        host = {{ profile = "linux-6", stack-delay = {{ tx = "0s", rx = "0s", jitter = "20us" }} }}
        {traffic}
        [[arm]]
        name = "both"
        cc = "newreno"
        [run]
        end = "60s"
        warmup = "20s"
        "#
    );
    bottleneck_of(&text)
}

/// Mean RTTs in ms and mean rates in bit/s of the first kind's flows and of the second's.
fn by_kind(results: &Results) -> [(f64, f64); 2] {
    let rates = goodputs(results);
    let of = |is_prague: bool| {
        let of_kind = results.flows.iter().zip(&rates).filter(|(flow, _)| (flow.traffic == 0) == is_prague);
        let all: Vec<(f64, f64)> =
            of_kind.map(|(flow, rate)| (flow.rtt_mean_ns.expect("measured") as f64 / 1e6, *rate)).collect();
        let n = all.len() as f64;
        (all.iter().map(|(rtt, _)| rtt / n).sum(), all.iter().map(|(_, rate)| rate / n).sum())
    };
    [of(true), of(false)]
}

/// The classic queue has the target's delay, and L4S packets do not see it: the dual queue's purpose [RFC 9332 §1].
#[test]
fn l4s_flows_have_little_delay_beside_classic_ones() {
    for (controller, ecn) in [("newreno", false), ("newreno", true), ("cubic", false)] {
        let (port, results) = results(4, 4, controller, ecn, "scheduler = { dual-pi2 = {} }");
        let [(l4s, _), (classic, _)] = by_kind(&results);
        assert!(l4s < 31.5, "{controller} {ecn}: {l4s} ms");
        assert!((classic - 45.0).abs() < 4.0, "{controller} {ecn}: {classic} ms");
        assert!(port.utilisation > 0.97, "{}", port.utilisation);
        assert_eq!(port.dropped_limit_packets, 0);
    }
}

/// Rates are of one size, whatever the numbers of flows: the windows are 2/p of the share p of packets that is marked, and
/// √(3/2)/√p of that which is dropped [RFC 9332 §2.1]. They are of even shares; here p′ moves with the classic flows' windows, so that
/// both get somewhat more. Marks are twice p′ at most: the mean of p′ is less than the root of that of its square.
#[test]
fn the_coupling_gives_both_kinds_rates_of_one_size() {
    for (prague, classic) in [(4, 4), (1, 6), (6, 1), (10, 10)] {
        let case = format!("{prague}:{classic}");
        let (_, results) = results(prague, classic, "newreno", false, "scheduler = { dual-pi2 = {} }");
        let [(l4s, l4s_rate), (newreno, newreno_rate)] = by_kind(&results);
        assert!((0.8..2.2).contains(&(l4s_rate / newreno_rate)), "{case}: {l4s_rate} and {newreno_rate} bit/s");
        let sum = |is_prague: bool, of: &dyn Fn(&FlowRow) -> f64| -> f64 {
            results.flows.iter().filter(|flow| (flow.traffic == 0) == is_prague).map(of).sum()
        };
        let received = |flow: &FlowRow| flow.received_bytes as f64;
        let marked = sum(true, &|flow| flow.marked_bytes as f64) / sum(true, &received);
        let dropped = sum(false, &|flow| flow.dropped_packets.unwrap_or(0) as f64) * 1_448.0 / sum(false, &received);
        let packets = |rtt_ms: f64, rate: f64| rate * rtt_ms / 1e3 / (1_448.0 * 8.0);
        let [of_prague, of_newreno] =
            [packets(l4s, l4s_rate) * marked / 2.0, packets(newreno, newreno_rate) * (dropped / 1.5).sqrt()];
        assert!((0.9..1.5).contains(&of_prague), "{case}: {of_prague} of 2/p");
        assert!((0.8..1.5).contains(&of_newreno), "{case}: {of_newreno} of the square-root formula");
        assert!(marked < 2.1 * dropped.sqrt(), "{case}: {marked} marked, {dropped} dropped");
    }
}

/// L4S rates go with 1/k where the coupling marks: four times the factor is a quarter, or somewhat more where the queue of
/// L4S packets marks by itself.
#[test]
fn rates_go_with_the_coupling_factor() {
    let ratio = |k: u32| {
        let (_, results) =
            results(4, 4, "newreno", false, &format!("scheduler = {{ dual-pi2 = {{ coupling = {k} }} }}"));
        let [(_, l4s), (_, newreno)] = by_kind(&results);
        l4s / newreno
    };
    let (one, four) = (ratio(1), ratio(4));
    assert!((2.5..6.0).contains(&(one / four)), "{one} and {four}");
}

/// In one queue that marks, Prague keeps to the marks and takes what NewReno, which waits for losses, leaves: next to nothing. The
/// coupling, and not Prague, makes them coexist.
#[test]
fn in_one_queue_they_do_not_coexist() {
    let (_, results) = results(4, 4, "newreno", false, "aqm = { threshold = { mark-at = \"50pkt\" } }");
    let [(_, l4s), (_, newreno)] = by_kind(&results);
    assert!(l4s < newreno / 5.0, "{l4s} and {newreno} bit/s");
}

/// Alone they fill the link with a short queue, and share it.
#[test]
fn prague_alone_fills_the_link_with_little_delay() {
    let (port, results) = results(4, 0, "", false, "scheduler = { dual-pi2 = {} }");
    let rates = goodputs(&results);
    assert!(port.utilisation > 0.97, "{}", port.utilisation);
    assert!(jain(&rates) > 0.95, "{rates:?}");
    let delay_ms = port.queue_mean_bytes / 1500.0 / packets_per_second(LINE) * 1e3;
    assert!(delay_ms < 1.0, "{delay_ms} ms");
}
