"""Says how far work is: a bar on a terminal, elsewhere a line now and then, and none of what is soon over.

An interrupt stops a batch and keeps what is finished.
"""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from narrows import wording
from narrows.cli.output import ERR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from narrows.runs.running import Progress as Snapshot


EVERY_SECONDS: Final = 30.0
"""Between two lines where there is no terminal."""


class Followed(Protocol):
    """What can be followed."""

    def progress(self) -> Snapshot:
        """How far it is."""
        ...

    def done(self) -> bool:
        """Whether it has ended."""
        ...

    def cancel(self) -> None:
        """Stops it."""
        ...


def follow(work: Followed, label: str) -> None:
    """Returns when the work has ended; after an interrupt or a request to terminate it has been cancelled."""
    with terminable():
        if ERR.is_terminal:
            _show(work, label)
        else:
            _tell(work, label)


@contextmanager
def terminable() -> Iterator[None]:
    """A request to terminate interrupts: machines and batch systems ask by SIGTERM what people ask by Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _show(work: Followed, label: str) -> None:
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=28),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[runs]}  {task.fields[simulated]} simulated  {task.fields[speed]} packet-hops/s"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=ERR, transient=True) as bar:
        task = bar.add_task(label, total=1.0, runs="", simulated="", speed="")

        def show() -> None:
            now = work.progress()
            bar.update(
                task,
                completed=now.fraction,
                runs=_runs(now),
                simulated=wording.duration(now.simulated_ns / 1e9),
                speed=wording.number(now.packet_hops_per_second),
            )

        _wait(work, show)


def _tell(work: Followed, label: str) -> None:
    due_s = EVERY_SECONDS

    def tell() -> None:
        nonlocal due_s
        now = work.progress()
        if now.elapsed_s < due_s:
            return
        due_s = now.elapsed_s + EVERY_SECONDS
        left_s = now.elapsed_s / now.fraction - now.elapsed_s if now.fraction else None
        left = "" if left_s is None else f", about {wording.duration(left_s)} left"
        told = f"{label}: {_runs(now)} after {wording.duration(now.elapsed_s)}{left}"
        ERR.print(told, markup=False, soft_wrap=True)

    _wait(work, tell)


def _runs(now: Snapshot) -> str:
    elsewhere = f" ({now.elsewhere} with another command)" if now.elsewhere else ""
    return f"{now.finished + now.skipped}/{now.total} runs{elsewhere}"


def _wait(work: Followed, show: Callable[[], None]) -> None:
    while not work.done():
        try:
            show()
            time.sleep(0.1)
        except KeyboardInterrupt:
            work.cancel()


@contextmanager
def watching(label: str) -> Iterator[Callable[[tuple[int, int, int]], bool]]:
    """Says how far one run is that this process makes: called with (simulated ns, ns at the end, packet-hops)."""
    with saying() as say:

        def look(now: tuple[int, int, int]) -> bool:
            simulated_ns, end_ns, _ = now
            share = simulated_ns / end_ns if end_ns else 0.0
            say(f"{label}: {share:.0%} of {wording.duration(end_ns / 1e9)} simulated")
            return True

        yield look


_said_s = time.monotonic()
"""When a line was last printed, or the command began."""


def begin() -> None:
    """A command begins: its first line is due `EVERY_SECONDS` from now."""
    global _said_s  # noqa: PLW0603 - of the process, as its stderr is
    _said_s = time.monotonic()


def _later(text: str) -> None:
    global _said_s  # noqa: PLW0603 - of the process, as its stderr is
    if time.monotonic() - _said_s >= EVERY_SECONDS:
        ERR.print(text, markup=False, soft_wrap=True)
        _said_s = time.monotonic()


@contextmanager
def saying() -> Iterator[Callable[[str], None]]:
    """A line that says what goes on. Results are printed afterwards: meanwhile what goes to the output comes here.

    Where there is no terminal, what is said less than `EVERY_SECONDS` after the last line is not printed.
    """
    if not ERR.is_terminal:
        yield _later
        return
    with ERR.status("") as status:
        yield status.update
