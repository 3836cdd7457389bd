"""How the claims on the commercial workload are measured."""

from narrows.claims import Binding
from narrows.figures.lossless import MANAGED, SCHEMES, TCPS, case

SCENARIOS = ("commercial",)

_OF_LOSS = ("newreno", "cubic")
"""TCPs whose window falls at losses only."""


def _bindings() -> dict[str, Binding]:
    def mean(scheme: str, tcp: str) -> str:
        return f"request_mean({case(scheme, tcp)})"

    def of(measure: str, scheme: str, tcp: str) -> str:
        return f"{measure}({case(scheme, tcp)})"

    def over_none(scheme: str, pfc: str) -> str:
        return f"{mean(f'{scheme}{pfc}', 'newreno')} / {mean(f'none{pfc}', 'newreno')}"

    def handshake(scheme: str) -> str:
        return f"handshake_mean({case(scheme, 'newreno')} / request)"

    def flows(traffic: str) -> str:
        return f"flow_count({case('none', 'newreno')} / {traffic})"

    def bound(*orders: str) -> Binding:
        return Binding(orders=orders, scenarios=SCENARIOS)

    steady = [mean(scheme, "vegas") for scheme in SCHEMES if not scheme.startswith("qcn-20")]
    return {
        "cee-002": bound(*(f"{mean('red', tcp)} > {mean('red+pfc', tcp)}" for tcp in _OF_LOSS)),
        "cee-005": bound(f"max({', '.join(steady)}) <= 1.25 * min({', '.join(steady)})"),
        "cee-006": bound(
            *(
                f"{of('queue_p99_watched', 'none', 'vegas')} < {of('queue_p99_watched', 'none', tcp)}"
                for tcp in _OF_LOSS
            ),
            # "~ 0": a twentieth of what NewReno loses, as in the claim on the winner's losses.
            f"{of('loss', 'none', 'vegas')} <= 0.05 * {of('loss', 'none', 'newreno')}",
        ),
        "cee-007": bound(*(f"{mean('none', 'cubic')} > {mean('none', tcp)}" for tcp in ("newreno", "vegas"))),
        "cee-008": bound(f"{of('loss', 'none', 'cubic')} > {of('loss', 'none', 'newreno')}"),
        "cee-009": bound(
            *(
                f"{mean(f'{each}+pfc', tcp)} {'<=' if tcp == 'vegas' else '<'} {mean(each, tcp)}"
                for each in ("none", "red", "qcn-66")
                for tcp in TCPS
            )
        ),
        "cee-010": bound(*(f"{mean('qcn-20', tcp)} <= {mean('qcn-20+pfc', tcp)}" for tcp in TCPS)),
        # The claim is on stalls: one of 64 ms counts as much as 32 of 2 ms, the time and not the number.
        "cee-011": bound(
            *(
                f"{of('timeout_wait', f'{each}+pfc', tcp)} < {of('timeout_wait', each, tcp)}"
                for each in MANAGED
                for tcp in TCPS
            )
        ),
        "cee-013": bound(
            *(f"{mean(f'qcn-66{pfc}', tcp)} < {mean(f'qcn-20{pfc}', tcp)}" for pfc in ("", "+pfc") for tcp in _OF_LOSS)
        ),
        "cee-014": bound(
            *(
                f"{mean(f'red{pfc}', tcp)} < {mean(f'{qcn}{pfc}', tcp)}"
                for pfc in ("", "+pfc")
                for qcn in ("qcn-66", "qcn-20")
                for tcp in _OF_LOSS
            )
        ),
        "cee-015": bound(
            *(
                f"{handshake(f'{qcn}{pfc}')} > {handshake(f'red{pfc}')}"
                for pfc in ("", "+pfc")
                for qcn in ("qcn-66", "qcn-20")
            )
        ),
        "cee-022": bound(
            *(f"{mean(scheme, 'vegas')} <= {mean(scheme, tcp)}" for scheme in SCHEMES for tcp in _OF_LOSS)
        ),
        "cee-024": Binding(
            tuple(f"{mean('qcn-20', tcp)} / {mean('none', tcp)} - 1" for tcp in TCPS), scenarios=SCENARIOS
        ),
        "cee-025": bound(
            *(
                f"{over_none(qcn, pfc)} > {over_none('red', pfc)}"
                for pfc in ("", "+pfc")
                for qcn in ("qcn-66", "qcn-20")
            )
        ),
        "cee-028": Binding(
            (f"{flows('across')} / ({flows('across')} + {flows('inside')})",), scenarios=SCENARIOS, setup=True
        ),
    }


BINDINGS = _bindings()
