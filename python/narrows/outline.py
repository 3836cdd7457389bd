"""What plans amount to, in words: network, traffic, offered load, and what running them costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from narrows import wording

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from narrows.experiment import Pairs

HOLDS_PER_HOP: Final = 1.1
"""Measured: 0.7 (a few long flows) to 1.3 (GEMINI and BBR between datacenters, a fabric of 128 hosts)."""
PROCESS_BYTES: Final = 75e6
"""A worker process without its run: the interpreter, and the libraries that write results."""
_MOST_TRAFFIC: Final = 6
_MOST_VALUES: Final = 4


def setting(summaries: Sequence[Mapping[str, Any]]) -> Pairs:
    """What is simulated: for what is not the same in all plans, each of the values."""
    return (
        ("network", _each(summaries, _network)),
        *(("traffic", text) for text in _traffic(summaries)),
        ("offered load", _each(summaries, _load)),
    )


def cost(summaries: Sequence[Mapping[str, Any]], hold_ns: float) -> Pairs:
    """What a run costs, estimated."""
    return (
        ("packets", _each(summaries, lambda it: f"about {wording.count(_rough(it['packets']), 2)} in a run")),
        ("packet-hops", _each(summaries, lambda it: f"about {wording.count(_rough(it['packet_hops']), 2)} in a run")),
        ("time", _each(summaries, lambda it: f"about {wording.duration(_rough(seconds(it, hold_ns)))} of a core")),
        ("memory", _each(summaries, lambda it: f"about {wording.size(_rough(it['memory'] + PROCESS_BYTES))}")),
    )


def _rough(value: float) -> float:
    """Two digits: an estimate has no more."""
    return float(f"{value:.2g}")


def seconds(summary: Mapping[str, Any], hold_ns: float) -> float:
    """Processor time of a run on a machine that needs so long for a hold."""
    return float(summary["packet_hops"]) * HOLDS_PER_HOP * hold_ns / 1e9


def _network(summary: Mapping[str, Any]) -> str:
    hosts, links = wording.plural(summary["hosts"], "host"), wording.plural(summary["links"], "one-way link")
    switches = f"{wording.whole(summary['switches'])} switch{'' if summary['switches'] == 1 else 'es'}"
    return f"{hosts}, {switches}, {links}"


def _traffic(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each kind of traffic; directions of one kind that are alike share it."""
    lines: dict[str, list[str]] = {}
    for summary in summaries:
        for kind in summary["traffic"]:
            names = lines.setdefault(_kind(kind), [])
            if kind["name"] not in names:
                names.append(kind["name"])
    made = [f"{', '.join(names)}: {text}{', each' if len(names) > 1 else ''}" for text, names in lines.items()]
    return [*made[:_MOST_TRAFFIC], *([f"and {len(made) - _MOST_TRAFFIC} more"] if len(made) > _MOST_TRAFFIC else [])]


def _kind(kind: Mapping[str, Any]) -> str:
    mean = kind["mean_size_bytes"]
    parts = [
        f"{kind['sizes']} sizes" if kind["sizes"] else "",
        f"mean {wording.size(mean)}" if mean else "until stopped",
        f"{wording.number(kind['flows_per_second'])} flows/s" if kind["flows_per_second"] else "",
        wording.plural(round(kind["flows"]), "flow"),
    ]
    return ", ".join(part for part in parts if part)


def _load(summary: Mapping[str, Any]) -> str:
    loads = [_role(role) for role in reversed(summary["roles"]) if role["mean_load"]]
    return ", ".join(loads) or "as much as long-lived flows get"


def _role(role: Mapping[str, Any]) -> str:
    mean, most = wording.percent(role["mean_load"], 2), wording.percent(role["max_load"], 2)
    return f"{role['role']} {mean}" + (f" (busiest {most})" if most != mean else "")


def _each(summaries: Sequence[Mapping[str, Any]], text: Callable[[Mapping[str, Any]], str]) -> str:
    found = list(dict.fromkeys(text(summary) for summary in summaries))
    more = f"; and {len(found) - _MOST_VALUES} more" if len(found) > _MOST_VALUES else ""
    return "; ".join(found[:_MOST_VALUES]) + more
