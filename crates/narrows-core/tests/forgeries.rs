//! Ten thousand forged notifications a second to a modelled host, as datagrams that it verifies like a real one.

#[allow(dead_code, unreachable_pub, missing_docs, reason = "a test uses the part it needs")]
mod pair;

use std::net::IpAddr;

use narrows_core::rng::SmallStream;
use narrows_core::tcp::EcnMode;
use narrows_core::tcp::near_source::{self, ReactionPoint};
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Rate, Span, Time};
use narrows_wire::notification::HOP_LIMIT;
use narrows_wire::{Admission, Flow, Key, Notification, Refusal, Sender, Tally};
use pair::{Pair, stack_for};

const SWITCH: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 254));
const IDENTITY: u64 = 7;
/// When the run begins, nanoseconds since 1970.
const EPOCH_NS: u64 = 1_767_225_600_000_000_000;
const END: Time = Time::from_ns(2_000_000_000);

fn key() -> Key {
    Key::new([9; 32])
}

/// The victim, and what stands between it and the network.
struct Host {
    pair: Pair,
    admission: Admission,
    tally: Tally,
    recorded: Option<[u8; 88]>,
}

impl Host {
    /// A sender of 100 Mbit/s over 10 ms that has more to send than there is time for.
    fn new(controller: &str) -> Host {
        let profile = Profile { near_source: Some(ReactionPoint::SOFTWARE), ..Profile::LINUX_6 };
        let mut pair = Pair::new(controller, stack_for(controller, profile, EcnMode::Off), Span::from_ms(5), 1);
        pair.rate = Some(Rate::from_mbps(100));
        pair.room = 100;
        pair.keep_sent = true;
        pair.ends[0].listen(SmallStream::new(3), &pair.stack);
        pair.open();
        for tag in 1..40 {
            pair.offer(0, 1_000_000, tag);
        }
        let senders = [((IDENTITY, Host::flow().source.ip()), Sender { address: SWITCH, keys: key().into() })].into();
        Host { pair, admission: Admission::new(senders, 100_000_000), tally: Tally::default(), recorded: None }
    }

    fn flow() -> Flow {
        Flow { source: ([192, 0, 2, 1], 40_000).into(), destination: ([198, 51, 100, 1], 5_001).into() }
    }

    /// What the switch would say now of the packet that was sent last.
    fn genuine(&self) -> Notification {
        let data = self.pair.sent.iter().rfind(|(_, end, segment)| *end == 0 && segment.length > 0);
        let (_, _, last) = data.expect("something was sent");
        Notification {
            sender: IDENTITY,
            sent_ns: EPOCH_NS + self.pair.now.as_ns(),
            feedback: 63,
            offset: 1,
            growth: 1,
            flow: Host::flow(),
            seq: last.seq,
            payload: last.length,
        }
    }

    /// A datagram arrives.
    fn hear(&mut self, bytes: &[u8], hop_limit: u8) {
        let now = self.pair.now;
        let outcome = self.admission.admit(bytes, SWITCH, hop_limit, EPOCH_NS + now.as_ns()).and_then(|said| {
            if said.flow != Host::flow() {
                return Err(Refusal::UnknownFlow);
            }
            let Pair { ends, stack, .. } = &mut self.pair;
            ends[0].handle_notification(now, said.feedback, said.seq, stack).map_err(|refusal| match refusal {
                near_source::Refusal::NotInFlight => Refusal::NotInFlight,
                near_source::Refusal::Feedback => Refusal::Feedback,
                near_source::Refusal::Off => Refusal::UnknownFlow,
            })
        });
        self.tally.count(&outcome);
        self.pair.settle();
    }

    /// The most that whoever is at fault can do: what lies behind the tag is sealed with the right key.
    fn forge(&mut self, reason: Refusal) {
        let said = self.genuine();
        let elsewhere = Flow { source: ([192, 0, 2, 1], 9).into(), ..said.flow };
        let bytes = match reason {
            Refusal::Malformed => [0xff; 88],
            Refusal::TooFar => said.seal(&key()),
            Refusal::UnknownSender => Notification { sender: 8, ..said }.seal(&key()),
            Refusal::Unauthenticated => said.seal(&Key::new([1; 32])),
            Refusal::Stale => Notification { sent_ns: said.sent_ns - 1_000_000_000, ..said }.seal(&key()),
            Refusal::Replayed => self.recorded.expect("one was sent before"),
            Refusal::Feedback => Notification { feedback: 64, ..said }.seal(&key()),
            Refusal::UnknownFlow => Notification { flow: elsewhere, ..said }.seal(&key()),
            Refusal::NotNow => unreachable!("a modelled host has its connections at hand"),
            Refusal::NotInFlight => Notification { seq: said.seq.wrapping_add(1 << 30), ..said }.seal(&key()),
        };
        if reason == Refusal::Feedback {
            self.recorded = Some(bytes);
        }
        self.hear(&bytes, if reason == Refusal::TooFar { HOP_LIMIT - 1 } else { HOP_LIMIT });
    }

    /// To the end, with `act` called ten thousand times a second from 100 ms on; megabytes delivered.
    fn run(mut self, mut act: impl FnMut(&mut Host, usize)) -> (usize, Tally) {
        let mut count = 0;
        let mut at = Time::from_ns(100_000_000);
        while at < END {
            self.pair.run_until(at);
            act(&mut self, count);
            (at, count) = (at + Span::from_us(100), count + 1);
        }
        self.pair.run_until(END);
        (self.pair.delivered[1].len(), self.tally)
    }
}

#[test]
fn forgeries_take_nothing_and_each_is_counted() {
    for controller in ["cubic", "bbr", "dctcp", "gemini"] {
        let (quiet, _) = Host::new(controller).run(|_, _| {});
        // Backwards, so that there is something to replay.
        let reasons: Vec<Refusal> =
            Refusal::ALL.into_iter().rev().filter(|reason| *reason != Refusal::NotNow).collect();
        let (attacked, tally) = Host::new(controller).run(|host, count| host.forge(reasons[count % reasons.len()]));
        assert_eq!(attacked, quiet, "{controller}");
        assert!(quiet >= 18, "{controller} sent {quiet} MB, so that there is something to take");
        assert_eq!(tally.taken, 0);
        let counts: Vec<u64> = reasons.iter().map(|reason| tally.refused(*reason)).collect();
        assert!(counts.iter().all(|count| (2_111..=2_112).contains(count)), "{counts:?}");
        // The genuine ones do what the forged ones could not.
        let (held, tally) = Host::new(controller).run(|host, _| {
            let said = host.genuine();
            host.hear(&said.seal(&key()), HOP_LIMIT);
        });
        assert!(held * 10 < quiet && tally.taken > 1_000, "{controller}: {held} MB of {quiet}, {}", tally.taken);
    }
}
