"""Writes `docs/reference/measures.md` of the working directory: `python -m narrows.measures`."""

from pathlib import Path

from narrows.measures import named

if __name__ == "__main__":
    Path("docs/reference/measures.md").write_text(named.document())
