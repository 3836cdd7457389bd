"""`narrows doctor`: what this machine can do, and what it lacks."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer
from rich.markup import escape
from rich.table import Table

from narrows import wording
from narrows.cli import options
from narrows.cli.exits import ENVIRONMENT
from narrows.cli.output import OUT, line
from narrows.errors import BadInput, EnvironmentLacks
from narrows.experiment import outline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ENOUGH_DISK_BYTES = 2e9


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    good: bool
    found: str
    required: bool = True
    """Whether the simulator needs it; what live runs alone need may be absent."""

    @property
    def mark(self) -> str:
        """Before its subject."""
        if self.good:
            return "[green]✓[/]"
        return "[bold red]✗[/]" if self.required else "[dim]–[/]"


def doctor(out: options.Out = options.DEFAULT_OUT, json: options.Json = False) -> None:
    """Check what this machine can run, and what is missing.

    Code 3 if the simulator lacks something. What only live runs need (`--backend guest` or `host`) may be absent: –.
    """
    findings = list(examine(out))
    table = Table(box=None, show_header=False)
    for finding in findings:
        if json:
            line(**vars(finding))
        table.add_row(finding.mark, escape(finding.subject), escape(finding.found))
    if not json:
        OUT.print(table)
    if not all(finding.good for finding in findings if finding.required):
        raise typer.Exit(ENVIRONMENT)


def examine(out: Path) -> Iterator[Finding]:
    """Every finding, in the order in which things are needed."""
    yield Finding("Python", True, platform.python_version())
    yield Finding("processor", True, f"{os.cpu_count()} cores, {platform.machine()}")
    yield _try("simulator", _simulator)
    yield _try("speed", _speed)
    yield _try("output folder", lambda: _output(out))
    free = shutil.disk_usage(out if out.exists() else ".").free
    yield Finding("free disk", free > ENOUGH_DISK_BYTES, wording.size(free))
    yield _try("figures", _figures)
    yield _try("experiments", _experiments)
    yield from _live()


def _try(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, True, look())
    except (EnvironmentLacks, BadInput, ImportError) as error:
        return Finding(subject, False, str(error))


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


def _live() -> Iterator[Finding]:
    """What narrowsd finds, as `guest: QEMU`; one finding that it is absent, where it is."""
    from narrows.runs import daemon

    try:
        yield Finding("narrowsd", True, f"{daemon.version()}, {daemon.find()}", required=False)
        for found in daemon.doctor():
            subject = f"{found['backend']}: {found['subject']}"
            yield Finding(subject, found["good"], found["found"], required=False)
    except EnvironmentLacks as error:
        yield Finding("narrowsd", False, str(error).replace("\n  help:", ";"), required=False)


def _experiments() -> str:
    from narrows.claims import folders

    number = sum(len(folders.figures(paper)) for paper in folders.papers())
    return f"{number} figures in {folders.root()}"
