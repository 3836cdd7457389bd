"""The command's root: its verbs, and the options that stand before them."""

from __future__ import annotations

from typing import Annotated

import typer

from narrows.cli import (
    bench,
    cc,
    check,
    compare,
    convert,
    doctor,
    examples,
    explain,
    export,
    init,
    program,
    progress,
    report,
    reproduce,
    run,
    runs,
    show,
    trace,
    verbosity,
)
from narrows.cli.exits import codes

app = typer.Typer(
    help="Study congestion control across datacenters: run experiments, compare, report, reproduce papers.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from narrows import native

        with codes():
            typer.echo(f"narrows {native.version()}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help=verbosity.QUIET)] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help=verbosity.VERBOSE)] = False,
) -> None:
    """The command begins: verbs do the work."""
    progress.begin()
    verbosity.begin(quiet=quiet, verbose=verbose)


app.command("init")(init.init)
app.command("check")(check.check)
app.command("run")(run.run)
app.command("import")(convert.convert)
app.command("compare")(compare.compare)
app.command("report")(report.report)
app.command("explain")(explain.explain)
app.command("trace")(trace.trace)
app.command("reproduce")(reproduce.reproduce)
app.command("show")(show.show)
app.command("runs")(runs.runs)
app.command("rm")(runs.rm)
app.command("gc")(runs.gc)
app.command("export")(export.export)
app.command("schema")(show.schema)
app.command("program")(program.program)
app.add_typer(cc.app, name="cc")
app.command("bench")(bench.bench)
app.command("examples")(examples.examples)
app.command("doctor")(doctor.doctor)
verbosity.taken_by(app)
