"""Which cases of a sweep are charted, and what charts call them."""

from __future__ import annotations

import glob
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from narrows import wording
from narrows.configurations import short_names
from narrows.experiment import case_name
from narrows.frames import when_read
from narrows.runs.backends import AXIS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.frames import Frames
    from narrows.runs.index import Member

ENOUGH: Final = 12
"""Cases that a chart tells apart with ease: of a sweep no more are charted, but every scheme is."""
MAX_SCHEMES: Final = 30
"""Schemes that are charted: more are neither told apart nor mailed."""


@dataclass(frozen=True)
class Selection:
    """The charted cases."""

    names: dict[str, str]
    """What charts call each of them, in the order of the file: its name without the settings that all of them share."""
    count: int
    """Of all cases."""
    shared: tuple[str, ...]
    """The settings that all charted cases share: `buffering=input`."""
    left_out: tuple[str, ...]
    """Values that none of them has: `buffering=output`, `cc=cubic or vegas`."""
    schemes: tuple[int, int]
    """Charted, and all."""
    example: str
    """A pattern of cases that are not charted; nothing where all are."""

    @property
    def words(self) -> str:
        """`all 8 schemes, with buffering=input and cc=newreno`."""
        shown, every = self.schemes
        which = f"the first {shown} of {every} schemes" if shown < every else f"all {wording.plural(every, 'scheme')}"
        return which + (f", with {_and(self.shared)}" if self.shared else "")

    @property
    def without(self) -> str:
        """`without buffering=output, load=0.5 or 0.7`, `the first 30 of 40 schemes`; nothing where all are charted."""
        shown, every = self.schemes
        first = [f"the first {shown} of {every} schemes"] if shown < every else []
        return "; ".join([*first, *([f"without {', '.join(self.left_out)}"] if self.left_out else [])])


def of(members: Sequence[Member]) -> Selection:
    """All cases if they are few. Else every scheme, with the first value of each axis.

    Axes are taken whole in the order of the file while no more than `ENOUGH` cases result; of the first that is too
    long for that, as many values as fit, evenly spread. Backends that stand side by side are never separated.
    """
    arms = list(dict.fromkeys(member.arm for member in members))
    shown = arms[:MAX_SCHEMES]
    values: dict[str, list[str]] = {}
    for member in members:
        for key, value in member.axes:
            own = values.setdefault(key, [])
            if value not in own:
                own.append(value)
    short = short_names(list(values))
    kept = dict(values)
    if len(members) > ENOUGH:
        kept = _kept(values, len(shown))
    chosen = [
        member for member in members if member.arm in shown and all(value in kept[key] for key, value in member.axes)
    ]
    # A scheme that does not have these values is not to be missing.
    there = {member.arm for member in chosen}
    firsts = {member.arm: member for member in reversed(members) if member.arm in shown and member.arm not in there}
    chosen = [member for member in members if member in chosen or member in firsts.values()]
    shared = [
        (key, value)
        for key, value in chosen[0].axes
        if key != AXIS and all((key, value) in member.axes for member in chosen)
    ]
    names = {
        member.case: case_name(member.arm, [axis for axis in member.axes if axis not in shared]) for member in chosen
    }
    if len(set(names.values())) < len(names):
        names, shared = {case: case for case in names}, []
    return Selection(
        names=names,
        count=len(members),
        shared=tuple(f"{short[key]}={value}" for key, value in shared),
        left_out=tuple(
            f"{short[key]}={_or([value for value in own if value not in kept[key]])}"
            for key, own in values.items()
            if len(kept[key]) < len(own)
        ),
        schemes=(len(shown), len(arms)),
        example=_example(members, names),
    )


def _kept(values: dict[str, list[str]], schemes: int) -> dict[str, list[str]]:
    room = ENOUGH // max(1, schemes * len(values.get(AXIS, [""])))
    kept = {}
    for key, own in values.items():
        if key == AXIS or len(own) <= room:
            kept[key] = own
            room //= len(own) if key != AXIS else 1
        elif room > 1:
            last = len(own) - 1
            kept[key] = [own[round(place * last / (room - 1))] for place in range(room)]
            room = 1
        else:
            kept[key] = own[:1]
    return kept


def _example(members: Sequence[Member], names: dict[str, str]) -> str:
    """The last case that is not charted, with all schemes if they have it."""
    left = [member for member in members if member.case not in names]
    if not left:
        return ""
    member = left[-1]
    charted = any(member.arm == other.arm and other.case in names for other in members)
    own = [axis for axis in member.axes if axis[0] != AXIS]
    pattern = case_name("*", own) if own and charted else member.plan_case
    escaped = "*".join(glob.escape(part) for part in pattern.split("*"))
    return escaped + ("*" if len(own) < len(member.axes) else "")


def renamed(frames: Frames, selection: Selection) -> Frames:
    """The charted cases under the names that charts use."""
    own = frames.of(list(selection.names))
    if all(case == name for case, name in selection.names.items()):
        return own
    text = pl.col("case").cast(pl.String).replace_strict(selection.names)
    kind = pl.Enum(sorted(selection.names.values()))
    cases = {name: case for case, name in selection.names.items()}
    parts: dict[str, Any] = {
        name: getattr(own, name).with_columns(text)
        for name in ("ports", "series", "requests", "long", "answers", "events", "bridges", "ranks")
    }
    return replace(
        own,
        flows=when_read(lambda: own.flows.with_columns(text.cast(kind))),
        mtu_of=lambda name: frames.mtu_of(cases[name]),
        series_of=None,  # it knows the other names
        **parts,
    )


def _and(texts: Sequence[str]) -> str:
    return " and ".join(texts) if len(texts) < 3 else ", ".join(texts[:-1]) + f" and {texts[-1]}"


def _or(texts: Sequence[str]) -> str:
    return " or ".join(texts) if len(texts) < 3 else ", ".join(texts[:-1]) + f" or {texts[-1]}"
