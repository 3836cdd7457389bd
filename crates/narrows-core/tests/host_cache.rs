//! What a host remembers of a peer, in the connection that comes next.
#![allow(missing_docs, reason = "tests")]

#[allow(dead_code, unreachable_pub, reason = "a test uses the part it needs")]
mod pair;

use narrows_core::packet::Tag;
use narrows_core::tcp::profile::Profile;
use narrows_core::tcp::{EcnMode, Endpoint, Metrics};
use narrows_core::units::{Packets, Rate, Span, Time};
use pair::{Pair, build, stack_for};

fn opened(metrics: Option<Metrics>) -> (Endpoint, narrows_core::tcp::Stack) {
    let stack = stack_for("newreno", Profile::FREEBSD_CEE, EcnMode::Off);
    let mut end = Endpoint::closed(build("newreno", &stack, 1), &stack);
    if let Some(metrics) = metrics {
        end.recall(&metrics, &stack);
    }
    end.open(Tag(1));
    (end, stack)
}

/// When each of some SYNs leaves that all are lost.
fn lost_syns(metrics: Option<Metrics>) -> Vec<u64> {
    let (mut end, stack) = opened(metrics);
    let (mut now, mut times) = (Time::ZERO, vec![]);
    for _ in 0..5 {
        assert!(end.poll_transmit(now, &stack).is_some());
        times.push(now.as_us());
        now = end.deadline();
        end.handle_timeout(now, &stack);
    }
    times
}

#[test]
fn a_lost_syn_waits_for_the_timeout_that_is_remembered() {
    assert_eq!(lost_syns(None), [0, 10_000, 30_000, 70_000, 150_000]);
    let metrics = |srtt, variance| Metrics {
        srtt: Span::from_us(srtt),
        variance: Span::from_us(variance),
        threshold: None,
        window: Packets::new(10),
    };
    // SRTT + 4·RTTVAR, and 2 ms at least.
    assert_eq!(lost_syns(Some(metrics(3_000, 500))), [0, 5_000, 15_000, 35_000, 75_000]);
    assert_eq!(lost_syns(Some(metrics(80, 5))), [0, 2_000, 6_000, 14_000, 30_000]);
}

#[test]
fn a_connection_is_remembered_once_it_has_measured_its_path() {
    let learned = |segments: u64| {
        let stack = stack_for("newreno", Profile::FREEBSD_CEE, EcnMode::Off);
        let mut pair = Pair::new("newreno", stack, Span::from_us(50), 1);
        pair.rate = Some(Rate::from_gbps(10));
        pair.open();
        pair.offer(0, segments * 1_448, 1);
        assert!(pair.run_until_idle(Time::ZERO + Span::from_secs(1)));
        [0, 1].map(|end| pair.ends[end].metrics())
    };
    assert_eq!(learned(2), [None, None], "two segments have one acknowledgement");
    let [sender, receiver] = learned(40);
    let metrics = sender.expect("twenty acknowledgements");
    assert!((100..120).contains(&metrics.srtt.as_us()), "{metrics:?}");
    // Slow start from 3: one more for each of 40 that found the window used.
    assert!((30..=43).contains(&metrics.window.get()), "{metrics:?}");
    assert_eq!((metrics.threshold, receiver), (None, None));
    // A loss leaves a threshold of half of what was out.
    let stack = stack_for("newreno", Profile::FREEBSD_CEE, EcnMode::Off);
    let mut pair = Pair::new("newreno", stack, Span::from_us(50), 1);
    (pair.rate, pair.room) = (Some(Rate::from_gbps(1)), 20);
    pair.open();
    pair.offer(0, 400 * 1_448, 1);
    assert!(pair.run_until_idle(Time::ZERO + Span::from_secs(1)));
    assert!(pair.dropped > 0);
    let threshold = pair.ends[0].metrics().expect("hundreds of acknowledgements").threshold.expect("it was cut");
    assert!((5..=40).contains(&threshold.get()), "{threshold:?}");
}
