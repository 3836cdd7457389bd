"""What MkDocs calls: it is given the pages of the whole checkout, under the addresses that they have on the site."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from docs_site import pages

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

OWN: Final = ("icon.svg", "iframe-worker.js", "site.css")
"""Files beside this one that the site has at its root."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation is the index of the documentation."""
    config.nav = pages.navigation()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The theme's own files, and ours by their paths in the checkout."""
    theirs = [file for file in files if file.src_dir != config.docs_dir]

    def placed(path: str, folder: Path, address: str) -> File:
        return File(path, str(folder), config.site_dir, config.use_directory_urls, dest_uri=address)

    ours = [placed(path, pages.ROOT, pages.address(path)) for path in (*pages.pages(), *pages.pictures())]
    own = [placed(name, Path(__file__).parent, name) for name in OWN]
    made = [File.generated(config, path, content=text) for path, text in pages.generated().items()]
    for file in made:
        file.dest_uri = pages.address(file.src_uri)
    return Files([*theirs, *ours, *made, *own])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - its contract
    """Links to files that are no pages lead to the pages that show them."""
    return pages.rewritten(markdown, page.file.src_uri)
