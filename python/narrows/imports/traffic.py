"""What files say of traffic, as tables of an experiment."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from narrows.imports.networks import STAR_BPS
from narrows.imports.parts import MAX_TIME_PS
from narrows.imports.quantities import PS_PER_MS, PS_PER_S, rate_text, seconds_text, size_text, time_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from narrows.imports.parts import Flows, Network, Options, Requests, Sizes

_MAX_INLINE: Final = 100
"""Flows that are written into the experiment; more go into a file beside it."""
_PAYLOAD_SHARE: Final = Fraction(1448, 1538)
"""Data in the bits that a full packet takes of a link: TrafficGenerator's `TG_GOODPUT_RATIO`."""
_RATE_STEPS: Final = 10**6
"""An experiment counts events in 10^-6 per second: a finer rate is refused there."""
_RATE_ERROR: Final = Fraction(1, 1000)
"""Of a rate that is rounded to that without a note."""
_REQUEST: Final = "16B"
"""Four integers of 4 bytes: what a client of TrafficGenerator sends for each flow."""


@dataclass(frozen=True)
class Traffic:
    """Traffic of an experiment, and how long it lasts."""

    lines: tuple[str, ...]
    end_ps: int
    end_reason: str
    notes: tuple[str, ...] = ()
    random: bool = False
    """Whether it depends on the seed."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files beside the experiment: name and text."""


def of_flows(flows: Flows, network: Network, stem: str) -> Traffic:
    """Flows one by one. Raises `BadInput` if one is of a node that is no host."""
    for flow in flows.list:
        for node in (flow.source, flow.destination):
            if node not in network.hosts:
                where = f" of {network.source.name}" if network.source else ""
                raise flows.source.refuse(flow.line, f"node {node} is no host{where}", "flows go between hosts")
    last_ps = max(flow.start_ps for flow in flows.list)
    sized = all(flow.size is not None for flow in flows.list)
    head = ("[[traffic]]", 'name = "flows"')
    if sized and len(flows.list) > _MAX_INLINE:
        name = f"{stem}-flows.txt"
        place = {number: index for index, number in enumerate(network.hosts)}
        rows = (
            f"{place[flow.source]} {place[flow.destination]} 0 0 {flow.size} {seconds_text(flow.start_ps)}"
            for flow in flows.list
        )
        lines: tuple[str, ...] = (
            *head,
            f"flows = {{ file = {_text(name)} }}    # hosts counted from 0 in the network's order",
        )
        files = {name: "\n".join([str(len(flows.list)), *rows]) + "\n"}
    else:
        listed = (
            f'    {{ from = "{network.hosts[flow.source]}", to = "{network.hosts[flow.destination]}", '
            f'at = "{time_text(flow.start_ps)}"'
            + (f', size = "{size_text(flow.size)}"' if flow.size is not None else "")
            + f" }},    # {flow.source} -> {flow.destination}, line {flow.line}"
            for flow in flows.list
        )
        lines, files = (*head, "[traffic.flows]", "list = [", *listed, "]"), {}
    after_ps, reason = (PS_PER_MS, "1 ms") if sized else (PS_PER_S, "1 s, for flows without an end")
    end_ps = min((last_ps // after_ps + 1) * after_ps, MAX_TIME_PS)
    return Traffic(lines, end_ps, f"the last flow starts at {time_text(last_ps)}; {reason} more at most", flows.notes,
                   files=files)  # fmt: skip


def of_sizes(sizes: Sizes, options: Options, stem: str) -> Traffic:
    """Random flows of these sizes between random hosts. Raises `BadInput` without a load."""
    load = options.load_share()
    if load is None:
        raise sizes.source.refuse(
            1, "a distribution of sizes says nothing of the load", "give --load with the share of the hosts' links: 0.3"
        )
    name, text = _table(sizes, stem)
    lines = (
        "[[traffic]]",
        'name = "flows"',
        'between = "all"                 # assumed',
        f'arrivals = {{ poisson = {{ load = {_decimal(load)}, of = "host" }} }}    # --load; Poisson is assumed',
        f"size = {{ file = {_text(name)} }}",
    )
    return Traffic(lines, 10 * PS_PER_MS, "assumed", sizes.notes, random=True, files={name: text})


def of_requests(requests: Requests, sizes: Sizes, network: Network, options: Options, stem: str) -> Traffic:
    """Flows from servers to the client that requests them. Raises `BadInput` without a load, or for too much."""
    load = requests.load_bps or options.load_bps()
    if load is None:
        raise requests.source.refuse(
            requests.load_line, "no `load` is given", "give --load with the rate of the requested data: 800Mbps"
        )
    link = options.rate_bps() or STAR_BPS
    if load > link:
        raise requests.source.refuse(
            requests.load_line,
            f"a load of {rate_text(int(load))} over links of {rate_text(link)}, the rate by default",
            "give the rate of the hosts' links with --rate",
        )
    per_second = load * _PAYLOAD_SHARE / (8 * sizes.mean)
    name, text = _table(sizes, stem)
    hosts = list(network.hosts.values())
    servers = ", ".join(f'"{host}"' for host in hosts[:-1])
    all_weights = sum(weight for _, weight in requests.classes)
    kinds = [(f"dscp-{dscp}", Fraction(weight, all_weights)) for dscp, weight in requests.classes]
    lines: list[str] = []
    rounded: list[str] = []
    for kind, share in kinds if len(kinds) > 1 else [("requests", Fraction(1))]:
        rate, remark = _rate(per_second * share, requests)
        rounded += [remark] if remark else []
        lines += [
            "[[traffic]]",
            f'name = "{kind}"',
            f"from = [{servers}]",
            f'to = "{hosts[-1]}"',
            f'arrivals = {{ poisson = {{ rate = "{rate}" }} }}',
            f"size = {{ file = {_text(name)} }}",
            f'request = "{_REQUEST}"',
            "connections = { persistent = { pool = 5 } }    # assumed",
            "",
        ]
    count_ps = None if requests.count is None else -(-requests.count * PS_PER_S // per_second)
    end_ps = 10 * PS_PER_S if count_ps is None else min((count_ps // PS_PER_MS + 1) * PS_PER_MS, MAX_TIME_PS)
    mean = f"{float(sizes.mean):.0f} B"
    notes = [
        *(f"{host} is server {address}." for host, address in zip(hosts, requests.servers, strict=False)),
        f"{hosts[-1]} is the client, which requests flows from random servers at random times (Poisson).",
        f"Requests per second: load {rate_text(int(load))} * 1448/1538 / (8 * {mean}, the mean size).",
        *rounded,
        *sizes.notes,
    ]
    if len(kinds) > 1:
        notes.append(
            "A traffic for each DSCP, by weight. All share one queue, as the file does not say how ports serve them:"
            " give ports a `scheduler` and each traffic its `service-class` to tell them apart."
        )
    reason = "assumed" if requests.count is None else f"the mean time of {requests.count} requests"
    return Traffic(tuple(lines[:-1]), int(end_ps), reason, tuple(notes), random=True, files={name: text})


def example(network: Network) -> Traffic:
    """One flow, for files that have no traffic."""
    hosts = list(network.hosts.values())
    lines = (
        "[[traffic]]                       # assumed: no file has traffic",
        'name = "example"',
        f'flows = {{ list = [{{ from = "{hosts[0]}", to = "{hosts[-1]}", size = "10MB" }}] }}',
    )
    return Traffic(lines, PS_PER_S, "assumed")


def _text(value: str) -> str:
    """A string of TOML, whose escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False)


def _table(sizes: Sizes, stem: str) -> tuple[str, str]:
    """Name and text of a file with the distribution: bytes, and shares from 0 to 1."""
    rows = (f"{size} {_decimal(share)}" for size, share in sizes.points)
    return f"{stem}-sizes.cdf", "\n".join([f"# {sizes.notes[0]}", *rows]) + "\n"


def _decimal(value: Fraction) -> str:
    """Without an exponent, with 15 significant digits at most: as many as a double keeps."""
    found = Context(prec=15).divide(Decimal(value.numerator), Decimal(value.denominator))
    return format(found.normalize(), "f")


def _rate(value: Fraction, requests: Requests) -> tuple[str, str]:
    """Events per second as an experiment has them, and a note if it rounds them. Raises `BadInput` if none is left."""
    rounded = Fraction(round(value * _RATE_STEPS), _RATE_STEPS)
    if not rounded:
        raise requests.source.refuse(
            requests.load_line,
            f"the load makes {float(value):.3g} requests per second, and an experiment has no rate below 0.000001/s",
            "give a larger load, or smaller flows",
        )
    text = f"{_decimal(rounded)}/s"
    if abs(rounded - value) <= value * _RATE_ERROR:
        return text, ""
    return text, f"{float(value):.6g} requests per second are rounded to {text}: an experiment has six decimals."
