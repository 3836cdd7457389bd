"""What a shell offers behind a verb: names of results, schemes, figures and components.

A shell asks while somebody waits, so nothing slow is imported here, and what cannot be read offers nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from narrows.errors import BadInput, EnvironmentLacks
from narrows.runs.index import DEFAULT_ROOT, Index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Complete = Callable[[Any, list[str], str], list[str]]

MEASURE: Final = "measure"
"""What `narrows show` calls the measures, which are no components."""
_SPECIAL: Final = re.compile(r"([\s\"'`$&|;<>()*?\[\]{}!\\])")
"""What a shell gives a meaning to."""


class _Escaped(str):
    """A name as bash has to insert it, which begins with what has been typed if the name does.

    Bash inserts what it is given; zsh and fish escape names themselves.
    """

    name: str

    def __new__(cls, name: str) -> _Escaped:
        made = super().__new__(cls, _SPECIAL.sub(r"\\\1", name))
        made.name = name
        return made

    def startswith(self, *arguments: Any) -> bool:
        return self.name.startswith(*arguments)


def _completing(names: Callable[[Any, str], Iterable[str]]) -> Complete:
    """The form in which typer asks: the context, what it does not fill, the word so far."""

    def complete(ctx: typer.Context, args: list[str], incomplete: str) -> list[str]:  # noqa: ARG001 - typer's names
        try:
            found = list(dict.fromkeys(names(ctx, incomplete)))
        except (BadInput, EnvironmentLacks, OSError):
            return []
        return [_Escaped(name) for name in found] if _escapes() else found

    return complete


def _escapes() -> bool:
    """Whether the shell is bash, and the word has no quotes around it."""
    *_, last = os.environ.get("COMP_WORDS", "").split("\n")
    return os.environ.get("_NARROWS_COMPLETE") == "complete_bash" and last[:1] not in ("'", '"')


def _index(context: Any) -> Index:
    return Index(Path(context.params.get("out") or DEFAULT_ROOT))


def _results(context: Any, word: str) -> list[str]:
    return _index(context).names(earlier="~" in word)


def _schemes(context: Any, _word: str) -> list[str]:
    # Behind an option that waits for its value, arguments are not assigned to parameters yet.
    run = context.params.get("run") or next(iter(context.args), None)
    return [member.case for member in _index(context).find(run).members] if run else []


def _figures(_context: Any, _word: str) -> list[str]:
    from narrows.claims import folders

    return folders.names()


def _examples(_context: Any, _word: str) -> list[str]:
    from narrows import packaged
    from narrows.cli.examples import KINDS

    return [path.name for path in sorted(packaged.examples().iterdir()) if path.suffix in KINDS]


def _components(context: Any, word: str) -> list[str]:
    """Kinds, names of all of them, and results; behind a kind its names."""
    from narrows import native
    from narrows.measures import names as measures

    kind, found = context.params.get("kind"), [(item["kind"], item["name"]) for item in native.components()]
    if kind == MEASURE:
        return measures.names()
    if kind is not None:
        return [name for own, name in found if own == kind]
    return [*(own for own, _ in found), MEASURE, *(name for _, name in found), *_results(context, word)]


def _of_kind(kind: str) -> Complete:
    def names(_context: Any, _word: str) -> list[str]:
        from narrows import native

        return [item["name"] for item in native.components() if item["kind"] == kind]

    return _completing(names)


results = _completing(_results)
schemes = _completing(_schemes)
figures = _completing(_figures)
components = _completing(_components)
examples = _completing(_examples)
controllers = _of_kind("controller")
programs = _of_kind("program")
