//! BT of NPB: a block-tridiagonal solver on a multipartition, q × q ranks with q cells each \[NPB\].

use super::{Script, count, doubles};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::units::Span;

pub(super) const SPEC: Spec = Spec {
    name: "bt",
    about: "BT of NPB: exchanges of faces with six neighbours, then sweeps there and back in three directions.",
    source: "NPB",
    parameters: parameters![
        "ranks": Kind::Count, Value::Count(64), (4, 1_024), "Ranks, a square number.";
        "points": Kind::Count, Value::Count(64), (4, 2_048), "Side of the grid: 64 in class A, 102 in class B.";
        "iterations": Kind::Count, Value::Count(20), (1, 1_000), "Time steps; 200 in classes A and B.";
        "compute": Kind::Span, Value::Span(Span::from_ms(2)),
            "Mean time of a computation, of which each stage of a sweep takes a fifteenth, as does the exchange of faces.";
    ],
};

pub(super) fn judge(settings: &Settings<'_>) -> Result<(), &'static str> {
    match settings.count("ranks").isqrt().pow(2) == settings.count("ranks") {
        true => Ok(()),
        false => Err("BT needs a square number of ranks"),
    }
}

pub(super) fn write(settings: &Settings<'_>, script: &mut Script<'_>) {
    let (q, points) = (script.ranks.isqrt(), count(settings, "points"));
    let side = points.div_ceil(q);
    let compute = settings.span("compute").div(15);
    let (i, j) = (script.rank % q, script.rank / q);
    let at = |i: u32, j: u32| i % q + q * (j % q);
    // In x, y and z [NPB, set_constants].
    let successors = [at(i + 1, j), at(i, j + 1), at(i + q - 1, j + q - 1)];
    let predecessors = [at(i + q - 1, j), at(i, j + q - 1), at(i + 1, j + 1)];
    let neighbours = || successors.into_iter().chain(predecessors);
    let face = doubles((q - 1) * side * side * 10);
    for _ in 0..count(settings, "iterations") {
        script.calc(compute);
        script.exchange(neighbours().map(|to| (to, face)), neighbours().map(|from| (from, face)));
        for (&successor, &predecessor) in successors.iter().zip(&predecessors) {
            for (to, from, bytes) in [
                (successor, predecessor, doubles(side * side * 30)),
                (predecessor, successor, doubles(side * side * 5)),
            ] {
                for _ in 1..q {
                    script.calc(compute);
                    script.exchange([(to, bytes)], [(from, bytes)]);
                }
            }
        }
    }
}
