//! What is counted, for whom, and when.

use crate::plans::{Dumbbell, at, flow, run};
use narrows_core::app::all_to_all::AllToAll;
use narrows_core::queue::SchedulerConfig;
use narrows_core::queue::scheduler::drr;
use narrows_core::units::{Bytes, Rate, Span};
use narrows_plan::flows::round_times;
use narrows_plan::{Connections, FlowStart, Incast, Kind, Pattern, Role, SampledFlow, Traffic};
use narrows_results::Quantity;

fn asked(start: Span, source: u32, destination: u32, size: Option<u64>) -> FlowStart {
    FlowStart { request: Some(Bytes::new(100)), ..flow(start, source, destination, size) }
}

#[test]
fn what_was_delivered_before_the_warmup_ended_does_not_count_after_it() {
    let network = Dumbbell::default();
    let flows = vec![flow(Span::from_ms(1), 0, 1, Some(100_000)), flow(Span::from_ms(600), 0, 1, Some(50_000))];
    let results = run(&network.plan("newreno", false, Span::from_secs(1), Pattern::List(flows)), 1);
    let counted: Vec<_> = results.flows.iter().map(|flow| flow.delivered_after_warmup_bytes).collect();
    assert_eq!(counted, [0, 50_000]);
}

/// Three flows one after the other over one connection, of which the middle one is chosen, by place and by number.
#[test]
fn a_chosen_flow_with_a_size_is_sampled_while_it_goes_on() {
    let network = Dumbbell::default();
    let at = [1, 200, 400].map(|ms| flow(Span::from_ms(ms), 0, 1, Some(2_000_000)));
    let mut plan = network.plan("newreno", false, Span::from_secs(1), Pattern::List(at.to_vec()));
    plan.traffic[0].connections = Connections::Persistent { pool: 1 };
    plan.sampling.goodput = Span::from_ms(1);
    for choice in [SampledFlow::One { traffic: 0, sequence: 1 }, SampledFlow::Number(1)] {
        plan.sampling.flows = vec![choice];
        let results = run(&plan, 1);
        let rows = || results.series.iter().filter(|row| !row.quantity.is_of_port());
        assert!(rows().all(|row| row.entity == 1 && row.time_ns >= 200_000_000));
        let goodput: f64 = rows().filter(|row| row.quantity == Quantity::GoodputBps).map(|row| row.value).sum();
        assert!((goodput / 8.0 / 1_000.0 - 2e6).abs() < 100.0, "{goodput}");
        let windows = rows().filter(|row| row.quantity == Quantity::WindowPackets);
        let done_ns = 200_000_000 + results.flows[1].fct_ns.unwrap();
        // The sender knows an acknowledgement's way after the last byte came.
        assert!(windows.clone().count() > 5 && windows.clone().all(|row| row.time_ns < done_ns + 50_000_000));
    }
}

#[test]
fn a_stopped_flow_keeps_its_own_bytes_when_its_connection_carries_another() {
    let network = Dumbbell::default();
    let stopped = FlowStart { stop: Some(at(Span::from_ms(200))), ..flow(Span::from_ms(1), 0, 1, None) };
    let flows = vec![stopped, flow(Span::from_ms(500), 0, 1, None)];
    let mut plan = network.plan("newreno", false, Span::from_secs(1), Pattern::List(flows));
    plan.traffic[0].connections = Connections::Persistent { pool: 1 };
    plan.schedule.warmup = Span::ZERO;
    let results = run(&plan, 1);
    assert_eq!(results.flows[0].connection, results.flows[1].connection);
    // At most 0.2 s of goodput at 1 Gbps and a queue of 1,000 packets.
    assert!(results.flows[0].size_bytes < 25_500_000, "{}", results.flows[0].size_bytes);
    let late = results.series.iter().filter(|row| row.quantity == Quantity::GoodputBps && row.entity == 0);
    assert!(late.filter(|row| row.time_ns > 500_000_000).all(|row| row.value == 0.0));
    let port = &results.ports[network.bottleneck()];
    let sum: u64 = results.flows.iter().map(|flow| flow.delivered_after_warmup_bytes).sum();
    assert!(sum <= port.sent_bytes, "{sum} of {}", port.sent_bytes);
}

#[test]
fn the_bins_of_a_port_add_up_to_what_it_sent() {
    let network = Dumbbell::default();
    let mut plan = network.long("newreno", false, Span::from_secs(1));
    plan.sampling.throughput = Span::from_ms(4);
    plan.schedule.warmup = Span::from_ms(500);
    let results = run(&plan, 1);
    let port = &results.ports[network.bottleneck()];
    let bins: Vec<_> = (results.series.iter())
        .filter(|row| row.quantity == Quantity::SentBps && row.entity == port.port)
        .map(|row| (row.time_ns, row.value * 0.004 / 8.0))
        .collect();
    assert_eq!(bins.len(), 250, "from the beginning, warm-up included");
    let after: f64 = bins.iter().filter(|(time, _)| *time > 500_000_000).map(|(_, bytes)| bytes).sum();
    assert!((after - port.sent_bytes as f64).abs() < 1.0, "{after} of {}", port.sent_bytes);
    // The line carries 38 bytes more than each packet of 1500.
    assert!(bins.iter().all(|(_, bytes)| *bytes <= 500_000.0 * 1500.0 / 1538.0 + 1_500.0));
}

#[test]
fn what_ports_drop_is_counted_for_the_flow_that_it_is_of() {
    let network = Dumbbell { pairs: 2, limit: 40, ..Dumbbell::default() };
    let sizes = [3_000_000, 5_000_000];
    let flows = vec![flow(Span::ZERO, 0, 2, Some(sizes[0])), flow(Span::from_us(300), 1, 3, Some(sizes[1]))];
    let mut plan = network.plan("newreno", false, Span::from_secs(5), Pattern::List(flows));
    plan.schedule.warmup = Span::ZERO;
    let results = run(&plan, 1);
    assert!(results.flows.iter().all(|flow| flow.fct_ns.is_some_and(|fct| fct < 4_000_000_000)));
    let dropped = results.flows.iter().map(|flow| flow.dropped_bytes.expect("a simulator knows"));
    let [one, other] = dropped.collect::<Vec<_>>()[..] else { panic!("two flows") };
    assert!(one > 0 && other > 0, "{one} and {other}");
    // All are full segments but the last of each flow, and nothing that is dropped is not retransmitted.
    let packets = results.ports[network.bottleneck()].dropped_limit_packets;
    assert!((packets * 1448).saturating_sub(2 * 1448) <= one + other && one + other <= packets * 1448, "{packets}");
    for flow in &results.flows {
        assert!(flow.retransmitted_bytes >= flow.dropped_bytes.unwrap_or(0), "{flow:?}");
    }
}

#[test]
fn classes_share_a_bottleneck_by_weight_both_ways() {
    let network = Dumbbell { pairs: 2, rtt: Span::from_ms(1), limit: 1000, ..Dumbbell::default() };
    // One flow each way and class, so that acknowledgements of a class wait behind data of their own class.
    let mut plan = network.plan("newreno", false, Span::from_secs(4), Pattern::List(Vec::new()));
    let drr = SchedulerConfig::Drr(drr::Config { weights: vec![5, 1] });
    for link in plan.network.links.iter_mut().filter(|link| link.role == Role::Fabric) {
        link.scheduler = Some(drr.clone());
    }
    let plain = plan.traffic.remove(0);
    for class in 0..2 {
        let (left, right) = (u32::from(class), 2 + u32::from(class));
        let flows = vec![flow(Span::ZERO, left, right, None), flow(Span::ZERO, right, left, None)];
        let (name, pattern) = (format!("class-{class}"), Pattern::List(flows));
        plan.traffic.push(Traffic { name, service_class: class, pattern, ..plain.clone() });
    }
    let results = run(&plan, 1);
    let delivered: Vec<f64> = results.flows.iter().map(|flow| flow.delivered_after_warmup_bytes as f64).collect();
    for source in [0, 2] {
        let of = |host: u32| {
            let flow = results.flows.iter().position(|flow| flow.source == host).expect("each host sends");
            delivered[flow]
        };
        let ratio = of(source) / of(source + 1);
        assert!((ratio / 5.0 - 1.0).abs() < 0.03, "{ratio}");
    }
}

#[test]
fn a_stop_before_the_request_arrives_holds() {
    let network = Dumbbell::default();
    let flows = vec![FlowStart { stop: Some(at(Span::from_ms(2))), ..asked(Span::from_ms(1), 1, 0, None) }];
    let results = run(&network.plan("newreno", false, Span::from_ms(500), Pattern::List(flows)), 1);
    assert_eq!(results.flows[0].size_bytes, 0);
}

#[test]
fn a_flow_without_a_size_ends_with_the_arrivals() {
    let network = Dumbbell { pairs: 2, ..Dumbbell::default() };
    // The second flow is not done by then: the run goes on through the drain.
    let flows = vec![flow(Span::ZERO, 0, 2, None), flow(Span::from_ms(990), 1, 3, Some(5_000_000))];
    let results = run(&network.plan("newreno", false, Span::from_secs(1), Pattern::List(flows)), 1);
    assert!(results.flows[1].fct_ns.is_some());
    assert!(results.ended_ns > 1_000_000_000);
    let port = &results.ports[network.bottleneck()];
    let measured = results.flows.iter().map(|flow| flow.delivered_after_warmup_bytes).sum::<u64>() as f64 * 8.0;
    assert!(measured <= 1e9 * port.measured_ns as f64 / 1e9, "{measured} bits in {} ns", port.measured_ns);
    assert!(results.series.iter().all(|row| row.time_ns <= 1_000_000_000));
}

#[test]
fn what_waits_behind_a_hole_when_the_warmup_ends_is_not_counted_twice() {
    let network = Dumbbell { rtt: Span::from_ms(40), ..Dumbbell::default() };
    for seed in 1..=20 {
        let mut plan = network.long("bbr", false, Span::from_ms(600));
        plan.schedule.warmup = Span::from_ms(550);
        plan.network.links[network.bottleneck()].loss = u32::MAX / 100;
        let results = run(&plan, seed);
        // 50 ms of 1 Gbit/s, 1538 bytes a packet, of which 1448 are payload; packets at both ends may count whole.
        let most = (50e-3_f64 / (1_538.0 * 8e-9) + 2.0) * 1_448.0;
        let measured = results.flows[0].delivered_after_warmup_bytes as f64;
        assert!(measured <= most, "{measured} bytes in 50 ms, where {most} fit, of seed {seed}");
        assert!(measured > 0.3 * most, "{measured} bytes of seed {seed}: the flow should be fast");
    }
}

#[test]
fn the_sample_at_the_end_is_taken_of_everything() {
    let network = Dumbbell::default();
    let results = run(&network.long("newreno", false, Span::from_secs(1)), 1);
    let count = |quantity| results.series.iter().filter(|row| row.quantity == quantity).count();
    assert_eq!((count(Quantity::GoodputBps), count(Quantity::WindowPackets)), (10, 1_000));
    assert_eq!(count(Quantity::QueueBytes), 2 * 2_000);
}

fn incast(network: &Dumbbell, repeats: u32) -> Pattern {
    Pattern::App(Kind::Incast(Incast {
        client: 0,
        servers: (network.pairs..2 * network.pairs).collect(),
        request: Bytes::new(200),
        response: Bytes::new(20_000),
        repeats,
        mean_interarrival: None,
        start: at(Span::ZERO),
        jitter: Span::from_us(300),
    }))
}

#[test]
fn a_closed_loop_that_is_not_done_ends_with_the_arrivals() {
    let network = Dumbbell { pairs: 4, ..Dumbbell::default() };
    let mut plan = network.plan("newreno", false, Span::from_ms(300), incast(&network, 1_000));
    plan.traffic[0].connections = Connections::Persistent { pool: 1 };
    let results = run(&plan, 1);
    assert!(results.requests.len() > 5 && results.requests.iter().all(|row| row.completion_ns.is_some()));
    assert!(results.ended_ns < 400_000_000, "{}", results.ended_ns);
}

#[test]
fn a_host_of_an_exchange_goes_on_when_it_has_received_everything() {
    let network = Dumbbell { pairs: 2, ..Dumbbell::default() };
    for (in_rounds, size) in [(false, 20_000), (true, 20_000), (true, 1)] {
        let (hosts, start) = (vec![2, 0, 3, 1], at(Span::from_ms(3)));
        let all = AllToAll { hosts: hosts.clone(), size: Bytes::new(size), in_rounds, repeats: 4, start };
        let results = run(&network.plan("newreno", false, Span::from_secs(2), Pattern::App(Kind::AllToAll(all))), 1);
        assert_eq!(results.flows.len(), 4 * 4 * 3);
        // The message from the host at one place to that at another, in the iteration of this number.
        let message = |iteration: usize, from: usize, to: usize| {
            let mut own = results.flows.iter().filter(|row| (row.source, row.destination) == (hosts[from], hosts[to]));
            let row = own.nth(iteration).expect("a message of each pair in every iteration");
            (row.start_ns, row.start_ns + row.fct_ns.expect("it is whole"))
        };
        let mut expected = [3_000_000; 4];
        for iteration in 0..4 {
            for rounds in if in_rounds { vec![1..=1, 2..=2, 3..=3] } else { vec![1..=3] } {
                let mut next = expected;
                for (place, round) in (0..4).flat_map(|place| rounds.clone().map(move |round| (place, round))) {
                    // Starts and durations are whole nanoseconds, rounded down.
                    let begun = message(iteration, place, (place + round) % 4).0;
                    assert!((expected[place]..=expected[place] + 1).contains(&begun), "{begun} {}", expected[place]);
                    let (_, received) = message(iteration, (place + 4 - round) % 4, place);
                    next[place] = next[place].max(received);
                }
                expected = next;
            }
        }
    }
}

#[test]
fn queries_at_random_times_do_not_wait_for_each_other() {
    let network = Dumbbell { pairs: 4, ..Dumbbell::default() };
    let Pattern::App(Kind::Incast(closed)) = incast(&network, 0) else { unreachable!() };
    let mean = Span::from_us(500);
    let open = Incast { mean_interarrival: Some(mean), ..closed };
    let mut plan = network.plan("newreno", false, Span::from_ms(300), Pattern::App(Kind::Incast(open.clone())));
    plan.traffic[0].connections = Connections::Persistent { pool: 1 };
    let results = run(&plan, 1);
    let asked: Vec<u64> =
        round_times(&open, 1, &plan.traffic[0].name, &plan.schedule).unwrap().map(|at| at.as_ns()).collect();
    assert!((500..700).contains(&asked.len()), "{}", asked.len());
    assert_eq!(results.requests.iter().map(|row| row.start_ns).collect::<Vec<_>>(), asked);
    assert!(results.requests.iter().all(|row| row.completion_ns.is_some() && row.responses == 4));
    assert!(
        results
            .requests
            .windows(2)
            .any(|pair| { pair[1].start_ns < pair[0].start_ns + pair[0].completion_ns.expect("asserted above") })
    );
    // The last answer of a query completes it.
    for row in &results.requests {
        let own = results.flows.iter().filter(|flow| flow.request == Some(row.request));
        let last = own.map(|flow| flow.start_ns + flow.fct_ns.expect("every query is answered")).max();
        assert_eq!(last, Some(row.start_ns + row.completion_ns.expect("asserted above")));
    }
}

#[test]
fn every_finished_flow_keeps_its_counts_when_acknowledgements_are_lost() {
    let network = Dumbbell { pairs: 4, ..Dumbbell::default() };
    let mut plan = network.plan("newreno", false, Span::from_secs(30), incast(&network, 60));
    plan.traffic[0].connections = Connections::Persistent { pool: 1 };
    let reverse = network.bottleneck();
    plan.network.links[reverse].loss = u32::MAX / 8;
    let results = run(&plan, 1);
    assert!(results.flows.len() > 100);
    for flow in results.flows.iter().filter(|flow| flow.fct_ns.is_some()) {
        assert!(flow.rtt_mean_ns.is_some() || flow.timeouts > 0, "{flow:?}");
    }
}

/// Whatever packet is in service when the measurement begins and ends: a line that is never idle is busy all the time, and no
/// longer.
#[test]
fn a_line_that_is_never_idle_is_fully_used_in_any_window() {
    let network = Dumbbell { rate: Rate::from_mbps(100), limit: 200, ..Dumbbell::default() };
    // A full packet takes 123 us.
    for microseconds in (0..40).map(|step| 17 * step) {
        let mut plan = network.long("newreno", false, Span::from_ms(600));
        plan.schedule.warmup = Span::from_ms(1_000) + Span::from_us(microseconds);
        plan.schedule.end = at(plan.schedule.warmup + Span::from_us(230));
        let port = &run(&plan, 1).ports[network.bottleneck()];
        assert!(port.queue_mean_bytes > 3_000.0, "{port:?}");
        assert!(port.utilisation > 1.0 - 1e-6 && port.utilisation <= 1.0, "{port:?}");
    }
}
