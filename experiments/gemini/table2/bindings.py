"""How the claims beside Table II are measured; those of the table itself are bound in `fig04`."""

from narrows.claims import Binding

SCENARIOS = ("E-T2b", "E-T2c")

BINDINGS = {
    "gem-032": Binding(("plr_dcn(cubic-ecn-0ms)", "plr_dcn(dctcp-0ms)")),
    "gem-033": Binding(("plr_dcn(cubic-fq) / plr_dcn(cubic)",), of_means=True),
}
