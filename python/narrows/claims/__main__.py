"""Writes `docs/measures.md` of the working directory: `python -m narrows.claims`."""

from pathlib import Path

from narrows.claims import measures

if __name__ == "__main__":
    Path("docs/measures.md").write_text(measures.document())
