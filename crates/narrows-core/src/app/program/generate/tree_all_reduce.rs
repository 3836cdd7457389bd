//! All-reduce over a binomial tree: a reduction to rank 0, and a broadcast from there.

use super::{Script, count};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::units::Span;

pub(super) const SPEC: Spec = Spec {
    name: "tree-all-reduce",
    about: "All-reduce over a binomial tree: all data to rank 0 in log₂ P steps, and the sums back the same way.",
    source: "Thakur 2005",
    parameters: parameters![
        "ranks": Kind::Count, Value::Count(64), (2, 4_096), "Ranks, P.";
        "bytes": Kind::Bytes, Value::Required, (1, 10_000_000_000_000), "Data of each rank.";
        "repeats": Kind::Count, Value::Count(1), (1, 10_000), "All-reduces, one after the other.";
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
        script.reduce(bytes);
        script.broadcast(bytes);
    }
}
