"""What pages the site has, how they are found, and where links to other files of the checkout lead.

Pages keep their paths in the checkout, so relative links between them hold. A linked file that is no page, such as a
source, gets a page with its text; a linked folder gets one with the titles of its pages.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
HOME: Final = "README.md"
INDEX: Final = "docs/README.md"
"""The table that says which kind each page is of: the site's navigation."""
PROJECT: Final = {
    "Architecture": "ARCHITECTURE.md",
    "Contributing": "CONTRIBUTING.md",
    "Speed": "bench/RESULTS.md",
    "Changes": "CHANGELOG.md",
}
KINDS: Final = {
    "tutorial": "Tutorial",
    "how-to": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
}
OVERVIEW: Final = "Overview"
GALLERY: Final = "docs/gallery/README.md"
PAGES: Final = ("bench/**/*.md", "docs/**/*.md", "experiments/*/*/README.md")
PICTURES: Final = ("docs/**/*.png", "experiments/**/*.png")
CLAIMS: Final = "claims.toml"
LANGUAGES: Final = {".rs": "rust", ".toml": "toml", ".py": "python", ".ipynb": "json"}

_LINK: Final = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(?=[)#\s])")
_LISTING: Final = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$", re.DOTALL | re.MULTILINE)


def pages(root: Path = ROOT) -> list[str]:
    """Paths of the pages that are files of the checkout."""
    return list(dict.fromkeys([HOME, *PROJECT.values(), *_matching(root, PAGES)]))


def pictures(root: Path = ROOT) -> list[str]:
    """Paths of the pictures that pages show."""
    return _matching(root, PICTURES)


def _matching(root: Path, patterns: tuple[str, ...]) -> list[str]:
    found = {path for pattern in patterns for path in root.glob(pattern)}
    return sorted(path.relative_to(root).as_posix() for path in found)


def address(page: str) -> str:
    """Where a page or picture is on the site: without `docs/`, and the README is the home page."""
    if page == HOME:
        return "index.html"
    if page == INDEX:
        return "documentation.html"
    place = page.removeprefix("docs/")
    if not place.endswith(".md"):
        return place
    return re.sub(r"README\.html$", "index.html", place.removesuffix(".md") + ".html")


def generated(root: Path = ROOT) -> dict[str, str]:
    """Text of each page that is no file: a paper's claims, and what pages link to and is no page."""
    made = {_claims_page(path): claims(root, path) for path in _matching(root, (f"experiments/*/{CLAIMS}",))}
    known = {*pages(root), *pictures(root)}
    for page in pages(root):
        for target in targets((root / page).read_text(encoding="utf-8"), page):
            stands_in = page_for(target, root)
            if target in known or stands_in in known or stands_in in made or not (root / target).exists():
                continue  # what is not there stays, and the build fails because of it
            made[stands_in] = _folder(root, target) if (root / target).is_dir() else _listing(root, target)
    return made


def page_for(target: str, root: Path = ROOT) -> str:
    """The page that a link to this path leads to."""
    if (root / target).is_dir():
        return posixpath.join(target, HOME)
    if posixpath.basename(target) == CLAIMS:
        return _claims_page(target)
    return target if target.endswith((".md", ".png")) else f"{target}.md"


def targets(text: str, page: str) -> Iterator[str]:
    """Paths in the checkout that a page links to."""
    for part in _apart(text):
        if not part.startswith(("```", "~~~")):
            for found in _LINK.finditer(part):
                yield _resolved(found[1], page)


def rewritten(text: str, page: str, root: Path = ROOT) -> str:
    """The page's text, with links to files that are no pages turned to the pages that stand in for them."""

    def turned(found: re.Match[str]) -> str:
        target = _resolved(found[1], page)
        return posixpath.relpath(page_for(target, root), posixpath.dirname(page) or ".")

    return _outside_listings(text, lambda part: _LINK.sub(turned, part))


def _resolved(link: str, page: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def _outside_listings(text: str, change: Callable[[str], str]) -> str:
    return "".join(part if part.lstrip().startswith(("```", "~~~")) else change(part) for part in _apart(text))


def _apart(text: str) -> Iterator[str]:
    """Listings, and the text between them."""
    end = 0
    for found in _LISTING.finditer(text):
        yield text[end : found.start()]
        yield found.group()
        end = found.end()
    yield text[end:]


def _listing(root: Path, path: str) -> str:
    """A page that shows a file. Search leaves it out: what explains the file is found instead."""
    text = (root / path).read_text(encoding="utf-8")
    language = LANGUAGES.get(posixpath.splitext(path)[1], "text")
    return f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n~~~~~~{language}\n{text.rstrip()}\n~~~~~~\n"


def _folder(root: Path, path: str) -> str:
    """A page that lists the pages of a folder by their titles."""
    own = [page for entry in _section(root, path) for name, page in entry.items() if name != OVERVIEW]
    items = [f"- [{title(root, page)}]({posixpath.basename(page)})" for page in own]
    return f"# {posixpath.basename(path).capitalize()}\n\n" + "\n".join(items) + "\n"


def title(root: Path, page: str) -> str:
    """A page's first heading."""
    found = re.search(r"^# (.+)", (root / page).read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else page


def _claims_page(path: str) -> str:
    return path.removesuffix(".toml") + ".md"


def claims(root: Path, path: str) -> str:
    """A paper's scorecard as this checkout's runs have it, full before quick; without runs, what the paper states."""
    paper = posixpath.basename(posixpath.dirname(path))
    for mode in ("", "-quick"):
        card = root / "runs" / "reports" / f"claims-{paper}{mode}.md"
        if card.is_file():
            return card.read_text(encoding="utf-8")
    return _stated(paper, tomllib.loads((root / path).read_text(encoding="utf-8")))


def _stated(paper: str, raw: dict[str, Any]) -> str:
    verdicts = posixpath.relpath("docs/explanation/reproduction.md", f"experiments/{paper}")
    about = (
        f"`narrows reproduce {paper}` judges each claim from runs and writes the scorecard. This site was built "
        f"without runs; [what holds, and why the rest does not]({verdicts}) has the verdicts of the full runs. A "
        "number holds if the mean over seeds lies in the accepted interval; an ordering, if each relation is true. "
        "Confidence (H high, M medium, L low) was given before any run."
    )
    head = "| claim | item | confidence | measure | expected | accepted |"
    lines = [f"# Claims of {raw.get('title', paper)}", "", about, "", head, "|---" * 6 + "|"]
    for claim in raw.get("claim", ()):
        accepted = "; ".join(claim["order"]) if "order" in claim else _interval(claim)
        cells = (claim["id"], claim["item"], claim["confidence"], claim["metric"], claim["expect"], accepted)
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _interval(claim: dict[str, Any]) -> str:
    found = claim.get("accept_each") or ([claim["accept"]] if "accept" in claim else [])
    return ", ".join(f"{low:g} to {high:g}" for low, high in found)


def _cell(text: str) -> str:
    """A text that stays one cell, and is no markup."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(str(text).split()))


def navigation(root: Path = ROOT) -> list[dict[str, Any]]:
    """Home, the four kinds in the order of the index, papers with their figures, and the project."""
    rows = re.findall(r"^\| ([\w-]+) \| (.+?) \| .+ \|$", (root / INDEX).read_text(encoding="utf-8"), re.MULTILINE)
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for kind, cell in rows:
        for name, link in re.findall(r"\[([^\]]+)\]\(([^)]+)\)", cell):
            target = _resolved(link, INDEX)
            entry = _section(root, target) if (root / target).is_dir() else page_for(target, root)
            if target != GALLERY:
                by_kind.setdefault(kind, []).append({name[:1].upper() + name[1:]: entry})
    kinds = [{name: by_kind[kind]} for kind, name in KINDS.items()]
    papers = [{"Gallery": GALLERY}, *(_paper(root, path) for path in _matching(root, (f"experiments/*/{CLAIMS}",)))]
    project = [{name: page} for name, page in PROJECT.items()]
    home = [{"Narrows": HOME}, {"All pages": INDEX}]
    return [{"Home": home}, *kinds, {"Papers": papers}, {"Project": project}]


def _section(root: Path, folder: str) -> list[dict[str, str]]:
    """A folder's pages under the page that lists them."""
    own = [page for page in _matching(root, (f"{folder}/*.md",)) if not page.endswith(HOME)]
    return [{OVERVIEW: posixpath.join(folder, HOME)}, *({Path(page).stem: page} for page in own)]


def _paper(root: Path, path: str) -> dict[str, Any]:
    folder = posixpath.dirname(path)
    figures = [{page.split("/")[2]: page} for page in _matching(root, (f"{folder}/*/README.md",))]
    return {posixpath.basename(folder): [{"Claims": _claims_page(path)}, *figures]}
