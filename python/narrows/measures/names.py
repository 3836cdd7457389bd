"""Names of the measures, read from the sources that register them.

Importing these takes half a second, and a shell that completes a name does not wait for so long.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def names() -> list[str]:
    """Every measure, by file and in the order of each."""
    sources = (path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py")))
    return [name for source in sources for name in _registered(ast.parse(source))]


def _registered(module: ast.Module) -> Iterator[str]:
    """Functions under `@measure(…)`, and keys of what `measures(…)` is given."""
    tables: dict[str, ast.expr | None] = {}
    for statement in module.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                tables[name] = value
            case ast.FunctionDef(name=name, decorator_list=[ast.Call(func=ast.Name(id="measure"))]):
                yield name
            case ast.Expr(value=ast.Call(func=ast.Name(id="measures"), args=[_, _, given])):
                table = tables.get(given.id) if isinstance(given, ast.Name) else given
                keys = table.keys if isinstance(table, ast.Dict) else []
                yield from (str(key.value) for key in keys if isinstance(key, ast.Constant))
