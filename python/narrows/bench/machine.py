"""What the figures were measured on, without names of machines or people."""

from __future__ import annotations

import os

from narrows import machine, native


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
