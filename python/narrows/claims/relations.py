"""The little language of `order` strings and bound expressions.

    fct_large_mean(gemini) < 0.8 * fct_large_mean(vegas)        a <= b < c        fct_mean(gemini) is minimum
    abs(rtt(gemini)/rtt(dctcp)-1) <= 0.10             rank(fct_small_mean, gemini) <= 3

A *term* is a measure's name with the schemes it is taken on; what stands in its parentheses is split at commas and not
interpreted, so `thr(K=20)` and `loss_dc(vegas-10)` need no quotes. `min(…)` and `max(…)` are of several expressions, or
of one over cases: `max(thr(gemini · K=*) / thr(dctcp · K=*))`, where `*` stands for the same text in all its terms.
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, cast

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
    """A measure on schemes."""

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


def _changed(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The same with its parts changed."""
    match expression:
        case Absolute(inner):
            return Absolute(change(inner))
        case Binary(operator, left, right):
            return Binary(operator, change(left), change(right))
        case Among(extreme, choices):
            return Among(extreme, tuple(map(change, choices)))
    return expression


def renamed(expression: Expression, names: dict[str, str]) -> Expression:
    """The same expression with measures called otherwise; of `rank(measure, arm)` the measure is renamed."""
    match expression:
        case Term("rank", (measure, *arms)):
            return Term("rank", (names.get(measure, measure), *arms))
        case Term(name):
            return replace(expression, name=names.get(name, name))
    return _changed(expression, lambda part: renamed(part, names))


def settled(expression: Expression, mean_of: Callable[[Term], float]) -> Expression:
    """The same with `min` and `max` decided by means: the largest of several means, not the mean of the largest."""
    made = _changed(expression, lambda part: settled(part, mean_of))
    if not isinstance(made, Among):
        return made
    by_mean = {choice: evaluate(choice, mean_of) for choice in made.choices}
    present = {choice: mean for choice, mean in by_mean.items() if not math.isnan(mean)} or by_mean
    return (min if made.extreme == "min" else max)(present, key=lambda choice: present[choice])


def over_cases(expression: Expression, cases: Sequence[str]) -> Expression:
    """The same with every choice of `min` and `max` that has a `*` written out for the cases that there are."""
    if isinstance(expression, Among):
        every = (each for choice in expression.choices for each in _written_out(choice, cases))
        return replace(expression, choices=tuple(every))
    return _changed(expression, lambda part: over_cases(part, cases))


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
    if isinstance(expression, Term):
        return replace(expression, arguments=tuple(argument.replace("*", text) for argument in expression.arguments))
    return _changed(expression, lambda part: _filled(part, text))


def parse_order(text: str) -> list[Relation] | Extreme:
    """An `order` string. A chain `a <= b < c` is as many relations as it has signs."""
    if extreme := re.fullmatch(r"\s*(.+?)\s+is\s+(minimum|maximum)\s*", text):
        term = parse_expression(extreme[1])
        if not isinstance(term, Term):
            raise NotUnderstood(f"'{extreme[1]}' is not a measure of a scheme")
        return Extreme(term, cast("Literal['minimum', 'maximum']", extreme[2]), text)
    reader = _Reader(text)
    if not isinstance(reader.tree, ast.Compare):
        raise NotUnderstood(f"'{text}' compares nothing")
    sides = [reader.read(side) for side in (reader.tree.left, *reader.tree.comparators)]
    signs = [_SIGNS[type(sign)] for sign in reader.tree.ops]
    relations = zip(sides, signs, sides[1:], strict=False)
    return [
        Relation(left, sign, right, text if len(signs) == 1 else f"{show(left)} {sign} {show(right)}")
        for left, sign, right in relations
    ]


def parse_expression(text: str) -> Expression:
    """An expression."""
    reader = _Reader(text)
    return reader.read(reader.tree)


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


_TERM = re.compile(r"\b(?!(?:abs|min|max)\s*\()([A-Za-z_]\w*)\s*\(([^)]*)\)")
_PLAIN = re.compile(r"(?:\s|\d+(?:\.\d+)?(?:e-?\d+)?|_+|abs|min|max|<=|>=|[-+*/()<>,])*")
"""What a text may hold beside its terms, for which underscores stand."""
_OPERATORS: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_SIGNS: Final[dict[type[ast.cmpop], Comparison]] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class _Reader:
    """One line as Python parses it once underscores stand for its terms, whose arguments need no quotes."""

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._terms: dict[tuple[int, int | None], Term] = {}
        plain = _TERM.sub(self._hidden, self._text)
        known = _PLAIN.match(plain)
        if known is None or known.end() < len(plain):
            raise self._error(1 + (known.end() if known else 0))
        try:
            self.tree = ast.parse(plain, mode="eval").body
        except SyntaxError as error:
            raise self._error(error.offset or 1) from None

    def _hidden(self, found: re.Match[str]) -> str:
        arguments = (argument.strip() for argument in found[2].split(","))
        self._terms[found.span()] = Term(found[1], tuple(filter(None, arguments)))
        return "_" * len(found[0])

    def read(self, node: ast.expr) -> Expression:
        """What a part of the tree is in the language."""
        match node:
            case ast.Constant(value=int() | float() as value):
                return Number(float(value))
            case ast.Name() if (node.col_offset, node.end_col_offset) in self._terms:
                return self._terms[node.col_offset, node.end_col_offset]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return Binary("-", Number(0.0), self.read(inner))
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                return Binary(_OPERATORS[type(operator)], self.read(left), self.read(right))
            case ast.Call(func=ast.Name(id="abs"), args=[inner]):
                return Absolute(self.read(inner))
            case ast.Call(func=ast.Name(id="min" | "max" as extreme), args=[_, *_] as choices):
                return Among(extreme, tuple(map(self.read, choices)))
        raise self._error(node.col_offset + 1)

    def _error(self, column: int) -> NotUnderstood:
        return NotUnderstood(f"'{self._text}' is not understood at column {column}")
