"""What a paper states, judged from our own runs. A claim is never bent to pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from narrows.claims.binding import Binding, Instead, along
from narrows.claims.catalogue import Claim, Paper
from narrows.claims.readings import Readings

if TYPE_CHECKING:
    from narrows.claims.judge import Part, Verdict, VerdictWord

__all__ = ["Binding", "Claim", "Instead", "Paper", "Part", "Readings", "Verdict", "VerdictWord", "along"]


def __getattr__(name: str) -> Any:
    """Loads what judges only when it is asked for: it is slow, and lists of claims do not need it."""
    if name not in __all__:
        raise AttributeError(f"module 'narrows.claims' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module("narrows.claims.judge"), name)
