"""Files of other simulators and tools, imported as experiments: one module for each format."""

from narrows.imports.parts import Options
from narrows.imports.writing import write_experiment

__all__ = ["Options", "write_experiment"]
