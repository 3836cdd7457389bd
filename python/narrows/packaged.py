"""What comes with the package: the experiments of papers, and the examples of the documentation.

In a checkout `data` has links to the folders themselves; a wheel has copies of what they hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_DATA: Final = Path(__file__).with_name("data")


def experiments() -> Path:
    """The folder `experiments` of the package; in a checkout, the checkout's."""
    return (_DATA / "experiments").resolve()


def examples() -> Path:
    """The folder `examples` of the package; in a checkout, the checkout's."""
    return (_DATA / "examples").resolve()


def is_installed(path: Path) -> bool:
    """Whether a path leads into an installed package, where nobody writes and from where nothing is linked."""
    return path.resolve().is_relative_to(_DATA.resolve())
