//! Independent losses: each packet is lost with the same probability.

use alloc::vec;
use alloc::vec::Vec;

use super::{Context, Fate};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::rng::SmallStream;

/// What experiments may choose.
pub const SPEC: Spec = Spec {
    name: "bernoulli",
    about: "Loses each packet with the same probability, independently.",
    source: "",
    parameters: parameters! {
        "loss": Kind::Real { bits: 32 }, Value::Required, (0, u32::MAX as u64), "probability that a packet is lost, below 1";
    },
};

/// Its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// Probability that a packet is lost, in units of 2⁻³².
    pub loss: u32,
}

impl Config {
    #[allow(clippy::unnecessary_wraps, reason = "as for all functions")]
    pub(super) fn new(settings: &Settings<'_>) -> Result<Config, &'static str> {
        Ok(Config { loss: u32::try_from(settings.real("loss")).unwrap_or(u32::MAX) })
    }
    pub(super) fn values(&self) -> Vec<Value> {
        vec![Value::Real(self.loss.into())]
    }
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Bernoulli {
    loss: u32,
    stream: SmallStream,
}

impl Bernoulli {
    pub(super) fn build(config: &Config, context: Context) -> Bernoulli {
        Bernoulli { loss: config.loss, stream: context.stream }
    }

    /// From now on packets are lost with this probability, in units of 2⁻³².
    pub fn set(&mut self, loss: u32) {
        self.loss = loss;
    }

    pub(super) fn decide(&mut self) -> Fate {
        if self.stream.below(1 << 32) < u64::from(self.loss) { Fate::Lost } else { Fate::Arrives }
    }
}
