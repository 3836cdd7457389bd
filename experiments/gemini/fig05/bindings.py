"""How the claims of Fig. 5 are measured."""

from narrows.claims import Binding

SCENARIOS = ("E-F5",)


def _at(measure: str, arm: str, packets: int) -> str:
    return f"{measure}({arm} · mark-at={packets}pkt)"


def _lost(arm: str) -> str:
    """What the smallest threshold leaves of the goodput at the largest."""
    return f"{_at('goodput_total', arm, 20)} / {_at('goodput_total', arm, 320)}"


_LATENCY = " < ".join(_at("rtt_long", "intra", packets) for packets in (20, 40, 80, 160, 320))
_INSENSITIVE = f"{_at('goodput_total', 'intra', 20)} >= 0.95 * {_at('goodput_total', 'intra', 320)}"
_LOW, _MIDDLE, _HIGH = (_at("goodput_total", "inter", packets) for packets in (20, 80, 320))

BINDINGS = {
    "gem-038": Binding(orders=(_LATENCY, _INSENSITIVE)),
    "gem-039": Binding(
        orders=(f"{_LOW} < {_MIDDLE} <= {_HIGH}",),
        also=tuple(_lost(arm) for arm in ("inter", "inter-16", "inter-8", "inter-smooth")),
    ),
}
