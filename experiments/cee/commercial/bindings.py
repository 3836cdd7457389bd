"""How the claims on the commercial workload are measured. Judged where packets count at the input."""

import tomllib
from pathlib import Path

from narrows.claims import Binding
from narrows.figures.lossless import MANAGED, SCHEMES, TCPS, case

SCENARIOS = ("commercial",)

_OF_LOSS = ("newreno", "cubic")
"""TCPs whose window falls at losses only."""


def _share_across() -> float:
    """Of the background's flows, those between racks; both kinds have ON and OFF periods of the same lengths."""
    traffic = tomllib.loads(Path(__file__).with_name("experiment.toml").read_text())["traffic"]
    gaps = {each["name"]: each["arrivals"]["on-off"]["gap"] for each in traffic if "on-off" in each.get("arrivals", {})}
    inside, across = (1 / float(gaps[name].removesuffix("us")) for name in ("inside", "across"))
    return across / (inside + across)


def bindings(reading: str) -> dict[str, Binding]:
    """Of one reading: where a switch counts packets."""

    def mean(scheme: str, tcp: str) -> str:
        return f"request_mean({case(scheme, reading, tcp)})"

    def of(measure: str, scheme: str, tcp: str) -> str:
        return f"{measure}({case(scheme, reading, tcp)})"

    def over_none(scheme: str) -> str:
        return f"{mean(scheme, 'newreno')} / {mean('none', 'newreno')}"

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
            f"{of('loss', 'none', 'vegas')} < 100",
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
        "cee-011": bound(
            *(f"{of('timeouts', f'{each}+pfc', tcp)} < {of('timeouts', each, tcp)}" for each in MANAGED for tcp in TCPS)
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
                f"{of('handshake_mean', f'{qcn}{pfc}', 'newreno')} > {of('handshake_mean', f'red{pfc}', 'newreno')}"
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
        "cee-025": bound(*(f"{over_none(qcn)} > {over_none('red')}" for qcn in ("qcn-66", "qcn-20"))),
    }


BINDINGS = bindings("input") | {"cee-028": Binding(computed=_share_across)}
