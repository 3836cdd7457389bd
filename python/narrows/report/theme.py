"""Colours of the page's charts and swatches, as the page's style: what is drawn for white paper fits dark mode, too.

Charts are drawn once, with the colours of paper as attributes, which files that are saved keep. On the page rules of
style take precedence over attributes: they name a variable for each colour, whose value depends on the mode.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from narrows.figures import style
from narrows.figures.palette import on_dark

if TYPE_CHECKING:
    from collections.abc import Iterable

_COLOUR: Final = re.compile(r"#[0-9a-f]{6}")
_PLAIN: Final = {
    style.INK: "ink",
    style.FAINT: "faint",
    style.GRID: "line",
    style.AXIS: "rule",
    style.PAPER: "paper",
    "white": "paper",
    "black": "ink",
    "#000": "ink",
}
"""Colours of what is no data, and the variables of `page.css` that they are."""


def variable(colour: str) -> str:
    """What a style calls the colour: `var(--c0072b2)`, or a variable of `page.css`."""
    return f"var(--{_PLAIN.get(colour) or f'c{colour[1:]}'})"


def rules(texts: Iterable[str], colours: Iterable[str] = ()) -> Markup:
    """Style for the colours, as `#rrggbb`, that stand in these texts, and for these."""
    found = sorted({colour for text in texts for colour in _COLOUR.findall(text)} | set(colours))
    shown = [colour for colour in found if colour not in _PLAIN]
    light = "".join(f"--c{colour[1:]}:{colour};" for colour in shown)
    dark = "".join(f"--c{colour[1:]}:{on_dark(colour)};" for colour in shown)
    made = [f":root{{{light}}}", f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"]
    for colour in (*_PLAIN, *shown):
        made += [f'.chart svg [{name}="{colour}"]{{{name}:{variable(colour)}}}' for name in ("fill", "stroke")]
    return Markup("\n".join(made))  # noqa: S704 - our own text, and colours of six digits
