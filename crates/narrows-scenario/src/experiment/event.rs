//! A change of links at a stated time, as an experiment writes it.

use narrows_core::units::{Rate, Span, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::located::Located;
use super::quantity::{Fraction, Quantity};
use super::selector::Selector;

/// A change of links at a stated time: exactly one of `rate`, `delay`, `loss`, `outage`, `down` and `up`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Event {
    /// A name to `set` it by; default: `event-1`, `event-2`, …
    pub name: Option<Located<String>>,
    /// When it takes effect.
    pub at: Located<Quantity<Time>>,
    /// Roles or links, one direction each, globs allowed.
    pub link: Located<Selector>,
    /// Line rate from then on.
    pub rate: Option<Located<Quantity<Rate>>>,
    /// Propagation delay from then on.
    pub delay: Option<Located<Quantity<Span>>>,
    /// Share of packets lost from then on, independently.
    pub loss: Option<Located<Fraction>>,
    /// Down for so long: what waits, what is under way and what comes is lost; routes stay.
    pub outage: Option<Located<Quantity<Span>>>,
    /// `true`: down from then on.
    pub down: Option<Located<bool>>,
    /// `true`: up again.
    pub up: Option<Located<bool>>,
}
