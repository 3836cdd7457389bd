"""The reference of the library, `docs/reference/python.md`, from its docstrings: `python -m narrows.reference`."""

from __future__ import annotations

import ast
import inspect
import re
from itertools import pairwise
from pathlib import Path
from textwrap import dedent, fill
from typing import TYPE_CHECKING, Any, Final

import narrows
from narrows import frames
from narrows.comparison import Comparison
from narrows.controller import Controller
from narrows.experiment import Difference, Plan
from narrows.learning import Interval, Learner
from narrows.learning.environment import CongestionControl
from narrows.runs.running import Progress
from narrows.traces import Explanation, Traced

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE: Final = Path("docs/reference/python.md")
INTRODUCTION: Final = (
    "The classes and functions of the package `narrows`, which defines experiments, runs them and reads their results. "
    "This page is generated from docstrings by `python -m narrows.reference`."
)
CLASSES: Final = (
    narrows.Experiment, Plan, Difference, narrows.Handle, Progress, narrows.Results, frames.Frames, Comparison,
    Explanation, Traced, Controller, Learner, Interval, CongestionControl,
)  # fmt: skip
FUNCTIONS: Final = (narrows.run, narrows.load, narrows.load_beside, narrows.version)
ERRORS: Final = (narrows.BadInput, narrows.EnvironmentLacks, narrows.RunFailed, narrows.Cancelled)


def document() -> str:
    """The page."""
    lines = ["# The Python library", "", *wrapped(INTRODUCTION), ""]
    for function in FUNCTIONS:
        lines += [f"## `narrows.{function.__name__}`", "", *_member(f"narrows.{function.__name__}", function)]
    for kind in CLASSES:
        lines += [f"## `{kind.__name__}`", "", *wrapped(_text(kind)), ""]
        if (made := _made(kind)) is not None:
            lines += [f"`{kind.__name__}{_signature(kind)}`", "", *([*_sections(made), ""] if made else [])]
        if attributes := dict(_attributes(kind)):
            lines += ["Attributes:", ""]
            for name, about in attributes.items():
                lines += wrapped(f"- `{name}`: {about}", hanging="  ")
            lines.append("")
        for name, member in _members(kind):
            lines += [f"### `{kind.__name__}.{name}`", "", *_member(name, member)]
    lines += ["## Errors", "", "| error | when |", "|---|---|"]
    lines += [f"| `narrows.{kind.__name__}` | {_text(kind)} |" for kind in ERRORS]
    return "\n".join(lines) + "\n"


def wrapped(text: str, *, hanging: str = "") -> list[str]:
    """A paragraph as lines of at most 120 columns."""
    return fill(text, 120, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False).splitlines()


def _made(kind: Any) -> str | None:
    """What its own constructor says of itself; none if it is inherited."""
    if kind.__module__ not in str(kind.__init__.__globals__["__name__"]):
        return None
    text = inspect.getdoc(kind.__init__) or ""
    return "" if text.startswith("Initialize self") else text


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public members in the order of the source, those that it inherits left out."""
    for name, member in vars(kind).items():
        is_value = isinstance(member, (int, float, str, tuple, dict))
        if not name.startswith("_") and inspect.getdoc(member) and not is_value:
            yield name, member


def _attributes(kind: type) -> Iterator[tuple[str, str]]:
    """Public attributes with a text below them, of the class and of what its constructor sets."""
    (source,) = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(source, ast.ClassDef)
    made = [it for it in source.body if isinstance(it, ast.FunctionDef) and it.name == "__init__"]
    for body in (source.body, *(it.body for it in made)):
        for one, below in pairwise(body):
            targets = (
                one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
            )
            for target in targets:
                name = (
                    target.id
                    if isinstance(target, ast.Name)
                    else target.attr
                    if isinstance(target, ast.Attribute)
                    else "_"
                )
                if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and not name.startswith("_"):
                    yield name, " ".join(str(below.value.value).split())


def _member(name: str, member: Any) -> list[str]:
    call = [f"`{name}{_signature(member)}`", ""] if callable(member) else []
    return [*call, *_sections(inspect.getdoc(member) or ""), ""]


def _signature(function: Any) -> str:
    """Without `self` and without annotations, which the text explains."""
    found = inspect.signature(function).parameters.values()
    text = str(
        inspect.Signature([it.replace(annotation=inspect.Parameter.empty) for it in found if it.name != "self"])
    ).replace("PosixPath", "Path")
    # A member of an enumeration as one may write it.
    return re.sub(r"<\w+\.\w+: ('[^']*')>", r"\1", text)


def _text(kind: Any) -> str:
    return " ".join((inspect.getdoc(kind) or "").split())


def _sections(text: str) -> list[str]:
    """A docstring as Markdown: what stands under `Args:` and `Raises:` as a list."""
    lines: list[str] = []
    for block in text.split("\n\n"):
        heading, _, rest = block.partition("\n")
        if heading not in {"Args:", "Raises:", "Returns:"}:
            lines += [*wrapped(" ".join(block.split())), ""]
        elif heading == "Returns:":
            said = " ".join(rest.split())
            lines += [*wrapped(f"Returns {said[:1].lower()}{said[1:]}"), ""]
        else:
            items = re.sub(r"\n {4,}", " ", dedent(rest).strip()).splitlines()
            for name, _, about in (item.partition(":") for item in items):
                raises = "Raises " if heading == "Raises:" else ""
                lines += wrapped(f"- {raises}`{name}`: {about.strip()}", hanging="  ")
            lines.append("")
    return lines[:-1]


if __name__ == "__main__":
    PAGE.write_text(document())
