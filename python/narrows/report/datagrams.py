"""Flows of datagrams: nothing of theirs is retransmitted, so that what is lost is their measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from narrows import wording
from narrows.measures.stats import estimate
from narrows.report.headline import Cell, cell

if TYPE_CHECKING:
    from narrows.results import Results


@dataclass(frozen=True)
class Row:
    """Datagrams of one traffic in one case."""

    case: str
    traffic: str
    flows: str
    """Of all seeds."""
    whole: str
    """Those with a size of which everything arrived; `–` where they have none."""
    sent: str
    """Of all seeds, with a unit."""
    lost: Cell
    """% of the bytes sent."""


def table(results: Results) -> list[Row]:
    """By case and traffic, in the order of the file; nothing where all is TCP."""
    if "none" not in results.frames.flows["controller"].cast(pl.String).unique() and (
        results.long.is_empty() or "none" not in results.long["controller"]
    ):
        return []
    keys = ["case", "seed", "flow"]
    without = results.long.lazy().select(*keys, pl.lit(value=False).alias("sized"))
    dropped = pl.col("dropped_bytes").sum()
    # Those without a size count from wherever they began, as their goodput does.
    counted = results.counted_flows.select(*keys, pl.lit(value=True).alias("counted"))
    runs = (
        results.scan("flows")
        .filter(pl.col("transport") == "datagram")
        .join(without, on=keys, how="left", maintain_order="left")
        .join(counted, on=keys, how="left", maintain_order="left")
        .with_columns(pl.col("sized").fill_null(value=True))
        .filter(pl.col("counted").fill_null(value=False) | ~pl.col("sized"))
        .group_by("case", "workload", "seed", maintain_order=True)
        .agg(
            pl.len().alias("flows"),
            pl.col("sized").sum(),
            (pl.col("finished") & pl.col("sized")).sum().alias("whole"),
            (pl.col("received_bytes").sum() + dropped).alias("sent"),
            dropped.alias("dropped"),
        )
        .collect()
    )
    by_traffic = runs.with_columns(
        pl.when(pl.col("sent") > 0).then(100 * pl.col("dropped") / pl.col("sent")).alias("lost")
    ).group_by("case", "workload", maintain_order=True).agg(
        pl.col("flows", "sized", "whole", "sent").sum(), pl.col("lost").drop_nulls()
    )  # fmt: skip
    return [
        Row(
            case,
            traffic,
            wording.whole(flows),
            f"{wording.whole(whole)} ({wording.percent(whole / sized)})" if sized else "–",
            wording.size(sent),
            Cell("–", "", "") if (found := estimate(lost)) is None else cell(found),
        )
        for case, traffic, flows, sized, whole, sent, lost in by_traffic.iter_rows()
    ]
