//! All-reduce in groups of ranks: most of the data stays inside a group [Mikami 2018].
//!
//! Each group reduces around a ring, until every member has the sum of one piece; members at the same place of all groups
//! all-reduce that piece; each group passes the results around its ring.

use super::ring_all_reduce::{around, pieces, steps};
use super::{Script, count};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::units::{Bytes, Span};

pub(super) const SPEC: Spec = Spec {
    name: "hierarchical-all-reduce",
    about: "All-reduce in groups: each reduces around a ring, equal places of all groups all-reduce their piece, groups gather.",
    source: "Mikami 2018",
    parameters: parameters![
        "ranks": Kind::Count, Value::Count(64), (2, 4_096), "Ranks, those of a group one after the other.";
        "groups": Kind::Count, Value::Count(2), (1, 4_096), "Groups of equally many ranks; 1 is `ring-all-reduce`.";
        "bytes": Kind::Bytes, Value::Required, (1, 10_000_000_000_000), "Data of each rank.";
        "repeats": Kind::Count, Value::Count(1), (1, 10_000), "All-reduces, one after the other.";
        "compute": Kind::Span, Value::Span(Span::ZERO), "Time that each rank computes before each.";
    ],
};

pub(super) fn judge(settings: &Settings<'_>) -> Result<(), &'static str> {
    match settings.count("ranks").is_multiple_of(settings.count("groups")) {
        true => Ok(()),
        false => Err("an all-reduce in groups has equally many ranks in each"),
    }
}

pub(super) fn write(settings: &Settings<'_>, script: &mut Script<'_>) {
    let (groups, data) = (count(settings, "groups"), settings.bytes("bytes"));
    let members = script.ranks / groups;
    let (group, place) = (script.rank / members, script.rank % members);
    let inside = |place| group * members + place;
    // What this place holds the group's sum of once the group has reduced.
    let piece = Bytes::new(pieces(data, members)((place + 1) % members));
    for _ in 0..count(settings, "repeats") {
        script.calc(settings.span("compute"));
        steps(script, place, members, data, inside, 0..members - 1);
        around(script, group, groups, piece, |group| group * members + place);
        steps(script, place, members, data, inside, members - 1..2 * (members - 1));
    }
}
