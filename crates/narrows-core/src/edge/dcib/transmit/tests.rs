//! What a session ends by.

use super::super::{Chooser, Segment, Share};
use super::*;
use crate::units::Rate;

/// A packet of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Data(u32);

impl Packet for Data {
    type Flow = ();

    fn ip_bytes(&self) -> Bytes {
        Bytes::new(1_500)
    }
    fn ecn(&self) -> Ecn {
        Ecn::Capable
    }
    fn set_ecn(&mut self, _: Ecn) {}
    fn segment(&self) -> Option<Segment<()>> {
        Some(Segment { flow: (), reverse: (), seq: self.0, length: 1_460, payload: 1_460, syn: false, ack: None })
    }
}

const ROUND_TRIP: Span = Span::from_ms(10);

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// One that marks everything, and whose sessions have so many numbers.
fn transmitter(repairs: u8, numbers: u64) -> Transmitter<Data> {
    let config =
        Config { repairs, chooser: Chooser::Sampled, ..Config::new(Rate::from_gbps(10), Share::WHOLE, ROUND_TRIP) };
    let mut transmitter = Transmitter::new(&config, 0, SmallStream::new(1));
    transmitter.numbers = numbers;
    transmitter
}

/// Sends a packet; what goes out.
fn sent(transmitter: &mut Transmitter<Data>, now: Time) -> Message<Data> {
    let mut out = std::vec::Vec::new();
    transmitter.handle(now, Data(0), |message| out.push(message));
    out.swap_remove(0)
}

/// Answers greetings until it is known, in this session.
fn meet(transmitter: &mut Transmitter<Data>, now: Time, session: u32) {
    let Message::Greeting { token, .. } = sent(transmitter, now) else { panic!("it greets") };
    transmitter.welcome(now + ROUND_TRIP, token, session);
}

#[test]
fn a_session_ends_before_its_numbers_come_again() {
    let mut near = transmitter(3, 5);
    meet(&mut near, at(0), 1);
    let mut shims = std::vec::Vec::new();
    for us in 0..10 {
        if let Message::Marked(_, shim) = sent(&mut near, at(20_000 + us)) {
            shims.push((shim.session, shim.number));
        }
    }
    assert_eq!(shims, [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]);
    for number in 0..5 {
        near.acknowledge(at(30_000), 1, number, 1, |_| {});
    }
    // Its last copy is gone: the far edge is asked for another session, and numbers begin anew.
    meet(&mut near, at(31_000), 2);
    let Message::Marked(_, shim) = sent(&mut near, at(42_000)) else { panic!("it marks") };
    assert_eq!((shim.session, shim.number), (2, 0));
    near.acknowledge(at(50_000), 1, 0, 1, |_| {});
    assert_eq!(
        near.counters.stray_acknowledgements, 1,
        "what was said of the first session is of no copy of the second"
    );
}

#[test]
fn a_far_edge_that_is_gone_is_noticed_however_often_packets_are_repaired() {
    for repairs in [0, 3, 14] {
        let mut near = transmitter(repairs, NUMBERS);
        meet(&mut near, at(0), 1);
        let (mut marked, mut greeted, mut most) = (0, 0, 0);
        for ms in 20..2_000 {
            let now = at(ms * 1_000);
            while near.deadline() <= now {
                near.handle_timeout(now, |_| {});
            }
            match sent(&mut near, now) {
                Message::Marked(..) => marked += 1,
                Message::Greeting { .. } => greeted += 1,
                _ => {}
            }
            most = most.max(near.kept.len());
        }
        // Two RTTs and 1 ms, at a packet a millisecond.
        assert!((20..=23).contains(&marked), "{repairs} repairs: {marked} are marked");
        assert!(greeted >= 5, "{repairs} repairs: it is greeted {greeted} times");
        assert!(near.kept.is_empty() && near.stored == Bytes::ZERO && most <= 23, "{repairs} repairs");
    }
}
