"""The report of runs under way: built again when runs have come in, and served to browsers on this machine."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from narrows import atomic
from narrows.errors import BadInput
from narrows.report import page
from narrows.report.serving import Site

if TYPE_CHECKING:
    from pathlib import Path

    from narrows.api import Handle
    from narrows.runs.running import Progress

SHARE: Final = 0.1
"""Of the time in which pages may be built: runs want the processors."""
_LOOK_S: Final = 0.2
_LAST_S: Final = 3.0
"""For which a browser may fetch the last page."""


class Pace:
    """When the next page may be built, so that no more than `SHARE` of the time is spent on pages."""

    def __init__(self) -> None:
        self._next = 0.0

    def may_begin(self, now: float) -> bool:
        """Whether one may be begun, s."""
        return now >= self._next

    def ended(self, began: float, now: float) -> None:
        """One was built between these, s."""
        self._next = now + (now - began) * (1 / SHARE - 1)


class Watch:
    """Builds and serves the report of a handle, until it is closed."""

    def __init__(self, handle: Handle, *, port: int = 0) -> None:
        """Begins. Raises `BadInput` where the port cannot be had."""
        self._handle = handle
        self._page = ""
        self._trouble = ""
        self._built = 0
        """Runs that were there when the page was built last, or that was tried."""
        self._site = Site(port, title=handle.experiment.title, text=self._far)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """What a browser opens."""
        return self._site.url

    def finish(self) -> Path:
        """Writes the whole report, and lets browsers fetch it; returns its path. The runs have been recorded.

        Raises `BadInput` where there is none, for instance as no run counts; browsers are told.
        """
        self._stop()
        try:
            path = self._handle.results().report()
        except BadInput as error:
            self._last(self._page, f"all runs have ended; there is no report: {error.sentence}")
            raise
        self._partial().unlink(missing_ok=True)
        self._last(path.read_text(encoding="utf-8"), f"all runs have ended; the report is {path}")
        return path

    def interrupt(self) -> Path | None:
        """Keeps the report of what is there, where anything is; returns its path. Raises `BadInput` if it cannot."""
        self._stop()
        if _there(self._handle.progress()) > self._built:
            self._build()
        if not self._page:
            return None
        path = self._partial()
        atomic.write_text(path, self._page)
        self._last(self._page, f"interrupted; the report of what is there is {path}")
        return path

    def close(self) -> None:
        """Serves no more."""
        self._stop()
        self._site.close()

    def _stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _last(self, text: str, said: str) -> None:
        self._site.text = lambda: said
        self._site.show(text, ended=True)
        self._site.wait_for_browsers(_LAST_S)

    def _far(self) -> str:
        now = self._handle.progress()
        return f"{_there(now)} of {now.total} runs, {now.fraction:.0%} of the time simulated{self._trouble}"

    def _partial(self) -> Path:
        # No identifier has a tilde: the report of another result has another name.
        return self._handle.root / "reports" / f"report-{self._handle.identifier}~partial.html"

    def _work(self) -> None:
        pace = Pace()
        while not self._stopping.wait(_LOOK_S):
            began = time.monotonic()
            if _there(self._handle.progress()) > self._built and pace.may_begin(began):
                self._build()
                pace.ended(began, time.monotonic())

    def _build(self) -> None:
        """Builds the page of what is there. The runs go on where that fails: the last page stays."""
        now = self._handle.progress()
        self._built = _there(now)
        try:
            # What runs write meanwhile may be gone, or be what no reader expects.
            results = self._handle.so_far()
            if results is None:
                return
            self._page = page.render(results, (), partial=f"{_there(now)} of {now.total} runs")
        except BadInput as error:  # a table is damaged, or none of these runs counts
            self._trouble = f"; no report of these: {error.sentence}"
            return
        except Exception as error:  # noqa: BLE001 - this thread has nobody else to tell, and is needed for the next page
            first, *_ = str(error).splitlines() or [""]
            self._trouble = f"; no report of these: {type(error).__name__}: {first}"
            return
        self._trouble = ""
        self._site.show(self._page)


def _there(now: Progress) -> int:
    return now.finished + now.skipped
