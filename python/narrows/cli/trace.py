"""`narrows trace RUN --flow N`: makes a run again with a trace of some flows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli import options
from narrows.cli.exits import codes
from narrows.cli.output import hint, tell
from narrows.cli.progress import watching
from narrows.errors import bad_input


def trace(
    run: options.Run,
    flow: Annotated[
        list[int] | None,
        typer.Option(
            "--flow", metavar="N", min=0, help="Number of a flow to trace (column flow); required, may be repeated."
        ),
    ] = None,
    scheme: options.Scheme = None,
    seed: options.Seed = None,
    ports: Annotated[
        list[str] | None,
        typer.Option(
            "--port",
            metavar="PORT",
            help="Capture at this port, from->to; may be repeated (default: the ports of the sending hosts).",
        ),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Write pcapng, json-seq, csv, parquet or perfetto; may be repeated (default: pcapng and parquet).",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder of the files (default: RUN-trace).")
    ] = None,
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """Trace flows: their packets at ports, and their senders.

    Makes the run again, which gives the same results, and writes a capture for Wireshark and tables of what passed at
    the ports and of the state of the senders. Times are simulated. `narrows explain` lists the slowest flows.
    """
    from narrows import api
    from narrows.traces import trace as traced_run
    from narrows.traces.formats import FORMATS

    with codes():
        if not flow:
            raise bad_input("no flow is named", f"give --flow N; `narrows explain {run}` lists the slowest")
        chosen = formats or ["pcapng", "parquet"]
        unknown = [name for name in chosen if name not in FORMATS]
        if unknown:
            raise bad_input(f"there is no format {unknown[0]}", f"choose from {', '.join(FORMATS)}")
        results = api.load(run, out=out)
        with watching("tracing") as look:
            traced = traced_run(results, flow, scheme=scheme, seed=seed, look=look)
        folder = output or Path(f"{results.entry.identifier}-trace")
        for name in dict.fromkeys(chosen):
            for path in FORMATS[name](traced, folder, ports or ()):
                tell(path, json=json, event="trace", format=name)
        if not json:
            hint(f"ports on the way: {', '.join(traced.ports)}")
