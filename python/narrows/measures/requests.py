"""Measures of requests: one client asks many servers and waits for all of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.measures.registry import NotEvaluable, measure, measure_together, refuse_unfinished
from narrows.measures.tables import request_ms

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

BEGINS: Final = 0.01
"""Timeouts have begun where so large a share of the requests has one: less is not seen in a figure from 0 to 1."""


@measure("ms")
def request_mean(frames: Frames, arm: str) -> BySeed:
    """Mean completion time of requests."""
    return _request(frames, arm, "mean")


@measure("ms")
def request_median(frames: Frames, arm: str) -> BySeed:
    """Median of the completion time of requests."""
    return _request(frames, arm, "p50")


@measure("ms")
def request_p95(frames: Frames, arm: str) -> BySeed:
    """95th percentile of the completion time of requests."""
    return _request(frames, arm, "p95")


@measure("ms")
def request_p99(frames: Frames, arm: str) -> BySeed:
    """99th percentile of the completion time of requests."""
    return _request(frames, arm, "p99")


@measure("ms")
def request_p999(frames: Frames, arm: str) -> BySeed:
    """99.9th percentile of the completion time of requests."""
    return _request(frames, arm, "p999")


@measure("")
def request_timeouts(frames: Frames, arm: str) -> BySeed:
    """Retransmission timeouts per 1000 requests."""
    return _request(frames, arm, "timeouts")


@measure("")
def request_timeout_share(frames: Frames, arm: str) -> BySeed:
    """Share of requests with at least one retransmission timeout."""
    return _request(frames, arm, "share")


@measure_together("ms")
def request_mean_least(frames: Frames, cases: tuple[str, ...]) -> BySeed:
    """Smallest mean completion time among the cases."""
    return {seed: min(row["mean"] for row in rows) for seed, rows in _by_case(frames, cases).items()}


@measure_together("")
def request_timeout_share_most(frames: Frames, cases: tuple[str, ...]) -> BySeed:
    """Largest share of requests with at least one timeout among the cases."""
    return {seed: max(row["share"] for row in rows) for seed, rows in _by_case(frames, cases).items()}


@measure_together("servers")
def servers_with_timeouts(frames: Frames, cases: tuple[str, ...]) -> BySeed:
    """Fewest servers where at least 1 % of the requests have a timeout; infinite where no case has that."""
    return _fewest_servers(frames, cases, BEGINS)


@measure_together("servers")
def servers_with_any_timeout(frames: Frames, cases: tuple[str, ...]) -> BySeed:
    """Fewest servers where any request has a timeout; infinite where none has."""
    return _fewest_servers(frames, cases, math.ulp(0.0))


def _fewest_servers(frames: Frames, cases: tuple[str, ...], share: float) -> BySeed:
    return {
        seed: min((row["servers"] for row in rows if row["share"] >= share), default=math.inf)
        for seed, rows in _by_case(frames, cases).items()
    }


def _by_case(frames: Frames, cases: tuple[str, ...]) -> dict[int, list[dict[str, float]]]:
    """Rows of the table of requests, one for each case, by seed."""
    table = _table(frames).filter(pl.col("case").is_in(cases)).sort("seed")
    rows: dict[int, list[dict[str, float]]] = {}
    for row in table.select("seed", "mean", "share", "servers").drop_nulls().iter_rows(named=True):
        rows.setdefault(int(row["seed"]), []).append({key: float(row[key]) for key in ("mean", "share", "servers")})
    if not rows:
        raise NotEvaluable("no request was finished")
    return rows


def _request(frames: Frames, arm: str, column: str) -> BySeed:
    own = _table(frames).filter(pl.col("case") == arm)
    refuse_unfinished(int(own["unfinished"].sum()), int(own["requests"].sum()), "requests")
    rows = own.select("seed", column, "requests").sort("seed")
    found = {int(seed): float(value) for seed, value, _ in rows.iter_rows() if value is not None}
    if not found:
        most = max(rows["requests"].to_list(), default=0)
        raise NotEvaluable(f"not evaluable: {most} requests per seed, too few for a {column}")
    return found


def _table(frames: Frames) -> pl.DataFrame:
    if frames.requests.is_empty():
        raise NotEvaluable("there are no requests")
    return request_ms(frames)
