"""How the claims are measured of what a host notices."""

from narrows.claims import Binding

SCENARIOS = ("B-UT3", "B-UT5")

BINDINGS = {
    # "<= 1 % of the losses may still cause a cut"
    "dci-014": Binding(orders=("cuts_per_loss(dcib+cubic) <= 0.01",), also=("window_cuts(dcib+cubic)",)),
    "dci-015": Binding(orders=("window_cuts(dcib+cubic without repairs) > 0",)),
}
