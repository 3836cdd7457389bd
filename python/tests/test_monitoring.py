"""Prometheus reads the alert rules, asks what the dashboard asks, and raises alerts where edge routers are killed.

`monitored.py` makes the hosts, edge routers and namespaces, and records what Prometheus answers.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import dashboard_picture
import monitored
import pytest
from conftest import TESTS

ALERTS = monitored.FILES / "alerts.yml"
DASHBOARD = json.loads((monitored.FILES / "dashboard.json").read_text())
TARGETS = {f"{panel['id']} {target['refId']}": target for panel in DASHBOARD["panels"] for target in panel["targets"]}


def needed(*names):
    """These programs of Prometheus, or the test is skipped."""
    for name in names:
        if monitored.tool(name) is None:
            pytest.skip(f"{name} is not installed, and `make system-tools` has not unpacked it")
    return [monitored.tool(name) for name in names]


def promtool(*arguments):
    """What it says, if it is content."""
    done = subprocess.run([*needed("promtool"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.system
def test_prometheus_reads_the_rules():
    count = ALERTS.read_text().count("- alert: ")
    assert f"SUCCESS: {count} rules found" in promtool("check", "rules", ALERTS)


@pytest.mark.system
def test_the_rules_fire_when_they_should_and_not_before():
    text = (TESTS / "alerts.test.yml").read_text()
    missing = set(re.findall(r"- alert: (\w+)", ALERTS.read_text())) - set(re.findall(r'alertname="(\w+)"', text))
    assert not missing, "every rule fires in a test"
    promtool("test", "rules", TESTS / "alerts.test.yml")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """What Prometheus answered of half a minute in which much goes wrong."""
    needed("prometheus", "prometheus-node-exporter")
    if os.geteuid() != 0:
        pytest.skip("only root makes network namespaces and loads controllers")
    if not Path(monitored.narrowsd()).exists():
        pytest.skip("there is no narrowsd: `make narrowsd`, or NARROWSD names it")
    if "narrows_" in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text():
        pytest.skip("controllers of Narrows are loaded on this machine: those of the test would be refused")
    alone = ["unshare", "--mount", "--propagation", "private"]
    tried = subprocess.run([*alone, "--net", "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"namespaces cannot be made here: {tried.stderr.strip()}")
    file = tmp_path_factory.mktemp("monitored") / "recorded.json"
    command = [*alone, sys.executable, TESTS / "monitored.py", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text())


def greatest(recorded, key, **labels):
    """The greatest value of each series with these labels, and the least of all."""
    assert recorded["answers"][key]["status"] == "success", recorded["answers"][key]
    series = [
        [float(value) for _, value in one["values"]]
        for one in recorded["answers"][key]["data"]["result"]
        if labels.items() <= one["metric"].items()
    ]
    assert series, (key, labels)
    return max(max(values) for values in series), min(min(values) for values in series)


HOSTS, PARIS, FRANKFURT = ({"instance": name} for name in ("hosts", "paris", "frankfurt"))
IN_RANGE = [
    # Panel and target, labels, and between what its greatest value is.
    ("1 A", HOSTS | {"controller": "gemini", "netns": "a"}, 2, 2),
    ("1 A", HOSTS | {"controller": "dctcp", "netns": "b"}, 3, 3),
    ("2 A", HOSTS | {"controller": "gemini", "netns": "a"}, 2, 200),
    ("2 A", HOSTS | {"controller": "dctcp", "netns": "a"}, 2, 200),
    ("3 A", HOSTS | {"controller": "gemini", "netns": "a"}, 1e5, 1e9),
    ("4 A", HOSTS | {"controller": "gemini"}, 0.5, 4),
    ("5 A", PARIS, 1, 1),
    ("5 A", FRANKFURT, 1, 1),
    ("5 B", PARIS, 1, 1),
    ("5 B", FRANKFURT, 1, 1),
    ("6 A", PARIS, 0.010, 0.5),
    ("6 A", FRANKFURT, 0.010, 0.5),
    ("6 B", PARIS, 1e-5, 1),
    ("7 A", PARIS, 1, 1_000),
    ("7 B", PARIS, 0, 1_000),
    ("8 A", PARIS | {"outcome": "alone", "side": "inside"}, 1, 20_000),
    ("8 A", PARIS | {"outcome": "ring_full", "side": "inside"}, 0, 20_000),
    ("8 B", PARIS, 1, 20_000),
    ("9 A", FRANKFURT | {"reason": "unauthenticated"}, 1, 20_000),
    ("10 A", PARIS, 1, 20_000),
    ("10 B", FRANKFURT, 1, 20_000),
    ("11 A", HOSTS, 1, 6),
    ("12 A", HOSTS | {"outcome": "taken"}, 1, 40),
]
"""Nothing makes packets too long for the ring, fills it, or has every retransmission lost for sure: these may be 0."""


@pytest.mark.system
def test_each_query_of_the_dashboard_has_an_answer_in_range(recorded):
    assert recorded["instances"] == ["frankfurt", "hosts", "paris"], "what Grafana offers to choose from"
    assert {key for key, *_ in IN_RANGE} == set(TARGETS) == set(recorded["answers"])
    for key, labels, low, high in IN_RANGE:
        most, least = greatest(recorded, key, **labels)
        assert low <= most <= high, (key, labels, most)
        assert least >= 0, (key, labels, least)
    # Panels show that the process was killed: over HTTP it says so.
    assert greatest(recorded, "5 A", **PARIS)[1] == 0
    assert greatest(recorded, "5 B", **PARIS)[1] == 0


@pytest.mark.system
def test_legends_have_the_labels_of_the_series(recorded):
    for key, target in TARGETS.items():
        wanted = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        for one in recorded["answers"][key]["data"]["result"]:
            assert wanted <= set(one["metric"]), (key, one["metric"])


def fired(recorded, name):
    """When an alert fires, each second, and with which labels."""
    for one in recorded["alerts"]:
        if (one["metric"]["alertname"], one["metric"]["alertstate"]) == (name, "firing"):
            yield [when for when, _ in one["values"]], one["metric"]


WITHOUT_CAUSE_NEVER = {
    "NarrowsEcnIsRefused", "NarrowsFileIsRefused", "NarrowsForgedMessages", "NarrowsUnitIsDown",
    "NarrowsHostIsNotScraped",
}  # fmt: skip
"""However busy this machine is: no packet is late for them."""


@pytest.mark.system
@pytest.mark.parametrize(("name", "labels", "phase"), [
    ("NarrowsEcnIsRefused", HOSTS | {"controller": "gemini"}, "a listener refuses ECN"),
    ("NarrowsFileIsRefused", HOSTS, "a listener refuses ECN"),
    ("NarrowsForgedMessages", FRANKFURT | {"reason": "unauthenticated"}, "messages are forged"),
    ("NarrowsEdgeRouterIsTooSlow", PARIS | {"outcome": "late"}, "process in Paris stops"),
    ("NarrowsMetricsAreOld", FRANKFURT, "process in Frankfurt killed"),
    ("NarrowsFarEdgeDoesNotAnswer", PARIS, "process in Frankfurt killed"),
    ("NarrowsEdgeRouterWithoutProcess", PARIS, "process in Paris killed"),
    ("NarrowsUnitIsDown", PARIS | {"unit": "bridge.paris"}, "process in Paris killed"),
    ("NarrowsHostIsNotScraped", PARIS, "serve in Paris killed"),
])  # fmt: skip
def test_an_alert_fires_after_its_cause_and_says_where(recorded, name, labels, phase):
    # A machine that has no time for edge routers has them fire before, too.
    found = [when for times, metric in fired(recorded, name) if labels.items() <= metric.items() for when in times]
    since = dict(recorded["phases"])[phase]
    names = list(monitored.PHASES)
    later = names[min(names.index(phase) + 2, len(names) - 1)]
    assert any(since <= when <= dict(recorded["phases"])[later] + 1 for when in found), (since, recorded["alerts"])
    if name in WITHOUT_CAUSE_NEVER:
        assert min(found) >= since - 1, (since, recorded["alerts"])


@pytest.mark.system
def test_alerts_name_labels_that_their_series_have(recorded):
    rules = {rule["name"]: rule for group in recorded["rules"] for rule in group["rules"]}
    assert all(rule["health"] == "ok" for rule in rules.values()), recorded["rules"]
    for name, rule in rules.items():
        wanted = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        for _, metric in fired(recorded, name):
            assert wanted <= set(metric), (name, metric)


@pytest.mark.system
def test_the_picture_shows_every_panel_with_its_series(recorded):
    drawn = ElementTree.fromstring("\n".join(dashboard_picture.draw(recorded, DASHBOARD)))
    words = {one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {panel["title"] for panel in DASHBOARD["panels"]} <= words
    assert {"hosts a gemini", "paris in0-out0 RTT", "frankfurt in0-out0 unauthenticated", "Yes", "No"} <= words


@pytest.mark.parametrize(("value", "unit", "said"), [
    (0, "bps", "0 b/s"), (2.5e6, "bps", "2.5 Mb/s"), (0.02, "s", "20 ms"), (1.5, "s", "1.5 s"), (25, "pps", "25 p/s"),
    (2_000, "pps", "2 kp/s"), (0.5, "cps", "0.5 c/s"), (12, "short", "12"), (1, "bool_yes_no", "Yes"),
])  # fmt: skip
def test_values_are_written_with_units(value, unit, said):
    assert dashboard_picture.written(value, unit) == said


def test_variables_are_replaced_as_grafana_does():
    asked = monitored.as_grafana_asks('rate(x{instance=~"$instance"}[$__rate_interval])', ["192.0.2.1:9936", "b"], 1)
    assert asked == 'rate(x{instance=~"(192\\\\.0\\\\.2\\\\.1:9936|b)"}[4s])'
