//! Random sequences of what a transport may do, against every registered controller.

use narrows_core::cc::{
    Ack, Cause, Context, Controller, Kind, Limit, Lost, Owner, Path, Phase, RateSample, RttSample, SPECS, Sent,
    Settings, Spec, Value,
};
use narrows_core::packet::Seq;
use narrows_core::rng::SmallStream;
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};
use proptest::prelude::*;
use std::fmt::Write as _;

const MSS: u64 = 1_448;

/// Something that a transport may do with a controller.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// Sends up to so many packets, as the window allows.
    Send(u16),
    /// Packets are delivered, and an episode may begin.
    Ack(Delivery),
    /// RACK's timer finds a loss.
    LossByTimer,
    Timeout,
    Undo,
    /// Lets so many microseconds pass; longer than the timeout with nothing in flight, the sender restarts.
    Idle(u64),
}

#[derive(Clone, Copy, Debug)]
struct Delivery {
    packets: u16,
    lost: u8,
    ece: bool,
    in_order: bool,
    rtt_us: Option<u64>,
    rate_us: Option<u64>,
    limited_by: Limit,
    episode: Option<Cause>,
}

fn op() -> impl Strategy<Value = Op> {
    // From a microsecond to ten seconds, each order of magnitude as likely as the next.
    let span_us = (0u32..=6, 1u64..=10).prop_map(|(power, digit)| digit * 10u64.pow(power));
    let limits = vec![Limit::Window, Limit::Receiver, Limit::Application, Limit::Pacing, Limit::NearSource];
    let delivery = (
        1u16..1_000,
        0u8..50,
        any::<bool>(),
        prop::bool::weighted(0.9),
        prop::option::of(span_us.clone()),
        prop::option::of(span_us.clone()),
        prop::sample::select(limits),
        prop::option::weighted(0.1, prop_oneof![Just(Cause::Loss), Just(Cause::Ecn)]),
    )
        .prop_map(|(packets, lost, ece, in_order, rtt_us, rate_us, limited_by, episode)| Delivery {
            packets,
            lost,
            ece,
            in_order,
            rtt_us,
            rate_us,
            limited_by,
            episode,
        });
    prop_oneof![
        8 => (1u16..1_000).prop_map(Op::Send),
        12 => delivery.prop_map(Op::Ack),
        1 => Just(Op::LossByTimer),
        1 => Just(Op::Timeout),
        1 => Just(Op::Undo),
        2 => span_us.prop_map(Op::Idle),
    ]
}

/// A transport reduced to its bookkeeping: enough that every fact is consistent with the others.
struct Transport {
    cc: Controller,
    path: Path,
    now: Time,
    phase: Phase,
    /// The episode is over when this is acknowledged.
    recovery_point: Seq,
    in_flight: u64,
    /// Sent and not acknowledged: in flight or lost.
    outstanding: u64,
    delivered: u64,
    max_in_flight: u64,
    last_sent: Time,
    /// The window before the last reduction that was not a repeated one.
    restorable: u64,
    /// Greatest window that the packets delivered so far explain.
    bound: u64,
    growth_per_packet: u64,
}

impl Transport {
    /// `handshake` is the RTT that one took.
    fn new(
        spec: &Spec,
        values: &[Value],
        line_rate: Rate,
        handshake: Option<Span>,
        growth_per_packet: u64,
    ) -> Transport {
        let path = Path {
            mss: Bytes::new(MSS),
            packet: Bytes::new(1_500),
            initial_window: Packets::new(10),
            line_rate,
            srtt: None,
            min_rtt: None,
            rto: Span::from_ms(200),
            burst: 44,
            una: Seq::FIRST,
            nxt: Seq::FIRST,
            in_flight: Packets::ZERO,
            outstanding: 0,
            departs_at: Time::ZERO,
        };
        let settings = Settings::new(spec.parameters, values);
        let context = Context { settings, path: &path, random: SmallStream::new(7) };
        let cc = Controller::build(spec.name, &context).expect("a name from the registry");
        // Who paces from the first packet on may begin with a wide window: it is not what limits.
        let first = if cc.pacing().is_some() { cc.window().get() } else { 0 };
        let path = Path { srtt: handshake, min_rtt: handshake, ..path };
        Transport {
            cc,
            path,
            now: Time::ZERO,
            phase: Phase::Open,
            recovery_point: Seq::SYN,
            in_flight: 0,
            outstanding: 0,
            delivered: 0,
            max_in_flight: 0,
            last_sent: Time::ZERO,
            restorable: 0,
            bound: first.max(16),
            growth_per_packet,
        }
    }

    fn window(&self) -> u64 {
        self.cc.window().get()
    }

    /// Who paces may begin with what the line sends in an RTT, as soon as one is known: of a full packet, which takes longer than the
    /// handshake's.
    fn first_window(&self) -> u64 {
        let Some(rtt) = self.path.min_rtt.filter(|_| self.cc.pacing().is_some()) else { return 0 };
        self.path.line_rate.bytes_in(rtt).get() / self.path.packet.get() + 2
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Send(packets) => self.send(u64::from(packets)),
            Op::Ack(delivery) => self.ack(&delivery),
            Op::LossByTimer => {
                if self.outstanding > 0 && self.may_begin(Cause::Loss) {
                    self.begin(Cause::Loss);
                    self.reduce(false, |cc, now, path| cc.on_congestion(now, Cause::Loss, path));
                }
            }
            Op::Timeout => {
                let answered = matches!(self.phase, Phase::Recovery | Phase::Loss);
                let repeated = answered && self.path.una < self.recovery_point;
                let threshold = self.cc.slow_start_threshold();
                self.reduce(repeated, |cc, now, path| cc.on_timeout(now, repeated, path));
                assert!(
                    !repeated || self.cc.slow_start_threshold() == threshold,
                    "one window of data is answered once"
                );
                assert_eq!(self.window(), 1, "a timeout leaves one packet");
                self.in_flight = 0;
                self.path.in_flight = Packets::ZERO;
                self.phase = Phase::Loss;
                self.recovery_point = self.path.nxt;
            }
            Op::Undo => {
                let before = self.window();
                self.cc.on_undo();
                assert!(self.window() >= before, "an undo takes nothing");
                self.phase = Phase::Open;
            }
            Op::Idle(us) => self.idle(Span::from_us(us)),
        }
        assert!(self.window() >= 1, "the window is never empty");
        assert!(self.window() <= self.bound, "window {} beyond {} after {op:?}", self.window(), self.bound);
        assert!(self.cc.slow_start_threshold().get() >= 1);
        assert!(self.cc.pacing().is_none_or(|rate| rate.as_bps() > 0), "pacing never stops a sender");
        assert!(self.cc.burst().is_none_or(|burst| burst.get() >= 1));
    }

    fn send(&mut self, packets: u64) {
        let before = self.window();
        for _ in 0..packets.min(self.window().saturating_sub(self.in_flight)) {
            let idle = (self.outstanding == 0).then(|| self.now.since(self.last_sent));
            self.in_flight += 1;
            self.outstanding += 1;
            self.max_in_flight = self.max_in_flight.max(self.in_flight);
            self.path.nxt = self.path.nxt.plus(MSS);
            self.path.in_flight = Packets::new(self.in_flight);
            self.path.outstanding = u32::try_from(self.outstanding).expect("a window");
            self.cc.on_sent(self.now, &Sent { size: self.path.packet, idle, starts: idle.is_some() }, &self.path);
            self.last_sent = self.now;
        }
        let first = if self.delivered == 0 { self.first_window() } else { 0 };
        self.bound = self.bound.max(first);
        assert!(self.window() <= before.max(first), "sending grants no window");
    }

    fn idle(&mut self, span: Span) {
        self.now += span;
        let idle = self.now.since(self.last_sent);
        if self.outstanding == 0 && idle > self.path.rto {
            let before = self.window();
            self.cc.on_idle_restart(self.now, idle, &self.path);
            assert!(self.window() <= before, "idling grants no window");
        }
    }

    fn ack(&mut self, delivery: &Delivery) {
        let packets = u64::from(delivery.packets).min(self.outstanding);
        if packets == 0 {
            return;
        }
        let prior_in_flight = Packets::new(self.in_flight);
        let newest = self.path.una.plus((packets - 1) * MSS);
        let lost = u64::from(delivery.lost).min(self.in_flight.saturating_sub(packets));
        self.now += Span::from_us(delivery.rtt_us.unwrap_or(10) / packets);
        self.path.una = self.path.una.plus(packets * MSS);
        self.outstanding -= packets;
        self.delivered += packets;
        self.bound += packets * self.growth_per_packet;
        self.in_flight = self.in_flight.saturating_sub(packets + lost);
        self.path.in_flight = Packets::new(self.in_flight);
        let knew_rtt = self.path.min_rtt.is_some();
        if let Some(span) = delivery.rtt_us.map(Span::from_us) {
            self.path.srtt = Some(self.path.srtt.map_or(span, |srtt| (srtt * 7 + span).div(8)));
            self.path.min_rtt = Some(self.path.min_rtt.map_or(span, |least| least.min(span)));
        }
        if self.path.una >= self.recovery_point {
            self.phase = Phase::Open;
        }
        let episode = delivery.episode.filter(|&cause| self.may_begin(cause) && (delivery.ece || cause == Cause::Loss));
        if let Some(cause) = episode {
            self.begin(cause);
        }
        let before = self.window();
        let app_limited = delivery.limited_by == Limit::Application;
        for number in 0..lost {
            let fact = Lost {
                now: self.now,
                // Two neighbours, then a hole.
                segment: self.delivered + number + number / 2,
                sent_at: Time::from_ps(self.now.as_ps().saturating_sub(self.path.srtt.map_or(0, Span::as_ps))),
                in_flight_at_send: prior_in_flight,
                lost_since_send: Packets::new(number + 1),
                app_limited,
                delivered: Packets::new(self.delivered),
            };
            let told = self.cc.on_lost(&fact, &self.path);
            assert_eq!(told, self.cc.window());
            assert!(told.get() <= before, "a loss grants no window");
        }
        let ack = Ack {
            now: self.now,
            acked: Packets::new(packets),
            marked: Packets::new(if delivery.ece { packets } else { 0 }),
            lost: Packets::new(lost),
            ece: delivery.ece,
            rtt: delivery.rtt_us.map(|us| RttSample { span: Span::from_us(us), seq: newest }),
            delivery: delivery.rate_us.map(|us| RateSample {
                delivered: Packets::new(packets),
                interval: Span::from_us(us),
                prior_delivered: Packets::new(self.delivered - packets),
                app_limited,
                in_flight_at_send: prior_in_flight,
                lost_since_send: Packets::new(lost),
            }),
            delivered: Packets::new(self.delivered),
            una: self.path.una,
            nxt: self.path.nxt,
            in_flight: self.path.in_flight,
            prior_in_flight,
            max_in_flight: Packets::new(self.max_in_flight),
            phase: self.phase,
            limited_by: delivery.limited_by,
            timestamps: (0, 0),
            in_order: delivery.in_order,
        };
        self.cc.on_ack(&ack, &self.path);
        if !knew_rtt {
            self.bound = self.bound.max(self.first_window());
        }
        if self.cc.recovery() == Owner::Transport && !ack.may_grow() {
            assert!(self.window() <= before, "no growth while the transport reduces, nor above a hole");
        }
        if let Some(cause) = episode {
            self.reduce(false, |cc, now, path| cc.on_congestion(now, cause, path));
        }
    }

    fn may_begin(&self, cause: Cause) -> bool {
        self.phase == Phase::Open || (cause == Cause::Loss && self.phase != Phase::Recovery)
    }

    fn begin(&mut self, cause: Cause) {
        self.phase = if cause == Cause::Loss { Phase::Recovery } else { Phase::EcnReduction };
        self.recovery_point = self.path.nxt;
    }

    /// A reduction raises nothing, and an undo right after it restores at least what it took. Where it repeats the answer
    /// to one window of data, an undo leads back to before the first.
    fn reduce(&mut self, repeated: bool, reduction: impl FnOnce(&mut Controller, Time, &Path) -> Packets) {
        let before = self.window();
        let told = reduction(&mut self.cc, self.now, &self.path);
        assert_eq!(told, self.cc.window());
        // What takes nothing may be remembered, as NewReno's cut of a window of one packet, or not: GEMINI answers no second
        // loss in a window of data.
        if !repeated {
            self.restorable = if told.get() < before { before } else { self.restorable.min(before) };
        }
        assert!(self.window() <= before, "congestion raised the window from {before} to {}", self.window());
        let mut undone = self.cc.clone();
        undone.on_undo();
        let least = before.min(self.restorable);
        assert!(undone.window().get() >= least, "an undo restores {least}, not {}", undone.window());
    }
}

/// Connections whose RTT is known before anything is sent, and others.
const HANDSHAKES: [Option<Span>; 2] = [None, Some(Span::from_us(700))];

fn defaults(spec: &Spec) -> Vec<Value> {
    spec.parameters.iter().map(|parameter| parameter.default).collect()
}

/// The values at both ends of a parameter's range.
fn ends(kind: Kind, range: Option<(u64, u64)>) -> [Value; 2] {
    let (least, most) = range.unwrap_or((0, 1));
    [least, most].map(|integer| match kind {
        Kind::Switch => Value::Switch(integer > 0),
        Kind::Count => Value::Count(integer),
        Kind::Real { .. } => Value::Real(integer),
        Kind::Span => Value::Span(Span::from_ps(integer)),
        Kind::Rate | Kind::LinkRate => Value::Rate(Rate::from_bps(integer)),
        Kind::Packets | Kind::Size => Value::Packets(Packets::new(integer)),
        Kind::Bytes => Value::Bytes(Bytes::new(integer)),
        Kind::Counts(..) => unreachable!("no controller has a list"),
        Kind::Choice(names) => Value::Choice(if integer > 0 { u8::try_from(names.len() - 1).unwrap_or(0) } else { 0 }),
    })
}

/// The defaults, the defaults with one parameter at an end of its range, and all of them at the same end.
fn edge_settings(spec: &Spec) -> Vec<Vec<Value>> {
    let mut settings = vec![defaults(spec)];
    for (position, parameter) in spec.parameters.iter().enumerate() {
        for value in ends(parameter.kind, parameter.range) {
            let mut values = defaults(spec);
            values[position] = value;
            settings.push(values);
        }
    }
    for end in 0..2 {
        settings.push(spec.parameters.iter().map(|parameter| ends(parameter.kind, parameter.range)[end]).collect());
    }
    settings
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// With default settings no window grows by more than three packets for one delivered: GEMINI's greatest step, five
    /// packets per round, at its smallest window of two.
    #[test]
    fn every_controller_keeps_the_contract(
        ops in prop::collection::vec(op(), 1..300),
        gbps in prop::sample::select(vec![1u64, 10, 400]),
    ) {
        for spec in SPECS {
            let run = |handshake| {
                let mut transport = Transport::new(spec, &defaults(spec), Rate::from_gbps(gbps), handshake, 3);
                let mut history = String::new();
                for &op in &ops {
                    transport.apply(op);
                    write!(history, "{} ", transport.window()).expect("a string takes all");
                }
                history + &format!("{:?}", transport.cc)
            };
            for handshake in HANDSHAKES {
                prop_assert_eq!(run(handshake), run(handshake), "the same calls give the same state");
            }
        }
    }

    #[test]
    fn settings_at_the_ends_of_their_ranges_are_survived(
        ops in prop::collection::vec(op(), 1..60),
        mbps in prop::sample::select(vec![1u64, 1_000, 400_000]),
    ) {
        for spec in SPECS {
            for (values, handshake) in edge_settings(spec).iter().flat_map(|values| HANDSHAKES.map(|each| (values, each))) {
                let mut transport = Transport::new(spec, values, Rate::from_mbps(mbps), handshake, 1 << 20);
                for &op in &ops {
                    transport.apply(op);
                }
            }
        }
    }
}

#[test]
fn defaults_are_of_their_kind_and_in_range() {
    for spec in SPECS {
        for parameter in spec.parameters {
            let integer = match (parameter.kind, parameter.default) {
                (_, Value::Auto) | (Kind::Switch, Value::Switch(_)) => continue,
                (Kind::Count, Value::Count(integer)) | (Kind::Real { .. }, Value::Real(integer)) => integer,
                (Kind::Span, Value::Span(span)) => span.as_ps(),
                (Kind::Rate, Value::Rate(rate)) => rate.as_bps(),
                (Kind::Packets, Value::Packets(packets)) => packets.get(),
                (Kind::Bytes, Value::Bytes(bytes)) => bytes.get(),
                (Kind::Choice(names), Value::Choice(chosen)) if usize::from(chosen) < names.len() => continue,
                (kind, value) => panic!("{}.{}: {value:?} is no {kind:?}", spec.name, parameter.name),
            };
            let (least, most) = parameter.range.unwrap_or((0, u64::MAX));
            assert!(least <= integer && integer <= most, "{}.{}", spec.name, parameter.name);
        }
    }
}

#[test]
fn defaults_are_in_order_and_the_other_order_is_noticed() {
    for spec in SPECS {
        let mut values = defaults(spec);
        assert_eq!(spec.disorder(&values), None, "{}", spec.name);
        for (least, most) in spec.ordered {
            let place = |name: &str| spec.parameters.iter().position(|parameter| parameter.name == name).unwrap();
            let [low, high] = ends(spec.parameters[place(least)].kind, spec.parameters[place(least)].range);
            (values[place(least)], values[place(most)]) = (high, low);
            let found = spec.disorder(&values).unwrap();
            assert_eq!(found.map(|(parameter, _)| parameter.name), [*least, *most]);
            (values[place(least)], values[place(most)]) = (low, low);
            assert_eq!(spec.disorder(&values), None, "{}: equal", spec.name);
        }
    }
}

#[test]
fn names_are_unique_and_kebab_case() {
    let kebab = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    for (position, spec) in SPECS.iter().enumerate() {
        assert!(kebab(spec.name) && spec.about.ends_with('.'), "{}", spec.name);
        assert!(SPECS[position + 1..].iter().all(|other| other.name != spec.name));
        for (position, parameter) in spec.parameters.iter().enumerate() {
            assert!(kebab(parameter.name) && parameter.about.ends_with('.'), "{}.{}", spec.name, parameter.name);
            assert!(spec.parameters[position + 1..].iter().all(|other| other.name != parameter.name));
        }
    }
}

#[test]
fn an_unknown_name_builds_nothing() {
    assert!(narrows_core::cc::spec("tahoe").is_none());
}
