"""The real native module against what the lab relies on; skipped, saying so, where it is not built."""

import json
import subprocess
import sys

from conftest import CHECKOUT

SCRIPT = """
import json, sys
from narrows import native
from narrows.columns import TABLES, conform
from narrows.errors import BadInput
from narrows.experiment import expand
four, thirteen = (expand(f"experiments/gemini/{name}/experiment.toml", quick=True) for name in ("fig04", "fig13"))
plan = four.plans[0]
small = expand("experiments/gemini/fig04/experiment.toml", quick=True,
               sets=[("run.end", "200ms"), ("run.warmup", "20ms"), ("run.drain", "2s")])
run = native.Run(json.dumps(small.plans[0].body), 1)
run.progress()
results = run.join()
for name in TABLES:
    conform(name, results.table(name))
manifest = results.manifest()
swept = expand("experiments/gemini/fig10/experiment.toml")
beta = dict(next(item for item in swept.differences if item.path == "cc.gemini.beta").values)
try:
    refused = native.Run("{}", 1).join()
except BadInput:
    refused = True
json.dump({
    "shared": {plan.hash for plan in four.plans} < {plan.hash for plan in thirteen.plans},
    "cases": list(beta) == [plan.case for plan in swept.plans],
    "axes": all(f"beta={value}" in case for case, value in beta.items() if case != "cubic") and beta["cubic"] == "–",
    "undeclared": [item.path for item in thirteen.differences if not item.declared],
    "warmup_ns": plan.warmup_ns,
    "hash": manifest["plan_hash"] == small.plans[0].hash,
    "costs": all(manifest[key] > 0 for key in ("packet_hops", "cpu_ns", "hold_ns", "ns_per_packet_hop")),
    "version": manifest["version"] == native.version(),
    "refused": refused,
}, sys.stdout)
"""


def test_the_native_module_keeps_its_contract(real):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=real, cwd=CHECKOUT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "shared": True,
        "cases": True,
        "axes": True,
        "undeclared": [],
        "warmup_ns": 4_000_000_000,
        "hash": True,
        "costs": True,
        "version": True,
        "refused": True,
    }
