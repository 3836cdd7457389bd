//! DCTCP: its steady state.

use narrows_core::cc::Controller;
use narrows_core::units::{Rate, Span};
use narrows_plan::Pattern;
use narrows_results::Quantity;
use narrows_sim::Simulation;

use super::measure::{product, quantile, series};
use crate::plans::{Dumbbell, flow, run};

/// N long flows that begin together at 10 Gbit/s and 100 µs.
fn incast(n: u32, k: u64) -> (Dumbbell, narrows_plan::Plan) {
    let network = Dumbbell {
        pairs: n,
        access: Rate::from_gbps(100),
        rate: Rate::from_gbps(10),
        rtt: Span::from_us(100),
        limit: 5_000,
        mark_at: Some(k),
        ..Dumbbell::default()
    };
    let flows = (0..n).map(|pair| flow(Span::from_ns(u64::from(pair)), pair, n + pair, None));
    let mut plan = network.plan("dctcp", true, Span::from_ms(200), Pattern::List(flows.collect()));
    plan.sampling.queues = Span::from_us(5);
    plan.sampling.windows = Span::ZERO;
    (network, plan)
}

/// [DCTCP §3.3] for N synchronised flows: W* = (C·RTT + K)/N, α = √(2/W*), Q_max = K + N, amplitude A = ½·√(2N(C·RTT + K)),
/// each event answered with one cut.
///
/// - Q_max within a packet: the one in service counts.
/// - A window cut while it is full is marked again at the beginning of the next round, for that one's first packets see the
///   queue that the cut has not drained yet: up to two cuts for an event. With two, D = W*·α and α = 1/D = √(1/W*), and the
///   amplitude is √2·A: these are the other ends of the ranges. N more for the fractions of packets that windows round.
///   For N = 40 windows are of three packets, where α = √(2/W*) is not valid: the exact root of
///   α²(1−α/4) = (2W*+1)/(W*+1)² is 0.72.
#[test]
fn dctcp_swings_as_the_analysis_says() {
    for (n, root) in [(2, None), (10, None), (40, Some(0.72))] {
        let (network, plan) = incast(n, 40);
        let mut simulation = Simulation::new(&plan, 1).unwrap();
        let mut alphas = Vec::new();
        while simulation.advance(1 << 10) {
            if simulation.progress().now.as_ns() > 50_000_000 {
                for flow in 0..n {
                    if let Some(Controller::Dctcp(dctcp)) = simulation.controller(flow) {
                        alphas.push(dctcp.alpha() as f64 / 1024.0);
                    }
                }
            }
        }
        let results = simulation.finish();
        let port = &results.ports[network.bottleneck()];
        let most = port.queue_max_bytes as f64 / 1500.0;
        assert!((most - (40 + n) as f64).abs() <= 1.0, "{n} flows: {most}");

        let flows = f64::from(n);
        let room = product(&network) + 40.0;
        let root = root.unwrap_or((2.0 * flows / room).sqrt());
        let alpha = alphas.iter().sum::<f64>() / alphas.len() as f64;
        assert!(((flows / room).sqrt().min(root)..=root).contains(&alpha), "{n} flows: {alpha}");

        let bottleneck = u32::try_from(network.bottleneck()).unwrap();
        let queue = series(&results, Quantity::QueueBytes, bottleneck, 0.05);
        let queue: Vec<f64> = queue.iter().map(|(_, bytes)| bytes / 1500.0).collect();
        let swing = quantile(&queue, 0.99) - quantile(&queue, 0.01);
        let amplitude = 0.5 * (2.0 * flows * room).sqrt();
        assert!((amplitude..=2_f64.sqrt() * amplitude + flows).contains(&swing), "{n} flows: {swing}");
        assert!(port.utilisation > 0.999, "{}", port.utilisation);
    }
}

/// Above K = C·RTT/7, 12 packets here, the queue never runs empty, whatever the number of flows; the worst is
/// N = (C·RTT + K)/8, 12 [DCTCP eq. 13]. With two cuts for an event, as above, the bound moves to C·RTT/3, 28 packets: full
/// at 30, and nearly so at 13, for windows are of five packets there. At 1 the link idles.
#[test]
fn dctcp_needs_a_seventh_of_the_product_to_fill_the_link() {
    for n in [2, 12, 20] {
        let utilisation = |k| {
            let (network, plan) = incast(n, k);
            run(&plan, 1).ports[network.bottleneck()].utilisation
        };
        assert!(utilisation(30) > 0.9999, "{n} flows");
        assert!(utilisation(13) > 0.985, "{n} flows");
        assert!(utilisation(1) < 0.97, "{n} flows");
    }
}
