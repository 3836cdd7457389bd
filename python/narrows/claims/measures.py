"""The named measures that claims are made of: frames and an arm to one value per seed, tested on tiny frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

import polars as pl

from narrows import results
from narrows.stats import BySeed

if TYPE_CHECKING:
    from narrows.results import Frames, SizeClass

OfCase = Callable[["Frames", str], BySeed]
OfCases = Callable[["Frames", tuple[str, ...]], BySeed]


class NotEvaluable(Exception):
    """The runs do not hold what the measure needs; the message says what."""


@dataclass(frozen=True)
class Measure:
    """A named quantity."""

    name: str
    unit: str
    about: str
    compute: OfCase | OfCases
    together: bool = False
    """It is computed of several cases together; else of each, and the mean is taken."""


MOST_UNFINISHED: Final = 1e-3
"""Share of flows or requests that may be left undone."""
TRAFFIC: Final = " / "
"""Between an arm and a traffic."""

MEASURES: Final[dict[str, Measure]] = {}


def measure(unit: str) -> Callable[[OfCase], OfCase]:
    """Registers a measure under its function's name; the docstring is its description."""

    def register(compute: OfCase) -> OfCase:
        MEASURES[compute.__name__] = Measure(compute.__name__, unit, _about(compute), compute)
        return compute

    return register


def measure_together(unit: str) -> Callable[[OfCases], OfCases]:
    """Registers a measure of several cases together: of those named, or of all that an arm has in a sweep."""

    def register(compute: OfCases) -> OfCases:
        name = compute.__name__
        MEASURES[name] = Measure(name, unit, _about(compute), compute, together=True)
        return compute

    return register


def _about(compute: OfCase | OfCases) -> str:
    return " ".join((compute.__doc__ or "").split())


LANGUAGE: Final = (
    "A measure has one value for each seed. plr(gemini) is that of the arm or case gemini, plr() the mean over all of "
    "them, fct_all(gemini / web) that of the flows of the traffic web alone. In a sweep a case is called ARM · "
    "AXIS=VALUE; within min(…) and max(…) a star stands for any text in its name. rank(plr, gemini) is the place of an "
    "arm among those of the claim, 1 for the smallest. Flows that answer a request have no completion time of their "
    "own: it is the request's. 1 KB is 1000 bytes, 1e-5 is one of 100 000."
)
"""How a claim's expressions are read."""


def table(chosen: Iterable[Measure]) -> list[str]:
    """Name, unit and meaning of each, as lines of Markdown."""
    rows = (f"| `{found.name}` | {found.unit or '–'} | {found.about} |" for found in chosen)
    return ["| measure | unit | what it is |", "|---|---|---|", *rows]


def document() -> str:
    """The reference of all measures, `docs/measures.md`."""
    title = [
        "# Measures",
        "",
        "What the claims of a paper are made of, and what `narrows reproduce` shows of them.",
        "",
    ]
    return "\n".join([*title, LANGUAGE, "", *table(MEASURES.values())]) + "\n"


def value_by_seed(frames: Frames, name: str, arms: tuple[str, ...]) -> BySeed:
    """A measure on an arm, or without an arm the mean over all arms, for every seed. Raises `NotEvaluable`.

    `ARM / TRAFFIC` is the arm with the flows of one traffic only. A measure of several cases together may also be given
    what a sweep's cases begin with: `tcp · min-rto=10ms`.
    """
    if name not in MEASURES:
        raise NotEvaluable(f"there is no measure called {name}")
    found = MEASURES[name]
    if found.together:
        cases = tuple(case for arm in arms for case in _sweep(frames, arm))
        return cast("OfCases", found.compute)(frames, cases or frames.cases)
    compute = cast("OfCase", found.compute)
    columns = [compute(*_chosen(frames, arm)) for arm in arms or frames.cases]
    common = set.intersection(*(set(column) for column in columns))
    if not common:
        raise NotEvaluable(f"{name} has no value in any seed")
    return {seed: sum(column[seed] for column in columns) / len(columns) for seed in sorted(common)}


def _sweep(frames: Frames, arm: str) -> list[str]:
    """The case of this name, or those of a sweep that begin with it."""
    own = [arm] if arm in frames.cases else [case for case in frames.cases if case.startswith(f"{arm} · ")]
    if not own:
        raise NotEvaluable(f"no arm is called {arm}")
    return own


def _chosen(frames: Frames, arm: str) -> tuple[Frames, str]:
    """What an argument names: the case, and the frames that its flows are read from."""
    if arm in frames.cases:
        return frames, arm
    case, _, traffic = arm.rpartition(TRAFFIC)
    if case not in frames.cases:
        raise NotEvaluable(f"no arm is called {case or arm}")
    own = pl.col("workload") == traffic
    long, answers = (part if part.is_empty() else part.filter(own) for part in (frames.long, frames.answers))
    if not (frames.flows["workload"] == traffic).any() and long.is_empty() and answers.is_empty():
        raise NotEvaluable(f"no flow belongs to a traffic called {traffic}")
    # Of flows those of the case alone: the traffic's in all cases may be a copy of gigabytes.
    return replace(frames, flows=_only(frames, case).flows.filter(own), long=long, answers=answers), case


@measure("ms")
def fct_small_avg(frames: Frames, arm: str) -> BySeed:
    """Mean completion time of flows under 100 KB."""
    return _fct(frames, arm, "small", "mean")


@measure("ms")
def fct_small_p99(frames: Frames, arm: str) -> BySeed:
    """99th percentile of the completion time of flows under 100 KB."""
    return _fct(frames, arm, "small", "p99")


@measure("ms")
def fct_large(frames: Frames, arm: str) -> BySeed:
    """Mean completion time of flows over 10 MB."""
    return _fct(frames, arm, "large", "mean")


@measure("ms")
def fct_all(frames: Frames, arm: str) -> BySeed:
    """Mean completion time of all flows."""
    return _fct(frames, arm, "all", "mean")


@measure("Mbit/s")
def goodput_large(frames: Frames, arm: str) -> BySeed:
    """Mean over flows above 10 MB of size over completion time."""
    bits_per_us = 8e3 * pl.col("size_bytes").cast(pl.Float64) / pl.col("fct_ns").cast(pl.Float64)
    flows = _of(frames.flows, arm).filter(results.in_class("large") & pl.col("finished"))
    return _by_seed(flows.group_by("seed").agg(bits_per_us.mean().alias("value")), "value")


@measure("1e-5")
def plr(frames: Frames, arm: str) -> BySeed:
    """Packets dropped anywhere per packet that a host sent."""
    return _by_seed(results.plr_overall(_only(frames, arm)), "plr")


@measure("1e-5")
def plr_dcn(frames: Frames, arm: str) -> BySeed:
    """Packets dropped inside the datacenters per packet that a host sent."""
    return _segment(frames, arm, "dcn", "plr")


@measure("1e-5")
def plr_wan(frames: Frames, arm: str) -> BySeed:
    """Packets dropped at the WAN ports per packet that a host sent."""
    return _segment(frames, arm, "wan", "plr")


@measure("1e-5")
def dropped_across(frames: Frames, arm: str) -> BySeed:
    """Payload of flows between datacenters that the network dropped, wherever, per byte that their senders sent.

    That of their requests counts as dropped, too, though the other end sends it.
    """
    flows = _of(frames.flows, arm).filter(pl.col("class") == "inter")
    refuse_unfinished(int((~flows["finished"]).sum()), len(flows), "flows between datacenters")
    # A flow that has finished has sent each of its bytes once, and some again.
    sent = pl.col("size_bytes").sum() + pl.col("retransmitted_bytes").sum()
    share = pl.col("dropped_bytes").sum() / sent / results.PLR_UNIT
    known = pl.col("dropped_bytes").is_not_null().all()
    found = _by_seed(flows.group_by("seed").agg(pl.when(known).then(share).alias("value")), "value")
    if not found:
        raise NotEvaluable(f"no flow crosses datacenters, or what is dropped of one is not known, with {arm}")
    return found


@measure("")
def dcn_share_of_losses(frames: Frames, arm: str) -> BySeed:
    """Of all dropped packets, the share dropped inside the datacenters."""
    dcn, wan = _segment(frames, arm, "dcn", "dropped"), _segment(frames, arm, "wan", "dropped")
    shares = {seed: dcn[seed] / (dcn[seed] + wan[seed]) for seed in dcn if dcn[seed] + wan[seed] > 0}
    if not shares:
        raise NotEvaluable(f"no packet was lost with {arm}")
    return shares


@measure("")
def utilisation_wan(frames: Frames, arm: str) -> BySeed:
    """Mean utilisation of the WAN ports."""
    return _by_seed(results.utilisation(_only(frames, arm), "wan"), "utilisation")


@measure("")
def utilisation_wan_busiest(frames: Frames, arm: str) -> BySeed:
    """Utilisation of the WAN port that is used most: of two directions the busier."""
    return _by_seed(results.busiest(_only(frames, arm), "wan"), "utilisation")


@measure("")
def utilisation_fabric(frames: Frames, arm: str) -> BySeed:
    """Mean utilisation of the ports between ToR and border switches."""
    return _by_seed(results.utilisation(_only(frames, arm), "fabric"), "utilisation")


@measure("")
def utilisation_hosts(frames: Frames, arm: str) -> BySeed:
    """Mean utilisation of the ports of hosts that sent flows."""
    return _by_seed(results.utilisation(_only(frames, arm), "host"), "utilisation")


@measure("")
def share_of_small_flows(frames: Frames, arm: str) -> BySeed:
    """Share of flows under 100 KB."""
    flows = _of(frames.flows, arm).group_by("seed").agg(results.in_class("small").mean().alias("value"))
    return _by_seed(flows, "value")


@measure("MB")
def payload(frames: Frames, arm: str) -> BySeed:
    """Size of all flows together."""
    return _by_seed(
        _of(frames.flows, arm).group_by("seed").agg((pl.col("size_bytes").sum() / 1e6).alias("value")), "value"
    )


@measure("")
def share_of_bytes_in_largest_tenth(frames: Frames, arm: str) -> BySeed:
    """Share of bytes in the tenth of flows that are largest."""
    size = pl.col("size_bytes")
    largest = size.top_k(pl.len() // 10).sum() / size.sum()
    return _by_seed(_of(frames.flows, arm).group_by("seed").agg(largest.alias("value")), "value")


def _fct(frames: Frames, arm: str, size_class: SizeClass, column: str) -> BySeed:
    table = results.fct_ms(_only(frames, arm), size_class)
    refuse_unfinished(
        int(table["unfinished"].sum()),
        int(table["flows"].sum()),
        "flows" if size_class == "all" else f"{size_class} flows",
    )
    values = _by_seed(table, column)
    if not values:
        most = int(table["flows"].sum()) // max(1, len(table))
        need = " (1000 needed for a 99th percentile)" if column == "p99" else ""
        raise NotEvaluable(f"not evaluable: {most} {size_class} flows per seed{need}")
    return values


def refuse_unfinished(unfinished: int, of: int, what: str) -> None:
    """Raises `NotEvaluable` where so many are not done that a mean over the others flatters what was slow."""
    if unfinished > MOST_UNFINISHED * of:
        raise NotEvaluable(f"not evaluable: {unfinished} of {of} {what} did not finish")


def _segment(frames: Frames, arm: str, segment: str, column: str) -> BySeed:
    table = results.plr_by_segment(_only(frames, arm)).filter(pl.col("segment") == segment)
    return _by_seed(table, column)


def _of(frame: pl.DataFrame, arm: str) -> pl.DataFrame:
    return frame.filter(pl.col("case") == arm)


def _only(frames: Frames, arm: str) -> Frames:
    return frames.of([arm])


def _by_seed(table: pl.DataFrame, column: str) -> BySeed:
    rows = table.select("seed", column).drop_nulls().sort("seed").iter_rows()
    return {int(seed): float(value) for seed, value in rows}
