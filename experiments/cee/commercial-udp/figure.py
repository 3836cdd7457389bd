"""Short and Fat, commercial workload with UDP: requests, and who loses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import lossless, style

if TYPE_CHECKING:
    import altair as alt

    from narrows.measures.stats import BySeed
    from narrows.results import Results


def draw(results: Results) -> alt.TopLevelMixin:
    """Completion of requests above; below, what switches dropped, and what switches and adapters dropped."""
    frames = results.frames
    ports = frames.ports.group_by("case", "seed").agg(pl.col("dropped_packets").sum() / 1e3)

    def at_switches(case: str) -> BySeed:
        return dict(ports.filter(pl.col("case").cast(pl.String) == case).select("seed", "dropped_packets").iter_rows())

    requests, dropped = (lossless.measured(frames, each) for each in ("request_mean", "dropped"))
    drawn = style.stacked([
        lossless.panels(requests, "Mean completion time of requests", "ms"),
        lossless.panels(at_switches, "Packets that switches dropped", "thousands"),
        lossless.panels(dropped, "Payload that switches and adapters dropped", "MB"),
    ])  # fmt: skip
    return lossless.explained(
        drawn,
        "With QCN a host's adapter limits what UDP goes on sending: it holds 512 KB for each destination, and drops "
        "the rest, whether switches pause or not.",
    )
