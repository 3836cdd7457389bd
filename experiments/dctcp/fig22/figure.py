"""DCTCP, Fig. 22 and 23: background flows by size, and queries by percentile, in the cluster benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.figures import bars, requests, size_bins, style

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

ARMS = ("tcp", "dctcp", "tcp-linux-6", "dctcp-linux-6")


def draw(results: Results) -> alt.TopLevelMixin:
    """Above Fig. 22, mean and 95th percentile of background flows; below Fig. 23, queries."""
    frames = results.frames
    flows = style.side_by_side(
        [
            size_bins.panel(frames, ARMS, "mean", "Background flows, mean"),
            size_bins.panel(frames, ARMS, "p95", "Background flows, p95", legend=False),
        ]
    )
    percentiles = [
        requests.panel(frames, column, f"Queries, {title}")
        for column, title in (("mean", "mean"), ("p95", "p95"), ("p99", "p99"), ("p999", "p99.9"))
    ]
    return style.stacked(
        [
            flows,
            bars.draw(percentiles, ARMS),
            bars.draw([requests.timeouts(frames, "Queries with a timeout")], ARMS, width=420),
        ]
    )
