"""Verdicts on a paper's claims.

`holds`: the mean over seeds lies in the accepted interval, or every relation holds; `partly`: the interval overlaps it,
or some relations hold; `fails`; `not-run`: the data are not there, and the reason says which.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from narrows import wording
from narrows.claims.relations import (
    Absolute,
    Among,
    Binary,
    Expression,
    Extreme,
    NotUnderstood,
    Number,
    Relation,
    Term,
    evaluate,
    holds,
    over_cases,
    parse_expression,
    parse_order,
    renamed,
    settled,
    terms,
)
from narrows.errors import BadInput
from narrows.measures.named import NotEvaluable, measure_called, value_by_seed
from narrows.measures.stats import Estimate, estimate, estimate_of_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from narrows.claims.binding import Binding, Instead
    from narrows.claims.catalogue import Claim, Paper
    from narrows.frames import Frames
    from narrows.measures.stats import BySeed

VerdictWord = Literal["holds", "partly", "fails", "not-run"]
Outcome = Literal["yes", "overlaps", "no", "unknown"]


@dataclass(frozen=True)
class Part:
    """One relation, or one expression against the accepted interval."""

    text: str
    outcome: Outcome
    estimate: Estimate | None = None
    """Of the expression; for a relation, of left over right within a seed."""
    detail: str = ""
    stated: float | None = None
    """The claim's own value, where what is accepted has no upper end."""


@dataclass(frozen=True)
class Verdict:
    """What became of a claim."""

    claim: Claim
    word: VerdictWord
    reason: str
    parts: tuple[Part, ...] = ()
    also: tuple[Part, ...] = ()
    missing: tuple[str, ...] = ()
    """Figures that the claim is about too, whose runs are not there."""
    quick: bool = False
    absent: bool = False
    """None of the runs that it needs are there."""
    reading: str = ""
    """Under which reading of the paper, where its figures have several: the one that the text favours."""
    others: tuple[Verdict, ...] = ()
    """Under each other reading."""

    @property
    def estimate(self) -> Estimate | None:
        """The value that is shown for it: that of the part that decided."""
        order = {"no": 0, "overlaps": 1, "yes": 2, "unknown": 3}
        known = [part for part in self.parts if part.estimate is not None]
        return min(known, key=lambda part: order[part.outcome]).estimate if known else None


def judge(paper: Paper, figures: Mapping[str, Frames], *, quick: bool) -> list[Verdict]:
    """Every claim of a paper, from the frames of the figures that were run."""
    memory: dict[tuple[str, str, tuple[str, ...]], BySeed | NotEvaluable] = {}
    return [_Judge(paper, claim, figures, memory, quick=quick).verdict() for claim in paper.claims]


@dataclass
class _Judge:
    paper: Paper
    claim: Claim
    figures: Mapping[str, Frames]
    memory: dict[tuple[str, str, tuple[str, ...]], BySeed | NotEvaluable]
    quick: bool
    binding: Binding = field(init=False)

    def verdict(self) -> Verdict:
        bound = self.paper.bindings.get(self.claim.identifier)
        if bound is None:
            return self._unbound()
        self.binding = bound
        if bound.computed is not None:
            try:
                parts = self._computed(bound.computed())
            except (BadInput, LookupError, StopIteration) as error:
                return self._not_run(f"cannot be computed from the experiments as they are: {error!r}")
            word, reason = self._conclude(parts, ())
            return Verdict(self.claim, word, reason, tuple(parts))
        scenarios = self.paper.scenarios_of(self.claim)
        present = [scenario for scenario in scenarios if self.paper.figures.get(scenario) in self.figures]
        if not present:
            return self._absent(scenarios)
        if bound.full_only and self.quick:
            return self._not_run(
                "judged on full runs only: short ones offer less than they say, or have too few samples"
            )
        try:
            parts = self._parts(present)
            also = tuple(
                self._value_part(parse_expression(text), self._said(text, item, present), item)
                for text in bound.also
                for item in present
            )
        except NotUnderstood as error:
            return self._not_run(str(error))
        absent = (self.paper.figures.get(item, item) for item in scenarios if item not in present)
        missing = tuple(dict.fromkeys(absent))
        word, reason = self._conclude(parts, missing)
        return Verdict(self.claim, word, reason, tuple(parts), also, missing, self.quick)

    def _not_run(self, reason: str) -> Verdict:
        return Verdict(self.claim, "not-run", reason, quick=self.quick)

    def _unbound(self) -> Verdict:
        if not self.claim.needs_simulation:
            return self._not_run("arithmetic, analysis or a parameter: settled by a test of the code, not by a run")
        return self._absent(self.claim.scenarios)

    def _absent(self, scenarios: Sequence[str]) -> Verdict:
        names = sorted({self.paper.figures[item] for item in scenarios if item in self.paper.figures})
        existing = [name for name in names if (self.paper.folder / name / "experiment.toml").is_file()]
        if not existing:
            return self._not_run(f"belongs to another figure ({', '.join(names or scenarios) or 'none'})")
        options = " --quick" if self.quick else ""
        reason = f"not run yet: narrows reproduce {self.paper.name}/{existing[0]}{options}"
        return replace(self._not_run(reason), absent=True)

    def _parts(self, scenarios: Sequence[str]) -> list[Part]:
        if self.claim.kind == "ordering":
            orders = self.binding.orders or self.claim.order
            return [
                replace(
                    part, text=self._said(part.text, item, scenarios), detail=self._said(part.detail, item, scenarios)
                )
                for item in scenarios
                for text in orders
                for part in self._order(text, item)
            ]
        instead = self.binding.instead
        if instead is not None and self._is_near_zero(instead, scenarios[0]):
            return [
                self._value_part(parse_expression(text), text, scenarios[0], accept)
                for text, accept in instead.expressions
            ]
        columns = [
            [
                replace(
                    self._value_part(parse_expression(text), self._said(text, item, scenarios), item, accept),
                    stated=stated if math.isinf(accept[1]) else None,
                )
                for item in scenarios
            ]
            for text, accept, stated in zip(
                self.binding.expressions,
                self._accepts(self.binding.expressions),
                self._stated(len(self.binding.expressions)),
                strict=True,
            )
        ]
        if self.binding.over == "max":
            return [_largest(column) for column in columns]
        return list(itertools.chain.from_iterable(columns))

    def _is_near_zero(self, instead: Instead, scenario: str) -> bool:
        try:
            values = self._by_seed(parse_expression(instead.denominator), scenario)
        except NotEvaluable:
            return False
        return bool(values) and math.fsum(values) / len(values) <= instead.at_most

    def _computed(self, found: float | Sequence[float]) -> list[Part]:
        """Numbers that need no run, each against its interval."""
        values = [float(found)] if isinstance(found, int | float) else [float(value) for value in found]
        parts: list[Part] = []
        for value, accept in zip(values, self._accepts(values), strict=True):
            exact = Estimate(value, value, value, "none", 0)
            unit = f" {self.claim.unit}" if self.claim.unit[:1].isalpha() else ""
            parts.append(Part("computed", _inside(exact, accept), exact, f"computed: {_number(value)}{unit}"))
        return parts

    def _accepts(self, values: Sequence[object]) -> Sequence[tuple[float, float]]:
        """The interval of each value: one for all, or one for each."""
        if self.claim.accept_each or self.binding.each:
            return self.claim.accept_each or self.binding.each
        return [self.claim.accept or (-math.inf, math.inf)] * len(values)

    def _stated(self, count: int) -> Sequence[float | None]:
        """What the claim states of each expression: its own value if there are as many, else the largest."""
        values = self.claim.value
        return values if len(values) == count else [max(values, default=None)] * count

    def _said(self, text: str, scenario: str, scenarios: Sequence[str]) -> str:
        return text if len(scenarios) == 1 else f"{scenario}: {text}"

    def _value_part(
        self, expression: Expression, text: str, scenario: str, accept: tuple[float, float] = (-math.inf, math.inf)
    ) -> Part:
        """An expression, for every seed, against the accepted interval."""
        try:
            chosen = self._settled(self._written_out(expression, scenario), scenario)
            values = self._by_seed(chosen, scenario)
            found = self._of_means(chosen, scenario) if self.binding.of_means else estimate(values)
        except NotEvaluable as why:
            return Part(text, "unknown", detail=str(why))
        if found is None:
            return Part(text, "unknown", detail=f"{text} has no value: nothing to divide by")
        some = self._some_seeds(found.seeds if self.binding.of_means else len(values), scenario)
        detail = f"{text} = {_number(found.mean)}{_unit_of(expression)}{some}"
        return Part(text, _capped(_inside(found, accept), some), found, detail)

    def _of_means(self, expression: Expression, scenario: str) -> Estimate | None:
        columns, seeds = self._columns(terms(expression), scenario)

        def value(of: Sequence[int]) -> float:
            return evaluate(expression, lambda term: math.fsum(columns[term][seed] for seed in of) / len(of))

        if not seeds or math.isnan(value(seeds)):
            return None
        without = [value([other for other in seeds if other != seed]) for seed in seeds] if len(seeds) > 1 else [0.0]
        return estimate_of_all(value(seeds), without)

    def _some_seeds(self, found: int, scenario: str) -> str:
        """What is said where not every seed has a value; nothing where all have."""
        wanted = len(self.figures[self.paper.figures[scenario]].seeds)
        return "" if found == wanted else f" (in {found} of {wanted} seeds)"

    def _order(self, text: str, scenario: str) -> list[Part]:
        """An `order` string: one part per relation and per measure that its names stand for."""
        parsed = parse_order(text)
        parts: list[Part] = []
        for names in self._namings(parsed):
            if isinstance(parsed, Extreme):
                parts.append(self._extreme(parsed, names, scenario))
            else:
                parts += [self._relation(relation, names, scenario) for relation in parsed]
        return parts

    def _namings(self, parsed: list[Relation] | Extreme) -> list[dict[str, str]]:
        used = {parsed.term.name} if isinstance(parsed, Extreme) else set().union(*(_names(item) for item in parsed))
        choices = [[(name, to) for to in self.binding.names.get(name, (name,))] for name in sorted(used)]
        return [dict(choice) for choice in itertools.product(*choices)]

    def _relation(self, relation: Relation, names: dict[str, str], scenario: str) -> Part:
        left = self._written_out(renamed(relation.left, names), scenario)
        right = self._written_out(renamed(relation.right, names), scenario)
        text = _retold(relation.text, names)
        try:
            left, right = self._settled(left, scenario), self._settled(right, scenario)
            means, seeds = self._means([*terms(left), *terms(right)], scenario)
            left_mean, right_mean = evaluate(left, means), evaluate(right, means)
            ratios = self._ratios(left, right, scenario)
        except NotEvaluable as why:
            return Part(text, "unknown", detail=str(why))
        if math.isnan(left_mean) or math.isnan(right_mean):
            return Part(text, "unknown", detail=f"{text}: a side has no value")
        outcome: Outcome = "yes" if holds(left_mean, relation.comparison, right_mean) else "no"
        unit = _unit_of(left) or _unit_of(right)
        against = f" against {_worked(right, right_mean, means)}" if list(terms(right)) else ""
        some = self._some_seeds(len(seeds), scenario) if seeds else ""
        sides = f"{_worked(left, left_mean, means)}{against}{unit}{some}"
        return Part(text, _capped(outcome, some), estimate(ratios), f"{text}: {sides}")

    def _written_out(self, expression: Expression, scenario: str) -> Expression:
        return over_cases(expression, self.figures[self.paper.figures[scenario]].cases)

    def _settled(self, expression: Expression, scenario: str) -> Expression:
        return settled(expression, lambda term: self._mean(term, scenario))

    def _extreme(self, extreme: Extreme, names: dict[str, str], scenario: str) -> Part:
        term = renamed(extreme.term, names)
        assert isinstance(term, Term)
        smallest = extreme.extreme == "minimum"
        try:
            all_means = {arm: self._mean(Term(term.name, (arm,)), scenario) for arm in self.claim.schemes}
        except NotEvaluable as why:
            return Part(extreme.text, "unknown", detail=str(why))
        best = (min if smallest else max)(all_means, key=lambda arm: all_means[arm])
        own, bound = all_means[term.arguments[0]], all_means[best]
        slack = self.binding.extreme_slack * abs(bound)
        near = own <= bound + slack if smallest else own >= bound - slack
        outcome: Outcome = "yes" if own == bound or near else "no"
        ratios = self._ratios(term, Term(term.name, (best,)), scenario)
        detail = f"{term}: {_number(own)}{_unit_of(term)}; the {extreme.extreme} is {best} with {_number(bound)}"
        return Part(extreme.text, outcome, estimate(ratios), detail)

    def _conclude(self, parts: Sequence[Part], missing: Sequence[str]) -> tuple[VerdictWord, str]:
        known = [part for part in parts if part.outcome != "unknown"]
        if not known:
            return "not-run", "; ".join(dict.fromkeys(part.detail for part in parts))
        good = [part for part in known if part.outcome == "yes"]
        short = [part for part in parts if part.outcome != "yes"]
        reason = "; ".join(dict.fromkeys(part.detail for part in short)) or "; ".join(part.detail for part in good)
        incomplete = f"; judged without {', '.join(missing)}" if missing else ""
        if missing and self.binding.over == "max" and _may_still_rise(known, self.claim):
            return "not-run", f"{reason}; the other figures may be larger{incomplete}"
        if len(good) == len(parts):
            return ("partly" if missing else "holds"), reason + incomplete
        some = bool(good) or any(part.outcome == "overlaps" for part in known)
        return ("partly" if some else "fails"), reason + incomplete

    def _by_seed(self, expression: Expression, scenario: str) -> list[float]:
        columns, seeds = self._columns(terms(expression), scenario)
        values = [evaluate(expression, _at(columns, seed)) for seed in seeds]
        return [value for value in values if not math.isnan(value)]

    def _ratios(self, left: Expression, right: Expression, scenario: str) -> list[float]:
        """Left over right within each seed; nothing where that has no meaning, as for ranks against numbers."""
        if not any(True for _ in terms(right)):
            return self._by_seed(left, scenario)
        columns, seeds = self._columns((*terms(left), *terms(right)), scenario)
        pairs = [(evaluate(left, _at(columns, seed)), evaluate(right, _at(columns, seed))) for seed in seeds]
        return [one / other for one, other in pairs if other and math.isfinite(one)]

    def _columns(self, used: Iterable[Term], scenario: str) -> tuple[dict[Term, BySeed], list[int]]:
        """The values of terms, and the seeds in which all of them have one."""
        columns = {term: self._values(term, scenario) for term in used}
        return columns, sorted(set.intersection(*map(set, columns.values()))) if columns else []

    def _means(self, used: Sequence[Term], scenario: str) -> tuple[Callable[[Term], float], list[int]]:
        """Terms to their means over the seeds that all of them have, so that what is compared is paired; these seeds.

        Where there are only ranks, which are of all seeds, there are none.
        """
        columns, seeds = self._columns((term for term in used if term.name != "rank"), scenario)
        if columns and not seeds:
            raise NotEvaluable("no seed has a value for every scheme")

        def mean(term: Term) -> float:
            if term.name == "rank":
                return self._mean(term, scenario)
            return math.fsum(columns[term][seed] for seed in seeds) / len(seeds)

        return mean, seeds

    def _mean(self, term: Term, scenario: str) -> float:
        if term.name == "rank":
            return self._rank_of_means(term, scenario)
        column = self._values(term, scenario)
        return math.fsum(column.values()) / len(column)

    def _rank_of_means(self, term: Term, scenario: str) -> float:
        """1 for the smallest."""
        name, arm = term.arguments
        means = {other: self._mean(Term(name, (other,)), scenario) for other in self.claim.schemes}
        return _rank(means, arm, self.binding.rank_slack)

    def _values(self, term: Term, scenario: str) -> BySeed:
        if term.name == "rank":
            name, arm = term.arguments
            columns, seeds = self._columns((Term(name, (other,)) for other in self.claim.schemes), scenario)
            slack = self.binding.rank_slack
            return {
                seed: _rank({term.arguments[0]: column[seed] for term, column in columns.items()}, arm, slack)
                for seed in seeds
            }
        figure = self.paper.figures[scenario]
        key = (figure, term.name, term.arguments)
        if key not in self.memory:
            try:
                self.memory[key] = value_by_seed(self.figures[figure], term.name, term.arguments)
            except NotEvaluable as why:
                self.memory[key] = why
        found = self.memory[key]
        if isinstance(found, NotEvaluable):
            raise found
        return found


def _inside(found: Estimate, accept: tuple[float, float]) -> Outcome:
    """Whether the mean lies in the accepted interval, or at least the interval over seeds overlaps it."""
    low, high = accept
    # A division by nothing in one seed makes the mean infinite and says nothing of others: each must lie inside.
    ends = (found.mean, found.mean) if math.isfinite(found.mean) else (found.low, found.high)
    if low <= ends[0] and ends[1] <= high:
        return "yes"
    return "overlaps" if found.low <= high and found.high >= low else "no"


def _capped(outcome: Outcome, some: str) -> Outcome:
    """Where some seeds have no value, the others alone do not make a claim hold."""
    return "overlaps" if some and outcome == "yes" else outcome


def _rank(values: Mapping[str, float], arm: str, slack: float) -> float:
    """1 for the smallest. Who is within the slack of the next better one has that one's rank, and no better."""
    better = sorted(other for other in values.values() if other < values[arm])
    near = better and values[arm] <= better[-1] * (1.0 + slack)
    return float(1 + len(better) - bool(near))


def _at(columns: Mapping[Term, BySeed], seed: int) -> Callable[[Term], float]:
    return lambda term: columns[term][seed]


def _names(relation: Relation) -> set[str]:
    used = [*terms(relation.left), *terms(relation.right)]
    return {term.arguments[0] if term.name == "rank" else term.name for term in used}


def _retold(text: str, names: Mapping[str, str]) -> str:
    for name, other in names.items():
        if name != other:
            text = text.replace(f"{name}(", f"{other}(").replace(f"rank({name},", f"rank({other},")
    return text


def _largest(column: Sequence[Part]) -> Part:
    known = [part for part in column if part.estimate is not None]
    return max(known, key=lambda part: part.estimate.mean if part.estimate else -math.inf) if known else column[0]


def _may_still_rise(parts: Sequence[Part], claim: Claim) -> bool:
    low = claim.accept[0] if claim.accept else -math.inf
    return any(part.estimate is not None and part.estimate.mean < low for part in parts)


def _unit_of(expression: Expression) -> str:
    if isinstance(expression, Among):
        units = {_unit_of(choice) for choice in expression.choices}
        return units.pop() if len(units) == 1 else ""
    dimension = _dimension(expression)
    if len(dimension) != 1:
        return ""
    ((unit, power),) = dimension.items()
    if power < 1:
        return ""
    raised = "" if power == 1 else str(power).translate(_SUPERSCRIPTS)
    return f" × {unit}{raised}" if unit[0].isdigit() else f" {unit}{raised}"


_SUPERSCRIPTS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _dimension(expression: Expression) -> Counter[str]:
    """Units to their powers; nothing where they do not go together."""
    match expression:
        case Term(name):
            found = measure_called(name)
            return Counter({found.unit: 1} if found and found.unit else {})
        case Absolute(inner):
            return _dimension(inner)
        case Binary("*" | "/" as operator, left, right):
            made = Counter(_dimension(left))
            for unit, power in _dimension(right).items():
                made[unit] += power if operator == "*" else -power
            return Counter({unit: power for unit, power in made.items() if power})
        case Binary(_, left, right):
            one, other = _dimension(left), _dimension(right)
            return one if one == other else Counter()
        case _:
            return Counter()


def _worked(expression: Expression, value: float, value_of: Callable[[Term], float]) -> str:
    """The value of a side; of a factor times a measure, how it comes about: `0.8 × 6 460 = 5 170`."""
    match expression:
        case Binary("*", Number(factor), Term() as term) | Binary("*", Term() as term, Number(factor)):
            return f"{factor:g} × {_number(value_of(term))} = {_number(value)}"
        case _:
            return _number(value)


def _number(value: float) -> str:
    return wording.whole(value) if value.is_integer() else wording.number(value)
