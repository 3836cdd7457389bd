"""Plants each fault of `faults.toml` in a copy of the sources, runs the tests, and writes which of them fail.

    python faults/plant.py [NAME...] [--write PAGE]

The tests of narrows-core run first, and those of the other crates where none of them fails. A fault that no test
notices fails the command. The table on the page is replaced, or only the rows of the faults that are named.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
COPY = CHECKOUT / "target" / "faults"
STAGES = (["--package", "narrows-core"], ["--workspace", "--exclude", "narrows-core"])
FAILED = re.compile(r"^test (?P<name>\S+)(?: - should panic)? \.\.\. FAILED$", re.MULTILINE)
NO_LONGER_THAN_S = 1800
BEGIN, END = "<!-- faults -->\n", "<!-- /faults -->"
HEAD = "| fault | known from | tests that fail |\n|---|---|---|\n"


def main() -> None:
    """Plants the faults that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults to plant; all without")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the table of this page")
    arguments = parser.parse_args()
    faults = {fault["name"]: fault for fault in tomllib.loads((CHECKOUT / "faults/faults.toml").read_text())["fault"]}
    if unknown := [name for name in arguments.names if name not in faults]:
        sys.exit(f"error: there is no fault {', '.join(unknown)}\n  help: the faults are {', '.join(faults)}")
    _copy()
    if failing := _failing():
        sys.exit(f"error: without any fault these tests fail: {', '.join(failing)}")
    noticed = {}
    for name in arguments.names or faults:
        noticed[name] = _planted(faults[name])
        sys.stderr.write(f"{name}: {', '.join(noticed[name]) or 'NO TEST NOTICES'}\n")
    if arguments.write:
        _write(arguments.write, faults, noticed)
    if missed := [name for name, tests in noticed.items() if not tests]:
        sys.exit(f"error: no test notices {', '.join(missed)}")


def _copy() -> None:
    """The files that git knows, as they stand, in a folder of their own."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        source, target = CHECKOUT / name, COPY / "sources" / name
        if not source.is_file() or source.is_symlink():
            continue
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def _planted(fault: dict[str, str]) -> list[str]:
    path = COPY / "sources" / fault["file"]
    text = path.read_text()
    if text.count(fault["find"]) != 1:
        sys.exit(f"error: {fault['name']}: {fault['file']} has its place {text.count(fault['find'])} times")
    path.write_text(text.replace(fault["find"], fault["replace"]))
    try:
        return _failing()
    finally:
        path.write_text(text)


def _failing() -> list[str]:
    """The tests that fail, of the first stage in which any does."""
    for packages in STAGES:
        command = ["cargo", "test", "--no-fail-fast", "--target-dir", COPY / "target", *packages]
        try:
            run = subprocess.run(
                command,
                cwd=COPY / "sources",
                env=os.environ | {"PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1"},  # it is of this fault alone
                capture_output=True,
                text=True,
                timeout=NO_LONGER_THAN_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [f"none, as the tests did not end in {NO_LONGER_THAN_S} s"]
        failed = FAILED.findall(run.stdout)
        if failed:
            return sorted(set(failed))
        if run.returncode:
            sys.exit(f"error: the tests do not run\n{run.stderr[-2000:]}")
    return []


def _write(page: Path, faults: dict[str, dict[str, str]], noticed: dict[str, list[str]]) -> None:
    before, _, rest = page.read_text().partition(BEGIN)
    table, _, after = rest.partition(END)
    rows = {line.split("`")[1]: line + "\n" for line in table.splitlines() if line.startswith("| `")}
    rows |= {name: _row(faults[name], tests) for name, tests in noticed.items()}
    body = "".join(rows[name] for name in faults if name in rows)
    page.write_text(f"{before}{BEGIN}{HEAD}{body}{END}{after}")


def _row(fault: dict[str, str], tests: list[str]) -> str:
    shown = ", ".join(f"`{test.rpartition('::')[2]}`" for test in tests[:3])
    more = f" and {len(tests) - 3} more" if len(tests) > 3 else ""
    return f"| `{fault['name']}`: {fault['about']} | {fault['known']} | {shown or '**none**'}{more} |\n"


if __name__ == "__main__":
    main()
