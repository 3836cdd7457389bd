"""`narrows import FILE...`: an experiment from files of other tools, or results from an archive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli import options
from narrows.cli.exits import codes
from narrows.cli.output import OUT, line, tell
from narrows.errors import bad_input

EXPERIMENT = Path("experiment.toml")
ARCHIVE = ".zip"
"""Suffix of an archive of results."""


def convert(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files that belong together, or one archive.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Experiment file to write.")
    ] = EXPERIMENT,
    start_unit: Annotated[
        str | None,
        typer.Option(metavar="ps|ns|us|ms|s", help="Unit of start times in an htsim connection matrix."),
    ] = None,
    size_unit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Bytes of one unit of the sizes in a distribution: 1B, or 1460B for packets."
        ),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(metavar="SHARE|RATE", help="Load: 0.3 of the hosts' links, or 800Mbps of a client's requests."),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Rate of links that no file describes (default: the topology's).")
    ] = None,
    bin_: Annotated[
        str | None,
        typer.Option("--bin", metavar="TIME", help="Interval over which a trace becomes a rate (default: 100ms)."),
    ] = None,
    end: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of the run (default: what the files need).")
    ] = None,
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """Write an experiment from files of other tools.

    Or take in the results of an archive, FILE.zip. Reads connection matrices and topologies of htsim, topologies, flows
    and lists of nodes of the HPCC simulator, client configurations of TrafficGenerator, distributions of flow sizes,
    and traces of Mahimahi and Pantheon. What the files do not say is written out with the defaults and marked
    `assumed`.

    Of an archive that `narrows export` wrote, each digest is verified before anything is written to the folder of
    results. Runs that are there already stay as they are.
    """
    from narrows.imports import Options, write_experiment

    with codes():
        if archives := [file for file in files if file.suffix == ARCHIVE]:
            if len(files) > 1 or output != EXPERIMENT or {start_unit, size_unit, load, rate, bin_, end} != {None}:
                raise bad_input(
                    f"{archives[0]} is an archive, which is imported by itself",
                    "give one archive, and no option but --out and --json",
                )
            _bring_in(archives[0], out, json=json)
            return
        told = Options(start_unit=start_unit, size_unit=size_unit, load=load, rate=rate, end=end, bin=bin_)
        for path in write_experiment(files, output, told):
            tell(path, json=json, event="imported")
        if not json:
            OUT.print(f"next: narrows check {output}", markup=False, soft_wrap=True)


def _bring_in(path: Path, out: Path, *, json: bool) -> None:
    """Takes the results of an archive into the folder of results."""
    from narrows import archive, wording

    entry = archive.bring_in(path, out)
    if json:
        line(event="imported", name=entry.identifier, runs=len(entry.runs), path=entry.here)
        return
    runs = wording.plural(len(entry.runs), "run")
    OUT.print(f"{entry.identifier}: {runs}; results in {out}", markup=False, soft_wrap=True)
