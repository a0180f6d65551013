"""What changed between two runs and why, as one page: tables, and a waterfall for every number that differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from dobonomodo.runs.attribution import Attribution, Line, find_bars, shown_lines
from dobonomodo.runs.difference import RunDifference
from dobonomodo.runs.report.html import render

WIDTH = 1000


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of a waterfall."""

    cause: str
    part: Decimal
    x: int
    width: int


@dataclass(frozen=True, slots=True)
class Waterfall:
    """A number that differs."""

    table: str
    column: str | None
    kind: str | None
    before: Decimal
    after: Decimal
    difference: Decimal
    bars: tuple[Bar, ...]


def render_difference(found: RunDifference, *, title: str, made_at: datetime) -> str:
    """The page."""
    return render(
        "difference.html",
        found=found,
        attribution=found.attribution,
        lines=find_waterfalls(found),
        title=title,
        made_at=made_at,
    )


def find_waterfalls(found: RunDifference | None) -> list[Waterfall]:
    """A waterfall for each number whose difference was attributed."""
    return list(_waterfalls(found.attribution)) if found is not None and found.attribution is not None else []


def _waterfalls(found: Attribution) -> Iterator[Waterfall]:
    for line in shown_lines(found):
        if line.difference or any(line.parts):
            bars = tuple(_bars(found, line))
            yield Waterfall(line.table, line.column, line.kind, line.before, line.after, line.difference, bars)


def _bars(found: Attribution, line: Line) -> Iterator[Bar]:
    for cause, part, (start, end) in zip(found.causes, line.parts, find_bars(line), strict=True):
        if part:
            x = min(round(start * WIDTH), WIDTH - 4)
            yield Bar(cause, part, x, max(round(end * WIDTH) - x, 4))
