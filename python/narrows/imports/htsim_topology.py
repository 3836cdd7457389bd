"""htsim's topologies (`.topo`): fat trees of two or three tiers, by tier.

Facts from `datacenter/fat_tree_topology.cpp` of csg-htsim and `spcl/HTSIM`: tier 0 are ToRs, 1 aggregation, 2 core
switches; speed, latency, radix and bundle (parallel links) of a tier are those of its links downwards; `Queue_Up` and
`Queue_Down` are bytes; latencies are nanoseconds; hosts are numbered ToR by ToR; aggregation switch a of a pod, of A,
reaches the core switches a, a + A, a + 2A ….
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from narrows.imports.parts import MAX_DELAY_PS, MAX_HOSTS, MAX_RATE_BPS, Network
from narrows.imports.quantities import number, rate_text, size_text, time_text
from narrows.imports.reading import quoted

if TYPE_CHECKING:
    from narrows.imports.parts import Options
    from narrows.imports.reading import Line, Source

FORMAT: Final = "htsim topology"
_HEADER: Final = ("nodes", "tiers", "podsize")
_KEYS: Final = (
    "downlink_speed_gbps", "downlink_latency_ns", "switch_latency_ns", "radix_up", "radix_down", "queue_up",
    "queue_down", "oversubscribed", "bundle",
)  # fmt: skip
_DEFAULTS: Final = {"switch_latency_ns": 0, "oversubscribed": 1, "bundle": 1}
_LIMIT: Final = "100pkt"
"""Buffer of a port of the fabric, where the file has none."""
_MAX_PARALLEL: Final = 8
"""Parallel links of `leaf-spine`."""
_MAX_K: Final = 24
"""Ports of the switches of `fat-tree`."""


@dataclass(frozen=True)
class _Tier:
    rate_bps: int
    delay_ps: int
    switch_ps: int
    up: int
    down: int
    bundle: int
    queue_up: int | None
    queue_down: int | None


@dataclass(frozen=True)
class _Shape:
    """How many of each there are."""

    hosts: int
    pods: int
    tors: int
    """In a pod."""
    aggregations: int
    """In a pod; with two tiers, all."""
    cores: int


def is_it(source: Source) -> bool:
    """A header with tiers or pods."""
    return any(line.words[0].lower() in {"tiers", "podsize"} for line in source.without_comments().lines[:4])


def parse(source: Source, _options: Options) -> Network:
    """Reads a topology. Raises `BadInput`."""
    header, tiers = _parse(source)
    shape = _shape(source, header, tiers)
    latency = any(tier.switch_ps for tier in tiers)
    notes = [f"{source.name}: speeds in Gbit/s, latencies in ns, queues in bytes, as htsim reads them."]
    if latency:
        notes.append("Switch latencies are part of the delay of the links that lead to the switch.")
    if any(tier.queue_down is None for tier in tiers):
        notes.append(f"Buffers that the file does not state are {_LIMIT}, the default here: htsim has them as options.")
    plain = not latency and tiers[0].bundle == 1
    if plain and len(tiers) == 2 and tiers[0].queue_up == tiers[1].queue_down and tiers[1].bundle <= _MAX_PARALLEL:
        return _leaf_spine(source, tiers, shape, notes)
    if plain and len(tiers) == 3 and _is_fat_tree(tiers, shape):
        return _fat_tree(source, tiers, shape, notes)
    return _graph(source, tiers, shape, notes)


def _parse(source: Source) -> tuple[dict[str, Line], list[_Tier]]:
    header: dict[str, Line] = {}
    own: dict[int, dict[str, tuple[int, Line]]] = {}
    begins: dict[int, Line] = {}
    current = -1
    for line in source.without_comments().lines:
        key = line.words[0].lower()
        if len(line.words) != 2:
            raise source.refuse(line, f"{quoted(' '.join(line.words))} is not understood", "write a key and a number")
        if key in _HEADER and current < 0 and key not in header:
            header[key] = line
        elif key == "tier":
            current = source.whole(line, line.words[1], "a tier")
            if current > 2 or current in own:
                raise source.refuse(line, f"tier {current} here", "tiers are 0, 1 and 2, each once")
            own[current], begins[current] = {}, line
        elif key in _KEYS and current >= 0 and key not in own[current]:
            own[current][key] = (source.whole(line, line.words[1], f"`{key}`"), line)
        else:
            wrong = "has no place here, or is repeated" if key in (*_HEADER, *_KEYS) else "is unknown"
            raise source.refuse(
                line, f"`{line.words[0]}` {wrong}", f"keys of a tier are {', '.join(_KEYS)}; see htsim's examples"
            )
    for key in _HEADER:
        if key not in header:
            raise source.refuse(1, f"no line says `{key.capitalize()}`", "begin with Nodes, Tiers and Podsize")
    count = source.whole(header["tiers"], header["tiers"].words[1], "the number of tiers")
    if count not in {2, 3} or sorted(own) != list(range(count)):
        raise source.refuse(
            header["tiers"], f"{count} tiers, and the file describes {len(own)}", "write 2 or 3 tiers, from Tier 0 on"
        )
    return header, [_tier(source, begins[tier], own[tier], top=tier == count - 1) for tier in range(count)]


def _tier(source: Source, begin: Line, own: dict[str, tuple[int, Line]], *, top: bool) -> _Tier:
    def value(key: str) -> int:
        if key not in own and key not in _DEFAULTS:
            raise source.refuse(begin, f"tier {begin.words[1]} has no `{key}`", "write one below this line")
        found, line = own.get(key, (_DEFAULTS.get(key, 0), begin))
        if found == 0 and key != "switch_latency_ns":
            raise source.refuse(line, f"`{key}` is 0", "write a number above 0")
        return found

    rate, delay = value("downlink_speed_gbps") * 10**9, value("downlink_latency_ns") * 1000
    switch = value("switch_latency_ns") * 1000
    for key, exceeds in (("downlink_speed_gbps", rate > MAX_RATE_BPS), ("downlink_latency_ns", delay > MAX_DELAY_PS)):
        if exceeds:
            raise source.refuse(own[key][1], f"`{key}` is too large", "at most 100000 Gbit/s and 60 s")
    if top and "queue_up" in own:
        raise source.refuse(own["queue_up"][1], "the top tier has no links upwards", "remove `Queue_Up`")
    queue = {key: value(key) if key in own else None for key in ("queue_up", "queue_down")}
    up = 0 if top else value("radix_up")
    return _Tier(rate, delay, switch, up, value("radix_down"), value("bundle"), queue["queue_up"], queue["queue_down"])


def _shape(source: Source, header: dict[str, Line], tiers: list[_Tier]) -> _Shape:
    """Counts what there is, as htsim does. Raises `BadInput` where the numbers do not agree."""

    def need(condition: bool, sentence: str) -> None:
        if not condition:
            raise source.refuse(header["nodes"], sentence, "correct the radix, the bundles, `Nodes` or `Podsize`")

    hosts, pod = (source.whole(header[key], header[key].words[1], f"`{key}`") for key in ("nodes", "podsize"))
    need(0 < hosts <= MAX_HOSTS, f"{hosts} nodes: there must be 1 to {MAX_HOSTS}")
    need(pod > 0 and hosts % pod == 0, f"{hosts} nodes are not whole pods of {pod}")
    need(len(tiers) == 3 or pod == hosts, f"with two tiers there is one pod, and {hosts} nodes are not {pod}")
    low, middle = tiers[0], tiers[1]
    need(low.bundle == 1, "hosts have one link: the bundle of tier 0 must be 1")
    need(pod % low.down == 0, f"a pod of {pod} nodes is not whole ToRs of {low.down}")
    tors = pod // low.down
    need(low.up % middle.bundle == 0, f"{low.up} links up of a ToR are not whole bundles of {middle.bundle}")
    aggregations = low.up // middle.bundle
    need(
        middle.down == tors * middle.bundle,
        f"aggregation switches have {middle.down} links down, and {tors} ToRs with {middle.bundle} each",
    )
    cores, pods = 0, hosts // pod
    if len(tiers) == 3:
        top = tiers[2]
        need(middle.up % top.bundle == 0, f"{middle.up} links up are not whole bundles of {top.bundle}")
        cores = aggregations * (middle.up // top.bundle)
        need(
            top.down == pods * top.bundle,
            f"core switches have {top.down} links down, and {pods} pods with {top.bundle} each",
        )
    for tier in range(len(tiers) - 1):
        _judge_oversubscription(source, tier, tiers)
    return _Shape(hosts, pods, tors, aggregations, cores)


def _judge_oversubscription(source: Source, tier: int, tiers: list[_Tier]) -> None:
    """The stated ratio must be that of the links: htsim computes the number of switches from it."""
    own, above = tiers[tier], tiers[tier + 1]
    begins = [line for line in source.lines if line.words[0].lower() == "tier"]
    at = next(line for line in begins if int(line.words[1]) == tier)
    after = next((line.number for line in begins if line.number > at.number), source.lines[-1].number + 1)
    stated, where = 1, at
    for line in source.lines:
        if at.number < line.number < after and line.words[0].lower() == "oversubscribed":
            stated, where = int(number(line.words[1]) or 1), line
    if own.down * own.rate_bps != stated * own.up * above.rate_bps:
        raise source.refuse(
            where,
            f"tier {tier} has {own.down} links down at {rate_text(own.rate_bps)} and {own.up} up at "
            f"{rate_text(above.rate_bps)}, which is not oversubscribed by {stated}",
            "correct `Oversubscribed`, which is 1 if it is left out, or the radix",
        )


def _limit(queue: int | None) -> str:
    return _LIMIT if queue is None else size_text(queue)


def _class(tier: _Tier, queue: int | None) -> str:
    return f'rate = "{rate_text(tier.rate_bps)}", delay = "{time_text(tier.delay_ps)}", limit = "{_limit(queue)}"'


def _leaf_spine(source: Source, tiers: list[_Tier], shape: _Shape, notes: list[str]) -> Network:
    low, top = tiers
    lines = (
        "[topology.leaf-spine]",
        f"leaves = {shape.tors}",
        f"spines = {shape.aggregations}",
        f"hosts-per-leaf = {low.down}",
        *([f"parallel-links = {top.bundle}"] if top.bundle > 1 else []),
        f"fabric = {{ {_class(top, top.queue_down)} }}",
        f"edge = {{ {_class(low, low.queue_down)} }}",
    )
    names = (f"l{leaf}-{host}" for leaf in range(1, shape.tors + 1) for host in range(1, low.down + 1))
    return Network(source, lines, dict(enumerate(names)), (*notes, _numbers("l1-1")))


def _is_fat_tree(tiers: list[_Tier], shape: _Shape) -> bool:
    """Whether `fat-tree` has the same switches and links."""
    half = tiers[0].down
    radices = all(tier.down == tier.up == half and tier.bundle == 1 for tier in tiers[:2])
    fabric = {(tier.rate_bps, tier.delay_ps, tier.queue_down) for tier in tiers[1:]}
    fabric |= {(tiers[place + 1].rate_bps, tiers[place + 1].delay_ps, tiers[place].queue_up) for place in range(2)}
    return radices and shape.pods == tiers[2].down == 2 * half <= _MAX_K and tiers[2].bundle == 1 and len(fabric) == 1


def _fat_tree(source: Source, tiers: list[_Tier], shape: _Shape, notes: list[str]) -> Network:
    k = shape.pods
    lines = (
        "[topology.fat-tree]",
        f"k = {k}",
        f"fabric = {{ {_class(tiers[1], tiers[1].queue_down)} }}",
        f"edge = {{ {_class(tiers[0], tiers[0].queue_down)} }}",
    )
    return Network(source, lines, dict(enumerate(fat_tree_hosts(k))), (*notes, _numbers("p1e1-1")))


def fat_tree_hosts(k: int) -> list[str]:
    """Names of the hosts of `fat-tree`, in its order, which is htsim's."""
    half = range(1, k // 2 + 1)
    return [f"p{pod}e{edge}-{host}" for pod in range(1, k + 1) for edge in half for host in half]


def _graph(source: Source, tiers: list[_Tier], shape: _Shape, notes: list[str]) -> Network:
    """Switch by switch. The latency of a switch is part of the delay of the links that lead there."""
    low, middle = tiers[0], tiers[1]
    tors = [f"tor-{tor}" for tor in range(shape.pods * shape.tors)]
    aggregations = [f"agg-{agg}" for agg in range(shape.pods * shape.aggregations)]
    cores = [f"core-{core}" for core in range(shape.cores)]
    switches = [f'    {{ name = "{name}", rack = {rack} }},' for rack, name in enumerate(tors, 1)]
    switches += [f'    {{ name = "{name}" }},' for name in (*aggregations, *cores)]
    # A host's link has one delay in both directions here, so half of the ToR's latency is on each.
    edge = f'rate = "{rate_text(low.rate_bps)}", delay = "{time_text(low.delay_ps + low.switch_ps // 2)}"'
    links = []
    for pod in range(shape.pods):
        for tor in range(pod * shape.tors, (pod + 1) * shape.tors):
            for agg in range(pod * shape.aggregations, (pod + 1) * shape.aggregations):
                links += [_link(tors[tor], aggregations[agg], low, middle)] * middle.bundle
    if cores:
        top = tiers[2]
        for agg, name in enumerate(aggregations):
            for core in range(agg % shape.aggregations, shape.cores, shape.aggregations):
                links += [_link(name, cores[core], middle, top)] * top.bundle
    hosts = {tor * low.down + place: f"h{tor}-{place + 1}" for tor in range(len(tors)) for place in range(low.down)}
    lines = (
        "[topology.graph]",
        f'edge = {{ {edge}, limit = "{_limit(low.queue_down)}" }}',
        "switches = [",
        *switches,
        "]",
        "hosts = [",
        *(f'    {{ name = "h{tor}", count = {low.down}, switch = "{name}" }},' for tor, name in enumerate(tors)),
        "]",
        "links = [",
        *links,
        "]",
    )
    halves = ["Half of a ToR's latency is on each direction of its hosts' links."] if low.switch_ps else []
    return Network(source, lines, hosts, (*notes, *halves, _numbers("h0-1")))


def _link(lower: str, upper: str, low: _Tier, high: _Tier) -> str:
    """A link between tiers; `forward` leads up."""
    there, back = time_text(high.delay_ps + high.switch_ps), time_text(high.delay_ps + low.switch_ps)
    return (
        f'    {{ ends = ["{lower}", "{upper}"], both.rate = "{rate_text(high.rate_bps)}", '
        f'forward = {{ delay = "{there}", limit = "{_limit(low.queue_up)}" }}, '
        f'backward = {{ delay = "{back}", limit = "{_limit(high.queue_down)}" }} }},'
    )


def _numbers(first: str) -> str:
    return f"Hosts are in htsim's order: its host 0 is {first}."
