//! TCP with packets of other sizes than Ethernet's, against closed forms.

use crate::plans::{Dumbbell, flow, run};
use narrows_core::packet::Mtu;
use narrows_core::units::{Bytes, Rate, Span};
use narrows_plan::{Connections, Pattern, Plan};

const MTUS: [u16; 5] = [576, 1_500, 4_096, 9_000, 9_216];

fn plan(network: &Dumbbell, mtu: u16, pattern: Pattern) -> Plan {
    let mut plan = network.plan("newreno", false, Span::from_ms(200), pattern);
    plan.network.mtu = Mtu::new(mtu).expect("in range");
    plan.traffic[0].connections = Connections::FreshEstablished;
    plan.schedule.warmup = Span::ZERO;
    plan
}

#[test]
fn goodput_of_a_full_link_is_the_payloads_part_of_the_wire() {
    for mtu in MTUS {
        let network = Dumbbell { rtt: Span::from_us(100), ..Dumbbell::default() };
        let mut plan = plan(&network, mtu, Pattern::List(vec![flow(Span::ZERO, 0, 1, None)]));
        // A window that fills the link and overflows no queue.
        plan.traffic[0].profile.receive_buffer = 200_000;
        plan.schedule.warmup = Span::from_ms(50);
        let results = run(&plan, 1);
        let goodput = results.flows[0].delivered_after_warmup_bytes as f64 * 8.0 / 150e-3;
        let expected = 1e9 * f64::from(mtu - 52) / f64::from(mtu + 38);
        assert!((goodput / expected - 1.0).abs() < 1e-3, "{mtu}: {goodput} {expected}");
    }
}

#[test]
fn a_flow_of_one_window_takes_the_time_of_its_packets() {
    for mtu in MTUS {
        let network = Dumbbell { rate: Rate::from_gbps(10), ..Dumbbell::default() };
        let payload = u64::from(mtu) - 52;
        // Ten full segments are the initial window: they leave at once and cross three links of 10 Gbps.
        let plan = plan(&network, mtu, Pattern::List(vec![flow(Span::ZERO, 0, 1, Some(10 * payload))]));
        let results = run(&plan, 1);
        let each = Rate::from_gbps(10).time_for(Bytes::new(u64::from(mtu) + 38));
        let expected = each * 12 + Span::from_ms(5);
        let row = &results.flows[0];
        assert_eq!((row.fct_ns, row.ideal_fct_ns), (Some(expected.as_ns()), expected.as_ns()), "{mtu}");
        assert_eq!(results.ports[network.bottleneck()].sent_packets, 10);
    }
}

#[test]
fn queues_are_as_long_as_their_packets() {
    for mtu in [1_500_u16, 9_000] {
        let network = Dumbbell { limit: 20, ..Dumbbell::default() };
        let plan = plan(&network, mtu, Pattern::List(vec![flow(Span::ZERO, 0, 1, Some(20_000_000))]));
        let results = run(&plan, 1);
        let port = &results.ports[network.bottleneck()];
        assert_eq!(port.queue_max_bytes, 20 * u64::from(mtu));
        assert!(port.dropped_limit_packets > 0 && results.flows[0].fct_ns.is_some());
    }
}
