//! MG of NPB: multigrid in a cube of ranks, which is a torus \[NPB\].

use super::{Script, count, doubles};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::units::Span;

pub(super) const SPEC: Spec = Spec {
    name: "mg",
    about: "MG of NPB: V-cycles over grids that become coarser; at each, faces go to both neighbours along x, then y, then z.",
    source: "NPB",
    parameters: parameters![
        "ranks": Kind::Count, Value::Count(64), (8, 4_096), "Ranks, a power of eight.";
        "points": Kind::Count, Value::Count(256), (4, 1 << 16),
            "Side of the finest grid, at least twice as many as ranks in a row: 256 in classes A and B.";
        "iterations": Kind::Count, Value::Count(4), (1, 1_000), "V-cycles; 20 in class B.";
        "compute": Kind::Span, Value::Span(Span::from_ms(1)),
            "Mean time of a computation at the finest grid, one before each exchange; an eighth of it at the next grid, and so on.";
    ],
};

pub(super) fn judge(settings: &Settings<'_>) -> Result<(), &'static str> {
    let ranks = settings.count("ranks");
    if !ranks.is_power_of_two() || !ranks.trailing_zeros().is_multiple_of(3) {
        return Err("MG needs a power of eight as the number of ranks");
    }
    match settings.count("points") >= 2 << (ranks.trailing_zeros() / 3) {
        true => Ok(()),
        false => Err("MG needs at least two points of each rank in each direction"),
    }
}

pub(super) fn write(settings: &Settings<'_>, script: &mut Script<'_>) {
    let k = 1 << (script.ranks.trailing_zeros() / 3);
    let (finest, compute) = (count(settings, "points") / k, settings.span("compute"));
    let coarsest = finest.ilog2() - 1;
    let visit = |script: &mut Script<'_>, level: u32| {
        script.calc(compute.div(1 << (3 * level)));
        exchange_faces(script, k, finest >> level);
    };
    for _ in 0..count(settings, "iterations") {
        // Restriction.
        (0..coarsest).for_each(|level| visit(script, level));
        visit(script, coarsest);
        // Residual and smoother, once more at the finest.
        for level in (0..coarsest).rev() {
            let times = if level == 0 { 4 } else { 2 };
            (0..times).for_each(|_| visit(script, level));
        }
        script.all_reduce(16);
    }
}

/// Faces of a grid with this side to both neighbours, one axis after the other [NPB, comm3].
fn exchange_faces(script: &mut Script<'_>, k: u32, side: u32) {
    let bytes = doubles((side + 2) * (side + 2));
    for axis in [1, k, k * k] {
        let place = script.rank / axis % k;
        let at = |other: u32| script.rank - place * axis + other % k * axis;
        let neighbours = [at(place + 1), at(place + k - 1)].map(|rank| (rank, bytes));
        script.exchange(neighbours, neighbours);
    }
}
