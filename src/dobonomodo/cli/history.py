"""`dobo history`: who did what, when and why."""

from __future__ import annotations

from typing import Annotated

import typer

from dobonomodo.cli.arguments import pasts
from dobonomodo.cli.console import Exit, Json, open_workspace, say, show_json, stop
from dobonomodo.cli.decisions import render_history
from dobonomodo.cli.table import show_lines


def history(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[PROJECT|PERIOD]", help="Only entries of this project or period.", autocompletion=pasts
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Only the latest N entries.")] = None,
    as_json: Json = False,
) -> None:
    """Who did what, when and why, oldest first."""
    entries = open_workspace().history(name, limit=limit)
    if as_json:
        show_json("history", entries)
    elif entries:
        show_lines(render_history(entries))
    if not entries:
        say("nothing has happened yet")
        stop(Exit.NOTHING)
