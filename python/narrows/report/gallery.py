"""A folder of pictures with a page of Markdown: each figure that has been run, with what was run beneath it.

A figure that is not run here keeps the section and the picture that the folder has of it.
"""

from __future__ import annotations

import os
import re
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from narrows import atomic, packaged
from narrows.claims import folders
from narrows.figures import caption
from narrows.runs.freshness import standings

if TYPE_CHECKING:
    from pathlib import Path

    from narrows.claims.folders import Figure
    from narrows.runs.store import Store

READING: Final = (
    "A plan is a scheme, a controller with its settings, in one configuration of what is swept; a seed decides all "
    "that is random in a run, and every plan is run with each. Points and bars are means over the seeds, the thin "
    "lines on them the smallest and largest seed, or from five seeds on the mean's 95 % interval."
)


def write(folder: Path, store: Store, *, quick: bool) -> Path:
    """Keeps the pictures there are in the store, small, and writes `README.md` beside them; its path."""
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "README.md"
    kept = _sections(path.read_text(encoding="utf-8")) if path.is_file() else {}
    mode = " --quick" if quick else ""
    command = f"narrows reproduce PAPER{mode} --gallery DIR"
    lines = [
        "# Gallery",
        "",
        *wrap(f"The figures of all experiments, drawn from our own runs by `{command}`. {READING}", 120),
        "",
    ]
    for paper in folders.papers():
        lines += [f"## {paper.title or paper.name}", ""]
        own = folders.figures(paper)
        for figure, standing in zip(own, standings(own, store, quick=quick).values(), strict=True):
            entry = standing.entry
            picture = store.root / "figures" / f"{figure.picture(quick=quick)}.svg"
            name = figure.label.replace("/", "-") + ".png"
            if entry is None or not picture.is_file():
                lines += [kept[figure.label], ""] if figure.label in kept and (folder / name).is_file() else []
                continue
            atomic.write_bytes(folder / name, vl_convert.svg_to_png(picture.read_text(), scale=1.0))
            lines += [f"### {figure.label}: {entry.title}", "", f"![{caption.of(entry)}]({name})", ""]
            lines += [caption.traffic(entry) + _link(figure, folder), ""]
            lines += [] if standing.counts else [f"*Does not count: {standing.reason}.*", ""]
    atomic.write_text(path, "\n".join(lines).rstrip() + "\n")
    return path


def _sections(page: str) -> dict[str, str]:
    """The sections of a gallery's page, by figure."""
    parts = re.split(r"^(?=##+ )", page, flags=re.MULTILINE)
    named = ((re.match(r"### ([\w/-]+): ", part), part.rstrip()) for part in parts)
    return {found[1]: part for found, part in named if found}


def _link(figure: Figure, folder: Path) -> str:
    """To the figure's page with settings and numbers, if it has one outside the installed package."""
    page = figure.folder / "README.md"
    if packaged.is_installed(page):
        return ""
    place = os.path.relpath(page.resolve(), folder.resolve())
    return f" [Settings and numbers]({place})." if page.is_file() else ""
