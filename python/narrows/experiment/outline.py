"""What plans amount to, in words: network, traffic, offered load, and what running them costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from narrows import wording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from narrows.experiment import Pairs, Plan
    from narrows.experiment.summary import Links, Network, RoleLoad, Summary, Traffic

_T = TypeVar("_T")

HOLDS_PER_HOP: Final = 1.1
"""Measured: 0.7 (a few long flows) to 1.3 (GEMINI and BBR between datacenters, a fabric of 128 hosts)."""
PROCESS_BYTES: Final = 75e6
"""A worker process without its run: the interpreter, and the libraries that write results."""
SIMULATED_TIME: Final = "simulated time"
"""What a setting calls how long runs last, on the clock of the plan."""
_MAX_TRAFFIC: Final = 6
_MAX_NAMES: Final = 3
_MAX_EVENTS: Final = 12
MAX_VALUES: Final = 4
"""Values of one fact that are told."""

Facts = tuple[tuple[str, tuple[str, ...]], ...]
"""What there is to say of plans: of each fact its name, and what it is in each plan; empty where it says nothing."""


def setting(summaries: Sequence[Summary]) -> Facts:
    """What is simulated."""
    return (
        ("network", _each(summaries, _network)),
        *(("traffic", _all(summaries, text)) for text in _traffic(summaries)),
        *(("on links", _all(summaries, text)) for text in _links(summaries)),
        ("offered load", _each(summaries, _load)),
    )


def busiest(summaries: Sequence[Summary]) -> Facts:
    """The port of each role that is offered most, where others are offered less."""
    return (("busiest port of unevenly loaded roles", _each(summaries, _busiest)),)


def joined(facts: Facts) -> Pairs:
    """Each fact with all of its values, as captions have it."""
    return tuple((name, _joined(texts)) for name, texts in facts)


LINKS: Final = {
    "host": "links of hosts", "edge": "links to hosts", "fabric": "links of the fabric", "wan": "WAN links",
}  # fmt: skip
"""What links of a role are called."""


def network(summaries: Sequence[Summary]) -> Facts:
    """What was built, in detail: nodes, base RTT, hosts, and what ports of each role do."""
    own = [summary["network"] for summary in summaries]
    roles = dict.fromkeys(links["role"] for it in own for links in it["links"])
    return (
        ("nodes", _each(own, lambda it: it["nodes"])),
        ("base RTT", _each(own, base_rtt)),
        ("hosts", _each(own, hosts)),
        *((("routing", _each(own, routing)),) if any(it["routing"] for it in own) else ()),
        *((LINKS[role], _each(own, lambda it, role=role: _links_of(it, role))) for role in roles),  # type: ignore[misc]
    )


def base_rtt(network: Network) -> str:
    """`24 µs in a rack, 28 µs in different racks`."""
    return ", ".join(
        " to ".join(dict.fromkeys(wording.delay(rtt[end] / 1e9) for end in ("least_ns", "largest_ns")))
        + ("" if rtt["hosts"] == "any two" else f" {rtt['hosts']}")
        for rtt in network["base_rtts"]
    )


def hosts(network: Network) -> str:
    """`TCP of linux-6, MTU 1500 B`."""
    tcp = f"TCP of {' and '.join(network['profiles'])}, " if network["profiles"] else ""
    return f"{tcp}MTU {network['mtu']} B"


def routing(network: Network) -> str:
    """`flowlet, gap 50us, entries 4096`."""
    return network["routing"] or "ecmp"


def _links_of(network: Network, role: str) -> str:
    """`32 of 10Gbps, delay 6us, buffer 200KB, AQM threshold: mark-at 65pkt and 2 of 1Gbps, delay 9us, buffer 1MB`."""
    return " and ".join(_kind_of_links(links) for links in network["links"] if links["role"] == role)


def _kind_of_links(links: Links) -> str:
    named = (
        ("buffer", links["buffer"]), ("AQM", links["aqm"]), ("scheduler", links["scheduler"]),
        ("telemetry", links["telemetry"]),
        ("flow control", links["flow_control"]), ("edge pair", links["bridge"]),
    )  # fmt: skip
    said = [f"{name} {value}" for name, value in named if value]
    return ", ".join([f"{links['links']} of {links['rate']}, delay {links['delay']}", *said])


def cost(summaries: Sequence[Summary], hold_ns: float) -> Facts:
    """What a run costs, estimated."""
    return (
        ("packets", _each(summaries, lambda it: f"about {wording.count(_rough(it['packets']), 2)} in a run")),
        ("packet-hops", _each(summaries, lambda it: f"about {wording.count(_rough(it['packet_hops']), 2)} in a run")),
        ("time", _each(summaries, lambda it: f"about {wording.duration(_rough(seconds(it, hold_ns)))} of CPU time")),
        ("memory", _each(summaries, lambda it: f"about {wording.size(_rough(it['memory'] + PROCESS_BYTES))}")),
    )


def settling(plans: Sequence[Plan]) -> Facts:
    """How long unfinished work takes to settle beside the warm-up and the time that counts, where that can be said."""
    return (("steady state", tuple(_settling(plan) for plan in plans)),)


def _settling(plan: Plan) -> str:
    own = plan.summary["settling"]
    if own is None:
        return ""
    if own["correlation_seconds"] is None:
        return f"none: {own['link']} is offered {wording.percent(own['load'], 3)} of what it carries"
    correlation, counted = own["correlation_seconds"], (plan.end_ns - plan.warmup_ns) / 1e9
    return (
        f"{own['link']} settles last: the bytes of flows that are not finished there change over about "
        f"{wording.duration(_rough(correlation))}. After the warm-up of {wording.duration(plan.warmup_ns / 1e9)} "
        f"they are at {wording.percent(own['filled'], 2)} of their mean, and their mean over the "
        f"{wording.duration(counted)} that count varies by {wording.percent(own['spread'], 2)} between runs"
    )


def _rough(value: float) -> float:
    """Two digits: an estimate has no more."""
    return float(f"{value:.2g}")


def seconds(summary: Summary, hold_ns: float) -> float:
    """Processor time of a run on a machine that needs so long for a hold."""
    return float(summary["work"]) * HOLDS_PER_HOP * hold_ns / 1e9


def _network(summary: Summary) -> str:
    hosts, links = wording.plural(summary["hosts"], "host"), wording.plural(summary["links"], "one-way link")
    switches = f"{wording.whole(summary['switches'])} switch{'' if summary['switches'] == 1 else 'es'}"
    return f"{hosts}, {switches}, {links}"


def _traffic(summaries: Sequence[Summary]) -> list[str]:
    """A line for each kind of traffic, with all its values in the plans; kinds that are alike share it."""
    kinds: dict[str, list[Traffic]] = {}
    for summary in summaries:
        for kind in summary["traffic"]:
            kinds.setdefault(kind["name"], []).append(kind)
    lines: dict[str, list[str]] = {}
    for name, own in kinds.items():
        lines.setdefault(_kind(own), []).append(name)
    made = [f"{_names(names)}: {text}{' each' if len(names) > 1 else ''}" for text, names in lines.items()]
    return [*made[:_MAX_TRAFFIC], *([f"and {len(made) - _MAX_TRAFFIC} more"] if len(made) > _MAX_TRAFFIC else [])]


def _names(names: Sequence[str]) -> str:
    """All of a few; of many `web/h-1 … web/h-45`."""
    return ", ".join(names) if len(names) <= _MAX_NAMES else f"{names[0]} … {names[-1]}"


def _kind(plans: Sequence[Traffic]) -> str:
    """One kind of traffic in all plans that have it."""
    ordered = sorted(plans, key=lambda kind: kind["mean_size_bytes"] or 0.0)
    sizes = list(dict.fromkeys(f"{kind['sizes']} sizes" for kind in ordered if kind["sizes"]))
    means = _values((kind["mean_size_bytes"] for kind in plans), wording.size)
    rates = _values((kind["flows_per_second"] for kind in plans), wording.number)
    flows = _values((round(kind["flows"]) for kind in plans), wording.whole)
    parts = [
        " or ".join(sizes),
        f"mean {means}" if means else "until stopped",
        f"{rates} flows/s" if rates else "",
        f"{flows} flow{'' if flows == '1' else 's'}{_counted(plans)}",
    ]
    return ", ".join(part for part in parts if part)


def _counted(plans: Sequence[Traffic]) -> str:
    """`, 9 191 of them after the warm-up`, where there is one."""
    if all(kind["counted"] is None or round(kind["counted"]) == round(kind["flows"]) for kind in plans):
        return ""
    counted = _values((None if kind["counted"] is None else round(kind["counted"]) for kind in plans), wording.whole)
    return f" ({counted} after the warm-up)"


def _values(values: Iterable[float | None], text: Callable[[float], str]) -> str:
    """`5`, `5 or 20`, `1 to 40`; nothing where there is none."""
    found = sorted({value for value in values if value is not None})
    told = list(dict.fromkeys(text(value) for value in (*found[:1], *found[-1:])))
    return (" or " if len(found) == len(told) else " to ").join(told)


def _links(summaries: Sequence[Summary]) -> list[str]:
    """What happens on links beside carrying packets, in any of the plans: each sentence once."""
    told = list(dict.fromkeys(text for it in summaries for text in (*it["functions"], *it["events"])))
    return [*told[:_MAX_EVENTS], *([f"and {len(told) - _MAX_EVENTS} more"] if len(told) > _MAX_EVENTS else [])]


def _load(summary: Summary) -> str:
    loads = [_role(role) for role in reversed(summary["roles"]) if role["mean_load"]]
    kinds = summary["traffic"]
    endless = any(not kind["mean_size_bytes"] for kind in kinds)
    sized = any(kind["mean_size_bytes"] for kind in kinds)
    own = [*(["flows without an end get"] if endless else []), *(["flows of a given size need"] if sized else [])]
    return ", ".join(loads) or "as much as " + " and ".join(own)


def _busiest(summary: Summary) -> str:
    unlike = (role for role in reversed(summary["roles"]) if _role_is_uneven(role))
    return ", ".join(f"{role['role']} {role['busiest']} {wording.percent(role['max_load'], 2)}" for role in unlike)


def _role_is_uneven(role: RoleLoad) -> bool:
    return wording.percent(role["mean_load"], 2) != wording.percent(role["max_load"], 2)


def _done_before(summary: Summary) -> bool:
    """Whether all may be done before the end: every flow has a size, and none arrives by a clock."""
    return all(kind["mean_size_bytes"] and not kind["flows_per_second"] for kind in summary["traffic"])


def simulated_time(summaries: Sequence[Summary], ends_ns: Iterable[int]) -> str:
    """How long runs last that are to end then."""
    return ends(ends_ns) + (", idle once all flows are done" if all(map(_done_before, summaries)) else "")


def ends(ends_ns: Iterable[int]) -> str:
    """`40 s`, `8 s or 1 min`."""
    return " or ".join(wording.duration(end / 1e9) for end in sorted(set(ends_ns)))


def _role(role: RoleLoad) -> str:
    mean, most = wording.percent(role["mean_load"], 2), wording.percent(role["max_load"], 2)
    return f"{role['role']} {mean}" + (f" (busiest {most})" if _role_is_uneven(role) else "")


def _each(told: Sequence[_T], text: Callable[[_T], str]) -> tuple[str, ...]:
    return tuple(text(one) for one in told)


def _all(summaries: Sequence[Summary], text: str) -> tuple[str, ...]:
    return (text,) * len(summaries)


def _joined(texts: Sequence[str]) -> str:
    found = [text for text in dict.fromkeys(texts) if text]
    more = f"; and {len(found) - MAX_VALUES} more" if len(found) > MAX_VALUES else ""
    return "; ".join(found[:MAX_VALUES]) + more
