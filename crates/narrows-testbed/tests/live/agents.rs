//! The same plans in the simulator and on this kernel: the same flows, and completion times that agree.

use narrows_core::app::all_to_all::AllToAll;
use narrows_core::app::program::{Program, generate};
use narrows_core::app::two_tier::TwoTier;
use narrows_core::component::Value;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Bytes, Rate, Span, Time};
use narrows_plan::{
    Connections, ControllerChoice, FlowStart, Graph, Incast, Kind, Open, Pairs, Pattern, Plan, Sampling, Schedule,
    SizeDistribution, Traffic,
};
use narrows_results::{FlowRow, Quantity, Results};
use narrows_sim::Simulation;
use narrows_testbed::{Options, Outcome};

use crate::support::{dumbbell, machine};

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

fn traffic(name: &str, ecn: bool, connections: Connections, pattern: Pattern) -> Traffic {
    let controller = ControllerChoice::new("cubic", ecn);
    Traffic {
        name: name.into(),
        controller,
        profile: Profile::LINUX_6,
        service_class: 0,
        transport: Default::default(),
        connections,
        pattern,
    }
}

fn plan(network: Graph, end_ms: u64, traffic: Vec<Traffic>) -> Plan {
    Plan {
        experiment: "live".into(),
        arm: "cubic".into(),
        axes: vec![],
        declared: vec![],
        network,
        traffic,
        schedule: Schedule { end: at(end_ms), drain: Span::from_secs(1), warmup: Span::ZERO },
        sampling: Sampling {
            queues: Span::from_ms(1),
            windows: Span::from_ms(10),
            goodput: Span::from_ms(100),
            ..Sampling::default()
        },
    }
}

fn simulated(plan: &Plan) -> Results {
    let mut simulation = Simulation::new(plan, 1).expect("a plan that can be run");
    while simulation.advance(1 << 20) {}
    simulation.finish()
}

/// Both, with a table of their flows.
fn both(plan: &Plan) -> (Outcome, Results) {
    let expected = simulated(plan);
    let live = narrows_testbed::run(plan, 1, &Options::default(), None, &mut |_| true).expect("a live run");
    eprintln!(
        "{:?}; valid {:?}; late p99 {} us; agents late p99 {} us; {} failures; {} without ECN",
        live.counts,
        live.validity,
        live.record.deliveries.percentile(990).as_us(),
        live.record.agents.percentile(990).as_us(),
        live.record.failed,
        live.record.without_ecn,
    );
    let pairs = live.results.flows.iter().zip(&expected.flows);
    for (live, simulated) in pairs.clone() {
        assert_eq!(live.ideal_fct_ns, simulated.ideal_fct_ns, "the same network without anything else on it");
        assert!(live.fct_ns.is_none_or(|fct| fct >= live.ideal_fct_ns), "faster than possible: {live:?}");
    }
    for (live, simulated) in pairs.clone().take(12) {
        let us = |fct: Option<u64>| fct.map(|ns| ns / 1_000);
        eprintln!(
            "{} {}->{} {} B at {} us: {:?} us, simulated {:?}; rtt {:?} us, {:?}; again {} B, {}; marked {} B, {}",
            live.traffic,
            live.source,
            live.destination,
            live.size_bytes,
            live.start_ns / 1_000,
            us(live.fct_ns),
            us(simulated.fct_ns),
            us(live.rtt_mean_ns),
            us(simulated.rtt_mean_ns),
            live.retransmitted_bytes,
            simulated.retransmitted_bytes,
            live.marked_bytes,
            simulated.marked_bytes,
        );
    }
    for table in narrows_results::tables::TABLES.map(|table| table.name) {
        let (batch, other) =
            (live.table(table, plan).expect("its name"), narrows_results::tables::table(table, plan, &expected));
        assert_eq!(batch.schema(), other.expect("its name").schema());
    }
    assert_eq!(live.results.flows.len(), expected.flows.len());
    for (live, simulated) in pairs {
        assert_eq!(
            (live.source, live.destination, live.traffic, live.request),
            (simulated.source, simulated.destination, simulated.traffic, simulated.request)
        );
    }
    assert_eq!(live.record.failed, 0);
    (live, expected)
}

/// Flows of a few sizes, one after the other.
fn one_by_one(request: Option<u64>) -> Pattern {
    let sizes = [1, 1_000, 10_000, 100_000, 500_000];
    let flows = (0..).zip(sizes).map(|(number, size)| FlowStart {
        request: request.map(Bytes::new),
        ..FlowStart::new(at(20 + 250 * number), 0, 1, Some(Bytes::new(size)))
    });
    Pattern::List(flows.collect())
}

#[test]
fn lone_flows_take_as_long_as_in_the_simulator() {
    let Some(_turn) = machine("flows on this kernel") else { return };
    for (connections, request) in [
        (Connections::Fresh, None),
        (Connections::Fresh, Some(100)),
        (Connections::FreshEstablished, Some(4)),
        (Connections::FreshEstablished, None),
        (Connections::Persistent { pool: 1 }, None),
        (Connections::Persistent { pool: 2 }, Some(1_600)),
    ] {
        eprintln!("{connections:?}, request {request:?}");
        let graph = dumbbell(Span::from_ms(10), 200, None);
        let plan = plan(graph, 1_300, vec![traffic("t", false, connections, one_by_one(request))]);
        let (live, simulated) = both(&plan);
        for (live, simulated) in live.results.flows.iter().zip(&simulated.flows) {
            assert_eq!((live.size_bytes, live.connection), (simulated.size_bytes, simulated.connection));
            assert!(live.start_ns >= simulated.start_ns && live.start_ns < simulated.start_ns + 20_000_000);
            let (fct, expected) = (live.fct_ns.unwrap(), simulated.fct_ns.unwrap());
            // Wake-ups and stacks take a tenth of a millisecond each. On a connection that has idled the kernel's window is
            // larger than the simulator's.
            let least = if matches!(connections, Connections::Persistent { .. }) {
                expected / 4 * 3
            } else {
                expected / 10 * 9
            };
            assert!(fct >= least, "{fct} for {expected}");
            assert_eq!(live.delivered_after_warmup_bytes, live.size_bytes);
            assert_eq!(
                (live.handshake_ns.is_some(), live.syn_retransmits),
                (simulated.handshake_ns.is_some(), Some(0))
            );
            assert!(live.handshake_ns.is_none_or(|ns| (10_000_000..15_000_000).contains(&ns)), "{live:?}");
            let first = live.first_byte_ns.expect("it is whole");
            assert!(first <= fct && first >= simulated.first_byte_ns.unwrap() / 10 * 9, "{live:?}");
        }
    }
}

/// Three hosts on the left, one on the right.
fn four_hosts() -> Graph {
    let mut graph = dumbbell(Span::from_ms(2), 100, None);
    // Two more hosts on the left switch.
    for host in [2, 3] {
        let mut node = graph.nodes[0].clone();
        node.name = format!("left{host}");
        graph.nodes.insert(host, node);
    }
    for link in &mut graph.links {
        for end in [&mut link.from, &mut link.to] {
            *end += if *end >= 2 { 2 } else { 0 };
        }
    }
    for host in [2, 3] {
        for (template, from, to) in [(0, host, 4), (1, 4, host)] {
            let link = graph.links[template].clone();
            graph.links.push(narrows_plan::Link { name: format!("{from}->{to}"), from, to, ..link });
        }
    }
    graph
}

#[test]
fn a_host_of_an_exchange_waits_for_what_it_receives() {
    let Some(_turn) = machine("an exchange on this kernel") else { return };
    for in_rounds in [false, true] {
        let all = AllToAll { hosts: vec![0, 1, 2, 3], size: Bytes::new(20_000), in_rounds, repeats: 10, start: at(50) };
        let all = vec![traffic("all", false, Connections::Persistent { pool: 2 }, Pattern::App(Kind::AllToAll(all)))];
        let mut graph = four_hosts();
        graph.links.iter_mut().for_each(|link| link.rate = Rate::from_mbps(100));
        let plan = plan(graph, 3_000, all);
        let live = narrows_testbed::run(&plan, 1, &Options::default(), None, &mut |_| true).expect("a live run");
        let simulated = simulated(&plan);
        assert_eq!(live.record.failed, 0);
        assert_eq!((live.results.flows.len(), simulated.flows.len()), (120, 120));
        let done = |row: &FlowRow| row.start_ns + row.fct_ns.expect("it is whole");
        let end = |results: &Results| results.flows.iter().map(done).max().expect("there are some") / 1_000;
        eprintln!("ten iterations end at {} us, simulated {} us", end(&live.results), end(&simulated));
        for host in 0..4 {
            let mut begun: Vec<u64> =
                live.results.flows.iter().filter(|row| row.source == host).map(|row| row.start_ns).collect();
            begun.sort_unstable();
            let mut received: Vec<u64> =
                live.results.flows.iter().filter(|row| row.destination == host).map(done).collect();
            received.sort_unstable();
            // What it begins after so many messages needs all that it was sent with them.
            let step = if in_rounds { 1 } else { 3 };
            assert!((step..30).all(|sent| begun[sent] >= received[sent / step * step - 1]), "{begun:?} {received:?}");
        }
    }
}

#[test]
fn a_program_computes_sends_and_waits_on_this_kernel_too() {
    let Some(_turn) = machine("a program on this kernel") else { return };
    let values =
        vec![Value::Count(4), Value::Bytes(Bytes::new(1_000_000)), Value::Count(5), Value::Span(Span::from_ms(10))];
    let schedule = generate::schedule("ring-all-reduce", &values).expect("values that go together");
    let program = Program::new(schedule, None, vec![0, 1, 2, 3], at(50), 0);
    let messages = program.schedule().messages().count();
    let mut graph = four_hosts();
    graph.links.iter_mut().for_each(|link| link.rate = Rate::from_mbps(100));
    let pattern = Pattern::App(Kind::Program(program));
    let plan = plan(graph, 4_000, vec![traffic("ring", false, Connections::InOrder, pattern)]);
    let live = narrows_testbed::run(&plan, 1, &Options::default(), None, &mut |_| true).expect("a live run");
    let simulated = simulated(&plan);
    assert_eq!(live.record.failed, 0);
    assert_eq!((live.results.flows.len(), simulated.flows.len()), (messages, messages));
    // One connection of each rank to the next.
    let mut connections: Vec<u32> = live.results.flows.iter().map(|row| row.connection).collect();
    connections.sort_unstable();
    connections.dedup();
    assert_eq!(connections.len(), 4);
    let end = |results: &Results| results.ranks.iter().map(|row| row.end_ns.expect("it ended")).max().expect("ranks");
    eprintln!("five all-reduces end at {} us, simulated {} us", end(&live.results) / 1_000, end(&simulated) / 1_000);
    for (one, other) in live.results.ranks.iter().zip(&simulated.ranks) {
        assert_eq!((one.rank, one.compute_ns, one.operations_ended), (other.rank, 50_000_000, other.operations));
    }
    let (live, simulated) = (end(&live.results) as f64, end(&simulated) as f64);
    assert!((0.9..1.5).contains(&(live / simulated)), "{live} {simulated}");
}

#[test]
fn an_incast_is_answered_by_all_servers() {
    let Some(_turn) = machine("an incast on this kernel") else { return };
    let graph = four_hosts();
    let incast = |mean_interarrival, repeats| {
        Pattern::App(Kind::Incast(Incast {
            client: 1,
            servers: vec![0, 2, 3],
            request: Bytes::new(1_600),
            response: Bytes::new(20_000),
            repeats,
            mean_interarrival,
            start: at(50),
            jitter: Span::from_ms(1),
        }))
    };
    let pool = Connections::Persistent { pool: 1 };
    let loops = vec![traffic("loop", false, pool, incast(None, 40))];
    let (live, simulated) = both(&plan(graph.clone(), 1_500, loops));
    assert_eq!(live.results.requests.len(), 40);
    assert!(live.results.requests.iter().all(|request| request.responses == 3 && request.client == 1));
    let mean = |results: &Results| {
        let times: Vec<u64> = results.requests.iter().map(|request| request.completion_ns.unwrap()).collect();
        times.iter().sum::<u64>() / times.len() as u64
    };
    eprintln!("a query takes {} us, simulated {} us", mean(&live.results) / 1_000, mean(&simulated) / 1_000);
    assert!(mean(&live.results) > mean(&simulated) * 9 / 10);
    let random = vec![traffic("random", false, pool, incast(Some(Span::from_ms(30)), 0))];
    let (live, simulated) = both(&plan(graph, 1_000, random));
    assert_eq!(live.results.requests.len(), simulated.requests.len());
}

#[test]
fn an_aggregator_answers_when_its_rack_has_answered_on_this_kernel_too() {
    let Some(_turn) = machine("queries in two tiers on this kernel") else { return };
    let mut graph = four_hosts();
    graph.links.iter_mut().for_each(|link| link.rate = Rate::from_mbps(100));
    let queries = TwoTier {
        racks: vec![vec![0, 1], vec![2, 3]],
        request: Bytes::new(2_000),
        response: Bytes::new(20_000),
        mean_interarrival: Span::from_ms(100),
        start: at(50),
    };
    let pattern = Pattern::App(Kind::TwoTier(queries));
    let plan = plan(graph, 2_000, vec![traffic("queries", false, Connections::Fresh, pattern)]);
    let live = narrows_testbed::run(&plan, 1, &Options::default(), None, &mut |_| true).expect("a live run");
    let simulated = simulated(&plan);
    assert_eq!(live.record.failed, 0);
    let asked = simulated.requests.len();
    assert!(asked > 10);
    assert_eq!(live.results.requests.len(), asked);
    // Of each query an answer of each of two aggregators, and of the one host that each of them asks.
    assert_eq!((live.results.flows.len(), simulated.flows.len()), (asked * 4, asked * 4));
    // Two that come at nearly the same time may begin in the other order.
    let clients = |results: &Results| {
        let mut clients: Vec<u32> = results.requests.iter().map(|request| request.client).collect();
        clients.sort_unstable();
        clients
    };
    assert_eq!(clients(&live.results), clients(&simulated));
    for request in &live.results.requests {
        assert_eq!(request.responses, 2);
        let within = |row: &&FlowRow| row.request == Some(request.request);
        let took = live.results.flows.iter().filter(within).map(|row| row.fct_ns.expect("it is whole")).max();
        assert!(request.completion_ns.expect("answered") >= took.expect("two answers"));
    }
    // Who asks an aggregator waits for longer than the aggregator itself: its request, and an answer of 20 KB at 100 Mbit/s.
    let shortest = |results: &Results, of_client: bool| {
        let rows = results.flows.iter().filter(|row| row.request.is_some() == of_client);
        rows.map(|row| row.fct_ns.expect("it is whole")).min().expect("there are some")
    };
    assert!(shortest(&live.results, true) >= shortest(&live.results, false) + 1_600_000);
    // Half of them: one that waits for a retransmission timer takes fifty times as long.
    let median = |results: &Results| {
        let mut times: Vec<u64> = results.requests.iter().map(|it| it.completion_ns.expect("answered")).collect();
        times.sort_unstable();
        times[asked / 2] as f64
    };
    eprintln!("a query takes {} us, simulated {} us", median(&live.results) / 1e3, median(&simulated) / 1e3);
    // Nothing is said of a machine that was late with packets and wake-ups.
    let most = if live.validity.is_ok() { 1.5 } else { f64::INFINITY };
    assert!((0.9..most).contains(&(median(&live.results) / median(&simulated))));
}

#[test]
fn open_traffic_and_long_flows_share_a_line() {
    let Some(_turn) = machine("open traffic on this kernel") else { return };
    let graph = dumbbell(Span::from_ms(4), 200, Some(30));
    let open = Pattern::Open(Open {
        mean_interarrival: Span::from_ms(20),
        sigma: None,
        on_off: None,
        sizes: SizeDistribution::fixed(Bytes::new(30_000)),
        pairs: Pairs::Listed(vec![(0, 1), (1, 0)]),
        exact: false,
        request: None,
    });
    let mut long = FlowStart::new(at(10), 0, 1, None);
    let asked = FlowStart { request: Some(Bytes::new(50)), ..long };
    long.stop = Some(at(1_500));
    let traffics = vec![
        traffic("open", false, Connections::Fresh, open),
        traffic("long", true, Connections::Fresh, Pattern::List(vec![long, asked])),
    ];
    let plan = plan(graph, 2_000, traffics);
    let (live, simulated) = both(&plan);
    assert_eq!(live.record.without_ecn, 0);
    let rate = |results: &Results| {
        let long = results.flows.iter().filter(|flow| flow.traffic == 1);
        long.map(|flow| flow.delivered_after_warmup_bytes).sum::<u64>() * 8 / 2_000_000
    };
    eprintln!("long flows {} Mbps, simulated {} Mbps", rate(&live.results), rate(&simulated));
    assert!(rate(&live.results) > 60);
    let count = |results: &Results, quantity| results.series.iter().filter(|row| row.quantity == quantity).count();
    for quantity in [Quantity::QueueBytes, Quantity::WindowPackets, Quantity::GoodputBps] {
        let (live, simulated) = (count(&live.results, quantity), count(&simulated, quantity));
        assert!(live.abs_diff(simulated) <= simulated / 10, "{quantity:?}: {live}, simulated {simulated}");
    }
    let marked = |results: &Results, traffic| {
        let flows = results.flows.iter().filter(|flow| flow.traffic == traffic);
        flows.map(|flow| flow.marked_bytes).sum::<u64>()
    };
    assert!(marked(&live.results, 1) > 0);
    assert_eq!(marked(&live.results, 0), 0);
    assert!(live.results.ports.iter().zip(&simulated.ports).all(|(live, other)| live.port == other.port));
    assert!(live.results.flows.iter().filter(|flow| flow.traffic == 0).all(|flow| flow.fct_ns.is_some()));
}

#[test]
fn what_a_machine_does_not_carry_is_refused() {
    let mut graph = dumbbell(Span::from_ms(4), 200, None);
    graph.links.iter_mut().for_each(|link| link.rate = Rate::from_gbps(10));
    let plan = plan(graph, 100, vec![traffic("t", false, Connections::Fresh, one_by_one(None))]);
    let Some(_turn) = machine("refusing a plan") else { return };
    let error = narrows_testbed::run(&plan, 1, &Options::default(), None, &mut |_| true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "flows from left to right could go at 10000 Mbps; live runs carry 200 Mbps: scale the plan down"
    );
    let few = Options { most_hosts: 1, ..Options::default() };
    let error = narrows_testbed::run(&plan, 1, &few, None, &mut |_| true).unwrap_err();
    assert_eq!(error.to_string(), "the plan has 2 hosts; a live run may have 1");
    let mut unknown = plan.clone();
    unknown.network.links.iter_mut().for_each(|link| link.rate = Rate::from_mbps(100));
    let odd = Options { controllers: [("cubic".to_owned(), "nobody".to_owned())].into(), ..Options::default() };
    let error = narrows_testbed::run(&unknown, 1, &odd, None, &mut |_| true).unwrap_err();
    assert!(error.to_string().contains("no congestion controller nobody"), "{error}");
}
