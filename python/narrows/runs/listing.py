"""What a store holds: its results, their sizes, and whether they are what would be made now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from narrows import native
from narrows.errors import BadInput, EnvironmentLacks
from narrows.experiment import identifier, labelled, read_content
from narrows.runs.freshness import Change, changed
from narrows.runs.index import Index
from narrows.runs.origin import KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from narrows.runs.backends import Backend
    from narrows.runs.index import Entry, Member
    from narrows.runs.store import Store


class State(StrEnum):
    """Whether results are what would be made now."""

    CURRENT = "current"
    STALE = "stale"
    """Another version made them, or the experiment file has changed since."""
    INCOMPLETE = "incomplete"
    """Runs are absent."""


@dataclass(frozen=True)
class Listed:
    """A result of a store."""

    entry: Entry
    date: str
    """When its newest run was made, UTC, as `2026-11-23T16:12:18Z`; nothing without runs."""
    runs: int
    absent: int
    size_bytes: int
    """Of its runs, which other results may share."""
    state: State
    reasons: tuple[str, ...]
    """Why it is not current, or what is not known of it."""


class Listing:
    """Reads a store; each plan and each version is looked at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._versions: dict[str, str | None] = {}

    def results(self, *, earlier: bool = False) -> list[Listed]:
        """The newest first. With `earlier`, also what files asked for before. Raises `BadInput` for a broken index."""
        index = Index(self._store.root)
        entries = (index.every() if earlier else index.entries()).values()
        found = [self.listed(entry) for entry in sorted(entries, key=lambda entry: entry.identifier)]
        return sorted(found, key=lambda one: one.date, reverse=True)

    def others(self) -> int:
        """Runs that no result refers to."""
        named = {key for entry in Index(self._store.root).every().values() for key in entry.runs}
        return sum(key not in named for key in self._store.runs())

    def listed(self, entry: Entry) -> Listed:
        """One result."""
        runs = entry.runs
        manifests = {key: found for key in runs if (found := self._store.manifest(*key)) is not None}
        absent = len(runs) - len(manifests)
        made: dict[str, None] = {}
        reasons: list[str] = []
        for key, manifest in manifests.items():
            wanted = self._version(entry.backend, runs[key], manifest)
            if wanted is None:
                reasons.append("what would make its runs is not here")
            elif manifest["version"] != wanted:
                made[str(manifest["version"])] = None
        stale = [f"made by another version, {', '.join(made)}"] if made else []
        change = None if made else self._changed(entry)
        stale += [f"{change.file} has changed since"] if change else []
        if not entry.location.is_file() and not entry.imported:
            reasons.append(f"{entry.here} is gone")
        if entry.imported:
            reasons.append("imported")
        lacking = [f"{absent} of {len(runs)} runs are absent"] if absent else []
        return Listed(
            entry=entry,
            date=max((self._date(*key, manifest) for key, manifest in manifests.items()), default=""),
            runs=len(runs),
            absent=absent,
            size_bytes=sum(self._store.size(*key) for key in runs),
            state=State.INCOMPLETE if absent else State.STALE if stale else State.CURRENT,
            reasons=tuple(dict.fromkeys([*lacking, *stale, *reasons])),
        )

    def _version(self, backend: Backend, member: Member, manifest: Mapping[str, Any]) -> str | None:
        """Of a plan's results, as they would be made now; `None` where what makes them is not here."""
        if member.stored not in self._versions:
            try:
                self._versions[member.stored] = backend.version(labelled(manifest.get("plan", {})))
            except EnvironmentLacks:
                self._versions[member.stored] = None
            except BadInput:  # a plan of another version, which this one does not read
                self._versions[member.stored] = native.version()
        return self._versions[member.stored]

    def _changed(self, entry: Entry) -> Change | None:
        """Whether its file asks for something else now, and what. One with the same text and files is not expanded."""
        if entry.imported or not entry.location.is_file():
            return None
        now = read_content(entry.location, identifier(entry.name, quick=False), entry.sets)
        if now is not None and now.complete and now.digest == entry.experiment:
            return None
        return changed(entry, self._store)

    def _date(self, plan: str, seed: int, manifest: Mapping[str, Any]) -> str:
        """When a run was made; runs of earlier versions do not say, but their files do."""
        origin = manifest.get(KEY)
        if isinstance(origin, dict) and (date := origin.get("date")):
            return str(date)
        written = (self._store.folder(plan, seed) / "manifest.json").stat().st_mtime
        return f"{datetime.fromtimestamp(int(written), UTC).replace(tzinfo=None).isoformat()}Z"
