"""Seeds as a caller may write them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import SupportsIndex

from narrows import native
from narrows.errors import bad_input

Seeds = int | str | Iterable[int]
"""`3`, `"1..10"` with both ends included, `"1,3,5..9"`, `range(1, 11)`, `[1, 5, 9]`."""

MAX_SEEDS = 10_000
"""Seeds of one experiment."""
_MAX_SEED = 2**63 - 1


def chosen_seeds(seeds: Seeds) -> tuple[int, ...]:
    """Seeds from a number, numbers, or a text as an experiment file has it: `3`, `1..10`, `1,3,5..9`.

    Raises `BadInput`.
    """
    help_text = f"give a range such as 1..10 (both included) or different numbers such as 1,5,9; at most {MAX_SEEDS}"
    numbers: Sequence[object]
    if isinstance(seeds, str):
        numbers = native.seeds(seeds) or ()
    elif isinstance(seeds, int) or _whole(seeds) is not None:
        numbers = [seeds]
    elif isinstance(seeds, (bytes, bytearray, memoryview)):  # would be their characters' numbers
        raise bad_input(f"seeds cannot be {seeds!r}", help_text)
    else:
        try:
            numbers = list(itertools.islice(seeds, MAX_SEEDS + 1))
        except TypeError:
            raise bad_input(f"seeds cannot be {seeds!r}", help_text) from None
    found = tuple(it for it in map(_whole, numbers) if it is not None and 0 <= it <= _MAX_SEED)
    if len(found) != len(numbers) or not 0 < len(set(found)) == len(found) <= MAX_SEEDS:
        raise bad_input(f"{seeds if isinstance(seeds, str) else repr(seeds)} names no seeds", help_text)
    return found


def _whole(value: object) -> int | None:
    """A whole number of any type, such as NumPy's; not a truth value."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of several
        return None


def seeds_text(seeds: Sequence[int]) -> str:
    """`1..10` or `1,5,9`, as `chosen_seeds` takes it."""
    if list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}..{seeds[-1]}"
    return ",".join(map(str, seeds))
