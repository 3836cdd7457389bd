//! Priority flow control from an experiment's text to the results: nothing is lost, whatever comes at once.

use crate::plans::run;
use narrows_core::queue::pfc::headroom;
use narrows_core::units::{Bytes, Rate, Span};
use narrows_plan::Plan;
use narrows_results::Results;
use proptest::prelude::*;

fn plan(text: &str) -> Plan {
    narrows_scenario::load_str(text, &Default::default(), &Default::default())
        .unwrap_or_else(|error| panic!("{}\n{text}", error.render()))
        .plans
        .remove(0)
}

/// So many hosts on a switch send at once to one.
pub fn incast(senders: u32, size: &str, fabric: &str) -> Plan {
    plan(&format!(
        "[topology.star]\nhosts = {}\nfabric = {{ rate = \"10Gbps\", delay = \"500ns\", {fabric} }}\n\
         host = {{ stack-delay = {{ tx = \"9500ns\", rx = \"24us\" }} }}\n\
         [[traffic]]\nincast = {{ clients = \"h{}\", servers = \"h*\", count = {senders}, response = \"{size}\", repeats = 1 }}\n\
         [[arm]]\nname = \"A\"\ncc = \"newreno\"\n[run]\nend = \"100ms\"\ndrain = \"5s\"\n",
        senders + 1,
        senders + 1,
    ))
}

pub fn dropped(results: &Results) -> u64 {
    results
        .ports
        .iter()
        .map(|port| port.dropped_limit_packets + port.dropped_pool_packets + port.dropped_aqm_packets)
        .sum()
}

pub const INPUT: &str =
    "limit = \"103KB\", buffering = \"input\", flow-control = { pfc = { xoff = \"97KB\", xon = \"80KB\" } }";
pub const OUTPUT: &str = "limit = \"400KB\", flow-control = { pfc = { xoff = \"97KB\", xon = \"80KB\" } }";

#[test]
fn what_overflows_without_flow_control_is_paused_with_it() {
    for pausing in [INPUT, OUTPUT] {
        let results = run(&incast(32, "256KB", pausing), 1);
        assert_eq!(dropped(&results), 0, "{pausing}");
        assert!(results.flows.iter().all(|flow| flow.fct_ns.is_some()));
        let (paused, frames) = results.ports.iter().fold((0, 0), |(paused, frames), port| {
            (paused + u64::from(port.paused_ns > 0), frames + port.pause_frames)
        });
        assert!(paused > 0 && frames > 1, "{paused} ports were paused by {frames} frames");
        // Whoever is paused sends nothing, and the line to the client is never idle: 32 responses one after the other, with the
        // request's way and the slow starts before.
        let last = results.requests[0].completion_ns.unwrap();
        let line = 32 * 256_000 * 1_538 / 1_448 * 8 / 10;
        assert!((line..line + 600_000).contains(&last), "{last} of {line}");
        let plain = run(&incast(32, "256KB", "limit = \"103KB\""), 1);
        assert!(dropped(&plain) > 0);
        assert!(plain.requests[0].completion_ns.unwrap() > last + 1_000_000, "timeouts cost more");
    }
}

/// A strict priority link that fills one queue: when a class of it is paused the next one comes, and is paused by itself.
#[test]
fn one_queue_for_all_classes_has_headroom_for_each() {
    let text = |limit: u64, may_lose: bool| {
        let pfc = "flow-control = { pfc = { xoff = \"20KB\", xon = \"10KB\", may-lose = true } }";
        let senders: String = (1..=4)
            .map(|host| {
                format!(
                    "[[traffic]]\nname = \"t{host}\"\nservice-class = {}\ntransport = {{ datagram = {{ rate = \"100%\" }} }}\n\
                     from = \"a-{host}\"\nto = \"b\"\nlong = {{ size = \"1MB\" }}\n",
                    host - 1
                )
            })
            .collect();
        format!(
            "[topology.graph]\nswitches = [{{ name = \"s1\" }}, {{ name = \"s2\" }}]\nhosts = [{{ name = \"a\", count = 4, \
             switch = \"s1\", link = {{ rate = \"10Gbps\", limit = \"10MB\", {pfc} }} }}, {{ name = \"b\", switch = \"s2\", \
             link = {{ rate = \"1Gbps\", delay = \"1us\", limit = \"{limit}B\", {} }} }}]\nlinks = [{{ ends = [\"s1\", \"s2\"] }}]\n\
             edge.scheduler = \"fifo\"\nfabric = {{ rate = \"10Gbps\", delay = \"10us\", limit = \"10MB\", {pfc}, \
             scheduler = {{ strict-priority = {{ classes = 4 }} }} }}\n{senders}\
             [[arm]]\nname = \"A\"\ncc = \"newreno\"\n[run]\nend = \"1s\"\nwarmup = \"0s\"\n",
            pfc.replace("true", if may_lose { "true" } else { "false" }),
        )
    };
    // Packets that come after a pause: 18 begin in 21.3 us and two more, from the other switch, and four from the host, whose
    // line sends two in 15 us.
    let least = |classes: u64| 20_000 + classes * 20 * 1_500 + 4 * 1_500;
    let refused = narrows_scenario::load_str(&text(least(4) - 1, false), &Default::default(), &Default::default());
    let refused = refused.unwrap_err().render();
    assert!(refused.contains("126KB may come after a pause"), "{refused}");
    assert_eq!(dropped(&run(&plan(&text(least(4), false)), 1)), 0);
    assert!(dropped(&run(&plan(&text(least(1), true)), 1)) > 0);
}

#[test]
fn nobody_is_paused_where_memory_suffices() {
    let results = run(&incast(1, "1MB", INPUT), 1);
    assert_eq!(dropped(&results), 0);
    assert!(results.ports.iter().all(|port| port.paused_ns == 0 && port.pause_frames == 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// With just the headroom that is computed: every rate, delay and stack, several switches in a row, and fan-in.
    #[test]
    fn no_packet_is_lost_with_the_computed_headroom(
        rate in prop_oneof![Just(1u64), Just(10), Just(40), Just(100)],
        delay in prop_oneof![Just(0u64), 1u64..3_000],
        (tx, rx) in (0u64..30_000, 0u64..30_000),
        xoff in 3_000u64..60_000,
        share in 0u64..=100,
        hosts in 1u32..5,
        (leaves, spines) in (2u32..5, 1u32..3),
        size in 10_000u64..400_000,
        seed in 0u64..1_000,
    ) {
        let needed = {
            let line = (Rate::from_gbps(rate), Span::from_ns(delay));
            headroom(line, line, Bytes::new(1_500)).get()
        };
        let (limit, xon) = (xoff + needed, xoff * share / 100);
        let class = format!(
            "rate = \"{rate}Gbps\", delay = \"{delay}ns\", limit = \"{limit}B\", buffering = \"input\", \
             flow-control = {{ pfc = {{ xoff = \"{xoff}B\", xon = \"{xon}B\" }} }}"
        );
        let plan = plan(&format!(
            "[topology.leaf-spine]\nleaves = {leaves}\nspines = {spines}\nhosts-per-leaf = {hosts}\nfabric = {{ {class} }}\n\
             edge = {{ {class} }}\nhost = {{ stack-delay = {{ tx = \"{tx}ns\", rx = \"{rx}ns\", jitter = \"3us\" }} }}\n\
             [[traffic]]\nincast = {{ clients = \"l1-1\", servers = \"l*\", response = \"{size}B\", repeats = 2 }}\n\
             [[traffic]]\nall-to-all = {{ hosts = \"l*\", size = \"{}B\" }}\n\
             [[arm]]\nname = \"A\"\ncc = \"cubic\"\n[run]\nend = \"50ms\"\ndrain = \"20s\"\n",
            size / 3 + 1,
        ));
        let results = run(&plan, seed);
        prop_assert_eq!(dropped(&results), 0);
        prop_assert!(results.flows.iter().all(|flow| flow.fct_ns.is_some()), "nothing stands still");
        let again = run(&plan, seed);
        prop_assert_eq!(format!("{:?}", results.flows), format!("{:?}", again.flows));
    }
}
