"""`narrows runs`, `narrows rm NAME…`, `narrows gc`: what a folder of results holds, and how it gets smaller."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from narrows import wording
from narrows.cli import completion, options
from narrows.cli.exits import CHECK_FAILED, codes
from narrows.cli.output import ERR, OUT, line
from narrows.errors import bad_input

if TYPE_CHECKING:
    from narrows.runs.listing import Listed
    from narrows.runs.removal import Removal


def runs(
    earlier: Annotated[
        bool, typer.Option("--all", help="List results from before their file was edited, too: NAME~1.")
    ] = False,
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """List results: when made, how large, and whether current.

    Results are stale if another version of Narrows made them, or if their file has changed since. A run that several
    results share counts in the size of each.
    """
    from narrows.runs.listing import Listing
    from narrows.runs.store import Store, size_of

    with codes():
        store = Store(out)
        listing = Listing(store)
        found = listing.results(earlier=earlier)
        if json:
            for one in found:
                line(**_fields(one))
            return
        if not found:
            OUT.print(f"no results in {out}; `narrows run FILE` makes some", markup=False, soft_wrap=True)
            return
        OUT.print(_table(found))
        every = sum(1 for _ in store.runs())
        total = f"{wording.plural(every, 'run')}, {wording.size(size_of(out))} in {out}"
        others = listing.others()
        advice = f"; no result refers to {wording.whole(others)} of them (`narrows gc` removes these)" if others else ""
        OUT.print(f"{total}{advice}", markup=False, soft_wrap=True)


def _table(found: list[Listed]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("name", "made", "runs", "size", "state", ""):
        table.add_column(
            heading, no_wrap=heading in {"made", "size"}, justify="right" if heading == "runs" else "left",
            overflow="fold",
        )  # fmt: skip
    for one in found:
        table.add_row(
            escape(one.entry.identifier),
            one.date[:16].replace("T", " "),
            wording.whole(one.runs),
            wording.size(one.size_bytes),
            one.state.value,
            escape("; ".join(one.reasons)),
        )
    return table


def _fields(one: Listed) -> dict[str, object]:
    entry = one.entry
    return {
        "event": "result",
        "name": entry.identifier,
        "title": entry.title,
        "file": entry.here,
        "date": one.date or None,
        "runs": one.runs,
        "absent": one.absent,
        "bytes": one.size_bytes,
        "state": one.state.value,
        "reasons": list(one.reasons),
        "imported": entry.imported,
        "backend": entry.backend.value,
        "version": entry.version,
        "command": entry.command,
    }


def rm(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Results by name, or by their experiment file.",
            autocompletion=completion.results,
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking.")] = False,
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """Remove results, and the runs that only they use.

    Results from before the file was edited (NAME~1) go with it; NAME~1 removes that one alone. Experiment files stay.
    """
    from narrows.runs.removal import removable, remove
    from narrows.runs.store import Store

    with codes():
        store = Store(out)
        planned = removable(store, names)
        if not json:
            OUT.print(_words("removes", planned), markup=False, soft_wrap=True)
        if not yes:
            if json or not sys.stdin.isatty():
                raise bad_input("removing asks first, and nobody can answer here", "give --yes")
            if not typer.confirm("Remove?"):
                ERR.print("nothing is removed")
                raise typer.Exit(CHECK_FAILED)
        removed = remove(store, planned)
        if json:
            line(**_removed(removed))
        elif removed != planned:
            OUT.print(_words("removed", removed), markup=False, soft_wrap=True)


def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")] = False,
    out: options.Out = options.DEFAULT_OUT,
    json: options.Json = False,
) -> None:
    """Remove runs that no result refers to.

    This includes finished runs of an interrupted command (continue it first, to keep them), and temporary files of
    commands that were killed. What a running command uses stays.
    """
    from narrows.runs.removal import collect, unreferenced
    from narrows.runs.store import Store

    with codes():
        store = Store(out)
        found = unreferenced(store) if dry_run else collect(store)
        if json:
            line(**_removed(found), dry_run=dry_run)
        elif found.is_empty:
            OUT.print("nothing to remove")
        else:
            OUT.print(_words("would remove" if dry_run else "removed", found), markup=False, soft_wrap=True)


def _words(verb: str, removal: Removal) -> str:
    """`removes two, two~1: 6 runs and 1 file, 1.2 MB; 2 runs stay, which others use`."""
    things = [wording.plural(len(removal.runs), "run")]
    if removal.files:
        things.append(wording.plural(len(removal.files), "file"))
    names = f"{', '.join(removal.results)}: " if removal.results else ""
    stay = f"; {wording.plural(removal.kept_runs, 'run')} of other results stay" if removal.kept_runs else ""
    return f"{verb} {names}{' and '.join(things)}, {wording.size(removal.size_bytes)}{stay}"


def _removed(removal: Removal) -> dict[str, object]:
    return {
        "event": "removed",
        "results": list(removal.results),
        "runs": [f"{plan}/{seed}" for plan, seed in removal.runs],
        "kept_runs": removal.kept_runs,
        "files": [str(path) for path in removal.files],
        "bytes": removal.size_bytes,
    }
