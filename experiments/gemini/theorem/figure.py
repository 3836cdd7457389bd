"""GEMINI, Theorem 1 and the guideline for T and β: the bottleneck's queue as it was, and as the analysis has it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import style, sweep
from narrows.measures.analysis import Sawtooth, largest_scale, packets_per_second

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

AXIS = "traffic.long.long.flows"
PORT = "switch-left->switch-right"
THRESHOLDS = (20, 50, 300)
ROUND_TRIPS_MS = (0.2, 1.0, 4.0, 10.0, 40.0)
ROUND_TRIPS = tuple(f"RTT {rtt:g} ms" for rtt in ROUND_TRIPS_MS)
CUTS = ("0.2", "0.33", "0.5", "0.7")
RATE_BPS = 1e9
PACKET_BYTES = 1500
MIN_WINDOW = 2.0
"""Packets: below it the analysis' windows are none that a sender has."""


def draw(results: Results) -> alt.TopLevelMixin:
    """Utilisation, longest and shortest queue against N, a column for each K; the analysis is dashed. The guideline."""
    runs = bottleneck(results)
    analysed = _analysed(runs)
    theorem = [
        _row(runs, "Utilisation", "%", "utilisation", analysed, low=90.0),
        _row(runs, "Longest queue", "packets", "longest", analysed, remark="; dashed: analysis"),
        _row(runs, "Shortest queue", "packets", "shortest", analysed, remark="; dashed: analysis"),
    ]
    # RTTs above, cuts below: each has colours of its own.
    both: alt.VConcatChart = style.stacked((style.stacked(theorem), _guideline(runs)))
    return both.resolve_scale(color="independent")


def bottleneck(results: Results) -> pl.DataFrame:
    """Per run, after the warm-up: `utilisation` in %, `longest` and `shortest` queue in packets."""
    frames = results.frames
    warmup = pl.DataFrame(
        [(member.case, member.warmup_ns) for member in results.entry.members],
        schema={"case": pl.String, "warmup_ns": pl.UInt64},
        orient="row",
    )
    shortest = (
        frames.series.filter((pl.col("quantity") == "queue_bytes") & (pl.col("entity") == PORT))
        .join(warmup.lazy(), on="case")
        .filter(pl.col("time_ns") >= pl.col("warmup_ns"))
        .group_by("case", "seed")
        .agg((pl.col("value").min() / PACKET_BYTES).alias("shortest"))
        .collect()
    )
    return (
        frames.ports.filter(pl.col("name") == PORT)
        .join(shortest, on=["case", "seed"])
        .select(
            "arm",
            AXIS,
            "seed",
            (100 * pl.min_horizontal(pl.col("utilisation"), 1.0)).alias("utilisation"),
            (pl.col("queue_max_bytes") / PACKET_BYTES).alias("longest"),
            "shortest",
        )
    )


def _row(
    runs: pl.DataFrame,
    title: str,
    unit: str,
    column: str,
    analysed: pl.DataFrame,
    *,
    low: float | None = None,
    remark: str = "",
) -> alt.HConcatChart:
    panels = [
        sweep.Panel(
            f"{title}, K = {packets}{remark}", unit, _renamed(runs, packets, column), f"{column} {packets}", low=low
        )
        for packets in THRESHOLDS
    ]
    return sweep.draw(panels, AXIS, ROUND_TRIPS, title="flows N", log=True, references=analysed)


def _renamed(runs: pl.DataFrame, packets: int, column: str) -> pl.DataFrame:
    """The runs at this threshold, called by their RTT."""
    names = {f"K={packets} RTT={rtt:g}ms": text for rtt, text in zip(ROUND_TRIPS_MS, ROUND_TRIPS, strict=True)}
    own = runs.filter(pl.col("arm").is_in(list(names)))
    return own.select(pl.col("arm").replace_strict(names), AXIS, "seed", pl.col(column).alias(f"{column} {packets}"))


def _analysed(runs: pl.DataFrame) -> pl.DataFrame:
    """What [GEMINI §III-C] expects where windows are at least the least one; a queue below nothing is none."""
    capacity = packets_per_second(RATE_BPS)
    rows = []
    for packets, (rtt_ms, name), flows in itertools.product(
        THRESHOLDS, zip(ROUND_TRIPS_MS, ROUND_TRIPS, strict=True), runs[AXIS].unique(maintain_order=True)
    ):
        rtt = rtt_ms / 1e3
        step = min(5.0, max(0.1, 1.2e-7 * RATE_BPS * rtt))
        tooth = Sawtooth(float(flows), capacity, rtt, packets, largest_scale(capacity, rtt, packets), step)
        if tooth.critical_window >= MIN_WINDOW:
            rows += [(f"longest {packets}", name, flows, tooth.highest)]
            rows += [(f"shortest {packets}", name, flows, max(0.0, tooth.lowest))]
    return pl.DataFrame(rows, schema=["column", "arm", AXIS, "value"], orient="row")


def _guideline(runs: pl.DataFrame) -> alt.HConcatChart:
    """At T 5 ms and RTT 10 ms: full up to β = T / (T + RTT) = 1/3."""
    names = {f"T=5ms beta={beta}": f"β = {beta}" for beta in CUTS}
    own = runs.filter(pl.col("arm").is_in(list(names))).with_columns(pl.col("arm").replace_strict(names))
    panels = [
        sweep.Panel("Delay alone, T 5 ms, RTT 10 ms: utilisation", "%", own, "utilisation", low=70.0),
        sweep.Panel("Shortest queue", "packets", own, "shortest"),
    ]
    return sweep.draw(panels, AXIS, list(names.values()), title="flows N", log=True)
