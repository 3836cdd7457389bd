"""Why claims do not hold: `causes.toml` beside a paper's claims, one class and one sentence for each.

[[cause]]
claims = ["gem-074", "gem-075"]
class = "follows"
about = "The reduction on delay and the slow growth after it: half the reduction would satisfy both."
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from narrows.errors import bad_input, plain

if TYPE_CHECKING:
    from pathlib import Path

FILE: Final = "causes.toml"
CLASSES: Final = {
    "set-up": "another set-up that the text allows would satisfy the claim",
    "measure": "our measure of the claim decides; the figure shows what the claim says",
    "follows": "what we measure follows from the paper's own formulas and parameters, as an ablation or formula shows",
    "contradicts": "the claim contradicts the paper's own parameters or arithmetic",
    "not understood": "why the paper's result differs has not been found",
}
"""What a cause may be, and what that means."""


@dataclass(frozen=True)
class Cause:
    """Of one claim."""

    kind: str
    """One of `CLASSES`."""
    about: str
    """In one sentence."""


def read(folder: Path) -> dict[str, Cause]:
    """The causes of a paper's folder by claim; none where it states none. Raises `BadInput`."""
    path = folder / FILE
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise bad_input(f"cannot read {path}: {plain(error)}", "mend the file") from error
    entries = raw.get("cause", [])
    if not (isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)):
        raise bad_input(f"`cause` of {path} is no list of tables", "begin each with [[cause]]")
    found: dict[str, Cause] = {}
    for entry in entries:
        names, kind, about = (entry.get(key) for key in ("claims", "class", "about"))
        if not (_are_texts(names) and _are_texts([about, kind]) and kind in CLASSES):
            raise bad_input(
                f"{path}: {plain(names or 'an entry')} is incomplete, or of no known class",
                f"a cause has claims, about and a class: {', '.join(CLASSES)}",
            )
        if twice := sorted(found.keys() & set(names)):
            raise bad_input(f"{path} has two causes of {plain(twice[0])}", "leave one of them out")
        found |= dict.fromkeys(names, Cause(kind, about))
    return found


def _are_texts(found: object) -> bool:
    """Whether it is a list of texts, and none is empty."""
    return isinstance(found, list) and bool(found) and all(isinstance(it, str) and it for it in found)
