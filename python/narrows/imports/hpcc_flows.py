"""Flows of the HPCC simulator and its successors (`flow.txt`): a count, then a line for each flow.

Facts from `simulation/scratch/third.cc` of High-Precision-Congestion-Control: a line is
`source destination priority-group destination-port bytes start`, with the start in seconds. It reads as many lines as
the first line says; what follows is not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from narrows.imports.parts import MAX_FLOW_BYTES, MAX_TIME_PS, Flow, Flows
from narrows.imports.quantities import PS_PER_S, number
from narrows.imports.reading import quoted

if TYPE_CHECKING:
    from narrows.imports.parts import Options
    from narrows.imports.reading import Line, Source

FORMAT: Final = "HPCC flows"
_LINE: Final = "write it like `0 5 3 100 1000000 2.005`: source, destination, priority, port, bytes, start in seconds"


def is_it(source: Source) -> bool:
    """A number alone, and then lines of about six columns, but not one line of as many columns as the number says."""
    first, *rest = source.lines
    if len(first.words) != 1 or not first.words[0].isdecimal() or not rest or len(rest[0].words) not in range(4, 9):
        return False
    alone = len(rest) == 1 or len(rest[1].words) != len(rest[0].words)
    return not (alone and first.words[0] == str(len(rest[0].words)))


def parse(source: Source, _options: Options) -> Flows:
    """Reads a list of flows. Raises `BadInput`."""
    first, *rest = source.lines
    count = source.whole(first, first.words[0], "how many flows follow")
    if count == 0 or count > len(rest):
        raise source.refuse(first, f"{count} flows are announced and {len(rest)} lines follow", "correct the number")
    flows = tuple(_flow(source, line) for line in rest[:count])
    notes = [f"{source.name}: sizes in bytes, starts in seconds; ports of destinations are left out."]
    groups = sorted({line.words[2] for line in rest[:count]}, key=lambda word: (len(word), word))
    if len(groups) > 1:
        notes.append(
            f"Priority groups {', '.join(groups)} share one queue: the file does not say how ports serve them."
        )
    if len(rest) > count:
        notes.append(f"What follows the first {count} flows is left out, as HPCC does.")
    return Flows(source, flows, None, tuple(notes))


def _flow(source: Source, line: Line) -> Flow:
    if len(line.words) != 6:
        raise source.refuse(line, f"{len(line.words)} columns, not 6", _LINE)
    one, other, _, _, size = (
        source.whole(line, word, what)
        for word, what in zip(
            line.words, ("a node", "a node", "a priority group", "a port", "a size in bytes"), strict=False
        )
    )
    start = number(line.words[5])
    if start is None:
        raise source.refuse(line, f"{quoted(line.words[5])} is no time in seconds", _LINE)
    ps = start * PS_PER_S
    if ps >= MAX_TIME_PS:
        raise source.refuse(line, f"a flow starts at {line.words[5]} s", "a run lasts a day at most")
    if one == other:
        raise source.refuse(line, f"a flow from {one} to itself", _LINE)
    if not 0 < size <= MAX_FLOW_BYTES:
        raise source.refuse(line, f"a flow of {size} bytes", "a flow has at least 1 byte and at most 10 TB")
    return Flow(one, other, round(ps), size, line.number)
