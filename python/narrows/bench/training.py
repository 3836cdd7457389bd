"""What the compiler's profile of a released wheel is made from: `python -m narrows.bench.training`.

The build of a wheel (`make wheel`) runs this with an instrumented module, and compiles a second time with the profile.
W4, which is not among these, shows what the profile is worth for work that it has not seen.
"""

from __future__ import annotations

from typing import Final

from narrows.bench import workloads
from narrows.bench.measure import sample, work

TRAINED: Final = ("W1", "W2", "W3", "W5-loss", "W1-default", "W2-default")


def main() -> None:
    """Runs the quick variants of the workloads, one after the other. Raises `RunFailed`."""
    for workload in workloads.select(TRAINED):
        sample(work(workload, quick=True))


if __name__ == "__main__":
    main()
