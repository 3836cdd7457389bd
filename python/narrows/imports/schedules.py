"""Traces of a link's rate, as a network with one such link and the events that change it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from narrows.imports.mahimahi import rates
from narrows.imports.parts import MAX_TIME_PS, Network
from narrows.imports.quantities import PS_PER_MS, PS_PER_S, rate_text, time_text
from narrows.imports.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.imports.parts import Options, Schedule

_BIN_MS: Final = 100
_SHORTEST_PS: Final = 10 * PS_PER_S
_MAX_EVENTS: Final = 10_000
"""Events of a link (crates/narrows-scenario)."""
_DEFAULT_BPS: Final = 10**9
_DIRECTIONS: Final = (("near->far", "forward"), ("far->near", "backward"))


@dataclass(frozen=True)
class Scheduled:
    """A network, its traffic and its events."""

    network: Network
    traffic: Traffic
    events: tuple[str, ...]


def of_schedules(schedules: Sequence[Schedule], options: Options) -> Scheduled:
    """One trace is of the direction of the data, as `mm-link`'s uplink; a second is of the other. Raises `BadInput`."""
    length_ps = max(schedule.times_ms[-1] for schedule in schedules) * PS_PER_MS
    end_ps = options.end_ps() or max(length_ps, _SHORTEST_PS)
    bin_ms = options.bin_ms() or _BIN_MS
    link, events, largest = [], [], _DEFAULT_BPS
    notes = [
        f"Rates are means over {time_text(bin_ms * PS_PER_MS)}: 1538 bytes, with framing, for each opportunity.",
        "Bins without an opportunity are joined to the next with one: a packet there waits for that opportunity.",
        "Delay and buffer of the link are not in a trace: they are the defaults of a link between sites.",
    ]
    for schedule, (name, direction) in zip(schedules, _DIRECTIONS, strict=False):
        changes = rates(schedule.times_ms, min(bin_ms, schedule.times_ms[-1]))
        largest = max(largest, *(rate for _, rate in changes))
        link.append(f'{direction} = {{ rate = "{rate_text(changes[0][1])}" }}')
        own = _events(schedule, changes, name, end_ps)
        events += own
        repeats = "; it repeats" if end_ps > schedule.times_ms[-1] * PS_PER_MS else ""
        notes.append(
            f"{schedule.source.name}: {name}, opportunities for packets: {len(schedule.times_ms)} in "
            f"{time_text(schedule.times_ms[-1] * PS_PER_MS)}{repeats}."
        )
    if len(schedules) == 1:
        notes.append(f"No trace is given for {_DIRECTIONS[1][0]}: it has the default rate.")
    edge = _DEFAULT_BPS
    while edge < largest:
        edge *= 10
    lines = (
        "[topology.graph]",
        f'wan = {{ rate = "{rate_text(_DEFAULT_BPS)}", delay = "5ms", limit = "10000pkt" }}',
        f'edge = {{ rate = "{rate_text(edge)}", delay = "5us", limit = "100pkt" }}',
        'switches = [{ name = "near", site = 1 }, { name = "far", site = 2 }]',
        'hosts = [{ name = "sender", switch = "near" }, { name = "receiver", switch = "far" }]',
        f'links = [{{ ends = ["near", "far"], {", ".join(link)} }}]',
    )
    traffic = Traffic(
        (
            "[[traffic]]                       # assumed: a trace has no traffic",
            'name = "transfer"',
            'from = "sender"',
            'to = "receiver"',
            "long = {}",
            "",
            "[sample]                          # assumed",
            'goodput = "100ms"',
            'queues = "10ms"',
        ),
        end_ps,
        "--end" if options.end else "the length of the longest trace, or 10 s",
    )
    return Scheduled(
        Network(schedules[0].source, lines, {0: "sender", 1: "receiver"}, tuple(notes)), traffic, tuple(events)
    )


def _events(schedule: Schedule, changes: list[tuple[int, int]], link: str, end_ps: int) -> list[str]:
    """Changes after the beginning, until the run's end: the trace repeats. Raises `BadInput` if there are too many."""
    period_ps = schedule.times_ms[-1] * PS_PER_MS
    placed: list[tuple[int, int]] = []
    last = changes[0][1]
    for begin_ps in range(0, min(end_ps, MAX_TIME_PS), period_ps):
        for at_ms, rate in changes:
            at_ps = begin_ps + at_ms * PS_PER_MS
            if rate != last and at_ps < end_ps:
                placed.append((at_ps, rate))
                last = rate
        if len(changes) == 1:
            break
        if len(placed) > _MAX_EVENTS:
            raise schedule.source.refuse(
                schedule.source.lines[-1],
                f"the trace changes the rate more than {_MAX_EVENTS} times until {time_text(end_ps)}",
                "give a longer --bin, such as 1s, or an earlier --end",
            )
    return [
        line
        for at_ps, rate in placed
        for line in ("[[event]]", f'at = "{time_text(at_ps)}"', f'link = "{link}"', f'rate = "{rate_text(rate)}"')
    ]
