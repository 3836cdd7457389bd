"""Results as one file: `export` writes an archive, `bring_in` takes it into another store."""

from narrows.archive.pack import export
from narrows.archive.unpack import bring_in

__all__ = ["bring_in", "export"]
