"""`dobo ls` and `dobo show`: what there is, and all about one thing."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from dobonomodo.cli.console import Exit, Json, open_workspace, say, show, show_json, stop
from dobonomodo.cli.runs import show_run


class Kind(StrEnum):
    """What can be listed."""

    PROJECTS = "projects"
    DATASETS = "datasets"
    RESOLVERS = "resolvers"
    DATASOURCES = "datasources"
    CALENDARS = "calendars"


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
    """List definitions with their versions and status."""
    rows = open_workspace().listing(kind.removesuffix("s"))
    if as_json or output is Form.JSON:
        show_json("ls", rows)
    elif output is Form.NAME:
        for row in rows:
            show(row["id"])
    else:
        table = [("ID", "VERSION", "STATUS", "NAME"), *((r["id"], _version(r), _status(r), r["name"]) for r in rows)]
        widths = [max(len(line[at]) for line in table) for at in range(4)]
        for line in table:
            show("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
    if not rows:
        say(f"there are no {kind}")
        stop(Exit.NOTHING)


def show_one(
    name: Annotated[str, typer.Argument(help="The id of a project, a dataset or a run.")],
    rows: Annotated[int, typer.Option("--rows", metavar="N", help="Show the first rows of its outputs.")] = 0,
    as_json: Json = False,
) -> None:
    """Show all about one definition or run; with --rows, what a run wrote or a registered dataset holds."""
    import yaml

    if rows:
        tables = open_workspace().sample(name, rows)
        if as_json:
            show_json("show", tables)
        else:
            from dobonomodo.cli.table import show_rows

            for table, first in tables.items():
                show_rows(table, first)
        return
    if _is_run(name):
        show_run(name, as_json=as_json)
        return

    found = open_workspace().describe(name)
    if as_json:
        show_json("show", found)
        return
    show(yaml.safe_dump(_plain(found), sort_keys=False, allow_unicode=True, width=100).rstrip())


def _is_run(name: str) -> bool:
    return any(run.id == name for run in open_workspace().runs(limit=10_000))


def _status(row: dict[str, Any]) -> str:
    """With the version that it is about, where that is not the newest."""
    live = row.get("live_version")
    return row["status"] if live in (None, row["version"]) else f"{row['status']} (v{live})"


def _version(row: dict[str, Any]) -> str:
    number = f"v{row['version']}" if row["version"] else "-"
    return f"{number}*" if row["changed"] else number


def _plain(value: Any) -> Any:
    """Only what YAML can say without tags."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | bool) or value is None else str(value)
