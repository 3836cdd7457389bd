"""How the claims of Fig. 4, and of Table II, which is taken from the same runs, are measured."""

from narrows.claims import Binding

SCENARIOS = ("E-F4", "E-T2")

_LOSS_AND_ECN = ("cubic", "cubic-ecn", "dctcp")
_SMALL_AVERAGE = {"fct_small": ("fct_small_avg",)}

BINDINGS = {
    # The set-up, mean over all arms.
    "gem-019": Binding(("utilisation_wan()",), full_only=True, setup=True),
    "gem-020": Binding(("utilisation_fabric()",), full_only=True, setup=True),
    "gem-021": Binding(("utilisation_hosts()",), full_only=True, setup=True),
    # Completion times; small flows are claimed for the average and for the tail.
    "gem-034": Binding(names={"fct_small": ("fct_small_avg", "fct_small_p99")}),
    "gem-035": Binding(),
    "gem-036": Binding(names=_SMALL_AVERAGE),
    "gem-037": Binding(names=_SMALL_AVERAGE),
    # Where packets are lost.
    "gem-010": Binding(tuple(f"plr_dcn({arm}) / plr_wan({arm})" for arm in _LOSS_AND_ECN), of_means=True),
    "gem-023": Binding(("plr(bbr)",)),
    "gem-024": Binding(("plr_dcn(cubic)",)),
    "gem-025": Binding(("plr_wan(cubic)",)),
    "gem-026": Binding(("plr_dcn(cubic-ecn)",)),
    "gem-027": Binding(("plr_wan(cubic-ecn)",)),
    "gem-028": Binding(("plr_dcn(dctcp)",)),
    "gem-029": Binding(("plr_wan(dctcp)",)),
    "gem-030": Binding(names={"plr": ("plr_dcn",)}),
    "gem-031": Binding(tuple(f"dcn_share_of_losses({arm})" for arm in _LOSS_AND_ECN)),
}
