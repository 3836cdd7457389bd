"""`narrows run FILE|FOLDER`: makes the runs that are not there yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrows import packaged, wording
from narrows.cli import options
from narrows.cli.exits import codes
from narrows.cli.output import ERR, OUT, hint, is_verbose, line
from narrows.cli.progress import follow
from narrows.cli.results import elsewhere, tell_headline, tell_next
from narrows.cli.watch import watched
from narrows.errors import BadInput, bad_input
from narrows.runs import validity
from narrows.runs.backends import Backend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.api import Handle
    from narrows.runs.index import Entry
    from narrows.runs.running import Finished


@dataclass(frozen=True)
class Where:
    """Where runs are made, and where they are kept."""

    out: Path
    jobs: int | None
    on: options.Place
    ray_address: str | None
    threads: int = 1
    backend: Backend = Backend.SIM


def _backend(name: str) -> Backend:
    try:
        return Backend(name)
    except ValueError:
        raise typer.BadParameter(f"there is no {name!r}; choose one of {', '.join(Backend)}") from None


def run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|FOLDER", help="Experiment file, a folder of such files, or a figure such as gemini/fig13."
        ),
    ],
    quick: options.Quick = False,
    seeds: options.Seeds = None,
    sets: options.Sets = None,
    out: options.Out = options.DEFAULT_OUT,
    jobs: options.Jobs = None,
    on: options.On = options.Place.LOCAL,
    ray_address: options.RayAddress = None,
    threads: options.Threads = 1,
    backend: Annotated[
        Backend,
        typer.Option(
            parser=_backend,
            metavar="sim|guest|host",
            help="Run in the simulator, on Linux in a guest, or on this host's Linux.",
        ),
    ] = Backend.SIM,
    watch: Annotated[
        bool, typer.Option("--watch", help="Serve the report to browsers of this machine while runs come in.")
    ] = False,
    port: Annotated[
        str | None, typer.Option(metavar="PORT", help="Port of 127.0.0.1 for --watch (default: one that is free).")
    ] = None,
    json: options.Json = False,
) -> None:
    """Run an experiment and print its results.

    Runs every plan of the file with every seed, but those that are finished. After an interrupt finished runs are kept;
    the same command continues.
    """
    from narrows.cross_backend import unlike_hosts

    with codes():
        settings = options.pairs(sets)
        where = Where(out, jobs, on, ray_address, threads, backend)
        paths = experiment_files(file)
        served = _served(port, watch=watch, files=paths)
        if file.is_dir() and not json:
            hint(f"found {', '.join(str(path) for path in paths)}")
        for path in paths:
            handle = perform(path, quick=quick, seeds=seeds, settings=settings, where=where, json=json, port=served)
            if not json:
                has_flows = _show(handle)
                both = _to_report(handle, out)
                if len(both) > 1 and (remark := unlike_hosts((plan.body for plan in handle.experiment.plans), both)):
                    OUT.print(remark, markup=False, soft_wrap=True)
                tell_next(both, elsewhere(out), flows=has_flows)


def _show(handle: Handle) -> bool:
    """Prints the results, and says whether any flow has finished. What cannot be shown was run all the same."""
    from narrows.report.headline import COMPLETION

    try:
        shown = tell_headline(handle.results())
    except BadInput as error:
        ERR.print(str(error).replace("error:", "warning:", 1), markup=False, soft_wrap=True)
        return False
    return any(value.measure in {quantity.measure for quantity in COMPLETION} for value in shown.values)


def _tell_threads(finished: Sequence[Finished]) -> None:
    """Says how many of the new runs took one thread, where more were allowed."""
    threads = [run.manifest["threads"] for run in finished if not run.skipped]
    if alone := threads.count(1):
        of = wording.plural(len(threads), "new run")
        text = f"{wording.whole(alone)} of {of} made by one thread"
        hint(f"{text}: docs/explanation/engine.md says where more do not pay")


def _served(port: str | None, *, watch: bool, files: Sequence[Path]) -> int | None:
    """The port that the report is served at; `None` without --watch. Raises `BadInput`."""
    if not watch:
        if port is not None:
            raise bad_input("--port is for --watch", "give --watch too, or leave it out")
        return None
    from narrows.report.serving import port_of, probe

    if len(files) > 1:
        raise bad_input(f"there are {len(files)} experiments", "--watch takes one experiment file")
    served = port_of("0" if port is None else port)
    probe(served)
    return served


def _to_report(handle: Handle, out: Path) -> list[Entry]:
    """What to report: the same plans, simulated and by a kernel, where both are there; the simulated first."""
    from narrows.cross_backend import partner
    from narrows.runs.index import Index

    entries = Index(out).entries()
    own = entries[handle.identifier]
    other = partner(own, entries.values())
    return [own] if other is None else sorted([own, other], key=lambda entry: entry.backend.is_live)


def experiment_files(path: Path) -> list[Path]:
    """The file itself, or the `experiment.toml` of a folder and of the folders in it. Raises `BadInput`.

    What is neither may be the label of a figure that comes with the package.
    """
    if not path.is_dir():
        return [path if path.exists() else packaged.experiment(path.as_posix()) or path]
    found = [*path.glob("experiment.toml"), *sorted(path.glob("*/experiment.toml"))]
    if not found:
        raise bad_input(
            f"{path} holds no experiment.toml, nor does a folder in it",
            "give an experiment file, or a folder of such folders",
        )
    return found


def perform(
    path: Path,
    *,
    quick: bool,
    seeds: str | None,
    settings: Sequence[tuple[str, str]],
    where: Where,
    json: bool,
    label: str | None = None,
    port: int | None = None,
) -> Handle:
    """Runs one file to its end and says so. Meanwhile it is called by its label, or its name.

    With a port its report is served there meanwhile.
    """
    from narrows import api
    from narrows.measures.unfinished import late

    handle = api.run(
        path,
        quick=quick,
        seeds=seeds,
        settings=dict(settings),
        out=where.out,
        jobs=where.jobs,
        on=where.on.value,
        ray_address=where.ray_address,
        threads=where.threads,
        backend=where.backend.value,
    )
    for text in handle.experiment.remarks:
        ERR.print(f"warning: {text}", markup=False, soft_wrap=True)
    with watched(handle, port, json=json):
        follow(handle, label or handle.experiment.name)
        finished = handle.finish()
        wall_s = handle.progress().elapsed_s
    if handle.experiment.has_program and (text := late(handle.results().ranks)):
        ERR.print(f"warning: {text}", markup=False, soft_wrap=True)
    if text := _not_settled(handle):
        ERR.print(f"warning: {text}", markup=False, soft_wrap=True)
    if json:
        _print_lines(handle, finished, wall_s)
    else:
        OUT.print(summary(handle, finished, where.out, wall_s), markup=False, soft_wrap=True)
        if where.threads > 1:
            _tell_threads(finished)
    return handle


def _not_settled(handle: Handle) -> str:
    """A sentence where the unfinished work of runs still grew; nothing where results cannot be shown."""
    from narrows.measures.settling import growing

    try:
        return growing(handle.results().frames)
    except BadInput:  # said where results are shown
        return ""


def summary(handle: Handle, finished: Sequence[Finished], out: Path, wall_s: float) -> str:
    """What was done, how long it took, and with --verbose what its runs cost, whenever they were made."""
    made = sum(not item.skipped for item in finished)
    runs = f"{wording.whole(made)} new, {wording.whole(len(finished) - made)} reused"
    lines = [f"{handle.identifier}: {runs}; results in {out}; took {wording.duration(wall_s)}"]
    costs = cost(finished)
    if costs is not None and is_verbose():
        per_hop, holds, hops = costs
        lines.append(
            f"{wording.number(hops)} packet-hops, {wording.number(per_hop)} ns of processor time each"
            + (
                f" ({wording.number(holds)} relative to this machine's event-heap benchmark)"
                if holds is not None
                else ""
            )
        )
    if left_out := validity.left_out([item.manifest for item in finished]):
        lines.append(f"{left_out}; reports leave them out")
    return "\n".join(lines)


def cost(finished: Sequence[Finished]) -> tuple[float, float | None, int] | None:
    """(CPU ns per packet-hop, holds per packet-hop, packet-hops) over runs; a hold is the engine's unit of work."""
    hops = sum(int(item.manifest["packet_hops"]) for item in finished)
    if not hops:
        return None
    per_hop = sum(int(item.manifest["cpu_ns"]) for item in finished) / hops
    holds = [float(item.manifest["hold_ns"]) for item in finished if item.manifest.get("hold_ns")]
    return per_hop, per_hop * len(holds) / sum(holds) if holds else None, hops


def _print_lines(handle: Handle, finished: Sequence[Finished], wall_s: float) -> None:
    for item in finished:
        plan = item.job.plan
        labels = {"arm": plan.arm, "axes": dict(plan.axes)}
        manifest = {key: value for key, value in item.manifest.items() if key != "plan"}
        labels["backend"] = item.job.backend.value
        line(event="run", plan=plan.hash, seed=item.job.seed, **labels, skipped=item.skipped, manifest=manifest)
    per_hop, holds, hops = cost(finished) or (None, None, 0)
    line(
        event="finished",
        identifier=handle.identifier,
        runs=len(finished),
        skipped=sum(item.skipped for item in finished),
        invalid=sum(validity.why_not(item.manifest) is not None for item in finished),
        wall_s=round(wall_s, 3),
        packet_hops=hops,
        cpu_ns_per_packet_hop=per_hop,
        holds_per_packet_hop=holds,
    )
