"""What packages of narrowsd hold; each is installed in a copy of this machine's root, used, and removed."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PACKAGING = CHECKOUT / "crates" / "narrows-daemon" / "packaging"
SOURCES = CHECKOUT / "crates" / "narrows-daemon" / "src"


@pytest.mark.parametrize("name", ["alerts.yml", "dashboard.json"])
def test_rules_and_dashboard_ask_for_series_that_there_are(name):
    text = (PACKAGING / "monitoring" / name).read_text(encoding="utf-8")
    asked = set(re.findall(r"\bnarrows_[a-z_]+", text))
    there = {match for file in SOURCES.rglob("*.rs") for match in re.findall(r'"(narrows_[a-z_]+)"', file.read_text())}
    assert asked
    assert asked <= there, asked - there
    # Values of labels, as programs write them.
    outcomes = set(re.findall(r'(?:outcome|what)=~?\\*"([a-z_|]+)', text))
    words = {word for group in outcomes for word in group.split("|")}
    written = "".join(file.read_text() for file in SOURCES.rglob("*.rs"))
    kernel = (CHECKOUT / "crates" / "narrows-kernel" / "src" / "bridge.rs").read_text().replace("-", "_")
    missing = {word for word in words if f'"{word}"' not in written and f'"{word}"' not in kernel}
    assert words
    assert not missing


def test_the_dashboard_is_one():
    dashboard = json.loads((PACKAGING / "monitoring" / "dashboard.json").read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) >= 10
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places), "no panel lies on another"
    assert all(target["expr"] for panel in panels for target in panel["targets"])


def test_examples_and_units_name_the_same_files():
    units = {file.name: file.read_text() for file in (PACKAGING / "systemd").iterdir()}
    assert "EnvironmentFile=/etc/narrows/bridge-%i.conf" in units["narrowsd-bridge@.service"]
    assert "EnvironmentFile=-/etc/narrows/%i.conf" in units["narrowsd@.service"]
    assert "--senders /etc/narrows/senders.toml" in units["narrowsd-near-source.service"]
    examples = {file.name for file in (PACKAGING / "examples").iterdir()}
    assert examples == {"bridge-paris.conf", "gemini.conf", "narrowsd.toml", "senders.toml"}
    assert "serve --config /etc/narrows/narrowsd.toml" in units["narrowsd.service"]
    for name in ["bridge-paris.conf", "gemini.conf"]:
        assert re.search(r"^OPTIONS=--", (PACKAGING / "examples" / name).read_text(), re.MULTILINE)


def test_links_of_packaged_pages_lead_somewhere(tmp_path):
    subprocess.run([sys.executable, PACKAGING / "pages.py", tmp_path], check=True)
    there = {file.name for file in tmp_path.iterdir()}
    assert there == {"deploy.md", "narrowsd-file.md", "wire.md", "monitoring.png"}
    links = 0
    for page in tmp_path.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)]*)\)", text):
            name, _, anchor = target.partition("#")
            assert not name or name in there, f"{page.name}: {target}"
            aimed = (tmp_path / (name or page.name)).read_text(encoding="utf-8") if anchor else ""
            headings = re.findall(r"^#+ (.*)$", aimed, re.MULTILINE)
            assert not anchor or anchor in {heading.lower().replace(" ", "-") for heading in headings}, target
            links += 1
    assert links > 5
    assert "- `docs/explanation/kernel.md`\n" in (tmp_path / "deploy.md").read_text(encoding="utf-8")


COMMANDS = {
    "deb": {
        "install": "dpkg --install /package >/dev/null",
        "again": "dpkg --install /package >/dev/null",
        "remove": "dpkg --remove narrowsd >/dev/null",
    },
    # Debian's rpm asks for the first option, and its database knows of no other package.
    "rpm": {
        "install": "rpm --force-debian --install --nodeps /package",
        "again": "rpm --force-debian --upgrade --nodeps --replacepkgs /package",
        "remove": "rpm --force-debian --erase narrowsd",
    },
}

INSIDE = r"""
    set -eu
    before=$(mktemp); after=$(mktemp)
    find /usr /etc -xdev \( -type f -o -type l \) | grep -v '^/etc/ld.so.cache$' | sort > "$before"
    {install}
    narrowsd --version
    gzip --decompress --stdout /usr/share/man/man1/narrowsd-cc-route-add.1.gz | grep --count 'dry'
    test -s /usr/share/bash-completion/completions/narrowsd
    test -s /usr/share/doc/narrowsd/examples/senders.toml
    test -s /usr/share/doc/narrowsd/narrowsd-file.md
    narrowsd serve --check --config /usr/share/doc/narrowsd/examples/narrowsd.toml | grep --quiet 'nothing would be run'
    if command -v systemd-analyze >/dev/null; then
        # It ends well whatever it finds: what it says of ours counts.
        for unit in narrowsd narrowsd@gemini narrowsd-bridge@paris narrowsd-near-source; do
            systemd-analyze verify $unit.service 2>&1 | sed -n '/narrowsd/s/^/unit: /p'
        done
    fi

    # By docs/how-to/deploy.md, One route.
    narrowsd cc load gemini --set capacity=200Mbps --set t=2ms
    nsenter --net=/run/netns/packaged narrowsd cc route add 192.0.2.0/24 gemini
    ip -n packaged route show 192.0.2.0/24
    if {remove} 2>&1; then echo 'removed although a route needs it'; fi
    narrowsd --version >/dev/null
    narrowsd cc status gemini | head -1
    nsenter --net=/run/netns/packaged narrowsd cc route remove 192.0.2.0/24
    # Without the command nobody could undo this one either.
    nsenter --net=/run/netns/packaged narrowsd cc route add 192.0.2.128/25 reno
    if {remove} 2>&1; then echo "removed although a route names the kernel's own"; fi
    narrowsd cc unload --all --dry-run 2>&1 | sed -n 's/^error/needed by: &/p'
    nsenter --net=/run/netns/packaged narrowsd cc route remove 192.0.2.128/25
    {again}
    narrowsd cc status gemini | head -1
    {remove}
    find /usr /etc -xdev \( -type f -o -type l \) | grep -v '^/etc/ld.so.cache$' | sort > "$after"
    echo "left: $(comm -13 "$before" "$after" | tr '\n' ' ')"
    cat /proc/sys/net/ipv4/tcp_available_congestion_control
    ls /sys/fs/bpf
"""
"""In the copy of the root; `dpkg` and `rpm` note what they do below /var."""

OUTSIDE = """
    set -eu
    mount -t tmpfs none {place}
    mkdir {place}/over {place}/work {place}/root
    mount -t overlay overlay -o lowerdir=/,upperdir={place}/over,workdir={place}/work {place}/root
    for shared in proc sys dev run; do mount --rbind /$shared {place}/root/$shared; done
    mount -t bpf bpf {place}/root/sys/fs/bpf
    cp {package} {place}/root/package
    cp {script} {place}/root/script.sh
    chroot {place}/root sh /script.sh
"""


@pytest.mark.system
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_package_is_installed_used_and_removed_and_nothing_is_left(kind, tmp_path):
    folder = os.environ.get("NARROWS_PACKAGES")
    if folder is None:
        pytest.skip("NARROWS_PACKAGES does not name the folder in which `make packages` puts them")
    if kind == "rpm" and shutil.which("rpm") is None:
        pytest.skip("rpm is not installed")
    (package,) = Path(folder).glob(f"*.{kind}")
    script, place = tmp_path / "script.sh", tmp_path / "place"
    commands = INSIDE
    for name, command in COMMANDS[kind].items():
        commands = commands.replace(f"{{{name}}}", command)
    script.write_text(textwrap.dedent(commands))
    place.mkdir()
    network = [
        "netns add packaged",
        "-n packaged link add nrw0 type veth peer name nrw1",
        "-n packaged address add 192.0.2.1/24 dev nrw0",
        "-n packaged link set nrw0 up",
    ]
    try:
        for command in network:
            subprocess.run(["ip", *command.split()], check=True)
        outside = textwrap.dedent(OUTSIDE.format(place=place, package=package, script=script))
        done = subprocess.run(["unshare", "--mount", "sh", "-c", outside], capture_output=True, text=True, check=False)
    finally:
        subprocess.run(["ip", "netns", "delete", "packaged"], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("narrowsd 0."), done.stdout
    assert int(lines[1]) >= 1
    assert "unit: " not in done.stdout, done.stdout
    said = "\n".join(lines[2:])
    assert said.startswith("gemini is registered as narrows_gemini\n"), done.stdout + done.stderr
    assert "congctl narrows_gemini" in said
    assert "removed although" not in said
    assert "needed by: error: reno is named by the route to 192.0.2.128/25 (network namespace packaged)" in said
    assert said.count("gemini: registered as narrows_gemini, pinned") == 2, "refused, and upgraded, it unloads nothing"
    assert "left: \n" in said, said
    assert "narrows" not in said.split("left:")[1], "unloaded, and its pins are gone"
