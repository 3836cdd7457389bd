"""The one door to the native module: converts its errors, its JSON and its Arrow tables, and knows nothing else."""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from narrows.errors import BadInput, Cancelled, EnvironmentLacks, bad_input

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    import polars as pl

    from narrows import _native as _Native  # noqa: N812
    from narrows.controller import Controller
    from narrows.experiment.summary import LongFlow, Network

TableName = Literal["flows", "requests", "ports", "series", "events", "bridges", "ranks"]

_RUN_AGAIN: Final = "run the experiment again: a plan is of one version"


def _module() -> ModuleType:
    try:
        from narrows import _native
    except ImportError as missing:
        is_here = any(Path(__file__).parent.glob("_native.*so"))
        state = "is here but cannot be loaded" if is_here else "is not here"
        raise EnvironmentLacks(
            f"the simulator's native module {state} ({missing})\n"
            "  help: install the wheel again, or run `make fast` in a checkout"
        ) from missing
    return _native


@contextmanager
def _converted(advice: str) -> Iterator[ModuleType]:
    """The module, whose errors become the lab's, with this advice where the module gives none."""
    module = _module()
    try:
        yield module
    except module.BadInput as error:
        raise BadInput(str(error)) from None
    except ValueError as refused:
        raise bad_input(str(refused), advice) from None


def version() -> str:
    """The simulator's version: the package, and a digest of the engine."""
    return cast("str", _module().version())


def plan_hash(body: Mapping[str, Any]) -> str:
    """Of a plan; it names the folder of its runs. Raises `BadInput` where the plan is one of another version."""
    with _converted(_RUN_AGAIN) as module:
        return cast("str", module.plan_hash(json.dumps(body)))


def plan_version(body: Mapping[str, Any], by: str | None = None) -> str:
    """What a plan's results depend on: the engine, and the components that the plan uses.

    `by` is what `narrowsd sources` prints (default: the simulator's own sources). Raises `BadInput` where the plan is
    one of another version, and `EnvironmentLacks` where narrowsd is.
    """
    plan = json.dumps(body)
    with _converted(_RUN_AGAIN) as module:
        own = cast("str", module.plan_version(plan, None))
    if by is None:
        return own
    try:
        return cast("str", module.plan_version(plan, by))
    except ValueError as refused:  # the plan was good for the simulator
        raise EnvironmentLacks(f"{refused}\n  help: make narrowsd from the same sources: `make narrowsd`") from None


def long_flows(body: Mapping[str, Any]) -> list[LongFlow]:
    """The flows that a plan gives no size, with when they begin and stop, and their base RTT, ns.

    Raises `BadInput` for a plan of another version.
    """
    with _converted(_RUN_AGAIN) as module:
        return cast("list[LongFlow]", json.loads(module.long_flows(json.dumps(body))))


def network(body: Mapping[str, Any]) -> Network:
    """A plan's network: nodes, base RTTs, MTU, profiles of hosts, links by role, and which may be paused.

    Raises `BadInput` for a plan of another version.
    """
    with _converted(_RUN_AGAIN) as module:
        return cast("Network", json.loads(module.network(json.dumps(body))))


def base_rtt_ns(body: Mapping[str, Any], one: str, other: str) -> int:
    """RTT between two hosts of a plan when nothing queues: delays of links and stacks, nothing for serialisation."""
    with _converted("name two hosts of the plan that a path connects") as module:
        return cast("int", module.base_rtt(json.dumps(body), one, other))


def build() -> str:
    """The compiler and the profile that made the simulator: counts of instructions hold for these."""
    return cast("str", _module().build())


def components() -> list[dict[str, Any]]:
    """Every component that an experiment chooses by name: kind, name, about, source, parameters.

    Sources are keys of the references in brackets, as documentation has them: `[DCTCP] [RFC 8257]`.
    """
    found = cast("list[dict[str, Any]]", json.loads(_module().components()))
    return [item | {"source": _cited(item["source"])} for item in found]


def _cited(source: str) -> str:
    keys = [key.strip() for key in re.split(r"[\[\],;]", source)]
    return " ".join(f"[{key}]" for key in keys if key)


def controllers() -> list[dict[str, Any]]:
    """Every controller, with its title and its use of ECN too."""
    return [item for item in components() if item["kind"] == "controller"]


def tables() -> list[dict[str, Any]]:
    """Every table of a run: name, row, columns."""
    return cast("list[dict[str, Any]]", json.loads(_module().tables()))


def trace_tables() -> list[dict[str, Any]]:
    """Every table of a traced run beside its results."""
    return cast("list[dict[str, Any]]", json.loads(_module().tables(trace=True)))


def program(name: str, given: Mapping[str, str]) -> str:
    """The program of a generator as text in GOAL; its parameters as an experiment writes them, without quotes.

    Raises `BadInput` where there is no such generator, or a parameter is missing, unknown or out of its range.
    """
    with _converted("`narrows show program` lists the generators") as module:
        return cast("str", module.program(name, list(given.items())))


def c_compiler() -> str:
    """The C compiler that compiles controllers. Raises `BadInput` where there is none."""
    with _converted("give the path of a C compiler in the variable CC") as module:
        return cast("str", module.c_compiler())


def controller_in_file(path: Path, name: str | None = None) -> dict[str, Any]:
    """A controller in C or Python: its name, its use of ECN, and its parameters with their values.

    Of several in the file the one called `name`. Raises `BadInput` where it is none, or does not compile.
    """
    with _converted("give the path of a file, as text in UTF-8") as module:
        return cast("dict[str, Any]", json.loads(module.controller_in_file(str(path), name)))


def schema() -> dict[str, Any]:
    """The JSON Schema of experiment files."""
    return cast("dict[str, Any]", json.loads(_module().schema()))


_MIN_MEMORY: Final = 4_000_000_000
"""Bytes that a run may need on any machine."""


_CONTAINER: Final = Path("/sys/fs/cgroup/memory.max")
"""What this container's processes may have together, bytes, or `max`."""


def memory_limit_bytes() -> int:
    """What a run may need: this machine's memory, or this container's, for each of its processors, or 4 GB."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return _MIN_MEMORY
    with suppress(OSError, ValueError):
        memory = min(memory, int(_CONTAINER.read_text(encoding="ascii")))
    return max(_MIN_MEMORY, memory // (os.cpu_count() or 1))


def expand(path: str, *, sets: Sequence[tuple[str, str]], quick: bool) -> dict[str, Any]:
    """An experiment file as plans and seeds. Raises `BadInput` with the place of the mistake."""
    with _converted("give the path of a file, and overridden settings, as texts in UTF-8") as module:
        text = module.expand(path, sets=list(sets), quick=quick, memory_limit_bytes=memory_limit_bytes())
    return cast("dict[str, Any]", json.loads(text))


def seeds(text: str) -> list[int] | None:
    """Seeds from a text, as `run.seeds` of an experiment file takes it; `None` if it names none."""
    return cast("list[int] | None", _module().seeds(text))


def calibrate() -> float:
    """Nanoseconds that this machine needs for one hold: the unit in which speed travels between machines."""
    return cast("float", _module().calibrate())


def calibrate_memory() -> float:
    """Nanoseconds that this machine needs for a read along a random chain through 8 MB: a second-level cache's miss."""
    return cast("float", _module().calibrate_memory())


class Substitute(NamedTuple):
    """A class in place of that of one of a plan's files. Its calls may take as long as they like."""

    controller: type[Controller]
    text: str
    """Of the file."""
    name: str
    """Of the class in the file."""


class Run:
    """A run on its own thread, or several. Poll `progress`; `join` waits."""

    def __init__(self, plan_json: str, seed: int, *, threads: int = 1, substitute: Substitute | None = None) -> None:
        """Starts it; with a `substitute` on one thread."""
        with _converted(_RUN_AGAIN) as module:
            self._run: _Native.Run = module.start(plan_json, seed, threads=threads, substitute=substitute)

    @classmethod
    def traced(cls, plan_json: str, seed: int, flows: str | None) -> Run:
        """The run with a trace of these flows, or of all: see `_native.trace`."""
        run = cls.__new__(cls)
        with _converted(_RUN_AGAIN) as module:
            run._run = module.trace(plan_json, seed, flows)
        return run

    def progress(self) -> tuple[int, int, int]:
        """(simulated ns, ns at the end, packet-hops)."""
        return self._run.progress()

    def cancel(self) -> None:
        """Asks the run to stop; `join` then raises `Cancelled`."""
        self._run.cancel()

    def join(self) -> RunResults:
        """Waits for the end. Raises `Cancelled`, or `BadInput` if the simulator refuses the plan."""
        with _converted(
            "mend what it names: give fewer hosts or flows, an earlier end, or make several experiments of it"
        ) as module:
            try:
                return RunResults(self._run.join())
            except module.Cancelled:
                raise Cancelled("run cancelled") from None


class RunResults:
    """Tables and manifest of one finished run."""

    def __init__(self, results: _Native.Results) -> None:
        self._results = results

    def write_capture(self, path: Path, ports: Sequence[str]) -> None:
        """Packets of a traced run at these ports, as pcapng. Raises `OSError`, or `BadInput` without such a port."""
        with _converted("name a port as `from->to`"):
            self._results.write_capture(str(path), list(ports))

    def table(self, name: str) -> pl.DataFrame:
        """A table as the simulator made it, without a copy where polars can."""
        import polars as pl

        return pl.DataFrame(self._results.table(name))

    def manifest(self) -> dict[str, Any]:
        """What the run was and what it cost."""
        return cast("dict[str, Any]", json.loads(self._results.manifest()))
