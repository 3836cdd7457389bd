"""The `narrows` command: one file per verb, and the meaning of its exit codes."""

from narrows.cli.app import app

__all__ = ["app"]
