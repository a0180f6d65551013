"""`dobo ls` and `dobo show`: list definitions, periods or runs, and describe one."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dobonomodo.cli.console import Exit, Json, open_workspace, say, show, show_document, show_json, stop
from dobonomodo.cli.period import period_cells
from dobonomodo.cli.runs import render_runs, show_run
from dobonomodo.cli.table import show_lines

if TYPE_CHECKING:
    from dobonomodo.workspace import Workspace
    from dobonomodo.workspace.listing import Entry, Listed


class Kind(StrEnum):
    """What can be listed."""

    PROJECTS = "projects"
    DATASETS = "datasets"
    RESOLVERS = "resolvers"
    DATASOURCES = "datasources"
    CALENDARS = "calendars"
    PERIODS = "periods"
    RUNS = "runs"


class Form(StrEnum):
    """How a list is shown."""

    TABLE = "table"
    JSON = "json"
    NAME = "name"


def ls(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    output: Annotated[Form, typer.Option("-o", "--output", help="How to show it.")] = Form.TABLE,
    as_json: Json = False,
) -> None:
    """List definitions with their versions and status, periods, or runs."""
    listed = _LISTINGS.get(kind, _list_definitions)(open_workspace(), kind)
    if as_json or output is Form.JSON:
        show_json("ls", listed.rows)
    elif output is Form.NAME:
        for row in listed.rows:
            show(row.id)
    elif listed.rows:
        show_lines(listed.lines)
    if not listed.rows:
        say(f"there are no {kind}")
        stop(Exit.NOTHING)


class _Listed(NamedTuple):
    """What there is: for programs, and with a head for people."""

    rows: Sequence[Listed | Entry]
    lines: Sequence[Sequence[str]]


def _list_definitions(workspace: Workspace, kind: Kind) -> _Listed:
    rows = workspace.listing(kind.removesuffix("s"))
    cells = [(row.id, _version(row), _status(row), row.name) for row in rows]
    return _Listed(rows, [("ID", "VERSION", "STATUS", "NAME"), *cells])


def _list_periods(workspace: Workspace, kind: Kind) -> _Listed:
    from dobonomodo.workspace.listing import Entry

    del kind
    found = workspace.list_periods()
    rows = [Entry(each.period.identifier, each) for each in found]
    cells = [(each.period.identifier, each.calendar, *period_cells(each.period)) for each in found]
    return _Listed(rows, [("ID", "CALENDAR", "LEVEL", "START", "END", "STATUS"), *cells])


def _list_runs(workspace: Workspace, kind: Kind) -> _Listed:
    from dobonomodo.workspace.listing import Entry

    del kind
    found = workspace.runs(limit=10_000)
    return _Listed([Entry(view.id, view) for view in found], render_runs(found))


_LISTINGS = {Kind.PERIODS: _list_periods, Kind.RUNS: _list_runs}


def show_one(
    name: Annotated[str, typer.Argument(help="The id of a project, a dataset or a run, or a name such as `latest`.")],
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", min=0, help="Show the first rows of a run or dataset.")
    ] = 0,
    period: Annotated[
        str | None, typer.Option("-p", "--period", help="With --rows, the period of the dataset's rows to show.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show all about one definition or run; with --rows, what a run wrote, or the rows of a dataset as a run reads them."""
    import yaml

    from dobonomodo.problems import Rejected

    if rows:
        tables = open_workspace().sample(name, rows, period=period)
        if as_json:
            from dobonomodo.workspace.answer import make_document

            show_document({**make_document("show", tables), "failed_run": tables.failed_run})
        else:
            from dobonomodo.cli.table import show_rows

            if tables.failed_run is not None:
                show(f"of run {tables.failed_run}, which failed")
            for table, first in tables.items():
                show_rows(table, first)
        return
    try:
        found = open_workspace().describe(name)
    except Rejected:
        if not _is_run(name):
            raise
        show_run(name, as_json=as_json)
        return
    if as_json:
        show_json("show", found)
        return
    show(yaml.safe_dump(_plain(found.to_dict()), sort_keys=False, allow_unicode=True, width=100).rstrip())


def _is_run(name: str) -> bool:
    from dobonomodo.problems import Rejected
    from dobonomodo.workspace.naming import LATEST

    try:
        open_workspace().find_run(name)
    except Rejected as unknown:
        # An ambiguous name is treated as a run: its problem lists the candidates.
        return name == LATEST or bool(getattr(unknown.problems[0], "known", ()))
    return True


def _status(row: Listed) -> str:
    """With the version that it is about, where that is not the newest."""
    return row.status if row.live_version in (None, row.version) else f"{row.status} (v{row.live_version})"


def _version(row: Listed) -> str:
    number = f"v{row.version}" if row.version else "-"
    return f"{number}*" if row.is_changed else number


def _plain(value: object) -> object:
    """Only what YAML can say without tags."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | bool) or value is None else str(value)
