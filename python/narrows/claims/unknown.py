"""Refuses claims whose measures do not exist, with file and line, before anything is run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from narrows.claims.relations import Expression, Extreme, NotUnderstood, Term, parse_expression, parse_order, terms
from narrows.errors import BadInput
from narrows.measures.named import measure_called, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from narrows.claims.binding import Binding
    from narrows.claims.catalogue import Claim, Paper


def refuse(paper: Paper, claims: Path, bindings: Mapping[str, Path]) -> None:
    """Raises `BadInput` for the first claim that is bound to a measure which does not exist.

    `claims` is the paper's `claims.toml`, `bindings` the file that binds each claim, by its id.
    """
    for claim in paper.claims:
        binding = paper.bindings.get(claim.identifier)
        if binding is None:  # it is not judged
            continue
        for name, is_bound in _measures(claim, binding):
            if measure_called(name) is None:
                path = bindings[claim.identifier] if is_bound else claims
                place = f"{path}:{_line(path.read_text(encoding='utf-8'), claim.identifier, name)}"
                raise BadInput(
                    f"{place}: claim {claim.identifier}: there is no measure called {name}\nhelp: {nearest(name)}"
                )


def _measures(claim: Claim, binding: Binding) -> Iterator[tuple[str, bool]]:
    """Each measure that judging the claim would ask for, and whether the binding's file names it, or the claim's."""
    expressions = [*binding.expressions, *binding.also]
    if binding.instead is not None:
        expressions += [binding.instead.denominator, *(text for text, _ in binding.instead.expressions)]
    for text in expressions:
        for name in _named(text, is_order=False):
            yield name, True
    if claim.kind != "ordering":
        return
    for text in binding.orders or claim.order:
        for name in _named(text, is_order=True):
            for chosen in binding.names.get(name, (name,)):
                yield chosen, bool(binding.orders) or name in binding.names


def _named(text: str, *, is_order: bool) -> Iterator[str]:
    """The measures in a text; none in one that is not understood, which the verdict says."""
    try:
        parsed = parse_order(text) if is_order else parse_expression(text)
    except NotUnderstood:
        return
    sides: list[Expression]
    if isinstance(parsed, Extreme):
        sides = [parsed.term]
    elif isinstance(parsed, list):
        sides = [side for relation in parsed for side in (relation.left, relation.right)]
    else:
        sides = [parsed]
    for side in sides:
        for term in terms(side):
            yield _measure_of(term)


def _measure_of(term: Term) -> str:
    """`rank(loss, gemini)` is of the measure `loss`."""
    return term.arguments[0] if term.name == "rank" and term.arguments else term.name


def _line(text: str, claim: str, name: str) -> int:
    """The first line that names the measure, at or behind the claim's; the claim's where code makes up the name."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if f'"{claim}"' in line]
    first = starts[0] if starts else 0
    word = re.compile(rf"\b{re.escape(name)}\b")
    return 1 + next((number for number in range(first, len(lines)) if word.search(lines[number])), first)
