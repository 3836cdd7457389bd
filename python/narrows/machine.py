"""What a run was made on, without names of machines or people."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import Any


def described() -> dict[str, Any]:
    """Model of the processor, number of cores that the system has, and the kernel with its release."""
    return {
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        "kernel": f"{platform.system()} {platform.release()}",
    }


@cache
def processor() -> str:
    """Model of the processor; its architecture where the system does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
