"""What a chart shows, in words, for those who do not see it: its panels, its axes and whose data they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_NAMES: Final = 12
"""Names that a sentence lists; of more it says how many there are."""
_MARKS: Final = {
    "bar": "bars",
    "rect": "rectangles",
    "line": "lines",
    "area": "areas",
    "point": "points",
}
"""What a chart is made of, by the mark of a layer; the first of a panel's layers counts."""
_SCALES: Final = {"log": "logarithmic", "symlog": "logarithmic", "sqrt": "under a square root"}


def of(specification: Mapping[str, Any]) -> str:
    """Sentences on a finished specification."""
    panels = [panel for panel in _panels(specification, "", "") if panel["kind"]]
    kinds = list(dict.fromkeys(panel["kind"] for panel in panels))
    sentences = []
    titles = [panel["title"] for panel in panels if panel["title"]]
    drawn = _listed(kinds)
    if len(panels) > 1 and titles:
        sentences.append(f"{len(panels)} panels of {drawn}: {_listed(titles, apart='; ')}")
    else:
        sentences.append(f"{drawn[:1].upper()}{drawn[1:]}" + "".join(f": {title}" for title in titles))
    for name, channel in (("Horizontal axis", "x"), ("Vertical axis", "y")):
        if axes := list(dict.fromkeys(panel[channel] for panel in panels if panel[channel])):
            sentences.append(f"{name}: {_listed(axes, apart='; ')}")
    if names := list(dict.fromkeys(name for panel in panels for name in panel["names"])):
        each = ", each in a panel of its own" if any(panel["faceted"] for panel in panels) else ""
        sentences.append(f"Of {_listed(names)}{each}")
    return "".join(f"{sentence}. " for sentence in sentences).strip()


def _panels(
    node: Mapping[str, Any], above: str, beside: str, *, faceted: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """Title, kind, axes and names of each panel; `beside` is the vertical axis of the first in its row.

    `faceted` are the names of small multiples.
    """
    title = _words(node.get("title")) or above
    children = node.get("vconcat") or node.get("hconcat") or node.get("concat")
    if children:
        first = _axis(children[0], "y") if "hconcat" in node else ""
        for child in children:
            yield from _panels(child, title, first)
    elif "facet" in node:
        facet = node["facet"].get("column", node["facet"])
        yield from _panels(node["spec"], title, beside, faceted=facet.get("sort") or [facet.get("field", "")])
    else:
        layers = _layers(node)
        yield {
            "title": title,
            "kind": next((kind for layer in layers if (kind := _kind(layer))), ""),
            "x": _axis(node, "x"),
            "y": _axis(node, "y") or beside,
            "names": next((names for layer in layers if (names := _names(layer))), list(faceted)),
            "faceted": bool(faceted),
        }


def _kind(layer: Mapping[str, Any]) -> str:
    mark = layer["mark"]["type"] if isinstance(layer["mark"], dict) else layer["mark"]
    if mark == "rect" and layer.get("encoding", {}).get("color", {}).get("type") == "quantitative":
        return "cells, shaded by value"
    return _MARKS.get(mark, "")


def _layers(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    inner = node.get("layer") or ([node["spec"]] if "spec" in node else [])
    if inner:
        return [found for layer in inner for found in _layers(layer)]
    return [node] if "mark" in node else []


def _axis(node: Mapping[str, Any], channel: str) -> str:
    """The axis' title and scale; nothing of an axis of cases."""
    for layer in _layers(node):
        own = layer.get("encoding", {}).get(channel, {})
        title = _words(own.get("title")) or _words((own.get("axis") or {}).get("title"))
        if title and own.get("field") != "case":
            scale = _SCALES.get((own.get("scale") or {}).get("type", ""))
            return f"{title}, {scale}" if scale else title
    return ""


def _names(layer: Mapping[str, Any]) -> list[str]:
    colour = layer.get("encoding", {}).get("color", {})
    domain = (colour.get("scale") or {}).get("domain", []) if isinstance(colour, dict) else []
    return [str(name) for name in domain] if colour.get("type") == "nominal" else []


def _words(title: Any) -> str:
    """A title's text; it may be a text, lines, or a table with one of them."""
    text = title.get("text") if isinstance(title, dict) else title
    return " ".join(text) if isinstance(text, list) else text or ""


def _listed(names: list[str], *, apart: str = ", ") -> str:
    more = len(names) - MAX_NAMES
    return apart.join(names[:MAX_NAMES]) + (f"{apart}and {more} more" if more > 0 else "")
