//! In which order a controller in C hears of episodes, and what becomes of its window: as `tcp_ack` of Linux 6.1 does it.

use std::sync::Arc;

use narrows_c::{Library, Source};
use narrows_core::cc::external::Library as _;
use narrows_core::cc::{Ack, Cause, Context, Controller, Limit, Path, Phase, Sent, Settings};
use narrows_core::packet::Seq;
use narrows_core::rng::SmallStream;
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};

/// Bytes of a segment, and of its packet: what the controller says in its pacing rate then is unscaled.
const MSS: u64 = 1500;

/// Half of the window at each cut, no growth; asks for a reduction with one of its acknowledgements; and notes what it is told, an
/// octal digit each, in its pacing rate.
const TEXT: &str = r#"
#include <linux/module.h>
#include <net/tcp.h>
static int ask_at;
module_param(ask_at, int, 0444);
struct own { u64 told; u32 calls; };
static void note(struct sock *sk, u32 digit)
{
	struct own *own = inet_csk_ca(sk);

	own->told = own->told * 8 + digit;
	sk->sk_pacing_rate = own->told;
	sk->sk_pacing_status = SK_PACING_NEEDED;
}
static u32 one_ssthresh(struct sock *sk) { return tcp_sk(sk)->snd_cwnd / 2; }
static void one_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct own *own = inet_csk_ca(sk);

	if (++own->calls == ask_at)
		tcp_enter_cwr(sk);
}
static void one_control(struct sock *sk, const struct rate_sample *rs) { one_avoid(sk, 0, 0); }
static void one_state(struct sock *sk, u8 state) { note(sk, state + 1); }
static void one_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_COMPLETE_CWR)
		note(sk, 6);
	if (event == CA_EVENT_LOSS)
		note(sk, 7);
}
static struct tcp_congestion_ops one __read_mostly = {
	.ssthresh = one_ssthresh, .CONTROL, .undo_cwnd = tcp_reno_undo_cwnd, .set_state = one_state,
	.cwnd_event = one_event, .name = "one",
};
static int __init one_register(void) { return tcp_register_congestion_control(&one); }
module_init(one_register);
"#;

const AVOID: &str = "cong_avoid = one_avoid";

/// A sender with a window of 40, and what is true of it.
struct Drive {
    controller: Controller,
    path: Path,
    now: Time,
    delivered: u64,
}

impl Drive {
    /// Its controller asks for a reduction with this acknowledgement that may raise the window; never with the 0th.
    fn new(ask_at: u32, control: &str) -> Drive {
        let parameters = [("ask_at".to_owned(), ask_at.to_string())].into();
        let text = TEXT.replace("CONTROL", control);
        let source = Source { name: "one.c".into(), text, others: [].into(), parameters };
        let library = Arc::new(Library::new(&source, None).unwrap_or_else(|error| panic!("{error}")));
        let path = Path {
            mss: Bytes::new(MSS),
            packet: Bytes::new(MSS),
            initial_window: Packets::new(40),
            line_rate: Rate::from_gbps(1),
            srtt: Some(Span::from_ms(10)),
            min_rtt: Some(Span::from_ms(10)),
            rto: Span::from_ms(200),
            burst: 1,
            una: Seq::FIRST,
            nxt: Seq::FIRST,
            in_flight: Packets::ZERO,
            outstanding: 0,
            departs_at: Time::ZERO,
        };
        let settings = Settings::new(library.spec().parameters, &[]);
        let context = Context { settings, path: &path, random: SmallStream::new(1) };
        let controller = library.build(&context, false);
        Drive { controller, path, now: Time::ZERO + Span::from_ms(1), delivered: 0 }
    }

    fn window(&self) -> u64 {
        self.controller.window().get()
    }

    fn threshold(&self) -> u64 {
        self.controller.slow_start_threshold().get()
    }

    /// What the controller was told, in this order.
    fn told(&self) -> Vec<&'static str> {
        let mut digits = self.controller.pacing().map_or(0, |rate| rate.as_bps() / 8);
        let mut told = vec![];
        while digits > 0 {
            told.push(match digits % 8 {
                1 => "Open",
                2 => "Disorder",
                3 => "CWR",
                4 => "Recovery",
                5 => "Loss",
                6 => "complete",
                _ => "timeout",
            });
            digits /= 8;
        }
        told.reverse();
        told
    }

    fn send(&mut self, packets: u64) {
        for _ in 0..packets {
            let idle = (self.path.outstanding == 0).then_some(Span::from_ms(1));
            self.path.nxt = self.path.nxt.plus(MSS);
            self.path.in_flight += Packets::new(1);
            self.path.outstanding += 1;
            let sent = Sent { size: Bytes::new(MSS), idle, starts: idle.is_some() };
            self.controller.on_sent(self.now, &sent, &self.path);
        }
    }

    /// An acknowledgement of so many packets in sequence, after which the sender stands here.
    fn ack(&mut self, packets: u64, phase: Phase) {
        self.now += Span::from_ms(1);
        let (acked, prior_in_flight) = (Packets::new(packets), self.path.in_flight);
        self.path.una = self.path.una.plus(packets * MSS);
        self.path.in_flight = prior_in_flight.saturating_sub(acked);
        self.path.outstanding -= u32::try_from(packets).expect("as many as are out");
        self.delivered += packets;
        let ack = Ack {
            now: self.now,
            acked,
            marked: Packets::ZERO,
            lost: Packets::new(u64::from(phase == Phase::Recovery)),
            ece: phase == Phase::EcnReduction,
            rtt: None,
            delivery: None,
            delivered: Packets::new(self.delivered),
            una: self.path.una,
            nxt: self.path.nxt,
            in_flight: self.path.in_flight,
            prior_in_flight,
            max_in_flight: prior_in_flight,
            phase,
            limited_by: Limit::Window,
            timestamps: (0, 0),
            in_order: true,
        };
        self.controller.on_ack(&ack, &self.path);
    }

    /// With the last acknowledgement, unless time has gone by since.
    fn congestion(&mut self, cause: Cause) {
        self.controller.on_congestion(self.now, cause, &self.path);
    }

    fn wait(&mut self) {
        self.now += Span::from_ms(1);
    }

    fn time_out(&mut self) {
        self.wait();
        self.controller.on_timeout(self.now, false, &self.path);
    }
}

/// Forty packets are out and one is acknowledged, with which the controller asks for a reduction.
fn asked(control: &str) -> Drive {
    let mut drive = Drive::new(1, control);
    drive.send(40);
    drive.ack(1, Phase::Open);
    assert_eq!(
        (drive.window(), drive.threshold()),
        (40, 20),
        "`tcp_enter_cwr` leaves the window to the next acknowledgement"
    );
    drive
}

/// Eight packets are out, and the controller asks for a reduction with the acknowledgement of all.
fn asked_at_the_end() -> Drive {
    let mut drive = Drive::new(1, AVOID);
    drive.send(8);
    drive.ack(8, Phase::Open);
    drive
}

#[test]
fn a_reduction_that_is_asked_for_ends_above_what_was_out() {
    let mut drive = asked(AVOID);
    let mut before = 40;
    for _ in 0..19 {
        drive.ack(1, Phase::Open);
        drive.ack(1, Phase::Open);
        if drive.path.in_flight.get() < drive.window() {
            drive.send(drive.window() - drive.path.in_flight.get());
        }
        assert!((before - 2..=before).contains(&drive.window()), "{} after {before}", drive.window());
        before = drive.window();
    }
    assert_eq!((drive.window(), drive.told()), (20, vec!["CWR"]));
    drive.ack(1, Phase::Open);
    assert_eq!(drive.told(), ["CWR"], "what was out is acknowledged, and nothing above");
    drive.ack(1, Phase::Open);
    assert_eq!((drive.window(), drive.told()), (20, vec!["CWR", "complete", "Open"]));
}

#[test]
fn a_reduction_that_is_asked_for_with_the_last_acknowledgement_holds_nothing_back() {
    let mut drive = asked_at_the_end();
    assert_eq!(drive.window(), 40, "what is sent next may be as much as before");
    drive.send(1);
    drive.ack(1, Phase::Open);
    assert_eq!((drive.window(), drive.told()), (20, vec!["CWR", "complete", "Open"]));
}

#[test]
fn a_loss_within_a_reduction_is_answered_by_it() {
    // The transport tells of it, or not, where a reduction for ECN answers it.
    for tells in [true, false] {
        let mut drive = Drive::new(0, AVOID);
        drive.send(40);
        drive.ack(1, Phase::EcnReduction);
        drive.congestion(Cause::Ecn);
        drive.ack(1, Phase::Recovery);
        if tells {
            drive.congestion(Cause::Loss);
        }
        assert_eq!((drive.threshold(), drive.window(), drive.told()), (20, 20, vec!["CWR", "Recovery"]));
        drive.ack(38, Phase::Open);
        assert_eq!(drive.told(), ["CWR", "Recovery", "Open", "complete"]);
    }
    let mut drive = asked(AVOID);
    drive.ack(1, Phase::Recovery);
    drive.congestion(Cause::Loss);
    assert_eq!((drive.threshold(), drive.window(), drive.told()), (20, 20, vec!["CWR", "Recovery"]));
    drive.ack(38, Phase::Open);
    assert_eq!(drive.told(), ["CWR", "Recovery", "Open", "complete"]);
    // An echo within it asks for no other.
    let mut drive = asked(AVOID);
    drive.ack(1, Phase::EcnReduction);
    drive.congestion(Cause::Ecn);
    assert_eq!((drive.threshold(), drive.window(), drive.told()), (20, 20, vec!["CWR"]));
}

#[test]
fn an_episode_ends_before_the_next_begins_with_the_same_acknowledgement() {
    for (first, second, told) in [
        (Phase::EcnReduction, Phase::EcnReduction, ["CWR", "complete", "Open", "CWR"]),
        (Phase::EcnReduction, Phase::Recovery, ["CWR", "complete", "Open", "Recovery"]),
        (Phase::Recovery, Phase::Recovery, ["Recovery", "Open", "complete", "Recovery"]),
        (Phase::Recovery, Phase::EcnReduction, ["Recovery", "Open", "complete", "CWR"]),
    ] {
        let cause = |phase| if phase == Phase::Recovery { Cause::Loss } else { Cause::Ecn };
        let mut drive = Drive::new(0, AVOID);
        drive.send(40);
        drive.ack(1, first);
        drive.congestion(cause(first));
        drive.send(10);
        drive.ack(40, second);
        drive.congestion(cause(second));
        assert_eq!((drive.threshold(), drive.window()), (10, 10), "{first:?}, {second:?}");
        assert_eq!(drive.told(), told);
    }
    // A reduction that was asked for, too.
    let mut drive = asked(AVOID);
    drive.send(10);
    drive.ack(40, Phase::Recovery);
    drive.congestion(Cause::Loss);
    assert_eq!((drive.threshold(), drive.told()), (10, vec!["CWR", "complete", "Open", "Recovery"]));
    // And after a timeout.
    let mut drive = Drive::new(0, AVOID);
    drive.send(40);
    drive.time_out();
    drive.ack(40, Phase::EcnReduction);
    drive.congestion(Cause::Ecn);
    assert_eq!(drive.told(), ["timeout", "Loss", "Open", "CWR"]);
}

#[test]
fn an_undone_reduction_is_completed_only_at_its_end() {
    let recovering = || {
        let mut drive = Drive::new(0, AVOID);
        drive.send(40);
        drive.ack(1, Phase::Recovery);
        drive.congestion(Cause::Loss);
        assert_eq!(drive.window(), 20);
        drive
    };
    let mut within = recovering();
    within.controller.on_undo();
    within.ack(1, Phase::Open);
    assert_eq!((within.window(), within.told()), (40, vec!["Recovery", "Open"]));
    let mut at_its_end = recovering();
    at_its_end.controller.on_undo();
    at_its_end.ack(39, Phase::Open);
    assert_eq!((at_its_end.window(), at_its_end.told()), (40, vec!["Recovery", "Open", "complete"]));
    // A loss that the same acknowledgement shows is another's.
    let mut again = recovering();
    again.controller.on_undo();
    again.ack(1, Phase::Recovery);
    again.congestion(Cause::Loss);
    assert_eq!((again.window(), again.told()), (20, vec!["Recovery", "Open", "Recovery"]));
    // The acknowledgement that undid it delivered nothing, and was not told.
    let mut untold = recovering();
    untold.controller.on_undo();
    untold.wait();
    untold.congestion(Cause::Loss);
    untold.ack(1, Phase::Recovery);
    assert_eq!((untold.window(), untold.told()), (20, vec!["Recovery", "Open", "Recovery"]));
}

#[test]
fn what_a_controller_asked_for_is_not_undone() {
    let mut lost = asked(AVOID);
    lost.ack(1, Phase::Recovery);
    lost.congestion(Cause::Loss);
    lost.controller.on_undo();
    lost.ack(1, Phase::Open);
    assert_eq!((lost.window(), lost.told()), (20, vec!["CWR", "Recovery", "Open"]));
    let mut timed_out = asked(AVOID);
    timed_out.time_out();
    assert_eq!((timed_out.window(), timed_out.threshold(), timed_out.told()), (1, 20, vec!["CWR", "Loss"]));
    timed_out.controller.on_undo();
    timed_out.ack(1, Phase::Open);
    assert_eq!((timed_out.window(), timed_out.told()), (1, vec!["CWR", "Loss", "Open"]));
}

#[test]
fn a_timeout_is_answered_by_a_reduction_as_long_as_what_was_out_then_is() {
    let mut drive = asked_at_the_end();
    drive.send(1);
    drive.time_out();
    assert_eq!(drive.told(), ["CWR", "timeout", "Loss"], "all of it is acknowledged");
}

#[test]
fn idle_time_within_a_reduction_keeps_its_threshold() {
    let mut drive = asked_at_the_end();
    let idle = Span::from_ms(250);
    drive.now += idle;
    drive.controller.on_idle_restart(drive.now, idle, &drive.path);
    assert_eq!(drive.threshold(), 20);
}

#[test]
fn what_a_probe_repairs_is_a_reduction_that_is_over_at_once() {
    let mut drive = Drive::new(0, AVOID);
    drive.send(40);
    drive.ack(1, Phase::Open);
    drive.congestion(Cause::Loss);
    assert_eq!((drive.window(), drive.told()), (20, vec!["CWR", "complete", "Open"]));
    // Within another it is a part of that.
    let mut drive = asked(AVOID);
    drive.ack(1, Phase::Open);
    drive.congestion(Cause::Loss);
    assert_eq!((drive.threshold(), drive.told()), (20, vec!["CWR"]));
}

#[test]
fn a_controller_that_owns_its_window_is_told_the_states_alone() {
    let mut drive = asked("cong_control = one_control");
    for _ in 0..3 {
        drive.ack(1, Phase::Open);
        assert_eq!(drive.window(), 40);
    }
    drive.send(10);
    drive.ack(40, Phase::Open);
    assert_eq!((drive.window(), drive.told()), (40, vec!["CWR", "Open"]));
    drive.ack(1, Phase::Recovery);
    drive.congestion(Cause::Loss);
    assert_eq!((drive.window(), drive.told()), (40, vec!["CWR", "Open", "Recovery"]));
}
