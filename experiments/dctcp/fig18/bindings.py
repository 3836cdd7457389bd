"""How the claims of Fig. 18 are measured."""

from narrows.claims import Binding

SCENARIOS = ("D-7",)
RTOS = ("300ms", "10ms")


def _each(measure: str, *arms: str) -> tuple[str, ...]:
    return tuple(f"{measure}({arm} · min-rto={rto})" for arm in arms for rto in RTOS)


# Of the claim's 15 to 30 servers every fifth number, which quick runs have too; the others are in the figure.
_DELAYS = tuple(
    f"request_mean(dctcp · min-rto={rto} · count={servers}) < request_mean(tcp · min-rto={rto} · count={servers})"
    for rto in RTOS
    for servers in (15, 20, 25, 30)
)

BINDINGS = {
    "dct-016": Binding(_each("servers_with_timeouts", "tcp"), also=_each("servers_with_any_timeout", "tcp")),
    "dct-017": Binding(_each("servers_with_timeouts", "dctcp"), also=_each("servers_with_any_timeout", "dctcp")),
    "dct-018": Binding(orders=_DELAYS),
    "dct-045": Binding(_each("request_mean_least", "dctcp", "tcp")),
}
