"""The little language of `order` strings and bound expressions.

    fct_large(gemini) < 0.8 * fct_large(vegas)        a <= b < c        fct_all(gemini) is minimum
    abs(rtt(gemini)/rtt(dctcp)-1) <= 0.10             rank(fct_small_avg, gemini) <= 3
    max(a(x), a(y)) / min(a(x), a(y)) <= 1.03

A *term* is a measure's name with the arms it is taken on; what stands in its parentheses is split at commas and not
interpreted, so `thr(K=20)` and `plr_dcn(vegas-10)` need no quotes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Comparison = Literal["<", "<=", ">", ">="]

SLACK = 0.05
"""`<=` and `>=` hold within 5 %; `<` and `>` are strict on the mean."""


class NotUnderstood(ValueError):
    """The text is not in the language."""


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True)
class Term:
    """A measure on arms."""

    name: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.arguments)})"


@dataclass(frozen=True)
class Absolute:
    """`abs(…)`."""

    inner: Expression


@dataclass(frozen=True)
class Binary:
    """`+ - * /`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Choice:
    """`max(…, …)`, `min(…, …)`."""

    which: Literal["max", "min"]
    among: tuple[Expression, ...]


Expression = Number | Term | Absolute | Binary | Choice


@dataclass(frozen=True)
class Relation:
    """Two sides compared."""

    left: Expression
    comparison: Comparison
    right: Expression
    text: str


@dataclass(frozen=True)
class Extreme:
    """`term is minimum` among the claim's schemes."""

    term: Term
    extreme: Literal["minimum", "maximum"]
    text: str


def holds(left: float, comparison: Comparison, right: float) -> bool:
    """Whether a relation between two means holds."""
    match comparison:
        case "<":
            return left < right
        case ">":
            return left > right
        case "<=":
            return left <= right or left <= right + SLACK * abs(right)
        case ">=":
            return left >= right or left >= right - SLACK * abs(right)


def evaluate(expression: Expression, value_of: Callable[[Term], float]) -> float:
    """The expression's value, terms looked up. A division by zero keeps the sign: infinite, or nan for 0/0."""
    match expression:
        case Number(value):
            return value
        case Term():
            return value_of(expression)
        case Absolute(inner):
            return abs(evaluate(inner, value_of))
        case Choice(which, among):
            values = [evaluate(item, value_of) for item in among]
            return max(values) if which == "max" else min(values)
        case Binary(operator, left, right):
            return _apply(operator, evaluate(left, value_of), evaluate(right, value_of))


def _apply(operator: str, left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            if right == 0.0:
                return float("nan") if left == 0.0 else math.copysign(math.inf, left)
            return left / right


def terms(expression: Expression) -> Iterator[Term]:
    """Every term in it."""
    match expression:
        case Term():
            yield expression
        case Absolute(inner):
            yield from terms(inner)
        case Binary(_, left, right):
            yield from terms(left)
            yield from terms(right)
        case Choice(_, among):
            for item in among:
                yield from terms(item)


def renamed(expression: Expression, names: dict[str, str]) -> Expression:
    """The same expression with measures called otherwise; of `rank(measure, arm)` the measure is renamed."""
    match expression:
        case Term("rank", (measure, *arms)):
            return Term("rank", (names.get(measure, measure), *arms))
        case Term(name):
            return replace(expression, name=names.get(name, name))
        case Absolute(inner):
            return Absolute(renamed(inner, names))
        case Binary(operator, left, right):
            return Binary(operator, renamed(left, names), renamed(right, names))
        case Choice(which, among):
            return Choice(which, tuple(renamed(item, names) for item in among))
    return expression


def parse_order(text: str) -> list[Relation] | Extreme:
    """An `order` string. A chain `a <= b < c` is as many relations as it has signs."""
    if extreme := re.fullmatch(r"\s*(.+?)\s+is\s+(minimum|maximum)\s*", text):
        term = parse_expression(extreme[1])
        if not isinstance(term, Term):
            raise NotUnderstood(f"'{extreme[1]}' is not a measure on an arm")
        return Extreme(term, cast("Literal['minimum', 'maximum']", extreme[2]), text)
    parser = _Parser(text)
    sides = [parser.sum()]
    signs: list[Comparison] = []
    while parser.peek in ("<", "<=", ">", ">="):
        signs.append(cast("Comparison", parser.take()))
        sides.append(parser.sum())
    parser.expect_end()
    if not signs:
        raise NotUnderstood(f"'{text}' compares nothing")
    relations = zip(sides, signs, sides[1:], strict=False)
    return [
        Relation(left, sign, right, text if len(signs) == 1 else f"{show(left)} {sign} {show(right)}")
        for left, sign, right in relations
    ]


def parse_expression(text: str) -> Expression:
    """An expression."""
    parser = _Parser(text)
    expression = parser.sum()
    parser.expect_end()
    return expression


def show(expression: Expression) -> str:
    """The expression as text."""
    match expression:
        case Number(value):
            return f"{value:g}"
        case Term():
            return str(expression)
        case Absolute(inner):
            return f"abs({show(inner)})"
        case Choice(which, among):
            return f"{which}({', '.join(show(item) for item in among)})"
        case Binary(operator, left, right):
            return f"{_inside(left, operator)} {operator} {_inside(right, operator)}"


def _inside(expression: Expression, operator: str) -> str:
    weaker = isinstance(expression, Binary) and expression.operator in "+-" and operator in "*/"
    return f"({show(expression)})" if weaker else show(expression)


_TOKEN = re.compile(r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<sign><=|>=|[-+*/()<>,]))")


class _Parser:
    """Recursive descent over one line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._match = _TOKEN.match(text)

    @property
    def peek(self) -> str | None:
        """The next token's text."""
        return self._match[0].strip() if self._match else None

    def take(self) -> str:
        """The next token, consumed."""
        if self._match is None:
            raise self._error()
        token = self._match[0].strip()
        self._go_to(self._match.end())
        return token

    def expect_end(self) -> None:
        """Nothing may follow."""
        if self._text[self._at :].strip():
            raise self._error()

    def sum(self) -> Expression:
        """Product, then more of them with + and -."""
        left = self._product()
        while self.peek in ("+", "-"):
            left = Binary(self.take(), left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._atom()
        while self.peek in ("*", "/"):
            left = Binary(self.take(), left, self._atom())
        return left

    def _atom(self) -> Expression:
        if self._match is None:
            raise self._error()
        kind, text = self._match.lastgroup, self.take()
        if kind == "number":
            return Number(float(text))
        if kind == "name":
            return self._call(text)
        if text == "-":
            return Binary("-", Number(0.0), self._atom())
        if text == "(":
            return self._closed(self.sum())
        raise self._error()

    def _call(self, name: str) -> Expression:
        if self.peek != "(":
            raise self._error()
        self.take()
        if name == "abs":
            return Absolute(self._closed(self.sum()))
        if name in ("max", "min"):
            among = [self.sum()]
            while self.peek == ",":
                self.take()
                among.append(self.sum())
            return self._closed(Choice(cast("Literal['max', 'min']", name), tuple(among)))
        end = self._text.find(")", self._at)
        if end < 0:
            raise self._error()
        inside = self._text[self._at : end]
        self._go_to(end + 1)
        return Term(name, tuple(argument.strip() for argument in inside.split(",") if argument.strip()))

    def _closed(self, expression: Expression) -> Expression:
        if self.peek != ")":
            raise self._error()
        self.take()
        return expression

    def _go_to(self, position: int) -> None:
        self._at = position
        self._match = _TOKEN.match(self._text, position)

    def _error(self) -> NotUnderstood:
        return NotUnderstood(f"'{self._text}' is not understood at column {self._at + 1}")
