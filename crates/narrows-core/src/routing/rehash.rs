//! ECMP by a hash of the flow and of its label, which hosts choose: a TCP connection draws another label, and so another path, after
//! rounds in which much was marked (protective load balancing [PLB, Linux `tcp_plb.c`]); and where its path may be dead, after a
//! retransmission timeout or when the same data comes for the third time (protective rerouting [Wetherall 2023]). Switches keep no
//! state; what hosts do is in `tcp/plb.rs`.

use alloc::vec;
use alloc::vec::Vec;

use super::{Context, salted};
use crate::component::{Kind, Settings, Spec, Value, parameters};
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
            "share of marked packets at which a round counts as congested";
        "rounds": Kind::Count, Value::Count(12), (1, 31), "congested rounds in a row after which a flow changes its path";
        "idle-rounds": Kind::Count, Value::Count(3), (0, 31),
            "the same while nothing is in flight, so that no packet overtakes another; 0: off; above `rounds`: no effect";
        "suspend": Kind::Span, Value::Span(Span::from_secs(60)), (0, Span::from_secs(3_600).as_ps()),
            "for a random time from this to its double after a timeout, congested rounds change no path; they are still counted";
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

/// What a switch does: the same as ECMP, by a hash that takes in the label.
#[derive(Clone, Debug)]
pub struct Rehash {
    salt: u64,
}

impl Rehash {
    pub(super) fn build(_: &Config, context: Context) -> Rehash {
        Rehash { salt: context.salt }
    }

    pub(super) fn select(&mut self, _: Time, _: u64, hash: impl FnOnce() -> u32) -> u32 {
        salted(hash(), self.salt)
    }
}
