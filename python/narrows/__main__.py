"""`python -m narrows` is the `narrows` command."""

from narrows.cli import app

if __name__ == "__main__":
    app()
