"""The little language of `order` strings and bound expressions.

    fct_large_mean(gemini) < 0.8 * fct_large_mean(vegas)        a <= b < c        fct_mean(gemini) is minimum
    abs(rtt(gemini)/rtt(dctcp)-1) <= 0.10             rank(fct_small_mean, gemini) <= 3

A *term* is a measure's name with the arms it is taken on; what stands in its parentheses is split at commas and not
interpreted, so `thr(K=20)` and `loss_dc(vegas-10)` need no quotes. `min(…)` and `max(…)` are of several expressions, or
of one over cases: `max(thr(gemini · K=*) / thr(dctcp · K=*))`, where `*` stands for the same text in all its terms.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
class Among:
    """`min(…)` or `max(…)`."""

    extreme: Literal["min", "max"]
    choices: tuple[Expression, ...]


Expression = Number | Term | Absolute | Binary | Among


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
        case Binary(operator, left, right):
            return _apply(operator, evaluate(left, value_of), evaluate(right, value_of))
        case Among(extreme, choices):
            return (min if extreme == "min" else max)(evaluate(choice, value_of) for choice in choices)


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
        case Among(_, choices):
            for choice in choices:
                yield from terms(choice)


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
        case Among(extreme, choices):
            return Among(extreme, tuple(renamed(choice, names) for choice in choices))
    return expression


def settled(expression: Expression, mean_of: Callable[[Term], float]) -> Expression:
    """The same with `min` and `max` decided by means: the largest of several means, not the mean of the largest."""
    match expression:
        case Absolute(inner):
            return Absolute(settled(inner, mean_of))
        case Binary(operator, left, right):
            return Binary(operator, settled(left, mean_of), settled(right, mean_of))
        case Among(extreme, choices):
            by_mean = {choice: evaluate(choice, mean_of) for choice in (settled(one, mean_of) for one in choices)}
            present = {choice: mean for choice, mean in by_mean.items() if not math.isnan(mean)} or by_mean
            return (min if extreme == "min" else max)(present, key=lambda choice: present[choice])
    return expression


def over_cases(expression: Expression, cases: Sequence[str]) -> Expression:
    """The same with every choice of `min` and `max` that has a `*` written out for the cases that there are."""
    match expression:
        case Absolute(inner):
            return Absolute(over_cases(inner, cases))
        case Binary(operator, left, right):
            return Binary(operator, over_cases(left, cases), over_cases(right, cases))
        case Among(extreme, choices):
            return Among(extreme, tuple(each for choice in choices for each in _written_out(choice, cases)))
    return expression


def _written_out(choice: Expression, cases: Sequence[str]) -> list[Expression]:
    """One expression for each text that `*` can stand for: that of the first case which has one."""
    used = [argument for term in terms(choice) for argument in term.arguments]
    starred = next((argument for argument in used if "*" in argument), None)
    if starred is None:
        return [choice]
    before, _, after = starred.partition("*")
    length = len(before) + len(after)
    texts = [
        case[len(before) : len(case) - len(after)]
        for case in cases
        if len(case) > length and case.startswith(before) and case.endswith(after)
    ]
    return [_filled(choice, text) for text in texts] or [choice]


def _filled(expression: Expression, text: str) -> Expression:
    match expression:
        case Term(name, arguments):
            return Term(name, tuple(argument.replace("*", text) for argument in arguments))
        case Absolute(inner):
            return Absolute(_filled(inner, text))
        case Binary(operator, left, right):
            return Binary(operator, _filled(left, text), _filled(right, text))
        case Among(extreme, choices):
            return Among(extreme, tuple(_filled(choice, text) for choice in choices))
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
        case Binary(operator, left, right):
            return f"{_inside(left, operator)} {operator} {_inside(right, operator)}"
        case Among(extreme, choices):
            return f"{extreme}({', '.join(show(choice) for choice in choices)})"


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
        if name in ("min", "max"):
            choices = [self.sum()]
            while self.peek == ",":
                self.take()
                choices.append(self.sum())
            return self._closed(Among(cast("Literal['min', 'max']", name), tuple(choices)))
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
