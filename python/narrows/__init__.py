"""Narrows: congestion control for networks that span datacenters.

import narrows

run = narrows.run("experiment.toml", quick=True)   # a handle: progress(), cancel(), join()
results = run.join()
results.flows                                      # polars, one row per flow, with its scheme and seed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from narrows.errors import BadInput, Cancelled, EnvironmentLacks, RunFailed

if TYPE_CHECKING:
    from narrows.api import Handle, load, load_beside, run
    from narrows.experiment import Experiment
    from narrows.native import version
    from narrows.results import Results

__all__ = [
    "BadInput",
    "Cancelled",
    "EnvironmentLacks",
    "Experiment",
    "Handle",
    "Results",
    "RunFailed",
    "load",
    "load_beside",
    "run",
    "version",
]

_HOMES = {
    "Experiment": "narrows.experiment",
    "Handle": "narrows.api",
    "load": "narrows.api",
    "load_beside": "narrows.api",
    "run": "narrows.api",
    "version": "narrows.native",
    "Results": "narrows.results",
}


def __getattr__(name: str) -> Any:
    """Loads what is asked for only then, so that the command starts quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module 'narrows' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
