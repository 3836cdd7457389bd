"""Figures as files: SVG for documents, PNG for slides. Rendered here, without a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows import atomic
from narrows.figures import style

if TYPE_CHECKING:
    from pathlib import Path

    import altair as alt


def save(chart: alt.TopLevelMixin, folder: Path, name: str) -> list[Path]:
    """Writes `name.svg` and `name.png`, whole or not at all."""
    import vl_convert

    with style.assembling():
        specification = style.finished(chart)
    specification["padding"] = 16
    svg = vl_convert.vegalite_to_svg(specification, vl_version=style.VEGA_LITE)
    png = vl_convert.vegalite_to_png(specification, vl_version=style.VEGA_LITE, scale=2)
    paths = [folder / f"{name}.svg", folder / f"{name}.png"]
    atomic.write_text(paths[0], svg)
    atomic.write_bytes(paths[1], png)
    return paths
