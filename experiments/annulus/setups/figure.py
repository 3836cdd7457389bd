"""Annulus, A-2, A-4 and A-6: what three claims are about, under each set-up that the slides allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from narrows.figures import bars, style
from narrows.measures.named import value_if_any
from narrows.measures.stats import estimate_of_all

if TYPE_CHECKING:
    import altair as alt

    from narrows.measures.stats import BySeed, Estimate
    from narrows.results import Results

READINGS: Final = ("uplinks-10G", "uplinks-10G-1MB", "uplinks-10G-web-search", "uplinks-40G", "uplinks-40G-1MB")
BASE: Final = "dctcp+bbr"


def draw(results: Results) -> alt.TopLevelMixin:
    """Ratios of means over the seeds, a bar for each set-up: of tails, of utilisation, and of tails by WAN traffic."""
    setups = [each for each in READINGS if any(f"reading={each} ·" in case for case in results.frames.cases)]

    def of(measure: str, arm: str, reading: str, demand: str) -> BySeed:
        return value_if_any(results.frames, measure, (f"{arm} · reading={reading} · demand={demand}",))

    def tail(arm: str, reading: str, demand: str) -> BySeed:
        return value_if_any(results.frames, "fct_small_p99", (f"{arm} · reading={reading} · demand={demand} / dc",))

    return bars.draw(
        [
            bars.Panel(
                "Tail inside at half load, Annulus / without",
                "ratio",
                {each: _ratio(tail("annulus", each, "half"), tail(BASE, each, "half")) for each in setups},
            ),
            bars.Panel(
                "Utilisation at 90 % load, Annulus / without",
                "ratio",
                {
                    each: _ratio(*(of("utilisation_watched", arm, each, "busy") for arm in ("annulus", BASE)))
                    for each in setups
                },
            ),
            bars.Panel(
                "Tail inside without Annulus, with WAN traffic / without",
                "ratio",
                {each: _ratio(tail(BASE, each, "both"), tail(BASE, each, "inside")) for each in setups},
            ),
        ],
        setups,
        width=style.WIDTH,
    )


def _ratio(above: BySeed, below: BySeed) -> Estimate | None:
    """Of the means over the seeds that both have."""
    seeds = above.keys() & below.keys()
    if not seeds:
        return None

    def of(kept: set[int]) -> float:
        return sum(above[seed] for seed in kept) / sum(below[seed] for seed in kept)

    return estimate_of_all(of(set(seeds)), [of(seeds - {seed}) for seed in seeds] if len(seeds) > 1 else [])
