"""Measures of completion times, losses and utilisation."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from narrows.measures import tables
from narrows.measures.registry import PART, NotEvaluable, by_seed, measure, measures, refuse_unfinished

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from narrows.frames import Frames
    from narrows.measures.stats import BySeed
    from narrows.measures.tables import SizeClass


def _fct(frames: Frames, arm: str, size_class: SizeClass, column: str) -> BySeed:
    table = tables.fct_ms(_only(frames, arm), size_class).select("seed", column, "flows", "unfinished")
    return _evaluated([_Run(*row) for row in table.iter_rows()], size_class, column)


class _Run(NamedTuple):
    """A row of what `tables.fct_ms` makes."""

    seed: int
    value: float | None
    flows: int
    unfinished: int


def _evaluated(runs: Sequence[_Run], size_class: SizeClass, column: str) -> BySeed:
    """Values by seed. Raises `NotEvaluable`."""
    flows = sum(run.flows for run in runs)
    refuse_unfinished(
        sum(run.unfinished for run in runs),
        flows,
        "flows" if size_class == "all" else f"{size_class} flows",
    )
    values = {run.seed: run.value for run in sorted(runs) if run.value is not None}
    if not values:
        most = flows // max(1, len(runs))
        need = " (1000 needed for a 99th percentile)" if column == "p99" else ""
        raise NotEvaluable(f"not evaluable: {most} {size_class} flows per seed{need}")
    return values


def fct_of_parts(frames: Frames, arm: str, name: str) -> dict[tuple[str, str], BySeed]:
    """A measure of `FCT` of the flows of each workload and controller of a case, where it can be measured.

    There may be hundreds of them: each by itself would take a second for every ten.
    """
    size_class, column, _ = FCT[name]
    table = tables.fct_ms(_only(frames, arm), size_class, of=PART)
    rows: dict[tuple[str, str], list[_Run]] = {}
    for workload, controller, *run in table.select(*PART, "seed", column, "flows", "unfinished").iter_rows():
        rows.setdefault((workload, controller), []).append(_Run(*run))
    found: dict[tuple[str, str], BySeed] = {}
    for part, runs in rows.items():
        with contextlib.suppress(NotEvaluable):
            found[part] = _evaluated(runs, size_class, column)
    return found


def _segment(frames: Frames, arm: str, segment: str, column: str) -> BySeed:
    table = tables.loss_by_segment(_only(frames, arm)).filter(pl.col("segment") == segment)
    return by_seed(table, column)


def _used(frames: Frames, arm: str, of_role: Callable[[Frames, str], pl.DataFrame], role: str) -> BySeed:
    return by_seed(of_role(_only(frames, arm), role), "utilisation")


def _of(frame: pl.DataFrame, arm: str) -> pl.DataFrame:
    return frame.filter(pl.col("case") == arm)


def _only(frames: Frames, arm: str) -> Frames:
    return frames.of([arm])


FCT: Final[dict[str, tuple[SizeClass, str, str]]] = {
    "fct_small_mean": ("small", "mean", "Mean completion time of flows under 100 KB."),
    "fct_small_p99": ("small", "p99", "99th percentile of the completion time of flows under 100 KB."),
    "fct_medium_mean": ("medium", "mean", "Mean completion time of flows from 100 KB to 10 MB."),
    "fct_large_mean": ("large", "mean", "Mean completion time of flows over 10 MB."),
    "fct_mean": ("all", "mean", "Mean completion time of all flows."),
}
"""Of completion times: size class, column of `tables.fct_ms`, description."""
measures("ms", _fct, FCT)


@measure("Mbit/s")
def goodput_large(frames: Frames, arm: str) -> BySeed:
    """Mean over flows above 10 MB of size over completion time."""
    bits_per_us = 8e3 * pl.col("size_bytes").cast(pl.Float64) / pl.col("fct_ns").cast(pl.Float64)
    flows = _of(frames.flows, arm).filter(tables.in_class("large") & pl.col("finished"))
    return by_seed(flows.group_by("seed").agg(bits_per_us.mean().alias("value")))


@measure("1e-5")
def loss(frames: Frames, arm: str) -> BySeed:
    """Packets dropped anywhere per packet that a host sent."""
    return by_seed(tables.loss_overall(_only(frames, arm)), "loss")


measures("1e-5", _segment, {
    "loss_dc": ("dcn", "loss", "Packets that ports inside the datacenters dropped per packet that a host sent."),
    "loss_wan": ("wan", "loss", "Packets dropped at the WAN ports per packet that a host sent."),
})  # fmt: skip


@measure("1e-5")
def dropped_across(frames: Frames, arm: str) -> BySeed:
    """Payload of flows between datacenters that the network dropped, wherever, per byte that their senders sent.

    That of their requests counts as dropped, too, though the other end sends it.
    """
    flows = _of(frames.flows, arm).filter(pl.col("class") == "inter")
    refuse_unfinished(int((~flows["finished"]).sum()), len(flows), "flows between datacenters")
    # A flow that has finished has sent each of its bytes once, and some again.
    sent = pl.col("size_bytes").sum() + pl.col("retransmitted_bytes").sum()
    share = pl.col("dropped_bytes").sum() / sent / tables.LOSS_UNIT
    known = pl.col("dropped_bytes").is_not_null().all()
    found = by_seed(flows.group_by("seed").agg(pl.when(known).then(share).alias("value")))
    if not found:
        raise NotEvaluable(f"no flow crosses datacenters, or what is dropped of one is not known, with {arm}")
    return found


@measure("")
def dc_share_of_losses(frames: Frames, arm: str) -> BySeed:
    """Of all dropped packets, the share dropped inside the datacenters."""
    dcn, wan = _segment(frames, arm, "dcn", "dropped"), _segment(frames, arm, "wan", "dropped")
    shares = {seed: dcn[seed] / (dcn[seed] + wan[seed]) for seed in dcn if dcn[seed] + wan[seed] > 0}
    if not shares:
        raise NotEvaluable(f"no packet was lost with {arm}")
    return shares


_WHILE: Final = "; of programs that run alone, until they end"
measures("", _used, {
    "utilisation_wan": (tables.utilisation, "wan", f"Mean utilisation of the WAN ports{_WHILE}."),
    "utilisation_wan_busiest": (
        tables.busiest, "wan",
        f"Utilisation of the WAN port that is used most, the busier of a link's two directions{_WHILE}.",
    ),
    "utilisation_fabric": (
        tables.utilisation, "fabric", f"Mean utilisation of the ports between ToR and border switches{_WHILE}."
    ),
    "utilisation_hosts": (
        tables.utilisation, "host", f"Mean utilisation of the ports of hosts that sent flows{_WHILE}."
    ),
})  # fmt: skip


@measure("")
def share_of_small_flows(frames: Frames, arm: str) -> BySeed:
    """Share of flows under 100 KB."""
    flows = _of(frames.flows, arm).group_by("seed").agg(tables.in_class("small").mean().alias("value"))
    return by_seed(flows)


@measure("MB")
def payload(frames: Frames, arm: str) -> BySeed:
    """Size of all flows together."""
    return by_seed(
        _of(frames.flows, arm).group_by("seed").agg((pl.col("size_bytes").sum() / 1e6).alias("value")), "value"
    )


@measure("")
def share_of_bytes_in_largest_tenth(frames: Frames, arm: str) -> BySeed:
    """Share of bytes in the tenth of flows that are largest."""
    size = pl.col("size_bytes")
    largest = size.top_k(pl.len() // 10).sum() / size.sum()
    return by_seed(_of(frames.flows, arm).group_by("seed").agg(largest.alias("value")))
