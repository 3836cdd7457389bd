"""`narrows reproduce`: a paper's runs, figures, scorecard and reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from narrows import wording
from narrows.cli import completion, options, pages
from narrows.cli.exits import CHECK_FAILED, codes
from narrows.cli.fidelity import compare, show_list
from narrows.cli.output import OUT, hint, line, tell, tell_page
from narrows.cli.progress import saying
from narrows.cli.run import Where, perform

if TYPE_CHECKING:
    from narrows.claims import Verdict
    from narrows.claims.catalogue import Paper
    from narrows.claims.folders import Figure
    from narrows.cli.pages import Pages
    from narrows.fidelity import Comparison
    from narrows.results import Results
    from narrows.runs.store import Store


def reproduce(
    wanted: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAPER|PAPER/FIGURE|CLAIM|linux ...]",
            help="What to reproduce (default: list papers, figures and claims).",
            autocompletion=completion.figures,
        ),
    ] = None,
    quick: options.Quick = False,
    out: options.Out = options.DEFAULT_OUT,
    jobs: options.Jobs = None,
    on: options.On = options.Place.LOCAL,
    ray_address: options.RayAddress = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with code 1 if a claim fails or a scenario is not inside its tolerance."),
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="List the claims that were not judged, too, and everything measured.")
    ] = False,
    gallery: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Copy all figures to this folder, with an index page.")
    ] = None,
    write: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Write tables of claims, of figures' results and of `linux` between the marks of this page, or of the "
            "pages in this folder.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Reproduce figures of papers and judge their claims.

    Runs what is not there yet, draws each figure, judges what the paper states from these runs, and writes a scorecard
    and a report. `linux` runs its scenarios in the simulator and on Linux in a guest, and says how far they agree.
    Interrupting keeps what is finished. Without arguments it lists papers, figures, claims and scenarios.
    """
    from narrows import api
    from narrows.claims import folders
    from narrows.fidelity import catalogue
    from narrows.runs.store import Store

    with codes():
        store = Store(out)
        comparison = catalogue.find()
        if not wanted:
            _list(store, comparison, everything=everything, json=json)
            return
        scenarios, others = catalogue.asked_of(comparison, wanted)
        selection = folders.select(others, also=comparison.names if comparison else ())
        where = Where(out, jobs, on, ray_address)
        places = pages.find(write or (), selection, scenarios=bool(scenarios), quick=quick)
        apart = False
        if comparison is not None and scenarios:
            apart = not compare(
                comparison, scenarios, store, quick=quick, where=where, write=places.scenarios, json=json
            )
        made: dict[Figure, str] = {}
        for number, figure in enumerate(selection.figures, 1):
            label = f"{figure.label} ({number} of {len(selection.figures)})"
            made[figure] = _figure(figure, label, quick=quick, where=where, json=json)
        from narrows.claims import scorecard
        from narrows.report import written

        failed = False
        for paper in selection.papers:
            # Of one paper at a time: the tables of all figures are gigabytes.
            own = {figure: identifier for figure, identifier in made.items() if figure.paper == paper.folder}
            results = {figure: api.load(identifier, out=out) for figure, identifier in own.items()}
            with saying() as say:
                say(f"judging the claims of {paper.name}")
                verdicts = folders.verdicts(paper, store, quick=quick, read=results.values())
                path = _write(paper, verdicts, store, quick=quick, places=places)
            shown = [verdict for verdict in verdicts if selection.includes(paper, verdict.claim)]
            asked = f"{selection.of(paper)}{' (quick)' if quick else ''}"
            _show(paper, shown, asked, everything=everything or bool(selection.claims), json=json)
            if len(shown) < len(verdicts) and not json:
                all_of_them = "; ".join(scorecard.told(verdicts))
                OUT.print(f"The scorecard has all {scorecard.things(verdicts)}: {all_of_them}", soft_wrap=True)
            refutable = scorecard.counts([verdict for verdict in shown if verdict.claim.refutable])
            counts = scorecard.counts(shown)
            tell(path, json=json, event="scorecard", paper=paper.name, refutable=refutable, **counts)
            failed |= any(verdict.word == "fails" for verdict in shown)
            for figure in own:
                for page in places.of_results(figure):
                    written.write(page, figure.label, results[figure])
                _report(figure, results.pop(figure), store, verdicts, json=json)
        if gallery is not None:
            from narrows.report import gallery as pictures

            tell(pictures.write(gallery, store, quick=quick), json=json, event="gallery")
    if (failed or apart) and strict:
        raise typer.Exit(CHECK_FAILED)


def _list(store: Store, comparison: Comparison | None, *, everything: bool, json: bool) -> None:
    """Papers with their figures, what of these has been run, and how many claims there are; with `--all` the claims.

    Then the scenarios that compare the simulator with a kernel.
    """
    from narrows.claims import folders
    from narrows.runs.freshness import standings
    from narrows.runs.freshness import title as title_of

    papers = folders.papers()
    for paper in papers:
        thing = "statement" if paper.title else "claim"
        if not json:
            number = wording.plural(len(paper.claims), thing)
            apart = f"{paper.title}: {number} of our own" if paper.title else number
            OUT.print(f"[bold]{escape(paper.name)}[/]  {escape(apart)}")
        own = folders.figures(paper)
        full, quick = (standings(own, store, quick=quick) for quick in (False, True))
        for figure in own:
            title = title_of(figure)
            claims = [claim.identifier for claim in paper.claims if figure.name in paper.figures_of(claim)]
            states = {"full": full[figure.label], "quick": quick[figure.label]}
            modes = [mode for mode, standing in states.items() if standing.counts]
            stale = {mode: standing.reason for mode, standing in states.items() if standing.entry and standing.reason}
            if json:
                known = {"paper": paper.name, "figure": figure.label, "title": title, "claims": claims}
                line(event="figure", **known, run=modes, stale=stale)
                continue
            state = f"run: {' and '.join(modes)}" if modes else "not run"
            why = "".join(f"; {mode}: {reason}" for mode, reason in stale.items())
            about = escape(f"{wording.plural(len(claims), thing)}, {state}{why}")
            OUT.print(f"  {figure.label:<20} {escape(title)}  [dim]{about}[/]", soft_wrap=True)
        for claim in paper.claims if json or everything else ():
            if json:
                told = {"id": claim.identifier, "item": claim.item, "metric": claim.metric}
                line(event="claim", paper=paper.name, ours=claim.ours, **told)
                continue
            text = f"{claim.identifier}  {claim.item}: {claim.metric}"
            OUT.print(f"  [dim]{escape(text)}[/]", soft_wrap=True)
    if comparison is not None:
        show_list(comparison, store, json=json)
    if not json:
        stated = [(paper, claim) for paper in papers if not paper.title for claim in paper.claims]
        several = sum(len(paper.figures_of(claim)) > 1 for paper, claim in stated)
        alone = [claim.identifier in paper.bindings for paper, claim in stated if not paper.figures_of(claim)]
        if several or alone:
            unmeasured = alone.count(False)
            OUT.print(
                f"{wording.plural(several, 'claim')} about several figures counted with each; "
                f"{wording.plural(sum(alone), 'claim')} computed without a run, counted with none"
                + (f"; {wording.plural(unmeasured, 'claim')} not measured yet" if unmeasured else ""),
                soft_wrap=True,
            )
        if everything:
            hint("`narrows show measure` and each scorecard's end explain the measures that claims are made of")
        hint("next: narrows reproduce PAPER, PAPER/FIGURE or CLAIM, with --quick for short runs")


def _figure(figure: Figure, label: str, *, quick: bool, where: Where, json: bool) -> str:
    """Runs and draws a figure; what its results are called."""
    from narrows import api
    from narrows.figures.files import save

    handle = perform(figure.experiment, quick=quick, seeds=None, settings=(), where=where, json=json, label=label)
    identifier = handle.identifier
    with saying() as say:
        say(f"drawing {label}")
        drawn = figure.draw(api.load(identifier, out=where.out))
        paths = save(drawn, where.out / "figures", figure.picture(quick=quick))
    for path in paths:
        tell(path, json=json, event="figure", figure=figure.label)
    return identifier


def _report(figure: Figure, results: Results, store: Store, judged: list[Verdict], *, json: bool) -> None:
    from narrows.report.page import build

    with saying() as say:
        page = build(results, store, judged=judged, say=say)
    tell_page(page, json=json, figure=figure.label)


def _write(paper: Paper, verdicts: list[Verdict], store: Store, *, quick: bool, places: Pages) -> Path:
    """The scorecard of the whole paper as JSON, Markdown and one page; the page's path.

    The table of claims is also written in the pages with a place for it.
    """
    from json import dumps

    from narrows import atomic, marked
    from narrows.claims import folders, scorecard
    from narrows.claims import page as table_of
    from narrows.report import claims
    from narrows.runs.freshness import standings

    base = store.root / "reports" / f"claims-{paper.name}{'-quick' if quick else ''}"
    there = standings(folders.figures(paper), store, quick=quick)
    card = scorecard.card(paper, verdicts, there, quick=quick)
    atomic.write_text(base.with_suffix(".json"), dumps(card, indent=1) + "\n")
    atomic.write_text(base.with_suffix(".md"), scorecard.markdown(paper, verdicts, there, quick=quick))
    atomic.write_text(base.with_suffix(".html"), claims.render(paper, verdicts, there, store, quick=quick))
    for page in places.of_claims(paper):
        marked.replace_part(page, table_of.mark(paper), table_of.table(paper, verdicts, there, page))
    return base.with_suffix(".html")


def _show(paper: Paper, verdicts: list[Verdict], asked: str, *, everything: bool, json: bool) -> None:
    from narrows.claims import scorecard

    if json:
        for verdict in verdicts:
            line(event="claim", paper=paper.name, **scorecard.record(verdict))
        return
    OUT.print(scorecard.table(verdicts, everything=everything))
    listed = "" if everything else f" At most {scorecard.MAX_LISTED} of each are listed, with --all every one."
    OUT.print(f"[dim]Marks: {escape(scorecard.MARKS)}{listed}[/]")
    OUT.print(f"[dim]{escape(scorecard.RULES)} The scorecard's end explains the measures.[/]")
    if paper.title:
        OUT.print(f"[bold]{escape(paper.title)}[/]: no paper states this, and it counts with none of them.")
    OUT.print(f"[bold]{escape(asked)}[/], {scorecard.things(verdicts)}:", soft_wrap=True)
    for line_of_kind in scorecard.told(verdicts):
        OUT.print(f"  {line_of_kind}", soft_wrap=True)
