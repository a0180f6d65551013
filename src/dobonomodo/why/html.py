"""Explanations as HTML: a self-contained page, or the part of it that a notebook shows."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from dobonomodo.plan.system import is_system
from dobonomodo.why.explanation import Explanation, Summary, show, with_relevant

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(explanation: Explanation) -> str:
    """A whole page."""
    return _environment().get_template("page.html").render(explanation=explanation)


def render_part(explanation: Explanation) -> str:
    """The explanation alone."""
    return _environment().get_template("part.html").render(explanation=explanation)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dobonomodo.why"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"show": show, "number": "{:,}".format}
    environment.tests |= {"system": is_system, "summary": lambda value: isinstance(value, Summary)}
    environment.globals |= {"with_relevant": with_relevant}
    return environment
