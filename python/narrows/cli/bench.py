"""`narrows bench`: what a packet-hop costs here; the gate on instructions; ns-3 beside ours."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape

from narrows import marked, wording
from narrows.cli import options
from narrows.cli.exits import CHECK_FAILED, codes
from narrows.cli.output import ERR, OUT, line
from narrows.cli.progress import saying, terminable
from narrows.errors import bad_input

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from narrows.bench.ns3 import Programs
    from narrows.bench.workloads import Workload

REPEAT: Final = 5
"""Runs of each workload unless told otherwise."""


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[WORKLOAD ...]", help="Workloads to measure (default: W1 to W5).")
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Number of runs of each workload (default: 5); results are medians."),
    ] = None,
    no_instructions: Annotated[
        bool, typer.Option("--no-instructions", help="Skip counting instructions under callgrind.")
    ] = False,
    threads: Annotated[
        int, typer.Option(min=1, metavar="N", help="Run each workload on up to N threads, too, and compare wall times.")
    ] = 1,
    peers: Annotated[bool, typer.Option("--peers", help="Run ns-3 on the same work, too.")] = False,
    wait: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Wait so long at most until the load of the last minute is low, after a build for instance.",
        ),
    ] = 0,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the tables to this Markdown page, too.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Count instructions only, and compare them with this file.")
    ] = None,
    update: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Count instructions only, and write them to this file.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Measure what a packet-hop costs on this machine.

    Each run has a process of its own. Times are of a packet-hop: a packet's way out of one port. A hold is one step of
    a heap of 10,000 entries, a read one step along a random chain through 8 MB: such costs travel between machines
    better than nanoseconds, not exactly. `must` is our goal, `aim` what we would like: ✓ met, ✗ missed, ≈ met by some
    runs, ? not judged, as other programs used the processors or runs differ by more than 15 %.
    """
    from narrows.bench import workloads

    with codes(), terminable():
        chosen = workloads.select(names or [])
        measured = {
            "--repeat": repeat is not None, "--no-instructions": no_instructions, "--peers": peers,
            "--markdown": markdown is not None, "--threads": threads > 1, "--wait": wait > 0,
        }  # fmt: skip
        if check:
            _exclude("--check", measured | {"--update": update is not None})
            _check(check, chosen, json=json)
        elif update:
            _exclude("--update", measured | {"--json": json})
            _update(update, chosen)
        else:
            _measure(
                chosen or workloads.USUAL, REPEAT if repeat is None else repeat,
                instructions=not no_instructions, threads=threads, peers=peers, wait=wait, markdown=markdown, json=json,
            )  # fmt: skip


def _exclude(option: str, others: Mapping[str, bool]) -> None:
    """Raises `BadInput` for options of which this one would make nothing."""
    given = [name for name, is_given in others.items() if is_given]
    if given:
        raise bad_input(
            f"{option} only counts instructions: it does not go with {' and '.join(given)}",
            f"leave out {' and '.join(given)}, or {option}",
        )


def _check(file: Path, chosen: Sequence[Workload], *, json: bool) -> None:
    from narrows.bench import gate, tables

    with saying() as say:
        judged = gate.check(file, chosen, say)
    for each in judged if json else ():
        line(
            workload=each.workload,
            instructions_per_packet_hop=each.counted,
            accepted_instructions_per_packet_hop=each.accepted,
            excess=each.excess,
            least_instructions_per_packet_hop=each.least,
            creep=each.creep,
            verdict=each.verdict.name.lower(),
        )
    if not json:
        OUT.print(tables.rich(tables.GATE, tables.gate(judged)))
    if any(each.verdict is gate.Verdict.LOWER for each in judged):
        ERR.print(f"fewer than accepted: `narrows bench --update {escape(str(file))}` lowers the file", soft_wrap=True)
    fails = any(each.verdict is gate.Verdict.FAILS for each in judged)
    creeps = any(each.verdict is gate.Verdict.CREEPS for each in judged)
    if fails:
        ERR.print(
            f"more than {100 * gate.TOLERANCE:.0f} % above what was accepted: find the cause, or --update",
            soft_wrap=True,
        )
    if creeps:
        ERR.print(
            f"more than {100 * gate.CREEP:.0f} % above the least that was ever accepted, in several steps: "
            f"find the cause; who accepts that edits \\[least] in {escape(str(file))}",
            soft_wrap=True,
        )
    if fails or creeps:
        raise typer.Exit(CHECK_FAILED)


def _update(file: Path, chosen: Sequence[Workload]) -> None:
    from narrows.bench import gate

    with saying() as say:
        written = gate.update(file, chosen, say)
    for name, count in written.instructions_per_packet_hop.items():
        OUT.print(f"{name}: {count:.1f} instructions per packet-hop")
    OUT.print(str(file), soft_wrap=True)


def _measure(
    chosen: Sequence[Workload],
    repeat: int,
    *,
    instructions: bool,
    threads: int,
    peers: bool,
    wait: int,
    markdown: Path | None,
    json: bool,
) -> None:
    from narrows.bench import callgrind, machine, measure, ns3, tables

    if peers and not ns3.comparable(chosen):
        raise bad_input("ns-3 has no program for these workloads", "name one of W1 to W5, or none")
    if markdown:
        for mark in ("costs", "peers"):
            marked.filled(markdown, mark)
    programs = ns3.Programs() if peers else None
    with saying() as say:
        load = machine.quiet_load(measure.MAX_LOAD, wait, say)
        samples = measure.repeated(chosen, repeat, say, threads=threads)
    count = instructions and callgrind.present()
    if instructions and not count:
        ERR.print("no instructions are counted: valgrind is not installed (apt-get install valgrind)", soft_wrap=True)
    quickest_read_ns = min(median(each.read_ns for each in taken) for taken, _ in samples)
    records: list[dict[str, Any]] = []
    for workload, (taken, several) in zip(chosen, samples, strict=True):
        with saying() as say:
            say(f"{workload.name}, under callgrind" if count else "")
            counted = callgrind.per_packet_hop(workload) if count else None
        records.append(measure.Measurement(workload, taken, counted, several).record(load, quickest_read_ns))
        if json:
            line(**records[-1])
    remark = _remark(records, repeat)
    parts = [(tables.COSTS, tables.costs(records)), (tables.MORE, tables.more(records))]
    if threads > 1:
        parts.append((tables.THREADS, tables.threads(records)))
    if not json:
        OUT.print(*(tables.rich(*part) for part in parts), f"[dim]{escape(remark)}[/]", sep="\n\n")
    if markdown:
        both = "\n\n".join(tables.markdown(*part) for part in parts)
        marked.replace_part(markdown, "costs", _page(both, remark))
    if programs:
        _peers(programs, chosen, markdown=markdown, json=json)


def _peers(programs: Programs, chosen: Sequence[Workload], *, markdown: Path | None, json: bool) -> None:
    from narrows.bench import ns3, tables

    records = []
    for workload in ns3.comparable(chosen):
        with saying() as say:
            records.append(ns3.compare(programs, workload, say).record())
        if json:
            line(**records[-1])
    remark = (
        f"ns-3 {programs.version}. A hop is a packet-hop; the time is simulated. Medians of {ns3.TURNS} runs in turn; "
        "ns-3's without its set-up, ours with it."
    )
    if not json:
        OUT.print(tables.rich(tables.PEERS, tables.peers(records)), f"[dim]{escape(remark)}[/]", sep="\n")
    if markdown:
        marked.replace_part(markdown, "peers", _page(tables.markdown(tables.PEERS, tables.peers(records)), remark))


def _remark(records: Sequence[dict[str, Any]], repeat: int) -> str:
    from narrows.bench import tables

    hold_ns, read_ns = (median(record[name] for record in records) for name in ("hold_ns", "read_ns"))
    noise = dict.fromkeys(why for record in records for why in record["noise"])
    runs = f"Medians of {repeat} runs in turn" if repeat > 1 else "One run of each workload"
    return (
        f"{tables.goals(records)} "
        f"A hop is a packet-hop. A hold took {wording.number(hold_ns)} ns, a read {wording.number(read_ns)} ns. "
        f"{runs}. Instructions are those of a shorter run, without set-up."
    ) + (f" Times are not judged (?), as this machine was busy: {'; '.join(noise)}." if noise else "")


def _page(table: str, remark: str) -> str:
    from textwrap import fill

    from narrows.bench import machine

    said = f"{remark} {datetime.now(UTC):%Y-%m-%d}. {machine.described()}."
    return f"{table}\n\n{fill(said, 120, break_on_hyphens=False)}"
