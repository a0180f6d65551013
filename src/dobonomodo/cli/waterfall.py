"""Renders a waterfall chart as text: from one number to another, one bar per cause."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dobonomodo.runs.attribution import Attribution, Line

WIDTH = 32


def render_waterfall(found: Attribution, line: Line) -> Iterator[tuple[str, str, str]]:
    """Lines of name, number and bar: the number before, each part, the number after."""
    from dobonomodo.runs.attribution import find_bars

    yield "before", f"{line.before:,f}", ""
    for name, part, (start, end) in zip(found.causes, line.parts, find_bars(line), strict=True):
        yield name, f"{part:+,f}" if part else "0", draw_bar(start, end, grows=part > 0) if part else ""
    yield "after", f"{line.after:,f}", ""


def draw_bar(start: float, end: float, *, grows: bool) -> str:
    """A bar between two places of a line that goes from 0 to 1; at least one character long."""
    first = min(round(start * WIDTH), WIDTH - 1)
    last = max(round(end * WIDTH), first + 1)
    return " " * first + ("+" if grows else "-") * (last - first)


def list_differences(found: Attribution) -> list[Line]:
    """The numbers that differ; of rows of several kinds each kind by itself, as in the figures of a run."""
    from dobonomodo.runs.attribution import shown_lines

    return [line for line in shown_lines(found) if line.difference != Decimal(0) or any(line.parts)]


def name_number(line: Line) -> str:
    """How people name a number."""
    return f"{line.table}, {line.column or 'rows'}" + (f": {line.kind}" if line.kind is not None else "")
