"""A folder of pictures with a page of Markdown: each figure that has been run, with what was run beneath it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows import atomic, experiments
from narrows.report.claims import caption
from narrows.standing import standings

if TYPE_CHECKING:
    from pathlib import Path

    from narrows.store import Store


def write(folder: Path, store: Store, *, quick: bool) -> Path:
    """Keeps the pictures there are in the store, small, and writes `README.md` beside them; its path."""
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    mode = " --quick" if quick else ""
    command = f"narrows reproduce PAPER{mode} --gallery DIR"
    lines = ["# Gallery", "", f"Drawn from our own runs by `{command}`.", ""]
    for paper in experiments.papers():
        lines += [f"## {paper.name}", ""]
        own = experiments.figures(paper)
        for figure, standing in zip(own, standings(own, store, quick=quick).values(), strict=True):
            entry = standing.entry
            picture = store.root / "figures" / f"{figure.picture(quick=quick)}.svg"
            if entry is None or not picture.is_file():
                continue
            name = figure.label.replace("/", "-") + ".png"
            atomic.write_bytes(folder / name, vl_convert.svg_to_png(picture.read_text(), scale=1.0))
            lines += [f"### {figure.label}: {entry.title}", "", f"![{entry.title}]({name})", "", caption(entry)]
            lines += [""] if standing.counts else [f"*Does not count: {standing.reason}.*", ""]
    path = folder / "README.md"
    atomic.write_text(path, "\n".join(lines).rstrip() + "\n")
    return path
