"""Whether the unfinished work of runs had settled: its drift over the measured time, with an interval.

The drift is the rise of the line through the means of 20 batches over the measured time, relative to the mean: 2 where
work grows linearly from nothing, 0 on average where it is stationary. Batches of a loaded network are correlated, over
tens of seconds at 90 % of web search, so that the interval allows for it: the residuals of all seeds are taken for
autoregressive of order one, their correlation is corrected for its bias in short series with a fitted line
[Kendall 1954], and the variance of the slope and its degrees of freedom follow [Satterthwaite 1946]. Batch means are
the usual method for one run [Schmeiser 1982]; seeds are independent replications.

Three words are possible, because that a drift is not seen does not mean that there is none: it may be hidden by chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import mul
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from narrows import wording
from narrows.frames import kept
from narrows.measures.registry import NotEvaluable, measure
from narrows.measures.stats import t_quantile
from narrows.measures.unfinished_work import BATCHES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

MIN_FLOWS: Final = 10 * BATCHES
"""Flows of a run that are enough to say something of it."""
TOLERANCE: Final = 0.5
"""A drift that does not matter: the work ends within a quarter of its mean over the measured time."""

Word = Literal["settled", "grows", "falls", "unknown"]


@measure("MB")
def unfinished_work(frames: Frames, arm: str) -> BySeed:
    """Mean over the measured time of the bytes that were requested and are not delivered yet, of flows with a size.

    A flow is taken to be delivered at a constant rate.
    """
    return {seed: sum(own) / len(own) / 1e6 for seed, own in _batches(frames, arm).items()}


@measure("")
def unfinished_drift(frames: Frames, arm: str) -> BySeed:
    """Rise of the unfinished work over the measured time, of a fitted line, relative to its mean.

    2: it grows linearly from nothing; 0 on average: it had settled. Of traffic that comes at random; a run that is
    short compared with the correlations of its load has any value between −1.5 and 1.5 by chance.
    """
    return {seed: _Line.through(own).slope for seed, own in _batches(frames, arm).items()}


@dataclass(frozen=True)
class Drift:
    """The drift of a case, mean over seeds, with its 95 % interval."""

    case: str
    mean: float
    low: float
    high: float
    word: Word

    def __str__(self) -> str:
        return f"{self.case} (drift {_signed(self.mean)}, {_signed(self.low)} to {_signed(self.high)})"


def drifts(frames: Frames) -> list[Drift]:
    """Of each case that can have one.

    It grows, or falls, if that is significant at 5 % among all of these cases together (Bonferroni).
    """
    found = []
    for case in frames.cases:
        try:
            found.append((case, list(_batches(frames.of([case]), case).values())))
        except NotEvaluable:
            continue
    return [_drift(case, batches, len(found)) for case, batches in found]


def growing(frames: Frames) -> str:
    """A sentence about the cases whose unfinished work had not settled; empty where there is none."""
    own = [str(drift) for drift in drifts(frames) if drift.word == "grows"]
    if not own:
        return ""
    return (
        f"the bytes of unfinished flows still grew when the arrivals ended, with {wording.some(own)}: "
        "this is no steady state, and means over these runs depend on their length"
    )


def sentences(frames: Frames) -> list[str]:
    """What the page says of every case, by word."""
    by_word: dict[Word, list[Drift]] = {}
    for drift in drifts(frames):
        by_word.setdefault(drift.word, []).append(drift)
    said: dict[Word, str] = {
        "settled": "had settled",
        "grows": "still grew when the arrivals ended",
        "falls": "still fell when the arrivals ended",
        "unknown": "may have settled or not, for these runs are too short to tell",
    }
    return [
        f"It {words} with {wording.some([str(drift) for drift in by_word[word]])}."
        for word, words in said.items()
        if word in by_word
    ]


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


@kept
def _batches(frames: Frames, case: str) -> dict[int, list[float]]:
    """Means of each seed's batches, bytes. Raises `NotEvaluable`."""
    if frames.work_of is None or (work := frames.work_of(case)) is None:
        raise NotEvaluable(f"no flow of {case} comes at random times")
    counts = dict(frames.of([case]).flows.group_by("seed").len().iter_rows())
    answers = frames.answers
    if not answers.is_empty():
        more = answers.filter(pl.col("case") == case).group_by("seed").agg(pl.col("flows").sum())
        for seed, flows in more.iter_rows():
            counts[seed] = counts.get(seed, 0) + flows
    found = {
        int(seed): own
        for seed, own in work.group_by("seed", maintain_order=True).agg(pl.col("bytes")).iter_rows()
        if counts.get(seed, 0) >= MIN_FLOWS and sum(own) > 0
    }
    if not found:
        raise NotEvaluable(f"fewer than {MIN_FLOWS} flows of {case} in each seed")
    return found


@dataclass(frozen=True)
class _Line:
    """The line through a run's batches, relative to their mean; time runs from −½ to ½."""

    slope: float
    residuals: tuple[float, ...]

    @classmethod
    def through(cls, batches: Sequence[float]) -> _Line:
        times, mean = _times(len(batches)), math.fsum(batches) / len(batches)
        values = [value / mean - 1.0 for value in batches]
        slope = _dot(times, values) / _dot(times, times)
        return cls(slope, tuple(value - slope * time for time, value in zip(times, values, strict=True)))


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(map(mul, one, other))


def _times(count: int) -> list[float]:
    return [(place + 0.5) / count - 0.5 for place in range(count)]


def _drift(case: str, batches: Sequence[Sequence[float]], cases: int = 1) -> Drift:
    """The drift of one of so many cases, from the batches of its seeds."""
    lines = [_Line.through(own) for own in batches]
    mean = math.fsum(line.slope for line in lines) / len(lines)
    error, freedom = _error(lines)
    half, strict = (t_quantile(freedom, confidence) * error for confidence in (0.95, 1.0 - 0.05 / cases))
    word: Word = "unknown"
    if mean - strict > 0.0:
        word = "grows"
    elif mean + strict < 0.0:
        word = "falls"
    if max(abs(mean - half), abs(mean + half)) <= TOLERANCE:
        word = "settled"
    return Drift(case, mean, mean - half, mean + half, word)


def _error(lines: Sequence[_Line]) -> tuple[float, int]:
    """Standard error of the mean slope, and its degrees of freedom."""
    count = len(lines[0].residuals)
    squares = math.fsum(value * value for line in lines for value in line.residuals)
    if squares == 0.0:
        return 0.0, len(lines) * (count - 2)
    products = math.fsum(_dot(line.residuals[1:], line.residuals[:-1]) for line in lines)
    # With a fitted line the mean of the estimate is r − (2 + 4r)/n.
    correlation = min(max((products / squares * count + 2.0) / (count - 4.0), 0.0), _MAX_CORRELATION)
    times = _times(count)
    norm = _dot(times, times)
    correlations = [[correlation ** abs(one - other) for other in range(count)] for one in range(count)]
    # Residuals are M·e, where M takes mean and line away; the expected sum of their squares is trace(M·S) of a unit S.
    remains = [
        [float(one == other) - 1.0 / count - times[one] * times[other] / norm for other in range(count)]
        for one in range(count)
    ]
    left = [[_dot(row, column) for column in correlations] for row in remains]  # both are symmetric
    trace = math.fsum(left[place][place] for place in range(count))
    twice = math.fsum(left[one][other] * left[other][one] for one in range(count) for other in range(count))
    spread = _dot(times, [_dot(row, times) for row in correlations]) / norm**2
    variance = squares / (len(lines) * trace) * spread / len(lines)
    return math.sqrt(variance), max(1, int(len(lines) * trace * trace / twice))


_MAX_CORRELATION: Final = 0.98
"""Of neighbouring batches: 50 batches' time to forget, beyond which 20 say nothing."""
