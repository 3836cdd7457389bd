//! A phantom queue [HULL §3.1]: a counter that fills with what passes and drains at a share γ of the line's rate. Packets are
//! marked while it holds more than K, before the port has a queue of its own: flows that react keep the line at γ.
//!
//! ```text
//! v ← max(0, v − γ·C·Δt),  marked if v > K,  v ← v + wire bytes of the packet
//! ```
//!
//! HULL's counter is behind the port, and sees packets as they leave; Uno's sees them as they arrive, so that a burst
//! fills it at once, and so does a packet that the port's limit then drops.
//!
//! The counter is held as the time at which it would be empty, in picoseconds rounded up for each packet; γ is a multiple of
//! 2⁻¹⁶. It has no ceiling: where the load stays above γ·C whatever is marked, it marks for long afterwards.

use alloc::vec;
use alloc::vec::Vec;

use super::{Arrival, Context, Departure, Onset, Size, Verdict};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::packet::wire_bytes;
use crate::queue::Backlog;
use crate::units::{Bytes, Rate, Time};

/// Fraction bits of the share.
const BITS: u8 = 16;
/// Wire bytes of a packet, where K is in packets.
const FRAME: u64 = 1_538;

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "phantom",
    about: "A phantom queue, which drains at a share of the line's rate: marks ECN-capable packets while it holds more than this.",
    source: "[HULL §3.1] [Uno]",
    parameters: parameters! {
        "mark-at": Kind::Size, Value::Required, "K: the phantom queue above which packets are marked; bytes are wire bytes";
        "drain": Kind::Real { bits: BITS }, Value::Real(62_259), (1, (1 << BITS) - 1), "γ: the share of the line's rate at which it drains";
        "at": Kind::Choice(&["departure", "arrival"]), Value::Choice(0),
            "when a packet counts and is judged: as its service begins [HULL], or as it arrives [Uno]";
    },
};

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Config {
    /// K.
    pub mark_at: Size,
    /// γ, in units of 2⁻¹⁶.
    pub drain: u64,
    /// Counts and judges packets as they arrive, not as they leave.
    pub at_arrival: bool,
}

impl Config {
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        let at_arrival = settings.choice("at") == "arrival";
        Ok(Config { mark_at: settings.size("mark-at"), drain: settings.real("drain"), at_arrival })
    }
    pub(super) fn values(&self) -> Vec<Value> {
        vec![self.mark_at.value(), Value::Real(self.drain), Value::Choice(self.at_arrival.into())]
    }
    pub(super) const fn marks(&self) -> bool {
        true
    }
    pub(super) const fn draws(&self) -> bool {
        false
    }
    pub(super) const fn judges_departures(&self) -> bool {
        !self.at_arrival
    }
    /// It needs no queue of the port.
    pub(super) const fn onset(&self) -> Onset {
        Onset::Queue(Size::Bytes(Bytes::ZERO))
    }
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Phantom {
    rate: Rate,
    /// K, wire bytes.
    mark_at: Bytes,
    at_arrival: bool,
    /// When it would be empty.
    empty_at: Time,
}

impl Phantom {
    pub(super) fn build(config: &Config, context: &Context) -> Phantom {
        let mark_at = match config.mark_at {
            Size::Packets(packets) => Bytes::new(packets.get().saturating_mul(FRAME)),
            Size::Bytes(bytes) => bytes,
        };
        let rate = context.rate.scaled(config.drain, 1 << BITS).max(Rate::from_bps(1));
        Phantom { rate, mark_at, at_arrival: config.at_arrival, empty_at: Time::ZERO }
    }

    #[inline]
    pub(super) fn decide(&mut self, arrival: &Arrival) -> Verdict {
        if self.at_arrival { self.passes(arrival.now, arrival.size, arrival.ecn_capable) } else { Verdict::Pass }
    }

    pub(super) fn leaves(&mut self, departure: &Departure) -> Verdict {
        if self.at_arrival {
            return Verdict::Pass;
        }
        self.passes(departure.now, departure.size, departure.ecn_capable)
    }

    /// A packet of this many IP bytes counts: whether it is marked.
    fn passes(&mut self, now: Time, size: Bytes, ecn_capable: bool) -> Verdict {
        let drained_at = self.empty_at.max(now);
        let above = self.rate.bytes_in(drained_at.since(now)) > self.mark_at;
        self.empty_at = drained_at + self.rate.time_for(wire_bytes(size));
        if above && ecn_capable { Verdict::Mark } else { Verdict::Pass }
    }

    /// Never, where arrivals count.
    pub(super) fn indifferent_up_to(&self) -> Option<Backlog> {
        if self.at_arrival { None } else { Some(Backlog::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SmallStream;
    use crate::units::{Packets, Span};

    const GAMMA_90: u64 = 58_982;

    fn aqm(mark_at: Size, at_arrival: bool) -> Phantom {
        let config = Config { mark_at, drain: GAMMA_90, at_arrival };
        Phantom::build(&config, &Context { rate: Rate::from_gbps(1), stream: SmallStream::new(1) })
    }

    /// Packets at a share of the line's rate, in percent: the number of the first that is marked, counted from 0.
    fn first_marked(aqm: &mut Phantom, percent: u64, packets: u64) -> Option<u64> {
        let gap = Span::from_ps(Rate::from_gbps(1).time_for(Bytes::new(FRAME)).as_ps() * 100 / percent);
        (0..packets).find(|&number| {
            let now = Time::ZERO + Span::from_ps(gap.as_ps() * number);
            let (sojourn, size, backlog) = (Span::ZERO, Bytes::new(1_500), Backlog::EMPTY);
            aqm.leaves(&Departure { now, sojourn, size, backlog, ecn_capable: true }) == Verdict::Mark
        })
    }

    /// At a rate ρ·C above γ·C packet n finds n·F·(1 − γ/ρ) bytes.
    #[test]
    fn a_constant_rate_is_marked_once_its_excess_is_more_than_the_threshold() {
        for (percent, bytes) in [(100, 10_000_u64), (95, 10_000), (100, 1_000)] {
            let share = f64::from(u32::try_from(GAMMA_90).unwrap()) / 65_536.0;
            let excess = 1_538.0 * (1.0 - share * 100.0 / f64::from(u32::try_from(percent).unwrap()));
            let expected = (1..).find(|&n| f64::from(n) * excess > f64::from(u32::try_from(bytes).unwrap())).unwrap();
            let found = first_marked(&mut aqm(Size::Bytes(Bytes::new(bytes)), false), percent, 10_000);
            assert_eq!(found, Some(expected.try_into().unwrap()), "{percent} % and {bytes} B");
        }
        assert_eq!(first_marked(&mut aqm(Size::Bytes(Bytes::new(1_538)), false), 89, 100_000), None);
    }

    /// A burst counts at once where arrivals count: K + 1 packets pass.
    #[test]
    fn a_burst_that_arrives_fills_it() {
        let mut aqm = aqm(Size::Packets(Packets::new(10)), true);
        let arrival = Arrival {
            now: Time::ZERO,
            size: Bytes::new(1_500),
            backlog: Backlog::EMPTY,
            idle_since: Time::ZERO,
            ecn_capable: true,
        };
        let verdicts: Vec<Verdict> = (0..20).map(|_| aqm.decide(&arrival)).collect();
        // The eleventh finds 10 full packets, which is not above.
        assert_eq!(verdicts.iter().position(|&verdict| verdict == Verdict::Mark), Some(11));
        let incapable = Arrival { ecn_capable: false, ..arrival };
        assert_eq!(aqm.decide(&incapable), Verdict::Pass);
        // 21 packets drain in 21 times that of one at γ·C.
        let drained = Span::from_ps(aqm.rate.time_for(Bytes::new(FRAME)).as_ps() * 21);
        assert_eq!(aqm.decide(&Arrival { now: Time::ZERO + drained, ..arrival }), Verdict::Pass);
        assert_eq!(aqm.empty_at, Time::ZERO + drained + aqm.rate.time_for(Bytes::new(FRAME)));
    }
}
