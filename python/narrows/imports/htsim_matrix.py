"""htsim's connection matrices (`.cm`): a line for each flow.

Facts from `datacenter/connection_matrix.cpp` of csg-htsim: `load` reads `start` in picoseconds, while `save` and
earlier versions of `load` have it in microseconds. So the unit of a start other than 0 cannot be known. A size of 0 is
a flow without an end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from narrows.imports.parts import MAX_FLOW_BYTES, MAX_TIME_PS, Flow, Flows
from narrows.imports.quantities import number
from narrows.imports.reading import quoted

if TYPE_CHECKING:
    from narrows.imports.parts import Options
    from narrows.imports.reading import Line, Source

FORMAT: Final = "htsim connection matrix"
_LINE: Final = "write it like `334->395 id 1 start 0 size 2000000`"
_TRIGGERED: Final = {"trigger", "send_done_trigger", "recv_done_trigger", "addon"}
"""Keys of flows that begin when others end."""


def is_it(source: Source) -> bool:
    """A header with the number of connections, or such a line."""
    first = source.without_comments().lines[:3]
    return any(line.words[0] == "Connections" or "->" in line.words[0] for line in first)


def parse(source: Source, options: Options) -> Flows:
    """Reads a connection matrix. Raises `BadInput`."""
    header: dict[str, tuple[int, Line]] = {}
    flows: list[Flow] = []
    for line in source.without_comments().lines:
        key = line.words[0]
        if "->" in key:
            if "Nodes" not in header:
                raise source.refuse(line, "no line `Nodes` precedes the connections", "begin the file with `Nodes 128`")
            flows.append(_flow(source, line, header["Nodes"][0], options))
        elif key in {"Nodes", "Connections", "Triggers", "Failures"} and len(line.words) == 2:
            header[key] = (source.whole(line, line.words[1], f"how many {key.lower()} there are"), line)
        elif key in {"trigger", "failure"}:
            raise source.refuse(line, f"a {key} cannot be imported", "remove it, or use htsim for this file")
        else:
            raise source.refuse(line, f"{quoted(' '.join(line.words))} is not understood", _LINE)
    for key in ("Triggers", "Failures"):
        if header.get(key, (0,))[0]:
            raise source.refuse(header[key][1], f"{key.lower()} cannot be imported", "remove them from the file")
    if "Connections" not in header:
        raise source.refuse(1, "no line says how many connections there are", "write `Connections 21`")
    stated, at = header["Connections"]
    if stated != len(flows):
        raise source.refuse(at, f"{stated} connections are announced and {len(flows)} follow", "correct the number")
    if not flows:
        raise source.refuse(at, "there are no connections", _LINE)
    ids = "" if not any(flow.size is None for flow in flows) else " A size of 0 is a flow until the run's end."
    stated_unit = "; `start` is 0 in every line" if not any(flow.start_ps for flow in flows) else (
        f"; `start` in {options.start_unit}, as --start-unit says"
    )  # fmt: skip
    return Flows(source, tuple(flows), header["Nodes"][0], (f"{source.name}: sizes in bytes{stated_unit}.{ids}",))


def _flow(source: Source, line: Line, nodes: int, options: Options) -> Flow:
    ends = line.words[0].split("->")
    if len(ends) != 2:
        raise source.refuse(line, f"{quoted(line.words[0])} is no pair of nodes", _LINE)
    one, other = (source.whole(line, end, "a node") for end in ends)
    if one == other or max(one, other) >= nodes:
        raise source.refuse(
            line, f"a flow from {one} to {other}", f"nodes are two different numbers below {nodes}, the number of nodes"
        )
    values: dict[str, str] = {}
    words = iter(line.words[1:])
    for key in words:
        if key in _TRIGGERED:
            raise source.refuse(
                line, f"`{key}`: flows that depend on others cannot be imported", "give each flow a start, or use GOAL"
            )
        if key == "prio":
            raise source.refuse(line, "`prio` cannot be imported", "remove it; write a `scheduler` in the experiment")
        value = next(words, None)
        if key not in {"id", "start", "size"} or value is None or key in values:
            raise source.refuse(line, f"{quoted(key)} is not understood", _LINE)
        values[key] = value
    for key in ("start", "size"):
        if key not in values:
            raise source.refuse(line, f"`{key}` is missing", _LINE)
    size = source.whole(line, values["size"], "a size in bytes")
    if size > MAX_FLOW_BYTES:
        raise source.refuse(line, f"a flow of {size} bytes", "a flow has at most 10 TB")
    return Flow(one, other, _start(source, line, values["start"], options), size or None, line.number)


def _start(source: Source, line: Line, text: str, options: Options) -> int:
    start = number(text)
    if start is None:
        raise source.refuse(line, f"{quoted(text)} is no start time", _LINE)
    if start == 0:
        return 0
    scale = options.start_scale()
    if scale is None:
        raise source.refuse(
            line,
            f"the unit of `start {text}` cannot be known",
            "give --start-unit ps for files that csg-htsim and its successors read, --start-unit us for older ones",
        )
    ps = start * scale
    if ps.denominator != 1 or ps >= MAX_TIME_PS:
        raise source.refuse(line, f"a flow starts at {text} {options.start_unit}", "whole picoseconds, before a day")
    return int(ps)
