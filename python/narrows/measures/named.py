"""Every named measure, and how the expressions of claims are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from narrows.measures import (  # noqa: F401 - each registers its measures
    background,
    bridges,
    bursts,
    completion,
    joining,
    lossy,
    ports,
    queues,
    requests,
    sharing,
    steps,
    transfers,
)
from narrows.measures.registry import (
    ALIASES,
    MEASURES,
    Measure,
    NotEvaluable,
    measure_called,
    value_by_seed,
    value_if_any,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ALIASES",
    "LANGUAGE",
    "MEASURES",
    "Measure",
    "NotEvaluable",
    "document",
    "measure_called",
    "table",
    "value_by_seed",
    "value_if_any",
]

LANGUAGE: Final = (
    "A measure has one value for each seed. loss(gemini) is that of the arm or case gemini, loss() the mean over "
    "all of them, fct_mean(gemini / web) that of the flows of the traffic web alone. In a sweep a case is called "
    "ARM · AXIS=VALUE; within min(…) and max(…) a star stands for any text in its name. rank(loss, gemini) is the "
    "place of an arm among those of the claim, 1 for the smallest. Flows that answer a request have no completion "
    "time of their own: it is the request's. 1 KB is 1000 bytes, 1e-5 is one of 100 000."
)
"""How a claim's expressions are read."""


def table(chosen: Iterable[Measure]) -> list[str]:
    """Name, unit and meaning of each, as lines of Markdown."""
    rows = (f"| `{found.name}` | {found.unit or '–'} | {found.about} |" for found in chosen)
    return ["| measure | unit | what it is |", "|---|---|---|", *rows]


def document() -> str:
    """The reference of all measures, `docs/reference/measures.md`."""
    title = [
        "# Measures",
        "",
        "What the claims of a paper are made of, and what `narrows reproduce` shows of them.",
        "",
    ]
    return "\n".join([*title, LANGUAGE, "", *table(MEASURES.values())]) + "\n"
