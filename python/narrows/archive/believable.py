"""What an archive says in JSON must be as Narrows writes it: digests show accidents, and not what was made on purpose.

Manifests and entries are printed, and put into pages, long after the import.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from narrows.runs.origin import KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from narrows.runs.index import Entry

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that a terminal takes for commands, and halves of surrogate pairs, which cannot be encoded."""
_MACHINE: Final = {"processor": str, "cores": int, "kernel": str}
_GIT: Final = {"commit": str, "dirty": bool}


def why_not_manifest(manifest: Mapping[str, Any], backend: str) -> str:
    """The key of a manifest that is not as Narrows writes it; nothing where all are. `backend` is of a live run."""
    if bad := _bad_text(manifest):
        return bad
    if (manifest["backend"] != backend) if "backend" in manifest else backend:
        return "backend"
    if not isinstance(manifest.get("plan", {}), dict):
        return "plan"
    return KEY if KEY in manifest and not _is_origin(manifest[KEY]) else ""


def why_not_entry(raw: Mapping[str, Any], entry: Entry) -> str:
    """The key of an entry that is not as Narrows writes it; nothing where all are."""
    cases = {member.plan_case for member in entry.members}
    if any({case for case, _ in item.values} != cases for item in entry.differences):
        return "differences"
    return _bad_text(raw)


def _is_origin(origin: Any) -> bool:
    """Whether it is what `runs/origin.py` makes; runs of earlier versions may lack a part."""
    if not isinstance(origin, dict) or not all(isinstance(origin.get(key, ""), str) for key in ("date", "command")):
        return False
    return _has(origin.get("machine"), _MACHINE) and _has(origin.get("git"), _GIT)


def _has(part: Any, kinds: Mapping[str, type]) -> bool:
    """Whether it is absent, or has each of these keys."""
    return part is None or (
        isinstance(part, dict) and all(isinstance(part.get(key), kind) for key, kind in kinds.items())
    )


def _bad_text(raw: Mapping[str, Any]) -> str:
    """The key below which there is text with control characters, or that cannot be encoded; else nothing."""
    return next((ascii(key) for key, value in raw.items() if _is_bad(key) or _is_bad(value)), "")


def _is_bad(value: Any) -> bool:
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += one.keys()
            left += one.values()
        elif isinstance(one, list):
            left += one
        elif isinstance(one, str) and _CONTROL.search(one):
            return True
    return False
