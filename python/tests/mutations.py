"""Faults in files, drawn at random: bytes, lines, numbers and words that are others, and values of JSON and TOML."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("NARROWS_FUZZ_EXAMPLES", "25"))
"""Files that a test tries; `make nightly` asks for many."""

searched = settings(
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    derandomize=EXAMPLES <= 100,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
"""The same files in every change's tests, and others each time in long searches."""

searched_slowly = settings(searched, max_examples=max(3, EXAMPLES // 5))
"""Where a file takes a tenth of a second."""

_NUMBERS = [
    "0", "-1", "1", "1e9", "1e400", "nan", "inf", "9" * 18, "9" * 30, "0.0000000001", "1_0", "0x10", "٣", "", "1.5",
    "+1",
]  # fmt: skip
_WORDS = ["", "#", "\x00", "é", "\u2028", "\x1b[2J", "x" * 300, "../..", "{", '"', "\n", "=", "->"]
_VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 10**30, float("inf"), float("nan"), "", "x", "../evil", "\x1b[2J", "\ud800", [], [[]],
    [None], {}, {"a": 1},
]  # fmt: skip
_NUMBER = re.compile(rb"\d+(\.\d+)?")

_FAULT = st.tuples(
    st.sampled_from(["bit", "byte", "gone", "doubled", "swapped", "number", "word", "cut"]),
    st.integers(0, 1 << 30),
    st.integers(0, 1 << 30),
)


def _with(content: bytes, fault: tuple[str, int, int]) -> bytes:
    kind, place, how = fault
    lines = content.splitlines(keepends=True)
    if not content or not lines:
        return content
    at, line = place % len(content), place % len(lines)
    if kind == "bit":
        return content[:at] + bytes([content[at] ^ 1 << how % 8]) + content[at + 1 :]
    if kind == "byte":
        return content[:at] + bytes([how % 256]) + content[at:]
    if kind == "cut":
        return content[:at]
    if kind == "word":
        return content[:at] + _WORDS[how % len(_WORDS)].encode() + content[at:]
    if kind == "number":
        if numbers := list(_NUMBER.finditer(content)):
            found = numbers[place % len(numbers)]
            return content[: found.start()] + _NUMBERS[how % len(_NUMBERS)].encode() + content[found.end() :]
        return content
    if kind == "gone":
        del lines[line]
    elif kind == "doubled":
        lines.insert(line, lines[line])
    else:
        other = how % len(lines)
        lines[line], lines[other] = lines[other], lines[line]
    return b"".join(lines)


def faulty(content: str | bytes) -> st.SearchStrategy[bytes]:
    """The file with one to four faults."""
    whole = content if isinstance(content, bytes) else content.encode()

    def made(faults: list[tuple[str, int, int]]) -> bytes:
        found = whole
        for fault in faults:
            found = _with(found, fault)
        return found

    return st.lists(_FAULT, min_size=1, max_size=4).map(made)


def as_toml(table: dict[str, Any]) -> str:
    """A table of JSON's values as TOML, each on a line; what is none of TOML's is left out."""

    def written(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{json.dumps(key)} = {written(one)}" for key, one in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(written, value)) + "]"
        if value is None:
            return '""'
        return json.dumps(value).replace("Infinity", "inf").replace("NaN", "nan")

    return "".join(f"{json.dumps(key)} = {written(value)}\n" for key, value in table.items())


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place of a value: the container, and the key or number there."""
    found: list[tuple[Any, Any]] = []
    left = [value]
    while left:
        one = left.pop()
        keys = one.keys() if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        found += [(one, key) for key in keys]
        left += [one[key] for key in keys]
    return found


def other_values(value: Any, *, but: str = "") -> st.SearchStrategy[Any]:
    """The value of JSON or TOML with one to three of its parts gone, or of another kind, or extreme; `but` this key."""

    def made(faults: list[tuple[int, int]]) -> Any:
        found = json.loads(json.dumps(value))
        kept = {but: found.pop(but)} if but in found else {}
        for place, how in faults:
            places = _places(found)
            if not places:
                break
            container, key = places[place % len(places)]
            if (chosen := how % (len(_VALUES) + 1)) == len(_VALUES):
                del container[key]
            else:
                container[key] = json.loads(json.dumps(_VALUES[chosen]))
        return {**found, **kept} if kept else found

    return st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 1 << 30)), min_size=1, max_size=3).map(made)
