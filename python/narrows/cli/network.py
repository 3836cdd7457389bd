"""What `narrows check` shows of networks: a drawing, the paths, and the buffers of ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape
from rich.table import Table

from narrows import wording
from narrows.cli.output import OUT, line
from narrows.experiment.drawing import drawing
from narrows.experiment.paths import paths_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from narrows.experiment import Experiment, Plan
    from narrows.experiment.paths import Buffer, PathKind, Paths

MAX_NETWORKS: Final = 8
"""Networks of an experiment that are told in JSON."""
_KINDS: Final = {"port": "", "shared": " of the pool", "input": " of each input"}
"""What is said of a buffer by what bounds it."""


def print_drawing(experiment: Experiment) -> None:
    """The network of the first plan, and how many plans have others."""
    networks = _networks(experiment)
    plan = networks[0][0]
    if len(networks) > 1:
        OUT.print(f"[dim]the network of {escape(plan.case)}; the plans have {len(networks)} different ones[/]")
    OUT.print("\n".join(drawing(plan.body["network"])), markup=False, soft_wrap=True)
    paths = paths_of(plan.summary)
    OUT.print()
    OUT.print(_paths(paths, plan.summary["network"]["mtu"]))
    if paths.left_out:
        OUT.print(f"[dim]and {paths.left_out} more, with base RTTs between these[/]")
    OUT.print()
    OUT.print(_buffers(paths))


def print_lines(experiment: Experiment) -> None:
    """A line for each network: its plans, drawing, paths and buffers."""
    for plans in _networks(experiment)[:MAX_NETWORKS]:
        body = plans[0].body["network"]
        paths = paths_of(plans[0].summary)
        line(
            event="network",
            plans=[plan.hash for plan in plans],
            drawing=drawing(body),
            paths=[_path(path) for path in paths.kinds],
            paths_left_out=paths.left_out,
            buffers=[_buffer(buffer, paths.kinds) for buffer in paths.buffers],
        )


def _networks(experiment: Experiment) -> list[list[Plan]]:
    """Plans with the same nodes, links, buffers and random losses, together; AQMs and routing do not count."""
    found: dict[str, list[Plan]] = {}
    for plan in experiment.plans:
        told = plan.summary["network"]
        links = [(own["role"], own["links"], own["rate"], own["delay"], own["buffer"]) for own in told["links"]]
        lost = {(link["role"], link["loss"], repr(link.get("functions"))) for link in plan.body["network"]["links"]}
        of_all = (told["nodes"], told["base_rtts"], told["mtu"])
        found.setdefault(repr((of_all, links, sorted(lost))), []).append(plan)
    return list(found.values())


def _path(path: PathKind) -> Mapping[str, Any]:
    return {
        "hosts": path.hosts,
        "from": path.example[0],
        "to": path.example[1],
        "links": path.links,
        "equally_short": path.ways,
        "base_rtt_ns": path.rtt_ps[0] / 1000,
        "largest_base_rtt_ns": path.rtt_ps[1] / 1000,
        "bottleneck_bps": path.rate_bps,
        "bdp_bytes": path.bdp_bytes[0],
        "largest_bdp_bytes": path.bdp_bytes[1],
        "loss": path.loss,
    }


def _buffer(buffer: Buffer, paths: Sequence[PathKind]) -> Mapping[str, Any]:
    shares = [
        {"hosts": path.hosts, "base_rtt_ns": path.rtt_ps[0] / 1000, "bdps": max(buffer.shares_of(path), default=None)}
        for path in paths
        if (buffer.role, buffer.rate_bps) in path.ports
    ]
    return {
        "role": buffer.role,
        "ports": buffer.ports,
        "rate_bps": buffer.rate_bps,
        "bytes": buffer.size_bytes,
        "kind": buffer.kind,
        "seconds": buffer.time_s,
        "of_paths": shares,
    }


def _paths(paths: Paths, mtu: int) -> Table:
    headings = ["paths", "for example", "links", "base RTT", "bottleneck", "BDP", "in packets"]
    loses = any(path.loss for path in paths.kinds)
    is_wide = any(path.ways > 1 for path in paths.kinds)
    table = _table(*headings, *(["equally short"] if is_wide else []), *(["random loss"] if loses else []))
    for path in paths.kinds:
        table.add_row(
            path.hosts,
            escape(" → ".join(path.example)),
            str(path.links),
            _range(wording.delay(rtt / 1e12) for rtt in path.rtt_ps),
            wording.rate(path.rate_bps),
            _range(wording.size(size) for size in path.bdp_bytes),
            _range(wording.number(size / mtu) for size in path.bdp_bytes),
            *([wording.whole(path.ways)] if is_wide else []),
            *([f"{wording.number(100 * path.loss)} %"] if loses else []),
        )
    return table


def _buffers(paths: Paths) -> Table:
    table = _table("ports", "how many", "rate", "buffer", "buffer / rate", "buffer / BDP of paths")
    for buffer in paths.buffers:
        size = "unlimited" if buffer.size_bytes is None else wording.size(buffer.size_bytes) + _KINDS[buffer.kind]
        time = "–" if buffer.time_s is None else wording.delay(buffer.time_s)
        table.add_row(
            buffer.role, wording.whole(buffer.ports), wording.rate(buffer.rate_bps), size, time, _shares(buffer, paths)
        )
    return table


def _shares(buffer: Buffer, paths: Paths) -> str:
    """`30 in a rack, 10 to 15 in different racks`: of the paths that cross such ports."""
    found: dict[str, list[float]] = {}
    for path in paths.kinds:
        if shares := buffer.shares_of(path):
            found.setdefault(path.hosts, []).extend(shares)
    ends = {hosts: _range(wording.number(share) for share in (min(own), max(own))) for hosts, own in found.items()}
    return ", ".join(f"{text} {hosts}" for hosts, text in ends.items()) or "–"


def _range(ends: Iterable[str]) -> str:
    """`10 ms`, or `10 ms to 12 ms`."""
    return " to ".join(dict.fromkeys(ends))


def _table(*headings: str) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table
