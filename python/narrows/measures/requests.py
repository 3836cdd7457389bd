"""Measures of requests: one client asks many servers and waits for all of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import polars as pl

from narrows.measures.registry import NotEvaluable, by_seed, measure, measures, refuse_unfinished
from narrows.measures.tables import request_ms

if TYPE_CHECKING:
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

BEGINS: Final = 0.01
"""Timeouts have begun where so large a share of the requests has one: less is not seen in a figure from 0 to 1."""


def request_value(frames: Frames, arm: str, column: str) -> BySeed:
    """A column of `request_ms` of a case. Raises `NotEvaluable` where requests are left undone, or are too few."""
    own = _table(frames).filter(pl.col("case") == arm)
    refuse_unfinished(int(own["unfinished"].sum()), int(own["requests"].sum()), "requests")
    found = by_seed(own, column)
    if not found:
        most = max(own["requests"].to_list(), default=0)
        raise NotEvaluable(f"not evaluable: {most} requests per seed, too few for a {column}")
    return found


def _table(frames: Frames) -> pl.DataFrame:
    if frames.requests.is_empty():
        raise NotEvaluable("there are no requests")
    return request_ms(frames)


measures("ms", request_value, {
    "request_mean": ("mean", "Mean completion time of requests."),
    "request_median": ("p50", "Median of the completion time of requests."),
    "request_p95": ("p95", "95th percentile of the completion time of requests."),
    "request_p99": ("p99", "99th percentile of the completion time of requests."),
    "request_p999": ("p999", "99.9th percentile of the completion time of requests."),
})  # fmt: skip
measures("", request_value, {
    "request_timeouts": ("timeouts", "Retransmission timeouts per 1000 requests."),
    "request_timeout_share": ("share", "Share of requests with at least one retransmission timeout."),
})  # fmt: skip


@measure("ms", together=True)
def request_mean_least(frames: Frames, cases: tuple[str, ...]) -> BySeed:
    """Smallest mean completion time among the cases."""
    return {seed: min(row["mean"] for row in rows) for seed, rows in _by_case(frames, cases).items()}


@measure("", together=True)
def request_timeout_share_most(frames: Frames, cases: tuple[str, ...]) -> BySeed:
    """Largest share of requests with at least one timeout among the cases."""
    return {seed: max(row["share"] for row in rows) for seed, rows in _by_case(frames, cases).items()}


@measure("servers", together=True)
def servers_with_timeouts(frames: Frames, cases: tuple[str, ...]) -> BySeed:
    """Fewest servers where at least 1 % of the requests have a timeout; infinite where no case has that."""
    return _fewest_servers(frames, cases, BEGINS)


@measure("servers", together=True)
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
