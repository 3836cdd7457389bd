use alloc::vec::Vec;

use super::*;
use crate::cc::{Context, Limit, Settings};
use crate::packet::{Ecn, Mtu, timestamp};
use crate::rng::SmallStream;
use crate::tcp::initial_path;
use crate::tcp::near_source::ReactionPoint;
use crate::tcp::profile::Profile;
use crate::tcp::receiver::{Receiver, arrival};
use crate::units::{Bytes, Rate};

fn stack(profile: Profile) -> Stack {
    Stack { profile, ecn: EcnMode::Off, line_rate: Rate::from_gbps(100), delivery_rate: true, mtu: Mtu::ETHERNET }
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
        receive_offload: None,
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
    for (name, profile) in Profile::NAMED.iter().filter(|(_, profile)| profile.small_queue == Span::from_ms(1)) {
        let stack = stack(smooth(*profile, 1_000));
        let waits = |round_trip: Span, most: Bytes| {
            let sender = after_handshake(round_trip, &stack);
            assert_eq!(sender.small_queue_limit(&stack), most, "{name}, {round_trip}");
            for below in 1..=6 {
                assert!(sender.has_room(most - Bytes::new(below), &stack), "{name}, {round_trip}, {below}");
                assert!(!sender.has_room(most + Bytes::new(below - 1), &stack), "{name}, {round_trip}, {below}");
            }
        };
        // The rate is two windows of 1.5 MB per RTT: 3 GB, 30 MB and 0.3 MB per second.
        waits(Span::from_ms(1), profile.small_queue_bytes);
        waits(Span::from_ms(100), Bytes::new(30_000));
        waits(Span::from_secs(10), Bytes::new(3_000));
    }
}

#[test]
fn pieces_are_sized_as_tcp_tso_autosize_does() {
    // Two windows per RTT: 100 packets of 1500 bytes, of which 1448 are payload.
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

/// Between packets of a limiter at its floor, a thousandth of 100 Gbit/s.
const FLOOR_GAP: Span = Span::from_us(120);

/// A sender of this controller that listens to near-source switches.
fn listening(controller: &str, stack: &Stack) -> Sender {
    let spec = crate::cc::spec(controller).unwrap();
    let values: Vec<_> = spec.parameters.iter().map(|parameter| parameter.default).collect();
    let path = initial_path(stack);
    let settings = Settings::new(spec.parameters, &values);
    let context = Context { settings, path: &path, random: SmallStream::new(1) };
    let mut sender = Sender::new(Controller::build(controller, &context).unwrap(), path);
    sender.sample_handshake(Time::ZERO, Span::from_ms(1), stack);
    sender.allow(sender.una, u16::MAX);
    sender.listen(SmallStream::new(2));
    sender
}

fn with_near_source() -> Profile {
    Profile { near_source: Some(ReactionPoint::SOFTWARE), ..smooth(Profile::LINUX_6, 10) }
}

/// All that may go now.
fn send_all(sender: &mut Sender, now: Time, stack: &Stack) -> Vec<Outgoing> {
    core::iter::from_fn(|| sender.next(now, stack)).collect()
}

/// Down to the floor, at which a limiter stays while such notifications come.
fn cut(sender: &mut Sender, now: Time, stack: &Stack) {
    for _ in 0..20 {
        sender.notify(now, 63, sender.una.wire(), stack).expect("what it quotes is in flight");
    }
    assert_eq!(sender.near_source_rate(now, stack), Some(stack.line_rate.scaled(1, 1_000)));
}

fn acknowledge(sender: &mut Sender, now: Time, out: &Outgoing, sent: Time, stack: &Stack) {
    let ack = Segment {
        ack: out.start.plus(u64::from(out.length)).wire(),
        window: u16::MAX,
        flags: Flags::ACK,
        timestamp_echo: timestamp(sent),
        ..Segment::default()
    };
    sender.handle_ack(now, &ack, stack);
}

/// However small they are; one that hears of each.
#[test]
fn a_controller_hears_how_many_segments_are_outstanding() {
    let stack = stack(with_near_source());
    let mut sender = listening("vegas", &stack);
    for tag in 1..=3 {
        sender.offer(100, Tag(tag));
    }
    let now = Time::from_ns(2_000_000);
    let sent = send_all(&mut sender, now, &stack);
    assert_eq!((sent.len(), sender.path.outstanding, sender.path.in_flight.get()), (3, 3, 3));
    acknowledge(&mut sender, now + Span::from_us(100), &sent[0], now, &stack);
    assert_eq!(sender.path.outstanding, 2);
}

/// Its own expiries are of no interest then: whoever needs the rate catches up. Of thousands of connections each would cost
/// an event in every cycle.
#[test]
fn a_limiter_for_which_nothing_waits_arms_no_timer() {
    let stack = stack(with_near_source());
    let now = Time::from_ns(2_000_000);
    let limits = |sender: &Sender| sender.near_source.as_ref().unwrap().deadline();
    let own = |sender: &Sender| sender.timeout_at.min(sender.probe_at).min(sender.reorder_timer);
    // The window binds with the first offer, and the application has no more with the second.
    for (packets, reason) in [(100, Limit::Window), (3, Limit::Application)] {
        let mut sender = listening("newreno", &stack);
        sender.offer(packets * 1448, Tag(1));
        let sent = send_all(&mut sender, now, &stack);
        cut(&mut sender, now, &stack);
        assert!(send_all(&mut sender, now, &stack).is_empty() && sender.limited_by == reason);
        assert!(limits(&sender) < own(&sender), "{reason:?}: the limiter's timer would be the first");
        assert_eq!((sender.deadline(), sender.pacing_deadline()), (own(&sender), Time::NEVER), "{reason:?}");
        // The acknowledgement of all of it lets go one packet of what is left, and the limiter holds back the next.
        let later = now + Span::from_us(100);
        acknowledge(&mut sender, later, sent.last().unwrap(), now, &stack);
        let more = send_all(&mut sender, later, &stack);
        assert!(limits(&sender) < Time::NEVER, "{reason:?}: it limits still");
        if reason == Limit::Application {
            assert!(more.is_empty() && sender.is_idle());
            assert_eq!((sender.deadline(), sender.pacing_deadline()), (Time::NEVER, Time::NEVER));
            continue;
        }
        assert_eq!(more.len(), 1);
        assert_eq!((sender.deadline(), sender.pacing_deadline()), (limits(&sender), later + FLOOR_GAP));
    }
}

/// What a window grew to behind the limiter would leave at once when the limiter goes.
#[test]
fn a_window_does_not_grow_while_a_limiter_holds_packets_back() {
    for controller in ["newreno", "cubic", "dctcp", "gemini", "vegas"] {
        let stack = stack(with_near_source());
        let mut sender = listening(controller, &stack);
        sender.offer(1_000 * 1448, Tag(1));
        // At the floor fifteen packets leave in an RTT: more than half of a window of 20, which slow start would double.
        let round_trip = FLOOR_GAP * 15;
        let mut now = Time::from_ns(2_000_000);
        let mut out: VecDeque<(Time, Outgoing)> = VecDeque::new();
        out.extend(send_all(&mut sender, now, &stack).into_iter().map(|sent| (now, sent)));
        cut(&mut sender, now, &stack);
        let mut begin = None;
        for step in 0..200 {
            let (sent, first) = out[0];
            now = (sent + round_trip).min(sender.pacing_deadline()).max(now);
            sender.handle_timeout(now, &stack);
            // Told of congestion again and again, or the rate would recover.
            cut(&mut sender, now, &stack);
            if now == sent + round_trip {
                out.pop_front();
                acknowledge(&mut sender, now, &first, sent, &stack);
            }
            out.extend(send_all(&mut sender, now, &stack).into_iter().map(|sent| (now, sent)));
            // By then what was sent before the first cut is acknowledged, and one RTT more has gone by.
            if step >= 50 {
                let window = *begin.get_or_insert(sender.window());
                assert_eq!(sender.limited_by, Limit::NearSource, "{controller}, step {step}");
                assert_eq!(sender.window(), window, "{controller}, step {step}");
                let most = u64::from(sender.most_outstanding);
                assert!(most < window && window < 2 * most, "{controller}: {most} of {window}");
            }
        }
        assert!(begin.is_some_and(|window| window >= 10), "{controller}: {begin:?}");
    }
}

/// Holds its window, and notes what it hears of losses and samples.
#[derive(Clone, Debug)]
struct Listener {
    window: u64,
    heard: alloc::sync::Arc<std::sync::Mutex<Heard>>,
}

#[derive(Debug, Default)]
struct Heard {
    lost: Vec<crate::cc::Lost>,
    /// Of each sample: in flight at send, lost since.
    samples: Vec<(u64, u64)>,
    /// Of acknowledgements alone.
    lost_by_acks: u64,
}

impl crate::cc::CongestionControl for Listener {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_ack(&mut self, ack: &Ack, _path: &crate::cc::Path) {
        let mut heard = self.heard.lock().unwrap();
        heard.lost_by_acks += ack.lost.get();
        heard.samples.extend(ack.delivery.map(|rate| (rate.in_flight_at_send.get(), rate.lost_since_send.get())));
    }

    fn on_lost(&mut self, lost: &crate::cc::Lost, _path: &crate::cc::Path) {
        self.heard.lock().unwrap().lost.push(*lost);
    }

    fn on_congestion(&mut self, _now: Time, _cause: Cause, _path: &crate::cc::Path) {}

    fn on_timeout(&mut self, _now: Time, _repeated: bool, _path: &crate::cc::Path) {}

    fn window(&self) -> Packets {
        Packets::new(self.window)
    }
}

/// A window of 40 is always full, and of each 80 new segments the 40th is lost: at a time when 40 were in
/// flight, itself included, and nothing else was lost since. Whatever detector finds it, each loss is told once; samples of what
/// was in flight meanwhile count it.
#[test]
fn each_loss_is_told_with_what_was_in_flight_when_it_was_sent() {
    for (name, profile) in Profile::NAMED {
        let heard = alloc::sync::Arc::<std::sync::Mutex<Heard>>::default();
        let mut path = Path::new(smooth(*profile, 40), 80, |stack| {
            let listener = Listener { window: 40, heard: heard.clone() };
            let machine = crate::cc::external::External::new(&crate::cc::bbr::SPEC, alloc::boxed::Box::new(listener));
            let mut sender = Sender::new(Controller::External(machine), initial_path(stack));
            sender.sample_handshake(Time::ZERO, Span::from_us(10), stack);
            sender
        });
        path.sender.offer(290 * 1448, Tag(1));
        path.run(10_000);
        assert!(path.sender.is_idle(), "{name}");
        let heard = heard.lock().unwrap();
        let lost: Vec<u64> = heard.lost.iter().map(|lost| lost.segment).collect();
        // Numbered from 0.
        assert_eq!(lost, [39, 119, 199, 279], "{name}");
        assert_eq!((heard.lost_by_acks, path.sender.timeouts), (4, 0), "{name}");
        for lost in &heard.lost {
            assert_eq!((lost.in_flight_at_send.get(), lost.lost_since_send.get()), (40, 1), "{name}");
            assert!(!lost.app_limited, "{name}");
        }
        // A loss counts for what was in flight when it was found, by the third segment above it: 37 to 40, and of the last, of
        // whose window ten are left, 7 to 10. No sample counts two.
        assert!(heard.samples.iter().all(|&(in_flight, lost)| in_flight <= 40 && lost <= 1), "{name}");
        let counted = heard.samples.iter().filter(|&&(_, lost)| lost > 0).count();
        assert!((3 * 37 + 7..=3 * 40 + 10).contains(&counted), "{name}: {counted}");
    }
}

/// As long as the window and the data admit more, the fast path says what goes, however many segments a piece has.
#[test]
fn pieces_of_several_segments_are_sent_on_the_fast_path() {
    for offload_segments in [1, 10] {
        let stack = stack(Profile { offload_segments, ..Profile::LINUX_6 });
        let mut sender = sender(&stack);
        sender.allow(sender.una, u16::MAX);
        sender.offer(100 * 1_448, Tag(1));
        let now = Time::from_ns(20_000_000);
        let first = sender.next(now, &stack).expect("the window is open");
        assert!(sender.is_undisturbed(&stack));
        let mut sent = 1;
        while let NextNew::Segment(segment) = sender.next_new(now, &stack) {
            assert_eq!(segment.start, first.start.plus(1_448 * sent));
            sent += 1;
        }
        assert_eq!((sent, sender.held_by), (sender.window(), Limit::Window));
    }
}
