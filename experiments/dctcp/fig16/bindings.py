"""How the claims of Fig. 16 are measured."""

from narrows.claims import Binding

SCENARIOS = ("D-5",)

BINDINGS = {
    "dct-013": Binding(
        ("convergence(dctcp) / convergence(tcp)",), also=("steps_converged(dctcp)", "steps_converged(tcp)")
    ),
    "dct-014": Binding(("jain_steps(dctcp)",), also=("jain_steps(tcp)",)),
    "dct-015": Binding(names={"std": ("goodput_std",)}),
}
