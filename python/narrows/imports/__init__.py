"""Files of other simulators and tools, imported as experiments: one module for each format."""

from narrows.imports.bringing import bring_in
from narrows.imports.parts import Options

__all__ = ["Options", "bring_in"]
