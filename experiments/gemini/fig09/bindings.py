"""How the claims of Fig. 9 are measured."""

from narrows.claims import Binding

SCENARIOS = ("E-F9",)

_THRESHOLDS = (20, 40, 80, 160, 320)
_OTHER_HOSTS = ("-16", "-8", "-smooth")
"""Receivers that merge 16 and 8 packets in place of 44, and hosts without offloads: reported, not judged."""


def _at(measure: str, arm: str, packets: int | str) -> str:
    text = packets if isinstance(packets, str) else f"{packets}pkt"
    return f"{measure}({arm} · mark-at={text})"


def _share(arm: str, low: int) -> str:
    """What a threshold leaves of the goodput at the largest."""
    return f"{_at('goodput_total', arm, low)} / {_at('goodput_total', arm, 320)}"


def _gain(packets: int | str, hosts: str = "") -> str:
    """How much more GEMINI gets than DCTCP across datacenters."""
    ours, theirs = (_at("goodput_total", f"{scheme}-inter{hosts}", packets) for scheme in ("gemini", "dctcp"))
    return f"{ours} / {theirs}"


def _gap(measure: str, where: str, packets: int, most: str) -> str:
    ours, theirs = (_at(measure, f"{scheme}-{where}", packets) for scheme in ("gemini", "dctcp"))
    return f"abs({ours} / {theirs} - 1) <= {most}"


def _no_slower(where: str, packets: int) -> str:
    return f"{_at('rtt_long', f'gemini-{where}', packets)} <= 1.1 * {_at('rtt_long', f'dctcp-{where}', packets)}"


_TOP = {scheme: _at("goodput_total", f"{scheme}-inter", 320) for scheme in ("gemini", "dctcp")}

BINDINGS = {
    "gem-005": Binding((f"max({_gain('*')})",), also=tuple(f"max({_gain('*', hosts)})" for hosts in _OTHER_HOSTS)),
    "gem-007": Binding(
        tuple(_gain(packets) for packets in _THRESHOLDS),
        also=tuple(f"min({_gain('*', hosts)})" for hosts in _OTHER_HOSTS),
    ),
    # Inside the datacenter and across, at every threshold.
    "gem-008": Binding(
        orders=tuple(_no_slower(where, packets) for where in ("intra", "inter") for packets in _THRESHOLDS)
    ),
    "gem-049": Binding((_TOP["gemini"],)),
    "gem-050": Binding((_TOP["dctcp"],), also=(_at("goodput_total", "dctcp-inter-smooth", 320),)),
    "gem-051": Binding(orders=(f"{_TOP['gemini']} >= {_TOP['dctcp']}",)),
    "gem-052": Binding(
        (_share("dctcp-inter", 20),), also=tuple(_share(f"dctcp-inter{hosts}", 20) for hosts in _OTHER_HOSTS)
    ),
    # Its tolerance asks for a decrease of at least 1 %.
    "gem-053": Binding(
        orders=(f"{_at('goodput_total', 'dctcp-inter', 160)} < 0.99 * {_TOP['dctcp']}",),
        also=tuple(_share(f"dctcp-inter{hosts}", 160) for hosts in _OTHER_HOSTS),
    ),
    "gem-054": Binding((_share("gemini-inter", 160),)),
    "gem-055": Binding(
        orders=tuple(
            _gap(measure, "intra", packets, most)
            for measure, most in (("goodput_total", "0.05"), ("rtt_long", "0.15"))
            for packets in _THRESHOLDS
        )
    ),
    "gem-056": Binding(orders=tuple(_gap("rtt_long", "inter", packets, "0.10") for packets in _THRESHOLDS)),
}
