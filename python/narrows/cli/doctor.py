"""`narrows doctor`: what this machine can do, what is not here, and what is here but does not work."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from importlib.metadata import version as version_of
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import typer
from rich.markup import escape
from rich.table import Table

from narrows import wording
from narrows.cli import options
from narrows.cli.exits import ENVIRONMENT
from narrows.cli.output import OUT, line
from narrows.errors import BadInput, EnvironmentLacks, NotHere
from narrows.experiment import outline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ENOUGH_DISK_BYTES: Final = 2e9
ANSWER_SECONDS: Final = 20
"""For a program to tell its version."""

EXTRAS: Final = {
    "learning": ("for controllers that learn", ("gymnasium",)),
    "notebook": ("to write notebooks", ("pandas", "pyarrow", "jupyterlab")),
    "perfetto": ("for `trace --format perfetto`", ("perfetto",)),
    "ray": ("for `run --on ray`", ("ray",)),
}
"""What each extra of the package is for, and the packages that it brings."""


class State(StrEnum):
    """What became of looking at something."""

    WORKS = "works"
    NOT_HERE = "not here"
    """Optional, and not installed."""
    BROKEN = "broken"
    """Needed by every run and absent, or installed and failing."""


MARKS: Final = {State.WORKS: "[green]✓[/]", State.NOT_HERE: "[dim]–[/]", State.BROKEN: "[bold red]✗[/]"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    state: State
    found: str
    required: bool = True
    """Whether the simulator needs it; other things may be absent."""

    @property
    def good(self) -> bool:
        """Whether it is here and works."""
        return self.state is State.WORKS


def doctor(out: options.Out = options.DEFAULT_OUT, json: options.Json = False) -> None:
    """Check what this machine can run.

    Shows what works (✓), what is not installed (–), and what is broken (✗). Code 3 if the simulator lacks something, or
    if something optional is installed but fails. What is not installed is no failure: only live runs (`--backend guest`
    or `host`) need narrowsd, and each extra says what it is for.
    """
    findings = list(examine(out))
    table = Table(box=None, show_header=False)
    for finding in findings:
        if json:
            line(**vars(finding), good=finding.good)
        table.add_row(MARKS[finding.state], escape(finding.subject), escape(finding.found))
    broken = [finding.subject for finding in findings if finding.state is State.BROKEN]
    if not json:
        OUT.print(table)
        if broken:
            OUT.print(f"[bold red]broken:[/] {escape(', '.join(broken))}", soft_wrap=True)
    if broken:
        raise typer.Exit(ENVIRONMENT)


def examine(out: Path) -> Iterator[Finding]:
    """Every finding, in the order in which things are needed."""
    yield Finding("Python", State.WORKS, platform.python_version())
    yield Finding("processor", State.WORKS, f"{os.cpu_count()} cores, {platform.machine()}")
    yield _required("simulator", _simulator)
    yield _required("speed", _speed)
    yield _required("output folder", lambda: _output(out))
    free = shutil.disk_usage(out if out.exists() else ".").free
    yield Finding("free disk", State.WORKS if free > ENOUGH_DISK_BYTES else State.BROKEN, wording.size(free))
    yield _required("figures", _figures)
    yield _required("experiments", _experiments)
    for extra, (purpose, packages) in EXTRAS.items():
        yield _extra(extra, purpose, packages)
    yield _valgrind()
    yield from _live()


def _required(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, State.WORKS, look())
    except (EnvironmentLacks, BadInput, ImportError) as error:
        return Finding(subject, State.BROKEN, _one_line(error))


def _simulator() -> str:
    from narrows import native

    return f"narrows {native.version()}, {len(native.controllers())} controllers"


def _speed() -> str:
    from narrows import native

    hold_ns = native.calibrate()
    per_second = 1e9 / (outline.HOLDS_PER_HOP * hold_ns)
    return f"{wording.number(hold_ns)} ns per hold, so about {wording.count(per_second, 2)} packet-hops/s on a core"


def _output(out: Path) -> str:
    from narrows.runs.store import Store

    existed = out.exists()
    Store(out).prepare()
    if not existed:
        out.rmdir()
    return f"{out} can be written"


def _figures() -> str:
    import altair
    import vl_convert

    return f"altair {altair.__version__}, vl-convert with Vega {vl_convert.get_vega_version()}"


def _experiments() -> str:
    from narrows.claims import folders

    number = sum(len(folders.figures(paper)) for paper in folders.papers())
    return f"{number} figures in {folders.root()}"


def _extra(extra: str, purpose: str, packages: tuple[str, ...]) -> Finding:
    """Whether an extra's packages are installed, and can be imported."""
    subject = f"extra {extra}"
    if missing := [name for name in packages if find_spec(name) is None]:
        advice = f"pip install 'narrows[{extra}]'"
        return Finding(subject, State.NOT_HERE, f"{wording.some(missing)} not here, {purpose}; {advice}", False)
    for name in packages:
        try:
            import_module(name)
        except Exception as error:  # noqa: BLE001 - whatever a foreign package raises, it does not work
            reason = f"{name} is installed but cannot be imported: {_one_line(error) or type(error).__name__}"
            return Finding(subject, State.BROKEN, reason, False)
    return Finding(subject, State.WORKS, ", ".join(f"{name} {version_of(name)}" for name in packages), False)


def _valgrind() -> Finding:
    program = shutil.which("valgrind")
    if program is None:
        advice = "not here, to count instructions in `bench`; apt-get install valgrind"
        return Finding("valgrind", State.NOT_HERE, advice, False)
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("valgrind", State.BROKEN, f"{program} does not answer: {error}", False)
    return Finding("valgrind", State.WORKS, done.stdout.strip(), False)


def _live() -> Iterator[Finding]:
    """What narrowsd finds, as `guest: QEMU`; one finding that it is absent or broken, where it is."""
    from narrows.runs import daemon

    try:
        yield Finding("narrowsd", State.WORKS, f"{daemon.version()}, {daemon.find()}", False)
        for found in daemon.doctor():
            subject = f"{found['backend']}: {found['subject']}"
            yield Finding(subject, State.WORKS if found["good"] else State.NOT_HERE, found["found"], False)
    except NotHere as error:
        yield Finding("narrowsd", State.NOT_HERE, _one_line(error), False)
    except EnvironmentLacks as error:
        yield Finding("narrowsd", State.BROKEN, _one_line(error), False)


def _one_line(error: Exception) -> str:
    return str(error).replace("\n  help:", ";")
