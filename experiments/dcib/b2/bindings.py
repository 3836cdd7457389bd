"""How the claims of experiment II are measured: over all distances, and with the factors of experiment I."""

from narrows.claims import Binding

SCENARIOS = ("B-II",)

DELAYS = ("4.98ms", "7.48ms", "9.98ms", "12.48ms", "14.98ms")


def gain(controller: str, delay: str) -> str:
    """Goodput with the pair of edges over that without, the same losses."""
    with_pair, without = (f"goodput_long({arm} · delay={delay})" for arm in (f"dcib+{controller}", controller))
    return f"{with_pair} / {without}"


BINDINGS = {
    "dci-008": Binding(tuple(gain("cubic", delay) for delay in DELAYS)),
    "dci-009": Binding(tuple(gain("bbr", delay) for delay in DELAYS)),
}
