use super::*;
use proptest::prelude::*;
use std::vec::Vec;

const MSS: u64 = 1448;

fn seq(segment: u64) -> Seq {
    Seq::FIRST.plus(segment * MSS)
}

impl Scoreboard {
    /// The counters agree with the records.
    fn check(&self) {
        let count = |state| self.records.iter().filter(|record| record.is(state)).count();
        assert!(self.records.iter().all(|record| !(record.is(SACKED) && record.is(LOST | RESENT))));
        assert_eq!(count(SACKED), self.sacked as usize);
        assert_eq!(count(LOST), self.lost as usize);
        assert_eq!(count(RESENT), self.resent as usize);
        let scan = self.index(self.scan.max(self.first));
        let below = self.records.iter().take(scan).filter(|record| record.is(SACKED)).count();
        assert_eq!(below, self.sacked_below_scan as usize);
        let mut sacked = std::vec![false; self.records.len()];
        let mut end = None;
        for &(from, to) in &self.runs {
            assert!(from < to && end.is_none_or(|end| end < from));
            sacked[self.index(from)..self.index(to)].fill(true);
            end = Some(to);
        }
        assert!(self.records.iter().zip(sacked).all(|(record, sacked)| record.is(SACKED) == sacked));
        let waiting = |number: u64| self.to_resend.contains(&number);
        let in_network = |number, record: &Record| self.resends.contains(&(number, record.sent_at));
        for (number, record) in (self.first..).zip(self.records.iter()) {
            assert!(record.state & (LOST | RESENT) != LOST || waiting(number), "{number} is lost for good");
            assert!(!record.is(RESENT) || in_network(number, record), "no one waits for {number}");
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Send,
    Acknowledge(u64),
    Sack(u64, u64),
    LoseByCount,
    LoseByTime(u64),
    LoseAll,
    Resend,
    ResendLast,
    Forget,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => Just(Op::Send),
        3 => (0u64..6).prop_map(Op::Acknowledge),
        4 => (0u64..12, 1u64..6).prop_map(|(from, count)| Op::Sack(from, count)),
        3 => Just(Op::LoseByCount),
        2 => (0u64..20).prop_map(Op::LoseByTime),
        1 => Just(Op::LoseAll),
        5 => Just(Op::Resend),
        1 => Just(Op::ResendLast),
        1 => Just(Op::Forget),
    ]
}

proptest! {
    #[test]
    fn counters_agree_with_records_and_each_segment_is_delivered_once(ops in prop::collection::vec(op(), 1..200)) {
        let mut board = Scoreboard::default();
        let (mut una, mut sent, mut total) = (0u64, 0u64, 0u64);
        let mut known: Vec<bool> = Vec::new();
        // What a receiver reports: what it got last, and before that.
        let mut reports = [(0u64, 0u64); 3];
        for (tick, op) in ops.into_iter().enumerate() {
            let now = Time::ZERO + Span::from_us(tick as u64);
            let mut delivered = Delivered::default();
            match op {
                Op::Send => {
                    board.push(now, seq(sent), 1448, None);
                    known.push(false);
                    sent += 1;
                }
                Op::Acknowledge(count) => {
                    let to = (una + count).min(sent);
                    let mut other = board.clone();
                    delivered = board.begin_acknowledgement();
                    board.acknowledge(seq(una), seq(to), &mut delivered);
                    let mut same = other.begin_acknowledgement();
                    other.acknowledge_touched(seq(una), seq(to), &mut same);
                    prop_assert_eq!(delivered, same);
                    una = to;
                    known[..usize::try_from(una).unwrap()].fill(true);
                }
                Op::Sack(from, count) => {
                    let (from, to) = ((una + 1 + from).min(sent), (una + 1 + from + count).min(sent));
                    reports = [(from, to), reports[0], reports[1]];
                    let ranges = reports.map(|(from, to)| if from > una { (from, to) } else { (sent, sent) });
                    let (mut other, mut same) = (board.clone(), Delivered::default());
                    board.sack_all(ranges.map(|(from, to)| (seq(from), seq(to))), seq(una), &mut delivered);
                    for (from, to) in ranges {
                        other.sack(seq(from), seq(to), seq(una), &mut same);
                        known[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()].fill(true);
                    }
                    prop_assert_eq!(delivered, same, "what the report before had is not looked up again");
                }
                Op::LoseByCount => { board.lose_by_count(3, false, &mut |_, _, _| {}); }
                Op::LoseByTime(wait) => {
                    board.lose_by_time(now, (now, seq(sent)), Span::from_us(wait), false, seq(una), &mut |_, _, _| {});
                }
                Op::LoseAll => {
                    let outstanding = &mut known[usize::try_from(una).unwrap()..];
                    if outstanding.first() == Some(&true) {
                        // A receiver that reneges delivers again.
                        total -= outstanding.iter().filter(|&&known| known).count() as u64;
                        outstanding.fill(false);
                    }
                    board.lose_all(now, Span::from_us(tick as u64 % 8), &mut |_, _, _| {});
                }
                Op::Resend => { board.resend(now, seq(una), None); }
                Op::ResendLast => { board.resend_last(now, seq(una), None); }
                Op::Forget => board.forget_losses(),
            }
            total += u64::from(delivered.packets);
            board.check();
            prop_assert_eq!(total, known.iter().filter(|&&known| known).count() as u64);
        }
    }
}

/// Of a packet that was found lost before, and not retransmitted since, a timeout tells nothing.
#[test]
fn a_timeout_tells_of_each_loss_once() {
    let at = |us| Time::ZERO + Span::from_us(us);
    let (mut board, mut rate) = (Scoreboard::default(), super::super::rate::RateEstimator::default());
    for segment in 0..8 {
        let stamp = rate.stamp(at(segment), board.outstanding(), board.in_flight());
        board.push(at(segment), seq(segment), 1448, Some(stamp));
    }
    let mut delivered = board.begin_acknowledgement();
    board.sack(seq(5), seq(8), Seq::FIRST, &mut delivered);
    let mut by_reports = Vec::new();
    let latest = (at(3), seq(3));
    board.lose_by_time(at(100), latest, Span::ZERO, false, Seq::FIRST, &mut |number, _, _| by_reports.push(number));
    let stamp = rate.stamp(at(200), board.outstanding(), board.in_flight());
    board.resend(at(200), Seq::FIRST, Some(stamp));
    let mut by_timeout = Vec::new();
    board.lose_all(at(300), Span::ZERO, &mut |number, _, _| by_timeout.push(number));
    board.check();
    assert_eq!(by_reports, [0, 1, 2]);
    // The first was retransmitted, and is lost again.
    assert_eq!(by_timeout, [0, 3, 4]);
}

#[test]
fn an_acknowledgement_that_also_reports_tells_of_the_latest_transmission() {
    let at = |us| Time::ZERO + Span::from_us(us);
    let (mut board, mut rate) = (Scoreboard::default(), super::super::rate::RateEstimator::default());
    for segment in 0..3 {
        let stamp = rate.stamp(at(segment), board.outstanding(), board.in_flight());
        rate.sample(at(segment), 1, None, None);
        board.push(at(segment), seq(segment), 1448, Some(stamp));
    }
    let mut delivered = board.begin_acknowledgement();
    board.sack(seq(2), seq(3), Seq::FIRST, &mut delivered);
    board.acknowledge(Seq::FIRST, seq(1), &mut delivered);
    board.check();
    assert_eq!(delivered.latest, Some((at(2), seq(3), false)));
    let (stamp, sent_at) = delivered.stamp.unwrap();
    assert_eq!((stamp.delivered, sent_at), (2, at(2)));
    assert_eq!(delivered.packets, 2);
}

#[test]
fn a_segment_is_lost_once_three_above_it_are_delivered() {
    let mut board = Scoreboard::default();
    for n in 0..10 {
        board.push(Time::from_ns(n), seq(n), 1448, None);
    }
    let mut delivered = Delivered::default();
    board.sack(seq(1), seq(3), seq(0), &mut delivered);
    assert_eq!(board.lose_by_count(3, false, &mut |_, _, _| {}), 0);
    board.sack(seq(5), seq(6), seq(0), &mut delivered);
    // Three above segment 0; only one above 3 and 4.
    assert_eq!(board.lose_by_count(3, false, &mut |_, _, _| {}), 1);
    assert_eq!(board.resend(Time::from_ns(20), seq(0), None), Some((seq(0), 1448)));
    assert_eq!(board.in_flight(), 10 - 3);
}
