"""Statistics over seeds. Controllers are compared on the same seeds: differences and ratios are paired.

Ratios that tables and pages show are geometric means, `geometric_ratio`: A over B is then one over B over A. The ratios
of claims are arithmetic means over seeds of an expression, `claims.judge`, as papers state them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ENOUGH_SEEDS = 5
"""Below this many seeds the interval is the smallest and largest value, and says so."""

Kind = Literal["t95", "log-t95", "jackknife", "without-one", "range", "none"]

BySeed = dict[int, float]


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, and how sure we are of it."""

    mean: float
    low: float
    high: float
    kind: Kind
    """`t95`: 95 % interval, paired t; `range`: smallest and largest of fewer than 5 seeds; `none`: one seed.

    Of a geometric mean: `log-t95`, 95 % interval of the mean of the logarithms, whose ends are exponentials.

    Of a value that is of all seeds together: `jackknife`, 95 % interval; `without-one`, smallest and largest with one
    of fewer than 5 seeds left out.
    """
    seeds: int

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit."""
        return replace(self, mean=self.mean * factor, low=self.low * factor, high=self.high * factor)

    @property
    def kind_words(self) -> str:
        """How a caption calls the interval."""
        return {
            "t95": f"95 % interval, t over {self.seeds} seeds",
            "log-t95": f"95 % interval, t of the logarithms over {self.seeds} seeds",
            "jackknife": f"95 % interval, jackknife over {self.seeds} seeds",
            "without-one": f"smallest and largest with one of {self.seeds} seeds left out",
            "range": f"smallest and largest of {self.seeds} seeds",
            "none": "one seed, no interval",
        }[self.kind]


def estimate(values: Sequence[float]) -> Estimate | None:
    """The mean over seeds with its interval; `None` without values."""
    count = len(values)
    if count == 0:
        return None
    if any(math.isinf(value) for value in values):
        # Of both signs the mean is neither; `nan` lies in no interval.
        return Estimate(sum(values), min(values), max(values), "range" if count > 1 else "none", count)
    mean = math.fsum(values) / count
    if count == 1:
        return Estimate(mean, mean, mean, "none", 1)
    if count < ENOUGH_SEEDS:
        return Estimate(mean, min(values), max(values), "range", count)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = t_quantile(count - 1) * math.sqrt(variance / count)
    return Estimate(mean, mean - half, mean + half, "t95", count)


def estimate_of_all(value: float, without: Sequence[float]) -> Estimate:
    """A value of all seeds together, from it and what it is `without` each of them [Tukey 1958]."""
    count = len(without)
    if count < 2:
        return Estimate(value, value, value, "none", count)
    if count < ENOUGH_SEEDS or not all(math.isfinite(one) for one in (value, *without)):
        return Estimate(value, min(value, *without), max(value, *without), "without-one", count)
    middle = math.fsum(without) / count
    variance = (count - 1) / count * math.fsum((one - middle) ** 2 for one in without)
    half = t_quantile(count - 1) * math.sqrt(variance)
    return Estimate(value, value - half, value + half, "jackknife", count)


def geometric_mean(values: Sequence[float]) -> Estimate | None:
    """The geometric mean of positive values with its interval on the scale of logarithms; `None` without values."""
    found = estimate([math.log(value) for value in values])
    if found is None:
        return None
    if found.kind == "t95":
        return Estimate(_exp(found.mean), _exp(found.low), _exp(found.high), "log-t95", found.seeds)
    low, high = min(values), max(values)
    # Of equal values the exponential of the mean logarithm may be a last digit beside them.
    return Estimate(min(max(_exp(found.mean), low), high), low, high, found.kind, found.seeds)


def _exp(logarithm: float) -> float:
    try:
        return math.exp(logarithm)
    except OverflowError:  # the end of an interval over values of all magnitudes
        return math.inf


def geometric_ratio(numerator: Mapping[int, float], denominator: Mapping[int, float]) -> Estimate | None:
    """Geometric mean over the common seeds of the ratio within a seed, with its interval on the scale of logarithms.

    A seed in which one of them is 0 or infinite has no ratio, or one without a logarithm: it is left out. `None` where
    none is left.
    """
    above, below = paired(numerator, denominator)
    return geometric_mean(
        [above[seed] / below[seed] for seed in above if 0 < above[seed] < math.inf and 0 < below[seed] < math.inf]
    )


def paired_difference(left: Mapping[int, float], right: Mapping[int, float]) -> Estimate | None:
    """Mean over the common seeds of the difference within a seed."""
    one, other = paired(left, right)
    return estimate([one[seed] - other[seed] for seed in one])


def paired(left: Mapping[int, float], right: Mapping[int, float]) -> tuple[BySeed, BySeed]:
    """Both over the seeds that both have, in their order: means that stand beside a ratio are of these alone."""
    common = sorted(left.keys() & right.keys())
    return {seed: left[seed] for seed in common}, {seed: right[seed] for seed in common}


@cache
def t_quantile(freedom: int, confidence: float = 0.95) -> float:
    """The t for which |T| < t has this probability, by bisection of the exact distribution function."""
    low, high = 0.0, 1.0
    while _t_within(high, freedom) < confidence:
        high *= 2.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _t_within(middle, freedom) < confidence else (low, middle)
    return (low + high) / 2.0


def _t_within(t: float, freedom: int) -> float:
    """P(|T| < t) for Student's t with a whole number of degrees of freedom [Abramowitz and Stegun 26.7.3, 26.7.4]."""
    angle = math.atan(t / math.sqrt(freedom))
    square = math.cos(angle) ** 2
    odd = freedom % 2 == 1
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for step in range(3 if odd else 2, freedom - 1, 2):
        term *= square * (step - 1) / step
        total += term
    if odd:
        return 2.0 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total
