"""Runs the quick variants of the benchmark's workloads once, to tell an instrumented module which code is hot.

python bench/train.py    # with the module on PYTHONPATH that `make release-wheel` compiled for this
"""

from __future__ import annotations

import json

from narrows import native
from narrows.bench import workloads
from narrows.experiment import Experiment


def main() -> None:
    """One run of each workload; the module writes its profile when the process ends."""
    for workload in workloads.ALL:
        if workload.name != "W2-long":  # the same code as W2
            chosen = Experiment(workload.file, quick=True)
            native.Run(json.dumps(chosen.plans[0].body), chosen.seeds[0]).join()


if __name__ == "__main__":
    main()
