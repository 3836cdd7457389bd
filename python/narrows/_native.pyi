"""The native module, by hand: what the Rust side offers and nothing more. `native.py` is the only importer."""

from typing import Protocol

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class BadInput(ValueError):
    """The whole rendered error: file:line:column, a sentence, a help line."""

class Cancelled(Exception):
    """Raised by `Run.join` after `Run.cancel`."""

class Results:
    def table(self, name: str) -> _ArrowStream:
        """One of `tables()`, or of `tables(trace=True)`, whose rows only a traced run has."""

    def write_capture(self, path: str, ports: list[str]) -> None:
        """Packets of a traced run at the ports of these names, as pcapng."""

    def manifest(self) -> str:
        """JSON: version, sources, plan_hash, seed, threads, packet_hops, events, cpu_ns, wall_ns, hold_ns, …."""

class Run:
    def progress(self) -> tuple[int, int, int]:
        """(simulated ns, ns at the end, packet-hops)."""
    def cancel(self) -> None: ...
    def join(self) -> Results:
        """Waits with the interpreter released. Raises `Cancelled`."""

def version() -> str:
    """The package's version and the engine's digest: `0.1.0+28a3734c`."""

def plan_hash(plan_json: str) -> str:
    """Of a plan; it names the folder of its runs."""

def plan_version(plan_json: str, by: str | None = None) -> str:
    """Of a plan's results: engine and components, of this module or, as `narrowsd sources` prints it, `by` another."""

def long_flows(plan_json: str) -> str:
    """JSON list of the flows without a size: workload, source, destination, from_ns, to_ns, stop_ns, base_rtt_ns."""

def network(plan_json: str) -> str:
    """JSON of a plan's network in words: nodes, base_rtts, paths, mtu, routing, profiles, links."""

def base_rtt(plan_json: str, one: str, other: str) -> int:
    """Between two hosts by name, there and back, when nothing queues, ns."""

def build() -> str:
    """The compiler and the profile: `rustc 1.95.0 (…), release`."""

def components() -> str:
    """JSON list: kind, name, about, source, parameters [{name, kind, default, range, about}].

    Controllers have a title and ecn, too.
    """

def tables(*, trace: bool = False) -> str:
    """JSON list: name, row, columns [{name, type, nullable, unit, description}]; types as polars calls them.

    With `trace` those of a traced run beside its results.
    """

def program(name: str, given: list[tuple[str, str]]) -> str:
    """The program of a generator, in GOAL."""

def c_compiler() -> str:
    """The C compiler that compiles controllers."""

def controller_in_file(path: str, name: str | None = None) -> str:
    """A controller in C or Python, and what an experiment may set of it, as JSON."""

def schema() -> str:
    """JSON Schema of experiment files."""

def expand(
    path: str,
    *,
    sets: list[tuple[str, str]] = [],
    quick: bool = False,
    memory_limit_bytes: int | None = None,
) -> str:
    """JSON {name, title, seeds, plans, report, differences, warnings}.

    A plan is {hash, version, arm, axes, declared, plan, draws, controllers, summary} with controllers [{traffic, name,
    ecn, parameters}], a difference {path, values: {arm: value}, declared}, a warning {text, help, schemes, plans},
    where no schemes stand for all, `report` {x, panels, y: [{name, line}]} with `null` for what is not chosen.
    """

def seeds(text: str) -> list[int] | None:
    """Of a text such as `1..10` or `1,3,5..9`, as `run.seeds` takes it; `None` if it names none."""

def start(plan_json: str, seed: int, *, threads: int = 1, substitute: tuple[type, str, str] | None = None) -> Run:
    """On up to so many threads; the results do not depend on them.

    With a `substitute`, a class of `narrows.controller.Controller`, the text of a file and the name of a class in it,
    the class takes that one's place; its calls may take as long as they like, and the run has one thread.
    """

def trace(plan_json: str, seed: int, flows: str | None = None) -> Run:
    """The run again, with a trace of these flows, or of all.

    A JSON list of `workload`, `start_ns`, `source`, `destination`, as `flows` has them, and `earlier`: how many rows
    before it have the same four.
    """

def calibrate() -> float:
    """Nanoseconds per hold: one insertion and one removal in the reference queue of events."""

def calibrate_memory() -> float:
    """Nanoseconds per read along a random chain through 8 MB of memory."""

class Path:
    """What a controller in Python sees of its path: seconds, bytes, packets, bit/s."""

    now: float
    mss: int
    packet: int
    initial_window: int
    line_rate: int
    srtt: float | None
    min_rtt: float | None
    rto: float
    una: int
    nxt: int
    in_flight: int

class Ack:
    """What it sees of an acknowledgement."""

    acked: int
    marked: int
    lost: int
    ece: bool
    rtt: float | None
    rtt_seq: int | None
    delivered: int
    delivery_rate: float | None
    app_limited: bool
    prior_in_flight: int
    max_in_flight: int
    phase: str
    limited_by: str
    may_grow: bool

class Sent:
    """What it sees of a packet that leaves."""

    size: int
    idle: float | None

class Lost:
    """What it sees of a transmission that was found lost."""

    segment: int
    sent_at: float
    in_flight_at_send: int
    lost_since_send: int
    app_limited: bool
    delivered: int

class Hop:
    """What a port wrote into a packet as it began to leave."""

    at: float
    queue: int
    sent: int
    rate: int
