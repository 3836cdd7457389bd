//! Frames that two edge routers handle, while hosts send, packets between them are lost, doubled, reordered and changed,
//! and strangers send what they like. Nothing is believed that the far edge did not say, a host is given no TCP packet that
//! another did not send, what routers send has right checksums, and what can wait for a timer does not wait for ever.
#![no_main]
#![allow(dead_code, reason = "modules of narrows-daemon, of which this needs a part")]

#[path = "../../crates/narrows-daemon/src/bridge/checksum.rs"]
mod checksum;
#[path = "../../crates/narrows-daemon/src/bridge/clamp.rs"]
mod clamp;
#[path = "../../crates/narrows-daemon/src/bridge/frame.rs"]
mod frame;
#[path = "../../crates/narrows-daemon/src/bridge/limit.rs"]
mod limit;
#[path = "../../crates/narrows-daemon/src/bridge/router.rs"]
mod router;
#[path = "../../crates/narrows-daemon/src/bridge/sample.rs"]
mod sample;
#[path = "../../crates/narrows-daemon/src/bridge/wrap.rs"]
mod wrap;

// What the router takes of narrows-kernel, which needs clang and libbpf.
extern crate self as narrows_kernel;
/// As of narrows-kernel.
pub mod bridge {
    /// A side of the bridge.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Side {
        /// Its own site.
        Inside,
        /// The WAN.
        Outside,
    }

    /// Why a frame is handed to the process.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// A TCP packet.
        Tcp,
        /// A datagram of the tunnel's.
        Tunnel,
        /// What a router says of one.
        Error,
    }
}

use std::cell::Cell;

use bridge::{Kind, Side};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use narrows_core::edge::dcib::{Config, Share};
use narrows_core::units::{Rate, Span, Time};
use narrows_wire::Key;
use narrows_wire::tunnel::Names;
use router::{Router, RouterConfig};

const PORT: u16 = 8_936;
const LINK: usize = 14;
/// Frames that are between the routers at most.
const MAX_WAITING: usize = 64;

/// What happens next.
#[derive(Arbitrary, Debug)]
enum Event<'a> {
    /// The host at this router sends: data, a SYN with options, or these bytes behind a link header.
    Data {
        at: bool,
        v6: bool,
        class: u8,
        place: u16,
        length: u16,
    },
    Syn {
        at: bool,
        v6: bool,
        options: &'a [u8],
    },
    Raw {
        at: bool,
        is_outside: bool,
        kind: u8,
        is_late: bool,
        bytes: &'a [u8],
    },
    /// One of the frames on their way to this router arrives; the others keep their order.
    Arrives {
        at: bool,
        which: u8,
    },
    Lost {
        at: bool,
        which: u8,
    },
    Doubled {
        at: bool,
        which: u8,
    },
    /// A bit of it changes.
    Changed {
        at: bool,
        which: u8,
        bit: u16,
    },
    /// A router says that one of the frames to this router is too long, or does not arrive.
    Complaint {
        at: bool,
        which: u8,
        code: u8,
        most: u16,
        quoted: u8,
    },
    Later {
        at: bool,
        us: u16,
    },
    Past {
        at: bool,
        count: u8,
    },
    Longest {
        at: bool,
        bytes: u16,
    },
}

/// Different bytes each time, and the same in each run.
fn draw(bytes: &mut [u8]) {
    for byte in bytes {
        let next = STATE.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        STATE.set(next);
        *byte = next.to_be_bytes()[0];
    }
}
thread_local!(static STATE: Cell<u64> = const { Cell::new(1) });

fn router(near: &str, far: &str) -> Router {
    Router::new(RouterConfig {
        config: Config::new(Rate::from_gbps(1), Share::WHOLE, Span::from_ms(10)),
        keys: Key::new([7; 32]).into(),
        names: Names::new(near, far, 3).expect("they differ"),
        port: PORT,
        sign: Some(44),
        link: LINK,
        longest: 1_500,
        clock: 1_000,
        draw,
    })
}

/// A frame between the routers.
#[derive(Clone)]
struct Flying {
    bytes: Vec<u8>,
    /// No bit of the datagram's payload, and none of its addresses and ports, is another: it may be believed.
    is_genuine: bool,
}

struct World {
    routers: [Router; 2],
    /// By router: what comes to it from outside.
    flying: [Vec<Flying>; 2],
    /// What hosts sent.
    sent: Vec<Vec<u8>>,
    now: Time,
    /// A stranger's frame, or a changed one, may be a TCP packet: hosts get it, as they do from any network.
    is_open: bool,
}

/// A frame's packet, as the hosts tell packets apart: without DSCP, ECN bits, and the checksum over them.
fn identity(frame: &[u8]) -> Vec<u8> {
    let mut packet = frame.get(LINK..).unwrap_or_default().to_vec();
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            packet[1] = 0;
            packet[10..12].fill(0);
        }
        Some(6) if packet.len() >= 40 => {
            packet[0] = 0x60;
            packet[1] &= 0x0f;
        }
        _ => {}
    }
    packet
}

impl World {
    fn protocol(frame: &[u8]) -> u8 {
        match frame.get(LINK).map(|first| first >> 4) {
            Some(6) => frame.get(LINK + 6).copied().unwrap_or(0),
            _ => frame.get(LINK + 9).copied().unwrap_or(0),
        }
    }

    fn kind(frame: &[u8]) -> Kind {
        match World::protocol(frame) {
            6 => Kind::Tcp,
            17 => Kind::Tunnel,
            _ => Kind::Error,
        }
    }

    /// Takes what a router has to send.
    fn collect(&mut self, at: usize) {
        while let Some(sent) = self.routers[at].poll() {
            let bytes = sent.frame.bytes().to_vec();
            if !self.is_open {
                assert!(sample::is_sound(&bytes[LINK..]), "a checksum is wrong: {bytes:02x?}");
            }
            match sent.side {
                Side::Inside if !self.is_open => {
                    let packet = identity(&bytes);
                    assert!(self.sent.contains(&packet), "nobody sent this: {bytes:02x?}");
                }
                Side::Inside => {}
                Side::Outside => {
                    if self.flying[1 - at].len() < MAX_WAITING {
                        self.flying[1 - at].push(Flying { bytes, is_genuine: true });
                    }
                }
            }
        }
    }

    fn from_host(&mut self, at: usize, frame: &[u8]) {
        // A SYN's largest segment is lowered on its way; the rest of it is compared in the router's own tests.
        if frame.get(LINK + 33).is_some_and(|flags| flags & 2 != 0) {
            self.is_open = true;
        }
        self.sent.push(identity(frame));
        self.routers[at].handle(self.now, Side::Inside, World::kind(frame), frame, 0);
        self.collect(at);
    }

    fn arrive(&mut self, at: usize, frame: &Flying) {
        let before = self.routers[at].counters.believed;
        let kind = World::kind(&frame.bytes);
        self.routers[at].handle(self.now, Side::Outside, kind, &frame.bytes, 0);
        assert!(frame.is_genuine || self.routers[at].counters.believed == before, "believed: {:02x?}", frame.bytes);
        self.collect(at);
    }

    fn pick(&self, at: usize, which: u8) -> Option<usize> {
        let count = self.flying[at].len();
        (count > 0).then(|| usize::from(which) % count)
    }

    fn happen(&mut self, event: &Event<'_>) {
        match *event {
            Event::Data { at, v6, class, place, length } => {
                let payload = vec![place.to_be_bytes()[1]; usize::from(length % 1_700)];
                let frame = sample::tcp(v6, LINK, class, u32::from(place) * 64, &payload);
                self.from_host(usize::from(at), &frame);
            }
            Event::Syn { at, v6, options } => {
                let options = &options[..options.len().min(40)];
                self.from_host(usize::from(at), &sample::syn(v6, LINK, options));
            }
            Event::Raw { at, is_outside, kind, is_late, bytes } => {
                let at = usize::from(at);
                let kind = [Kind::Tcp, Kind::Tunnel, Kind::Error][usize::from(kind % 3)];
                let side = if is_outside { Side::Outside } else { Side::Inside };
                self.is_open = true;
                let before = self.routers[at].counters.believed;
                if is_late {
                    self.routers[at].handle_late(self.now, side, kind, bytes, 0);
                } else {
                    self.routers[at].handle(self.now, side, kind, bytes, 0);
                }
                assert_eq!(self.routers[at].counters.believed, before, "a stranger was believed");
                self.collect(at);
            }
            Event::Arrives { at, which } => {
                let at = usize::from(at);
                let Some(place) = self.pick(at, which) else { return };
                let frame = self.flying[at].remove(place);
                self.arrive(at, &frame);
            }
            Event::Lost { at, which } => {
                let at = usize::from(at);
                if let Some(place) = self.pick(at, which) {
                    self.flying[at].remove(place);
                }
            }
            Event::Doubled { at, which } => {
                let at = usize::from(at);
                if let Some(place) = self.pick(at, which) {
                    let frame = self.flying[at][place].clone();
                    self.flying[at].push(frame);
                }
            }
            Event::Changed { at, which, bit } => {
                let at = usize::from(at);
                let Some(place) = self.pick(at, which) else { return };
                let frame = &mut self.flying[at][place];
                let is_v6 = frame.bytes.get(LINK).is_some_and(|first| first >> 4 == 6);
                let payload = LINK + if is_v6 { 40 } else { 20 } + 8;
                if World::kind(&frame.bytes) != Kind::Tunnel || frame.bytes.len() <= payload || !frame.is_genuine {
                    return;
                }
                let bits = (frame.bytes.len() - payload) * 8;
                let bit = usize::from(bit) % bits;
                frame.bytes[payload + bit / 8] ^= 1 << (bit % 8);
                frame.is_genuine = false;
                // What is none of the tunnel's goes to a host as it is, which is the sum's business.
                self.is_open = true;
            }
            Event::Complaint { at, which, code, most, quoted } => {
                let at = usize::from(at);
                let Some(place) = self.pick(1 - at, which) else { return };
                let packet = self.flying[1 - at][place].bytes.get(LINK..).filter(|packet| !packet.is_empty());
                let Some(packet) = packet else { return };
                let v6 = packet[0] >> 4 == 6;
                let quoted = &packet[..packet.len().min(usize::from(quoted))];
                let [high, low] = most.to_be_bytes();
                let (kind, protocol) = if v6 { (2, 58) } else { (3, 1) };
                let message = [&[kind, code, 0, 0, 0, 0, high, low][..], quoted].concat();
                let [size_high, size_low] = u16::try_from(message.len() + 20).expect("short").to_be_bytes();
                let [plain_high, plain_low] = u16::try_from(message.len()).expect("short").to_be_bytes();
                let mut bytes = vec![0; LINK];
                if v6 {
                    bytes.extend([0x60, 0, 0, 0, plain_high, plain_low, protocol, 64]);
                    bytes.extend([9; 32]);
                } else {
                    bytes
                        .extend([0x45, 0, size_high, size_low, 0, 0, 0, 0, 64, protocol, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9]);
                }
                bytes.extend(message);
                self.is_open = true;
                self.routers[at].handle(self.now, Side::Outside, Kind::Error, &bytes, 0);
                for longest in self.routers[at].longest(self.now) {
                    assert!((576..=u16::MAX).contains(&longest), "no complaint lowers it so far: {longest}");
                }
                self.collect(at);
            }
            Event::Later { at, us } => {
                self.now += Span::from_us(u64::from(us));
                self.wake(usize::from(at));
            }
            Event::Past { at, count } => {
                let at = usize::from(at);
                self.routers[at].went_past(self.now, Side::Outside, u32::from(count));
                self.collect(at);
            }
            Event::Longest { at, bytes } => self.routers[usize::from(at)].set_longest(bytes.max(1_280)),
        }
    }

    /// Its timers, until none is due.
    fn wake(&mut self, at: usize) {
        let mut calls = 0;
        while self.routers[at].deadline() <= self.now {
            self.routers[at].handle_timeout(self.now);
            self.collect(at);
            calls += 1;
            assert!(calls < 10_000, "a timer that is due for ever");
        }
    }
}

fuzz_target!(|events: Vec<Event<'_>>| {
    STATE.set(1);
    let routers = [router("left", "right"), router("right", "left")];
    let mut world = World { routers, flying: [vec![], vec![]], sent: vec![], now: Time::ZERO, is_open: false };
    for event in &events {
        world.happen(event);
    }
});
