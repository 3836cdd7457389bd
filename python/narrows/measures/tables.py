"""Tables of measures: one row for each run, or for each run and class."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from narrows.frames import collected, each_case, in_words, kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.frames import Frames

SizeClass = Literal["small", "medium", "large", "all"]

SMALL_BELOW_BYTES: Final = 100_000
LARGE_ABOVE_BYTES: Final = 10_000_000
"""1 KB is 1000 B [Gemini §II: small < 100 KB, large > 10 MB]."""
SAMPLES_BEYOND: Final = 10
"""A percentile is evaluable if so many samples may lie beyond it: 1000 samples for a p99, 200 for a p95."""
REQUEST_PERCENTILES: Final = {"p50": 50, "p95": 95, "p99": 99, "p999": 99.9}
"""Of completion times of requests, by the name of their column."""
NS_PER_MS: Final = 1e6
SIZE_BINS: Final = (
    ("under 10 KB", 0, 10_000),
    ("10–100 KB", 10_000, 100_000),
    ("100 KB–1 MB", 100_000, 1_000_000),
    ("1–10 MB", 1_000_000, 10_000_000),
    ("over 10 MB", 10_000_000, 1 << 62),
)
"""Name, from, to (not included), bytes: the bins in which the DCTCP paper shows background flows [DCTCP fig. 22]."""
LOSS_UNIT: Final = 1e-5

DCN_ROLES: Final = ("edge", "fabric")
WAN_ROLES: Final = ("wan",)


def in_class(size_class: SizeClass) -> pl.Expr:
    """Whether a flow belongs to the size class."""
    size = pl.col("size_bytes")
    match size_class:
        case "small":
            return size < SMALL_BELOW_BYTES
        case "medium":
            return (size >= SMALL_BELOW_BYTES) & (size <= LARGE_ABOVE_BYTES)
        case "large":
            return size > LARGE_ABOVE_BYTES
        case "all":
            return pl.lit(value=True)


def nearest_rank(values: pl.Expr, percent: float) -> pl.Expr:
    """The ⌈n·p⌉-th smallest value; null where fewer than 10 samples may lie beyond it. `percent` in tenths at most."""
    tenths = round(10 * percent)
    present = values.drop_nulls()
    count = present.len().cast(pl.Int64)
    rank = (count * tenths + 999) // 1000
    value = present.sort().get(pl.max_horizontal(rank - 1, pl.lit(0)), null_on_oob=True)
    return pl.when(count * (1000 - tenths) >= 1000 * SAMPLES_BEYOND).then(value)


def samples_needed(percent: float) -> int:
    """How many samples a percentile needs: 1000 for a p99, 10 000 for a p99.9."""
    tenths = 1000 - round(10 * percent)
    return -(-1000 * SAMPLES_BEYOND // tenths)


@kept
def fct_ms(frames: Frames, size_class: SizeClass, *, pooled: bool = False, of: Sequence[str] = ()) -> pl.DataFrame:
    """Per run: `mean` and `p99` of the completion time of finished flows, ms; `flows`, `unfinished`.

    All of flows with a size. `pooled` puts the seeds of a case together, for percentiles that one seed alone has too
    few samples for. The flows of a run are apart by the columns `of`.
    """
    cases = frames.flows["case"].unique(maintain_order=True).to_list()
    if len(cases) > 1 and set(cases) <= set(frames.cases):
        return pl.concat([fct_ms(frames.of([case]), size_class, pooled=pooled, of=of) for case in cases])
    keys = [*(key for key in frames.keys if key != "seed" or not pooled), *of]
    fct = pl.col("fct_ns").cast(pl.Float64) / NS_PER_MS
    table = (
        frames.flows.lazy()
        .filter(in_class(size_class) & pl.col("sized"))
        .group_by(keys, maintain_order=True)
        .agg(
            fct.mean().alias("mean"),
            nearest_rank(fct, 99).alias("p99"),
            pl.len().alias("flows"),
            (~pl.col("finished")).sum().alias("unfinished"),
        )
    )
    return in_words(table).collect()


def fct_by_bin(frames: Frames) -> pl.DataFrame:
    """Per run and size bin: `mean` and `p95` of the completion time, ms; `flows`, `timeouts`."""
    fct = pl.col("fct_ns").cast(pl.Float64) / NS_PER_MS
    size = pl.col("size_bytes")
    place = pl.sum_horizontal((size >= low).cast(pl.Int32) for _, low, _ in SIZE_BINS[1:])
    tables = (
        own.lazy()
        .filter("sized")
        .with_columns(place.alias("place"))
        .group_by([*frames.keys, "place"], maintain_order=True)
        .agg(
            fct.mean().alias("mean"),
            nearest_rank(fct, 95).alias("p95"),
            pl.len().alias("flows"),
            pl.col("timeouts").sum().alias("timeouts"),
        )
        .with_columns(
            pl.col("place").replace_strict(dict(enumerate(name for name, *_ in SIZE_BINS))).alias("bin"),
            pl.col("place").replace_strict(dict(enumerate(to for *_, to in SIZE_BINS))).alias("size_to_bytes"),
        )
        for own in each_case(frames.flows)
    )
    return collected(in_words(table) for table in tables)


def request_ms(frames: Frames) -> pl.DataFrame:
    """Per run: completion time of requests, ms: `mean`, `p50`, `p95`, `p99`, `p999`; `unfinished`.

    `timeouts` per 1000 requests; `share`, of requests with at least one; `servers`, that a finished one has asked.
    """
    time = pl.col("completion_ns").cast(pl.Float64) / NS_PER_MS
    finished = pl.col("completion_ns").is_not_null()
    return frames.requests.group_by(frames.keys, maintain_order=True).agg(
        time.mean().alias("mean"),
        *(nearest_rank(time, percent).alias(name) for name, percent in REQUEST_PERCENTILES.items()),
        (1000.0 * pl.col("timeouts").sum() / pl.len()).alias("timeouts"),
        (pl.col("timeouts") > 0).mean().alias("share"),
        pl.col("responses").filter(finished).max().alias("servers"),
        pl.len().alias("requests"),
        time.is_null().sum().alias("unfinished"),
    )


def loss_by_segment(frames: Frames) -> pl.DataFrame:
    """Per run and segment: packets `dropped` there; `loss`, per packet that a host sent, in 1e-5 [GEMINI Table II].

    `dcn` is every port of a switch inside a datacenter, those towards hosts among them; `wan` joins datacenters.
    """
    segment = (
        pl.when(pl.col("role").is_in(DCN_ROLES)).then(pl.lit("dcn"))
        .when(pl.col("role").is_in(WAN_ROLES)).then(pl.lit("wan"))
    )  # fmt: skip
    dropped, sent = pl.col("dropped_packets").sum(), pl.col("sent_packets").filter(pl.col("role") == "host").sum()
    return (
        frames.ports.lazy()
        .with_columns(segment.alias("segment"), sent.over(frames.keys).alias("sent"))
        .drop_nulls("segment")
        .group_by([*frames.keys, "segment"], maintain_order=True)
        .agg(
            pl.when(pl.col("sent").first() > 0).then(dropped / pl.col("sent").first() / LOSS_UNIT).alias("loss"),
            dropped.alias("dropped"),
            pl.col("marked_packets").sum().alias("marked"),
        )
        .collect()
    )


def loss_overall(frames: Frames) -> pl.DataFrame:
    """Per run: packets dropped anywhere per packet that a host sent, in 1e-5: the chance to be lost on the way."""
    dropped = pl.col("dropped_packets").sum()
    sent = pl.col("sent_packets").filter(pl.col("role") == "host").sum()
    loss = pl.when(sent > 0).then(dropped / sent / LOSS_UNIT).alias("loss")
    return frames.ports.lazy().group_by(frames.keys, maintain_order=True).agg(loss).collect()


@kept
def ports_in_use(frames: Frames) -> pl.DataFrame:
    """The ports, with `utilisation` of the time until the end of the programs where these alone send.

    After a program's end its ports have nothing to send: a mean over the rest of the run would say nothing of it.
    """
    if frames.ranks.is_empty():
        return frames.ports
    run = ["case", "seed"]
    lasted = (pl.col("end_ns").max() - pl.col("start_ns").min()).cast(pl.Float64).alias("lasted")
    programs = frames.ranks.group_by(run).agg(lasted, pl.col("finished").all().alias("all_ended"))
    programs = programs.filter(pl.col("all_ended") & (pl.col("lasted") > 0)).select(*run, "lasted")
    own = frames.ranks.select("case", "workload").unique()
    flows = in_words(frames.flows.lazy().select(*run, "workload").unique()).collect()
    others = [flows.join(own, on=["case", "workload"], how="anti").select(run)]
    others += [part.select(run) for part in (frames.requests, frames.answers, frames.long) if not part.is_empty()]
    alone = programs.join(pl.concat(others).unique(), on=run, how="anti")
    longer = (pl.col("measured_ns") / pl.col("lasted")).clip(lower_bound=1.0)
    scaled = pl.min_horizontal(1.0, pl.col("utilisation") * longer)
    return (
        frames.ports.join(alone, on=run, how="left", maintain_order="left")
        .with_columns(
            pl.when(pl.col("lasted").is_null()).then(pl.col("utilisation")).otherwise(scaled).alias("utilisation")
        )
        .drop("lasted")
    )


def busiest(frames: Frames, role: str) -> pl.DataFrame:
    """Per run: share of line rate in use at that port of a role which is used most."""
    ports = ports_in_use(frames).filter(pl.col("role") == role)
    return ports.group_by(frames.keys, maintain_order=True).agg(pl.col("utilisation").max())


def utilisation(frames: Frames, role: str) -> pl.DataFrame:
    """Per run: mean share of line rate in use over the ports of a role; of hosts' ports only those that sent flows."""
    ports = ports_in_use(frames).lazy().filter(pl.col("role") == role)
    if role == "host":
        sources = [part for part in (frames.flows, frames.long, frames.answers) if not part.is_empty()]
        named = [in_words(part.lazy().select("case", "seed", node="source").unique()) for part in sources]
        senders = pl.concat([*named, ports.select("case", "seed", "node").limit(0)]).unique()
        ports = ports.join(senders, on=["case", "seed", "node"], how="semi", maintain_order="left")
    return ports.group_by(frames.keys, maintain_order=True).agg(pl.col("utilisation").mean()).collect()


def recovery(frames: Frames) -> pl.DataFrame:
    """Per run: bytes `retransmitted` by finished flows in % of what they asked for, `timeouts` per 1000 flows.

    Of all flows, answers to requests among them. What an unfinished flow asked for was not sent: it would make the
    losses look rarer than they are.
    """
    sums = [pl.col(name).sum() for name in ("retransmitted_bytes", "size_bytes", "timeouts", "flows")]
    finished = pl.col("finished")
    summed = frames.flows.lazy().group_by(frames.keys, maintain_order=True).agg(
        *(pl.col(name).filter(finished).sum() for name in ("retransmitted_bytes", "size_bytes")),
        pl.col("timeouts").sum(),
        pl.len().alias("flows"),
    )  # fmt: skip
    own = in_words(summed).collect()
    parts = [own] if frames.answers.is_empty() else [own, frames.answers.select(own.columns)]
    again, asked, timeouts, flows = (pl.col(name) for name in own.columns[-4:])
    return (
        pl.concat(parts, how="vertical_relaxed")
        .group_by(frames.keys, maintain_order=True)
        .agg(*sums)
        .select(
            *frames.keys,
            pl.when(asked > 0).then(100.0 * again / asked).alias("retransmitted"),
            (1000.0 * timeouts / flows).alias("timeouts"),
        )
    )


@kept
def slowdown_by_size(frames: Frames, bins: int = 20) -> pl.DataFrame:
    """Per case and size bin: p50, p95, p99 of the slowdown, seeds together. The bins hold equal shares of all flows."""
    finished = pl.col("finished")
    sizes = frames.flows.lazy().filter(finished).select(pl.col("size_bytes").sort()).collect()["size_bytes"]
    if sizes.is_empty():
        return pl.DataFrame(schema={"case": pl.String, "size_bytes": pl.UInt64, "flows": pl.UInt32})
    edges = sorted({int(sizes[(len(sizes) * step) // bins]) for step in range(1, bins)})
    placed = pl.lit(0, dtype=pl.Int64)
    for edge in edges:
        placed += (pl.col("size_bytes") >= edge).cast(pl.Int64)
    # A bin is a stretch of what is sorted: its median, its least and its largest size.
    ends = [0, *(int(sizes.search_sorted(edge, side="left")) for edge in edges), len(sizes)]
    rows = [
        (place, (sizes[(begin + end - 1) // 2] + sizes[(begin + end) // 2]) // 2, sizes[begin], sizes[end - 1])
        for place, (begin, end) in enumerate(pairwise(ends))
        if begin < end
    ]
    columns = ("size_bytes", "size_from_bytes", "size_to_bytes")
    bounds = pl.DataFrame(rows, schema={"bin": pl.Int64, **dict.fromkeys(columns, pl.UInt64)}, orient="row")
    tables = (
        own.lazy()
        .filter(finished)
        .with_columns(placed.alias("bin"))
        .group_by(["case", "arm", *frames.axes, "bin"], maintain_order=True)
        .agg(
            *(nearest_rank(pl.col("slowdown"), percent).alias(f"p{percent}") for percent in (50, 95, 99)),
            pl.len().alias("flows"),
        )
        .join(bounds.lazy(), on="bin")
        for own in each_case(frames.flows)
    )
    return collected(in_words(table) for table in tables).sort("case", "bin")


def jain(frames: Frames, *, from_ns: int = 0, to_ns: int | None = None) -> pl.DataFrame:
    """Per run: Jain's index (Σx)²/(n·Σx²) over the goodput of all flows in a bin, averaged over bins."""
    x = pl.col("value")
    samples = frames.series.filter((pl.col("quantity") == "goodput_bps") & (pl.col("time_ns") > from_ns))
    if to_ns is not None:
        samples = samples.filter(pl.col("time_ns") <= to_ns)
    # Sums depend on their order in the last digits: the same runs are to give the same bytes.
    return (
        samples.sort([*frames.keys, "time_ns", "entity"])
        .group_by([*frames.keys, "time_ns"], maintain_order=True)
        .agg(pl.when((x * x).sum() > 0).then(x.sum() ** 2 / (pl.len() * (x * x).sum())).alias("jain"))
        .group_by(frames.keys, maintain_order=True)
        .agg(pl.col("jain").mean())
        .sort(frames.keys)
        .collect()
    )
