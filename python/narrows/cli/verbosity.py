"""`-q` and `-v`, before a verb or behind it: how much is printed beside results and errors."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from narrows.cli import output

QUIET: Final = "Print only results and errors."
VERBOSE: Final = "Print details too, such as what runs cost."


def _quiet(asked: bool) -> None:
    if asked:
        _not_both(output.is_verbose())
        output.be_quiet()


def _verbose(asked: bool) -> None:
    if asked:
        _not_both(output.ERR.quiet)
        output.be_verbose()


def _not_both(other: bool) -> None:
    if other:
        raise typer.BadParameter("give --quiet or --verbose, not both")


def begin(*, quiet: bool, verbose: bool) -> None:
    """A command begins, with what stands before its verb. Raises `BadParameter` for both."""
    output.begin()
    _quiet(quiet)
    _verbose(verbose)


def _taking(
    _q: Annotated[bool, typer.Option("--quiet", "-q", callback=_quiet, expose_value=False, help=QUIET)] = False,
    _v: Annotated[bool, typer.Option("--verbose", "-v", callback=_verbose, expose_value=False, help=VERBOSE)] = False,
) -> None:
    """Has the two options and does nothing."""


def _options() -> list[Any]:
    taking = typer.Typer(add_completion=False)
    taking.command()(_taking)
    return list(typer.main.get_command(taking).params)


class Verb(TyperCommand):
    """A command that takes both options beside its own."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params = [*self.params, *_options()]


def taken_by(app: typer.Typer) -> None:
    """Lets every verb that has been registered take both options, in groups of verbs too."""
    for verb in app.registered_commands:
        verb.cls = Verb
    for group in app.registered_groups:
        if group.typer_instance is not None:
            taken_by(group.typer_instance)
