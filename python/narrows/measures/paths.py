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
    """Times that a flow changed its path, with the routing policy `rehash`: mean over all flows, sized or not."""
    tables = [table for table in (frames.flows, frames.long) if _CHANGES in table.columns]
    own = [table.filter(pl.col("case") == arm).select("seed", _CHANGES) for table in tables]
    means = pl.concat(own).group_by("seed").agg(pl.col(_CHANGES).mean()) if own else None
    found = {} if means is None else by_seed(means, _CHANGES)
    if not found:
        raise NotEvaluable('not evaluable: no host changes a flow\'s path; `routing = "rehash"` lets them')
    return found
