"""What is told of programs that did not end: this registers no measure, and so may be read before they are."""

from __future__ import annotations

import polars as pl

from narrows import wording


def late(ranks: pl.DataFrame) -> str:
    """A sentence about the programs that did not end, by how many of their runs; empty where all did."""
    if ranks.is_empty():
        return ""
    runs = ranks.group_by("case", "workload", "seed", maintain_order=True).agg(pl.col("finished").all())
    counts = runs.group_by("case", "workload", maintain_order=True).agg((~pl.col("finished")).sum(), pl.len())
    some = [
        f"{workload} of {case} ({count} of {wording.plural(runs, 'run')})"
        for case, workload, count, runs in counts.iter_rows()
        if count
    ]
    if not some:
        return ""
    return f"programs did not end before the end of the run, and have no execution time: {wording.some(some)}"
