"""`dobo period`: list periods, close and lock them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.arguments import PeriodId
from dobonomodo.cli.console import Exit, Json, open_workspace, say, show_json, stop
from dobonomodo.cli.table import show_lines

if TYPE_CHECKING:
    from dobonomodo.model import Period

period = typer.Typer(help="List periods, close and lock them; a period is never reopened.", no_args_is_help=True)


@period.command("list")
def list_periods(
    level: Annotated[str | None, typer.Option("--level", help="Only this level of the calendar.")] = None,
    status: Annotated[str | None, typer.Option("--status", help="Only open, closed or locked ones.")] = None,
    as_json: Json = False,
) -> None:
    """List the periods of every calendar."""
    rows = [
        (calendar.id, each)
        for calendar, schedule in open_workspace().schedules()
        for each in schedule.periods
        if level in (None, each.level) and status in (None, each.status)
    ]
    if as_json:
        show_json("periods", [{"calendar": calendar, **each.document()} for calendar, each in rows])
    else:
        show_lines(
            [
                (calendar, each.identifier, each.level, str(each.start_date), str(each.end_date), each.status)
                for calendar, each in rows
            ]
        )
    if not rows:
        say("no such period")
        stop(Exit.NOTHING)


@period.command("open")
def open_period(identifier: PeriodId, as_json: Json = False) -> None:
    """Check that a period is open; a closed one is never opened again."""
    _change(identifier, "open", as_json=as_json)


@period.command("close")
def close_period(identifier: PeriodId, as_json: Json = False) -> None:
    """Close a period: runs then need --override-closed."""
    _change(identifier, "closed", as_json=as_json)


@period.command("lock")
def lock_period(identifier: PeriodId, as_json: Json = False) -> None:
    """Lock a closed period: nothing runs for it any more."""
    _change(identifier, "locked", as_json=as_json)


def _change(identifier: str, status: str, *, as_json: bool) -> None:
    changed: Period = open_workspace().change_period(identifier, status)
    if as_json:
        show_json("period", changed.document())
    else:
        say(f"period {changed.identifier} is {changed.status}")
