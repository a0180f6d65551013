"""`dobo plan`: what a run would read, do and write."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from dobonomodo.cli.console import Json, open_workspace, show, show_json, show_problems, usage_error


def plan(
    project: Annotated[str, typer.Argument(help="The id of the project.")],
    period: Annotated[str, typer.Option("--period", "-p", metavar="P", help="The period, such as 2026-01.")],
    started_at: Annotated[
        str | None, typer.Option("--started-at", metavar="TIME", help="The clock of the run.")
    ] = None,
    draft: Annotated[
        bool, typer.Option("--draft", help="The files as they are, although a version is active.")
    ] = False,
    sql: Annotated[bool, typer.Option("--sql", help="Show the Spark SQL of each operation.")] = False,
    as_json: Json = False,
) -> None:
    """Show what a run would read, do and write. Never reads data, never writes."""
    from dobonomodo.plan.explain import describe_plan, render_plan

    planned = open_workspace().plan(project, period=period, started_at=moment(started_at), draft=draft)
    if as_json:
        described = describe_plan(planned.plan, planned.facts, sql=sql)
        data = {**described, "version": planned.version, "status": planned.status}
        show_json("plan", data, problems=planned.problems)
        return
    show_problems(planned.problems)
    which = f"version {planned.version}, {planned.status}" if planned.version else planned.status
    show(render_plan(planned.plan, planned.facts, which=which, sql=sql))


def moment(text: str | None) -> datetime | None:
    """A time given on the command line."""
    from dobonomodo.formula import parse_moment

    if text is None:
        return None
    found = parse_moment(text)
    if not isinstance(found, datetime):
        usage_error(f"`{text}` is not a time such as 2026-02-03T08:00:00Z")
    return found
