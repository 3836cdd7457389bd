"""Tables that look like a simulator's: plausible, and the same for the same arm and seed."""

import itertools
import math
import random

import polars as pl

from narrows import columns

# arm: small-flow queueing in ms, large-flow rate in Mbit/s, DCN drops, WAN drops, WAN queue in KB, marks
_CHARACTER = {
    "cubic": (34.0, 190, 78, 10, 9000, 0),
    "cubic-ecn": (27.0, 200, 24, 6, 7000, 900),
    "dctcp": (22.0, 210, 19, 1, 6000, 1500),
    "vegas": (4.0, 90, 4, 0, 300, 0),
    "vegas-10": (12.0, 150, 30, 0, 1500, 0),
    "bbr": (60.0, 180, 400, 30, 4000, 0),
    "gemini": (9.0, 230, 6, 0, 1200, 2100),
}
_CDF = ((0, 0.0), (10_000, 0.15), (20_000, 0.2), (30_000, 0.3), (50_000, 0.4), (80_000, 0.53), (200_000, 0.6),
        (1_000_000, 0.7), (2_000_000, 0.8), (5_000_000, 0.9), (10_000_000, 0.97), (30_000_000, 1.0))  # fmt: skip
_BASE_NS = 10_000_000
_RATE = 1_000_000_000


def tables(arm, seed, end_s):
    """The tables of a run."""
    character = _CHARACTER.get(arm, _CHARACTER["cubic"])
    names = random.Random(f"{seed}/flows")  # the same flows for every arm, as named streams would have it
    noise = random.Random(f"{arm}/{seed}")
    return {
        "flows": _flows(arm, character, names, noise, end_s),
        "requests": pl.DataFrame(schema=columns.tables()["requests"].schema),
        "ports": _ports(character, noise, end_s),
        "series": _series(character, noise, end_s),
        "bridges": pl.DataFrame(schema=columns.tables()["bridges"].schema),
    }


def hosts(site):
    return [f"{site}{rack}-{number}" for rack in (1, 2) for number in (1, 2, 3, 4)]


def links():
    """(name, node, role) of every port."""
    found = []
    for site in "ab":
        for host in hosts(site):
            tor = f"tor-{host[:2]}"
            found += [(f"{host}->{tor}", host, "host"), (f"{tor}->{host}", tor, "edge")]
        for rack in (1, 2):
            tor, border = f"tor-{site}{rack}", f"border-{site}"
            found += [(f"{tor}->{border}", tor, "fabric"), (f"{border}->{tor}", border, "fabric")]
    return [*found, ("border-a->border-b", "border-a", "wan"), ("border-b->border-a", "border-b", "wan")]


def _size(draw):
    for (low, below), (high, up_to) in itertools.pairwise(_CDF):
        if draw <= up_to:
            return max(1, round(low + (high - low) * (draw - below) / (up_to - below)))
    return _CDF[-1][0]


def _flows(arm, character, names, noise, end_s):
    queueing, rate = character[:2]
    rows, now, number = [], 0.0, 0
    while (now := now + names.expovariate(123.8)) < end_s:
        there, back = ("a", "b") if names.random() < 0.5 else ("b", "a")
        size = _size(names.random())
        ideal = _BASE_NS + size * 8
        wait = noise.lognormvariate(0, 0.8) * queueing * 1e6
        stall = 200e6 if noise.random() < character[2] / 20_000 else 0
        fct = int(ideal + wait + stall + size * 8e3 / rate * noise.uniform(0.6, 1.6))
        finished = now + fct / 1e9 < 4 * end_s  # a drain that is long enough, as the experiments have
        rows.append((
            number, number % 320, None, names.choice(hosts(there)), names.choice(hosts(back)), "inter", "web", arm,
            size,
            int(now * 1e9), fct if finished else None, ideal, max(1.0, fct / ideal) if finished else None,
            int(_BASE_NS + wait / 2), int(size * character[2] * noise.random() / 1e4), int(bool(stall)),
            int(size * character[5] / 1e4), int(size * character[2] / 2e4), 0, size, finished,
        ))  # fmt: skip
        number += 1
    return _filled(
        rows, columns.tables()["flows"].schema, ("handshake_ns", "syn_retransmits", "rto_wait_ns", "first_byte_ns")
    )


def _ports(character, noise, end_s):
    rows = []
    for index, (name, node, role) in enumerate(links()):
        use = {"host": 0.115, "edge": 0.115, "fabric": 0.45, "wan": 0.9}[role] * noise.gauss(1, 0.01)
        packets = int(use * _RATE * end_s / 8 / 1538)
        drops = {"host": 0, "edge": 0.1 * character[2], "fabric": 2.4 * character[2], "wan": character[3]}[role]
        dropped = int(packets * drops * 1e-5 * noise.uniform(0.7, 1.3))
        queue = {"host": 2e4, "edge": 1e4, "fabric": 6e4 + 200 * character[2], "wan": character[4] * 1e3}[role]
        marked = int(packets * character[5] * 1e-5) if role == "fabric" else 0
        pool = dropped if role in ("edge", "fabric") else 0
        rows.append((
            index, name, node, role, packets, packets * 1500, dropped, dropped - pool, pool, 0, 0, marked, 0, queue,
            int(queue * 0.8), int(queue * 2.2), int(queue * 2.5), _RATE, use, int(end_s * 1e9),
        ))  # fmt: skip
    return _filled(rows, columns.tables()["ports"].schema, ())


def _series(character, noise, end_s):
    rows = []
    for name, _, role in links():
        if role not in ("fabric", "wan"):
            continue
        mean = character[4] * 1e3 if role == "wan" else 6e4 + 200 * character[2]
        level, phase = 0.0, noise.random()
        for step in range(int(end_s * 100)):
            target = mean * (1 + 0.6 * math.sin(step / 90 + 7 * phase)) * min(1.0, step / 60)
            level += 0.2 * (target - level) + noise.gauss(0, mean / 12)
            level = max(0.0, level)
            rows.append((step * 10_000_000, name, "queue_bytes", round(level)))
    return pl.DataFrame(rows, schema=columns.tables()["series"].schema, orient="row", strict=False)


def _filled(rows, schema, without):
    """A table of the rows, which lack these columns."""
    made = pl.DataFrame(rows, schema={name: kind for name, kind in schema.items() if name not in without}, orient="row")
    return made.with_columns(pl.lit(None, dtype=schema[name]).alias(name) for name in without).select(list(schema))
