"""How the claims of Fig. 10 are measured."""

from narrows.claims import Binding

SCENARIOS = ("E-F10",)

_CUTS = ("0.2", "0.4", "0.6")
_THRESHOLDS = ("0.2ms", "0.5ms", "1ms", "2ms", "4ms", "5ms", "8ms")
_UP_TO_4_MS = _THRESHOLDS[:5]


def _at(measure: str, beta: str, t: str) -> str:
    return f"{measure}(gemini · beta={beta} · t={t})"


def _default(measure: str) -> str:
    """At T 5 ms and β 0.2."""
    return _at(measure, "0.2", "5ms")


BINDINGS = {
    "gem-006": Binding(("max(1 - rtt_long(gemini · *) / rtt_long(cubic))",)),
    "gem-009": Binding(
        (f"rtt_long(cubic) / {_default('rtt_long')}",),
        also=(f"queueing_delay(cubic) / {_default('queueing_delay')}",),
    ),
    "gem-057": Binding((_default("goodput_total"),)),
    # Every setting lies between the least and the greatest.
    "gem-058": Binding(("min(rtt_long(gemini · *))", "max(rtt_long(gemini · *))")),
    "gem-059": Binding(("queueing_delay(cubic)",), also=("rtt_long(cubic) - 10",)),
    "gem-060": Binding(
        orders=(f"{_default('goodput_total')} >= 0.97 * goodput_total(cubic)",),
        also=("min(goodput_total(gemini · *)) / goodput_total(cubic)",),
    ),
    "gem-061": Binding(
        orders=tuple(
            sign.join(_at(measure, beta, t) for t in _THRESHOLDS)
            for measure, sign in (("goodput_total", " <= "), ("rtt_long", " < "))
            for beta in _CUTS
        )
    ),
    "gem-062": Binding(orders=tuple(" > ".join(_at("goodput_total", beta, t) for beta in _CUTS) for t in _UP_TO_4_MS)),
}
