"""Measures of the paths that flows take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.measures.registry import NotEvaluable, by_seed, measure

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

_CHANGES: Final = "path_changes"


@measure("")
def path_changes(frames: Frames, arm: str) -> BySeed:
    """Times that a flow changed its path, with the routing policy `rehash`: mean over all flows but responses."""
    tables = (frames.flows.filter("sized"), frames.long)
    own = [table.filter(pl.col("case") == arm) for table in tables if not table.is_empty()]
    counts = [pl.DataFrame({"seed": table["seed"], _CHANGES: table[_CHANGES]}) for table in own]
    found = by_seed(pl.concat(counts).group_by("seed").agg(pl.col(_CHANGES).mean()), _CHANGES) if counts else {}
    if not found:
        raise NotEvaluable('not evaluable: no host changes a flow\'s path; `routing = "rehash"` lets them')
    return found
