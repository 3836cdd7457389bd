"""The simulator against the kernel in the guest, in three small scenarios, and the guest against itself.

Skipped, with the reason, where narrowsd, QEMU or the guest's kernel is missing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import CHECKOUT

from narrows.errors import EnvironmentLacks
from narrows.runs import daemon

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tables = tuple[pl.DataFrame, pl.DataFrame]
    Simulate = Callable[[str, str, str], tuple[Path, Tables]]

SECONDS = 240
"""For one run, on a machine that does other things as well."""

NETWORK = """
[topology.dumbbell]
pairs = 2
edge = { rate = "200Mbps", delay = "25us" }
fabric = { rate = "100Mbps", delay = "DELAY", limit = "200pkt" }
host = { profile = "linux-6", receive-offload = "off", stack-delay = { tx = "6us", rx = "9us", jitter = "10us" } }

[[traffic]]
from = "left-*"
to = "right-*"
"""
LONG = 'long = { flows = 2, spread = "50ms" }\n'
SHORT = """
arrivals = { poisson = { rate = "120/s" } }
size = { fixed = "50KB" }
connections = { persistent = { pool = 1 } }
"""
RUN = """
[run]
end = "2s"
warmup = "500ms"
drain = "500ms"
seeds = [1]

[sample]
queues = "1ms"
"""
MARKS = 'set = { "fabric.aqm.threshold.mark-at" = "20pkt" }\n'


def lacking() -> str | None:
    """Why no guest can be run here; `None` where one can."""
    try:
        findings = daemon.doctor()
    except EnvironmentLacks as missing:
        return str(missing).splitlines()[0]
    wanted = [finding for finding in findings if finding["backend"] == "guest" and not finding["good"]]
    return f"{wanted[0]['subject']}: {wanted[0]['found']}" if wanted else None


MISSING = lacking()
pytestmark = [
    pytest.mark.guest,
    pytest.mark.system,
    pytest.mark.skipif(MISSING is not None, reason=f"no guest here: {MISSING}"),
]


SIMULATE = """
import json, sys
from pathlib import Path
from narrows import native
folder = Path(sys.argv[1])
(plan,) = native.expand(str(folder / "experiment.toml"), sets=[], quick=False)["plans"]
(folder / "plan.json").write_text(json.dumps(plan["plan"]))
results = native.Run(json.dumps(plan["plan"]), 1).join()
for name in ("flows", "ports"):
    results.table(name).write_parquet(folder / f"{name}.parquet")
"""


@pytest.fixture
def simulated(real: dict[str, str], tmp_path: Path) -> Simulate:
    """Writes an experiment and runs it in the simulator: its plan's file, and its flows and ports."""

    def simulate(delay: str, traffic: str, arm: str) -> tuple[Path, Tables]:
        text = NETWORK.replace("DELAY", delay) + traffic + '\n[[arm]]\nname = "it"\n' + arm + RUN
        (tmp_path / "experiment.toml").write_text(text)
        subprocess.run([sys.executable, "-c", SIMULATE, str(tmp_path)], env=real, check=True)
        flows, ports = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("flows", "ports"))
        return tmp_path / "plan.json", (flows, ports)

    return simulate


def narrowsd(plan: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """A run of a plan in a guest."""
    command = [daemon.find(), "run", plan, "--seed", "1", "--out", out, "--on", "guest", *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def in_guest(plan: Path, name: str, *more: str) -> Path:
    """Runs a plan in a guest; the folder with its results."""
    folder = plan.parent / name
    folder.mkdir()
    ended = narrowsd(plan, folder / "out", *more)
    assert ended.returncode == 0, ended.stderr
    manifest = json.loads((folder / "out/manifest.json").read_text())
    assert manifest["valid"], manifest["invalid"]
    assert manifest["connections_failed"] == 0
    assert [path.name for path in folder.iterdir()] == ["out"], "nothing is left beside the results"
    return folder / "out"


def tables(out: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Flows and ports of a live run."""
    return pl.read_ipc_stream(out / "flows.arrow"), pl.read_ipc_stream(out / "ports.arrow")


def goodput_mbps(flows: pl.DataFrame) -> float:
    """Payload per measured second, Mbit/s."""
    return float(flows["delivered_after_warmup_bytes"].sum()) * 8 / 1.5 / 1e6


def bottleneck(ports: pl.DataFrame) -> dict[str, Any]:
    """The port between the switches, towards the receivers."""
    return ports.row(by_predicate=pl.col("name") == "switch-left->switch-right", named=True)


def test_cubic_fills_a_wide_area_link_as_simulated(simulated: Simulate) -> None:
    plan, (modelled, model_ports) = simulated("5ms", LONG, 'cc = "cubic"\n')
    flows, ports = tables(in_guest(plan, "run"))
    assert goodput_mbps(flows) == pytest.approx(goodput_mbps(modelled), rel=0.03)
    assert goodput_mbps(flows) > 90
    packets = [bottleneck(found)["queue_p50_bytes"] / 1500 for found in (ports, model_ports)]
    assert packets[0] == pytest.approx(packets[1], rel=0.1, abs=2)


def test_short_flows_take_as_long_as_simulated(simulated: Simulate) -> None:
    plan, (modelled, _) = simulated("1ms", SHORT, 'cc = "cubic"\n')
    flows, _ = tables(in_guest(plan, "run"))
    assert flows["finished"].all()
    assert modelled["finished"].all()
    assert flows["size_bytes"].to_list() == modelled["size_bytes"].to_list()
    assert flows["start_ns"].to_list() == pytest.approx(modelled["start_ns"].to_list(), abs=1_000_000)
    # Of some 200 flows the last hundredth is two, which say nothing.
    for quantile, slack in ((0.5, 0.1), (0.9, 0.15)):
        times = [found["fct_ns"].quantile(quantile) for found in (flows, modelled)]
        assert times[0] == pytest.approx(times[1], rel=slack)
    assert flows["fct_ns"].mean() == pytest.approx(modelled["fct_ns"].mean(), rel=0.05)


def test_gemini_keeps_the_queue_at_the_threshold_and_a_run_repeats_to_the_byte(simulated: Simulate) -> None:
    plan, (_, model_ports) = simulated("50us", LONG, f'cc = "gemini"\n{MARKS}')
    first = in_guest(plan, "first")
    flows, ports = tables(first)
    assert goodput_mbps(flows) > 90
    assert bottleneck(ports)["marked_packets"] > 50
    packets = [bottleneck(found)["queue_p50_bytes"] / 1500 for found in (ports, model_ports)]
    assert packets[0] == pytest.approx(packets[1], rel=0.1, abs=2)
    second = in_guest(plan, "second")
    for file in sorted(first.iterdir()):
        assert file.read_bytes() == (second / file.name).read_bytes(), file.name


def test_a_bpf_controller_in_a_file_does_in_the_guest_as_in_the_simulator(simulated: Simulate, tmp_path: Path) -> None:
    (tmp_path / "mine.bpf.c").write_text((CHECKOUT / "examples" / "cautious.bpf.c").read_text())
    plan, (modelled, model_ports) = simulated("5ms", LONG, 'cc = { file = "mine.bpf.c" }\n')
    out = in_guest(plan, "run")
    assert json.loads((out / "manifest.json").read_text())["controllers"] == {"cautious": "cautious"}
    flows, ports = tables(out)
    assert goodput_mbps(flows) == pytest.approx(goodput_mbps(modelled), rel=0.05)
    # It takes from its window what exceeds 5 ms, which tail drop and NewReno alone would not: 200 packets are 24 ms.
    # Both flows do, wherever their sequence numbers begin.
    for found in (ports, model_ports):
        assert bottleneck(found)["queue_p50_bytes"] / 1500 < 50
    assert flows["delivered_after_warmup_bytes"].min() > flows["delivered_after_warmup_bytes"].max() / 2


def test_other_controllers_in_files_are_refused_for_a_kernel(simulated: Simulate, tmp_path: Path) -> None:
    page = (CHECKOUT / "examples" / "cautious.c").read_text()
    (tmp_path / "mine.c").write_text(page)
    plan, _ = simulated("5ms", LONG, 'cc = { file = "mine.c" }\n')
    ended = narrowsd(plan, tmp_path / "out")
    assert ended.returncode == 2
    assert "mine.c is no BPF program" in ended.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("name", "delay"), [("dctcp", "1ms"), ("vegas", "5ms")])
@pytest.mark.live
def test_our_programs_do_as_the_kernels_own_modules(simulated: Simulate, name: str, delay: str) -> None:
    plan, _ = simulated(delay, LONG, f'cc = "{name}"\n{MARKS if name == "dctcp" else ""}')
    both = [in_guest(plan, "ours"), in_guest(plan, "theirs", "--controller", f"{name}={name}")]
    used = [json.loads((out / "manifest.json").read_text())["controllers"][name] for out in both]
    assert used == [f"narrows_{name}", name]
    (flows, ports), (own_flows, own_ports) = (tables(out) for out in both)
    assert goodput_mbps(flows) == pytest.approx(goodput_mbps(own_flows), rel=0.01)
    port, own = bottleneck(ports), bottleneck(own_ports)
    assert abs(port["queue_p50_bytes"] - own["queue_p50_bytes"]) <= 1500
    assert port["marked_packets"] == pytest.approx(own["marked_packets"], rel=0.05)


def test_no_kernel_is_an_error_that_says_what_to_do(
    simulated: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NARROWS_GUEST_KERNEL", f"{tmp_path}/nowhere")
    plan, _ = simulated("1ms", LONG, 'cc = "cubic"\n')
    ended = narrowsd(plan, tmp_path / "out")
    assert ended.returncode == 3
    assert "nowhere" in ended.stderr
    assert "help: `make guest-kernel`" in ended.stderr
    assert not (tmp_path / "out").exists()
