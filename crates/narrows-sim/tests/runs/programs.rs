//! Programs of ranks against closed forms, and programs of chance to their end.

use crate::plans::{Dumbbell, at, run, smooth};
use crate::random_program::{planned, text};
use narrows_core::app::program::{Generated, Program, generate};
use narrows_core::component::Value;
use narrows_core::rng::Stream;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use narrows_plan::{Connections, Graph, Kind, Link, Node, NodeKind, Pattern, Plan, Role, Traffic};
use narrows_results::Results;

/// Hosts at one switch, without bounds or losses; 5 µs each way at every link.
fn star(hosts: u32, rate: Rate) -> Graph {
    let mut nodes: Vec<Node> = (0..hosts).map(|host| Node::new(format!("h{host}"), NodeKind::Host)).collect();
    nodes.push(Node::new("switch", NodeKind::Switch));
    let link = |from: u32, to, role| Link::new(format!("{from}->{to}"), (from, to), role, rate, Span::from_us(5));
    let links = (0..hosts).flat_map(|host| [link(host, hosts, Role::Host), link(hosts, host, Role::Edge)]).collect();
    Graph { nodes, links, ..Graph::default() }
}

fn plan(network: Graph, program: Program, end: Span) -> Plan {
    // Without slow start a closed form needs no window.
    let profile = Profile { initial_window: Packets::new(1_000), ..smooth(Profile::LINUX_6) };
    let mut plan = Dumbbell { profile, ..Dumbbell::default() }.plan("newreno", false, end, Pattern::List(vec![]));
    plan.network = network;
    let pattern = Pattern::App(Kind::Program(program));
    plan.traffic = vec![Traffic { connections: Connections::InOrder, pattern, ..plan.traffic.remove(0) }];
    plan.schedule.warmup = Span::ZERO;
    plan
}

/// A text on a star of 10 Gbit/s, from 1 ms on.
fn alone(text: &str) -> Results {
    let program = planned(text, at(Span::from_ms(1)), 0);
    let hosts = u32::try_from(program.hosts.len()).expect("few");
    run(&plan(star(hosts, Rate::from_gbps(10)), program, Span::from_secs(1)), 1)
}

fn execution(results: &Results) -> u64 {
    let ends = results.ranks.iter().map(|row| row.end_ns.expect("every rank has ended"));
    ends.max().expect("there are ranks") - results.ranks[0].start_ns
}

/// One way through the star: both links, packet by packet.
fn one_way(bytes: u64, rate: Rate) -> Span {
    let full = bytes / 1_448;
    let wire = |payload: u64| rate.time_for(Bytes::new((payload + 90).max(84)));
    let rest = bytes % 1_448;
    // The second link begins when the first packet is there, and then has the same to send.
    let first = wire(bytes.min(1_448));
    let sent = wire(1_448) * full + if rest > 0 { wire(rest) } else { Span::ZERO };
    first + sent + Span::from_us(10)
}

#[test]
fn computations_of_a_processor_follow_each_other_and_those_of_two_do_not() {
    let chain = "num_ranks 1\nrank 0 {\na: calc 1000\nb: calc 2500\nc: calc 1\nb requires a\nc requires b\n}\n";
    let results = alone(chain);
    let row = &results.ranks[0];
    assert_eq!((row.start_ns, row.end_ns, row.compute_ns, row.wait_ns), (1_000_000, Some(1_003_501), 3_501, 0));
    assert_eq!((row.operations, row.operations_ended), (3, 3));
    for (cpu, expected) in [(0, 3_500), (1, 2_500)] {
        let results = alone(&format!("num_ranks 1\nrank 0 {{\ncalc 1000\ncalc 2500 cpu {cpu}\n}}\n"));
        assert_eq!((execution(&results), results.ranks[0].compute_ns), (expected, expected));
    }
    // After the start, not the end: the second waits for its processor alone.
    let started =
        alone("num_ranks 1\nrank 0 {\na: calc 700\nb: calc 900 cpu 1\nb irequires a\nc: calc 10\nc irequires b\n}\n");
    assert_eq!(execution(&started), 900);
}

#[test]
fn a_ping_pong_takes_as_many_ways_as_it_has_messages() {
    for (bytes, rounds) in [(1, 5), (1_448, 3), (50_000, 4)] {
        let mut sides = [String::new(), String::new()];
        for round in 0..rounds {
            for (side, other) in [(0, 1), (1, 0)] {
                let (first, second) = if side == 0 { ("send", "recv") } else { ("recv", "send") };
                let word = |what: &str| if what == "send" { "to" } else { "from" };
                let lines = &mut sides[side];
                *lines += &format!("a{round}: {first} {bytes}b {} {other}\n", word(first));
                *lines +=
                    &format!("b{round}: {second} {bytes}b {} {other}\nb{round} requires a{round}\n", word(second));
                if round > 0 {
                    *lines += &format!("a{round} requires b{}\n", round - 1);
                }
            }
        }
        let results = alone(&format!("num_ranks 2\nrank 0 {{\n{}}}\nrank 1 {{\n{}}}\n", sides[0], sides[1]));
        let expected = one_way(bytes, Rate::from_gbps(10)) * (2 * rounds);
        let told = Span::from_ns(execution(&results));
        assert!(told >= expected.saturating_sub(Span::from_ns(1)), "{told} {expected}");
        assert!(told <= expected + Span::from_ns(100) * (2 * rounds), "{told} {expected}");
    }
}

#[test]
fn messages_of_a_pair_follow_each_other_on_one_connection_and_match_in_their_order() {
    // The second message starts first: it meets the first receive of its tag.
    let text = "num_ranks 2\nrank 0 {\nl: calc 50000\na: send 100000b to 1 tag 4\na requires l\nsend 3000b to 1 tag 4\nsend 20000b to 1 tag 9\n}\n\
                rank 1 {\nx: recv 0b from 0 tag 4\ny: recv 0b from 0 tag 4\ny requires x\nz: recv 0b from 0 tag 9\n}\n";
    let results = alone(text);
    let mut flows: Vec<_> = results.flows.iter().map(|row| (row.start_ns, row.size_bytes, row.connection)).collect();
    flows.sort_unstable();
    let sizes: Vec<u64> = flows.iter().map(|flow| flow.1).collect();
    assert_eq!(sizes, [3_000, 20_000, 100_000]);
    assert!(flows.iter().all(|flow| flow.2 == flows[0].2), "{flows:?}");
    assert!(
        results
            .flows
            .iter()
            .all(|row| row.handshake_ns.is_none() && row.delivered_after_warmup_bytes == row.size_bytes)
    );
    // 23 KB without a gap: no acknowledgement lies between the two.
    let second = results.flows.iter().find(|row| row.size_bytes == 20_000).unwrap();
    let together = one_way(23_000, Rate::from_gbps(10));
    let whole = Span::from_ns(second.fct_ns.unwrap());
    assert!(whole <= together + Span::from_us(1), "{whole} {together}");
}

#[test]
fn a_message_of_no_bytes_is_one_of_one() {
    let results = alone("num_ranks 2\nrank 0 {\nsend 0b to 1\n}\nrank 1 {\nrecv 0b from 0\n}\n");
    assert_eq!(results.flows[0].size_bytes, 1);
    assert!(results.ranks.iter().all(|row| row.end_ns.is_some()));
}

fn generated(name: &str, given: &[(&str, Value)]) -> Program {
    let spec = generate::spec(name).expect("a generator");
    let value = |parameter: &narrows_core::component::Parameter| {
        given.iter().find(|(name, _)| *name == parameter.name).map_or(parameter.default, |(_, value)| *value)
    };
    let values: Vec<Value> = spec.parameters.iter().map(value).collect();
    let schedule = generate::schedule(name, &values).expect("values that go together");
    let hosts = (0..schedule.ranks()).collect();
    Program::new(schedule, Some(Generated { name: name.into(), values }), hosts, Time::ZERO, 0)
}

#[test]
fn a_ring_all_reduce_takes_as_long_as_its_pieces() {
    // 2(P − 1) steps of M / P bytes [Patarasuk 2009], each as long as its packets, two links and nothing else.
    for (ranks, data) in [(4_u64, 4_000_000), (8, 2_000_000)] {
        let rate = Rate::from_gbps(10);
        let given = [("ranks", Value::Count(ranks)), ("bytes", Value::Bytes(Bytes::new(data)))];
        let program = generated("ring-all-reduce", &given);
        let results = run(&plan(star(u32::try_from(ranks).unwrap(), rate), program, Span::from_secs(1)), 1);
        let told = Span::from_ns(execution(&results)).as_ps() as f64;
        let steps = 2 * (ranks - 1);
        let at_least = (one_way(data / ranks, rate) * steps).as_ps() as f64;
        // Acknowledgements of the other direction share the links: one of 84 bytes for each packet of 1538.
        let at_most = at_least * (1.0 + 84.0 / 1_538.0) + 2e6 * steps as f64;
        assert!((at_least..=at_most).contains(&told), "{told} {at_least} {at_most}");
    }
}

#[test]
fn every_generator_runs_to_its_end() {
    let small: &[(&str, &[(&str, u64)])] = &[
        ("tree-all-reduce", &[("ranks", 7)]),
        ("hierarchical-all-reduce", &[("ranks", 6), ("groups", 3)]),
        ("all-to-all", &[("ranks", 5), ("repeats", 2)]),
        ("bt", &[("ranks", 9), ("iterations", 1), ("points", 24)]),
        ("cg", &[("ranks", 16), ("iterations", 1)]),
        ("ft", &[("ranks", 6), ("iterations", 1), ("points", 1 << 16)]),
        ("is", &[("ranks", 8), ("iterations", 2), ("keys", 1 << 14)]),
        ("mg", &[("ranks", 8), ("iterations", 1), ("points", 16)]),
        ("pipeline", &[("ranks", 8), ("stages", 4), ("microbatches", 3)]),
    ];
    for (name, given) in small {
        let mut given: Vec<(&str, Value)> = given.iter().map(|&(name, count)| (name, Value::Count(count))).collect();
        given.extend(["bytes", "activations", "gradients"].map(|name| (name, Value::Bytes(Bytes::new(60_000)))));
        let program = generated(name, &given);
        let (computed, operations) = (0..program.schedule().ranks()).fold((0, 0), |(ns, count), rank| {
            let own = program.schedule().of_rank(rank);
            let calc = own.clone().filter_map(|one| match program.schedule().operation(one) {
                narrows_core::app::program::schedule::Operation::Calc(span) => Some(span.as_ns()),
                _ => None,
            });
            (ns + calc.sum::<u64>(), count + own.len() as u64)
        });
        let hosts = program.schedule().ranks();
        let results = run(&plan(star(hosts, Rate::from_gbps(10)), program, Span::from_secs(2)), 1);
        assert!(results.ranks.iter().all(|row| row.end_ns.is_some()), "{name}");
        assert_eq!(results.ranks.iter().map(|row| row.compute_ns).sum::<u64>(), computed, "{name}");
        assert_eq!(results.ranks.iter().map(|row| u64::from(row.operations_ended)).sum::<u64>(), operations, "{name}");
        for row in &results.ranks {
            assert_eq!(row.compute_ns + row.wait_ns, row.end_ns.unwrap() - row.start_ns, "{name}");
        }
    }
}

#[test]
fn times_vary_with_the_seed_around_what_is_stated() {
    let calcs: String = (0..400).map(|place| format!("calc 1000000 cpu {}\n", place % 200)).collect();
    let program = planned(&format!("num_ranks 1\nrank 0 {{\n{calcs}}}\n"), Time::ZERO, 0);
    let chain: String = (1..400).map(|place| format!("a{place}: calc 1000000\n")).collect();
    let varied = planned(&format!("num_ranks 1\nrank 0 {{\n{chain}}}\n"), Time::ZERO, 3_277);
    let of = |program: &Program, seed| {
        run(&plan(star(2, Rate::from_gbps(10)), program.clone(), Span::from_secs(2)), seed).ranks[0].end_ns.unwrap()
    };
    assert_eq!((of(&program, 1), of(&program, 2)), (2_000_000, 2_000_000));
    let (one, other) = (of(&varied, 1), of(&varied, 2));
    assert_ne!(one, other);
    assert_eq!(one, of(&varied, 1));
    // The mean of 399 times with a deviation of 5 %: four standard errors are 1 %.
    for end in [one, other] {
        assert!((395e6..403e6).contains(&(end as f64)), "{end}");
    }
}

#[test]
fn a_program_that_does_not_end_in_time_says_so() {
    let text = "num_ranks 2\nrank 0 {\na: calc 300000\nb: calc 900000000\nb requires a\n}\nrank 1 {\ncalc 5\n}\n";
    let program = planned(text, Time::ZERO, 0);
    let results = run(&plan(star(2, Rate::from_gbps(10)), program, Span::from_ms(10)), 1);
    let [late, whole] = &results.ranks[..] else { panic!("two ranks") };
    assert_eq!((late.end_ns, late.operations, late.operations_ended, late.compute_ns), (None, 2, 1, 10_000_000));
    assert_eq!((whole.end_ns, whole.wait_ns), (Some(5), 0));
}

#[test]
fn programs_of_chance_end_whatever_the_network_drops() {
    for seed in 0..60 {
        let mut stream = Stream::named(seed, "program");
        let mut below = |bound: u32| u32::try_from(stream.below(bound.into())).unwrap();
        let ranks = 2 + below(5);
        let text = text(ranks, 40, &mut below);
        let program = planned(&text, Time::ZERO, 0);
        let mut network = star(ranks, Rate::from_gbps(1));
        if seed % 2 == 1 {
            network.links.iter_mut().for_each(|link| link.loss = u32::MAX / 30);
        }
        let mut plan = plan(network, program.clone(), Span::from_secs(60));
        plan.traffic[0].connections = [Connections::InOrder, Connections::Fresh, Connections::Persistent { pool: 1 }]
            [usize::try_from(seed % 3).expect("below three")];
        let results = run(&plan, seed);
        assert!(results.ranks.iter().all(|row| row.end_ns.is_some()), "seed {seed}: {:?}\n{text}", results.ranks);
        assert_eq!(results.flows.len(), program.schedule().messages().count());
        for flow in &results.flows {
            assert!(
                flow.fct_ns.is_some() && flow.delivered_after_warmup_bytes == flow.size_bytes,
                "seed {seed}: {flow:?}"
            );
            assert!(flow.first_byte_ns.is_some_and(|first| first <= flow.fct_ns.unwrap()), "seed {seed}: {flow:?}");
        }
    }
}
