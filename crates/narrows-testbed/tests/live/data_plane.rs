//! What the network of a plan does to the packets of real stacks.

use std::time::Duration;

use narrows_core::units::Span;
use narrows_testbed::emulator::Observed;

use crate::support::{BOTTLENECK, dumbbell, machine, ping, transfer, with_network};

fn report(what: &str, observed: &Observed) {
    let late = |thousandths| observed.lateness.percentile(thousandths).as_us();
    eprintln!(
        "{what}: {:?}; late p50 {} us, p99 {} us, most {} us; turns p99 {} us, most {} us; real-time {}",
        observed.counts,
        late(500),
        late(990),
        observed.lateness.most().as_us(),
        observed.turns.percentile(990).as_us(),
        observed.turns.most().as_us(),
        observed.real_time,
    );
}

#[test]
fn a_ping_takes_at_least_the_round_trip_of_the_plan() {
    let Some(_turn) = machine("a ping over the emulator") else { return };
    for rtt_ms in [1, 10] {
        let graph = dumbbell(Span::from_ms(rtt_ms), 100, None);
        let (trips, observed) = with_network(&graph, Span::from_secs(3), false, |hosts| ping(&hosts[0], 1, 30));
        report("ping", &observed);
        let (least, most) = (*trips.iter().min().unwrap(), *trips.iter().max().unwrap());
        let mut sorted = trips.clone();
        sorted.sort();
        eprintln!("ping over {rtt_ms} ms: least {least:?}, median {:?}, most {most:?}", sorted[sorted.len() / 2]);
        assert_eq!(trips.len(), 30, "no ping is lost");
        assert!(least >= Duration::from_millis(rtt_ms), "{least:?}");
        assert!(sorted[15] < Duration::from_millis(rtt_ms) + Duration::from_millis(1), "{sorted:?}");
        assert_eq!(observed.counts.lost_outside(), 0);
    }
}

/// 1448 bytes of payload in 1538 on the wire, of 100 Mbit/s.
const CEILING_MBPS: f64 = 100.0 * 1_448.0 / 1_538.0;

#[test]
fn cubic_fills_a_bottleneck_up_to_its_framing() {
    let Some(_turn) = machine("a transfer over the emulator") else { return };
    for (rtt_ms, limit, ecn) in [(1, 100, false), (10, 200, false), (10, 200, true)] {
        let graph = dumbbell(Span::from_ms(rtt_ms), limit, ecn.then_some(50));
        let length = Span::from_secs(4);
        let (mbps, observed) = with_network(&graph, length, ecn, |hosts| {
            transfer(hosts, "cubic", (5_000_000, 30_000_000), Duration::from_secs(4))
        });
        report("transfer", &observed);
        let port = observed.samples.counters[BOTTLENECK as usize];
        eprintln!("cubic over {rtt_ms} ms, ecn {ecn}: {mbps:.2} Mbps of {CEILING_MBPS:.2}; {port:?}");
        assert!((0.95 * CEILING_MBPS..1.005 * CEILING_MBPS).contains(&mbps), "{mbps}");
        assert_eq!(port.marked.get() > 0, ecn);
        assert_eq!(port.dropped_for(narrows_core::queue::DropReason::Limit).get() == 0, ecn, "{port:?}");
        assert!(port.conserved() && observed.counts.conserved());
        assert_eq!(observed.counts.lost_outside(), 0);
        let marked: u64 = observed.marked.iter().map(|marked| u64::from(marked.payload)).sum();
        assert_eq!(marked > 0, ecn);
        assert!(observed.marked.iter().all(|marked| (marked.source, marked.destination) == (0, 1)));
        // One look at each of the two directions every millisecond.
        assert!(observed.samples.backlogs.len() > 5_000, "{}", observed.samples.backlogs.len());
    }
}
