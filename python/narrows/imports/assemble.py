"""From what files say to the text of an experiment: what goes together, and what is assumed for the rest."""

from __future__ import annotations

import contextlib
import json
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from narrows.errors import bad_input, plain
from narrows.imports import cdf, htsim_matrix, mahimahi, networks, schedules, traffic
from narrows.imports.parts import MAX_HOSTS, Flows, Network, Nodes, Options, Requests, Schedule, Sizes
from narrows.imports.quantities import time_text
from narrows.imports.reading import quoted, read
from narrows.imports.recognise import format_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from narrows.imports.parts import Part
    from narrows.imports.reading import Source
    from narrows.imports.traffic import Traffic

_WIDTH: Final = 118
_ONE: Final = "import one of them, and write the other into the experiment"
_P = TypeVar("_P")


@dataclass(frozen=True)
class Document:
    """An experiment that was made from other files."""

    text: str
    files: Mapping[str, str]
    """Files beside it: name and text."""


@dataclass(frozen=True)
class _Given:
    """The files of an import: each with its format, and what it says."""

    sources: tuple[Source, ...]
    formats: tuple[str, ...]
    parts: tuple[Part, ...]

    def all(self, kind: type[_P]) -> list[_P]:
        return [part for part in self.parts if isinstance(part, kind)]

    def only(self, kind: type[_P], what: str) -> _P | None:
        """The part of a kind, if there is one. Raises `BadInput` if there are several."""
        found = self.all(kind)
        if len(found) > 1:
            raise bad_input(f"{len(found)} of the files are {what}", _ONE)
        return found[0] if found else None

    @property
    def names(self) -> str:
        return ", ".join(source.name for source in self.sources)


def document(paths: Sequence[Path], options: Options, stem: str) -> Document:
    """The experiment of some files that belong together; files beside it begin with the stem. Raises `BadInput`."""
    given = _given(paths, options)
    _judge_options(given, options)
    if found := given.all(Schedule):
        if len(found) != len(given.parts) or len(found) > 2:
            raise bad_input(
                f"{given.names} do not belong together",
                "a Mahimahi trace is imported alone, or with a second one of the other direction",
            )
        scheduled = schedules.of_schedules(found, options)
        return _document(given, options, scheduled.network, scheduled.traffic, scheduled.events)
    requests = given.only(Requests, "configurations of clients")
    flows, sizes = given.only(Flows, "lists of flows"), given.only(Sizes, "distributions of sizes")
    network, nodes = given.only(Network, "topologies"), given.only(Nodes, "lists of nodes")
    if requests is not None:
        if flows or network or nodes:
            raise bad_input(
                f"{given.names} do not belong together", "a client's configuration has no nodes of a topology"
            )
        numbers = range(len(requests.servers) + 1)
        if len(numbers) > MAX_HOSTS:
            raise bad_input(f"{requests.source.path} has more than {MAX_HOSTS - 1} servers", "import a part of them")
        network = networks.star(numbers, options, why="The file has no network")
        sizes = sizes or _sizes_of(requests, options)
        own = traffic.of_requests(requests, sizes, network, options, stem)
        return _document(given, options, network, own)
    if flows is not None and sizes is not None:
        raise bad_input("a list of flows and a distribution of sizes both say what is sent", _ONE)
    _judge_numbers(given, network, flows)
    network = network or _network_for(flows, options)
    if flows is not None:
        _judge_count(flows, network)
        own = traffic.of_flows(flows, network, stem)
    else:
        own = traffic.of_sizes(sizes, options, stem) if sizes else traffic.example(network)
    return _document(given, options, network, own, watched=_watched(nodes, network))


def _given(paths: Sequence[Path], options: Options) -> _Given:
    sources = [read(path) for path in paths]
    parts, formats = [], []
    for place, source in enumerate(sources):
        module = format_of(source, [*sources[:place], *sources[place + 1 :]])
        parts.append(module.parse(source, options))
        formats.append(str(module.FORMAT))
    return _Given(tuple(sources), tuple(formats), tuple(parts))


def _judge_options(given: _Given, options: Options) -> None:
    """Refuses options that have no effect on these files."""
    described = any(isinstance(part, Network | Schedule) for part in given.parts)
    effects = {
        "--start-unit": (options.start_unit, htsim_matrix.FORMAT in given.formats, "connection matrices of htsim"),
        "--size-unit": (options.size_unit, bool(given.all(Sizes) or given.all(Requests)), f"a {cdf.FORMAT}"),
        "--load": (options.load, bool(given.all(Sizes) or given.all(Requests)), f"a {cdf.FORMAT}, or a client"),
        "--rate": (options.rate, not described, "files that describe no network"),
        "--bin": (options.bin, bool(given.all(Schedule)), f"a {mahimahi.FORMAT}"),
    }
    for option, (value, has_effect, of) in effects.items():
        if value is not None and not has_effect:
            raise bad_input(f"{option} has no effect on {given.names}", f"it is for {of}: leave it out")


def _sizes_of(requests: Requests, options: Options) -> Sizes:
    """The distribution that a configuration names, relative to its folder or to the one above. Raises `BadInput`."""
    folder = requests.source.path.parent
    for path in (folder / requests.sizes, folder.parent / requests.sizes):
        with contextlib.suppress(OSError):  # no file can have this name
            if path.is_file():
                return cdf.parse(read(path), options)
    raise requests.source.refuse(
        requests.sizes_line,
        f"there is no file {quoted(requests.sizes)}",
        "give its path as another FILE of the command",
    )


def _network_for(flows: Flows | None, options: Options) -> Network:
    """A network for files that have none."""
    if flows is None:
        return networks.star(range(8), options, why="The files have no network")
    count = flows.nodes or 1 + max(max(flow.source, flow.destination) for flow in flows.list)
    if count > MAX_HOSTS:
        raise flows.source.refuse(1, f"{count} hosts", f"a network has at most {MAX_HOSTS} hosts")
    return networks.of_hosts(count, options, why="The files have no network")


def _judge_numbers(given: _Given, network: Network | None, flows: Flows | None) -> None:
    """Numbers of nodes mean the same in files of one simulator only: HPCC numbers switches with the hosts."""
    if network is None or flows is None:
        return
    own = [given.formats[given.parts.index(part)].split()[0] for part in (network, flows)]
    if own[0] != own[1]:
        raise flows.source.refuse(
            1, f"flows of {own[1]}, and a topology of {own[0]}", f"give the topology in {own[1]}'s format, or none"
        )


def _judge_count(flows: Flows, network: Network) -> None:
    """A connection matrix must be of as many nodes as the topology has, as in htsim."""
    if flows.nodes is not None and flows.nodes != len(network.hosts):
        line = next(line for line in flows.source.lines if line.words[0] == "Nodes")
        where = network.source.name if network.source else "the network"
        raise flows.source.refuse(
            line, f"{flows.nodes} nodes, and {where} has {len(network.hosts)} hosts", "give the topology of these flows"
        )


def _watched(nodes: Nodes | None, network: Network) -> tuple[str, ...]:
    """Names of ports or roles whose queues are sampled."""
    if nodes is None:
        return ()
    if not network.ports:
        raise bad_input(
            f"{nodes.source.path} names nodes of a topology that is not given", "give its topology as another FILE"
        )
    known = [number for number in nodes.numbers if number in network.ports]
    if len(known) == len(network.ports):
        switched = any(port.startswith("s") and "->s" in port for ports in network.ports.values() for port in ports)
        return ("host", "edge", *(["fabric"] if switched else []))
    ports = tuple(port for number in known for port in network.ports[number])
    if not ports:
        raise nodes.source.refuse(1, "none of these nodes is in the topology", "correct the numbers")
    return ports


def _document(
    given: _Given,
    options: Options,
    network: Network,
    own: Traffic,
    events: tuple[str, ...] = (),
    watched: tuple[str, ...] = (),
) -> Document:
    end_ps, reason = own.end_ps, own.end_reason
    if (stated := options.end_ps()) is not None:
        end_ps, reason = stated, "--end"
    origin = [f"{source.name}: {found}" for source, found in zip(given.sources, given.formats, strict=True)]
    notes = [*network.notes, *own.notes]
    if watched:
        notes.append(
            "Queues of the listed nodes' ports are sampled. Packets are not logged: `narrows trace` does that."
        )
    has_profile = any(line.startswith("host = ") for line in network.lines)
    lines = [
        "# Written by `narrows import` from",
        *(f"#   {text}" for text in origin),
        "#",
        "# What the files do not say has the defaults of Narrows and is marked `assumed`: change it as you need.",
        *(line for note in notes for line in _comment(note)),
        "",
        f"title = {json.dumps(f'Imported from {given.names}', ensure_ascii=False)}",
        "",
        *([] if network.source else ["# assumed"]),
        *network.lines,
        *([] if has_profile else ['host = { profile = "linux-4.9" }    # assumed']),
        "",
        *own.lines,
        "",
        "[[arm]]                           # assumed: the files name no controller that is here",
        'name = "CUBIC"',
        'cc = "cubic"',
        "",
        "[run]",
        f'end = "{time_text(end_ps)}"    # {reason}',
        'drain = "10s"                     # assumed: time after the end for flows to finish',
        'warmup = "0s"                     # assumed',
        'seeds = "1..10"                   # assumed' if own.random else "seeds = 1",
    ]
    if watched:
        names = ", ".join(f'"{name}"' for name in watched)
        lines += ["", "[sample]", 'queues = "100us"                  # assumed', f"watch = [{names}]"]
    if events:
        lines += ["", *events]
    return Document("\n".join(lines) + "\n", own.files)


def _comment(note: str) -> list[str]:
    return textwrap.wrap(plain(note), _WIDTH, initial_indent="# - ", subsequent_indent="#   ", break_on_hyphens=False)
