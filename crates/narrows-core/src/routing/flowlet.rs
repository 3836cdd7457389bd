//! Flowlet switching: a flow keeps its way as long as its packets follow each other closely, and draws another, uniformly,
//! when one comes after a gap. Where the gap is longer than the largest difference between the delays of its ways, no packet
//! overtakes another [LetFlow §3].
//!
//! A switch remembers flowlets in a table of fixed size, by a hash of the flow. Flows that share an entry share a flowlet:
//! none of them sees a gap unless all pause.

use alloc::vec;
use alloc::vec::Vec;

use super::Context;
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::rng::{SmallStream, mix};
use crate::units::{Span, Time};

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "flowlet",
    about: "After a gap between its packets a flow draws its path anew from the equally short ones.",
    source: "[LetFlow]",
    parameters: parameters! {
        "gap": Kind::Span, Value::Required, (1, Span::from_secs(60).as_ps()),
            "the shortest pause after which a flow's next packet begins a flowlet";
        "entries": Kind::Count, Value::Count(4_096), (1, 1 << 20), "flowlets that a switch remembers; flows of one entry share a flowlet";
    },
};

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Config {
    /// The shortest pause after which a flowlet begins.
    pub gap: Span,
    /// Flowlets that a switch remembers.
    pub entries: u32,
}

impl Config {
    #[allow(clippy::unnecessary_wraps, reason = "as for all policies")]
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        Ok(Config { gap: settings.span("gap"), entries: u32::try_from(settings.count("entries")).unwrap_or(u32::MAX) })
    }
    pub(super) fn values(&self) -> Vec<Value> {
        vec![Value::Span(self.gap), Value::Count(self.entries.into())]
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Flowlet {
    gap: Span,
    /// Which entry a flow has differs from switch to switch, and from seed to seed.
    salt: u64,
    /// By entry, when its flowlet ends unless another packet comes, picoseconds; and the number that all of its packets get.
    /// Two lists of zeros, which take no memory before they are written.
    ends: Vec<u64>,
    numbers: Vec<u32>,
    stream: SmallStream,
}

impl Flowlet {
    pub(super) fn build(config: &Config, context: Context) -> Flowlet {
        assert!(config.entries > 0, "a table of flowlets has at least one entry");
        let entries = config.entries as usize;
        let mut stream = context.stream;
        let salt = stream.next_u64();
        Flowlet { gap: config.gap, salt, ends: vec![0; entries], numbers: vec![0; entries], stream }
    }

    #[allow(clippy::cast_possible_truncation, reason = "it is below the number of entries, and any 32 bits will do")]
    pub(super) fn select(&mut self, now: Time, flow: u64, _: impl FnOnce() -> u32) -> u32 {
        let place = ((u128::from(mix(flow ^ self.salt)) * self.ends.len() as u128) >> 64) as usize;
        if now.as_ps() >= self.ends[place] {
            self.numbers[place] = (self.stream.next_u64() >> 32) as u32;
        }
        self.ends[place] = (now + self.gap).as_ps();
        self.numbers[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn flowlets(entries: u32) -> Flowlet {
        let config = Config { gap: Span::from_us(10), entries };
        Flowlet::build(&config, Context { stream: SmallStream::new(3), salt: 0 })
    }

    #[test]
    fn a_flowlet_lasts_until_a_gap() {
        let mut switch = flowlets(64);
        let mut now = Time::ZERO;
        let first = switch.select(now, 5, || 0);
        // However long it lasts: each packet counts from the one before.
        for _ in 0..100 {
            now += Span::from_ns(9_999);
            assert_eq!(switch.select(now, 5, || 0), first);
        }
        now += Span::from_us(10);
        assert_ne!(switch.select(now, 5, || 0), first);
    }

    #[test]
    fn flows_have_flowlets_of_their_own() {
        let mut switch = flowlets(1 << 20);
        let numbers: Vec<u32> = (0..20).map(|flow| switch.select(Time::ZERO, flow, || 0)).collect();
        let again: Vec<u32> = (0..20).map(|flow| switch.select(at(9), flow, || 0)).collect();
        assert_eq!(numbers, again);
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{numbers:?}");
    }

    /// With one entry there is one flowlet, and it has a gap only where all flows pause.
    #[test]
    fn flows_that_share_an_entry_share_a_flowlet() {
        let mut switch = flowlets(1);
        let first = switch.select(Time::ZERO, 1, || 0);
        assert_eq!(switch.select(at(6), 2, || 0), first);
        assert_eq!(switch.select(at(12), 1, || 0), first);
        assert_ne!(switch.select(at(22), 1, || 0), first);
    }

    /// A pause of each flow at each packet: as spraying, all ways alike.
    #[test]
    fn flowlets_of_one_packet_spread_evenly() {
        let mut switch = flowlets(64);
        let mut counts = [0_i64; 4];
        for packet in 0..40_000 {
            counts[(switch.select(at(10 * packet), 9, || 0) >> 30) as usize] += 1;
        }
        // √(40,000 · 1/4 · 3/4) = 86.6, four times.
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 347), "{counts:?}");
    }
}
