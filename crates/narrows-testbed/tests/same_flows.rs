//! The same plan and seed have the same flows here as in the simulator, by name and in order. Needs no privilege.
#![cfg(target_os = "linux")]

use narrows_core::app::all_to_all::AllToAll;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Bytes, Rate, Span, Time};
use narrows_plan::flows::Name;
use narrows_plan::*;
use narrows_sim::Simulation;
use narrows_testbed::agent::Drawn;

fn star(hosts: u32) -> Graph {
    let mut nodes: Vec<Node> = (0..hosts).map(|host| Node::new(format!("h{host}"), NodeKind::Host)).collect();
    nodes.push(Node::new("s", NodeKind::Switch));
    let (rate, delay) = (Rate::from_mbps(100), Span::from_us(100));
    let link = |from: u32, to: u32| Link::new(format!("{from}->{to}"), (from, to), Role::Host, rate, delay);
    Graph {
        nodes,
        links: (0..hosts).flat_map(|host| [link(host, hosts), link(hosts, host)]).collect(),
        ..Graph::default()
    }
}

#[test]
fn the_same_seed_has_the_same_flows_as_in_the_simulator() {
    let traffic = |name: &str, pattern| Traffic {
        name: name.into(),
        controller: ControllerChoice::new("cubic", false),
        profile: Profile::LINUX_6,
        service_class: 0,
        transport: Default::default(),
        connections: Connections::Fresh,
        pattern,
    };
    let at = |ms| Time::ZERO + Span::from_ms(ms);
    let spread =
        |ms, to| FlowStart { spread: Span::from_ms(30), ..FlowStart::new(at(ms), 0, to, Some(Bytes::new(9_000))) };
    let open = Open {
        mean_interarrival: Span::from_ms(5),
        sigma: None,
        on_off: None,
        sizes: narrows_scenario::traffic::sizes::built_in("web-search").unwrap(),
        pairs: Pairs::Between { sources: vec![0, 1, 2], destinations: vec![1, 2, 3] },
        exact: false,
        request: Some(Bytes::new(100)),
    };
    let incast = Incast {
        client: 3,
        servers: vec![0, 1, 2],
        request: Bytes::new(1_600),
        response: Bytes::new(2_000),
        repeats: 0,
        mean_interarrival: Some(Span::from_ms(20)),
        start: at(10),
        jitter: Span::ZERO,
    };
    // Messages of one step begin in the order of their names.
    let all = AllToAll { hosts: vec![3, 1, 0], size: Bytes::new(7_000), in_rounds: false, repeats: 1, start: at(15) };
    let plan = Plan {
        experiment: "t".into(),
        arm: "t".into(),
        axes: vec![],
        declared: vec![],
        network: star(4),
        traffic: vec![
            traffic("open", Pattern::Open(open)),
            traffic("list", Pattern::List(vec![spread(40, 1), spread(20, 2), spread(30, 3)])),
            traffic("incast", Pattern::App(Kind::Incast(incast))),
            traffic("all-to-all", Pattern::App(Kind::AllToAll(all))),
        ],
        schedule: Schedule { end: at(500), drain: Span::from_secs(20), warmup: Span::ZERO },
        sampling: Sampling::default(),
    };
    let mut simulation = Simulation::new(&plan, 7).unwrap();
    while simulation.advance(1 << 20) {}
    let rows = simulation.finish().flows;
    assert!(rows.len() > 100, "{}", rows.len());
    let drawn = Drawn::new(&plan, 7);
    let mut next = [0; 4];
    for row in rows {
        let name = Name { traffic: row.traffic, sequence: next[row.traffic as usize] };
        next[row.traffic as usize] += 1;
        let flow = drawn.flow(name).unwrap();
        let at_ns = if row.traffic >= 2 { 0 } else { row.start_ns };
        assert_eq!(
            (flow.source, flow.destination, flow.size.unwrap().get(), flow.at.as_ns()),
            (row.source, row.destination, row.size_bytes, at_ns)
        );
    }
    for (traffic, sequence) in (0..).zip(next).filter(|&(traffic, _)| traffic != 2) {
        assert_eq!(drawn.flow(Name { traffic, sequence }), None, "there are no others");
    }
}
