"""The page's scripts, inline, and a policy under which nothing else runs and nothing is fetched."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from narrows import atomic
from narrows.errors import BadInput
from narrows.figures import style


@cache
def library() -> Markup:
    """Vega, Vega-Lite and vega-embed in one script, as vl-convert carries them; kept, for it takes a second to make."""
    import vl_convert

    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "narrows"
    kept = folder / f"vega-{style.VEGA_LITE}-{version('vl-convert-python')}.js"
    if (whole := _kept(kept)) is not None:
        return _script(whole)
    made = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=style.VEGA_LITE)
    with contextlib.suppress(BadInput):  # without a cache it is made each time
        atomic.write_text(kept, f"{_seal(made)}\n{made}")
    return _script(made)


def _kept(path: Path) -> str | None:
    """What the file holds behind its digest; `None` where there is no file, or the digest is another's."""
    try:
        seal, _, text = path.read_bytes().decode().partition("\n")
    except (OSError, ValueError):
        return None
    return text if seal == _seal(text) else None


def _seal(text: str) -> str:
    return f"// sha256-{hashlib.sha256(text.encode()).hexdigest()}"


_PARTS: Final = ("layout.js", "data.js", "page.js")
"""Files of our own script: functions first, then what runs."""


def script(name: str) -> Markup:
    """One of our files as a script."""
    return _script(_asset(name))


def behaviour() -> Markup:
    """Our own script: its files within one function, so that their names are no names of the window."""
    parts = "\n".join(_asset(name) for name in _PARTS)
    return _script(f'(function () {{\n"use strict";\n{parts}}})();\n')


def stylesheet() -> Markup:
    """The page's style."""
    return Markup(_asset("page.css"))  # noqa: S704 - our own file


def policy(*scripts: Markup) -> str:
    """The content security policy: these scripts by their hash, inline style, and no other source of anything.

    Files that the page saves are made in the browser, and need no source: the policy rules what is fetched and run.
    """
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def data(specification: dict[str, Any]) -> Markup:
    """A chart as JSON that cannot end its own element."""
    text = json.dumps(specification, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704 - just escaped


def _script(text: str) -> Markup:
    return Markup(text.replace("</script", "<\\/script"))  # noqa: S704 - ours, and cannot end its element


def _digest(script: Markup) -> str:
    return base64.b64encode(hashlib.sha256(str(script).encode()).digest()).decode()


def _asset(name: str) -> str:
    return files("narrows.report").joinpath(name).read_text(encoding="utf-8")
