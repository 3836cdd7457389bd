"""How our statements on an all-reduce across two datacenters are measured.

Requests inside have 64 KB and are the only small flows. Datacenters are groups, but where a ring goes through both.
"""

from narrows.claims import Binding

SCENARIOS = ("B-AR",)

LOSSLESS = "+pfc"
SCHEMES = (
    "newreno", "newreno-ecn", "cubic", "cubic-ecn", "vegas", "bbr", "dctcp", "dcqcn", "gemini",
    "cubic+near-source", "annulus", "gemini+near-source",
)  # fmt: skip
FABRICS = ("", LOSSLESS)
TIME, TAIL = "execution_time", "fct_small_p99_during"


def _of(measure: str, scheme: str, groups: int = 2) -> str:
    return f"{measure}({scheme} · groups={groups})"


def _less(measure: str, scheme: str, *others: str) -> tuple[str, ...]:
    return tuple(f"{_of(measure, scheme)} < {_of(measure, other)}" for other in others)


def _with_flow_control(measure: str) -> tuple[str, ...]:
    return tuple(text for scheme in ("newreno", "cubic") for text in _less(measure, scheme + LOSSLESS, scheme))


def _both_loops(measure: str) -> tuple[str, ...]:
    return tuple(
        text
        for fabric in FABRICS
        for text in _less(measure, f"gemini+near-source{fabric}", f"gemini{fabric}", f"annulus{fabric}")
    )


def _controllers_against_fabrics() -> str:
    times = ", ".join(_of(TIME, scheme) for scheme in SCHEMES)
    # The star is of a scheme that both fabrics have.
    ratio = f"{_of(TIME, '*' + LOSSLESS)} / {_of(TIME, '*')}"
    ratios = f"{ratio}, 1 / ({ratio})"
    return f"max({times}) / min({times}) > max({ratios})"


BINDINGS = {
    "bey-010": Binding(orders=_with_flow_control(TIME)),
    "bey-011": Binding(orders=_with_flow_control(TAIL)),
    "bey-012": Binding(orders=_both_loops(TIME)),
    "bey-013": Binding(orders=_both_loops(TAIL)),
    "bey-014": Binding(
        orders=tuple(f"{_of(TIME, scheme)} < {_of(TIME, scheme, groups=1)}" for scheme in SCHEMES), full_only=True
    ),
    "bey-015": Binding(orders=(_controllers_against_fabrics(),)),
    "bey-016": Binding(orders=_less(TIME, "newreno-ecn", "newreno") + _less(TIME, "cubic-ecn", "cubic")),
    "bey-017": Binding(orders=_less(TAIL, "dctcp", "newreno", "cubic", "bbr")),
    "bey-018": Binding(orders=_less(TIME, "bbr", "newreno", "cubic", "dctcp", "gemini")),
}
