"""DCTCP, Fig. 8: response times with and without jitter before the servers are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bars, requests, style

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

ARMS = ("immediate", "jittered", "jittered-10ms")


def draw(results: Results) -> alt.TopLevelMixin:
    """The distribution and its tail; below, the percentiles that the paper plots over a day."""
    frames = results.frames
    curves = style.side_by_side(
        requests.distribution(frames, ARMS, f"Response time of 43 servers{': the tail' if tail else ''}", tail=tail)
        for tail in (False, True)
    )
    percentiles = [
        requests.panel(frames, column, title)
        for column, title in (("p50", "Median"), ("p95", "p95"), ("p99", "p99"), ("p999", "p99.9"))
    ]
    return style.stacked([curves, bars.draw(percentiles, ARMS)])
