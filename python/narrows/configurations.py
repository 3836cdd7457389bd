"""The configurations of a sweep: which cases of which schemes have the same values of the axes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from narrows.experiment import SEPARATOR
from narrows.runs.backends import AXIS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from narrows.frames import Frames

Point = tuple[str | None, ...]
"""A value for each axis, in the order of the axes; `None` for an axis that a scheme does not have."""


@dataclass(frozen=True)
class Configurations:
    """The cases of a result by scheme and point of the sweep.

    A scheme without an axis, as one that does not run the controller it leads into, is the same at all its values.
    """

    axes: tuple[str, ...]
    """Columns of the axes."""
    cases: Mapping[str, tuple[str, Point]]
    """Scheme and point of each case, in the order of the file."""

    @classmethod
    def of(cls, frames: Frames, *, backends_apart: bool = False) -> Configurations:
        """Those of the cases that have runs.

        Where several backends stand side by side, what ran a case is a part of its scheme's name, or, if they are to be
        `backends_apart`, an axis: schemes are then compared with those of the same backend.
        """
        axes = tuple(axis for axis in frames.axes if backends_apart or axis != AXIS)
        columns = ["case", "arm", *axes, *([AXIS] if AXIS in frames.axes and AXIS not in axes else [])]
        rows = frames.ports.select(columns).unique(maintain_order=True).iter_rows()
        found = {
            case: (SEPARATOR.join([arm, *values[len(axes) :]]), tuple(values[: len(axes)]))
            for case, arm, *values in rows
        }
        return cls(axes, found)

    @cached_property
    def schemes(self) -> tuple[str, ...]:
        """Every scheme, in the order of the file."""
        return tuple(dict.fromkeys(scheme for scheme, _ in self.cases.values()))

    @cached_property
    def values(self) -> dict[str, tuple[str, ...]]:
        """The values of each axis, in the order of the file."""
        points = [point for _, point in self.cases.values()]
        return {
            axis: tuple(dict.fromkeys(value for point in points if (value := point[place]) is not None))
            for place, axis in enumerate(self.axes)
        }

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Every combination of values that schemes have together; the last axis varies fastest."""
        found: dict[Point, None] = {}
        for scheme in self.schemes:
            own = [point for of, point in self.cases.values() if of == scheme]
            found = _joined(found, own) if found else dict.fromkeys(own)
        places = [{None: -1} | {value: place for place, value in enumerate(own)} for own in self.values.values()]
        return tuple(sorted(found, key=lambda point: [at[value] for at, value in zip(places, point, strict=True)]))

    @cached_property
    def _by_point(self) -> dict[str, dict[tuple[int, ...], dict[Point, str]]]:
        """By scheme and the places of the axes that it has there, most axes first: values to case."""
        made: dict[str, dict[tuple[int, ...], dict[Point, str]]] = {scheme: {} for scheme in self.schemes}
        for case, (scheme, point) in self.cases.items():
            having = _having(point)
            made[scheme].setdefault(having, {})[_at(point, having)] = case
        return {
            scheme: dict(sorted(own.items(), key=lambda item: len(item[0]), reverse=True))
            for scheme, own in made.items()
        }

    def at(self, point: Point) -> dict[str, str]:
        """The case of each scheme that has one there."""
        found: dict[str, str] = {}
        for scheme, own in self._by_point.items():
            cases = (by_values.get(_at(point, having)) for having, by_values in own.items())
            if (case := next(filter(None, cases), None)) is not None:
                found[scheme] = case
        return found

    def named(self, point: Point) -> dict[str, str]:
        """The axes that a point has, with their values."""
        return {axis: value for axis, value in zip(self.axes, point, strict=True) if value is not None}


def short_names(axes: Sequence[str]) -> dict[str, str]:
    """What headings call axes: the last part of their path, if that tells them apart."""
    last = [axis.rpartition(".")[2] for axis in axes]
    return dict(zip(axes, last if len(set(last)) == len(last) else axes, strict=True))


def _having(point: Point) -> tuple[int, ...]:
    return tuple(place for place, value in enumerate(point) if value is not None)


def _at(point: Point, places: Iterable[int]) -> Point:
    return tuple(point[place] for place in places)


def _joined(points: Iterable[Point], others: Iterable[Point]) -> dict[Point, None]:
    """Each point with all that agree with it where both have a value; by itself where none does."""
    found: dict[Point, None] = {}
    left, right = _by_axes(points), _by_axes(others)
    met: set[Point] = set()
    for having, ones in left.items():
        for having_other, others_of in right.items():
            common = [place for place in having if place in having_other]
            by_common: dict[Point, list[Point]] = {}
            for other in others_of:
                by_common.setdefault(_at(other, common), []).append(other)
            for one in ones:
                for other in by_common.get(_at(one, common), ()):
                    met |= {one, other}
                    found[tuple(a if a is not None else b for a, b in zip(one, other, strict=True))] = None
    alone = (point for own in (left, right) for points_of in own.values() for point in points_of if point not in met)
    return found | dict.fromkeys(alone)


def _by_axes(points: Iterable[Point]) -> dict[tuple[int, ...], list[Point]]:
    made: dict[tuple[int, ...], list[Point]] = {}
    for point in points:
        made.setdefault(_having(point), []).append(point)
    return made
