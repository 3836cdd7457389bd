"""What the figures were measured on, without names of machines or people."""

from __future__ import annotations

from narrows import machine, native


def described() -> str:
    """Processor, cores, kernel, compiler and version."""
    here = machine.described()
    return f"{here['processor']}, {here['cores']} cores; {here['kernel']}; {native.build()}; narrows {native.version()}"
