//! CG of NPB: conjugate gradients on a square grid of ranks \[NPB\].

use super::{Script, count, doubles};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::units::Span;

pub(super) const SPEC: Spec = Spec {
    name: "cg",
    about: "CG of NPB: sums along the rows of a square grid of ranks, exchanges across its diagonal, dot products.",
    source: "NPB",
    parameters: parameters![
        "ranks": Kind::Count, Value::Count(64), (4, 4_096), "Ranks, a power of four.";
        "points": Kind::Count, Value::Count(14_000), (4, 100_000_000), "Order of the matrix: 14000 in class A, 75000 in class B.";
        "iterations": Kind::Count, Value::Count(15), (1, 1_000), "Outer iterations of 25 inner ones; 75 in class B.";
        "compute": Kind::Span, Value::Span(Span::from_us(200)), "Mean time of a computation, one in each inner iteration.";
    ],
};

pub(super) fn judge(settings: &Settings<'_>) -> Result<(), &'static str> {
    let ranks = settings.count("ranks");
    match ranks.is_power_of_two() && ranks.trailing_zeros().is_multiple_of(2) {
        true => Ok(()),
        false => Err("CG needs a power of four as the number of ranks"),
    }
}

pub(super) fn write(settings: &Settings<'_>, script: &mut Script<'_>) {
    let side = script.ranks.isqrt();
    let part = doubles(count(settings, "points").div_ceil(side));
    for _ in 0..count(settings, "iterations") {
        for _ in 0..25 {
            multiply(settings, script, side, part);
            dot_product(script, side);
            dot_product(script, side);
        }
        multiply(settings, script, side, part);
        dot_product(script, side);
    }
}

/// The matrix times a vector: partial results are summed along the row, and each rank gets what its column needs.
fn multiply(settings: &Settings<'_>, script: &mut Script<'_>, side: u32, part: u64) {
    script.calc(settings.span("compute"));
    along_row(script, side, part);
    let (row, column) = (script.rank / side, script.rank % side);
    script.swap(column * side + row, part);
}

fn dot_product(script: &mut Script<'_>, side: u32) {
    along_row(script, side, doubles(1));
}

/// Exchanges with partners at distances of half a row, a quarter of it, and so on.
fn along_row(script: &mut Script<'_>, side: u32, bytes: u64) {
    let mut distance = side / 2;
    while distance > 0 {
        script.swap(script.rank ^ distance, bytes);
        distance /= 2;
    }
}
