"""RDMA between sites: goodput of one flow over the WAN's loss, and what a closed form says of go-back-N."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from narrows.figures import sweep

if TYPE_CHECKING:
    import altair as alt

    from narrows.results import Results

AXIS = "wan.loss"
# Delays of the WAN and base RTTs, ms; without the WAN 80 us.
RTTS = {"450us": 0.98, "4.95ms": 9.98, "19.95ms": 39.98}
PACKET = 1538 * 8 / 10e9
LINE = 10_000 * 1456 / 1538
TIMEOUT = 67.109e-3


def go_back_n(loss: float, rtt_ms: float) -> float:
    """Goodput, Mbit/s: a loss costs the packets of an RTT, and the timeout if its report or repetition is lost, too."""
    packets, timeout = rtt_ms / 1e3 / PACKET, TIMEOUT / PACKET
    return LINE * (1 - loss) / (1 - loss + loss * packets + 2 * loss**2 * timeout)


def draw(results: Results) -> alt.TopLevelMixin:
    """A panel for each RTT: goodput of each scheme, the closed form dashed."""
    frames = results.frames
    cases = frames.ports.select("case", "arm", "wan.delay", AXIS).unique(maintain_order=True)
    panels, forms = [], []
    for delay in list(dict.fromkeys(cases["wan.delay"])):
        column = f"goodput_{delay}"
        rows = [
            {"arm": arm, AXIS: loss, "seed": seed, column: value}
            for case, arm, _, loss in cases.filter(pl.col("wan.delay") == delay).iter_rows()
            for seed, value in sweep.by_seed(frames, case, "goodput_long / inter").items()
        ]
        table = pl.DataFrame(rows)
        panels.append(sweep.Panel(f"RTT {round(RTTS[delay])} ms", "goodput, Mbit/s", table, column, high=10_000))
        forms += [
            {"column": column, "arm": "go-back-n", AXIS: loss, "value": go_back_n(float(loss), RTTS[delay])}
            for loss in table[AXIS].unique().sort()
        ]
    arms = list(dict.fromkeys(cases["arm"]))
    return sweep.draw(panels, AXIS, arms, title="share of packets lost", log=True, references=pl.DataFrame(forms))
