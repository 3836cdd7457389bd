//! FT of NPB: a Fourier transform in three dimensions, each rank with a slab \[NPB\].

use super::{Script, count};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::units::Span;

pub(super) const SPEC: Spec = Spec {
    name: "ft",
    about: "FT of NPB: in each iteration every rank exchanges a part of its slab with every other, all at once.",
    source: "NPB",
    parameters: parameters![
        "ranks": Kind::Count, Value::Count(64), (2, 1_024), "Ranks.";
        "points": Kind::Count, Value::Count(8_388_608), (4, 1 << 40),
            "Complex points of the grid: 256 · 256 · 128 in class A, 512 · 256 · 256 in class B.";
        "iterations": Kind::Count, Value::Count(6), (1, 1_000), "Iterations after the first transposition; 20 in class B.";
        "compute": Kind::Span, Value::Span(Span::from_ms(20)), "Mean time of a computation, one before each transposition.";
    ],
};

pub(super) fn judge(_: &Settings<'_>) -> Result<(), &'static str> {
    Ok(())
}

pub(super) fn write(settings: &Settings<'_>, script: &mut Script<'_>) {
    let ranks = u64::from(script.ranks);
    let bytes = (16 * settings.count("points") / (ranks * ranks)).max(1);
    for iteration in 0..=count(settings, "iterations") {
        script.calc(settings.span("compute"));
        script.all_to_all(|_, _| bytes);
        if iteration > 0 {
            // The checksum.
            script.reduce(16);
        }
    }
}
