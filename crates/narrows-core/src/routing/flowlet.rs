//! Flowlet switching: a flow keeps its way as long as its packets follow each other closely, and draws another, uniformly,
//! when one comes after a gap. Where the gap is longer than what delays of ways differ, packets are not reordered [LetFlow §3].
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
    about: "A flow takes another of the equally short paths, at random, after a gap between its packets.",
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

/// A flowlet's last packet, and the number that all of its packets get.
#[derive(Clone, Copy, Debug)]
struct Entry {
    last: Time,
    number: u32,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Flowlet {
    gap: Span,
    entries: Vec<Option<Entry>>,
    stream: SmallStream,
}

impl Flowlet {
    pub(super) fn build(config: &Config, context: Context) -> Flowlet {
        Flowlet { gap: config.gap, entries: vec![None; config.entries as usize], stream: context.stream }
    }

    #[allow(clippy::cast_possible_truncation, reason = "it is below the number of entries, and any 32 bits will do")]
    pub(super) fn select(&mut self, now: Time, flow: u64) -> u32 {
        let place = (u128::from(mix(flow)) * self.entries.len() as u128) >> 64;
        let entry = &mut self.entries[place as usize];
        let number = match entry {
            Some(flowlet) if now.since(flowlet.last) < self.gap => flowlet.number,
            _ => (self.stream.next_u64() >> 32) as u32,
        };
        *entry = Some(Entry { last: now, number });
        number
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
        Flowlet::build(&config, Context { stream: SmallStream::new(3) })
    }

    #[test]
    fn a_flowlet_lasts_until_a_gap() {
        let mut switch = flowlets(64);
        let mut now = Time::ZERO;
        let first = switch.select(now, 5);
        // However long it lasts: each packet counts from the one before.
        for _ in 0..100 {
            now += Span::from_ns(9_999);
            assert_eq!(switch.select(now, 5), first);
        }
        now += Span::from_us(10);
        assert_ne!(switch.select(now, 5), first);
    }

    #[test]
    fn flows_have_flowlets_of_their_own() {
        let mut switch = flowlets(1 << 20);
        let numbers: Vec<u32> = (0..20).map(|flow| switch.select(Time::ZERO, flow)).collect();
        let again: Vec<u32> = (0..20).map(|flow| switch.select(at(9), flow)).collect();
        assert_eq!(numbers, again);
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{numbers:?}");
    }

    /// With one entry there is one flowlet, and it has a gap only where all flows pause.
    #[test]
    fn flows_that_share_an_entry_share_a_flowlet() {
        let mut switch = flowlets(1);
        let first = switch.select(Time::ZERO, 1);
        assert_eq!(switch.select(at(6), 2), first);
        assert_eq!(switch.select(at(12), 1), first);
        assert_ne!(switch.select(at(22), 1), first);
    }

    /// A pause of each flow at each packet: as spraying, all ways alike.
    #[test]
    fn flowlets_of_one_packet_spread_evenly() {
        let mut switch = flowlets(64);
        let mut counts = [0_i64; 4];
        for packet in 0..40_000 {
            counts[(switch.select(at(10 * packet), 9) >> 30) as usize] += 1;
        }
        // √(40,000 · 1/4 · 3/4) = 86.6, four times.
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 347), "{counts:?}");
    }
}
