"""Puts the page together: numbers, charts, claims and how it was made, into one file."""

from __future__ import annotations

import hashlib
import platform
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair
import polars as pl

from narrows import atomic, wording
from narrows.claims import catalogue, folders, scorecard
from narrows.cross_backend import unlike_hosts
from narrows.experiment import apart
from narrows.figures import caption, completion, distribution, queues, recovery, requests, slowdown, style, utilisation
from narrows.figures import longlived as over_time
from narrows.figures import programs as ranks
from narrows.figures.palette import colours, dashes
from narrows.measures import longlived
from narrows.measures.named import LANGUAGE
from narrows.measures.settling import sentences
from narrows.measures.stats import ENOUGH_SEEDS
from narrows.report import (
    agreement,
    bundle,
    changes,
    contrast,
    coverage,
    datagrams,
    description,
    headline,
    losses,
    network,
    pauses,
    programs,
    selection,
    slowest,
    sweeps,
    theme,
)
from narrows.report.templates import template
from narrows.runs import validity
from narrows.runs.backends import Backend, program_of
from narrows.runs.experiments import experiment_text
from narrows.runs.freshness import standings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from narrows.claims import Verdict
    from narrows.frames import Frames
    from narrows.results import Results
    from narrows.runs.index import Entry, Member
    from narrows.runs.store import Store

MAX_BYTES = 8_000_000
"""A page larger than this is a defect: it is meant to be mailed."""


MAX_CHARACTERS = 500_000
"""Of an experiment's text that a page holds."""


@dataclass(frozen=True)
class Chart:
    """A chart's place on the page."""

    identifier: str
    label: str
    """What it shows, in a few words."""
    specification: dict[str, Any]
    caption: str = ""
    """What was run (default: the page's, of the configurations that its charts show)."""

    @property
    def description(self) -> str:
        """What it shows, for those who cannot see it."""
        return description.of(self.specification)


def build(
    results: Results,
    store: Store,
    *,
    judged: Sequence[Verdict] | None = None,
    cases: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Writes `reports/report-<experiment>.html` into the store and returns its path.

    `judged` are the paper's claims, if they have been judged already. With `cases` the page is of those whose names
    match it, and has a name of its own. `say` is told what goes on. Raises `BadInput` where none does.
    """
    name = results.entry.identifier if cases is None else f"{results.entry.identifier}-{_plain(cases)}"
    path = store.root / "reports" / f"report-{name}.html"
    say(f"report of {name}: claims")
    verdicts = _verdicts(results, store, judged)
    atomic.write_text(path, render(results if cases is None else results.matching(cases), verdicts, say))
    return path


def text(results: Results, store: Store, say: Callable[[str], None] = lambda _: None) -> str:
    """The page of all configurations as a text, which is written nowhere."""
    say(f"report of {results.entry.identifier}: claims")
    return render(results, _verdicts(results, store, None), say)


def _plain(pattern: str) -> str:
    """A pattern as a part of a file's name; patterns that look the same there are told apart."""
    digest = hashlib.sha256(pattern.encode()).hexdigest()[:6]
    return f"{re.sub('[^0-9A-Za-z.=]+', '-', pattern).strip('-.')[:80]}+{digest}"


def render(
    results: Results,
    verdicts: Sequence[Verdict],
    say: Callable[[str], None] = lambda _: None,
    *,
    partial: str = "",
) -> str:
    """The page's text. `say` is told what goes on.

    `partial` says how many runs are there while others are made. Then none is made again to explain slow flows.
    """
    say(f"report of {results.entry.identifier}: charts")
    frames = results.frames
    counting = set(frames.cases)
    settled = [verdict for verdict in verdicts if verdict.word != "not-run"]
    chosen = selection.of([member for member in results.entry.members if member.case in counting])
    charted = selection.renamed(frames, chosen)
    shown, own = apart(results.entry.differences)
    library, behaviour = bundle.library(), bundle.behaviour()
    with style.assembling():
        swept = sweeps.of(results)
        made = _own(results) + _along(swept, results.entry) + _charts(charted)
    charts = {chart.identifier: chart for chart in made}
    specifications = {name: bundle.data(chart.specification) for name, chart in charts.items()}
    say(f"report of {results.entry.identifier}: tables")
    long = longlived.by_group(frames).rows(named=True) if longlived.present(frames) else []
    beside = agreement.tables(results.entry, frames)
    live = coverage.table(results)
    networks = network.networks(results)
    paused = pauses.table(results, list(chosen.names), networks)
    ran = programs.table(frames)
    changed = changes.table(results)
    built = network.table(results, networks)
    sent = datagrams.table(results)
    slow = None if partial else slowest.of(results, list(chosen.names))
    backends = [part.backend for part in results.entry.parts]
    unlike = unlike_hosts(results.plans(), results.entry.parts) if beside else ""
    return template("page.html.j2").render(
        entry=results.entry,
        partial=partial,
        arms=_arms(results.entry),
        schemes=contrast.schemes(results.entry.members),
        axes=contrast.axes(results.entry),
        left_out=validity.left_out(results.manifests),
        notices=results.notices,
        beside=beside,
        unlike_hosts=unlike,
        live=live,
        clocks=coverage.clocks(backends),
        repeated=coverage.repeated(backends),
        caption=caption.of(results.entry, drawn=len(charted.cases), shared=chosen.shared),
        differences=shown,
        max_columns=contrast.MAX_COLUMNS,
        by_value=contrast.by_value(shown, results.entry.members),
        own_differences=own,
        policy=bundle.policy(library, behaviour),
        stylesheet=bundle.stylesheet(),
        theme=theme.rules(specifications.values(), colours(charted.cases).values()),
        library=library,
        behaviour=behaviour,
        swatches=_swatches(charted.cases),
        cases=frames.cases,
        chosen=chosen,
        names=chosen.names,
        facts=_facts(results),
        offered=dict(results.entry.setting).get("offered load", "–"),
        interval_words=_interval_words(len(frames.seeds)),
        cards=headline.cards(frames),
        headline_columns=headline.columns(frames),
        headline_rows=headline.table(frames),
        settling=sentences(frames),
        charts=charts,
        sweep=swept,
        few_rows=sweeps.FEW_ROWS,
        within_configurations=headline.is_within_configurations(frames),
        contents=_contents(
            frames,
            charts,
            sweep=swept is not None,
            claims=bool(verdicts),
            beside=bool(beside),
            live=bool(live),
            programs=bool(ran),
            pauses=paused is not None,
            changes=changed is not None,
            network=built is not None,
            datagrams=bool(sent),
            slowest=slow is not None,
        ),
        changes=changed,
        network=built,
        datagrams=sent,
        long=long,
        most_flows=over_time.MAX_FLOWS,
        slowest=slow,
        specifications=specifications,
        slowdown_missing=slowdown.missing(charted),
        losses=losses.table(charted),
        most_ports=losses.MAX_PORTS,
        pauses=paused,
        programs=ran,
        most_programs=ranks.MAX_PROGRAMS,
        most_bins=ranks.MAX_BINS,
        verdicts=settled,
        unjudged=[verdict for verdict in verdicts if verdict.word == "not-run"],
        tally={kind: (scorecard.counts(own), len(own)) for kind, own in scorecard.by_kind(settled)},
        claims_title="Our own statements" if any(verdict.claim.ours for verdict in verdicts) else "Claims of the paper",
        stated_by=scorecard.stated_by(verdicts),
        language=LANGUAGE,
        measures=scorecard.used(verdicts),
        made=_made(results),
        sources=_sources(results.entry),
        buckets=queues.BUCKETS,
        ports={"shown": len(queues.ports_that_matter(charted)), "sampled": len(queues.sampled_ports(charted))},
        first_seed=frames.first_seed,
    )


def _contents(
    frames: Frames,
    charts: Mapping[str, Chart],
    *,
    sweep: bool,
    claims: bool,
    beside: bool,
    live: bool,
    programs: bool,
    pauses: bool,
    changes: bool,
    network: bool,
    datagrams: bool,
    slowest: bool,
) -> dict[str, str]:
    """The page's sections: those that have something to show."""
    finished = bool(frames.flows["finished"].any())
    every = (
        ("compared", "What was compared", True),
        ("network", "Network", network),
        ("figure", "Figure", "figure" in charts),
        ("beside", "Simulator and kernel", beside),
        ("sweep", "Along the sweep", sweep),
        ("headline", "Headline numbers", True),
        ("programs", "Programs", programs),
        ("long", "Long-lived flows", longlived.present(frames)),
        ("datagrams", "Datagrams", datagrams),
        ("completion", "Completion times", finished),
        ("distribution", "Distribution", finished),
        ("slowdown", "Slowdown by size", finished),
        ("slowest", "Slowest flows", slowest),
        ("requests", "Requests", "requests" in charts),
        ("queues", "Queues", True),
        ("utilisation", "Utilisation", "utilisation" in charts),
        ("losses", "Drops and marks", True),
        ("pauses", "Pauses", pauses),
        ("changes", "Changes of links", changes),
        ("recovery", "Recovery", "recovery" in charts),
        ("claims", "Claims", claims),
        ("live", "Live runs", live),
        ("made", "How this was made", True),
    )
    return {identifier: title for identifier, title, shown in every if shown}


def _arms(entry: Entry) -> list[tuple[Member, list[str]]]:
    """Every plan once, with its cases: one, or one for each backend."""
    cases: dict[str, list[str]] = {}
    for member in entry.members:
        cases.setdefault(member.plan_case, []).append(member.case)
    first = {own[0] for own in cases.values()}
    return [(member, cases[member.plan_case]) for member in entry.members if member.case in first]


def _swatches(names: Sequence[str]) -> dict[str, str]:
    """The style of a case's swatch, by what charts call it: its colour, broken as its lines are."""
    broken = dashes(names)
    made = {}
    for name, colour in colours(names).items():
        drawn = theme.variable(colour)
        if own := broken[name]:
            on, off = own[0], own[0] + own[1]
            paper = theme.variable(style.PAPER)
            made[name] = f"background:repeating-linear-gradient(90deg,{drawn} 0 {on}px,{paper} {on}px {off}px)"
        else:
            made[name] = f"background:{drawn}"
    return made


def _verdicts(results: Results, store: Store, judged: Sequence[Verdict] | None) -> list[Verdict]:
    """Claims of the paper that this figure has a part in; none where they are judged from other runs of it."""
    entry = results.entry
    figure = folders.figure_at(entry.place)
    if figure is None:
        return []
    standing = standings([figure], store, quick=entry.quick)[figure.label]
    if standing.entry is None or standing.entry.identifier != entry.identifier:
        return []
    paper = catalogue.load(figure.paper)
    if judged is None:
        judged = folders.verdicts(paper, store, quick=entry.quick, read=[results])
    return [verdict for verdict in judged if figure.name in paper.figures_of(verdict.claim)]


def _own(results: Results) -> list[Chart]:
    """The figure of the experiment's folder, where `reproduce` does not draw it: of live runs beside simulated ones."""
    figure = folders.figure_at(results.entry.place) if results.entry.beside else None
    if figure is None or (drawn := figure.plain(results)) is None:
        return []
    return [Chart("figure", results.entry.title, style.finished(drawn))]


def _along(swept: sweeps.Sweep | None, entry: Entry) -> list[Chart]:
    """The charts of a sweep, which are of all configurations."""
    return [
        Chart(chart.identifier, chart.label, style.finished(chart.drawn), caption.of(entry))
        for chart in (swept.charts if swept else [])
    ]


def _charts(frames: Frames) -> list[Chart]:
    made: list[Chart] = []
    if not frames.ranks.is_empty():
        made += [
            Chart("programs", "Execution times of programs", style.finished(ranks.execution(frames))),
            Chart("ranks", "Computing and waiting by rank", style.finished(ranks.by_rank(frames))),
        ]
    if longlived.present(frames):
        for quantity, name, label in (
            (longlived.GOODPUT, "goodput", "Goodput over time"),
            (longlived.WINDOW, "window", "Window over time"),
        ):
            if (drawn := over_time.over_time(frames, quantity)) is not None:
                made.append(Chart(name, label, style.finished(drawn)))
    if frames.flows["finished"].any():
        made += [
            Chart("completion", "Completion times by size class", style.finished(completion.by_class(frames))),
            Chart("distribution", "Distribution of completion times", style.finished(distribution.completion(frames))),
        ]
    if frames.ports["utilisation"].count():
        made.append(Chart("utilisation", "Utilisation by kind of port", style.finished(utilisation.draw(frames))))
    if (recovered := recovery.draw(frames)) is not None:
        made.append(Chart("recovery", "Retransmissions and timeouts", style.finished(recovered)))
    if not frames.requests.is_empty() and frames.requests["completion_ns"].count():
        made.append(Chart("requests", "Completion times of requests", style.finished(requests.draw(frames))))
    if (by_size := slowdown.draw(frames)) is not None:
        made.append(Chart("slowdown", "Slowdown by flow size", style.finished(by_size)))
    if ports := queues.ports_that_matter(frames):
        made.append(Chart("queue-time", "Backlog over time", style.finished(queues.over_time(frames, ports))))
        made.append(
            Chart("queue-share", "Distribution of backlog", style.finished(queues.distributions(frames, ports)))
        )
    return made


def _facts(results: Results) -> list[tuple[str, str]]:
    entry, manifests = results.entry, results.manifests
    schemes, plans = len({member.arm for member in entry.members}), len(_arms(entry))
    hops = sum(int(manifest["packet_hops"]) for manifest in manifests)
    warmups = {member.warmup_ns for member in entry.members}
    long = longlived.present(results.frames)
    return [
        *([("backends", " and ".join(part.backend for part in entry.parts))] if entry.beside else []),
        ("schemes", wording.whole(schemes)),
        *([("configurations", wording.whole(plans))] if plans > schemes else []),
        ("seeds", wording.whole(len(entry.seeds))),
        (caption.lasting(entry), caption.simulated_time(entry)),
        ("of which warm-up", " or ".join(wording.duration(warmup / 1e9) for warmup in sorted(warmups))),
        ("flows counted, all runs", wording.whole(results.counted)),
        *([("long-lived flows, all runs", wording.whole(len(results.frames.long)))] if long else []),
        ("packet-hops, all runs", wording.count(hops)),
    ]


def _sources(entry: Entry) -> list[tuple[str, str]]:
    """Copies of the experiment's file: one, or one for each backend where these ran different files."""
    texts = ((part.location.name, experiment_text(part)) for part in entry.parts)
    kept = ((name, text) for name, text in texts if text is not None and len(text) <= MAX_CHARACTERS)
    return list(dict.fromkeys(kept))


def _holds(manifests: Sequence[Mapping[str, Any]]) -> str:
    """Cost of a packet-hop in holds, the unit in which speed travels between machines: mean over runs."""
    values = [manifest["ns_per_packet_hop"] / manifest["hold_ns"] for manifest in manifests if manifest.get("hold_ns")]
    return wording.number(sum(values) / len(values)) if values else "–"


def _interval_words(seeds: int) -> str:
    if seeds == 1:
        return "One seed only: there are no intervals."
    if seeds < ENOUGH_SEEDS:
        return f"Intervals are the smallest and largest of {seeds} seeds, too few for a confidence interval."
    return (
        f"Intervals are 95 % confidence intervals of the mean, Student's t over {seeds} seeds; if fewer than "
        f"{ENOUGH_SEEDS} seeds have a value, they are the smallest and the largest."
    )


def _versions(manifests: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Of what made the runs, by its name."""
    made: dict[str, set[str]] = {}
    for manifest in manifests:
        made.setdefault(Backend(manifest["backend"]).program, set()).add(program_of(str(manifest["version"])))
    return [(program.lower(), ", ".join(sorted(versions))) for program, versions in made.items()]


def _made(results: Results) -> dict[str, Any]:
    manifests = results.manifests
    cpu = sum(int(manifest["cpu_ns"]) for manifest in manifests)
    simulated = [manifest for manifest in manifests if not Backend(manifest["backend"]).is_live]
    hops = sum(int(manifest["packet_hops"]) for manifest in simulated)
    simulated_cpu = sum(int(manifest["cpu_ns"]) for manifest in simulated)
    return {
        "versions": [
            *_versions(manifests),
            ("python", platform.python_version()),
            ("polars", pl.__version__),
            ("altair", altair.__version__),
            ("vega-lite", style.VEGA_LITE),
        ],
        "cpu": wording.duration(cpu / 1e9),
        "per_hop": wording.number(simulated_cpu / hops) if hops else "",
        "holds": _holds(manifests),
        "command": results.entry.command,
        "seeds": ", ".join(str(seed) for seed in results.entry.seeds),
    }
