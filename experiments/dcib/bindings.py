"""How the claims are measured that belong to several figures, or to none."""

import tomllib
from pathlib import Path

from narrows.claims import Binding

_HERE = Path(__file__).parent

LIGHT_KM_PER_MS = 299.792458
GLASS = 1.4682
"""How much slower light is in the glass of a fibre."""


def _km_per_ms() -> float:
    """How far light goes in glass in a millisecond. 10 ms are 2000 km of fibre, so 1000 km there and as much back."""
    return LIGHT_KM_PER_MS / GLASS


def _round_trips() -> float:
    """RTTs between two hosts of one site in one between the sites, of experiment I."""
    network = tomllib.loads((_HERE / "b1-cooperative" / "experiment.toml").read_text())["topology"]["two-datacenters"]
    fabric_us = float(network["fabric"]["delay"].removesuffix("us"))
    wan_us = 1000 * float(network["wan"]["delay"].removesuffix("ms"))
    return (wan_us + 4 * fabric_us) / (2 * fabric_us)


BINDINGS = {
    "dci-010": Binding(computed=_km_per_ms),
    "dci-016": Binding(computed=_round_trips),
}
