//! QCN with the reaction point in the adapter: the queue stays where it is told to, whatever the transport does, and every frame
//! of a limited flow waits.

use crate::plans::run;
use narrows_core::units::Bytes;
use narrows_plan::{Pattern, Plan};
use narrows_results::Results;

fn plan(fabric: &str, host: &str, traffic: &str) -> Plan {
    let text = format!(
        "[topology.star]\nhosts = 9\nfabric = {{ rate = \"10Gbps\", delay = \"500ns\", {fabric} }}\n\
         host = {{ min-rto = \"10ms\", stack-delay = {{ tx = \"9500ns\", rx = \"24us\" }}, {host} }}\n\
         [[traffic]]\nname = \"long\"\nlong = {{ flows = 8 }}\nfrom = [\"h2\", \"h3\", \"h4\", \"h5\", \"h6\", \"h7\", \"h8\", \"h9\"]\n\
         to = \"h1\"\n{traffic}\n[[arm]]\nname = \"A\"\ncc = \"newreno\"\n\
         [run]\nend = \"400ms\"\nwarmup = \"100ms\"\n"
    );
    narrows_scenario::load_str(&text, &Default::default(), &Default::default())
        .unwrap_or_else(|error| panic!("{}\n{text}", error.render()))
        .plans
        .remove(0)
}

const QCN: &str =
    "limit = \"1MB\", congestion-point = { qcn = { set-point = \"66KB\", notify = \"source-datacenter\" } }";
const LIMITER: &str = "nic-limiter = { custom = { floor = \"100Kbps\" } }";

/// The mean queue towards the receiver, how much was dropped there, and the rate that it received at.
fn met(results: &Results, plan: &Plan) -> (f64, u64, f64) {
    let (place, _) = plan
        .network
        .links
        .iter()
        .enumerate()
        .find(|(_, link)| link.name.ends_with("->h1"))
        .expect("the receiver's link");
    let port = results.ports.iter().find(|port| port.port as usize == place).expect("its port");
    let drops = port.dropped_limit_packets + port.dropped_aqm_packets + port.dropped_pool_packets;
    (port.queue_mean_bytes, drops, port.sent_bytes as f64 * 8.0 / 0.3 / 1e9)
}

#[test]
fn limited_flows_fill_the_line_and_keep_the_queue_about_the_set_point() {
    let limited = plan(QCN, LIMITER, "");
    let results = run(&limited, 1);
    let (queue, drops, gbps) = met(&results, &limited);
    assert_eq!(drops, 0, "nothing overflows 1 MB");
    assert!((20_000.0..130_000.0).contains(&queue), "about 66 KB: {queue}");
    assert!(gbps > 8.0, "{gbps} Gbit/s");
    assert!(results.flows.iter().map(|flow| flow.near_source_cuts).sum::<u64>() > 8);
    // Without adapters that listen, TCP fills what there is.
    let alone = plan(QCN, "nic-limiter = \"off\"", "");
    assert!(met(&run(&alone, 1), &alone).0 > 2.0 * queue);
}

/// Eight senders without any congestion control, each at half of its line, are four times too much.
#[test]
fn datagrams_are_held_to_the_line_by_their_adapters() {
    let traffic = "transport = { datagram = { rate = \"5Gbps\" } }";
    let free = plan("limit = \"1MB\"", "", traffic);
    let unlimited = run(&free, 1);
    let (_, lost, _) = met(&unlimited, &free);
    let limited = plan(QCN, LIMITER, traffic);
    let results = run(&limited, 1);
    let (_, drops, gbps) = met(&results, &limited);
    assert!(lost > 100_000, "{lost}");
    assert!(drops < lost / 50, "{drops} of {lost}: at the switch hardly anything");
    assert!(gbps > 8.0, "{gbps} Gbit/s");
    // Their sockets' buffers fill, and the senders wait: nothing is lost in the adapter.
    let dropped = |results: &Results| -> u64 { results.flows.iter().filter_map(|flow| flow.dropped_bytes).sum() };
    assert!(dropped(&results) * 100 < dropped(&unlimited), "{} of {}", dropped(&results), dropped(&unlimited));
}

#[test]
fn who_is_never_notified_is_never_delayed() {
    let (off, on) = (plan("limit = \"1MB\"", "", ""), plan("limit = \"1MB\"", LIMITER, ""));
    assert_eq!(run(&off, 1).flows, run(&on, 1).flows);
}

/// A host's own port refuses what comes while its link is down: of datagrams that too is counted, and the run does not wait.
#[test]
fn datagrams_that_the_hosts_own_port_refuses_are_counted() {
    let text = "[topology.star]\nhosts = 3\nfabric = { rate = \"10Gbps\", limit = \"1MB\" }\n\
         [[traffic]]\nlong = { flows = 1, size = \"10MB\" }\nfrom = \"h2\"\nto = \"h1\"\n\
         transport = { datagram = { rate = \"1Gbps\" } }\n[[event]]\nat = \"5ms\"\nlink = \"host\"\noutage = \"5ms\"\n\
         [[arm]]\nname = \"A\"\ncc = \"newreno\"\n[run]\nend = \"200ms\"\ndrain = \"5s\"\n";
    let plan = narrows_scenario::load_str(text, &Default::default(), &Default::default())
        .unwrap_or_else(|error| panic!("{}", error.render()))
        .plans
        .remove(0);
    let results = run(&plan, 1);
    let flow = &results.flows[0];
    let dropped = flow.dropped_bytes.expect("known of a simulation");
    // 5 ms at 1 Gbit/s are 406 packets.
    assert!((400..420).contains(&flow.dropped_packets.expect("as above")), "{flow:?}");
    assert_eq!(flow.received_bytes + dropped, flow.size_bytes);
    assert!(results.ended_ns < 300_000_000, "{}", results.ended_ns);
}

/// What its adapter still holds when a flow has handed over its last packet leaves at the flow's rate too.
#[test]
fn a_flow_that_ends_does_not_empty_its_adapter_at_once() {
    let mut limited = plan(QCN, LIMITER, "transport = { datagram = { rate = \"5Gbps\" } }");
    for traffic in &mut limited.traffic {
        if let Pattern::List(flows) = &mut traffic.pattern {
            flows.iter_mut().for_each(|flow| flow.size = Some(Bytes::new(20_000_000)));
        }
    }
    let results = run(&limited, 1);
    let last = results.ports.iter().map(|port| port.queue_max_bytes).max().expect("ports");
    assert!(results.flows.iter().all(|flow| flow.fct_ns.is_some() && flow.dropped_packets == Some(0)));
    // Emptied at the line's rate, one adapter would add up to 208 KB to a queue that is held at 66 KB.
    assert!(last < 150_000, "{last}");
}

/// Limiters belong to pairs of hosts: a new connection to a host that others send too much to begins behind what waits there,
/// SYN included, and one of the same host to another one does not.
#[test]
fn a_new_connection_finds_the_limiter_of_its_pair() {
    let mut limited = plan(QCN, LIMITER, "");
    let long = limited.traffic[0].clone();
    let Pattern::List(flows) = &long.pattern else { panic!() };
    let (sender, receiver) = (flows[0].source, flows[0].destination);
    let other = (0..9).find(|host| ![sender, receiver].contains(host)).expect("nine hosts");
    let mut short = long.clone();
    short.name = "short".into();
    let at = narrows_core::units::Time::ZERO + narrows_core::units::Span::from_ms(100);
    let flow = |destination| {
        let mut flow = flows[0];
        (flow.at, flow.destination, flow.size) = (at, destination, Some(Bytes::new(15_000)));
        flow
    };
    short.pattern = Pattern::List(vec![flow(receiver), flow(other)]);
    limited.traffic.push(short);
    let results = run(&limited, 1);
    let handshake = |to: u32| {
        let flow = results.flows.iter().find(|flow| flow.destination == to && flow.size_bytes == 15_000);
        flow.and_then(|flow| flow.handshake_ns).expect("a connection of its own")
    };
    // 67 us of stacks, and what waits: up to 128 KB of the long flow, at an eighth of the line, 0.8 ms.
    assert!(handshake(receiver) > 300_000, "{}", handshake(receiver));
    assert!(handshake(other) < 120_000, "{}", handshake(other));
}

/// A flow of a single datagram is over, for its host, before any switch sees it: its adapter is told all the same.
#[test]
fn flows_of_a_single_packet_are_held_to_the_line_too() {
    let traffic = |limiter: &str| {
        let text = format!(
            "[topology.star]\nhosts = 9\nfabric = {{ rate = \"10Gbps\", delay = \"500ns\", limit = \"1MB\", congestion-point = \
             {{ qcn = {{ set-point = \"66KB\", notify = \"source-datacenter\" }} }} }}\nhost = {{ {limiter} }}\n\
             [[traffic]]\nname = \"short\"\narrivals = {{ poisson = {{ rate = \"2000000/s\" }} }}\nsize = {{ fixed = \"1400B\" }}\n\
             from = \"h*\"\nto = \"h1\"\ntransport = {{ datagram = {{ rate = \"5Gbps\" }} }}\n\
             [[arm]]\nname = \"A\"\ncc = \"newreno\"\n[run]\nend = \"50ms\"\nwarmup = \"25ms\"\n"
        );
        let mut experiment = narrows_scenario::load_str(&text, &Default::default(), &Default::default())
            .unwrap_or_else(|error| panic!("{}", error.render()));
        experiment.plans.remove(0)
    };
    let (free, limited) = (traffic(""), traffic(LIMITER));
    let (_, lost, _) = met(&run(&free, 1), &free);
    let (_, drops, gbps) = met(&run(&limited, 1), &limited);
    assert!(lost > 10_000, "twice what the line carries: {lost}");
    assert!(drops < lost / 10, "{drops} of {lost}");
    // `met` divides by 300 ms.
    assert!(gbps * 300.0 / 25.0 > 7.0, "{gbps}");
}
