"""What each kernel carries: our controllers, the near-source loop and edge routers, in guests of several kernels.

`NARROWS_KERNELS="6.1 6.12"` names them, each fetched by `make guest-kernel KERNEL=…`; without it, nothing is run. With
`NARROWS_WRITE=1` what was found is written into the table of docs/explanation/kernel.md.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from narrows.runs import daemon

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs" / "explanation" / "kernel.md"
BEGIN, END = "<!-- kernels -->\n", "<!-- /kernels -->"
KERNELS = os.environ.get("NARROWS_KERNELS", "").split()
SEEDS = (1, 2, 3, 4, 5, 6)
"""A run that does not count, because a sender waited for the guest's processor, gives way to the next."""
SECONDS = 600
"""For one run, on a machine that does other things as well."""

pytestmark = [
    pytest.mark.guest,
    pytest.mark.system,
    pytest.mark.live,
    pytest.mark.skipif(not KERNELS, reason="NARROWS_KERNELS names no kernels for guests"),
]

DUMBBELL = """
name = "kernels"
title = "Two flows through one port"
[topology.dumbbell]
pairs = 2
edge = { rate = "200Mbps", delay = "25us" }
fabric = { rate = "100Mbps", delay = "1ms", limit = "200pkt", aqm = { threshold = { mark-at = "20pkt" } } }
host = { profile = "linux-6", receive-offload = "off", stack-delay = { tx = "6us", rx = "9us", jitter = "10us" } }
[[traffic]]
from = "left-*"
to = "right-*"
long = { flows = 2, spread = "50ms" }
[[arm]]
name = "it"
cc = "CONTROLLER"
[run]
end = "2s"
warmup = "500ms"
drain = "0s"
seeds = [1]
"""


@dataclass(frozen=True)
class Feature:
    """What is tried: an experiment, and its scheme."""

    name: str
    file: str
    arm: str


FEATURES = [
    *(Feature(name, "", "it") for name in ("newreno", "vegas", "dctcp", "gemini")),
    Feature("near-source loop", "annulus/a1-kernel", "annulus"),
]

PREPARE = """
import json, sys
from pathlib import Path
from narrows import native
file, arm, folder = sys.argv[1:]
plans = native.expand(file, sets=[], quick=False)["plans"]
(plan,) = [plan["plan"] for plan in plans if plan["plan"]["arm"] == arm]
Path(folder, "plan.json").write_text(json.dumps(plan))
results = native.Run(json.dumps(plan), 1).join()
results.table("flows").write_parquet(Path(folder, "flows.parquet"))
"""
FOUND: dict[str, dict[str, str]] = {}
"""By kernel's release and feature."""


@pytest.fixture(scope="session")
def prepared(real: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each feature: its plan, and what the simulator makes of it."""
    folders = {}
    for feature in FEATURES:
        folder = folders[feature.name] = tmp_path_factory.mktemp("feature")
        file = CHECKOUT / "experiments" / feature.file / "experiment.toml"
        if not feature.file:
            file = folder / "experiment.toml"
            file.write_text(DUMBBELL.replace("CONTROLLER", feature.name))
        command = [sys.executable, "-c", PREPARE, file, feature.arm, folder]
        subprocess.run(command, env=real, check=True)
    return folders


def delivered(flows: pl.DataFrame) -> float:
    """Payload after the warm-up, MB."""
    return float(flows["delivered_after_warmup_bytes"].sum()) / 1e6


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_carries_it(kernel: str, feature: Feature, prepared: dict[str, Path], tmp_path: Path) -> None:
    folder = prepared[feature.name]
    for seed in SEEDS:
        out = tmp_path / str(seed)
        command = [daemon.find(), "run", folder / "plan.json", "--seed", str(seed), "--out", out, "--on", "guest"]
        if not feature.file:
            command += ["--controller", f"{feature.name}=narrows_{feature.name}"]
        environment = os.environ | {"NARROWS_GUEST_KERNEL": kernel}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert ended.returncode == 0, ended.stderr
        manifest = json.loads((out / "manifest.json").read_text())
        if manifest["valid"]:
            break
    release = manifest["kernel"]
    FOUND.setdefault(release, {})[feature.name] = "does not count"
    assert manifest["valid"], manifest["invalid"]
    flows = pl.read_ipc_stream(out / "flows.arrow")
    ratio = delivered(flows) / delivered(pl.read_parquet(folder / "flows.parquet"))
    said = f"{ratio:.2f}{works(feature, manifest)}"
    FOUND[release][feature.name] = said if seed == SEEDS[0] else f"{said}; seed {seed}"
    if not feature.file:  # what the other differs by is told where it stands
        assert ratio == pytest.approx(1, abs=0.1)


def works(feature: Feature, manifest: dict[str, Any]) -> str:
    """Whether what is tried took part at all; what to say of that."""
    match feature.name:
        case "near-source loop":
            taken = manifest["near_source"]["taken"]
            assert taken > 10
            return f", {taken} notifications taken"
        case name:
            assert manifest["controllers"][name] == f"narrows_{name}"
            return ""


EDGE = "edge routers"


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_carries_edge_routers(kernel: str) -> None:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "narrows" / "guest"
    folder = max(cache.glob(f"{kernel}.*"), key=lambda one: [int(number) for number in re.findall(r"\d+", one.name)])
    check = CHECKOUT / "crates" / "narrows-testbed" / "check-narrowsd.sh"
    ended = subprocess.run(
        [check, daemon.find(), folder],
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
        errors="replace",
    )
    FOUND.setdefault(folder.name, {})[EDGE] = "do not"
    assert ended.returncode == 0, ended.stdout + ended.stderr
    believed = min(int(number) for number in re.findall(r'"believed": (\d+)', ended.stdout))
    assert believed > 1_000, "of 46 000 packets a tenth is loss-eligible"
    FOUND[folder.name][EDGE] = f"64 MiB, {believed} loss-eligible"


def test_the_page_has_what_was_found() -> None:
    names = [*(feature.name for feature in FEATURES), EDGE]
    assert all(found.keys() == set(names) for found in FOUND.values()), "run all of this file"
    head = f"| kernel | {' | '.join(names)} |\n|---|{'---|' * len(names)}\n"
    rows = "".join(f"| {release} | {' | '.join(found[name] for name in names)} |\n" for release, found in FOUND.items())
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = before + BEGIN + head + rows + END + after
    if os.environ.get("NARROWS_WRITE"):
        PAGE.write_text(wanted, encoding="utf-8")
    else:
        assert text == wanted
