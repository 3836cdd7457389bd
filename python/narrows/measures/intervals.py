"""How long-lived flows that come and go share a bottleneck: the steps between two changes, and the rates in each."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.measures.longlived import GOODPUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from narrows.frames import Frames

RATE_NS: Final = 100_000_000
"""A rate is the goodput of 100 ms."""
HELD_NS: Final = 1_000_000_000
"""Flows have converged when they hold their shares for so long."""
WITHIN: Final = 0.2
"""They hold them while every rate is within 20 % of the fair share."""
UNSTEADY: Final = 1 / 3
"""The first part of a step, in which shares still change."""


@dataclass(frozen=True)
class Step:
    """The time between two changes of who is sending."""

    case: str
    seed: int
    flows: int
    length_ns: int
    rates: pl.DataFrame
    """A column of goodputs for each flow, bit/s, and a row for each bin of `bin_ns`."""
    bin_ns: int

    @property
    def fair(self) -> float:
        """What each would get of what all got together, bit/s."""
        return sum(self._means(self.rates)) / self.flows

    @property
    def jain(self) -> float:
        """Jain's index over the flows' goodputs in the steady part."""
        means = self._means(self.steady)
        squares = sum(mean * mean for mean in means)
        return sum(means) ** 2 / (self.flows * squares) if squares else 1.0

    @property
    def deviation(self) -> float:
        """Standard deviation of a flow's rate in the steady part, mean over the flows, bit/s."""
        rates = self.steady.group_by_dynamic("row", every=f"{self._bins(RATE_NS)}i").agg(pl.exclude("row").mean())
        return sum(self._means(rates.drop("row").select(pl.all().std()))) / self.flows

    @property
    def converged_after_ns(self) -> int | None:
        """From the change until every rate comes within 20 % of the fair share and stays for 1 s; `None` if never."""
        rate, held = self._bins(RATE_NS), self._bins(HELD_NS)
        off = (pl.all().rolling_mean(rate) - self.fair).abs() <= WITHIN * self.fair
        near = self.rates.select(off).select(pl.all_horizontal(pl.all()).cast(pl.Int8).alias("near"))["near"]
        # Row r stands for the rate that ends with bin r: those of a second that begins at bin s end with
        # s + rate − 1 to s + held − 1.
        stay = near.rolling_min(held - rate + 1)
        found = (stay == 1).arg_true()
        return (int(found[0]) - held + 1) * self.bin_ns if len(found) else None

    @property
    def steady(self) -> pl.DataFrame:
        """The last two thirds, with the number of the `row`."""
        return self.rates.tail(round(len(self.rates) * (1 - UNSTEADY))).with_row_index("row").cast({"row": pl.Int64})

    def _bins(self, span_ns: int) -> int:
        return max(1, round(span_ns / self.bin_ns))

    @staticmethod
    def _means(rates: pl.DataFrame) -> list[float]:
        return [float(mean or 0.0) for name, mean in rates.mean().row(0, named=True).items() if name != "row"]


def steps(frames: Frames, case: str) -> Iterator[Step]:
    """Every step of a case with at least two flows and two seconds, for each seed."""
    samples = (
        frames.series.filter((pl.col("quantity") == GOODPUT) & (pl.col("case") == case))
        .select("seed", "entity", "time_ns", "value")
        .sort("seed", "entity", "time_ns")
        .collect()
    )
    for (seed,), of_seed in samples.group_by("seed", maintain_order=True):
        yield from _steps(case, int(str(seed)), of_seed.drop("seed"))


def _steps(case: str, seed: int, samples: pl.DataFrame) -> Iterator[Step]:
    times = samples["time_ns"].unique().sort()
    bin_ns = int(times.diff().drop_nulls().min() or 0)  # type: ignore[arg-type]  # of integers
    lives = samples.group_by("entity", maintain_order=True).agg(
        (pl.col("time_ns").min() - bin_ns).alias("from"), pl.col("time_ns").max().alias("to")
    )
    changes = sorted({*lives["from"].to_list(), *lives["to"].to_list()})
    table = samples.pivot("entity", index="time_ns", values="value").sort("time_ns")
    for begin, end in itertools.pairwise(changes):
        own = lives.filter((pl.col("from") <= begin) & (pl.col("to") >= end))["entity"].to_list()
        if len(own) < 2 or end - begin < 2 * HELD_NS:
            continue
        rates = table.filter(pl.col("time_ns").is_between(begin, end, closed="right")).select(own).fill_null(0.0)
        yield Step(case, seed, len(own), end - begin, rates, bin_ns)
