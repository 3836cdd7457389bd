//! Packet spraying: every packet takes a way of its own, drawn uniformly and independently of all others.
//!
//! Loads of equal ways differ by no more than chance has it, whatever the flows are; and packets of one flow overtake each
//! other by what the queues on their ways differ.

use alloc::vec;
use alloc::vec::Vec;

use super::Context;
use crate::component::{Settings, Spec, Value, parameters};
use crate::rng::SmallStream;
use crate::units::Time;

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "spray",
    about: "Each packet takes one of the equally short paths at random.",
    source: "[RPS]",
    parameters: parameters! {},
};

/// It has no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {}

impl Config {
    #[allow(clippy::unnecessary_wraps, reason = "as for all policies")]
    pub(super) fn new(_: &Settings<'_>) -> Result<Config, &'static str> {
        Ok(Config {})
    }
    pub(super) fn values(&self) -> Vec<Value> {
        vec![]
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Spray {
    stream: SmallStream,
}

impl Spray {
    pub(super) fn build(_: &Config, context: Context) -> Spray {
        Spray { stream: context.stream }
    }

    pub(super) fn select(&mut self, _: Time, _: u64, _: impl FnOnce() -> u32) -> u32 {
        (self.stream.next_u64() >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts over `N` ways are binomial: four standard deviations of the mean hold for each of eight ways but once in
    /// 2,000 seeds.
    #[test]
    fn packets_of_one_flow_spread_evenly() {
        const PACKETS: u32 = 80_000;
        let mut spray = Spray::build(&Config {}, Context { stream: SmallStream::new(7), salt: 0 });
        let mut counts = [0_i64; 8];
        for _ in 0..PACKETS {
            counts[(spray.select(Time::ZERO, 1, || 0) >> 29) as usize] += 1;
        }
        // The deviation of one of them: √(80,000 · 1/8 · 7/8) = 93.5.
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 374), "{counts:?}");
    }
}
