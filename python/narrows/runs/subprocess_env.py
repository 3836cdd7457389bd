"""Processes of this package that this process starts."""

from __future__ import annotations

import os
from pathlib import Path

import narrows


def environment() -> dict[str, str]:
    """Ours, in which a child finds this very package."""
    package = str(Path(narrows.__file__).parents[1])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
