"""GEMINI's parameters drawn at random over networks drawn at random, each against the defaults on the same network.

    .venv/bin/python experiments/gemini/tuning/hypercube.py [--points 60] [--out runs]

Writes `OUT/tuning/hypercube.parquet`, a row for each point, and `hypercube.svg` and `.png`, and prints what matters
most. Finished runs are kept and not made again; interrupting loses nothing.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import polars as pl

import narrows
from narrows import atomic, native
from narrows.figures import files, style
from narrows.measures.stats import estimate
from narrows.measures.tables import fct_ms

RANGES = {
    "rtt_ms": (2.0, 100.0),
    "rate_gbps": (1.0, 100.0),
    "k_per_gbps": (10.0, 200.0),
    "t_ms": (1.0, 20.0),
    "beta": (0.05, 0.6),
    "h": (3e-8, 4.8e-7),
}
"""Each is drawn uniformly in its logarithm."""
SEEDS = "1..=2"
FLOWS = 2_500
"""Flows that a run has at least: enough for a 99th percentile of the small ones, which are half of them."""
ROUND_TRIPS = 60
"""RTTs that a run lasts at least, with as many again for its flows to finish."""
FLOWS_PER_SECOND_AND_GBPS = 123.8
INSIDE_US = 220.0
"""RTT of what lies within the datacenters and the hosts."""


@dataclass(frozen=True)
class Point:
    """A network and GEMINI's parameters."""

    rtt_ms: float
    rate_gbps: float
    k_per_gbps: float
    t_ms: float
    beta: float
    h: float

    @property
    def seconds(self) -> float:
        """How long arrivals last."""
        return max(FLOWS / (FLOWS_PER_SECOND_AND_GBPS * self.rate_gbps), ROUND_TRIPS * self.rtt_ms / 1e3)


def hypercube(points: int, seed: int) -> list[Point]:
    """A Latin hypercube: of every range each of `points` equal parts is drawn from once [McKay 1979]."""
    dice = random.Random(seed)  # noqa: S311 - a design, no secret
    columns = []
    for low, high in RANGES.values():
        places = [(part + dice.random()) / points for part in range(points)]
        dice.shuffle(places)
        columns.append([low * (high / low) ** place for place in places])
    return [Point(*values) for values in zip(*columns, strict=True)]


def experiment(point: Point, number: int) -> str:
    """The experiment file of a point: the defaults and what was drawn, on one network.

    Switch memory grows with the rate to the power of 0.6, as it does from 4 MB at 1 Gbit/s to 16 MB at 10 [GEMINI §V].
    """
    rate, end = point.rate_gbps, point.seconds
    wan_ms = (point.rtt_ms - INSIDE_US / 1e3) / 2
    mark, default = max(2, round(point.k_per_gbps * rate)), max(2, round(50 * rate))
    drawn = f'k = "{mark}pkt", t = "{point.t_ms:.4f}ms", beta = {point.beta:.4f}, h = {point.h:.4g}'
    return f"""
name = "gemini-tuning-{number}"
title = "GEMINI on a network of {rate:.1f} Gbit/s and {point.rtt_ms:.1f} ms"

[topology.two-datacenters]
servers = 4
fabric = {{ rate = "{rate * 1e3:.0f}Mbps", delay = "5us", pool = {{ size = "{4e3 * rate**0.6:.0f}KB", alpha = 0.5 }} }}
wan = {{ rate = "{rate * 1e3:.0f}Mbps", delay = "{wan_ms:.4f}ms", limit = "{10_000 * rate:.0f}pkt" }}
host = {{ profile = "linux-4.9", stack-delay = {{ tx = "45us", rx = "45us", jitter = "{12 / rate:.4f}us" }} }}

[[traffic]]
name = "pattern-1"
between = "datacenters"
arrivals = {{ poisson = {{ load = 0.9, of = "wan" }} }}
size = {{ cdf = "web-search" }}
request = "100B"
connections = {{ persistent = {{ pool = 5 }} }}
exact = true

[[arm]]
name = "default"
cc = "gemini"
set = {{ "fabric.aqm.threshold.mark-at" = "{default}pkt" }}

[[arm]]
name = "drawn"
cc = {{ gemini = {{ {drawn} }} }}
set = {{ "fabric.aqm.threshold.mark-at" = "{mark}pkt" }}

[run]
end = "{end * 1e3:.0f}ms"
warmup = "{end * 100:.0f}ms"
drain = "{(end + ROUND_TRIPS * point.rtt_ms / 1e3) * 1e3:.0f}ms"
seeds = "{SEEDS}"
"""


GOALS = (("small_p99", "small", "p99"), ("large_mean", "large", "mean"), ("all_mean", "all", "mean"))


def measured(results: narrows.Results) -> dict[str, float | None]:
    """Small flows' p99, large flows' mean and all flows' mean, drawn over default: below 1 is better."""
    made: dict[str, float | None] = {}
    for name, size_class, column in GOALS:
        table = fct_ms(results.frames, size_class).select("case", "seed", column).drop_nulls()  # type: ignore[arg-type]
        drawn, default = (dict(table.filter(case=arm).drop("case").iter_rows()) for arm in ("drawn", "default"))
        found = estimate([drawn[seed] / default[seed] for seed in sorted(drawn.keys() & default.keys())])
        made[name] = found.mean if found else None
    return made


SHOWN = {"t_ms": "T, ms", "h": "H", "beta": "β", "k_per_gbps": "K, packets per Gbit/s"}
TITLES = {"small_p99": "Small flows, p99", "large_mean": "Large flows, mean", "all_mean": "All flows, mean"}


def draw(table: pl.DataFrame) -> alt.TopLevelMixin:
    """Every goal against every parameter; a point for each network, below 1 where what was drawn beats the default."""
    one = alt.Chart(alt.InlineData(values=[{"default": 1.0}]))
    even = one.mark_rule(color=style.FAINT, strokeDash=[4, 3]).encode(y="default:Q")
    grid = []
    for goal, title in TITLES.items():
        found = table.drop_nulls(goal)
        worst = max(2.0, *(max(value, 1 / value) for value in found[goal]))
        y = alt.Y(f"{goal}:Q").scale(type="log", domain=[1 / worst, worst], nice=False)
        y = y.axis(alt.Axis(values=[0.1, 0.2, 0.5, 0.7, 1, 1.4, 2, 5, 10], format="~r"))
        row = []
        for place, (name, label) in enumerate(SHOWN.items()):
            low, high = RANGES[name]
            span = alt.Scale(type="log", domain=[low, high], nice=False)
            ticks = style.log_axis(pl.Series([low, high]))
            ticks.format = ".0e" if high < 1e-3 else ",~r"
            points = (
                alt.Chart(style.rows(found))
                .mark_circle(size=45, opacity=0.8)
                .encode(
                    x=alt.X(f"{name}:Q").scale(span).axis(ticks).title(label if goal == "all_mean" else None),
                    y=y.title(f"{title}, drawn / default" if place == 0 else None),
                    color=alt.Color("rtt_ms:Q")
                    .scale(type="log", scheme="viridis")
                    .legend(title="RTT, ms", orient="right", values=[2, 5, 10, 20, 50, 100]),
                )
            )
            row.append(alt.layer(even, points).properties(width=style.columns(4), height=150))
        grid.append(alt.hconcat(*row, spacing=16))
    return alt.vconcat(*grid, spacing=18)


def caption(points: int) -> str:
    """What was run."""
    return (
        f"GEMINI's parameters drawn at random over {points} networks of two datacenters, a point for each: 16 hosts, "
        f"web search both ways at 90 % of the WAN, at least {FLOWS} flows and {ROUND_TRIPS} RTTs, seeds {SEEDS}; over "
        f"the defaults on the same network. Full runs. gemini/tuning, Narrows {native.version()}."
    )


def told(table: pl.DataFrame, parameter: str, goal: str) -> str:
    """Spearman's rank correlation with its 95 % interval on the scale of Fisher's z [Bonett 2000]."""
    found = table.drop_nulls(goal)
    rank = found.select(pl.corr(parameter, goal, method="spearman")).item()
    if found.height <= 3 or rank is None or abs(rank) >= 1:
        return f"{rank} of {found.height} points: no interval"
    reach = 1.96 * math.sqrt((1 + rank**2 / 2) / (found.height - 3))
    low, high = (math.tanh(math.atanh(rank) + sign * reach) for sign in (-1, 1))
    return f"{rank:.2f} ({low:.2f} to {high:.2f})"


def main() -> None:
    """Makes what is missing, writes the table, prints rank correlations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    chosen = parser.parse_args()
    folder = chosen.out / "tuning"
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    points = hypercube(chosen.points, 1)
    for number, point in enumerate(points):
        file = folder / f"point-{number}.toml"
        atomic.write_text(file, experiment(point, number))
        results = narrows.run(file, out=chosen.out).join()
        rows.append({**vars(point), **measured(results)})
        print(f"{number + 1} of {len(points)}: {rows[-1]}", flush=True)  # noqa: T201 - a script
    table = pl.DataFrame(rows)
    table.write_parquet(folder / "hypercube.parquet")
    files.save(style.captioned(draw(table), caption(len(points))), folder, "hypercube")
    for goal, _, _ in GOALS:
        print(goal, {name: told(table, name, goal) for name in RANGES})  # noqa: T201 - a script


if __name__ == "__main__":
    main()
