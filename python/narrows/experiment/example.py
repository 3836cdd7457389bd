"""A small experiment to begin with, and the schema by which editors complete and check it offline."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from narrows import atomic, native
from narrows.errors import bad_input

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Final = "narrows.schema.json"
"""Beside the experiment, whose first line names it: `#:schema` takes a path from the file, as Taplo reads it."""


def text() -> str:
    """The experiment, with comments."""
    return files("narrows.experiment").joinpath("example.toml").read_text(encoding="utf-8")


def write(path: Path) -> list[Path]:
    """Writes the experiment and the schema beside it; returns their paths.

    Raises `BadInput` where the experiment is there already, or what is called like the schema is no such schema.
    """
    if os.path.lexists(path):
        raise bad_input(f"{path} is there already", "give another name: narrows init FILE")
    schema = path.with_name(SCHEMA)
    if path == schema:
        raise bad_input(f"{SCHEMA} is the name of the schema", "give the experiment a name such as experiment.toml")
    if schema.exists() and not _is_schema(schema):
        raise bad_input(f"{schema} is there already, and is no schema of experiments", "move it, or use another folder")
    atomic.write_text(path, text())
    atomic.write_text(schema, json.dumps(native.schema(), indent=1) + "\n")
    return [path, schema]


def _is_schema(path: Path) -> bool:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and {"topology", "run"} <= (found.get("properties") or {}).keys()
