"""Cumulative distributions of flow sizes: TrafficGenerator's, which end at 1, and HPCC's, which end at 100."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from narrows.imports.parts import MAX_FLOW_BYTES, Sizes
from narrows.imports.quantities import number
from narrows.imports.reading import quoted

if TYPE_CHECKING:
    from narrows.imports.parts import Options
    from narrows.imports.reading import Line, Source

FORMAT: Final = "flow size distribution"
_MAX_AMBIGUOUS: Final = 100_000
"""A table that ends below this may count packets, as a `conf/CDF_dctcp.txt` of TrafficGenerator: it ends at 20000."""
_LINE: Final = "write a size and a cumulative probability, such as `10000 0.15`"


def is_it(source: Source) -> bool:
    """Two or three numbers on each of the first lines."""
    first = source.without_comments().lines[:2]
    return all(len(line.words) in {2, 3} and None not in map(number, line.words) for line in first)


def parse(source: Source, options: Options) -> Sizes:
    """Reads a distribution. Raises `BadInput`."""
    points: list[tuple[Fraction, Fraction]] = []
    lines = source.without_comments().lines
    for line in lines:
        size, share = _point(source, line)
        if points and size < points[-1][0]:
            raise source.refuse(line, "sizes must not go down", _LINE)
        if points and share < points[-1][1]:
            raise source.refuse(line, "cumulative probabilities must not go down", _LINE)
        points.append((size, share))
    last, (largest, end) = lines[-1], points[-1]
    if end not in {1, 100}:
        raise source.refuse(
            last, f"the last probability is {last.words[1]}", "end the table with probability 1, or 100"
        )
    scale = options.size_scale()
    if scale is None and largest < _MAX_AMBIGUOUS:
        raise source.refuse(
            last,
            f"the largest size is {last.words[0]}, and the file does not say of what",
            "give --size-unit 1B if sizes are in bytes, or the bytes of a packet, such as --size-unit 1460B",
        )
    if not 0 < largest * (scale or 1) <= MAX_FLOW_BYTES:
        raise source.refuse(last, f"the largest size is {last.words[0]}", "it must be above 0 and at most 10 TB")
    stated = "as --size-unit says" if scale else "as TrafficGenerator and HPCC read them"
    unit = f"{scale} B each" if scale and scale != 1 else "bytes"
    dialect = "0 to 100" if end == 100 else "0 to 1"
    return Sizes(
        source,
        tuple((int(size * (scale or 1)), share / end) for size, share in points),
        (f"{source.name}: probabilities from {dialect}; sizes in {unit}, {stated}; linear between points.",),
    )


def _point(source: Source, line: Line) -> tuple[Fraction, Fraction]:
    if len(line.words) == 3:
        raise source.refuse(
            line,
            "three columns: a table of ns-2, whose sizes are in packets",
            "keep the first and the last column, and give --size-unit with the bytes of a packet",
        )
    values = [number(word) for word in line.words]
    if len(values) != 2 or values[0] is None or values[1] is None:
        raise source.refuse(line, f"{quoted(' '.join(line.words))} is no point of a distribution", _LINE)
    if values[0].denominator != 1:
        raise source.refuse(line, f"the size {line.words[0]} is not whole", _LINE)
    return values[0], Fraction(values[1])
