"""How a claim is measured: expressions over named measures, or arithmetic. One binding per claim id.

A figure's folder has the bindings of its own claims in `bindings.py`; those of several figures, and arithmetic, are in
the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True)
class Instead:
    """What is judged in place of a ratio whose denominator is as good as zero."""

    denominator: str
    at_most: float
    """Up to this mean over the seeds the ratio says nothing."""
    expressions: tuple[tuple[str, tuple[float, float]], ...]
    """Each with its accepted interval."""


@dataclass(frozen=True)
class Binding:
    """The measures of one claim."""

    expressions: tuple[str, ...] = ()
    """For numbers and ratios: each must lie in the claim's interval. Orderings are read from the claim itself."""
    orders: tuple[str, ...] = ()
    """For orderings over a sweep's axes: the claim's relations in terms of measures and cases."""
    computed: Callable[[], float | Sequence[float]] | None = None
    """For what needs no run: the number, or numbers, that our code or the stated arithmetic gives."""
    instead: Instead | None = None
    """For a ratio whose claim says what counts where its denominator is near zero."""
    of_means: bool = False
    """For a ratio of what is rare: that of the means over the seeds. The mean of the ratios is decided by the seed with
    the least denominator."""
    each: tuple[tuple[float, float], ...] = ()
    """For `computed`: an interval for each number, within the claim's own, which is one for all."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For orderings: a name in the claim → the measures that it stands for; each is judged."""
    over: Literal["every", "max"] = "every"
    """With several scenarios: each must satisfy the claim, or the largest value does ("up to")."""
    also: tuple[str, ...] = ()
    """Reported beside the verdict, not judged."""
    full_only: bool = False
    """Not judged on quick runs: short ones of heavy-tailed traffic do not offer what they say, and have few samples."""
    rank_slack: float = 0.0
    """Who is within this share of the next better one has that one's rank."""
    extreme_slack: float = 0.05
    """`is minimum` holds within this share of the minimum."""
    setup: bool = False
    """A check that the experiment is configured as described: the load that it asks for, a share that it sets. It says
    nothing of a scheme, and is counted with arithmetic."""
    reading: str = ""
    """The reading by which this claim is judged, where it is not the one that the text favours for its figure."""
    scenarios: tuple[str, ...] = ()
    """Where the claim's own `scenario` names no experiment."""


def along(axis: str, values: Sequence[str], *relations: str) -> tuple[str, ...]:
    """Relations at each value of a sweep's axis, which they have as `AT`: `fct(a · AT) < fct(b · AT)`."""
    return tuple(relation.replace("AT", f"{axis}={value}") for value in values for relation in relations)
