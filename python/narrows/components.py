"""The reference of components, from what the simulator declares: `python -m narrows.components`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from narrows import native

_HEADINGS = {
    "controller": "Controllers",
    "aqm": "AQMs",
    "congestion-point": "Congestion points",
    "edge": "Edge functions",
    "topology": "Topologies",
    "size-distribution": "Size distributions",
    "profile": "Host profiles",
}


def document() -> str:
    """`docs/reference/components.md`: a section for each kind, a table of parameters for each component with some."""
    lines = ["# Components", "", "What an experiment chooses by name; `narrows show` prints the same.", ""]
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
    if parameter["range"]:
        allowed = " to ".join(parameter["range"])
    elif isinstance(kind, dict) and "choice" in kind:
        allowed = ", ".join(f"`{name}`" for name in kind["choice"])
    else:
        allowed = "`true`, `false`" if kind == "switch" else ""
    about = " ".join(parameter["about"].split()).replace("|", "\\|")
    return f"| `{parameter['name']}` | {about} | {allowed} | {parameter['default']} |"


if __name__ == "__main__":
    Path("docs/reference/components.md").write_text(document())
