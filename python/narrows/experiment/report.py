"""What an experiment's table `[report]` chooses: which measures a sweep's charts show, and against which axis."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from narrows.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class ReportChoice:
    """The charts of a sweep; what is empty is left to the report."""

    x: str = ""
    """The axis on the horizontal axis, by its path."""
    y: tuple[str, ...] = ()
    """Measures, a chart each."""
    panels: str = ""
    """The axis whose values are panels, by its path."""


def report_from(raw: Mapping[str, Any] | None, file: str) -> ReportChoice:
    """The choice as the native module expands it, of an experiment that messages call `file`.

    Raises `BadInput` with file and line where there is no such measure, or one is listed twice.
    """
    if raw is None:
        return ReportChoice()
    names: list[str] = []
    for item in raw["y"]:
        name, place = str(item["name"]), f"{file}:{item['line']}"
        if (help_text := _mistake(name)) is not None:
            raise BadInput(f"{place}: unknown measure `{name}`\nhelp: {help_text}")
        if name in names:
            raise BadInput(f"{place}: measure `{name}` is listed twice\nhelp: leave one of them out")
        names.append(name)
    return ReportChoice(str(raw["x"] or ""), tuple(names), str(raw["panels"] or ""))


def _mistake(name: str) -> str | None:
    """How to mend a name that is no measure's; `None` for one that is."""
    from narrows.measures.bottleneck import SAME_QUEUE
    from narrows.measures.named import ALIASES, MEASURES  # here: `check` of a file without measures needs none

    known = [*MEASURES, *SAME_QUEUE]
    if name in known or name in ALIASES:
        return None
    near = difflib.get_close_matches(name, known, n=3)
    listed = " or ".join(f"`{each}`" for each in near)
    return f"did you mean {listed}?" if near else "docs/reference/measures.md has all of them"
