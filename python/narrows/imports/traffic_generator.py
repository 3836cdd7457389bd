"""Configurations of the clients of HKUST's TrafficGenerator.

Facts from `src/client/client.c` and `incast-client.c`: a client requests flows from random servers at times of a
Poisson process; a request is 16 bytes; `load` counts bits on the wire, of which 1448/1538 are data; `rate` limits a
flow's sender, 0 does not; `dscp`, `rate` and `fanout` have weights.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from narrows.imports.parts import Requests
from narrows.imports.quantities import number

if TYPE_CHECKING:
    from fractions import Fraction

    from narrows.imports.parts import Options
    from narrows.imports.reading import Line, Source

FORMAT: Final = "TrafficGenerator client"
_KEYS: Final = {"server": 3, "load": 2, "num_reqs": 2, "req_size_dist": 2, "dscp": 3, "rate": 3, "fanout": 3}
"""Each key, and how many words its lines have."""
_MBPS: Final = re.compile(r"(.+)Mbps")


def is_it(source: Source) -> bool:
    """The first line has one of its keys."""
    return source.without_comments().lines[0].words[0] in _KEYS


def parse(source: Source, options: Options) -> Requests:
    """Reads a configuration. Raises `BadInput`."""
    by_key: dict[str, list[Line]] = {key: [] for key in _KEYS}
    for line in source.without_comments().lines:
        key = line.words[0]
        if key not in _KEYS:
            raise source.refuse(line, f"the key `{key}` is unknown", f"keys are {', '.join(_KEYS)}")
        if len(line.words) != _KEYS[key]:
            raise source.refuse(line, f"`{key}` has {_KEYS[key] - 1} values, not {len(line.words) - 1}", "correct it")
        if by_key[key] and key in {"load", "num_reqs", "req_size_dist"}:
            raise source.refuse(line, f"a second `{key}`", "keep one")
        by_key[key].append(line)
    for key in ("server", "req_size_dist"):
        if not by_key[key]:
            raise source.refuse(source.lines[-1], f"no `{key}` is given", "write one")
    for line in by_key["rate"]:
        if _mbps(source, line) and _weight(source, line):
            raise source.refuse(
                line,
                "senders that limit a flow's rate cannot be imported",
                "keep `rate 0Mbps`, which sets no limit",
            )
    for line in by_key["fanout"]:
        if source.whole(line, line.words[1], "a fanout") != 1 and _weight(source, line):
            raise source.refuse(
                line,
                "requests of several flows of random sizes cannot be imported",
                "keep `fanout 1`, or write an `incast` with one size",
            )
    load = next((_load(source, line) for line in by_key["load"]), None)
    if load is not None and options.load is not None:
        raise source.refuse(by_key["load"][0], "the file has a load", "leave --load out")
    return Requests(
        source,
        servers=tuple(" ".join(line.words[1:]) for line in by_key["server"]),
        sizes=by_key["req_size_dist"][0].words[1],
        sizes_line=by_key["req_size_dist"][0].number,
        load_bps=load,
        load_line=by_key["load"][0].number if by_key["load"] else source.lines[-1].number,
        count=next((_count(source, line) for line in by_key["num_reqs"]), None),
        classes=tuple((_dscp(source, line), _weight(source, line)) for line in by_key["dscp"] if _weight(source, line)),
    )


def _mbps(source: Source, line: Line) -> Fraction:
    match = _MBPS.fullmatch(line.words[1])
    value = number(match.group(1)) if match else None
    if value is None:
        raise source.refuse(line, f"`{line.words[0]} {line.words[1]}` has no unit that is known", "write 500Mbps")
    return value * 10**6


def _load(source: Source, line: Line) -> Fraction:
    load = _mbps(source, line)
    if not load:
        raise source.refuse(line, "the load is 0", "write the rate at which data is requested, such as 800Mbps")
    return load


def _count(source: Source, line: Line) -> int:
    count = source.whole(line, line.words[1], "how many requests")
    if not count:
        raise source.refuse(line, "there are no requests", "write how many, such as `num_reqs 5000`")
    return count


def _weight(source: Source, line: Line) -> int:
    return source.whole(line, line.words[2], "a weight")


def _dscp(source: Source, line: Line) -> int:
    value = source.whole(line, line.words[1], "a DSCP")
    if value > 63:
        raise source.refuse(line, f"a DSCP of {value}", "a DSCP is at most 63")
    return value
