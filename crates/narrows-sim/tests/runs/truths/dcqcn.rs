//! DCQCN's rate control, over TCP and over RDMA: what flows make of a link.

use narrows_core::queue::AqmConfig;
use narrows_core::queue::aqm::Size;
use narrows_core::transport::Transport;
use narrows_core::transport::rdma::{Config, Recovery};
use narrows_core::units::{Bytes, Rate, Span};
use narrows_plan::{Connections, Pattern, Plan};

use super::measure::{GOODPUT, goodputs, jain, queue_mean};
use crate::plans::{Dumbbell, flow, run};

const LINE: Rate = Rate::from_gbps(40);

/// The paper's switch at 40 Gbit/s [DCQCN §5], and nothing in the way but it; `flows` begin 5 ms apart.
fn plan(flows: u32, end: Span) -> (Plan, usize) {
    let network = Dumbbell {
        pairs: flows,
        access: LINE,
        rate: LINE,
        rtt: Span::from_us(40),
        limit: 3_000,
        ..Dumbbell::default()
    };
    let starts = (0..flows).map(|pair| flow(Span::from_ms(5) * u64::from(pair), pair, flows + pair, None));
    let mut plan = network.plan("dcqcn", true, end, Pattern::List(starts.collect()));
    plan.network.links[network.bottleneck()].aqm = Some(AqmConfig::Red(narrows_core::queue::aqm::red::Config {
        min: Size::Bytes(Bytes::new(5_000)),
        max: Size::Bytes(Bytes::new(200_000)),
        // RED spaces its marks by 1 to 1/p packets, which is twice as often as p: 0.5 % for the paper's 1 %.
        max_probability: 328,
        weight_shift: 0,
        gentle: false,
        ecn: true,
        marks_only: true,
    }));
    (plan, network.bottleneck())
}

/// Flows that come one after the other to a link of the line rate share it equally and fill it, and nothing is lost: over what
/// follows the first 100 ms a Jain index of 0.99 and 97 % of the link's goodput.
///
/// The queue rests where marks are as frequent as the fluid model has them with C and R_AI in packets per second and B in
/// packets, p = ∛(R_AI·N²/(55 µs·C²)·(1/B + N/(55 µs·C))²) [Zhu 2016 eq. 14], to 10 %. With twice as many flows it would be so
/// close to `K_max` that its swings reach the step there, which the model has not.
#[test]
fn flows_that_join_share_the_link_and_its_queue_is_that_of_the_fluid_model() {
    let timeout = Span::from_ms(67);
    let cnp_interval = Some(Span::from_us(50));
    let rdma = Transport::Rdma(Config { recovery: Recovery::GoBackN, timeout, ack_every: 8, cnp_interval });
    for (flows, transport) in [(2, Transport::Tcp), (4, Transport::Tcp), (2, rdma), (4, rdma)] {
        let (mut plan, port) = plan(flows, Span::from_ms(300));
        plan.schedule.warmup = Span::from_ms(100);
        plan.traffic[0].transport = transport;
        if !transport.is_tcp() {
            plan.traffic[0].connections = Connections::FreshEstablished;
        }
        let results = run(&plan, 1);
        let shares = goodputs(&results);
        let used = shares.iter().sum::<f64>() / (GOODPUT * LINE.as_bps() as f64);
        assert!(jain(&shares) >= 0.99, "{flows}: {shares:?}");
        assert!(used >= 0.97, "{flows}: {used}");
        assert_eq!(results.flows.iter().map(|flow| flow.retransmitted_bytes).sum::<u64>(), 0, "{flows}");
        let n = f64::from(flows);
        let (capacity, timer, additive, cycle) = (40e9 / 12e3, 55e-6, 40e6 / 12e3, 10e6 / 1_500.0);
        let by_count_or_time = 1.0 / cycle + n / (timer * capacity);
        let p = (additive * n * n / (timer * capacity * capacity) * by_count_or_time * by_count_or_time).cbrt();
        let model = 5e3 + p / 0.01 * 195e3;
        let queue = 1_500.0 * queue_mean(&results.ports[port]);
        assert!((queue / model - 1.0).abs() < 0.1, "{flows}: {queue} bytes, {model} by the model");
    }
}
