"""The pages' templates, and what all of them may call."""

from __future__ import annotations

import re
from importlib.resources import files

import jinja2
from markupsafe import Markup, escape

from narrows import wording
from narrows.claims import scorecard


def template(name: str) -> jinja2.Template:
    """A template of ours; what it is given is escaped, and a name it is not given is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: files("narrows.report").joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"code": code, "controller": wording.controller}
    environment.globals |= {
        "accepted": scorecard.accepted,
        "exceeding": scorecard.exceeding,
        "number": wording.number,
    }
    return environment.get_template(name)


def code(text: str) -> Markup:
    """A sentence of ours, escaped, with what stands between backticks as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - just escaped
