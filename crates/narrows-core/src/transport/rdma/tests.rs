use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::cc;
use crate::cc::Context;
use crate::packet::{Mtu, Seq};
use crate::rng::SmallStream;
use crate::tcp::initial_path;
use crate::tcp::profile::Profile;

const FULL: u64 = 1_456;
const DELAY: Span = Span::from_us(50);

fn stack(ecn: EcnMode) -> Stack {
    let line_rate = Rate::from_gbps(10);
    Stack { profile: Profile::LINUX_6, ecn, line_rate, delivery_rate: false, mtu: Mtu::ETHERNET }
}

fn config(recovery: Recovery) -> Config {
    Config { recovery, timeout: Span::from_ms(1), ack_every: 1, cnp_interval: None }
}

fn end(config: &Config, controller: &str, stack: &Stack) -> Rdma {
    let spec = cc::spec(controller).expect("it is registered");
    let values: Vec<_> = spec.parameters.iter().map(|parameter| parameter.default).collect();
    let path = initial_path(stack);
    let settings = Settings::new(spec.parameters, &values);
    let context = Context { settings, path: &path, random: SmallStream::new(7) };
    Rdma::new(config, Controller::build(controller, &context).expect("it is registered"), DELAY * 2, stack)
}

/// Two ends and what is under way between them, each way as long as [`DELAY`].
struct Pair {
    ends: [Rdma; 2],
    stack: Stack,
    now: Time,
    /// By time of arrival and order of sending: for which end.
    wire: BTreeMap<(Time, u32), (usize, Segment)>,
    sent: Vec<(usize, Segment)>,
    delivered: Vec<(usize, Tag)>,
}

impl Pair {
    fn new(config: &Config, controller: &str, ecn: EcnMode) -> Pair {
        let stack = stack(ecn);
        let ends = [(); 2].map(|()| end(config, controller, &stack));
        Pair { ends, stack, now: Time::ZERO, wire: BTreeMap::new(), sent: vec![], delivered: vec![] }
    }

    /// Sends what may go; `fate` of the n-th packet is when it arrives, if it does, and whether marked.
    fn send(&mut self, fate: &mut impl FnMut(usize, &Segment, Time) -> Option<(Time, bool)>) {
        for side in 0..2 {
            let mut segment = Segment::default();
            while self.ends[side].poll_into(&mut segment, self.now, true, &self.stack) {
                let number = self.sent.len();
                self.sent.push((side, segment));
                if let Some((at, marked)) = fate(number, &segment, self.now) {
                    if marked && segment.ecn != Ecn::NotCapable {
                        segment.ecn = Ecn::Marked;
                    }
                    let key = (at, u32::try_from(number).expect("few"));
                    self.wire.insert(key, (1 - side, segment));
                }
                segment = Segment::default();
            }
        }
    }

    /// The next arrival or deadline; false if there is none.
    fn step(&mut self) -> bool {
        let arrival = self.wire.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
        let due = self.ends.iter().map(|end| end.deadline().min(end.pacing_deadline())).min().expect("two ends");
        let next = arrival.min(due);
        if next == Time::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        if arrival <= due {
            let (_, (side, segment)) = self.wire.pop_first().expect("it was looked at");
            self.ends[side].handle_segment(self.now, &segment, &self.stack);
        } else {
            self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now, &self.stack));
        }
        for side in 0..2 {
            while let Some(event) = self.ends[side].poll_event() {
                let Event::Delivered(tag) = event else { unreachable!("there is no handshake") };
                self.delivered.push((side, tag));
            }
        }
        true
    }

    fn run(&mut self, mut fate: impl FnMut(usize, &Segment, Time) -> Option<(Time, bool)>) {
        self.send(&mut fate);
        while self.step() {
            self.send(&mut fate);
            assert!(self.sent.len() < 100_000, "it does not come to an end");
        }
    }

    /// Data packets that end 0 has sent, by the numbers of their full packets.
    fn data(&self) -> Vec<u64> {
        let of = |(side, segment): &(usize, Segment)| *side == 0 && segment.length > 0;
        let number = |(_, segment): &(usize, Segment)| (u64::from(segment.seq) - 1) / FULL;
        self.sent.iter().filter(|sent| of(sent)).map(number).collect()
    }
}

fn arrives(_: usize, _: &Segment, now: Time) -> Option<(Time, bool)> {
    Some((now + DELAY, false))
}

/// The first transmission of the third packet is lost.
fn loses_the_third() -> impl FnMut(usize, &Segment, Time) -> Option<(Time, bool)> {
    let mut lost = false;
    move |_, segment, now| {
        let third = segment.length > 0 && u64::from(segment.seq) == 1 + 2 * FULL;
        let loses = third && !lost;
        lost |= loses;
        (!loses).then_some((now + DELAY, false))
    }
}

#[test]
fn messages_arrive_in_order_and_packets_carry_one_message_only() {
    let mut pair = Pair::new(&config(Recovery::GoBackN), "newreno", EcnMode::Off);
    pair.ends[0].offer(Bytes::new(FULL + 1), Tag(1));
    pair.ends[0].offer(Bytes::new(10), Tag(2));
    pair.run(arrives);
    assert_eq!(pair.delivered, [(1, Tag(1)), (1, Tag(2))]);
    let data: Vec<_> = pair.sent.iter().filter(|(_, segment)| segment.length > 0).map(|(_, it)| *it).collect();
    let lengths: Vec<_> = data.iter().map(|it| (u64::from(it.length), it.flags.contains(Flags::END))).collect();
    assert_eq!(lengths, [(FULL, false), (1, true), (10, true)]);
    assert!(pair.ends.iter().all(Machine::is_idle));
}

#[test]
fn both_ends_send_over_one_connection() {
    let mut pair = Pair::new(&config(Recovery::SelectiveRepeat), "newreno", EcnMode::Off);
    pair.ends[0].offer(Bytes::new(5 * FULL), Tag(1));
    pair.ends[1].offer(Bytes::new(7 * FULL), Tag(2));
    pair.run(arrives);
    assert_eq!(pair.delivered, [(1, Tag(1)), (0, Tag(2))]);
}

/// A window of ten goes at once; the third is lost, and everything from there on goes again [IBTA §9.7].
#[test]
fn go_back_n_sends_everything_after_a_loss_again() {
    let mut pair = Pair::new(&config(Recovery::GoBackN), "newreno", EcnMode::Off);
    pair.ends[0].offer(Bytes::new(10 * FULL), Tag(1));
    pair.run(loses_the_third());
    assert_eq!(pair.data(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9]);
    let negative = pair.sent.iter().filter(|(_, segment)| segment.flags.contains(Flags::ACK.with(Flags::NAK)));
    assert_eq!(negative.count(), 1, "it is said once");
    assert_eq!(pair.ends[0].tallies().retransmitted_bytes, 8 * FULL);
    assert_eq!((pair.ends[0].tallies().timeouts, pair.delivered), (0, vec![(1, Tag(1))]));
}

#[test]
fn selective_repeat_sends_only_what_is_missing_again() {
    let mut pair = Pair::new(&config(Recovery::SelectiveRepeat), "newreno", EcnMode::Off);
    pair.ends[0].offer(Bytes::new(10 * FULL), Tag(1));
    pair.run(loses_the_third());
    assert_eq!(pair.data(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2]);
    let negative = pair.sent.iter().filter(|(_, segment)| segment.flags.contains(Flags::ACK.with(Flags::NAK)));
    assert_eq!(negative.count(), 7, "each packet after it says so");
    assert_eq!(pair.ends[0].tallies().timeouts, 0);
}

/// Adapters time each transmission, so that repetitions give RTTs, too, and holes none that are too long.
#[test]
fn rtts_are_of_the_transmission_that_is_answered() {
    for recovery in [Recovery::GoBackN, Recovery::SelectiveRepeat] {
        let mut pair = Pair::new(&config(recovery), "newreno", EcnMode::Off);
        pair.ends[0].offer(Bytes::new(60 * FULL), Tag(1));
        pair.run(|number, _, now| (number % 7 != 3).then_some((now + DELAY, false)));
        let tallies = pair.ends[0].tallies();
        assert!(tallies.retransmitted_bytes > 0 && tallies.rtt_count > 20, "{tallies:?}");
        assert_eq!(tallies.rtt_sum, DELAY * 2 * tallies.rtt_count, "{recovery:?}");
    }
}

#[test]
fn what_nobody_can_miss_is_sent_again_after_the_timeout() {
    for recovery in [Recovery::GoBackN, Recovery::SelectiveRepeat] {
        let mut pair = Pair::new(&config(recovery), "newreno", EcnMode::Off);
        pair.ends[0].offer(Bytes::new(3 * FULL), Tag(1));
        pair.run(loses_the_third());
        // Its two acknowledgements came after a RTT, and from then on nothing.
        let again = Time::ZERO + DELAY * 2 + Span::from_ms(1);
        assert_eq!((pair.data(), pair.now), (vec![0, 1, 2, 2], again + DELAY * 2), "{recovery:?}");
        let tallies = pair.ends[0].tallies();
        assert_eq!((tallies.timeouts, tallies.rto_wait), (1, Span::from_ms(1)));
    }
}

#[test]
fn acknowledgements_answer_several_packets_and_the_last_at_once() {
    let mut pair = Pair::new(&Config { ack_every: 4, ..config(Recovery::GoBackN) }, "newreno", EcnMode::Off);
    pair.ends[0].offer(Bytes::new(10 * FULL), Tag(1));
    pair.run(arrives);
    let acks: Vec<_> =
        pair.sent.iter().filter(|(side, _)| *side == 1).map(|(_, it)| (u64::from(it.ack) - 1) / FULL).collect();
    assert_eq!(acks, [4, 8, 10]);
    assert_eq!((pair.ends[0].tallies().timeouts, pair.now), (0, Time::ZERO + DELAY * 2));
}

/// A window of less than `ack-every` packets would otherwise wait for the timeout.
#[test]
fn a_full_window_asks_for_an_acknowledgement() {
    let mut pair = Pair::new(&Config { ack_every: 200, ..config(Recovery::GoBackN) }, "newreno", EcnMode::Off);
    pair.ends[0].offer(Bytes::new(100 * FULL), Tag(1));
    pair.run(arrives);
    assert_eq!((pair.ends[0].tallies().timeouts, pair.delivered), (0, vec![(1, Tag(1))]));
}

#[test]
fn marks_are_echoed_each_or_once_in_an_interval() {
    let ece = |cnp_interval, ack_every| {
        let config = Config { cnp_interval, ack_every, ..config(Recovery::GoBackN) };
        let mut receiver = Receiver::new(config, Span::from_secs(1));
        let mut told = vec![];
        for number in 0..200_u64 {
            let now = Time::ZERO + Span::from_us(number);
            let seq = Seq::FIRST.plus(number * FULL).wire();
            receiver.handle(
                now,
                &Segment { seq, length: 1_456, flags: Flags::RDMA, ecn: Ecn::Marked, ..Segment::default() },
            );
            let mut answer = Segment::default();
            if receiver.take_answer(&mut answer) && answer.flags.contains(Flags::ECE) {
                told.push(number);
            }
        }
        told
    };
    assert_eq!(ece(None, 1), (0..200).collect::<Vec<_>>());
    assert_eq!(ece(None, 50), [49, 99, 149, 199]);
    assert_eq!(ece(Some(Span::from_us(50)), 1), [0, 50, 100, 150]);
    assert_eq!(ece(Some(Span::from_us(50)), 64), [0, 50, 100, 150], "marks do not wait for other packets");
}

/// Acknowledgements of several packets are of such that are marked alike [RFC 8257 §3.2].
#[test]
fn a_run_of_marks_is_told_exactly() {
    let mut receiver = Receiver::new(Config { ack_every: 16, ..config(Recovery::GoBackN) }, Span::from_secs(1));
    let (mut told, mut last) = (0, 0);
    for number in 0..160_u64 {
        let seq = Seq::FIRST.plus(number * FULL).wire();
        let ecn = if (37..60).contains(&number) { Ecn::Marked } else { Ecn::Capable };
        receiver.handle(Time::ZERO, &Segment { seq, length: 1_456, flags: Flags::RDMA, ecn, ..Segment::default() });
        let mut answer = Segment::default();
        while receiver.take_answer(&mut answer) {
            let acked = (u64::from(answer.ack) - 1) / FULL;
            told += if answer.flags.contains(Flags::ECE) { acked - last } else { 0 };
            last = acked;
            answer = Segment::default();
        }
    }
    assert_eq!((told, last), (60 - 37, 156));
}

#[test]
fn a_controller_hears_of_every_mark() {
    let mut pair = Pair::new(&config(Recovery::GoBackN), "dctcp", EcnMode::Exact);
    pair.ends[0].offer(Bytes::new(40 * FULL), Tag(1));
    pair.run(|_, _, now| Some((now + DELAY, true)));
    assert_eq!(pair.ends[1].tallies().marked_bytes, 40 * FULL);
    assert!(pair.ends[0].window() < Packets::new(10), "{:?}", pair.ends[0].window());
}

#[test]
fn it_paces_at_the_rate_of_its_controller() {
    let mut pair = Pair::new(&config(Recovery::GoBackN), "dcqcn", EcnMode::Exact);
    pair.ends[0].offer(Bytes::new(100 * FULL), Tag(1));
    pair.run(arrives);
    let each = Rate::from_gbps(10).time_for(Bytes::new(1_500));
    assert_eq!(pair.now, Time::ZERO + each * 99 + DELAY * 2);
}

/// The last packets were sent without asking for an acknowledgement: it comes all the same, after a quarter of the RTT.
#[test]
fn a_flow_that_is_stopped_ends_with_what_was_sent() {
    let mut pair = Pair::new(&Config { ack_every: 64, ..config(Recovery::GoBackN) }, "dcqcn", EcnMode::Exact);
    pair.ends[0].offer(Bytes::new(u64::MAX / 4), Tag(1));
    let mut fate = arrives;
    while pair.sent.len() < 1_000 {
        pair.send(&mut fate);
        pair.step();
    }
    pair.ends[0].stop();
    pair.run(arrives);
    assert!(pair.ends[0].is_idle() && pair.delivered.is_empty());
    assert_eq!(pair.ends[0].tallies().timeouts, 0);
    assert_eq!(pair.ends[1].tallies().delivered_bytes, u64::try_from(pair.data().len()).expect("few") * FULL);
}

proptest! {
    /// Whatever is lost, late or marked, either way: all messages arrive, once, in order, and every byte is counted once.
    #[test]
    fn everything_arrives_once_and_in_order(
        selective in any::<bool>(),
        controller in prop::sample::select(vec!["newreno", "dctcp", "dcqcn", "swift", "timely", "gemini"]),
        ack_every in 1u16..8,
        cnp in prop::option::of(1u64..100),
        messages in prop::collection::vec(1u64..30_000, 1..6),
        fates in prop::collection::vec((0u64..10, 0u64..30, any::<bool>()), 1..60),
    ) {
        let recovery = if selective { Recovery::SelectiveRepeat } else { Recovery::GoBackN };
        let cnp_interval = cnp.map(Span::from_us);
        let mut pair = Pair::new(&Config { ack_every, cnp_interval, ..config(recovery) }, controller, EcnMode::Exact);
        for (number, bytes) in (1..).zip(&messages) {
            pair.ends[0].offer(Bytes::new(*bytes), Tag(number));
        }
        pair.run(|number, _, now| {
            // After a while nothing is lost any more.
            let (dice, late, marked) = fates[number % fates.len()];
            (dice > 1 || number > 2_000).then_some((now + DELAY + Span::from_us(late), marked))
        });
        let all: Vec<_> = (1..).zip(&messages).map(|(number, _)| (1, Tag(number))).collect();
        prop_assert_eq!(&pair.delivered, &all);
        let total: u64 = messages.iter().sum();
        let (sender, receiver) = (pair.ends[0].tallies(), pair.ends[1].tallies());
        prop_assert_eq!((receiver.delivered_bytes, receiver.beyond_bytes), (total, 0));
        let sent: u64 = pair.sent.iter().filter(|(side, _)| *side == 0).map(|(_, it)| u64::from(it.length)).sum();
        prop_assert_eq!(sent, total + sender.retransmitted_bytes);
        let snapshot = pair.ends[0].snapshot();
        prop_assert_eq!((snapshot.in_flight, snapshot.outstanding), (0, 0));
        prop_assert!(pair.ends.iter().all(|end| end.is_idle() && end.is_quiescent()));
    }
}
