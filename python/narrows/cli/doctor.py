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

from narrows import outline, wording
from narrows.cli import options
from narrows.cli.exits import ENVIRONMENT
from narrows.cli.output import OUT, line
from narrows.errors import BadInput, EnvironmentLacks

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


def doctor(out: options.Out = options.DEFAULT_OUT, json: options.Json = False) -> None:
    """Says what this machine can do, and what it lacks."""
    findings = list(examine(out))
    table = Table(box=None, show_header=False)
    for finding in findings:
        if json:
            line(subject=finding.subject, good=finding.good, found=finding.found)
        mark = "[green]✓[/]" if finding.good else "[bold red]✗[/]"
        table.add_row(mark, finding.subject, escape(finding.found))
    if not json:
        OUT.print(table)
    if not all(finding.good for finding in findings):
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
    from narrows.store import Store

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
    from narrows import experiments

    number = sum(len(experiments.figures(paper)) for paper in experiments.papers())
    return f"{number} figures of papers in {experiments.root()}"
