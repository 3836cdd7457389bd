"""No file says what `words.toml` forbids, and Markdown wraps."""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import CHECKOUT, TESTS

RULES = tomllib.loads((TESTS / "words.toml").read_text())


def matching(patterns):
    return {path for pattern in patterns for path in CHECKOUT.glob(pattern) if ".venv" not in path.parts}


MARK = re.compile(r"\s*(?://[/!]?|#|\*|--)?\s*")
"""Before the text of a comment's line."""


def hit_in(pattern, line, following, flags):
    """What a line has of a pattern, or begins and the next line ends."""
    if found := re.search(pattern, line, flags):
        return found.group()
    if not following.strip():
        return None
    joined = f"{line.rstrip()} {following[MARK.match(following).end() :]}"
    across = (one for one in re.finditer(pattern, joined, flags) if one.start() < len(line.rstrip()) < one.end())
    return next((one.group() for one in across), None)


def suspects(text, name):
    """The words that may be there: of most files none, which is found out by whole files and not line by line."""
    lines = text.splitlines()
    pairs = "\n".join(f"{one.rstrip()} {two[MARK.match(two).end() :]}" for one, two in pairwise([*lines, ""]))
    for word in RULES["word"]:
        flags = 0 if word.get("exact") else re.IGNORECASE
        is_of_file = name not in word.get("except", ()) and (word.get("rust", True) or not name.endswith(".rs"))
        if is_of_file and re.search(word["pattern"], pairs, flags):
            yield word, flags


def found_in(text, name, *, markdown):
    """Each offence as `line: what, instead`."""
    listing = ""
    lines = text.splitlines()
    words = list(suspects(text, name))
    for number, (line, following) in enumerate(zip(lines, [*lines[1:], ""], strict=True), 1):
        if markdown and line.lstrip().startswith("```"):
            listing = "" if listing else line.strip()
        for word, flags in words:
            if hit := hit_in(word["pattern"], line, following, flags):
                yield f"{name}:{number}: '{hit}': say {word['instead']}"
        is_free = line.startswith(("|", "#", "`")) or "](" in line or listing in ("```text", "```console")
        if markdown and len(line) > RULES["max_line"] and not is_free:
            yield f"{name}:{number}: {len(line)} characters: wrap at {RULES['max_line']}"


CHECKED = sorted(matching(RULES["files"]) - matching(RULES["without"]) - matching(RULES["pending"]))


def test_every_file_speaks_the_fields_language():
    assert len(CHECKED) > 100
    offences = [
        offence
        for path in CHECKED
        for offence in found_in(path.read_text(), path.relative_to(CHECKOUT).as_posix(), markdown=path.suffix == ".md")
    ]
    assert not offences, "\n" + "\n".join(offences)


@pytest.mark.parametrize(("text", "count"), [
    ("The round trip is short.", 1), ("the round-trip time", 0), ("MOST_BYTES = 1\nmost_bytes = 1", 1), ("x" * 121, 1),
    ("| " + "x" * 121, 0), ("Marking law; sent again", 2), ("```text\n" + "x" * 121 + "\n```\n" + "x" * 121, 1),
    ("```toml\n" + "x" * 121 + "\n```", 1), ("--round-trip 12ms", 0), ("a query\n[query]\ntraffic.query", 2),
    ("/// half a round\n/// trip, or", 1), ("a control law", 0), ("the law of large", 1), ("Little's law", 0),
    ('round-trip = "2ms"', 0), ('"round-trip"', 0), ('"round trips are long"', 1), ("a round\n\ntrip", 0),
])  # fmt: skip
def test_what_is_forbidden_is_found(text, count):
    assert len(list(found_in(text, "a.md", markdown=True))) == count


def test_what_is_pending_is_there():
    assert all(list(CHECKOUT.glob(pattern)) for pattern in (*RULES["pending"], *RULES["without"], *RULES["files"])), (
        Path.cwd()
    )
