"""Which tool's format a file has, by its content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from narrows.imports import (
    cdf,
    hpcc_flows,
    hpcc_nodes,
    hpcc_topology,
    htsim_matrix,
    htsim_topology,
    mahimahi,
    traffic_generator,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from narrows.imports.reading import Source

FORMATS: Final[tuple[ModuleType, ...]] = (
    htsim_matrix,
    htsim_topology,
    traffic_generator,
    hpcc_topology,
    hpcc_flows,
    hpcc_nodes,
    mahimahi,
    cdf,
)
"""A module for each, with `FORMAT`, `is_it` and `parse`; of several that would take a file, the first does."""


def format_of(source: Source, others: Sequence[Source]) -> ModuleType:
    """The format of a file, given the other files of the same import. Raises `BadInput`.

    A list of nodes looks like a trace of Mahimahi; it is one of nodes only beside a topology that has nodes.
    """
    found = [module for module in FORMATS if module.is_it(source)]
    if hpcc_nodes in found and not any(hpcc_topology.is_it(other) for other in others) and mahimahi in found:
        found.remove(hpcc_nodes)
    if not found:
        names = ", ".join(module.FORMAT for module in FORMATS)
        raise source.refuse(source.lines[0], "the format of this file is not known", f"known are: {names}")
    return found[0]
