//! The FreeBSD profile in whole runs, against closed forms.

use crate::plans::{Dumbbell, flow, run};
use narrows_core::cc::{Value, spec};
use narrows_core::tcp::profile::{Buffers, Profile};
use narrows_core::units::{Bytes, Rate, Span};
use narrows_plan::{Connections, Pattern, Plan};

/// Two levels of 8 by 8 switches with 64 hosts, and what is sent over it.
fn fat_tree(more: &str, traffic: &str) -> Plan {
    let text = format!(
        "[topology.leaf-spine]\nleaves = 8\nspines = 8\nhosts-per-leaf = 8\n\
         fabric = {{ rate = \"10Gbps\", delay = \"500ns\" }}\nhost = {{ profile = \"freebsd-cee\"{more} }}\n\
         [[traffic]]\n{traffic}\n[[arm]]\nname = \"A\"\ncc = \"cubic\"\n[run]\nend = \"20ms\"\n"
    );
    narrows_scenario::load_str(&text, &Default::default(), &Default::default())
        .unwrap_or_else(|error| panic!("{}", error.render()))
        .plans
        .remove(0)
}

fn network() -> Dumbbell {
    Dumbbell {
        rate: Rate::from_gbps(10),
        rtt: Span::from_us(200),
        profile: Profile::FREEBSD_CEE,
        ..Dumbbell::default()
    }
}

#[test]
fn a_round_trip_between_racks_takes_75_us() {
    let plan = fat_tree("", "flows = { list = [{ from = \"l1-1\", to = \"l2-1\", size = \"2896B\" }] }");
    let results = run(&plan, 1);
    // Stacks twice 33.5 us, eight links of 500 ns, and one segment of the two there and an acknowledgement back, four links each.
    let wire = (4 * (1_538 + 90) + 1_538) * 8 / 10;
    let expected = 67_000 + 8 * 500 + wire;
    let row = &results.flows[0];
    // Both segments leave at once: the first waits for the second, which is acknowledged with it.
    assert!(row.rtt_mean_ns.unwrap().abs_diff(expected) <= 1_300, "{row:?} {expected}");
    assert!((73_000..79_000).contains(&row.rtt_mean_ns.unwrap()), "{row:?}");
    // A SYN and its answer: 98 bytes on the wire, eight links.
    assert!(row.handshake_ns.unwrap().abs_diff(67_000 + 8 * 500 + 8 * 98 * 8 / 10) <= 1, "{row:?}");
}

#[test]
fn stack_delays_and_controllers_constants_come_with_the_profile() {
    let traffic = "long = {}\nfrom = \"l1-1\"\nto = \"l2-1\"";
    let plan = fat_tree("", traffic);
    let parameter = |plan: &Plan, name: &str| {
        let choice = &plan.traffic[0].controller;
        let parameters = spec(&choice.name).unwrap().parameters;
        choice.values[parameters.iter().position(|parameter| parameter.name == name).unwrap()]
    };
    assert_eq!((parameter(&plan, "beta"), parameter(&plan, "c")), (Value::Real(816), Value::Real(410)));
    assert_eq!(parameter(&plan, "hystart"), Value::Switch(false));
    let own = &plan.network.links[0];
    assert_eq!((own.delay, own.stack), (Span::from_us(10), Span::from_ns(9_500)));
    // What is said wins.
    let said = fat_tree(", stack-delay = { tx = \"1us\" }", &format!("{traffic}\ncc = {{ cubic = {{ beta = 0.7 }} }}"));
    assert_eq!(parameter(&said, "beta"), Value::Real(717));
    assert_eq!(said.network.links[0].delay, Span::from_ns(1_500));
    let vegas = fat_tree("", &format!("{traffic}\ncc = \"vegas\""));
    assert_eq!(
        ["alpha", "beta"].map(|name| parameter(&vegas, name)),
        [1, 3].map(|packets| Value::Packets(narrows_core::units::Packets::new(packets)))
    );
}

#[test]
fn the_second_connection_begins_where_the_first_ended() {
    let flows = |destinations: [u32; 2]| {
        let network = Dumbbell { pairs: 2, ..network() };
        let list = (0..).zip(destinations);
        let flows =
            list.map(|(ms, destination)| flow(Span::from_ms(5 * ms), 0, destination, Some(40 * 1_448))).collect();
        let mut plan = network.plan("newreno", false, Span::from_ms(20), Pattern::List(flows));
        plan.traffic[0].connections = Connections::Fresh;
        run(&plan, 1).flows
    };
    let same = flows([2, 2]);
    let other = flows([2, 3]);
    // A handshake, then all 40 segments at once: three links of 10 Gbps, of which each delays a segment once.
    let segments = Rate::from_gbps(10).time_for(Bytes::new(1_538)) * 42;
    let syns = Rate::from_gbps(10).time_for(Bytes::new(98)) * 6;
    let expected = Span::from_us(200) + syns + segments + Span::from_us(100);
    assert_eq!(same[1].fct_ns, Some(expected.as_ns()));
    // Slow start from 3 takes at least three rounds more, 3, 6, 12 and 19; delayed acknowledgements may cost another.
    let rounds = (same[0].fct_ns.unwrap() - same[1].fct_ns.unwrap()) as f64 / 200_000.0;
    assert!((2.8..=4.1).contains(&rounds), "{rounds}");
    // What is known of one host says nothing of another.
    assert_eq!(other[1].fct_ns, other[0].fct_ns);
}

#[test]
fn throughput_is_a_buffer_for_each_round_trip() {
    let goodput = |most: u64| {
        let rtt = Span::from_ms(2);
        let network = Dumbbell { rtt, limit: 10_000, ..network() };
        let mut plan = network.long("newreno", false, Span::from_ms(400));
        plan.schedule.warmup = Span::from_ms(200);
        let profile = &mut plan.traffic[0].profile;
        profile.adaptive_buffers = Some(Buffers { most: Bytes::new(most << 10), ..Buffers::FREEBSD });
        let results = run(&plan, 1);
        assert_eq!(results.flows[0].timeouts, 0);
        results.flows[0].delivered_after_warmup_bytes as f64 / 200e-3 * 2e-3 / 1_024.0
    };
    // KiB for each RTT: whole segments fit, and an RTT is as much longer as a segment takes.
    for (most, expected) in [(128, 127.3), (256, 256.0)] {
        let goodput = goodput(most);
        assert!((goodput / expected - 1.0).abs() < 0.02, "{most}: {goodput}");
    }
}
