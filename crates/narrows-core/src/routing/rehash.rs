//! ECMP by a hash of the flow and of its label, which hosts choose: a TCP connection draws another label, and so another path, after
//! rounds in which much was marked (protective load balancing, PLB [PLB]), and after each retransmission timeout
//! [Linux `tcp_plb.c`, `tcp_write_timeout`]. Switches keep no state; what hosts do is in [`tcp::plb`](crate::tcp::plb).

use alloc::vec;
use alloc::vec::Vec;

use super::Context;
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::rng::mix;
use crate::units::{Span, Time};

/// Binary digits after the point of `threshold` (Linux `TCP_PLB_SCALE`).
pub const SHARE_BITS: u8 = 8;

/// What experiments may choose. Defaults are Linux's (`net.ipv4.tcp_plb_*`).
pub const SPEC: Spec = Spec {
    name: "rehash",
    about: "ECMP, but a TCP flow draws its path anew after congested rounds (PLB) and after each timeout.",
    source: "[PLB]",
    parameters: parameters! {
        "threshold": Kind::Real { bits: SHARE_BITS }, Value::Real(1 << (SHARE_BITS - 1)), (1, 1 << SHARE_BITS),
            "share of a round's packets that were marked from which on the round is congested";
        "rounds": Kind::Count, Value::Count(12), (1, 31), "congested rounds in a row after which a flow changes its path";
        "idle-rounds": Kind::Count, Value::Count(3), (0, 31),
            "the same while nothing is in flight, so that no packet overtakes another; 0: never for that reason";
        "suspend": Kind::Span, Value::Span(Span::from_secs(60)), (0, Span::from_secs(3_600).as_ps()),
            "after a timeout rounds count for nothing, for a random time between this and its double";
    },
};

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub struct Config {
    /// Share of marked packets from which on a round is congested, times 2⁸.
    pub threshold: u16,
    /// Congested rounds after which the path changes.
    pub rounds: u8,
    /// The same while nothing is in flight; 0 for never.
    pub idle_rounds: u8,
    /// For how long a timeout suspends that, at least; at most for twice as long.
    pub suspend: Span,
}

impl Config {
    #[allow(clippy::unnecessary_wraps, reason = "as for all policies")]
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        let rounds = |name| u8::try_from(settings.count(name)).unwrap_or(u8::MAX);
        Ok(Config {
            threshold: u16::try_from(settings.real("threshold")).unwrap_or(u16::MAX),
            rounds: rounds("rounds"),
            idle_rounds: rounds("idle-rounds"),
            suspend: settings.span("suspend"),
        })
    }
    pub(super) fn values(&self) -> Vec<Value> {
        vec![
            Value::Real(self.threshold.into()),
            Value::Count(self.rounds.into()),
            Value::Count(self.idle_rounds.into()),
            Value::Span(self.suspend),
        ]
    }
}

/// What a switch does: see the [module](self).
#[derive(Clone, Debug)]
pub struct Rehash {
    /// So that two switches in a row choose independently.
    salt: u64,
}

impl Rehash {
    pub(super) fn build(_: &Config, context: Context) -> Rehash {
        let mut stream = context.stream;
        Rehash { salt: stream.next_u64() }
    }

    #[allow(clippy::cast_possible_truncation, reason = "the upper half of 64 bits")]
    pub(super) fn select(&mut self, _: Time, flow: u64) -> u32 {
        (mix(mix(flow) ^ self.salt) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SmallStream;

    fn switch(seed: u64) -> Rehash {
        let config = Config { threshold: 128, rounds: 12, idle_rounds: 3, suspend: Span::from_secs(60) };
        Rehash::build(&config, Context { stream: SmallStream::new(seed) })
    }

    #[test]
    fn a_flow_keeps_its_path_and_another_label_is_another_flow() {
        let mut switch = switch(1);
        for flow in 0..100 {
            assert_eq!(switch.select(Time::ZERO, flow), switch.select(Time::ZERO + Span::from_secs(1), flow));
        }
        // √(40,000 · 1/4 · 3/4) = 86.6, four times.
        let mut counts = [0_i64; 4];
        (0..40_000).for_each(|flow| counts[(switch.select(Time::ZERO, flow << 40 | 7) >> 30) as usize] += 1);
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 347), "{counts:?}");
    }

    /// Of flows that one switch sends the same of four ways, the next sends a quarter each way.
    #[test]
    fn two_switches_in_a_row_choose_independently() {
        let (mut first, mut second) = (switch(1), switch(2));
        let mut counts = [0_i64; 4];
        for flow in (0..160_000).filter(|&flow| first.select(Time::ZERO, flow) >> 30 == 0) {
            counts[(second.select(Time::ZERO, flow) >> 30) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 500), "{counts:?}");
    }
}
