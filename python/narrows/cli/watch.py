"""`narrows run --watch`: the report while runs come in."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from narrows.cli.output import ERR, OUT, line, tell, tell_page
from narrows.errors import BadInput, Cancelled, EnvironmentLacks, RunFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from narrows.api import Handle


@contextmanager
def _warned() -> Iterator[None]:
    """What keeps a report from being written ends no command: the runs have been made."""
    try:
        yield
    except BadInput as error:
        ERR.print(f"warning: no report: {error.sentence}", markup=False, soft_wrap=True)


@contextmanager
def watched(handle: Handle, port: int | None, *, json: bool) -> Iterator[None]:
    """Serves the report of a handle until its runs have been recorded, and says where it is then; not without a port.

    Where the runs end without that, it says where the report of what is there is.
    """
    if port is None:
        yield
        return
    from narrows.report.watch import Watch

    try:
        watch = Watch(handle, port=port)
    except BadInput:
        handle.cancel()
        raise
    try:
        if json:
            line(event="watch", url=watch.url)
        else:
            OUT.print(f"the report while runs come in: {watch.url}", markup=False, soft_wrap=True)
        try:
            yield
        except (BadInput, Cancelled, EnvironmentLacks, RunFailed):
            with _warned():
                if (partial := watch.interrupt()) is not None:
                    tell(partial, json=json, event="partial_report", run=handle.identifier)
            raise
        with _warned():
            tell_page(watch.finish(), json=json, run=handle.identifier)
    finally:
        watch.close()
