//! Link functions and events: what becomes of them in plans, and what is said of them.

use narrows_core::units::{Rate, Span, Time};
use narrows_plan::{Change, Event, Link, Role};

use super::*;
use crate::summary::Summary;

fn text(wan: &str, events: &str) -> String {
    format!(
        "[topology.two-datacenters]\nservers = 1\nwan = {{ limit = \"100pkt\", {wan} }}\n{events}
        [[traffic]]\nlong = {{}}\nfrom = \"a1-1\"\nto = \"b1-1\"
        [[arm]]\nname = \"it\"\ncc = \"cubic\"\n[run]\nend = \"1s\"\ndrain = \"0s\"\n"
    )
}

fn wan(plan: &narrows_plan::Plan) -> Vec<&Link> {
    plan.network.links.iter().filter(|link| link.role == Role::Wan).collect()
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

#[test]
fn independent_losses_are_the_same_plan_however_they_are_written() {
    let plain = plans(&text("loss = 0.25", ""));
    assert_eq!(plans(&text("loss = \"25%\"", "")), plain);
    assert_eq!(plans(&text("loss = { bernoulli = { loss = 0.25 } }", "")), plain);
    assert_eq!((wan(&plain[0])[0].loss, &wan(&plain[0])[0].functions), (1 << 30, &vec![]));
    assert_eq!(plans(&text("loss = \"none\"", "")), plans(&text("", "")));
}

#[test]
fn check_tells_the_mean_loss_and_burst() {
    let loss = "loss = { gilbert-elliott = { p = 0.001, r = 0.25 } }";
    let reorder = "reorder = { late = { share = 0.01, delay = \"1ms\", delay-max = \"3ms\" } }";
    let plan = &plans(&text(&format!("{loss}, {reorder}"), ""))[0];
    let wires = "`border-a->border-b`, `border-b->border-a`";
    assert_eq!(
        Summary::of(plan).functions,
        [
            format!("loss 0.3984 %, gilbert-elliott, in bursts of 4.000 packets (means): {wires}"),
            format!("reorder 1.0000 %, later by 1ms to 3ms: {wires}"),
        ]
    );
}

#[test]
fn events_are_put_to_the_links_that_they_name() {
    let events = "[[event]]\nname = \"slow\"\nat = \"50ms\"\nlink = \"wan\"\nrate = \"100 Mbps\"
        [[event]]\nat = \"20ms\"\nlink = [\"border-a->*\", \"tor-a1->a1-1\"]\ndelay = \"3ms\"
        [[event]]\nat = \"10ms\"\nlink = \"border-a->border-b\"\noutage = \"5ms\"
        [[event]]\nat = \"15ms\"\nlink = \"border-a->border-b\"\noutage = \"5ms\"\n";
    let plan = &plans(&text("", events))[0];
    let event = |ms, change| Event { at: at(ms), change };
    let slow = event(50, Change::Rate(Rate::from_mbps(100)));
    let delay = Change::Delay(Span::from_ms(3));
    let twice =
        [(10, Change::Down), (15, Change::Up), (15, Change::Down), (20, Change::Up)].map(|(ms, it)| event(ms, it));
    let there = &wan(plan)[0].events;
    assert_eq!(there.len(), 6);
    assert!(twice.iter().all(|event| there.contains(event)) && there.contains(&event(20, delay)));
    assert_eq!((there.last(), &wan(plan)[1].events), (Some(&slow), &vec![slow]));
    // A delay is the wire's, and a host's stack is behind it.
    let host = plan.network.links.iter().find(|link| link.name == "tor-a1->a1-1").unwrap();
    assert_eq!(host.events, [event(20, Change::Delay(Span::from_ms(3) + host.stack))]);
    assert_eq!(wan(plan)[0].least_delay(), Span::from_ms(3));
    assert_eq!(Summary::of(plan).events.len(), 6);

    let set = |path: &str, value: &str| Overrides { sets: vec![(path.into(), value.into())], ..Overrides::default() };
    let of = |overrides: Overrides| expand(&text("", events), &overrides).unwrap().plans[0].clone();
    assert_eq!(wan(&of(set("event.slow.rate", "1Mbps")))[1].events, [event(50, Change::Rate(Rate::from_mbps(1)))]);
    assert_eq!(of(set("event.event-2.at", "70ms")).network.links[0].events, []);
}

/// A star whose switch has this much memory for what comes over a link, with an event at its 10 Gbit/s links.
fn paused_star(limit: &str, event: &str) -> Result<narrows_plan::Plan, String> {
    let text = format!(
        "[topology.star]\nhosts = 3\n\
        fabric = {{ rate = \"10Gbps\", delay = \"10us\", limit = \"{limit}\", buffering = \"input\", \
        flow-control = {{ pfc = {{ xoff = \"20KB\", xon = \"10KB\" }} }} }}\n\
        [[event]]\nat = \"20ms\"\nlink = [\"edge\", \"host\"]\n{event}\n\
        [[traffic]]\nlong = {{}}\nfrom = \"h1\"\nto = \"h2\"\n\
        [[arm]]\nname = \"it\"\ncc = \"cubic\"\n[run]\nend = \"1s\"\ndrain = \"0s\"\n"
    );
    let experiment = expand(&text, &Overrides::default()).map_err(|error| error.render())?;
    Ok(experiment.plans[0].clone())
}

#[test]
fn the_headroom_is_enough_at_every_rate_that_a_link_with_flow_control_has() {
    for event in ["rate = \"1Gbps\"", "loss = 0.01"] {
        assert_eq!(paused_star("100KB", event).map(|_| ()), Ok(()));
    }
    // 20 µs at 100 Gbit/s alone are 250 KB.
    let refused = paused_star("100KB", "rate = \"100Gbps\"").unwrap_err();
    assert!(refused.contains("experiment.toml:4") && refused.contains("may come after a pause"), "{refused}");
    assert!(paused_star("1MB", "rate = \"100Gbps\"").is_ok());
    for event in ["outage = \"1ms\"", "down = true", "delay = \"1ms\""] {
        let refused = paused_star("1MB", event).unwrap_err();
        assert!(refused.contains("experiment.toml:4") && refused.contains("it has flow control"), "{refused}");
    }
}

#[test]
fn links_of_several_queues_and_those_beside_flow_control_may_go_down() {
    let outage = "[[event]]\nat = \"20ms\"\nlink = \"wan\"\noutage = \"5ms\"\n";
    let drr = "scheduler = { drr = { weights = [1, 2] } }";
    assert_eq!(wan(&plans(&text(drr, outage))[0])[0].events.len(), 2);
    let lossless = "buffering = \"input\", flow-control = { pfc = { xoff = \"100KB\", xon = \"50KB\" } }";
    let classes = ["fabric", "edge"].map(|class| format!("{class} = {{ limit = \"1MB\", {lossless} }}")).join("\n");
    let file = text("", outage).replace("servers = 1\n", &format!("servers = 1\n{classes}\n"));
    assert_eq!(wan(&plans(&file)[0])[0].events.len(), 2);
}

fn said(wan: &str, events: &str) -> Vec<String> {
    let warnings = expand(&text(wan, events), &Overrides::default()).unwrap().warnings;
    warnings.into_iter().map(|warning| warning.text).collect()
}

#[test]
fn an_outage_is_told_of_with_what_it_cuts_off() {
    let event = |link: &str, what: &str| format!("[[event]]\nat = \"20ms\"\nlink = {link}\n{what}\n");
    assert_eq!(said("", &event("\"wan\"", "rate = \"1Mbps\"")), Vec::<String>::new());
    let [routes, hosts] = &said("", &event("\"wan\"", "outage = \"5ms\""))[..] else { panic!("two warnings") };
    assert_eq!(
        routes,
        "no route changes while `border-a->border-b`, `border-b->border-a` are down: packets that lead there are lost"
    );
    assert_eq!(hosts, "no path joins `b1-1`, `b2-1` to the other hosts from 20ms to 25ms");
    let alone = said("", &event("\"a1-1->tor-a1\"", "down = true"));
    assert_eq!(alone[1], "`a1-1->tor-a1` goes down in one direction alone");
    assert_eq!(alone[2], "no path joins `a1-1` to the other hosts from 20ms to the end of the run");
    for change in ["rate = \"1Mbps\"", "down = true"] {
        let late = said("", &event("\"wan\"", change).replace("20ms", "1s"));
        assert_eq!(late, ["2 of 2 changes of links take effect after the run, whose end with `drain` is 1s"]);
    }
}
