"""Unfinished work of a run: bytes that were requested and are not delivered yet, as means over equal parts of its time.

Work is that of flows with a size, from `start_ns`, when a flow is requested, to its last byte in order. What stands in
queues, or is on its way, is a part of it. A flow is taken to be delivered at a constant rate. At a moment this is wrong
by at most the flow's size. In the mean over time it is exact where a flow's mean completion time is proportional to its
size, as in processor sharing, M/G/1 [Kleinrock 1976 §4.4]; where flows are delivered one after the other, in the order
of their arrival, it is too small by the share ρ/2 of a queue of load ρ.

This registers no measure, and so may be read before they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

BATCHES: Final = 20
"""Parts of a run's measured time: 10 to 30 batches suffice, whatever a run's length [Schmeiser 1982]."""
SCHEMA: Final = {"seed": pl.UInt64, "batch": pl.Int64, "bytes": pl.Float64}


def comes_at_random(plan: Mapping[str, Any]) -> bool:
    """Whether any traffic of the plan comes at random times, whatever became of earlier traffic.

    The work of other traffic is stated, or follows its own completion, and cannot settle or grow.
    """
    patterns = (kind.get("pattern") for kind in plan.get("traffic", ()))
    kinds = (kind for pattern in patterns if isinstance(pattern, dict) for kind in pattern.values())
    return any(isinstance(kind, dict) and kind.get("mean-interarrival") for kind in kinds)


def means(flows: pl.LazyFrame, edges_ns: list[float], stop_ns: int) -> list[float]:
    """Mean unfinished work between each two of the edges, bytes. `stop_ns` is when the run ended, after its drain.

    Datagrams that were dropped are not work: nobody delivers them.
    """
    until = pl.coalesce(pl.col("fct_ns").cast(pl.Float64), stop_ns - pl.col("start_ns").cast(pl.Float64)).clip(1.0)
    delivered = pl.when("finished").then(pl.col("size_bytes")).otherwise(pl.col("received_bytes")).cast(pl.Float64)
    size = pl.col("size_bytes").cast(pl.Float64)

    def before(edge: float) -> pl.Expr:
        """Integral of the work of all flows up to this time."""
        waited = (edge - pl.col("start_ns").cast(pl.Float64)).clip(0.0, until)
        return (size * waited - delivered * waited**2 / (2.0 * until)).sum()

    is_work = (pl.col("unfinished") == "dropped").fill_null(value=False).not_()
    columns = [before(edge).alias(str(place)) for place, edge in enumerate(edges_ns)]
    integrals = flows.filter(is_work).select(columns).collect().row(0)
    return [
        (integrals[place + 1] - integrals[place]) / (edges_ns[place + 1] - edges_ns[place])
        for place in range(len(edges_ns) - 1)
    ]


def edges(begin_ns: int, end_ns: int, parts: int = BATCHES) -> list[float]:
    """Ends of equal parts of this time."""
    return [begin_ns + (end_ns - begin_ns) * place / parts for place in range(parts + 1)]
