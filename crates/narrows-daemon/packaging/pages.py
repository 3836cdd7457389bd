#!/usr/bin/env python3
"""Pages of the documentation as packages of narrowsd have them, in one folder: `pages.py FOLDER`.

Links between them lead from file to file. Of a link to a page that packages do not have, only the text is left, and
the page is listed at the end.
"""

import re
import shutil
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
PAGES = ["docs/how-to/deploy.md", "docs/reference/narrowsd-file.md", "docs/reference/wire.md"]
PICTURES = ["docs/how-to/monitoring.png"]
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def packaged(page: str) -> str:
    """A page, given by its path in the checkout, with links for where it is installed."""
    elsewhere: list[str] = []

    def link(found: re.Match[str]) -> str:
        mark, text, target = found.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or not path:
            return found[0]
        place = (CHECKOUT / page).parent.joinpath(path).resolve().relative_to(CHECKOUT).as_posix()
        if place in PAGES + PICTURES:
            return f"{mark}[{text}]({Path(place).name}{'#' if anchor else ''}{anchor})"
        elsewhere.append(place)
        return text

    text = LINK.sub(link, (CHECKOUT / page).read_text(encoding="utf-8"))
    if elsewhere:
        text += "\nIn the sources of Narrows, and not here, are:\n\n"
        text += "".join(f"- `{place}`\n" for place in dict.fromkeys(elsewhere))
    return text


def main(folder: Path) -> None:
    """Write all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        (folder / Path(page).name).write_text(packaged(page), encoding="utf-8")
    for picture in PICTURES:
        shutil.copyfile(CHECKOUT / picture, folder / Path(picture).name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
