"""Linux's own modules on four networks: their source in the simulator, and the same modules in the guest's kernel.

`LINUX_SOURCE` names the folder of the source that the guest's kernel is made of, that of Debian's linux-source-6.1.
Three quarters of an hour of a processor. Skipped, with the reason, where narrowsd, QEMU, the guest's kernel or the
source is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING, Final

import polars as pl
import pytest
from test_guest import MISSING

from narrows.runs import daemon

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.guest,
    pytest.mark.system,
    pytest.mark.skipif(MISSING is not None, reason=f"no guest here: {MISSING}"),
    pytest.mark.skipif("LINUX_SOURCE" not in os.environ, reason="LINUX_SOURCE names no source: nothing tried"),
]


@dataclass(frozen=True)
class Network:
    """A bottleneck, the flows over it, and for how long."""

    fabric: str
    flows: int
    end_s: int
    warmup_s: int
    seeds: tuple[int, ...] = (1,)


FIVE: Final = (1, 2, 3, 4, 5)
NETWORKS: Final = {
    "short": Network('rate = "100Mbps", delay = "200us", limit = "100pkt"', 4, 8, 2),
    "shallow": Network('rate = "100Mbps", delay = "5ms", limit = "50pkt"', 8, 15, 3),
    "lossy": Network('rate = "50Mbps", delay = "25ms", limit = "200pkt", loss = 0.001', 2, 30, 5, FIVE),
    "wide": Network('rate = "100Mbps", delay = "10ms", limit = "200pkt"', 4, 20, 5),
}
VARYING: Final = {("short", "vegas"), ("shallow", "vegas"), ("wide", "vegas"), ("wide", "cdg"), ("wide", "yeah")}
"""Whose queue depends by a fifth or more on when the flows start: five seeds."""
MODULES: Final = (
    "bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "scalable", "vegas",
    "veno", "westwood", "yeah",
)  # fmt: skip
AGREE: Final = {"bbr", "cubic", "dctcp", "highspeed", "htcp", "nv", "scalable", "veno", "westwood", "yeah"}
EXPERIMENT = """
[topology.dumbbell]
pairs = {flows}
edge = {{ rate = "500Mbps", delay = "25us" }}
fabric = {{ {fabric} }}
host = {{ profile = "linux-6", receive-offload = "off", stack-delay = {{ tx = "6us", rx = "9us", jitter = "10us" }} }}
[[traffic]]
from = "left-*"
to = "right-*"
long = {{ flows = {flows}, spread = "100ms" }}
{schemes}
[run]
end = "{end}s"
warmup = "{warmup}s"
seeds = {seeds}
"""
MARKS = 'set = { "fabric.aqm.threshold.mark-at" = "40pkt" }\n'
SIMULATE = """
import sys
from pathlib import Path
from narrows import native
results = native.Run(Path(sys.argv[1]).read_text(), int(sys.argv[2])).join()
for name in ("flows", "ports"):
    results.table(name).write_ipc_stream(sys.argv[3] + f"-{name}.arrow")
"""


def schemes() -> str:
    """The modules from their files; and controllers of ours, in whose place the guest has the kernel's modules."""
    named = {name: f'{{ file = "tcp_{name}.c" }}' for name in MODULES}
    named |= {"plain": '"newreno"', "plain-dctcp": '"dctcp"'}
    return "".join(
        f'[[arm]]\nname = "{name}"\ncc = {cc}\n{MARKS * name.endswith("dctcp")}' for name, cc in named.items()
    )


def told(flows: pl.DataFrame, ports: pl.DataFrame, network: Network) -> tuple[float, float]:
    """Goodput of all flows, Mbit/s, and the mean queue of the bottleneck, packets."""
    port = ports.row(by_predicate=pl.col("name") == "switch-left->switch-right", named=True)
    bits = float(flows["delivered_after_warmup_bytes"].sum()) * 8
    return bits / (network.end_s - network.warmup_s) / 1e6, port["queue_mean_bytes"] / 1500


def simulated(folder: Path, module: str, seed: int, network: Network, real: dict[str, str]) -> tuple[float, float]:
    """The module's source in the simulator."""
    out = f"{folder}/simulated-{module}-{seed}"
    plan = folder / "plans" / f"{module}.json"
    subprocess.run([sys.executable, "-c", SIMULATE, plan, str(seed), out], env=real, check=True)
    flows, ports = (pl.read_ipc_stream(f"{out}-{table}.arrow") for table in ("flows", "ports"))
    return told(flows, ports, network)


def in_guest(folder: Path, module: str, seed: int, network: Network) -> tuple[float, float]:
    """The kernel's own module in the guest."""
    plain, ours = ("plain-dctcp", "dctcp") if module == "dctcp" else ("plain", "newreno")
    out = folder / f"guest-{module}-{seed}"
    command = [daemon.find(), "run", folder / "plans" / f"{plain}.json", "--seed", str(seed), "--out", out]
    subprocess.run([*command, "--on", "guest", "--controller", f"{ours}={module}"], check=True, capture_output=True)
    manifest = json.loads((out / "manifest.json").read_text())
    if manifest["invalid"]:
        print(f"{module}, seed {seed}: {manifest['invalid']}")
    flows, ports = (pl.read_ipc_stream(out / f"{table}.arrow") for table in ("flows", "ports"))
    return told(flows, ports, network)


def agree(modelled: tuple[float, float], real: tuple[float, float]) -> bool:
    """3 % of the goodput, and 10 % of the queue or half a packet."""
    return modelled[0] == pytest.approx(real[0], rel=0.03) and modelled[1] == pytest.approx(real[1], rel=0.1, abs=0.5)


def test_ten_modules_do_in_the_simulator_what_they_do_in_the_kernel(linux_modules: Path, real: dict[str, str]) -> None:
    everywhere = set(MODULES)
    for name, network in NETWORKS.items():
        folder = linux_modules / name
        folder.mkdir()
        for file in linux_modules.glob("tcp_*.[ch]"):
            (folder / file.name).symlink_to(file)
        text = EXPERIMENT.format(
            flows=network.flows, fabric=network.fabric, schemes=schemes(), end=network.end_s, warmup=network.warmup_s,
            seeds=list(network.seeds),
        )  # fmt: skip
        (folder / "experiment.toml").write_text(text)
        command = [sys.executable, "-m", "narrows", "check", folder / "experiment.toml", "--plans", folder / "plans"]
        subprocess.run(command, env=real, check=True, capture_output=True)

        def both(
            module: str, name: str = name, folder: Path = folder, network: Network = network
        ) -> list[tuple[float, float]]:
            seeds = FIVE if (name, module) in VARYING else network.seeds
            modelled = [simulated(folder, module, seed, network, real) for seed in seeds]
            kernels = [in_guest(folder, module, seed, network) for seed in seeds]
            return [(mean(row[0] for row in rows), mean(row[1] for row in rows)) for rows in (modelled, kernels)]

        with ThreadPoolExecutor(2) as pool:
            for module, (modelled, kernel) in zip(MODULES, pool.map(both, MODULES), strict=True):
                print(f"{name:8} {module:10} Mbit/s {modelled[0]:6.2f} {kernel[0]:6.2f}", end="  ")
                print(f"packets {modelled[1]:6.2f} {kernel[1]:6.2f}", flush=True)
                if not agree(modelled, kernel):
                    everywhere.discard(module)
    print("everywhere:", ", ".join(sorted(everywhere)))
    assert everywhere >= AGREE
