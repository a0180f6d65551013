"""`dobo period`: list periods and show one; close, lock and reopen them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.arguments import PeriodId
from dobonomodo.cli.console import Exit, Json, open_workspace, say, show, show_json, stop
from dobonomodo.cli.decisions import Reason, moment, render_history, render_signed
from dobonomodo.cli.table import show_lines

if TYPE_CHECKING:
    from dobonomodo.model import Period
    from dobonomodo.workspace.closing import PeriodView

period = typer.Typer(help="List periods and show one; close, lock and reopen them.", no_args_is_help=True)


@period.command("list")
def list_periods(
    level: Annotated[str | None, typer.Option("--level", help="Only this level of the calendar.")] = None,
    status: Annotated[str | None, typer.Option("--status", help="Only open, closed or locked ones.")] = None,
    as_json: Json = False,
) -> None:
    """List the periods of every calendar."""
    rows = [
        each
        for each in open_workspace().list_periods()
        if level in (None, each.period.level) and status in (None, each.period.status)
    ]
    if as_json:
        show_json("periods", rows)
    else:
        show_lines([(each.calendar, each.period.identifier, *period_cells(each.period)) for each in rows])
    if not rows:
        say("no such period")
        stop(Exit.NOTHING)


def period_cells(period: Period) -> tuple[str, ...]:
    """The rest of the line of a period in a list."""
    return period.level, str(period.start_date), str(period.end_date), period.status


@period.command("show")
def show_period(identifier: PeriodId, as_json: Json = False) -> None:
    """All about one period: status, who decided that and why, results, sign-offs, history."""
    view = open_workspace().show_period(identifier)
    if as_json:
        show_json("period", view)
        return
    show(_describe(view))
    for calendar, status in view.starts.items():
        if view.latest is not None and status not in ("open", view.period.status):
            show(f"the file of calendar {calendar} says {status}; what was decided since counts")
    for result in view.results:
        show(f"result of {result.project}: run {result.run}, {result.status}, by {result.by}, {moment(result.at)} UTC")
    if not view.results:
        show("no results yet")
    for line in render_signed(view.signed):
        show(line)
    if view.history:
        show("")
        show_lines(render_history(view.history))


def _describe(view: PeriodView) -> str:
    one, latest = view.period, view.latest
    head = f"period {one.identifier} ({one.level}, {one.start_date} to {one.end_date}) is {one.status}"
    if latest is None:
        return head
    return f"{head} since {moment(latest.at)} UTC, by {latest.by}" + (f": {latest.reason}" if latest.reason else "")


@period.command("open")
def open_period(identifier: PeriodId, as_json: Json = False) -> None:
    """Check that a period is open; `dobo period reopen` opens a closed one."""
    _show_changed(open_workspace().change_period(identifier, "open"), as_json=as_json)


@period.command("close")
def close_period(identifier: PeriodId, reason: Reason = None, as_json: Json = False) -> None:
    """Close a period: runs then need --override-closed and a reason."""
    _show_changed(open_workspace().change_period(identifier, "closed", reason=reason), as_json=as_json)


@period.command("lock")
def lock_period(identifier: PeriodId, reason: Reason = None, as_json: Json = False) -> None:
    """Lock a closed period: nothing runs for it any more."""
    _show_changed(open_workspace().change_period(identifier, "locked", reason=reason), as_json=as_json)


@period.command("reopen")
def reopen_period(identifier: PeriodId, reason: Reason = None, as_json: Json = False) -> None:
    """Open a closed or locked period again; a locked one needs a reason, and its results stay readable."""
    _show_changed(open_workspace().reopen_period(identifier, reason=reason), as_json=as_json)


def _show_changed(changed: Period, *, as_json: bool) -> None:
    if as_json:
        show_json("period", changed)
    else:
        say(f"period {changed.identifier} is {changed.status}")
