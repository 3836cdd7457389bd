"""Networks for files that describe none: the defaults of the topologies here, written out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from narrows.imports.htsim_topology import fat_tree_hosts
from narrows.imports.parts import Network
from narrows.imports.quantities import rate_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.imports.parts import Options

STAR_BPS: Final = 10**9
_FAT_TREE_BPS: Final = 10**10
_MAX_K: Final = 24
_POOL: Final = 'pool = { size = "4MB", alpha = 0.21 }'


def of_hosts(count: int, options: Options, *, why: str) -> Network:
    """A star; or a fat tree, which is htsim's own default, if it has exactly so many hosts."""
    k = next((k for k in range(4, _MAX_K + 1, 2) if k**3 // 4 == count), None)
    return star(range(count), options, why=why) if k is None else _fat_tree(k, options, why=why)


def star(numbers: Sequence[int], options: Options, *, why: str) -> Network:
    """Hosts on one switch; the file's number of each is given, in order."""
    rate = options.rate_bps()
    lines = (
        "[topology.star]",
        f"hosts = {len(numbers)}",
        f'fabric = {{ rate = "{rate_text(rate or STAR_BPS)}", delay = "5us", {_POOL} }}',
        'host = { profile = "linux-4.9", stack-delay = { tx = "20us", rx = "20us" } }',
    )
    note = f"{why}: a star with its defaults, hosts in the file's order" + _by_option(rate)
    return Network(None, lines, {number: f"h{place}" for place, number in enumerate(numbers, 1)}, (note,))


def _fat_tree(k: int, options: Options, *, why: str) -> Network:
    rate = options.rate_bps()
    lines = (
        "[topology.fat-tree]",
        f"k = {k}",
        f'fabric = {{ rate = "{rate_text(rate or _FAT_TREE_BPS)}", delay = "1us", limit = "100pkt" }}',
    )
    note = f"{why}: a fat tree of {k}-port switches, which has {k**3 // 4} hosts, with its defaults" + _by_option(rate)
    return Network(None, lines, dict(enumerate(fat_tree_hosts(k))), (note,))


def _by_option(rate: int | None) -> str:
    return "." if rate is None else "; the rate is that of --rate."
