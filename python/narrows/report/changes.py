"""Changes of links during a run, such as outages: what they cost the flows that met them, and which packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows import wording
from narrows.measures.stats import estimate
from narrows.measures.tables import NS_PER_MS, nearest_rank, samples_needed
from narrows.report.headline import Cell, cell

if TYPE_CHECKING:
    from narrows.results import Results

_LOST: Final = ("dropped_outage_packets", "lost_in_outage_packets", "lost_on_wire_packets")


@dataclass(frozen=True)
class Flows:
    """Flows of a case that have a size: those that met a change, or the others."""

    case: str
    met: bool
    flows: str
    """Of all seeds."""
    unfinished: str
    mean: Cell
    p99: str
    """Of all seeds together."""


@dataclass(frozen=True)
class Packets:
    """What links lost in one case, per run."""

    case: str
    cells: tuple[Cell, ...]
    """Dropped at a port whose link was down, lost on its way when the link went down, lost on a wire otherwise."""


@dataclass(frozen=True)
class Changes:
    """What there is to say of them."""

    flows: tuple[Flows, ...]
    long: tuple[tuple[str, int], ...]
    """Flows without a size that met one, by case, all seeds."""
    packets: tuple[Packets, ...]
    """Nothing where no link lost a packet."""
    too_few: int
    """Flows that a p99 needs, if one is absent."""


def table(results: Results) -> Changes | None:
    """What changes of links cost; `None` where there are none."""
    frames = results.frames
    if frames.events.is_empty():
        return None
    flows = tuple(_flows(results))
    return Changes(
        flows,
        tuple(_long(results)),
        tuple(_packets(frames.ports)),
        samples_needed(99) if any(row.p99 == "–" and row.flows != "0" for row in flows) else 0,
    )


def _flows(results: Results) -> list[Flows]:
    time = pl.col("fct_ns").cast(pl.Float64) / NS_PER_MS
    keys = ["case", "seed", "flow"]
    own = results.counted_flows.join(results.long.lazy().select(keys), on=keys, how="anti").select(
        "case", "seed", "finished", "fct_ns", pl.col("events_met").is_not_null().alias("met")
    )
    runs = own.group_by("case", "met", "seed").agg(time.mean().alias("mean")).drop_nulls("mean").sort("seed")
    means = runs.group_by("case", "met", maintain_order=True).agg("mean").collect()
    together = own.group_by("case", "met").agg(
        pl.len().alias("flows"), (~pl.col("finished")).sum().alias("unfinished"), nearest_rank(time, 99).alias("p99")
    )
    found = {(row["case"], row["met"]): row for row in together.collect().iter_rows(named=True)}
    estimates = {(case, met): estimate(values) for case, met, values in means.iter_rows()}
    made = []
    for case in results.frames.cases:
        for met in (True, False):
            row = found.get((case, met))
            value = estimates.get((case, met))
            made.append(
                Flows(
                    case,
                    met,
                    wording.whole(row["flows"]) if row else "0",
                    wording.whole(row["unfinished"]) if row else "0",
                    Cell("–", "", "") if value is None else cell(value),
                    wording.number(row["p99"]) if row else "–",
                )
            )
    return made


def _long(results: Results) -> list[tuple[str, int]]:
    if "events_met" not in results.long.columns:
        return []
    met = results.long.filter(pl.col("events_met").is_not_null())
    return list(met.group_by("case", maintain_order=True).len().iter_rows())


def _packets(ports: pl.DataFrame) -> list[Packets]:
    """Of all ports of the network."""
    if not set(_LOST).issubset(ports.columns):
        return []
    runs = (
        ports.group_by("case", "seed", maintain_order=True).agg(pl.col(_LOST).sum().cast(pl.Int64))
        .with_columns(pl.col(_LOST[2]) - pl.col(_LOST[1]))
    )  # fmt: skip
    if not runs.select(pl.sum_horizontal(pl.col(_LOST).sum())).item():
        return []
    by_case = runs.group_by("case", maintain_order=True).agg(pl.col(_LOST))
    return [Packets(case, tuple(_cell(values) for values in columns)) for case, *columns in by_case.iter_rows()]


def _cell(values: list[int]) -> Cell:
    found = estimate([float(value) for value in values])
    assert found is not None
    return cell(found)
