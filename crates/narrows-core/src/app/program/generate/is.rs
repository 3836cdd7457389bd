//! IS of NPB: integers sorted by buckets \[NPB\].

use super::{Script, count};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::rng::SmallStream;
use crate::rng::mix;
use crate::units::Span;

pub(super) const SPEC: Spec = Spec {
    name: "is",
    about: "IS of NPB: sizes of buckets are summed, and every rank sends every other its keys, sizes within 10 % of the mean.",
    source: "NPB",
    parameters: parameters![
        "ranks": Kind::Count, Value::Count(64), (2, 1_024), "Ranks, a power of two.";
        "keys": Kind::Count, Value::Count(8_388_608), (1_024, 1 << 40), "Keys of 4 bytes: 2²³ in class A, 2²⁵ in class B.";
        "iterations": Kind::Count, Value::Count(10), (1, 1_000), "Iterations.";
        "compute": Kind::Span, Value::Span(Span::from_ms(5)), "Mean time of a computation, one in each iteration.";
    ],
};

pub(super) fn judge(settings: &Settings<'_>) -> Result<(), &'static str> {
    match settings.count("ranks").is_power_of_two() {
        true => Ok(()),
        false => Err("IS needs a power of two as the number of ranks"),
    }
}

pub(super) fn write(settings: &Settings<'_>, script: &mut Script<'_>) {
    let ranks = u64::from(script.ranks);
    let mean = (4 * settings.count("keys") / (ranks * ranks)).max(1);
    for iteration in 0..count(settings, "iterations") {
        script.calc(settings.span("compute"));
        // 1024 buckets and five tests.
        script.all_reduce(1_029 * 4);
        script.all_to_all(|_, _| 4);
        // The same on both sides, and for every seed: the keys are NPB's own.
        script.all_to_all(|source, destination| {
            let message = u64::from(iteration) << 32 | u64::from(source) << 16 | u64::from(destination);
            let tenth = mean / 10;
            mean - tenth + SmallStream::new(mix(message)).below(2 * tenth + 1)
        });
    }
}
