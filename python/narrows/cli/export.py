"""`narrows export NAME`: results as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli import options
from narrows.cli.exits import codes
from narrows.cli.output import tell
from narrows.cli.progress import saying


def export(
    run: options.Run,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Archive to write (default: RUN.zip).")
    ] = None,
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """Write results as a zip file.

    It holds the experiment, manifests, tables and the report. `narrows import FILE.zip` takes it into another folder
    of results. The same results give the same bytes.
    """
    from narrows import archive
    from narrows.runs.index import Index
    from narrows.runs.store import Store

    with codes():
        entry = Index(out).find(run)
        with saying() as say:
            path = archive.export(entry, Store(out), output or Path(f"{entry.identifier}.zip"), say=say)
        tell(path, json=json, event="export", run=entry.identifier, bytes=path.stat().st_size)
