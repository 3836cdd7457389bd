"""Writes the experiment of imported files, and checks that it is one."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from narrows import atomic
from narrows.errors import BadInput, bad_input
from narrows.imports.assemble import document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from narrows.imports.parts import Options


def write_experiment(paths: Sequence[Path], output: Path, options: Options) -> list[Path]:
    """Writes the experiment of files that belong together.

    Args:
        paths: A topology, flows, traces, and so on, of which each part of an experiment has one at most.
        output: The experiment file; what it refers to is written beside it.
        options: What the files cannot say.

    Returns:
        The files that were written, the experiment first.

    Raises:
        BadInput: A file has what is not understood, the files do not belong together, an option is missing or has no
            effect, or something is there already. Nothing is written then.
    """
    _not_there(output)
    made = document(paths, options, output.stem)
    texts = {output: made.text} | {output.with_name(name): text for name, text in made.files.items()}
    for path in texts:
        _not_there(path)
    try:
        for path, text in reversed(texts.items()):  # the experiment last, when what it refers to is there
            atomic.write_text(path, text)
        _judge(output)
    except BaseException:
        for path in texts:
            with contextlib.suppress(OSError):  # what stopped the writing stops this too
                path.unlink()
        raise
    return list(texts)


def _not_there(path: Path) -> None:
    if os.path.lexists(path):
        raise bad_input(f"{path} is there already", "choose another file with --output, or delete it")


def _judge(output: Path) -> None:
    """Expands the experiment, so that nothing is left that does not run."""
    from narrows.experiment import Experiment

    try:
        Experiment(output)
    except BadInput as error:
        raise bad_input(f"the files make no valid experiment\n{error}", "correct the files") from error
