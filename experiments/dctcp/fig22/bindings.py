"""How the claims of Fig. 22 and 23 are measured."""

from narrows.claims import Binding

SCENARIOS = ("D-12",)

BINDINGS = {
    "dct-026": Binding(("request_timeout_share(tcp)",), also=("request_timeout_share(tcp-linux-6)",)),
    "dct-027": Binding(("request_timeout_share(dctcp)",), also=("request_timeout_share(dctcp-linux-6)",)),
    # The claim's tolerance: the largest gain or the second largest.
    "dct-028": Binding(orders=("gain_rank_of_messages(tcp, dctcp) <= 2",)),
    # A number for the paper's ten minutes: in a thirtieth of them it would be five too often.
    "dct-029": Binding(("background_timeouts(tcp)", "background_timeouts(dctcp)"), full_only=True),
}
