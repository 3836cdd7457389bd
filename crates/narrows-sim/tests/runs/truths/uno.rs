//! Uno: shares of flows whose RTTs differ, behind a phantom queue and behind a queue of the port's own.

use narrows_core::cc::Value;
use narrows_core::queue::AqmConfig;
use narrows_core::queue::aqm::{Size, phantom, threshold};
use narrows_core::units::{Packets, Rate, Span};
use narrows_plan::{ControllerChoice, Pattern, Plan};
use narrows_results::PortRow;

use super::measure::{goodputs, jain, queue_mean};
use crate::plans::{Dumbbell, flow, run, set};

/// Two flows inside a datacenter, of 100 µs, and two of `longer` more, over one port of 10 Gbit/s.
fn plan(aqm: AqmConfig, longer: Span, end: Span) -> (Dumbbell, Plan) {
    let network = Dumbbell {
        pairs: 4,
        access: Rate::from_gbps(10),
        rate: Rate::from_gbps(10),
        rtt: Span::from_us(100),
        limit: 20_000,
        ..Dumbbell::default()
    };
    let flows = (0..4).map(|pair| flow(Span::from_us(u64::from(pair) * 137), pair, 4 + pair, None));
    let mut plan = network.plan("uno", true, end, Pattern::List(flows.collect()));
    plan.network.links[network.bottleneck()].aqm = Some(aqm);
    for host in 2..4 {
        for link in &mut plan.network.links[2 * host..2 * host + 2] {
            link.delay = longer.div(2);
        }
    }
    plan.schedule.warmup = end.div(2);
    set(&mut plan, "intra-rtt", Value::Span(Span::from_us(105)));
    (network, plan)
}

fn phantom(packets: u64, drain: u64) -> AqmConfig {
    let mark_at = Size::Packets(Packets::new(packets));
    AqmConfig::Phantom(phantom::Config { mark_at, drain, at_arrival: true })
}

/// The goodput of each flow, the shorter RTTs first, and the port.
fn measure(aqm: AqmConfig, controller: &str) -> (Vec<f64>, PortRow) {
    let (network, mut plan) = plan(aqm, Span::from_ms(2), Span::from_secs(1));
    if controller != "uno" {
        plan.traffic[0].controller = ControllerChoice::new(controller, true);
    }
    let results = run(&plan, 1);
    (goodputs(&results), results.ports[network.bottleneck()].clone())
}

/// Reductions in steps of one length give flows of every RTT one share with equal marking probability [Uno §4.1.1], and a phantom
/// queue that drains at 0.9 of the rate keeps the port's own queue short. DCTCP's flows, which reduce once in an RTT of their own,
/// share unevenly.
#[test]
fn behind_a_phantom_queue_flows_of_twenty_times_the_rtt_have_equal_shares() {
    let (shares, port) = measure(phantom(60, 58_982), "uno");
    assert!(jain(&shares) > 0.99, "{shares:?}");
    assert!((0.8..0.901).contains(&port.utilisation), "{}", port.utilisation);
    assert!(queue_mean(&port) < 5.0, "{}", queue_mean(&port));
    let (others, _) = measure(phantom(60, 58_982), "dctcp");
    assert!(jain(&others) < 0.7, "{others:?}");
}

/// A queue of 28 packets, 34 µs, is a third of the shorter RTT and 1.6 % of the longer: flows of the longer take the marks for those
/// of a phantom queue, and make 0.3 of the reduction. It may be more than 1/0.3 of the share, as the queue lengthens the shorter RTT.
#[test]
fn behind_a_queue_that_long_rtts_do_not_show_they_get_three_times_the_share() {
    let (shares, port) = measure(threshold::Config::at(60), "uno");
    let ratio = (shares[2] + shares[3]) / (shares[0] + shares[1]);
    assert!((2.5..1.0 / 0.3 + 0.1).contains(&ratio), "{shares:?}");
    assert!(port.utilisation > 0.97, "{}", port.utilisation);
}

/// The window is the bandwidth-delay product of the path that data take, rounded down to whole packets: a lone flow fills its line but
/// for less than a packet of some ten.
#[test]
fn alone_it_fills_a_line_without_a_queue() {
    for (rate, rtt) in [(Rate::from_gbps(1), Span::from_us(100)), (Rate::from_gbps(10), Span::from_ms(2))] {
        let network = Dumbbell { access: rate, rate, rtt, ..Dumbbell::default() };
        let mut plan = network.long("uno", true, Span::from_ms(400));
        plan.schedule.warmup = Span::from_ms(100);
        let port = run(&plan, 1).ports[network.bottleneck()].clone();
        assert!(port.utilisation > 0.9, "{rate} {rtt}: {}", port.utilisation);
        assert!(queue_mean(&port) < 1.5, "{rate} {rtt}: {}", queue_mean(&port));
    }
}
