"""Whether a run counts: one on a real kernel does not where the machine was too slow to keep the plan's time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from narrows import wording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def why_not(manifest: Mapping[str, Any]) -> str | None:
    """Why a run does not count; `None` where it does, as every simulated one."""
    if manifest.get("valid", True) is True:
        return None
    return str(manifest.get("invalid") or "narrowsd does not say why")


def left_out(manifests: Sequence[Mapping[str, Any]]) -> str:
    """`2 of 10 runs do not count: …`, each reason once; nothing where all count."""
    reasons = [reason for manifest in manifests if (reason := why_not(manifest)) is not None]
    if not reasons:
        return ""
    verb = "does" if len(reasons) == 1 else "do"
    told = "; ".join(dict.fromkeys(reasons))
    return f"{wording.whole(len(reasons))} of {wording.plural(len(manifests), 'run')} {verb} not count: {told}"
