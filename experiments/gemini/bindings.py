"""Which figure supplies the data of each scenario, and how each claim is measured.

A claim that is not bound here is not judged. Expressions are over the named measures of `narrows.claims.measures`.
"""

from narrows.claims import Binding

FIGURES = {
    "E-F4": "fig04",
    "E-T2": "fig04",  # Table II is taken from the runs of Fig. 4
    "E-F5": "fig05",
    "E-F6": "fig06",
    "E-F9": "fig09",
    "E-F10": "fig10",
    "E-F11": "fig11",
    "E-F12": "fig12",
    "E-F13": "fig13",
    "E-F14": "fig14",
    "E-F15": "fig15",
    "E-F16": "fig16",
}

_LOSS_AND_ECN = ("cubic", "cubic-ecn", "dctcp")
_SMALL_AVERAGE = {"fct_small": ("fct_small_avg",)}
_IN_THE_DCN = {"plr": ("plr_dcn",)}

BINDINGS = {
    # Headline reductions, "up to": the largest over the four figures of realistic traffic.
    "gem-001": Binding(
        ("1 - fct_small_avg(gemini) / fct_small_avg(cubic)",),
        over="max",
        also=("1 - fct_small_avg(gemini) / fct_small_avg(cubic-ecn)",),
    ),
    "gem-002": Binding(("1 - fct_small_avg(gemini) / fct_small_avg(dctcp)",), over="max"),
    "gem-003": Binding(("1 - fct_small_avg(gemini) / fct_small_avg(bbr)",), over="max"),
    "gem-004": Binding(("1 - fct_large(gemini) / fct_large(vegas)",), over="max"),
    # Where packets are lost.
    "gem-010": Binding(tuple(f"plr_dcn({arm}) / plr_wan({arm})" for arm in _LOSS_AND_ECN)),
    "gem-023": Binding(("plr(bbr)",)),
    "gem-024": Binding(("plr_dcn(cubic)",)),
    "gem-025": Binding(("plr_wan(cubic)",)),
    "gem-026": Binding(("plr_dcn(cubic-ecn)",)),
    "gem-027": Binding(("plr_wan(cubic-ecn)",)),
    "gem-028": Binding(("plr_dcn(dctcp)",)),
    "gem-029": Binding(("plr_wan(dctcp)",)),
    "gem-030": Binding(names=_IN_THE_DCN),
    "gem-031": Binding(tuple(f"dcn_share_of_losses({arm})" for arm in _LOSS_AND_ECN)),
    "gem-086": Binding(("plr(gemini)",)),
    "gem-087": Binding(("plr(bbr)",)),
    # The set-up, mean over all arms.
    "gem-019": Binding(("utilisation_wan()",), full_only=True),
    "gem-020": Binding(("utilisation_fabric()",), full_only=True),
    "gem-021": Binding(("utilisation_hosts()",), full_only=True),
    "gem-022": Binding(("utilisation_fabric()",), full_only=True),
    "gem-088": Binding(("share_of_small_flows()",), scenarios=("E-F13",)),
    "gem-089": Binding(("share_of_bytes_in_largest_tenth()",), scenarios=("E-F13",)),
    # Fig. 4: small flows are claimed for the average and for the tail.
    "gem-034": Binding(names={"fct_small": ("fct_small_avg", "fct_small_p99")}),
    "gem-035": Binding(),
    "gem-036": Binding(names=_SMALL_AVERAGE),
    "gem-037": Binding(names=_SMALL_AVERAGE),
    # Fig. 6
    "gem-011": Binding(("goodput_large(vegas-20) / goodput_large(vegas-1)",)),
    "gem-040": Binding(),
    "gem-041": Binding(),
    # Fig. 13 and 14
    "gem-072": Binding(),
    "gem-073": Binding(),
    "gem-074": Binding(names=_SMALL_AVERAGE),
    "gem-075": Binding(),
    "gem-076": Binding(),
    "gem-077": Binding(),
    "gem-078": Binding(names=_SMALL_AVERAGE),
    "gem-079": Binding(),
    # Fig. 15 and 16
    "gem-080": Binding(),
    "gem-081": Binding(),
    "gem-082": Binding(),
    "gem-083": Binding(),
    "gem-084": Binding(),
    "gem-085": Binding(),
    "gem-090": Binding(rank_slack=0.05),
}
