"""Exit codes, and how each kind of trouble becomes one: printed to the error stream, never a traceback."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

from narrows.errors import BadInput, Cancelled, EnvironmentLacks, RunFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECK_FAILED: Final = 1
BAD_INPUT: Final = 2
ENVIRONMENT: Final = 3
INTERRUPTED: Final = 130


@contextmanager
def codes() -> Iterator[None]:
    """Turns expected trouble into a message and a code."""
    try:
        yield
    except BadInput as error:
        _leave(error.for_command or str(error), BAD_INPUT)
    except EnvironmentLacks as error:
        _leave(f"error: {error}", ENVIRONMENT)
    except RunFailed as error:
        _leave(f"error: {error}", CHECK_FAILED)
    except Cancelled as error:
        _leave(f"interrupted: {error}\n  help: the same command goes on from there", INTERRUPTED)
    except KeyboardInterrupt:
        _leave("interrupted", INTERRUPTED)


def _leave(message: str, code: int) -> None:
    sys.stderr.write(message.rstrip() + "\n")
    raise typer.Exit(code)
