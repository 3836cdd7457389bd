"""What the figures were measured on, without names of machines or people."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from narrows import machine, native

if TYPE_CHECKING:
    from collections.abc import Callable


def described() -> str:
    """Processor, cores, kernel, compiler and version."""
    here = machine.described()
    return f"{here['processor']}, {here['cores']} cores; {here['kernel']}; {native.build()}; narrows {native.version()}"


def load() -> float | None:
    """Programs that ran or wanted to, on average over the last minute; `None` where the system does not tell."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def quiet_load(most: float, seconds: float, say: Callable[[str], None]) -> float | None:
    """The [load][narrows.bench.machine.load] once it is at most `most`, or after so many seconds."""
    until = time.monotonic() + seconds
    while True:
        now = load()
        if now is None or now <= most or time.monotonic() >= until:
            return now
        say(f"the load is {now:.2f}: waiting for at most {most:.2f}, or {until - time.monotonic():.0f} s")
        time.sleep(min(1.0, seconds))
