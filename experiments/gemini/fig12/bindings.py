"""How the claims of Fig. 12 are measured."""

from narrows.claims import Binding

SCENARIOS = ("E-F12",)

# The delay of the WAN that makes the RTT so many times 200 us.
_DELAYS = {4: "300us", 8: "700us", 16: "1.5ms", 32: "3.1ms", 64: "6.3ms"}


def _at(measure: str, arm: str, ratio: int) -> str:
    return f"{measure}({arm} · delay={_DELAYS[ratio]})"


def _share(arm: str, ratio: int) -> str:
    return _at("inter_over_intra", arm, ratio)


def _falls(arm: str) -> str:
    return " > ".join(_share(arm, ratio) for ratio in (4, 16, 64))


BINDINGS = {
    "gem-066": Binding(tuple(_share("gemini", ratio) for ratio in _DELAYS)),
    "gem-067": Binding((_share("dctcp", 64),)),
    "gem-068": Binding(orders=(_falls("cubic"), _falls("dctcp"))),
    "gem-069": Binding(orders=(f"{_share('bbr', 64)} > 1",)),
    "gem-070": Binding((f"{_share('gemini', 64)} / {_share('dctcp', 64)}",)),
    "gem-071": Binding((_at("shared_equally_up_to", "gemini", 64),)),
}
