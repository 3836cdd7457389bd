"""What the figures were measured on, without names of machines or people."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from narrows import native


def described() -> str:
    """Processor, cores, kernel, compiler and version."""
    cores = os.cpu_count() or 1
    kernel = f"{platform.system()} {platform.release()}"
    return f"{_processor()}, {cores} cores; {kernel}; {native.build()}; narrows {native.version()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
