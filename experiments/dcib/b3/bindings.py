"""How the claims of experiment III are measured."""

from narrows.claims import Binding

SCENARIOS = ("B-III",)

BITS_PER_MB = 8e6
WIRE_SHARE = 1538 / 1448
"""Bytes on the wire for a byte of payload."""
RATE_BPS, ARRIVALS_S = 10e9, 1.7

BINDINGS = {
    "dci-011": Binding(("completion_reduced_most(cubic, dcib+cubic)",), also=("fct_all(cubic)", "fct_all(dcib+cubic)")),
    "dci-012": Binding(
        (f"payload(cubic) * {BITS_PER_MB * WIRE_SHARE / RATE_BPS / ARRIVALS_S:.9f}",), full_only=True, setup=True
    ),
    "dci-018": Binding(("completion_reduced_most(cubic, dcib+cubic)",)),
}
