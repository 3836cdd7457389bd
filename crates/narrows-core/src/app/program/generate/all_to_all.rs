//! The complete exchange: each rank sends a message to each other, all at once.

use super::{Script, count};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::units::Span;

pub(super) const SPEC: Spec = Spec {
    name: "all-to-all",
    about: "Each rank sends one message to each other rank, to the next one first, all at once.",
    source: "Thakur 2005",
    parameters: parameters![
        "ranks": Kind::Count, Value::Count(64), (2, 1_024), "Ranks.";
        "bytes": Kind::Bytes, Value::Required, (1, 10_000_000_000_000), "Size of each message.";
        "repeats": Kind::Count, Value::Count(1), (1, 1_000), "Exchanges, one after the other.";
        "compute": Kind::Span, Value::Span(Span::ZERO), "Time that each rank computes before each.";
    ],
};

pub(super) fn judge(_: &Settings<'_>) -> Result<(), &'static str> {
    Ok(())
}

pub(super) fn write(settings: &Settings<'_>, script: &mut Script<'_>) {
    let bytes = settings.bytes("bytes").get();
    for _ in 0..count(settings, "repeats") {
        script.calc(settings.span("compute"));
        script.all_to_all(|_, _| bytes);
    }
}
