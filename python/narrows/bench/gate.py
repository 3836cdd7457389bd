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

TOLERANCE: Final = 0.01
"""Share by which a count may be above or below without a word."""

CREEP: Final = 0.05
"""Share by which a count may be above the least that was ever accepted, however it came there."""

FIRST: Final = ("W1", "W2", "W3")
"""Workloads of a file that is new."""


@dataclass(frozen=True)
class Baseline:
    """What was accepted."""

    compiler: str
    """And profile: another one's instructions are others."""
    instructions_per_packet_hop: Mapping[str, float]
    least: Mapping[str, float]
    """The least that was ever accepted of each: `update` lowers it and never raises it."""


class Verdict(StrEnum):
    """What is to be done."""

    PASSES = "passes"
    FAILS = "fails"
    CREEPS = "fails; crept up"
    LOWER = "passes; lower the file"


@dataclass(frozen=True)
class Judged:
    """A workload beside what was accepted for it, instructions per packet-hop."""

    workload: str
    accepted: float
    least: float
    counted: float

    @property
    def excess(self) -> float:
        """Share by which it is above; negative where it is below."""
        return self.counted / self.accepted - 1

    @property
    def creep(self) -> float:
        """Share by which it is above the least that was ever accepted."""
        return self.counted / self.least - 1

    @property
    def verdict(self) -> Verdict:
        """It fails above the tolerance, and where steps that were accepted one by one add up to more than the creep."""
        if self.excess > TOLERANCE:
            return Verdict.FAILS
        if self.creep > CREEP:
            return Verdict.CREEPS
        return Verdict.LOWER if self.excess < -TOLERANCE else Verdict.PASSES


def read(file: Path) -> Baseline:
    """Raises `BadInput` with what is wrong."""
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
        accepted = {str(name): float(value) for name, value in raw["instructions_per_packet_hop"].items()}
        least = {name: float(raw["least"][name]) for name in accepted}
        baseline = Baseline(str(raw["compiler"]), accepted, least)
    except OSError as error:
        raise bad_input(f"cannot read {file}: {error.strerror}", _WRITES.format(file=file)) from None
    except (tomllib.TOMLDecodeError, KeyError, AttributeError, TypeError, ValueError) as error:
        raise bad_input(f"{file} holds no accepted counts: {error}", _WRITES.format(file=file)) from None
    if not accepted or not all(math.isfinite(count) and count > 0 for count in (*accepted.values(), *least.values())):
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
        counted = callgrind.per_packet_hop(workload)
        judged.append(Judged(workload.name, accepted[workload.name], baseline.least[workload.name], counted))
    return judged


def _named(file: Path, baseline: Baseline) -> list[tuple[str, Workload]]:
    try:
        return [(name, workloads.select([name])[0]) for name in baseline.instructions_per_packet_hop]
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None


def update(file: Path, chosen: Sequence[Workload], say: Callable[[str], None]) -> Baseline:
    """Counts the chosen workloads, or those of the file, and writes them; what is not chosen leaves the file.

    The least of each is lowered where the count is less, if both are of one compiler, and else begins anew.
    """
    callgrind.require()
    before = read(file) if file.exists() else None
    if not chosen:
        chosen = workloads.select(FIRST) if before is None else [each for _, each in _named(file, before)]
    counted = {}
    for workload in chosen:
        say(f"{workload.name}, under callgrind")
        counted[workload.name] = callgrind.per_packet_hop(workload)
    known = before.least if before is not None and before.compiler == native.build() else {}
    least = {name: min(count, known.get(name, count)) for name, count in counted.items()}
    baseline = Baseline(native.build(), counted, least)
    atomic.write_text(file, text(baseline))
    return baseline


def text(baseline: Baseline) -> str:
    """The file."""
    return "\n".join(
        (
            "# Instructions per packet-hop of the workloads' quick variants, by callgrind, without set-up.",
            f"# `narrows bench --check` fails where one is over {100 * TOLERANCE:.0f} % above,",
            f"# or over {100 * CREEP:.0f} % above the least that was ever accepted; `--update` writes them.",
            f'compiler = "{baseline.compiler}"',
            "",
            "[instructions_per_packet_hop]",
            *(f"{name} = {count:.1f}" for name, count in baseline.instructions_per_packet_hop.items()),
            "",
            "[least]",
            *(f"{name} = {count:.1f}" for name, count in baseline.least.items()),
            "",
        )
    )
