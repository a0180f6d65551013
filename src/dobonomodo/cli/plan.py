"""`dobo plan`: what a run would read, do and write."""

from __future__ import annotations

import sys
import textwrap
from datetime import date, datetime
from typing import Annotated

import typer

from dobonomodo.cli.arguments import ProjectId, Set, periods, read_set
from dobonomodo.cli.console import Json, open_workspace, show, show_json, show_problems, terminal_width, usage_error


def plan(
    project: ProjectId,
    period: Annotated[
        str,
        typer.Option(
            "--period", "-p", metavar="P", help="The period, such as 2026-01, or `latest`.", autocompletion=periods
        ),
    ],
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="D", help="The day on which bitemporal rows must be valid.")
    ] = None,
    started_at: Annotated[
        str | None, typer.Option("--started-at", metavar="TIME", help="The clock of the run.")
    ] = None,
    draft: Annotated[bool, typer.Option("--draft", help="Plan the files, even if a version is active.")] = False,
    parameters: Set = None,
    sql: Annotated[bool, typer.Option("--sql", help="Show the Spark SQL of each operation.")] = False,
    as_json: Json = False,
) -> None:
    """Show what a run would read, do and write. Never reads data, never writes."""
    from dobonomodo.plan.explain import render_plan
    from dobonomodo.workspace.planning import DescribedPlan

    named, workspace = day(as_of), open_workspace()
    chosen = workspace.find_periods([period], started_at=moment(started_at))
    if len(chosen) > 1:
        usage_error(f"a plan is for one period; `dobo run --dry-run --period {period}` shows those of all")
    planned = workspace.plan(
        project,
        period=chosen[0].identifier,
        as_of=named,
        started_at=moment(started_at),
        draft=draft,
        parameters=read_set(parameters),
    )
    if as_json:
        show_json("plan", DescribedPlan(planned, sql), problems=planned.problems)
        return
    show_problems(planned.problems)
    which = f"version {planned.version}, {planned.status}" if planned.version else planned.status
    text = render_plan(planned.plan, planned.facts, as_of=named, which=which, together=planned.together, sql=sql)
    show(_fold(text))


def _fold(text: str) -> str:
    """Wrap lines to the width of the terminal, with indentation; unchanged if the output is not a terminal."""
    width = terminal_width(sys.stdout)
    if width is None:
        return text
    return "\n".join(folded for line in text.split("\n") for folded in _fold_line(line, width))


def _fold_line(line: str, width: int) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    if len(line) <= width or len(indent) > width // 2:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)


def moment(text: str | None) -> datetime | None:
    """A time given on the command line."""
    from dobonomodo.workspace.arguments import read_moment

    try:
        return read_moment("--started-at", text)
    except ValueError:
        usage_error(f"`{text}` is not a time with its zone, such as 2026-02-03T08:00:00Z or 2026-02-03T09:00:00+01:00")


def day(text: str | None) -> date | None:
    """A day given on the command line."""
    from dobonomodo.workspace.arguments import read_day

    try:
        return read_day("--as-of", text)
    except ValueError:
        usage_error(f"`{text}` is not a day such as 2026-01-31")
