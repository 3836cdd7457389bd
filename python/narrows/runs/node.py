"""A run on a node of a cluster: plain values in and out, and Ray cancels it by an interrupt."""

from __future__ import annotations

from typing import Any

from narrows.errors import BadInput
from narrows.runs.simulate import Request, make


def perform(request: dict[str, Any]) -> dict[str, Any]:
    """Makes a run: its files and manifest, or why there are none."""
    try:
        made = make(Request(**request), lambda _: True)
    except BadInput as error:
        return {"failed": str(error), "input": True}
    except Exception as error:  # noqa: BLE001 - reported by the driver, with the run's name
        return {"failed": f"{type(error).__name__}: {error}", "input": False}
    return {"made": dict(made.files), "manifest": dict(made.manifest)}
