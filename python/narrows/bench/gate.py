"""Instructions per packet-hop against those that were accepted, `bench/instructions.toml` in a checkout."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from narrows import atomic, native
from narrows.bench import callgrind, workloads
from narrows.errors import BadInput, EnvironmentLacks, bad_input

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from narrows.bench.workloads import Workload

TOLERANCE: Final = 0.03
"""Share by which a count may be above or below without a word."""

FIRST: Final = ("W1", "W2", "W3")
"""Workloads of a file that is new."""


@dataclass(frozen=True)
class Baseline:
    """What was accepted."""

    compiler: str
    """And profile: another one's instructions are others."""
    instructions_per_packet_hop: Mapping[str, float]


class Verdict(StrEnum):
    """What is to be done."""

    PASSES = "passes"
    FAILS = "fails"
    LOWER = "passes; lower the file"


@dataclass(frozen=True)
class Judged:
    """A workload beside what was accepted for it, instructions per packet-hop."""

    workload: str
    accepted: float
    counted: float

    @property
    def excess(self) -> float:
        """Share by which it is above; negative where it is below."""
        return self.counted / self.accepted - 1

    @property
    def verdict(self) -> Verdict:
        """Above by more than the tolerance it fails."""
        if self.excess > TOLERANCE:
            return Verdict.FAILS
        return Verdict.LOWER if self.excess < -TOLERANCE else Verdict.PASSES


def read(file: Path) -> Baseline:
    """Raises `BadInput` with what is wrong."""
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
        accepted = {str(name): float(value) for name, value in raw["instructions_per_packet_hop"].items()}
        baseline = Baseline(str(raw["compiler"]), accepted)
    except OSError as error:
        raise bad_input(f"cannot read {file}: {error.strerror}", _WRITES.format(file=file)) from None
    except (tomllib.TOMLDecodeError, KeyError, AttributeError, TypeError, ValueError) as error:
        raise bad_input(f"{file} holds no accepted counts: {error}", _WRITES.format(file=file)) from None
    if not accepted or not all(math.isfinite(count) and count > 0 for count in accepted.values()):
        raise bad_input(f"{file} holds no accepted counts", _WRITES.format(file=file))
    return baseline


_WRITES: Final = "`narrows bench --update {file}` writes it"


def check(file: Path, chosen: Sequence[Workload], say: Callable[[str], None]) -> list[Judged]:
    """Counts the chosen workloads of the file, or all of them. Raises `EnvironmentLacks` where counts say nothing."""
    baseline = read(file)
    accepted = {each.name: baseline.instructions_per_packet_hop[name] for name, each in _named(file, baseline)}
    missing = [each.name for each in chosen if each.name not in accepted]
    if missing:
        raise bad_input(f"{file} has no count of {', '.join(missing)}", f"it has: {', '.join(accepted)}")
    callgrind.require()
    if baseline.compiler != native.build():
        raise EnvironmentLacks(
            f"the counts of {file} are those of {baseline.compiler}; this simulator was made by {native.build()}\n"
            "  help: build with the former, or measure again with --update"
        )
    judged = []
    for workload in chosen or workloads.select(list(accepted)):
        say(f"{workload.name}, under callgrind")
        judged.append(Judged(workload.name, accepted[workload.name], callgrind.per_packet_hop(workload)))
    return judged


def _named(file: Path, baseline: Baseline) -> list[tuple[str, Workload]]:
    try:
        return [(name, workloads.select([name])[0]) for name in baseline.instructions_per_packet_hop]
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None


def update(file: Path, chosen: Sequence[Workload], say: Callable[[str], None]) -> Baseline:
    """Counts the chosen workloads, or those of the file, and writes them; what is not chosen leaves the file."""
    callgrind.require()
    if not chosen:
        chosen = [each for _, each in _named(file, read(file))] if file.exists() else workloads.select(FIRST)
    counted = {}
    for workload in chosen:
        say(f"{workload.name}, under callgrind")
        counted[workload.name] = callgrind.per_packet_hop(workload)
    baseline = Baseline(native.build(), counted)
    atomic.write_text(file, text(baseline))
    return baseline


def text(baseline: Baseline) -> str:
    """The file."""
    return "\n".join(
        (
            "# Instructions per packet-hop of the workloads' quick variants, by callgrind, without set-up.",
            f"# `narrows bench --check` fails where one is over {100 * TOLERANCE:.0f} % above; `--update` writes them.",
            f'compiler = "{baseline.compiler}"',
            "",
            "[instructions_per_packet_hop]",
            *(f"{name} = {count:.1f}" for name, count in baseline.instructions_per_packet_hop.items()),
            "",
        )
    )
