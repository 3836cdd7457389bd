"""A progress bar of runs under way, in a notebook or on a terminal. It needs tqdm, of the extra `notebook`."""

from __future__ import annotations

import sys
import time
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol

from narrows.errors import EnvironmentLacks

if TYPE_CHECKING:
    from narrows.runs.running import Progress

DELAY_S: Final = 0.5
"""What is over sooner has no bar."""
_EVERY_S: Final = 0.1
_FORM: Final = "{desc}: {percentage:3.0f} %|{bar:28}| {postfix} [{elapsed}<{remaining}]"


class Followed(Protocol):
    """Runs under way."""

    def progress(self) -> Progress:
        """How far they are."""
        ...

    def done(self) -> bool:
        """Whether they have ended."""
        ...


def follow(work: Followed, label: str, *, wanted: bool | None) -> None:
    """Shows a bar until the runs have ended, and returns at once where none is shown.

    `wanted` is `None` for a bar where somebody sees it and tqdm is installed. Raises `EnvironmentLacks` where it is
    wanted and tqdm is not installed.
    """
    if wanted is None:
        wanted = (in_notebook() or sys.stderr.isatty()) and find_spec("tqdm") is not None
    if not wanted:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without widgets a notebook has a bar of text
            from tqdm.auto import tqdm
    except ImportError:
        raise EnvironmentLacks("tqdm is not installed\n  help: pip install 'narrows[notebook]'") from None
    with tqdm(total=1.0, desc=label, bar_format=_FORM, delay=DELAY_S, leave=False) as bar:
        while not work.done():
            _show(bar, work.progress())
            time.sleep(_EVERY_S)
        _show(bar, work.progress())


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    return getattr(shell, "kernel", None) is not None


def _show(bar: Any, now: Progress) -> None:
    bar.set_postfix_str(f"{now.finished + now.skipped}/{now.total} runs", refresh=False)
    bar.n = now.fraction
    bar.refresh()
