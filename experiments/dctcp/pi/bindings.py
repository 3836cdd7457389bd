"""How the claim on PI is measured."""

from narrows.claims import Binding

SCENARIOS = ("D-4",)

BINDINGS = {
    "dct-033": Binding(
        orders=(
            "utilisation_line(tcp-pi · flows=5) < utilisation_line(dctcp · flows=5)",
            "queue_std(tcp-pi · flows=20) > queue_std(tcp-pi · flows=5)",
        )
    ),
}
