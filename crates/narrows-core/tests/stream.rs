//! A byte stream is delivered once, whole and in order, whatever the network does to it.
#![allow(missing_docs, reason = "tests")]

#[allow(dead_code, unreachable_pub, clippy::cast_possible_truncation, reason = "a test uses the part it needs")]
mod pair;

use narrows_core::cc::SPECS;
use narrows_core::packet::Tag;
use narrows_core::tcp::EcnMode;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Packets, Rate, Span, Time};
use pair::{Pair, Weather, stack_for};
use proptest::prelude::*;

fn after(span: Span) -> Time {
    Time::ZERO + span
}

fn any_weather() -> impl Strategy<Value = Weather> {
    (0u64..200, 0u64..300, 0u64..100, 0u64..200, 0u64..30).prop_map(|(lost, marked, doubled, delayed, late)| Weather {
        lost,
        marked,
        doubled,
        delayed,
        late: Span::from_ms(late),
        ..Weather::default()
    })
}

/// The way back alone is bad: acknowledgements are lost, or come in bunches.
fn bad_way_back() -> impl Strategy<Value = Weather> {
    (0u64..500, 0u64..20).prop_map(|(deaf, ms)| Weather { deaf, compressed: Span::from_ms(ms), ..Weather::default() })
}

fn mild_weather() -> impl Strategy<Value = Weather> {
    (0u64..20, 0u64..50, 0u64..10, 0u64..30, 0u64..5).prop_map(|(lost, marked, doubled, delayed, late)| Weather {
        lost,
        marked,
        doubled,
        delayed,
        late: Span::from_ms(late),
        ..Weather::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_arrives_once_whole_and_in_order(
        seed in 0u64..1 << 32,
        weather in any_weather(),
        profile in 0usize..Profile::NAMED.len(),
        spec in 0usize..SPECS.len(),
        ecn in 0usize..3,
        offload in prop::bool::ANY,
        forth in prop::collection::vec(1u64..200_000, 1..6),
        back in prop::collection::vec(1u64..20_000, 0..4),
        delay_us in 1u64..20_000,
    ) {
        let mut profile = Profile::NAMED[profile].1;
        if !offload {
            profile.offload_segments = 1;
            profile.receive_offload = None;
        }
        let ecn = [EcnMode::Off, EcnMode::Classic, EcnMode::Exact][ecn];
        let stack = stack_for(SPECS[spec].name, profile, ecn);
        let mut pair = Pair::new(SPECS[spec].name, stack, Span::from_us(delay_us), seed);
        pair.weather = weather;
        pair.open();
        for (number, &bytes) in forth.iter().enumerate() {
            pair.offer(0, bytes, u32::try_from(number).unwrap() + 1);
        }
        for (number, &bytes) in back.iter().enumerate() {
            pair.offer(1, bytes, u32::try_from(number).unwrap() + 1);
        }
        // A thousandth of the cases may lose the same segment many times: the bound is far beyond all back-off.
        let done = pair.run_until_idle(after(Span::from_secs(100_000)));
        prop_assert!(done, "stuck at {} with {} outstanding", pair.now, pair.ends[0].outstanding());
        let tags = |count: usize| (1..=u32::try_from(count).unwrap()).map(Tag).collect::<Vec<_>>();
        prop_assert_eq!(&pair.delivered[1], &tags(forth.len()));
        prop_assert_eq!(&pair.delivered[0], &tags(back.len()));
        prop_assert_eq!(pair.ends[1].tallies().delivered_bytes, forth.iter().sum::<u64>());
        prop_assert_eq!(pair.ends[0].tallies().delivered_bytes, back.iter().sum::<u64>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Windows of hundreds of segments, offloads on, receivers with little room, hosts that pace.
    #[test]
    fn large_windows_small_receivers_and_a_bad_way_back_deliver_too(
        seed in 0u64..1 << 32,
        weather in prop_oneof![bad_way_back(), mild_weather()],
        profile in 0usize..Profile::NAMED.len(),
        spec in 0usize..SPECS.len(),
        ecn in 0usize..3,
        offload in prop::bool::ANY,
        paced in prop::bool::ANY,
        initial_window in 1u64..600,
        buffer_kib in prop_oneof![1u64..64, 64u64..4096],
        bytes in 100_000u64..3_000_000,
        delay_us in 20u64..20_000,
        mbps in 50u64..10_000,
        room in 10usize..1_000,
    ) {
        let mut profile = Profile { receive_buffer: buffer_kib << 10, ..Profile::NAMED[profile].1 };
        profile.initial_window = Packets::new(initial_window);
        if !offload {
            profile.offload_segments = 1;
            profile.receive_offload = None;
        }
        if paced {
            profile.host_pacing = Some((200, 120));
        }
        let ecn = [EcnMode::Off, EcnMode::Classic, EcnMode::Exact][ecn];
        let stack = stack_for(SPECS[spec].name, profile, ecn);
        let mut pair = Pair::new(SPECS[spec].name, stack, Span::from_us(delay_us), seed);
        pair.weather = weather;
        pair.rate = Some(Rate::from_mbps(mbps));
        pair.room = room;
        pair.open();
        // A receiver with room for a segment or two costs a timer each.
        let bytes = bytes.min(buffer_kib * 8_000);
        pair.offer(0, bytes, 1);
        let done = pair.run_until_idle(after(Span::from_secs(100_000)));
        prop_assert!(done, "stuck at {} with {} outstanding", pair.now, pair.ends[0].outstanding());
        prop_assert_eq!(&pair.delivered[1], &[Tag(1)]);
        prop_assert_eq!(pair.ends[1].tallies().delivered_bytes, bytes);
    }
}

/// A path whose RTT and delayed acknowledgements are within the profile's least timeout.
fn one_way(profile: &Profile) -> Span {
    Span::from_ms(5).min(profile.min_rto.div(10))
}

#[test]
fn a_clean_path_carries_a_transfer_without_a_retransmission() {
    for (name, profile) in Profile::NAMED {
        let stack = stack_for("newreno", *profile, EcnMode::Off);
        let mut pair = Pair::new("newreno", stack, one_way(profile), 1);
        pair.rate = Some(Rate::from_gbps(1));
        pair.open();
        pair.offer(0, 3_000_000, 1);
        assert!(pair.run_until_idle(after(Span::from_secs(20))), "{name}");
        assert_eq!(pair.ends[0].tallies().retransmitted_bytes, 0, "{name}");
        assert_eq!(pair.ends[0].tallies().timeouts, 0, "{name}");
    }
}

#[test]
fn the_initial_window_leaves_at_once_and_doubles_each_round() {
    let mut profile = Profile::LINUX_4_9;
    profile.offload_segments = 1;
    profile.receive_offload = None;
    profile.ack_every = 1;
    let stack = stack_for("newreno", profile, EcnMode::Off);
    let mut pair = Pair::new("newreno", stack, Span::from_ms(5), 1);
    pair.open();
    pair.offer(0, 1 << 24, 1);
    let mut windows = Vec::new();
    for round in 1..6 {
        // Established after one RTT; the window of round n has left just after (n)·RTT.
        pair.run_until(after(Span::from_us(10_000 * round + 1)));
        windows.push(pair.ends[0].window().get());
        assert_eq!(u64::from(pair.ends[0].outstanding()), pair.ends[0].window().get());
    }
    assert_eq!(windows, [10, 20, 40, 80, 160]);
}

#[test]
fn a_lone_loss_costs_one_retransmission_and_no_timeout() {
    for (name, profile) in Profile::NAMED {
        let stack = stack_for("newreno", *profile, EcnMode::Off);
        let mut pair = Pair::new("newreno", stack, one_way(profile), 1);
        pair.rate = Some(Rate::from_mbps(100));
        pair.drop_if = Some(Box::new(|end, ordinal, _| end == 0 && ordinal == 40));
        pair.open();
        pair.offer(0, 1_000_000, 1);
        assert!(pair.run_until_idle(after(Span::from_secs(20))), "{name}");
        let tallies = pair.ends[0].tallies();
        assert_eq!((tallies.retransmitted_bytes, tallies.timeouts), (1448, 0), "{name}");
    }
}

#[test]
fn a_lost_tail_is_probed_where_the_profile_probes_and_times_out_elsewhere() {
    for (name, profile) in Profile::NAMED {
        let stack = stack_for("newreno", *profile, EcnMode::Off);
        let mut pair = Pair::new("newreno", stack, one_way(profile), 1);
        pair.rate = Some(Rate::from_mbps(100));
        // The message of five full segments leaves after the handshake's own two.
        pair.drop_if = Some(Box::new(|end, _, segment| {
            end == 0 && segment.seq == 1 + 4 * 1448 && {
                static ONCE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
                ONCE.fetch_add(1, std::sync::atomic::Ordering::Relaxed).is_multiple_of(2)
            }
        }));
        pair.open();
        pair.offer(0, 5 * 1448, 1);
        assert!(pair.run_until_idle(after(Span::from_secs(20))), "{name}");
        let timeouts = pair.ends[0].tallies().timeouts;
        assert_eq!(timeouts, u32::from(!profile.tail_loss_probe), "{name}");
    }
}

#[test]
fn a_delay_spike_is_recognised_and_undone() {
    let profile = Profile { receive_buffer: 1 << 19, ..Profile::LINUX_4_9 };
    let stack = stack_for("newreno", profile, EcnMode::Off);
    let mut pair = Pair::new("newreno", stack, Span::from_ms(5), 1);
    pair.open();
    pair.offer(0, 50_000_000, 1);
    pair.run_until(after(Span::from_ms(300)));
    let before = pair.ends[0].window();
    // Everything in the air is held for a second: the timer expires, and then the originals arrive.
    pair.delay = Span::from_ms(1_000);
    pair.run_until(after(Span::from_ms(900)));
    assert!(pair.ends[0].tallies().timeouts > 0);
    assert!(pair.ends[0].window() < before);
    // The originals arrive at 1.3 s, their acknowledgements at 2.3 s.
    pair.run_until(after(Span::from_ms(2_320)));
    assert!(pair.ends[0].window() >= before, "{} before, {} after", before, pair.ends[0].window());
}

/// Episodes follow each other so closely that retransmissions of one arrive in the next.
#[test]
fn what_an_earlier_episode_resent_does_not_undo_this_one() {
    for profile in [Profile::LINUX_4_9, Profile::LINUX_6] {
        let profile = Profile { ack_every: 1, offload_segments: 1, receive_offload: None, ..profile };
        let mut pair = Pair::new("bbr", stack_for("bbr", profile, EcnMode::Off), Span::from_ms(5), 1);
        pair.rate = Some(Rate::from_mbps(100));
        pair.drop_if = Some(Box::new(|end, ordinal, _| end == 0 && ordinal % 20 == 19));
        pair.open();
        pair.offer(0, 10_000_000, 1);
        assert!(pair.run_until_idle(after(Span::from_secs(60))));
        let resent = pair.ends[0].tallies().retransmitted_bytes.div_ceil(1448);
        assert_eq!(resent, pair.dropped as u64);
    }
}

/// A lost retransmission waits for the timer under this profile. The second timeout comes after progress, for another
/// segment: the threshold falls again [RFC 5681 §3.1, Linux `tcp_enter_loss`].
#[test]
fn a_timeout_after_progress_is_a_new_one() {
    let profile = Profile { ack_every: 1, offload_segments: 1, receive_offload: None, ..Profile::DCTCP_2010 };
    let mut pair = Pair::new("newreno", stack_for("newreno", profile, EcnMode::Off), Span::from_ms(5), 1);
    pair.rate = Some(Rate::from_mbps(100));
    // Two segments of one flight are lost, so are their fast retransmissions, and of the second one more.
    let losses = [(40 * 1448 + 1, 2), (60 * 1448 + 1, 3)].map(|(seq, times)| (seq, std::cell::Cell::new(times)));
    pair.drop_if = Some(Box::new(move |end, _, segment| {
        let due = losses.iter().find(|(seq, left)| end == 0 && segment.seq == *seq && left.get() > 0);
        due.inspect(|(_, left)| left.set(left.get() - 1)).is_some()
    }));
    pair.open();
    pair.offer(0, 1_000_000, 1);
    let mut thresholds = Vec::new();
    let mut timeouts = 0;
    while pair.step(after(Span::from_secs(20))) {
        if pair.ends[0].tallies().timeouts > timeouts {
            timeouts = pair.ends[0].tallies().timeouts;
            thresholds.push(pair.ends[0].controller().slow_start_threshold().get());
        }
    }
    assert_eq!(thresholds.len(), 2);
    // Reports of what was delivered above the hole have grown nothing by then: the window was two.
    assert!(thresholds[0] > 10 && thresholds[1] == 2, "{thresholds:?}");
}

#[test]
fn recovery_ends_at_half_the_window() {
    let stack = stack_for("newreno", Profile::LINUX_6, EcnMode::Off);
    let mut pair = Pair::new("newreno", stack, Span::from_ms(10), 1);
    pair.rate = Some(Rate::from_mbps(100));
    pair.drop_if = Some(Box::new(|end, ordinal, _| end == 0 && ordinal == 200));
    pair.open();
    pair.offer(0, 20_000_000, 1);
    let mut largest = Packets::ZERO;
    while pair.ends[0].tallies().retransmitted_bytes == 0 && pair.step(after(Span::from_secs(5))) {
        largest = largest.max(pair.ends[0].window());
    }
    while pair.ends[0].phase() != narrows_core::cc::Phase::Open && pair.step(after(Span::from_secs(5))) {}
    let window = pair.ends[0].window().get();
    assert!((largest.get() / 2).abs_diff(window) <= 1, "from {largest} to {window}");
}
