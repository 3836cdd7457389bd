//! The fast path does what the full path does, whatever the network does to the segments.
#![allow(missing_docs, reason = "tests")]

#[allow(dead_code, unreachable_pub, clippy::cast_possible_truncation, reason = "a test uses the part it needs")]
mod pair;

use narrows_core::cc::SPECS;
use narrows_core::packet::Tag;
use narrows_core::tcp::profile::Profile;
use narrows_core::tcp::{EcnMode, Endpoint};
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use pair::{Pair, Weather, stack_for};
use proptest::prelude::*;

/// Mostly good, so that ends are on the fast path, leave it and come back; sometimes bad.
fn weather() -> impl Strategy<Value = Weather> {
    let few = || prop_oneof![3 => Just(0u64), 1 => 1u64..60];
    (few(), prop_oneof![Just(0u64), Just(1_000), 1u64..300], few(), few(), few(), 0u64..8).prop_map(
        |(lost, marked, doubled, delayed, deaf, late)| Weather {
            lost,
            marked,
            doubled,
            delayed,
            late: Span::from_ms(late),
            deaf,
            ..Weather::default()
        },
    )
}

/// Everything that a driver can see of an end.
fn seen(pair: &Pair) -> String {
    let see = |end: &Endpoint| {
        let (snapshot, tallies) = (end.snapshot(pair.now, &pair.stack), end.tallies());
        let deadlines = (end.deadline(), end.pacing_deadline(), end.small_queue_limit(&pair.stack));
        format!("{snapshot:?} {tallies:?} {deadlines:?} {:?}", (end.is_idle(), end.controller()))
    };
    format!("{} {} {}", pair.now, see(&pair.ends[0]), see(&pair.ends[1]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn both_paths_do_the_same(
        seed in 0u64..1 << 32,
        weather in weather(),
        profile in 0usize..Profile::NAMED.len(),
        spec in 0usize..SPECS.len(),
        ecn in 0usize..3,
        offload in prop::bool::ANY,
        ack_every in 1u8..4,
        // When each message is offered, by which end, and how long it is; then when the first end stops.
        offers in prop::collection::vec((0u64..60_000, 0usize..2, 1u64..120_000), 1..6),
        stop_us in 10_000u64..400_000,
        delay_us in 20u64..8_000,
        mbps in 20u64..2_000,
        room in 5usize..300,
        initial_window in 2u64..40,
    ) {
        let mut profile = Profile { ack_every, initial_window: Packets::new(initial_window), ..Profile::NAMED[profile].1 };
        if !offload {
            profile.offload_segments = 1;
            profile.receive_offload = None;
        }
        let ecn = [EcnMode::Off, EcnMode::Classic, EcnMode::Exact][ecn];
        let stack = stack_for(SPECS[spec].name, profile, ecn);
        let mut pairs = [false, true].map(|full| {
            let mut pair = Pair::new(SPECS[spec].name, stack, Span::from_us(delay_us), seed);
            (pair.weather, pair.rate, pair.room, pair.keep_sent) = (weather, Some(Rate::from_mbps(mbps)), room, true);
            if full {
                pair.ends.iter_mut().for_each(Endpoint::take_full_path);
            }
            pair.open();
            pair
        });
        let mut offers = offers;
        offers.sort_unstable();
        for (tag, (at_us, end, bytes)) in (0..).zip(offers) {
            for pair in &mut pairs {
                pair.run_until(Time::ZERO + Span::from_us(at_us));
                pair.ends[end].offer(Bytes::new(bytes), Tag(tag));
                pair.settle();
            }
            prop_assert_eq!(seen(&pairs[0]), seen(&pairs[1]));
        }
        let stop = Time::ZERO + Span::from_us(stop_us);
        loop {
            let more = pairs.each_mut().map(|pair| pair.step(stop));
            prop_assert_eq!(more[0], more[1]);
            prop_assert_eq!(seen(&pairs[0]), seen(&pairs[1]));
            if !more[0] {
                break;
            }
        }
        for pair in &mut pairs {
            pair.ends[0].stop();
            pair.settle();
            pair.run_until_idle(Time::ZERO + Span::from_secs(60));
        }
        prop_assert_eq!(seen(&pairs[0]), seen(&pairs[1]));
        prop_assert_eq!(&pairs[0].sent, &pairs[1].sent);
        prop_assert_eq!(&pairs[0].delivered, &pairs[1].delivered);
    }
}

#[test]
fn a_clean_transfer_is_on_the_fast_path_and_comes_back_to_it_after_a_loss() {
    let profile = Profile { offload_segments: 1, receive_offload: None, ..Profile::LINUX_6 };
    let stack = stack_for("cubic", profile, EcnMode::Off);
    let mut pair = Pair::new("cubic", stack, Span::from_ms(5), 1);
    pair.rate = Some(Rate::from_mbps(100));
    pair.drop_if = Some(Box::new(|end, ordinal, _| end == 0 && ordinal == 300));
    pair.open();
    pair.offer(0, 4_000_000, 1);
    let (mut sending, mut receiving, mut all) = (0, 0, 0);
    while pair.step(Time::ZERO + Span::from_ms(300)) {
        all += 1;
        // Only its `Debug` says so.
        sending += usize::from(format!("{:?}", pair.ends[0]).contains("fast_path: Sending"));
        receiving += usize::from(format!("{:?}", pair.ends[1]).contains("fast_path: Receiving"));
    }
    assert!(all > 1_500 && sending * 10 > all * 9 && receiving * 10 > all * 9, "{sending} and {receiving} of {all}");
}
