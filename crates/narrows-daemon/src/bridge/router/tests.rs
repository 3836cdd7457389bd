use super::*;
use crate::bridge::sample;
use crate::bridge::wrap::MAX_LINK;
use narrows_core::edge::dcib::Share;
use narrows_core::units::{Rate, Span};
use proptest::prelude::*;
use std::cell::Cell;

const PORT: u16 = 8_936;
const SIGN: u8 = 44;

/// Different bytes each time, and the same in each run.
fn draw(bytes: &mut [u8]) {
    thread_local!(static STATE: Cell<u64> = const { Cell::new(1) });
    for byte in bytes {
        let next = STATE.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        STATE.set(next);
        *byte = next.to_be_bytes()[0];
    }
}

fn given(near: &str, far: &str, link: usize) -> RouterConfig {
    let config = Config::new(Rate::from_gbps(1), Share::WHOLE, Span::from_ms(10));
    RouterConfig {
        config,
        keys: narrows_wire::Key::new([7; 32]).into(),
        names: Names::new(near, far, 3).unwrap(),
        port: PORT,
        sign: Some(SIGN),
        link,
        longest: 1_500,
        clock: 1_000,
        draw,
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// Two routers, each with its site.
struct Pair {
    routers: [Router; 2],
    link: usize,
}

impl Pair {
    fn new(link: usize) -> Pair {
        Pair { routers: [Router::new(given("left", "right", link)), Router::new(given("right", "left", link))], link }
    }

    /// What a router sends after a frame has come: to its site, and outside.
    fn take(&mut self, at_router: usize, now: Time, side: Side, bytes: &[u8]) -> [Vec<Vec<u8>>; 2] {
        let packet = &bytes[self.link..];
        let protocol = if packet[0] >> 4 == 6 { packet[6] } else { packet[9] };
        let kind = match protocol {
            6 => Kind::Tcp,
            17 => Kind::Tunnel,
            _ => Kind::Error,
        };
        self.routers[at_router].handle(now, side, kind, bytes, 0);
        self.sent(at_router)
    }

    fn sent(&mut self, at_router: usize) -> [Vec<Vec<u8>>; 2] {
        let mut sent = [vec![], vec![]];
        while let Some(one) = self.routers[at_router].poll() {
            assert!(sample::is_sound(&one.frame.bytes()[self.link..]), "{:02x?}", one.frame.bytes());
            sent[one.side as usize].push(one.frame.bytes().to_vec());
        }
        sent
    }

    /// A frame from the left host, through both; what the right host is given. Nothing is lost.
    fn cross(&mut self, now: Time, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut delivered = vec![];
        let [none, mut rightwards] = self.take(0, now, Side::Inside, bytes);
        assert!(none.is_empty());
        while !rightwards.is_empty() {
            let mut leftwards = vec![];
            for frame in rightwards {
                let [inside, outside] = self.take(1, now, Side::Outside, &frame);
                delivered.extend(inside);
                leftwards.extend(outside);
            }
            rightwards = vec![];
            for frame in leftwards {
                let [inside, outside] = self.take(0, now, Side::Outside, &frame);
                assert!(inside.is_empty(), "a host is told nothing of what edges say");
                rightwards.extend(outside);
            }
        }
        delivered
    }

    /// A pair whose left edge marks all that it can.
    fn connected(v6: bool, link: usize) -> Pair {
        let mut pair = Pair::new(link);
        let first = sample::tcp(v6, link, 2, 0, &[0; 10]);
        assert_eq!(pair.cross(at(0), &first), [first]);
        assert!(pair.routers[0].edge().is_connected(at(0)));
        pair
    }
}

fn data(v6: bool, link: usize, place: u32) -> Vec<u8> {
    sample::tcp(v6, link, 2, 10 + place * 100, &[u8::try_from(place).unwrap(); 100])
}

#[test]
fn what_is_marked_is_as_it_was_at_the_other_host() {
    for (v6, link) in [(false, 14), (false, 0), (true, 14), (true, 0)] {
        let mut pair = Pair::connected(v6, link);
        for place in 0..20 {
            let frame = data(v6, link, place);
            let [_, out] = pair.take(0, at(1), Side::Inside, &frame);
            assert_eq!(out.len(), 1);
            assert_eq!(out[0].len(), frame.len() + extra(v6), "it is marked");
            assert_eq!(out[0][..link], frame[..link]);
            assert_eq!(super::super::frame::class(&out[0][link..]) & 3, 0, "it may be dropped");
            let [inside, back] = pair.take(1, at(1), Side::Outside, &out[0]);
            assert_eq!((inside, back.len()), (vec![frame], 1));
            if link == MAX_LINK {
                assert_eq!(back[0][..12], [&out[0][6..12], &out[0][..6]].concat());
            }
            let nothing = pair.take(0, at(1), Side::Outside, &back[0]);
            assert_eq!(nothing, [vec![], vec![]] as [Vec<Vec<u8>>; 2]);
        }
        assert_eq!(pair.routers[0].edge().stored().get(), 0);
        assert_eq!(pair.routers[0].counters.believed, 21, "a welcome and acknowledgements");
    }
}

#[test]
fn an_idle_edge_is_not_said_to_be_disconnected() {
    let mut pair = Pair::new(14);
    let connected = |pair: &Pair, now| pair.routers.each_ref().map(|router| router.is_connected(now));
    assert_eq!(connected(&pair, at(0)), [None, None]);
    // Nobody answers.
    pair.take(0, at(0), Side::Inside, &sample::tcp(false, 14, 2, 0, &[0; 10]));
    assert_eq!(connected(&pair, at(0)), [Some(false), None]);
    // It is asked again after a while; who only answers, and sends no data, has not asked.
    let first = sample::tcp(false, 14, 2, 10, &[0; 10]);
    assert_eq!(pair.cross(at(5_000), &first), [first]);
    assert_eq!(connected(&pair, at(5_000)), [Some(true), None]);
}

#[test]
fn what_is_lost_is_repaired_and_in_order() {
    let mut pair = Pair::connected(false, 14);
    let frames: Vec<_> = (0..3).map(|place| data(false, 14, place)).collect();
    let marked: Vec<_> = frames.iter().flat_map(|frame| pair.take(0, at(20), Side::Inside, frame)[1].clone()).collect();
    // The first is lost.
    for frame in &marked[1..] {
        let [inside, back] = pair.take(1, at(25), Side::Outside, frame);
        assert!(inside.is_empty(), "it waits for the first");
        pair.take(0, at(25), Side::Outside, &back[0]);
    }
    let due = pair.routers[0].deadline();
    pair.routers[0].handle_timeout(due);
    let [_, again] = pair.sent(0);
    assert_eq!(again.len(), 1);
    assert_eq!(super::super::frame::class(&again[0][14..]) & 3, 2, "it is spared");
    let [inside, back] = pair.take(1, due, Side::Outside, &again[0]);
    assert_eq!(inside, frames);
    pair.take(0, due, Side::Outside, &back[0]);
    assert_eq!(pair.routers[0].edge().transmitted().repaired, 1);
}

#[test]
fn a_repair_that_met_congestion_says_so() {
    let mut pair = Pair::connected(false, 0);
    pair.take(0, at(20), Side::Inside, &data(false, 0, 0));
    let due = pair.routers[0].deadline();
    pair.routers[0].handle_timeout(due);
    let mut again = pair.sent(0)[1][0].clone();
    narrows_testbed::packet::set_congestion_experienced(&mut again);
    let [inside, _] = pair.take(1, due, Side::Outside, &again);
    let mut expected = data(false, 0, 0);
    narrows_testbed::packet::set_congestion_experienced(&mut expected);
    assert_eq!(inside, [expected]);
}

#[test]
fn a_sign_of_one_edge_alone_is_known_at_both_and_nothing_is_disguised() {
    for signs in [[Some(SIGN), None], [None, Some(SIGN)], [Some(SIGN), Some(SIGN + 1)], [Some(SIGN), Some(SIGN)]] {
        let router = |near, far, sign| Router::new(RouterConfig { sign, ..given(near, far, 14) });
        let routers = [router("left", "right", signs[0]), router("right", "left", signs[1])];
        let mut pair = Pair { routers, link: 14 };
        assert!(pair.routers.iter().all(|router| router.far_sign().is_none() && !router.is_sign_another()));
        let first = sample::tcp(false, 14, 2, 0, &[0; 10]);
        assert_eq!(pair.cross(at(0), &first), [first]);
        let far_signs = |pair: &Pair| pair.routers.each_ref().map(Router::far_sign);
        assert_eq!(far_signs(&pair), [Some(signs[1].unwrap_or(0)), None], "a greeting alone may be a recording");
        pair.cross(at(0), &data(false, 14, 0));
        let known = pair.routers.each_ref().map(|router| (router.far_sign(), router.is_sign_another()));
        let differ = signs[0] != signs[1];
        assert_eq!(known, [(Some(signs[1].unwrap_or(0)), differ), (Some(signs[0].unwrap_or(0)), differ)], "{signs:?}");
        let plain = sample::tcp(false, 14, 0, 10, &[]);
        for (at_router, sign) in signs.into_iter().enumerate() {
            let [_, out] = pair.take(at_router, at(1), Side::Inside, &plain);
            assert_eq!(out == [plain.clone()], differ || sign.is_none(), "{signs:?}");
        }
    }
}

/// A recorded greeting says what the far edge's sign once was. An edge that was restarted has seen no token.
#[test]
fn a_replayed_greeting_changes_no_sign() {
    for (before, after) in [(None, Some(SIGN)), (Some(SIGN), None), (Some(SIGN + 1), Some(SIGN))] {
        let left = |sign, clock| Router::new(RouterConfig { sign, clock, ..given("left", "right", 14) });
        let right = || Router::new(given("right", "left", 14));
        let first = sample::tcp(false, 14, 2, 0, &[0; 10]);
        let mut pair = Pair { routers: [left(before, 1_000), right()], link: 14 };
        let [_, recorded] = pair.take(0, at(0), Side::Inside, &first);
        let mut pair = Pair { routers: [left(after, 2_000), right()], link: 14 };
        pair.cross(at(0), &first);
        pair.cross(at(0), &data(false, 14, 0));
        let known = (Some(after.unwrap_or(0)), after != Some(SIGN));
        let signs = |pair: &Pair| (pair.routers[1].far_sign(), pair.routers[1].is_sign_another());
        assert_eq!(signs(&pair), known);
        // It is stale at first, and after a long silence answered: with what it says nobody marks.
        for ms in [1, 20_000] {
            pair.take(1, at(ms), Side::Outside, &recorded[0]);
            assert_eq!(signs(&pair), known, "at {ms} ms");
        }
        pair.routers[1] = right();
        let [_, welcome] = pair.take(1, at(20_000), Side::Outside, &recorded[0]);
        assert_eq!((welcome.len(), signs(&pair)), (1, (None, false)), "it is answered, and no more");
        let plain = sample::tcp(false, 14, 0, 10, &[]);
        let [_, out] = pair.take(1, at(20_000), Side::Inside, &plain);
        assert_eq!(out, [sample::tcp(false, 14, SIGN << 2 | 2, 10, &[])]);
        // The far edge's own greeting is newer, and it marks with what it agrees on.
        pair.routers[0] = left(after, 3_000);
        pair.cross(at(20_001), &data(false, 14, 1));
        pair.cross(at(20_001), &data(false, 14, 2));
        assert_eq!(signs(&pair), known);
    }
}

#[test]
fn packets_of_hosts_without_ecn_are_disguised_where_there_is_a_sign() {
    for v6 in [false, true] {
        let mut pair = Pair::new(14);
        // No data: it is not marked.
        let frame = sample::tcp(v6, 14, 0, 1, &[]);
        let [_, out] = pair.take(0, at(0), Side::Inside, &frame);
        assert_eq!(out, [sample::tcp(v6, 14, SIGN << 2 | 2, 1, &[])]);
        let [inside, _] = pair.take(1, at(0), Side::Outside, &out[0]);
        assert_eq!(inside, [frame]);
        // It has a class of its own, and goes as it came.
        let frame = sample::tcp(v6, 14, 10 << 2, 1, &[]);
        assert_eq!(pair.take(0, at(0), Side::Inside, &frame)[1], [frame]);
        let counters = pair.routers[0].counters;
        assert_eq!((counters.disguised, counters.plainly), (1, 1));
        let mut without = Router::new(RouterConfig { sign: None, ..given("left", "right", 14) });
        let frame = sample::tcp(v6, 14, 0, 1, &[]);
        without.handle(at(0), Side::Inside, Kind::Tcp, &frame, 0);
        assert_eq!(without.poll().unwrap().frame.bytes(), frame);
    }
}

#[test]
fn what_would_be_too_long_goes_unmarked() {
    let mut pair = Pair::connected(false, 14);
    for (payload, marked) in [(1_500 - 40 - 56, true), (1_500 - 40 - 55, false)] {
        let frame = sample::tcp(false, 14, 2, 10, &vec![1; payload]);
        let [_, out] = pair.take(0, at(1), Side::Inside, &frame);
        assert_eq!((out.len(), out[0].len() > frame.len()), (1, marked), "{payload}");
        assert!(out[0].len() <= 1_514);
    }
    assert_eq!(pair.routers[0].counters.too_long, 1);
    // And is spared where its host has no ECN.
    let frame = sample::tcp(false, 14, 0, 10, &vec![1; 1_460]);
    let [_, out] = pair.take(0, at(1), Side::Inside, &frame);
    assert_eq!(out, [sample::tcp(false, 14, SIGN << 2 | 2, 10, &vec![1; 1_460])]);
}

#[test]
fn what_opens_a_connection_says_what_fits() {
    let mut pair = Pair::new(0);
    for (v6, stated, expected) in [(false, 1_460, 1_404), (true, 1_440, 1_364), (false, 1_000, 1_000)] {
        let option = |size: u16| [[2, 4], size.to_be_bytes()].concat();
        let frame = sample::syn(v6, 0, &option(stated));
        let [_, out] = pair.take(0, at(0), Side::Inside, &frame);
        let size = frame.len();
        assert_eq!(out[0][size - 4..], option(expected));
        let [inside, _] = pair.take(1, at(0), Side::Outside, &frame);
        assert_eq!(inside[0][size - 4..], option(expected), "in either direction");
    }
    assert_eq!(pair.routers[0].counters.clamped, 2);
}

/// A router's complaint of a packet of ours.
fn complaint(packet: &[u8], most: u16) -> Vec<u8> {
    let header = etherparse::Icmpv4Type::DestinationUnreachable(
        etherparse::icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: most },
    );
    let mut bytes = vec![];
    etherparse::PacketBuilder::ipv4([10, 9, 9, 9], [10, 0, 0, 1], 60)
        .icmpv4(header)
        .write(&mut bytes, &packet[..packet.len().min(64)])
        .unwrap();
    bytes
}

#[test]
fn a_router_that_takes_less_is_heard_if_it_quotes_what_was_sent() {
    let mut pair = Pair::connected(false, 0);
    let frame = sample::tcp(false, 0, 2, 10, &[1; 1_300]);
    let [_, out] = pair.take(0, at(1), Side::Inside, &frame);
    let mut forged = out[0].clone();
    forged[20 + 8 + 4] ^= 1;
    // Anybody knows two hosts and a port.
    let short = out[0][..28].to_vec();
    for (quoted, longest) in [(&forged, 1_500), (&short, 1_500), (&out[0], 1_400)] {
        let message = complaint(quoted, 1_400);
        let router = &mut pair.routers[0];
        router.handle(at(2), Side::Outside, Kind::Error, &message, 0);
        assert_eq!(router.poll(), None, "hosts have sent no such datagram");
        assert_eq!(router.longest(at(2)), [longest, 1_500]);
    }
    // The next of that size is too long; and so is the repair of the one that was lost: it goes bare.
    let [_, out] = pair.take(0, at(3), Side::Inside, &sample::tcp(false, 0, 2, 1_310, &[2; 1_310]));
    assert_eq!(out[0].len(), 1_350);
    let due = pair.routers[0].deadline();
    pair.routers[0].handle_timeout(due);
    let [_, again] = pair.sent(0);
    assert_eq!(again[0].len(), 1_396, "1 340 and 56 fit still");
    let message = complaint(&again[0], 1_000);
    pair.routers[0].handle(due, Side::Outside, Kind::Error, &message, 0);
    let due = pair.routers[0].deadline();
    pair.routers[0].handle_timeout(due);
    assert_eq!(pair.sent(0)[1], [frame]);
}

#[test]
fn a_path_that_swallows_long_packets_is_noticed() {
    let mut pair = Pair::connected(false, 0);
    let short = sample::tcp(false, 0, 2, 10, &[1; 100]);
    assert_eq!(pair.cross(at(1), &short), [short]);
    let long = sample::tcp(false, 0, 2, 110, &[1; 1_400]);
    let [_, mut out] = pair.take(0, at(2), Side::Inside, &long);
    // What is short arrives still: the path is there.
    pair.cross(at(3), &sample::tcp(false, 0, 2, 1_510, &[1; 100]));
    let mut tries = 0;
    while out[0].len() > long.len() {
        tries += 1;
        let due = pair.routers[0].deadline();
        pair.routers[0].handle_timeout(due);
        out = pair.sent(0)[1].clone();
    }
    assert_eq!((tries, out), (2, vec![long]), "it goes bare the third time");
    assert_eq!((pair.routers[0].longest(at(3))[0], pair.routers[0].counters.suspected), (576, 1));
}

/// Packets that are lost while nothing arrives say nothing of what the path takes.
#[test]
fn a_path_that_is_gone_is_not_taken_to_be_narrow() {
    let mut pair = Pair::connected(false, 0);
    let short = sample::tcp(false, 0, 2, 10, &[1; 100]);
    assert_eq!(pair.cross(at(1), &short), [short]);
    pair.take(0, at(2), Side::Inside, &sample::tcp(false, 0, 2, 110, &[1; 1_400]));
    while pair.routers[0].deadline() < Time::NEVER {
        let due = pair.routers[0].deadline();
        pair.routers[0].handle_timeout(due);
    }
    assert_eq!((pair.routers[0].longest(at(100))[0], pair.routers[0].counters.suspected), (1_500, 0));
}

/// What went past the process from outside nobody waits for.
#[test]
fn what_went_past_is_no_hole() {
    let mut pair = Pair::new(0);
    let frame = |seq| sample::tcp(false, 0, 2, seq, &[1; 10]);
    let router = &mut pair.routers[1];
    let mut came = |count: u32, seq: u32| {
        router.went_past(at(1), Side::Outside, count);
        router.handle(at(1), Side::Outside, Kind::Tcp, &frame(seq), 0);
        std::iter::from_fn(|| router.poll()).count()
    };
    assert_eq!([came(7, 100), came(7, 110)], [1, 1]);
    assert_eq!([came(7, 130), came(7, 140)], [0, 0], "it waits for 120");
    assert_eq!(came(8, 150), 3, "which went past");
    assert_eq!(came(8, 170), 0);
}

/// A packet that newer ones overtook leaves as it came, and nobody waits for what is before or behind it.
#[test]
fn what_waited_too_long_is_neither_marked_nor_held_back() {
    let mut pair = Pair::connected(false, 14);
    let frame = data(false, 14, 0);
    pair.routers[0].handle_late(at(1), Side::Inside, Kind::Tcp, &frame, 0);
    assert_eq!(pair.sent(0), [vec![], vec![frame]]);
    let [_, marked] = pair.take(0, at(1), Side::Inside, &data(false, 14, 1));
    assert_eq!(marked[0].len(), data(false, 14, 1).len() + extra(false), "the next is marked again");
    // The right edge has begun the order of the connection, and misses the second packet.
    let came = sample::tcp(false, 14, 2, 10, &[1; 10]);
    let later = sample::tcp(false, 14, 2, 30, &[1; 10]);
    assert_eq!(pair.take(1, at(2), Side::Outside, &came)[0], [came]);
    assert_eq!(pair.take(1, at(2), Side::Outside, &later)[0], Vec::<Vec<u8>>::new());
    let plain = sample::tcp(false, 14, 0, 200, &[1; 10]);
    let mut frame = Frame::read(&plain, 14, 0).unwrap();
    frame.set_dscp(SIGN);
    frame.set_ecn(Ecn::Capable);
    let disguised = frame.leave().bytes().to_vec();
    pair.routers[1].handle_late(at(3), Side::Outside, Kind::Tcp, &disguised, 0);
    assert_eq!(
        pair.sent(1)[0],
        [later, plain],
        "what was held back, and what the left edge had before it disguised it"
    );
    assert_eq!(pair.routers.each_ref().map(|router| router.counters.late), [1, 1]);
    // A host without ECN is spared nevertheless.
    let plain = sample::tcp(false, 14, 0, 300, &[1; 10]);
    pair.routers[0].handle_late(at(4), Side::Inside, Kind::Tcp, &plain, 0);
    let [_, out] = pair.sent(0);
    assert_eq!(Frame::read(&out[0], 14, 0).map(|frame| (frame.dscp(), frame.ecn())), Some((SIGN, Ecn::Capable)));
}

#[test]
fn an_interface_that_takes_less_takes_less_at_once() {
    let mut pair = Pair::connected(false, 0);
    let long = sample::tcp(false, 0, 2, 10, &[1; 1_000]);
    assert_eq!(pair.take(0, at(1), Side::Inside, &long)[1][0].len(), long.len() + extra(false));
    pair.routers[0].set_longest(1_000);
    assert_eq!(pair.routers[0].longest(at(1)), [1_000, 1_000]);
    assert_eq!(pair.take(0, at(1), Side::Inside, &long)[1], [&long[..]], "it would be too long, marked");
    pair.routers[0].set_longest(1_500);
    assert_eq!(pair.take(0, at(1), Side::Inside, &long)[1][0].len(), long.len() + extra(false));
}

#[test]
fn forgeries_and_recordings_are_answered_by_nothing() {
    let mut pair = Pair::new(14);
    let first = sample::tcp(false, 14, 2, 0, &[0; 10]);
    let [_, greeting] = pair.take(0, at(0), Side::Inside, &first);
    let [_, welcome] = pair.take(1, at(0), Side::Outside, &greeting[0]);
    pair.take(0, at(0), Side::Outside, &welcome[0]);
    let [_, marked] = pair.take(0, at(1), Side::Inside, &data(false, 14, 0));
    let [_, said] = pair.take(1, at(1), Side::Outside, &marked[0]);
    pair.take(0, at(1), Side::Outside, &said[0]);
    let before = pair.routers.each_ref().map(|router| router.edge().received());
    for (to, frame) in [(1, &greeting[0]), (0, &welcome[0]), (1, &marked[0]), (0, &said[0])] {
        for changed in 0..40 {
            let mut frame = frame.clone();
            if changed > 0 {
                let at = 14 + 28 + 3 + changed.min(frame.len() - 14 - 28 - 4);
                frame[at] ^= 1;
            }
            let sent = pair.take(to, at(2), Side::Outside, &frame);
            assert_eq!(sent, [vec![], vec![]] as [Vec<Vec<u8>>; 2]);
        }
    }
    let after = pair.routers.each_ref().map(|router| router.edge().received());
    assert_eq!(before, after, "the machine heard nothing of it");
    let refused = pair.routers.each_ref().map(|router| router.counters.refused.iter().sum::<u64>());
    // An acknowledgement that comes again the machine counts itself.
    assert_eq!(refused.iter().sum::<u64>() + pair.routers[0].edge().transmitted().stray_acknowledgements, 160);
    assert!(pair.routers[0].edge().is_connected(at(2)));
}

proptest! {
    /// Whatever comes, and as whatever it is taken, nothing fails, and what is not TCP of sorts leaves as it came.
    #[test]
    fn hostile_frames_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..200), link in prop::sample::select(&[0_usize, 14][..]),
        v6: bool, kind in 0..3, outside: bool)
    {
        if let Some(first) = bytes.get_mut(link) {
            *first = if v6 { 0x60 } else { 0x45 };
        }
        let mut router = Router::new(given("left", "right", link));
        let side = if outside { Side::Outside } else { Side::Inside };
        let kind = [Kind::Tcp, Kind::Tunnel, Kind::Error][usize::try_from(kind).unwrap()];
        router.handle(at(0), side, kind, &bytes, 0);
        while let Some(sent) = router.poll() {
            prop_assert_eq!(sent.side, other(side));
        }
    }
}
