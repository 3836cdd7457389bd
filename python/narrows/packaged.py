"""What comes with the package: the experiments of papers, and the examples of the documentation.

In a checkout `data` has links to the folders themselves; a wheel has copies of what they hold.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_DATA: Final = Path(__file__).with_name("data")
_LABEL: Final = re.compile(r"[\w-]+/[\w-]+")
_FILE: Final = "experiment.toml"


def experiments() -> Path:
    """The folder `experiments` of the package; in a checkout, the checkout's."""
    return (_DATA / "experiments").resolve()


def examples() -> Path:
    """The folder `examples` of the package; in a checkout, the checkout's."""
    return (_DATA / "examples").resolve()


def is_installed(path: Path) -> bool:
    """Whether a path leads into an installed package, where nobody writes and from where nothing is linked."""
    return path.resolve().is_relative_to(_DATA.resolve())


def experiment(label: str) -> Path | None:
    """The experiment file of a figure of the package, by its label, `gemini/fig13`; `None` if there is none."""
    path = experiments() / label / _FILE
    return path if _LABEL.fullmatch(label) and path.is_file() else None


def label(path: Path) -> str | None:
    """`gemini/fig13` for that experiment of an installed package, whose path is a machine's; `None` for other files."""
    if path.name != _FILE or not is_installed(path):
        return None
    return path.resolve().parent.relative_to(experiments()).as_posix()
