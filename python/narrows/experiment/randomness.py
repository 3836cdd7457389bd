"""Whether anything in a plan follows its seed: where nothing does, every seed gives the same results."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

DRAWING: Final = frozenset({"bbr"})
"""Controllers that draw random numbers themselves."""
_LINK_KEYS: Final = ("loss", "jitter", "scheduler", "congestion-point", "bridge")
"""What may draw on a link, where it is set."""


def may_draw(plan: Mapping[str, Any]) -> bool:
    """Whether a plan's body may draw random numbers; `False` is certain."""
    links = plan["network"]["links"]
    ways = Counter((link["from"], link["to"]) for link in links)
    one_path = len(links) == len(ways) <= 2 * (len(plan["network"]["nodes"]) - 1)  # a tree: no choice among paths
    return (
        not one_path
        or any(link.get(key) not in (None, 0) for link in links for key in _LINK_KEYS)
        or any("threshold" not in (link.get("aqm") or {"threshold": {}}) for link in links)
        or any(entry["controller"]["name"] in DRAWING or _draws(entry["pattern"]) for entry in plan["traffic"])
    )


def _draws(pattern: Mapping[str, Any]) -> bool:
    match pattern:
        case {"list": flows}:
            return any(flow.get("spread") for flow in flows)
        case {"incast": incast}:
            return bool(incast.get("mean-interarrival") or incast.get("jitter"))
        case {"all-to-all": _}:
            return False
    return True
