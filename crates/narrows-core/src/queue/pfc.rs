//! Priority flow control: a switch pauses whoever fills its memory [802.1Qbb].
//!
//! A packet counts for the link that it came over, and for its priority, from its arrival until its last bit has left. When
//! what one link and priority hold exceeds `xoff`, the switch pauses them; when it has fallen to `xon`, it resumes them.
//! What arrives in between needs *headroom*: memory beyond `xoff`.
//!
//! Deciding only: the driver sends the frames, each about all priorities as they are when its sending begins, refreshes a
//! pause at [`REFRESH`] of its length, and keeps the packets.
//! What [`Ingress::admits`] for an upper bound of what is held, it admits for the truth, and what stays below
//! [`Ingress::stays_below_xoff`] brings no frame about.

use super::Limit;
use crate::packet::{MIN_WIRE_BYTES, wire_bytes};
use crate::units::{Bytes, Rate, Span};

/// Priorities of a link.
pub const PRIORITIES: usize = 8;
/// The longest pause that a frame can ask for, in quanta of 512 bit times [802.1Qbb].
pub const MAX_QUANTA: u64 = 65_535;
/// IP bytes of a pause frame: with framing it is the smallest frame, 84 bytes on the wire.
pub const FRAME_BYTES: u16 = 46;

/// When a link and priority are paused, and when they are resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Thresholds {
    /// Beyond this they are paused.
    pub xoff: Bytes,
    /// At or below this they are resumed; at most `xoff`.
    pub xon: Bytes,
    /// Whether it is known that packets may be lost: there need not be headroom for all that may come.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "core::ops::Not::not"))]
    pub may_lose: bool,
}

/// How long a pause frame of the longest time pauses a link of this rate; an hour at most, which only links below 10 kbit/s
/// take, so that no run's time overflows.
pub fn pause_time(rate: Rate) -> Span {
    let slowest = Rate::from_bps(MAX_QUANTA * 512 / 3_600);
    if rate < slowest { Span::from_secs(3_600) } else { rate.time_for(Bytes::new(MAX_QUANTA * 512 / 8)) }
}

/// A pause is asked for again when this part of its length is over.
pub const REFRESH: u64 = 2;

/// A direction of a link: its rate, and its delay without stacks.
pub type Line = (Rate, Span);

/// IP bytes that may still arrive over a link, whose packets are at most `mtu` long, after the switch has found `xoff` exceeded,
/// the packet by which it found that included. `back` is the other direction, which the frame takes.
///
/// The pause frame waits for a full frame in service, and for no other pause frame, is sent, and travels back; the other end
/// ends the frame that it has just begun; and what was on the wire arrives.
pub fn headroom((rate, delay): Line, back: Line, mtu: Bytes) -> Bytes {
    let frame = wire_bytes(mtu);
    let wait = back.0.time_for(frame) + back.0.time_for(Bytes::new(MIN_WIRE_BYTES)) + back.1 + delay;
    let wire = u128::from(wait.as_ps()) * u128::from(rate.as_bps()) / 8_000_000_000_000;
    // As many full frames as begin in that time.
    let frames = u64::try_from(wire).unwrap_or(u64::MAX).div_ceil(frame.get());
    Bytes::new((frames + 2) * mtu.get())
}

/// The memory of a switch for what comes over one link.
#[derive(Clone, Copy, Debug)]
pub struct Ingress {
    limit: Limit,
    thresholds: Option<Thresholds>,
    all: Bytes,
    held: [Bytes; PRIORITIES],
    /// By priority: queues that want it paused, and one more while too much is held.
    claims: [u32; PRIORITIES],
    over: u8,
}

/// What a frame asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Nothing is sent.
    Nothing,
    /// The priority pauses.
    Pause,
    /// The priority resumes.
    Resume,
}

impl Ingress {
    /// Empty memory with this limit, in bytes, over all priorities; without `thresholds` it pauses nobody by itself.
    pub const fn new(limit: Limit, thresholds: Option<Thresholds>) -> Ingress {
        Ingress {
            limit,
            thresholds,
            all: Bytes::ZERO,
            held: [Bytes::ZERO; PRIORITIES],
            claims: [0; PRIORITIES],
            over: 0,
        }
    }

    /// Whether what is held with a packet of this size stays within `xoff` and the limit: it may come in, and brings no frame about.
    #[inline]
    pub fn stays_below_xoff(&self, priority: u8, size: Bytes) -> bool {
        let below = self.thresholds.is_none_or(|at| self.held[usize::from(priority)] + size <= at.xoff);
        below & self.admits(size)
    }

    /// Whether a packet of this size may come in.
    #[inline]
    pub fn admits(&self, size: Bytes) -> bool {
        match self.limit {
            Limit::Bytes(most) => self.all + size <= most,
            Limit::Unlimited | Limit::Packets(_) => true,
        }
    }

    /// A packet has come in.
    #[inline]
    pub fn take(&mut self, priority: u8, size: Bytes) -> Ask {
        let held = &mut self.held[usize::from(priority)];
        *held += size;
        self.all += size;
        if self.over & 1 << priority == 0 && self.thresholds.is_some_and(|at| *held > at.xoff) {
            self.over |= 1 << priority;
            return self.claim(priority);
        }
        Ask::Nothing
    }

    /// The last bit of a packet has left.
    #[inline]
    pub fn give_back(&mut self, priority: u8, size: Bytes) -> Ask {
        let held = &mut self.held[usize::from(priority)];
        *held -= size;
        self.all -= size;
        if self.over & 1 << priority != 0 && self.thresholds.is_some_and(|at| *held <= at.xon) {
            self.over &= !(1 << priority);
            return self.yield_claim(priority);
        }
        Ask::Nothing
    }

    /// A queue wants the priority paused.
    pub fn claim(&mut self, priority: u8) -> Ask {
        let claims = &mut self.claims[usize::from(priority)];
        *claims += 1;
        if *claims == 1 { Ask::Pause } else { Ask::Nothing }
    }

    /// A queue wants it paused no more.
    pub fn yield_claim(&mut self, priority: u8) -> Ask {
        let claims = &mut self.claims[usize::from(priority)];
        *claims -= 1;
        if *claims == 0 { Ask::Resume } else { Ask::Nothing }
    }

    /// The priorities that are paused, a bit for each.
    pub fn paused(&self) -> u8 {
        (0..).zip(self.claims).filter(|(_, claims)| *claims > 0).fold(0, |mask, (priority, _)| mask | 1 << priority)
    }

    /// Whether this priority is paused.
    pub fn pauses(&self, priority: u8) -> bool {
        self.claims[usize::from(priority)] > 0
    }

    /// What is held over all priorities.
    pub const fn held(&self) -> Bytes {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1_000;

    fn bytes(bytes: u64) -> Bytes {
        Bytes::new(bytes)
    }

    #[test]
    fn it_pauses_beyond_the_one_threshold_and_resumes_at_the_other() {
        let thresholds = Thresholds { xoff: bytes(3 * KB), xon: bytes(KB), may_lose: false };
        let mut ingress = Ingress::new(Limit::Bytes(bytes(5 * KB)), Some(thresholds));
        assert!(ingress.stays_below_xoff(3, bytes(3 * KB)) && !ingress.stays_below_xoff(3, bytes(3 * KB + 1)));
        assert_eq!([0; 4].map(|_| ingress.take(3, bytes(KB))), [Ask::Nothing, Ask::Nothing, Ask::Nothing, Ask::Pause]);
        assert!(ingress.pauses(3) && !ingress.pauses(2));
        assert_eq!(ingress.paused(), 1 << 3);
        assert_eq!(ingress.take(2, bytes(KB)), Ask::Nothing, "each priority has its own thresholds");
        assert!(!ingress.admits(bytes(1)), "and all of them one memory");
        assert_eq!(
            [0; 4].map(|_| ingress.give_back(3, bytes(KB))),
            [Ask::Nothing, Ask::Nothing, Ask::Resume, Ask::Nothing]
        );
        assert_eq!(ingress.held(), bytes(KB));
        assert_eq!(ingress.paused(), 0);
        let mut ingress = Ingress::new(Limit::Bytes(bytes(50 * KB)), Some(thresholds));
        for priority in [0, 3, 7] {
            ingress.take(priority, bytes(4 * KB));
        }
        assert_eq!(ingress.paused(), 1 << 0 | 1 << 3 | 1 << 7);
    }

    #[test]
    fn whoever_is_paused_by_several_is_resumed_by_the_last() {
        let mut ingress = Ingress::new(Limit::Unlimited, None);
        assert_eq!([ingress.claim(0), ingress.claim(0)], [Ask::Pause, Ask::Nothing]);
        assert_eq!([ingress.yield_claim(0), ingress.yield_claim(0)], [Ask::Nothing, Ask::Resume]);
    }

    #[test]
    fn a_pause_of_the_longest_time_lasts_as_long_as_the_standard_says() {
        // 65 535 quanta of 512 bit times: 3.36 ms at 10 Gbit/s.
        assert_eq!(pause_time(Rate::from_gbps(10)), Span::from_ns(3_355_392));
        assert_eq!(pause_time(Rate::from_bps(1)), Span::from_secs(3_600));
    }

    #[test]
    fn headroom_covers_what_is_under_way() {
        // 10 Gbit/s and 500 ns: 1538 and 84 bytes wait, 1250 travel, which are two full frames begun, the frame that the other end
        // has begun, and the one that was too much.
        let line = (Rate::from_gbps(10), Span::from_ns(500));
        assert_eq!(headroom(line, line, bytes(1_500)), bytes(6_000));
        // A frame that takes 13.0 µs at 1 Gbit/s, and 10 µs on the way: 16 198 bytes and 625 travel meanwhile, eleven frames.
        let slow = (Rate::from_gbps(1), Span::from_us(10));
        assert_eq!(headroom(line, slow, bytes(1_500)), bytes((20 + 2) * 1_500));
    }
}
