"""The reference of components, from what the simulator declares: `python -m narrows.components`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from narrows import native

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADINGS = {
    "controller": "Controllers",
    "aqm": "AQMs",
    "scheduler": "Schedulers",
    "congestion-point": "Congestion points",
    "edge": "Edge functions",
    "transport": "Transports",
    "loss": "Loss functions",
    "reordering": "Reordering",
    "routing": "Routing policies",
    "program": "Programs",
    "topology": "Topologies",
    "size-distribution": "Size distributions",
    "profile": "Host profiles",
}

_ABOUT: Final = (
    "This page lists what an experiment chooses by name: controllers, AQMs, schedulers, topologies, distributions of",
    "flow sizes, host profiles and more, with their parameters, ranges and defaults. `narrows show` prints the same.",
)

_SMALL_STEPS: Final = 16
"""Fraction bits from which a single step would be shown as 2e-5 or less."""


def document() -> str:
    """`docs/reference/components.md`: a section for each kind, a table of parameters for each component with some."""
    lines = ["# Components", "", *_ABOUT, ""]
    found = native.components()
    for kind in dict.fromkeys(item["kind"] for item in found):
        own = [item for item in found if item["kind"] == kind]
        lines += [f"## {_HEADINGS.get(kind, kind)}", "", "| name | what | source |", "|---|---|---|"]
        lines += [f"| `{item['name']}` | {item['about']} | {item['source']} |" for item in own]
        lines.append("")
        for item in own:
            if item["parameters"]:
                lines += [f"### `{item['name']}`", ""]
                if item.get("hosts"):
                    first, last = item["hosts"]
                    switches = ", ".join(f"`{name}`" for name in item["switches"])
                    lines += [f"Hosts: `{first}` to `{last}`; the first switch of each kind: {switches}.", ""]
                lines += ["| key | what | range | default |", "|---|---|---|---|"]
                lines += [_row(parameter) for parameter in item["parameters"]] + [""]
    return "\n".join(lines)


def _row(parameter: dict[str, Any]) -> str:
    kind = parameter["kind"]
    bits = kind["real"]["bits"] if isinstance(kind, dict) and "real" in kind else None
    if parameter["range"]:
        allowed = " to ".join(_bounds(parameter["range"], bits))
        if isinstance(kind, dict) and "counts" in kind:
            allowed = "{} to {} numbers, each ".format(*kind["counts"]) + allowed
    elif isinstance(kind, dict) and "choice" in kind:
        allowed = ", ".join(f"`{name}`" for name in kind["choice"])
    else:
        allowed = "`true`, `false`" if kind == "switch" else ""
    about = " ".join(parameter["about"].split()).replace("|", "\\|")
    return f"| `{parameter['name']}` | {about} | {allowed} | {_default(parameter['default'], bits)} |"


def _bounds(bounds: Sequence[str], bits: int | None) -> tuple[str, str]:
    """The ends of a range. Of a fixed-point number with small steps one step from 0 or 1 is `above 0`, `below 1`."""
    least, most = map(_size, bounds)
    if bits is not None and bits >= _SMALL_STEPS:
        least = "above 0" if round(float(least) * 2**bits) == 1 else least
        most = "below 1" if round(float(most) * 2**bits) == 2**bits - 1 else most
    return least, most


def _default(text: str, bits: int | None) -> str:
    """Of a fixed-point number six digits: 0.1 is none of its steps, and would be 0.0999999999."""
    try:
        short = text if bits is None else f"{float(text):.6g}"
    except ValueError:  # `auto`, `required`
        return text
    return short if len(short) < len(text) else _size(text)


def _size(text: str) -> str:
    """`4TiB` of `4398046511104B`."""
    found = re.fullmatch(r"(\d+)B", text)
    for unit, shift in (("TiB", 40), ("GiB", 30)) if found else ():
        whole, rest = divmod(int(text[:-1]), 1 << shift)
        if whole and not rest:
            return f"{whole}{unit}"
    return text


if __name__ == "__main__":
    Path("docs/reference/components.md").write_text(document())
