"""The same plans on several backends, side by side: results whose cases say what ran them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from narrows.results import Results
from narrows.runs.backends import AXIS, MARK, Backend

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from narrows.experiment import Pairs
    from narrows.runs.index import Entry, Member
    from narrows.runs.store import Store

_NEWEST: Final = "linux-6"
_HOSTS: Final = {"linux-4.9": "Linux 4.9", "dctcp-2010": "a Windows of 2009", "freebsd-cee": "a FreeBSD of 2010"}
"""By their profile those that are no model of a kernel that runs plans here."""


def joined(entries: Sequence[Entry], store: Store) -> list[Results]:
    """Results of all entries: those of the same plans on different backends as one, of the seeds that all have.

    Any other stands by itself, and what is joined where its first stood. Raises `BadInput` where runs are absent.
    """
    groups: list[list[Entry]] = []
    for entry in dict.fromkeys(entries):
        home = next((group for group in groups if _belongs(entry, group)), None)
        if home is None:
            groups.append([entry])
        else:
            home.append(entry)
    return [Results(_together(group) if len(group) > 1 else group[0], store) for group in groups]


def same_plans(one: Entry, other: Entry) -> bool:
    """Whether two results differ in nothing but their backend and, perhaps, their seeds."""
    return one.backend is not other.backend and _plans(one) == _plans(other)


def partner(own: Entry, entries: Iterable[Entry]) -> Entry | None:
    """Of these the one that a page puts beside `own`: a live one beside the simulated, the simulated beside a live one.

    Its plans are the same, it is a quick run if `own` is one, and it has most of its seeds and fewest others. `None`
    where there is none.
    """
    others = [
        entry
        for entry in entries
        if entry.backend.is_live is not own.backend.is_live
        and entry.quick is own.quick
        and same_plans(entry, own)
        and _common_seeds([own, entry])
    ]
    return max(others, key=lambda entry: (len(_common_seeds([own, entry])), -len(entry.seeds)), default=None)


def unlike_hosts(plans: Iterable[Mapping[str, Any]], entries: Iterable[Entry]) -> str:
    """A sentence for where the simulator's hosts are no model of the kernels beside them; else nothing.

    `plans` are bodies, of which the simulator takes its hosts; a kernel takes little of them.
    """
    found = dict.fromkeys(_modelled(entry["profile"]) for plan in plans for entry in plan["traffic"])
    others = [_HOSTS[profile] for profile in found if profile in _HOSTS]
    kernels = dict.fromkeys(_kernel(entry) for entry in entries if entry.backend.is_live)
    if not (others and kernels):
        return ""
    return (
        f"The simulator's hosts are {' and '.join(others)} (host.profile), and the real ones Linux "
        f"{' and '.join(kernels)}: some of what differs may come from there. "
        f'host.profile = "{_NEWEST}" is the nearer model'
    )


def _modelled(profile: Mapping[str, Any]) -> str:
    """The named profile that this one is, or was made of: a plan has its fields alone."""
    if profile.get("burst-sizing") == _NEWEST:
        return _NEWEST
    if profile.get("microsecond-timestamps"):
        return "freebsd-cee"
    return "dctcp-2010" if profile.get("loss-detection") == "duplicate-acks" else "linux-4.9"


def _kernel(entry: Entry) -> str:
    """`6.1` of `0.1.0 on 6.1.0-56-cloud-amd64, QEMU 7.2.22`."""
    release = entry.version.rpartition(" on ")[2]
    return ".".join(release.partition(",")[0].split(".")[:2])


def _belongs(entry: Entry, group: Sequence[Entry]) -> bool:
    return all(same_plans(entry, other) for other in group) and bool(_common_seeds([*group, entry]))


def _common_seeds(entries: Sequence[Entry]) -> tuple[int, ...]:
    """Those that all have: each difference is then of equal seeds."""
    return tuple(seed for seed in entries[0].seeds if all(seed in entry.seeds for entry in entries))


def _plans(entry: Entry) -> list[tuple[str, str, Pairs]]:
    return [(member.hash, member.arm, member.axes) for member in entry.members]


def _together(group: Sequence[Entry]) -> Entry:
    """One entry: case by case what each backend made of it, the simulator first.

    It is called like the part that has least, so that a page of few seeds takes no other's place.
    """
    order = list(Backend)
    parts = sorted(group, key=lambda entry: order.index(entry.backend))
    first = parts[0]
    least = min(parts, key=lambda part: (not part.quick, len(part.seeds)))
    backends = [part.backend.value for part in parts]
    return replace(
        first,
        identifier=f"{_base(least)}{MARK}{'+'.join(backends)}",
        quick=least.quick,
        seeds=_common_seeds(parts),
        command="\n".join(part.command for part in parts),
        members=tuple(
            _said(member) for of_case in zip(*(part.members for part in parts), strict=True) for member in of_case
        ),
        setting=(("backends", " beside ".join(part.backend.words for part in parts)), *first.setting),
        beside=tuple(parts),
    )


def _base(entry: Entry) -> str:
    return entry.identifier.removesuffix(f"{MARK}{entry.backend.value}")


def _said(member: Member) -> Member:
    return replace(member, axes=(*member.axes, (AXIS, member.backend.value)))
