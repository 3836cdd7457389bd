use super::*;
use crate::cc::{Context, Settings};
use crate::packet::Ecn;
use crate::rng::SmallStream;
use crate::tcp::profile::Profile;
use crate::tcp::receiver::{Receiver, arrival};
use crate::tcp::{LEAST_SMALL_QUEUE, initial_path};
use crate::units::Rate;

fn stack(profile: Profile) -> Stack {
    Stack { profile, ecn: EcnMode::Off, line_rate: Rate::from_gbps(100), delivery_rate: true }
}

fn sender(stack: &Stack) -> Sender {
    after_handshake(Span::from_ms(10), stack)
}

/// A sender whose handshake took this long.
fn after_handshake(round_trip: Span, stack: &Stack) -> Sender {
    let path = initial_path(stack);
    let context = Context { settings: Settings::new(&[], &[]), path: &path, random: SmallStream::new(1) };
    let mut sender = Sender::new(Controller::build("newreno", &context).unwrap(), path);
    sender.sample_handshake(Time::ZERO, round_trip, stack);
    sender
}

/// A sender and a receiver with a first-in-first-out path between them; every `nth` new segment is lost.
struct Path {
    stack: Stack,
    sender: Sender,
    receiver: Receiver,
    queue: VecDeque<(Segment, u64)>,
    now: Time,
    nth: u64,
    sent: u64,
    acknowledgements: u64,
}

impl Path {
    fn new(profile: Profile, nth: u64, sender: impl FnOnce(&Stack) -> Sender) -> Path {
        let stack = stack(profile);
        let mut sender = sender(&stack);
        let mut receiver = Receiver::new(&stack);
        receiver.begin_at(sender.una);
        sender.allow(sender.una, u16::MAX);
        let queue = VecDeque::new();
        Path { stack, sender, receiver, queue, now: Time::from_ps(1), nth, sent: 0, acknowledgements: 0 }
    }

    fn send(&mut self) {
        while let Some(out) = self.sender.next(self.now, &self.stack) {
            self.sent += u64::from(!out.resent);
            if !out.resent && self.sent % self.nth == self.nth / 2 {
                continue;
            }
            let segment = Segment {
                seq: out.start.wire(),
                length: out.length,
                flags: Flags::ACK.with_if(Flags::PSH, out.pushes).with_if(Flags::END, out.ends_message),
                ecn: Ecn::NotCapable,
                timestamp: timestamp(self.now),
                tag: out.tag,
                ..Segment::default()
            };
            self.queue.push_back((segment, self.sent));
        }
    }

    /// Until everything is acknowledged or `most` segments have arrived.
    fn run(&mut self, most: u64) {
        self.send();
        for _ in 0..most {
            self.now += Span::from_us(1);
            let Some((segment, _)) = self.queue.pop_front() else {
                if self.sender.is_idle() {
                    return;
                }
                self.now = self.now.max(self.sender.deadline()).max(self.sender.pacing_deadline().min(self.now));
                self.sender.handle_timeout(self.now, &self.stack);
                self.send();
                continue;
            };
            let arrival = arrival(&segment, self.receiver.next_expected()).unwrap();
            self.receiver.handle(self.now, arrival, &self.stack);
            while self.receiver.poll_completed().is_some() {}
            let fields = self.receiver.take_ack(&self.stack);
            let ack = Segment {
                ack: fields.ack.wire(),
                sack: self.receiver.take_reports(),
                window: fields.window,
                flags: Flags::ACK,
                timestamp_echo: fields.timestamp_echo,
                ..Segment::default()
            };
            self.acknowledgements += 1;
            self.sender.handle_ack(self.now, &ack, &self.stack);
            if self.sender.deadline() <= self.now {
                self.sender.handle_timeout(self.now, &self.stack);
            }
            self.send();
        }
    }
}

fn smooth(profile: Profile, window: u64) -> Profile {
    Profile {
        offload_segments: 1,
        receive_offload_segments: 1,
        initial_window: Packets::new(window),
        receive_buffer: 64 << 20,
        ..profile
    }
}

#[test]
fn work_per_acknowledgement_does_not_grow_with_the_window() {
    for (name, profile) in Profile::NAMED {
        // One loss per window, and many holes at once.
        for holes in [1, 4, 20] {
            let visits = |window: u64| {
                let mut path = Path::new(smooth(*profile, window), window / holes, sender);
                path.sender.offer(8 * window * 1448, Tag(1));
                path.run(10 * window);
                assert!(path.sender.is_idle(), "{name}");
                path.sender.board.visits * 1000 / path.acknowledgements
            };
            // The receive window admits some 46,000 segments.
            let (small, large) = (visits(200), visits(40_000));
            assert!(large < 2 * small, "{name}, {holes}: {small} against {large} thousandths of a visit");
        }
    }
}

#[test]
fn a_stream_crosses_the_wrap_of_wire_numbers() {
    for (name, profile) in Profile::NAMED {
        for before in [0, 1, 1447, 1448, 5_000, 50_000] {
            let mut path = Path::new(smooth(*profile, 20), 37, |stack| {
                let mut sender = sender(stack);
                let begin = Seq::new((3 << 32) - before);
                (sender.una, sender.nxt, sender.offered, sender.allowed) = (begin, begin, begin, begin);
                (sender.round_end, sender.usage_until, sender.recovery_point) = (begin, begin, begin);
                sender
            });
            path.sender.offer(300_000, Tag(1));
            path.run(10_000);
            assert!(path.sender.is_idle(), "{name}, {before} bytes before the wrap");
            assert_eq!(path.receiver.next_expected(), path.sender.offered);
            assert!(path.sender.retransmitted_bytes >= 1448 * 5);
        }
    }
}

#[test]
fn a_millisecond_waits_in_the_port_and_no_more_than_the_cap() {
    for (name, profile) in Profile::NAMED {
        let stack = stack(smooth(*profile, 1_000));
        let waits = |round_trip: Span, most: Bytes| {
            let sender = after_handshake(round_trip, &stack);
            assert_eq!(sender.small_queue_limit(&stack), most, "{name}, {round_trip}");
            // The short way to the same answer may be wrong by the roundings, and to one side only.
            assert!(sender.is_small_queue(most.saturating_sub(Bytes::new(4)), &stack), "{name}, {round_trip}");
            assert!(!sender.is_small_queue(most, &stack), "{name}, {round_trip}");
        };
        // The rate is two windows of 1.5 MB per round trip: 3 GB, 30 MB and 0.3 MB per second.
        waits(Span::from_ms(1), profile.small_queue_bytes);
        waits(Span::from_ms(100), Bytes::new(30_000));
        waits(Span::from_secs(10), LEAST_SMALL_QUEUE);
    }
}

#[test]
fn pieces_are_sized_as_tcp_tso_autosize_does() {
    // Two windows per round trip: 100 packets of 1500 bytes, of which 1448 are payload.
    let goal = |round_trip_us: u64, least: u64, profile: Profile| {
        let stack = stack(smooth(profile, 100));
        let stack = Stack { profile: Profile { offload_segments: 44, ..stack.profile }, ..stack };
        after_handshake(Span::from_us(round_trip_us), &stack).offload_goal(least, &stack)
    };
    // 40 ms: 7.24 MB of payload a second, of which 1/1024 is 7071 bytes, 4.88 segments; a thousandth of 7.5 MB is 5.18.
    assert_eq!((goal(40_000, 2, Profile::LINUX_6), goal(40_000, 2, Profile::LINUX_4_9)), (4, 5));
    // What is asked for at least, by a controller or by the host.
    assert_eq!((goal(400_000, 2, Profile::LINUX_6), goal(400_000, 1, Profile::LINUX_6)), (2, 1));
    // 5 ms is nine times 512 us: 128 bytes more than 56,568; 3 ms five times: 2,048 more than 94,280, beyond the most.
    assert_eq!((goal(5_000, 2, Profile::LINUX_6), goal(3_000, 2, Profile::LINUX_6)), (39, 44));
    // Without a window to speak of, a short path still has long pieces.
    let small = stack(smooth(Profile::LINUX_6, 2));
    let small = Stack { profile: Profile { offload_segments: 44, ..small.profile }, ..small };
    for (us, segments) in [(2_000, 7), (1_500, 13), (600, 29)] {
        assert_eq!(after_handshake(Span::from_us(us), &small).offload_goal(2, &small), segments, "{us} us");
    }
}
