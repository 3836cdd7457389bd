//! All-reduce around a ring: P ranks each add P pieces, and pass on the sums [Patarasuk 2009].

use core::ops::Range;

use super::{Script, count};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::units::{Bytes, Span};

pub(super) const SPEC: Spec = Spec {
    name: "ring-all-reduce",
    about: "All-reduce around a ring: in each of 2(P − 1) steps every rank passes a P-th of the data to the next one.",
    source: "Patarasuk 2009",
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
    for _ in 0..count(settings, "repeats") {
        script.calc(settings.span("compute"));
        around(script, script.rank, script.ranks, settings.bytes("bytes"), |place| place);
    }
}

/// The part of the member at this place of a ring, whose members are ranks.
pub(super) fn around(script: &mut Script<'_>, place: u32, members: u32, data: Bytes, rank: impl Fn(u32) -> u32) {
    steps(script, place, members, data, rank, 0..2 * (members - 1));
}

/// These steps of it. After the first half of them a member has the sum of the piece that follows its place.
pub(super) fn steps(
    script: &mut Script<'_>,
    place: u32,
    members: u32,
    data: Bytes,
    rank: impl Fn(u32) -> u32,
    which: Range<u32>,
) {
    let bytes = pieces(data, members);
    let (next, before) = (rank((place + 1) % members), rank((place + members - 1) % members));
    for step in which {
        let piece = (place + 2 * members - step) % members;
        script.exchange([(next, bytes(piece))], [(before, bytes((piece + members - 1) % members))]);
    }
}

/// The bytes of each of so many pieces, which differ by at most one.
pub(super) fn pieces(data: Bytes, members: u32) -> impl Fn(u32) -> u64 {
    let until = move |piece: u32| data.get() * u64::from(piece) / u64::from(members);
    move |piece| until(piece + 1) - until(piece)
}
