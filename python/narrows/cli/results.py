"""Results on a terminal: the headline table with which `run` ends, and what `narrows show NAME` says of them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape
from rich.table import Table

from narrows import wording
from narrows.cli.explain import MAX_SCHEMES
from narrows.cli.output import OUT, hint, line
from narrows.cli.progress import saying
from narrows.experiment import seeds_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from narrows.report.brief import Brief
    from narrows.results import Results
    from narrows.runs.index import Entry
    from narrows.runs.listing import Listed
    from narrows.runs.store import Store


_WIDE: Final = 110
"""Columns of a terminal that has room for values with their intervals beside them."""


def tell_headline(results: Results) -> Brief:
    """Prints the headline table. Raises `BadInput` where a table is damaged."""
    from narrows.report.brief import brief

    with saying() as say:
        say(f"results of {results.entry.identifier}")
        found = brief(results)
    OUT.print(_table(found))
    count = sum(not row.part for row in found.rows)
    which = f"{found.without}; " if found.without else ""
    some = f"{wording.whole(count)} of {wording.whole(found.cases)} configurations ({which}all: `narrows report`); "
    shown = some if count < found.cases else ""
    OUT.print(f"[dim]{escape(shown + found.remark)}[/]", soft_wrap=True)
    if found.lacking:
        OUT.print(f"note: {found.lacking}", markup=False, soft_wrap=True)
    return found


def _table(found: Brief) -> Table:
    is_wide = OUT.width >= _WIDE
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("scheme", overflow="fold")
    for quantity in found.columns:
        table.add_column(f"{quantity.title}\n{quantity.unit}", overflow="fold")
    for row in found.rows:
        values = []
        for cell in row.cells:
            if row.part and cell.text == "–":  # what is known of the scheme as a whole
                values.append("")
                continue
            # Where there is little room lines break at spaces, the thin ones between digits among them.
            text, interval = (cell.text, cell.interval) if is_wide else map(wording.plain, (cell.text, cell.interval))
            value = f"[bold]{text}[/]" if cell.rank == "best" else text
            values.append(f"{value}{'  ' if is_wide else chr(10)}[dim]{escape(interval)}[/]" if interval else value)
        table.add_row(f"  {escape(row.part)}" if row.part else escape(row.case), *values)
    return table


def tell_next(entries: Sequence[Entry], out: Sequence[str], *, flows: bool) -> None:
    """Says what can be done with results, the first of `entries`, which share a report. `out` is the option --out."""
    own = entries[0]
    cases = [member.case for member in own.members]
    every = [entry.identifier for entry in entries]
    commands = [["report", *every]]
    if len(cases) > 1 or len(every) > 1:
        commands.append(["compare", *every])
    if flows and not own.backend.is_live:
        scheme = ["--scheme", cases[0]] if len(cases) > MAX_SCHEMES else []
        commands.append(["explain", own.identifier, *scheme])
    for place, command in enumerate(commands):
        text = shlex.join(["narrows", *command, *out])
        hint(f"{'next:' if place == 0 else '     '} {text}")


def tell_results(listed: Listed, results: Results, store: Store, *, json: bool) -> None:
    """Prints what is known of results: headline numbers, setting, seeds, date, version, command. Raises `BadInput`."""
    facts = _facts(listed, store)
    if json:
        from narrows.report.brief import brief

        found = brief(results)
        line(event="result", **facts, notices=[*results.notices, *filter(None, [found.lacking])])
        for value in found.values:
            line(event="measure", **vars(value))
        return
    entry = listed.entry
    OUT.print(f"[bold]{escape(entry.identifier)}[/]  {escape(entry.title)}", soft_wrap=True)
    tell_headline(results)
    for text in results.notices:
        OUT.print(f"note: {text}", markup=False, soft_wrap=True)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for row in _words(facts):
        table.add_row(*map(escape, row))
    OUT.print(table)


def _facts(listed: Listed, store: Store) -> dict[str, Any]:
    """Of the entry, and where its newest run comes from."""
    from narrows.runs.origin import KEY

    entry = listed.entry
    manifests = (store.manifest(*key) or {} for key in entry.runs)
    origins = [manifest[KEY] for manifest in manifests if isinstance(manifest.get(KEY), dict)]
    newest: dict[str, Any] = max(origins, key=lambda origin: str(origin.get("date")), default={})
    return {
        "name": entry.identifier,
        "title": entry.title,
        "file": entry.here,
        "setting": dict(entry.setting),
        "schemes": list(dict.fromkeys(member.arm for member in entry.members)),
        "configurations": len(entry.members),
        "seeds": seeds_text(entry.seeds),
        "runs": listed.runs,
        "bytes": listed.size_bytes,
        "date": listed.date or None,
        "machine": newest.get("machine"),
        "git": newest.get("git"),
        "version": entry.made_by,
        "command": entry.command,
        "state": listed.state.value,
        "reasons": list(listed.reasons),
        "imported": entry.imported,
    }


def _words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    machine, git = facts["machine"] or {}, facts["git"] or {}
    schemes = ", ".join(facts["schemes"])
    more = facts["configurations"] - len(facts["schemes"])
    dirty = ", with changes that are not committed" if git.get("dirty") else ""
    reasons = f": {'; '.join(facts['reasons'])}" if facts["reasons"] else ""
    told = {
        "schemes": f"{schemes}; {wording.whole(facts['configurations'])} configurations" if more else schemes,
        "seeds": facts["seeds"],
        **facts["setting"],
        "runs": f"{wording.whole(facts['runs'])}, {wording.size(facts['bytes'])}",
        "made": (facts["date"] or "–").replace("T", " ").replace("Z", " UTC"),
        "by": facts["version"],
        "on": f"{machine['processor']}, {machine['cores']} cores, {machine['kernel']}" if machine else "",
        "commit": f"{git['commit'][:12]}{dirty}" if git else "",
        "command": facts["command"],
        "state": f"{facts['state']}{reasons}",
    }
    return [(name, value) for name, value in told.items() if value]


def elsewhere(out: Path) -> list[str]:
    """The option that names a folder of results, where it is not the default."""
    from narrows.api import RUNS

    return [] if out == RUNS else ["--out", str(out)]
