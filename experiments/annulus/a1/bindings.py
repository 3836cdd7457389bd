"""How the claims of A-1 are measured."""

from narrows.claims import Binding

SCENARIOS = ("A-1",)

BINDINGS = {
    "ann-001": Binding(("round_trip_ratio(dctcp+bbr)",)),
    "ann-008": Binding(orders=("cut_inside(dctcp+bbr) > cut_across(dctcp+bbr)",)),
    "ann-009": Binding(names={"peak_queue": ("peak_queue",)}),
}
