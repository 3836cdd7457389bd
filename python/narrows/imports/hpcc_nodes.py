"""Nodes to observe of the HPCC simulator (`trace.txt`): their number, and then their numbers.

Facts from `simulation/scratch/third.cc` of High-Precision-Congestion-Control: packets are logged at these nodes,
numbers beyond the topology are ignored, and so is what follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from narrows.imports.parts import Nodes

if TYPE_CHECKING:
    from narrows.imports.parts import Options
    from narrows.imports.reading import Source

FORMAT: Final = "HPCC nodes to trace"


def is_it(source: Source) -> bool:
    """A number alone, and then as many numbers, on one line or several."""
    first, *rest = source.lines
    if len(first.words) != 1 or not first.words[0].isdecimal() or len(first.words[0]) > 9:
        return False
    count = int(first.words[0])
    words = [word for line in rest for word in line.words][:count]
    return len(words) == count and all(word.isdecimal() for word in words)


def parse(source: Source, _options: Options) -> Nodes:
    """Reads a list of nodes. Raises `BadInput`."""
    first, *rest = source.lines
    count = source.whole(first, first.words[0], "how many nodes follow")
    placed = [(line, word) for line in rest for word in line.words]
    if len(placed) < count:
        raise source.refuse(first, f"{count} nodes are announced and {len(placed)} follow", "correct the number")
    numbers = (source.whole(line, word, "a node") for line, word in placed[:count])
    return Nodes(source, tuple(dict.fromkeys(numbers)))
