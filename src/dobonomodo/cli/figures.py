"""The figures of a run on the terminal: totals compared with other runs, matches of joins, deleted rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from dobonomodo.cli.console import make_console, say, terminal_width
from dobonomodo.cli.table import show_counts
from dobonomodo.model.locale import Locale
from dobonomodo.problems.render import INDENT, fold_words
from dobonomodo.runs.comparison import OF_ALL_ROWS, ComparedOutput, Line, Other, compare_outputs, share

if TYPE_CHECKING:
    from dobonomodo.plan.counts import JoinCounts
    from dobonomodo.runs import RunView

COLUMNS_SHOWN = 12
"""Totals of an output that are shown; the report has all."""
UNKNOWN = "unknown"


def show_figures(run: RunView, others: Sequence[Other], locale: Locale) -> None:
    """The figures of what a run has published."""
    if run.figures is None:
        return
    known = [other for other in others if other.figures is not None]
    published = {output.seq for output in run.outputs.values()}
    figures = replace(run.figures, outputs=tuple(each for each in run.figures.outputs if each.seq in published))
    for output in compare_outputs(figures, known):
        _show_output(output, known, locale)
    lines = [*(_say_join(join, locale) for join in figures.joins), *_say_deleted(run, locale)]
    if lines:
        say("")
    for line in lines:
        first, *more = fold_words(line, terminal_width(sys.stderr), indent=INDENT)
        say("\n".join([first, *(" " * INDENT + each for each in more)]))


def show_figures_by_period(runs: Sequence[RunView], locale: Locale) -> None:
    """The totals of each output, one column for each period."""
    from rich.markup import escape

    shown_by_table: dict[str, dict[str, dict[str, str]]] = {}
    for run in runs:
        published = {output.seq for output in run.outputs.values()}
        for compared in compare_outputs(run.figures, ()) if run.figures is not None else ():
            if compared.output.seq in published:
                rows, *totals = compared.shown
                named = (rows, *(line for line in totals if line.column is not None))
                shown = {line.label: _show(line.now, locale) for line in named}
                shown_by_table.setdefault(compared.output.table, {})[run.period] = shown
    for table, by_period in shown_by_table.items():
        labels = list(dict.fromkeys(label for shown in by_period.values() for label in shown))
        lines = [[label, *(shown.get(label, "") for shown in by_period.values())] for label in labels]
        make_console(sys.stderr, markup=True).print(f"\n[bold]{escape(table)}[/]")
        show_counts([["", *by_period], *lines[: COLUMNS_SHOWN + 1]], right=range(1, len(by_period) + 1))
        if (left := len(labels) - COLUMNS_SHOWN - 1) > 0:
            say(f"and {left} more {'total' if left == 1 else 'totals'}, which the reports show")


def _show_output(compared: ComparedOutput, others: Sequence[Other], locale: Locale) -> None:
    from rich.markup import escape

    make_console(sys.stderr, markup=True).print(f"\n[bold]{escape(compared.output.table)}[/]")
    head = ["", "this run", *(name for other in others for name in (other.name, "change", "%"))]
    rows, totals = ([line for line in compared.shown if (line.column is None) is wanted] for wanted in (True, False))
    shown = [*rows, *totals[:COLUMNS_SHOWN]]
    show_counts([head, *(list(_cells(line, locale)) for line in shown)], right=range(1, len(head)))
    if (left := len(totals) - COLUMNS_SHOWN) > 0:
        what = "total" if compared.by_kind else "column"
        say(f"and {left} more {what if left == 1 else what + 's'}, which the report shows")
    if compared.mixes:
        say(OF_ALL_ROWS)


def _cells(line: Line, locale: Locale) -> Iterator[str]:
    yield line.label
    yield _show(line.now, locale)
    for each in line.compared:
        yield _show(each.before, locale, missing="")
        yield locale.show_change(each.difference) if each.difference is not None else ""
        yield locale.show_change(each.percent) if each.percent is not None else ""


def _show(value: Decimal | None, locale: Locale, *, missing: str = UNKNOWN) -> str:
    return locale.show(value) if value is not None else missing


def _say_join(join: JoinCounts, locale: Locale) -> str:
    by = f"operation {join.seq}" if join.seq else "lookup"
    matched = f"{locale.show(join.matched)} of {locale.show(join.rows)} rows matched"
    found = share(join.matched, join.rows)
    text = f"{by} joins {join.dataset}: {matched}" + (f", {locale.show(found)} %" if found is not None else "")
    if not join.unmatched:
        return text
    keys = [f"{_say_key(each.values)} ({_say_rows(each.rows, locale)})" for each in join.most_frequent]
    return f"{text}; no match for {', '.join(join.key)} = {', '.join(keys)}" if keys else text


def _say_key(values: Sequence[str | None]) -> str:
    return " / ".join("NULL" if value is None else value for value in values)


def _say_deleted(run: RunView, locale: Locale) -> Iterator[str]:
    for each in run.operations:
        if each.deleted:
            yield f"operation {each.seq} {each.name}: {_say_rows(each.deleted, locale)} deleted"


def _say_rows(number: int, locale: Locale) -> str:
    return f"{locale.show(number)} {'row' if number == 1 else 'rows'}"
