"""A list of problems that a notebook can show."""

from __future__ import annotations

from html import escape

from dobonomodo.problems.problem import Problem
from dobonomodo.problems.render import render_full


class Problems(tuple[Problem, ...]):
    """Problems in order of their place; a notebook shows them as the command line does."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(render_full(self))}</pre>" if self else "<p>no problems</p>"
