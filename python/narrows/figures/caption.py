"""What was run, in words: what stands below a picture, so that one that is copied out still says what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows import wording
from narrows.experiment import outline
from narrows.measures.stats import ENOUGH_SEEDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.runs.index import Entry


def of(entry: Entry, *, drawn: int | None = None, shared: Sequence[str] = ()) -> str:
    """Title, network, cases, seeds, simulated time, whether quick or full, and what made it, with its version.

    `drawn` is how many of the cases the picture shows, where that is not all, and `shared` what these have in common.
    """
    cases, seeds = wording.plural(len(entry.members), "plan"), wording.plural(len(entry.seeds), "seed")
    if drawn is not None and drawn < len(entry.members):
        cases = f"{wording.whole(drawn)} of {cases}" + (f" ({', '.join(shared)})" if shared else "")
    mode = "quick run" if entry.quick else "full run"
    return (
        f"{entry.title}. {_said(entry, 'network')}; {cases}, {seeds}; "
        f"{lasting(entry)}: {simulated_time(entry)}. "
        f"{entry.place or entry.name}, {mode}, {entry.made_by}."
    )


def intervals(entry: Entry) -> str:
    """What the thin lines on points and bars are; nothing of one seed."""
    seeds = len(entry.seeds)
    if seeds == 1:
        return ""
    return f"Thin lines: {'smallest and largest seed' if seeds < ENOUGH_SEEDS else '95 % intervals of the mean'}."


def lasting(entry: Entry) -> str:
    """What `simulated_time` is called: no kernel simulates."""
    return "run time" if any(part.backend.is_live for part in entry.parts) else "simulated"


def simulated_time(entry: Entry) -> str:
    """How long runs last; an index may be older than what is said of it there."""
    return dict(entry.setting).get(outline.SIMULATED_TIME) or outline.ends(member.end_ns for member in entry.members)


def traffic(entry: Entry) -> str:
    """What was sent over the network, and how much of it."""
    kinds = "; ".join(value for name, value in entry.setting if name == "traffic")
    return f"Traffic: {kinds}. Offered load: {_said(entry, 'offered load')}."


def _said(entry: Entry, name: str) -> str:
    """Of the setting; an index that was edited may lack it."""
    return dict(entry.setting).get(name, "–")
