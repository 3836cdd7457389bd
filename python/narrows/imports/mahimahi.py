"""Mahimahi's and Pantheon's traces: a line for each opportunity to send a packet of 1500 bytes.

Facts from `traces/README` and `src/frontend/link_queue.cc` of mahimahi: a line is a time in milliseconds from the
trace's beginning; several packets in a millisecond are several lines; times do not go down; the trace repeats, and the
last time is its period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from narrows.imports.parts import MAX_TIME_PS, Schedule
from narrows.imports.quantities import PS_PER_MS

if TYPE_CHECKING:
    from narrows.imports.parts import Options
    from narrows.imports.reading import Source

FORMAT: Final = "Mahimahi trace"
OPPORTUNITY_BITS: Final = 8 * 1538
"""Bits that a link here sends in an opportunity: an IP packet of 1500 bytes, and 38 bytes of framing."""


def is_it(source: Source) -> bool:
    """One number on each of the first lines."""
    return all(len(line.words) == 1 and line.words[0].isdecimal() for line in source.lines[:2])


def parse(source: Source, _options: Options) -> Schedule:
    """Reads a trace. Raises `BadInput`."""
    times: list[int] = []
    for line in source.lines:
        if len(line.words) != 1:
            raise source.refuse(
                line, f"{len(line.words)} columns, not 1", "write one time in milliseconds on each line"
            )
        time = source.whole(line, line.words[0], "a time in milliseconds")
        if times and time < times[-1]:
            raise source.refuse(line, f"{time} follows {times[-1]}", "times of a trace must not go down")
        times.append(time)
    last = source.lines[-1]
    if times[-1] == 0:
        raise source.refuse(last, "the trace ends at 0 ms", "its last time is its length, which must be above 0")
    if times[-1] * PS_PER_MS > MAX_TIME_PS:
        raise source.refuse(last, f"the trace lasts {times[-1]} ms", "a run lasts a day at most: import a part of it")
    return Schedule(source, tuple(times))


def rates(times_ms: tuple[int, ...], bin_ms: int) -> list[tuple[int, int]]:
    """The trace as a line rate: from which millisecond on which rate, bit/s.

    A bin's rate carries as many full packets as there are opportunities in it. Bins without any are joined to the next
    that has one: a link cannot have rate 0, and packets wait for the next opportunity.
    """
    period = times_ms[-1]
    counts: dict[int, int] = {}
    for time in times_ms:
        counts[max(0, -(-time // bin_ms) - 1)] = counts.get(max(0, -(-time // bin_ms) - 1), 0) + 1
    found: list[tuple[int, int]] = []
    begin = 0
    for place in sorted(counts):
        end = min((place + 1) * bin_ms, period)
        rate = max(1, round(counts[place] * OPPORTUNITY_BITS * 1000 / (end - begin)))
        if not found or found[-1][1] != rate:
            found.append((begin, rate))
        begin = end
    return found
