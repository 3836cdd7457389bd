//! The model and its states against the draft's numbers, one acknowledgement at a time.

use super::bounds::Accelerated;
use super::probe_bandwidth::Acks;
use super::*;
use crate::cc::harness::{build, path};
use crate::cc::parts::bandwidth::BANDWIDTH_ONE;
use crate::cc::{Limit, RttSample};
use crate::packet::Seq;
use crate::units::Span;
use std::vec::Vec;

/// One packet per 100 us.
const BANDWIDTH: u64 = BANDWIDTH_ONE / 100;
const RTT: Span = Span::from_ms(10);
/// Bandwidth times minimum RTT, packets.
const BDP: u64 = 100;

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

fn bbr() -> BbrV3 {
    build(&SPEC, BbrV3::new, &path(), &[])
}

/// On a path of 100 packets whose pipe was filled; no round is about to end.
fn settled(state: State) -> BbrV3 {
    let mut cc = bbr();
    cc.full.reached = true;
    cc.bandwidths = [BANDWIDTH; 2];
    cc.rtt.begin(at(0), Some(RTT));
    cc.rounds.end = u64::MAX;
    cc.cycle.wait = Span::from_secs(2);
    cc.window = 2 * BDP;
    cc.state = state;
    cc
}

/// An acknowledgement of one packet with nothing else to say.
fn ack(now: Time) -> Ack {
    Ack {
        now,
        acked: Packets::new(1),
        marked: Packets::ZERO,
        lost: Packets::ZERO,
        ece: false,
        rtt: None,
        delivery: None,
        delivered: Packets::new(1_000),
        una: Seq::FIRST,
        nxt: Seq::FIRST,
        in_flight: Packets::new(BDP),
        prior_in_flight: Packets::new(BDP + 1),
        max_in_flight: Packets::new(BDP),
        phase: Phase::Open,
        limited_by: Limit::Pacing,
        timestamps: (0, 0),
        in_order: true,
    }
}

/// A sample of this bandwidth, of a packet with a BDP in flight.
fn sample(bandwidth: u64) -> Sample {
    Sample {
        bandwidth,
        delivered: BDP,
        prior_delivered: 900,
        app_limited: false,
        in_flight_at_send: BDP,
        lost_since_send: 0,
    }
}

fn lost(segment: u64, in_flight: u64, since: u64) -> Lost {
    Lost {
        now: at(1),
        segment,
        sent_at: at(0),
        in_flight_at_send: Packets::new(in_flight),
        lost_since_send: Packets::new(since),
        app_limited: false,
        delivered: Packets::new(1_000),
    }
}

#[test]
fn gains_are_the_drafts() {
    let dip = State::ProbeRtt(Dip::Falling);
    let states = [State::Startup, State::Drain { since: 0 }, State::Down, State::Cruise, State::Refill, State::Up, dip];
    let gains: Vec<_> = states.map(settled).map(|cc| (cc.pacing_gain(), cc.window_gain())).to_vec();
    // The table of [BBRv3 draft §5.6.1].
    assert_eq!(gains, [(277, 200), (50, 200), (90, 200), (100, 200), (100, 200), (125, 225), (100, 50)]);
}

#[test]
fn the_first_rate_is_the_initial_window_per_rtt() {
    let mut cc = bbr();
    // Ten packets of 1500 bytes in 1 ms, times 2.77.
    assert_eq!(cc.pacing().unwrap().as_bps() / 100_000, 3_323);
    let path = Path { srtt: Some(RTT), min_rtt: Some(RTT), ..path() };
    cc.on_sent(at(0), &Sent { size: path.packet, idle: None, starts: false }, &path);
    assert_eq!(cc.pacing().unwrap().as_bps() / 100_000, 332);
    assert_eq!(cc.rtt.ns, Some(10_000_000), "the handshake's RTT is the first");
}

#[test]
fn it_paces_one_percent_below_the_bandwidth() {
    let mut cc = settled(State::Cruise);
    cc.pace(cc.pacing_gain());
    // 10,000 packets of 12,000 bits per second.
    assert_eq!(cc.pacing().unwrap().as_bps().div_ceil(1_000), 118_800);
    cc.state = State::Up;
    cc.pace(cc.pacing_gain());
    assert_eq!(cc.pacing().unwrap().as_bps().div_ceil(1_000), 148_500);
}

#[test]
fn three_rounds_without_a_quarter_more_fill_the_pipe() {
    let mut cc = bbr();
    let mut round = |bandwidth, app_limited| {
        cc.rounds.started = true;
        cc.check_full_pipe(Some(&Sample { app_limited, ..sample(bandwidth) }));
        cc.check_startup(&ack(at(1)), None);
        (cc.full.reached, cc.state == State::Startup)
    };
    for bandwidth in [100, 125, 130, 156, 157, 158] {
        assert_eq!(round(bandwidth, false), (false, true), "{bandwidth}");
    }
    assert_eq!(round(40, true), (false, true), "an application that sends little fills nothing");
    assert_eq!(round(194, false), (true, false), "195 would be a quarter more than 156");
}

/// In Startup, at the end of a round of losses: whether the pipe is taken for full.
fn startup_ends(ranges: u64, since: u64, phase: Phase) -> Option<u64> {
    let mut cc = bbr();
    cc.bandwidths[1] = BANDWIDTH;
    cc.rtt.begin(at(0), Some(RTT));
    for range in 0..ranges {
        // Two neighbours each.
        cc.losses.count(10 * range);
        cc.losses.count(10 * range + 1);
    }
    cc.losses.round_started = true;
    cc.losses.in_flight_latest = 130;
    cc.check_startup(&Ack { phase, ..ack(at(1)) }, Some(&Sample { lost_since_send: since, ..sample(BANDWIDTH) }));
    assert_eq!(cc.full.reached, matches!(cc.state, State::Drain { .. }));
    assert_eq!(cc.long_term.is_some(), cc.full.reached);
    cc.long_term
}

#[test]
fn six_ranges_and_two_percent_lost_in_a_round_of_recovery_end_startup() {
    // 2 % of the 100 in flight are 2; what was delivered in the round is more than the BDP.
    assert_eq!(startup_ends(6, 3, Phase::Recovery), Some(130));
    assert_eq!(startup_ends(5, 3, Phase::Recovery), None);
    assert_eq!(startup_ends(6, 2, Phase::Recovery), None);
    assert_eq!(startup_ends(6, 3, Phase::Open), None);
}

#[test]
fn drain_ends_at_the_bdp_or_after_three_rounds() {
    let drains = |in_flight, rounds: u64| {
        let mut cc = settled(State::Drain { since: 7 });
        cc.rounds.count = 7 + rounds;
        cc.check_drain(&Ack { in_flight: Packets::new(in_flight), ..ack(at(1)) });
        cc.state != State::Down
    };
    assert_eq!(
        (drains(BDP + 1, 0), drains(BDP, 0), drains(BDP + 1, 3), drains(BDP + 1, 4)),
        (true, false, true, false)
    );
}

#[test]
fn the_wait_for_a_probe_is_two_to_three_seconds_and_62_or_63_rounds() {
    let mut cc = settled(State::Cruise);
    let (mut waits, mut rounds) = (Vec::new(), [0; 2]);
    for _ in 0..1_000 {
        cc.begin_down(at(0));
        waits.push(cc.cycle.wait.as_us());
        rounds[usize::try_from(cc.cycle.rounds).unwrap()] += 1;
    }
    assert!(waits.iter().all(|wait| (2_000_000..3_000_000).contains(wait)));
    // The mean of a thousand draws has a standard deviation of 9 ms.
    assert!((waits.iter().sum::<u64>() / 1_000).abs_diff(2_500_000) < 40_000);
    assert!(rounds.iter().all(|&count| count > 400), "{rounds:?}");
}

#[test]
fn a_probe_is_due_by_the_clock_or_when_reno_would_have_one() {
    let due = |ms, rounds, bdp: u64| {
        let mut cc = settled(State::Cruise);
        cc.bandwidths = [bdp * BANDWIDTH / BDP; 2];
        cc.cycle.rounds = rounds;
        cc.update_cycle(&ack(at(ms)), Some(&sample(BANDWIDTH)));
        cc.state == State::Refill
    };
    assert_eq!((due(2_000, 0, BDP), due(2_001, 0, BDP)), (false, true));
    assert_eq!((due(1, 62, BDP), due(1, 63, BDP)), (false, true), "at most 63 rounds");
    assert_eq!((due(1, 29, 30), due(1, 30, 30)), (false, true), "as many as the BDP has packets");
}

#[test]
fn down_ends_at_the_bdp_and_with_headroom() {
    let cruises = |in_flight, long_term| {
        let mut cc = settled(State::Down);
        cc.long_term = long_term;
        cc.update_cycle(&Ack { in_flight: Packets::new(in_flight), ..ack(at(1)) }, None);
        cc.state == State::Cruise
    };
    assert_eq!((cruises(BDP + 1, None), cruises(BDP, None)), (false, true));
    // 15 % of 100.
    assert_eq!((cruises(86, Some(100)), cruises(85, Some(100))), (false, true));
}

#[test]
fn a_round_refills_and_up_lasts_until_more_brings_no_more() {
    let mut cc = settled(State::Refill);
    cc.short_term = ShortTerm { bandwidth: Some(1), in_flight: Some(1) };
    cc.begin_refill();
    assert_eq!(cc.short_term, ShortTerm::default(), "what losses said since the last probe is forgotten");
    cc.update_cycle(&ack(at(1)), Some(&sample(BANDWIDTH)));
    assert_eq!((cc.state, cc.cycle.is_probe_sample), (State::Refill, false));
    cc.rounds.started = true;
    cc.update_cycle(&ack(at(2)), Some(&sample(BANDWIDTH)));
    assert_eq!((cc.state, cc.cycle.is_probe_sample), (State::Up, true));
    for round in 0..3 {
        assert_eq!(cc.state, State::Up, "{round}");
        cc.check_full_pipe(Some(&sample(BANDWIDTH * 6 / 5)));
        cc.update_cycle(&ack(at(3)), Some(&sample(BANDWIDTH)));
    }
    assert_eq!(cc.state, State::Down);
}

/// At a bound of 100 packets that the window reaches, an RTT of acknowledgements adds 1, 2, 4, 8… to it.
#[test]
fn the_long_term_bound_grows_by_a_number_that_doubles_each_round() {
    let mut cc = settled(State::Refill);
    (cc.long_term, cc.window, cc.rounds.started) = (Some(100), 100, true);
    cc.update_cycle(&ack(at(1)), Some(&sample(BANDWIDTH)));
    assert_eq!((cc.state, cc.cycle.acks), (State::Up, Acks::ProbeStarting));
    let mut grown = Vec::new();
    for _ in 0..5 {
        let before = cc.long_term.unwrap();
        for packet in 0..before {
            // The window follows.
            cc.window = cc.long_term.unwrap();
            cc.rounds.started = packet + 1 == before;
            let facts = Ack { limited_by: Limit::Window, in_flight: Packets::new(50), ..ack(at(1)) };
            cc.update_cycle(&facts, Some(&sample(BANDWIDTH)));
        }
        grown.push(cc.long_term.unwrap() - before);
    }
    for (round, &packets) in grown.iter().enumerate() {
        let expected = 1 << round;
        assert!(packets >= expected && packets <= expected + expected / 4 + 1, "{grown:?}");
    }
    // Where the window is not what limits, nothing was tried.
    let before = cc.long_term;
    cc.update_cycle(&ack(at(1)), Some(&sample(BANDWIDTH)));
    assert_eq!(cc.long_term, before);
    // What was carried without loss fits.
    cc.update_cycle(&ack(at(1)), Some(&Sample { in_flight_at_send: 400, ..sample(BANDWIDTH) }));
    assert_eq!(cc.long_term, Some(400));
}

/// 4 lost of 200 are 2 %, and 5 more: the bound is what was in flight before the packet that crossed it, since a packet is lost as
/// a whole. Where it was crossed long before, the bound is before the packet that told of it.
#[test]
fn the_long_term_bound_is_where_losses_crossed_two_percent() {
    for (in_flight, since, bound) in [(200, 4, None), (200, 5, Some(199)), (1_000, 21, Some(999)), (197, 30, Some(196))]
    {
        let mut cc = settled(State::Up);
        cc.cycle.is_probe_sample = true;
        cc.on_lost(&lost(0, in_flight, since), &path());
        assert_eq!(cc.long_term, bound, "{since} of {in_flight}");
        let ended = bound.is_some();
        assert_eq!((cc.state == State::Down, cc.cycle.was_too_high, !cc.cycle.is_probe_sample), (ended, ended, ended));
        // One answer per probe.
        cc.on_lost(&lost(1, 110, 50), &path());
        if ended {
            assert_eq!(cc.long_term, bound);
        }
    }
}

#[test]
fn the_long_term_bound_keeps_seven_tenths_of_the_bdp() {
    let bound = |app_limited| {
        let mut cc = settled(State::Up);
        cc.cycle.is_probe_sample = true;
        cc.on_lost(&Lost { app_limited, ..lost(0, 20, 10) }, &path());
        cc.long_term
    };
    assert_eq!((bound(false), bound(true)), (Some(70), None));
    let mut cruising = settled(State::Cruise);
    cruising.on_lost(&lost(0, 20, 10), &path());
    assert_eq!(cruising.long_term, None, "only what was sent while probing tells of the long term");
}

#[test]
fn after_too_much_loss_a_probe_goes_as_far_and_then_at_once_further() {
    let mut cc = settled(State::Up);
    (cc.long_term, cc.cycle.was_too_high) = (Some(150), true);
    let facts = |in_flight| Ack { in_flight: Packets::new(in_flight), delivered: Packets::new(2_000), ..ack(at(1)) };
    cc.update_cycle(&facts(149), Some(&sample(BANDWIDTH)));
    assert_eq!(cc.state, State::Up);
    cc.update_cycle(&facts(150), Some(&sample(BANDWIDTH)));
    assert_eq!(cc.state, State::Down);
    // Its acknowledgements tell of no loss.
    cc.rounds.started = true;
    cc.update_cycle(&facts(120), Some(&sample(BANDWIDTH)));
    assert_eq!(cc.state, State::Refill);
    cc.update_cycle(&facts(120), Some(&sample(BANDWIDTH)));
    cc.rounds.started = false;
    cc.update_cycle(&facts(150), Some(&sample(BANDWIDTH)));
    assert_eq!(cc.state, State::Up, "this time it goes on");
}

/// A round with a loss ends with a sample; what it delivered, and what is left of the bounds.
#[test]
fn a_round_with_losses_lowers_the_short_term_bounds_to_what_it_delivered_or_by_three_tenths() {
    let bounds = |state, delivered, bandwidth, lost_packets: u64| {
        let mut cc = settled(state);
        cc.delivered = 1_000;
        for segment in 0..lost_packets {
            cc.on_lost(&lost(segment, 100, 1), &path());
        }
        // The sampled packet was sent after the loss was found.
        let last = Sample { prior_delivered: 1_000, delivered, ..sample(bandwidth) };
        cc.update_latest(&last);
        cc.adapt_short_term();
        cc.short_term
    };
    let of = |bandwidth, in_flight| ShortTerm { bandwidth: Some(bandwidth), in_flight: Some(in_flight) };
    // From a bandwidth of 100 % and a window of 200.
    assert_eq!(bounds(State::Cruise, 90, BANDWIDTH / 2, 1), of(BANDWIDTH * 7 / 10, 140));
    assert_eq!(bounds(State::Cruise, 160, BANDWIDTH * 9 / 10, 3), of(BANDWIDTH * 9 / 10, 160));
    assert_eq!(bounds(State::Cruise, 90, BANDWIDTH / 2, 0), ShortTerm::default());
    for state in [State::Startup, State::Refill, State::Up] {
        assert_eq!(bounds(state, 90, BANDWIDTH / 2, 1), ShortTerm::default(), "{state:?}");
    }
    let mut cc = settled(State::Cruise);
    cc.short_term = of(BANDWIDTH / 2, 77);
    cc.set_window(1);
    assert_eq!((cc.bandwidth(), cc.window), (BANDWIDTH / 2, 77));
}

#[test]
fn the_window_is_two_bdps_and_what_acknowledgements_bring_at_once() {
    let mut cc = settled(State::Cruise);
    cc.window = 1_000;
    cc.set_window(1);
    assert_eq!(cc.window, 2 * BDP);
    cc.state = State::Up;
    for _ in 0..100 {
        cc.set_window(1);
    }
    assert_eq!(cc.window, 225 + 2);
    // 40 packets each 5 ms, in which 50 were expected: each is an interval of its own.
    for burst in 1..20 {
        let facts = Ack { acked: Packets::new(40), ..ack(at(5 * burst)) };
        cc.update_aggregation(&facts);
    }
    assert_eq!(cc.aggregation.excess(), 40);
    // Cruising leaves 15 % of a long-term bound.
    (cc.state, cc.long_term) = (State::Cruise, Some(120));
    cc.set_window(1);
    assert_eq!(cc.window, 102);
}

#[test]
fn bandwidth_is_the_greatest_of_two_cycles() {
    let mut cc = bbr();
    for (sampled, greatest) in [(50, 50), (30, 50), (20, 30), (60, 60)] {
        cc.advance_bandwidth();
        cc.update_bandwidth(&sample(sampled));
        assert_eq!(cc.max_bandwidth(), greatest);
    }
    cc.update_bandwidth(&Sample { app_limited: true, ..sample(40) });
    assert_eq!(cc.bandwidths, [20, 60], "what the application limits only raises it");
    cc.advance_bandwidth();
    cc.advance_bandwidth();
    assert_eq!(cc.max_bandwidth(), 60, "a cycle without a sample forgets nothing");
}

/// Acknowledgements each 10 ms, with the RTT and what is in flight; the times in ms at which dips begin and end.
fn dips(until_ms: u64, idle_at: Option<u64>) -> (Vec<(u64, u64)>, BbrV3) {
    let mut cc = settled(State::Cruise);
    let path = Path { srtt: Some(RTT), min_rtt: Some(RTT), ..path() };
    let (mut found, mut delivered) = (Vec::new(), 0);
    cc.rounds.end = 0;
    for tick in 0..until_ms / 10 {
        let now = at(tick * 10);
        if idle_at == Some(tick * 10) {
            cc.on_sent(now, &Sent { size: path.packet, idle: Some(Span::from_secs(1)), starts: true }, &path);
        }
        let acked = cc.window.min(BDP);
        delivered += acked;
        let rate = RateSample {
            delivered: Packets::new(acked),
            interval: RTT,
            prior_delivered: Packets::new(delivered - acked),
            app_limited: false,
            in_flight_at_send: Packets::new(acked),
            lost_since_send: Packets::ZERO,
        };
        let facts = Ack {
            acked: Packets::new(acked),
            delivered: Packets::new(delivered),
            in_flight: Packets::new(acked),
            delivery: Some(rate),
            rtt: Some(RttSample { span: RTT + Span::from_ms(u64::from(acked == BDP)), seq: Seq::FIRST }),
            ..ack(now)
        };
        let before = matches!(cc.state, State::ProbeRtt(_));
        cc.on_ack(&facts, &path);
        match (before, matches!(cc.state, State::ProbeRtt(_))) {
            (false, true) => found.push((tick * 10, 0)),
            (true, false) => {
                found.last_mut().unwrap().1 = tick * 10;
                assert_eq!(cc.state, State::Cruise);
            }
            (true, true) => assert_eq!(cc.window, BDP / 2, "half a BDP"),
            (false, false) => {}
        }
    }
    (found, cc)
}

/// Each five seconds after the end of the last; 200 ms and the rounds until half a BDP is in flight and after. In the dip the
/// RTT is the handshake's 10 ms, and else 11.
#[test]
fn the_rtt_is_measured_anew_every_five_seconds() {
    let (found, cc) = dips(16_500, None);
    assert_eq!(found.len(), 3, "{found:?}");
    let mut last = 0;
    for (begin, end) in found {
        assert!((5_000..=5_020).contains(&(begin - last)), "{begin} after {last}");
        assert!((200..=240).contains(&(end - begin)), "{begin} to {end}");
        last = end;
    }
    assert_eq!(cc.rtt.ns, Some(10_000_000));
    assert!(cc.max_bandwidth() >= BANDWIDTH, "the dips' own samples do not count");
}

#[test]
fn a_pause_measures_the_rtt_without_a_dip() {
    let (found, _) = dips(5_100, Some(5_010));
    assert!(found.is_empty(), "{found:?}");
    let (found, _) = dips(5_100, None);
    assert_eq!(found.len(), 1);
}

#[test]
fn recovery_and_timeouts_restore_the_window_at_their_end() {
    let mut cc = settled(State::Cruise);
    cc.on_lost(&lost(0, 100, 1), &path());
    cc.on_congestion(at(1), Cause::Loss, &path());
    assert_eq!(cc.window, 2 * BDP, "no multiplicative decrease");
    cc.on_timeout(at(2), false, &path());
    assert_eq!(cc.window, 1);
    cc.on_ack(&Ack { phase: Phase::Loss, ..ack(at(3)) }, &path());
    assert_eq!(cc.window, MIN_WINDOW);
    cc.on_ack(&Ack { phase: Phase::Open, ..ack(at(4)) }, &path());
    assert_eq!(cc.window, 2 * BDP, "and no more than before the timeout");
}

#[test]
fn an_undo_restores_the_bounds_and_the_state() {
    let mut cc = settled(State::Up);
    cc.cycle.is_probe_sample = true;
    cc.long_term = Some(190);
    cc.on_lost(&lost(0, 110, 10), &path());
    assert_eq!((cc.state, cc.long_term), (State::Down, Some(109)));
    cc.on_undo();
    assert_eq!((cc.state, cc.long_term), (State::Refill, Some(190)));

    let mut cc = settled(State::Drain { since: 0 });
    cc.note_loss();
    cc.undo.state = Some(Accelerated::Startup);
    cc.on_undo();
    assert_eq!((cc.state, cc.full.reached), (State::Startup, false));
}

#[test]
fn an_undo_restores_what_was_before_the_first_loss_of_an_episode() {
    // Several losses by one acknowledgement, of which the third is too many, and the transport's word that recovery begins.
    let mut cc = settled(State::Up);
    cc.cycle.is_probe_sample = true;
    cc.long_term = Some(190);
    for (segment, since) in [(0, 1), (1, 2), (2, 3), (3, 4)] {
        cc.on_lost(&lost(segment, 110, since), &path());
    }
    cc.on_congestion(at(1), Cause::Loss, &path());
    assert_eq!((cc.state, cc.long_term), (State::Down, Some(109)));
    cc.on_undo();
    assert_eq!((cc.state, cc.long_term), (State::Refill, Some(190)));

    // Two rounds with losses, each of which lowers the short-term bounds.
    let mut cc = settled(State::Cruise);
    cc.phase = Phase::Recovery;
    for round in 0..2 {
        cc.delivered = 1_000 * (round + 1);
        cc.on_lost(&lost(100 * round, 100, 1), &path());
        cc.update_latest(&Sample { prior_delivered: cc.delivered, ..sample(BANDWIDTH / 4) });
        cc.adapt_short_term();
        cc.losses.round_started = false;
        cc.end_episode();
    }
    assert!(cc.short_term.bandwidth < Some(BANDWIDTH / 2));
    cc.on_undo();
    assert_eq!(cc.short_term, ShortTerm::default());

    // The next episode has its own.
    cc.phase = Phase::Open;
    cc.end_episode();
    cc.long_term = Some(150);
    cc.on_lost(&lost(500, 100, 1), &path());
    cc.long_term = Some(50);
    cc.on_undo();
    assert_eq!(cc.long_term, Some(150));
}

#[test]
fn a_timeout_bounds_by_the_window_before_it() {
    let mut cc = settled(State::Cruise);
    cc.window = 200;
    cc.on_timeout(at(1), false, &path());
    cc.delivered = 1_000;
    cc.on_lost(&lost(0, 8, 1), &path());
    cc.update_latest(&Sample { prior_delivered: 1_000, delivered: 8, ..sample(BANDWIDTH) });
    cc.adapt_short_term();
    assert_eq!(cc.short_term.in_flight, Some(140), "0.7 of 200");

    let mut cc = settled(State::Up);
    cc.cycle.is_probe_sample = true;
    cc.on_timeout(at(1), false, &path());
    cc.on_lost(&lost(0, 8, 8), &path());
    assert_eq!(cc.long_term, Some(70), "0.7 of the bandwidth-delay product");
}

#[test]
fn a_short_path_is_measured_to_less_than_a_microsecond() {
    let packets = |delivered: u64| {
        let interval = Span::from_ns(12_900);
        let delivered = Packets::new(delivered);
        let (prior_delivered, app_limited) = (Packets::ZERO, false);
        let (in_flight_at_send, lost_since_send) = (delivered, Packets::ZERO);
        let sample =
            RateSample { delivered, prior_delivered, interval, app_limited, in_flight_at_send, lost_since_send };
        Sample::of(&sample).expect("it has an interval").bandwidth
    };
    assert_eq!(packets(129), BANDWIDTH_ONE * 10);
    let mut cc = settled(State::Cruise);
    cc.bandwidths = [packets(129); 2];
    cc.rtt = MinRtt::default();
    cc.rtt.begin(at(0), Some(Span::from_ns(12_900)));
    assert_eq!(cc.bdp(), 129);
}

/// A tail loss probe that recovered a loss tells of no packet, but of an episode.
#[test]
fn a_loss_that_a_probe_recovered_counts() {
    let mut cc = settled(State::Cruise);
    cc.delivered = 1_000;
    cc.on_congestion(at(1), Cause::Loss, &path());
    cc.update_latest(&Sample { prior_delivered: 1_000, ..sample(BANDWIDTH / 2) });
    cc.adapt_short_term();
    assert_eq!(cc.short_term.bandwidth, Some(BANDWIDTH * 7 / 10));
}

#[test]
fn bursts_are_a_millisecond_at_the_rate() {
    let mut cc = bbr();
    let path = Path { burst: 44, ..path() };
    for (rate, burst) in [(1, 2), (100, 8), (240, 20), (10_000, 43)] {
        cc.pacing = Some(Rate::from_mbps(rate));
        cc.size_bursts(&path);
        assert_eq!(cc.burst(), Some(Packets::new(burst)), "{rate}");
    }
}

#[test]
fn the_integers_hold_400_gigabits_times_one_second() {
    let mut cc = settled(State::Up);
    cc.bandwidths = [BANDWIDTH_ONE * 100 / 3; 2];
    cc.rtt = MinRtt::default();
    cc.rtt.begin(at(0), Some(Span::from_secs(1)));
    assert!(cc.bdp().abs_diff(33_333_333) < 100);
    cc.pace(100);
    assert!(cc.pacing().unwrap().as_bps().abs_diff(396_000_000_000) < 1_000_000);
}
