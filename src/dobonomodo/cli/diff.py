"""`dobo diff`: what differs between two runs, row by row, or between two versions of a project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.console import (
    Json,
    in_folder,
    open_workspace,
    say,
    show,
    show_json,
    show_problems,
    usage_error,
    writing,
)
from dobonomodo.cli.run import Conf, Master, Remote, WaitForExecutors, choose_session, ending_cleanly
from dobonomodo.cli.table import show_lines
from dobonomodo.cli.waterfall import list_differences, name_number, render_waterfall

if TYPE_CHECKING:
    from dobonomodo.model.difference import FieldChange
    from dobonomodo.runs.attribution import Attribution
    from dobonomodo.runs.columns import ChangedColumns, TableColumns
    from dobonomodo.runs.difference import LockedComparison, RunDifference, TableDifference
    from dobonomodo.workspace import Workspace

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def diff(
    one: Annotated[str, typer.Argument(metavar="BEFORE", help="A run, or a version: PROJECT@v3; PROJECT: the files.")],
    other: Annotated[str | None, typer.Argument(metavar="AFTER", help="Another run, or another version.")] = None,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Only this output of the runs.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="COLUMNS", help="Match rows by these columns, separated by commas.")
    ] = None,
    draft: Annotated[
        bool, typer.Option("--draft", help="Run the current files, and compare with the result PROJECT@PERIOD.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write a page with tables and waterfalls.")
    ] = None,
    attribute: Annotated[
        bool, typer.Option("--attribute", help="Attribute the differences to their causes; recomputes outputs.")
    ] = False,
    columns_only: Annotated[
        bool, typer.Option("--columns", help="Show only which columns changed, from the records; reads no rows.")
    ] = False,
    master: Master = None,
    remote: Remote = None,
    spark_conf: Conf = None,
    wait_for_executors: WaitForExecutors = None,
    as_json: Json = False,
) -> None:
    """Show what differs between the rows of two runs, or between two versions of a project."""
    workspace = open_workspace()
    if columns_only and (draft or attribute or html is not None or key is not None or other is None):
        usage_error("--columns compares two runs, and goes with TABLE and --json alone")
    if draft:
        if table is not None:
            usage_error("with --draft, give one result PROJECT@PERIOD, and perhaps a TABLE")
    elif other is None:
        usage_error("give two runs or two versions; or one result PROJECT@PERIOD and --draft")
    elif workspace.names_definition(one) or workspace.names_definition(other):
        _diff_projects(workspace, one, other, as_json=as_json)
        return
    if columns_only:
        _diff_columns(workspace.diff_columns(one, other or "", table), as_json=as_json)
        return
    columns = [each.strip() for each in key.split(",")] if key is not None else []
    with ending_cleanly():
        session = choose_session(master, remote, spark_conf, wait_for_executors)
        found = (
            workspace.diff_draft(one, other, key=columns, attribute=attribute, session=session, report=say)
            if draft
            else workspace.diff_runs(
                one, other or "", table, key=columns, attribute=attribute, session=session, report=say
            )
        )
    if html is not None:
        _write_page(found, in_folder(html))
    if as_json:
        show_json("diff", found)
    else:
        _show_runs(found)
        if found.attribution is not None:
            show_attribution(found.attribution)


def _diff_columns(found: ChangedColumns, *, as_json: bool) -> None:
    if as_json:
        show_json("diff", found)
        return
    for table in found.tables:
        show(f"{table.table}: {_say_columns(table)}")
        if table.new_columns:
            show(f"  new columns: {', '.join(table.new_columns)}")
        if table.lost_columns:
            show(f"  removed columns: {', '.join(table.lost_columns)}")


def _say_columns(table: TableColumns) -> str:
    if table.unknown is not None:
        return f"not known, since {table.unknown}"
    if not table.same_rows:
        return f"rows were added or removed: {table.rows_before:,} before, {table.rows_after:,} after"
    if not table.changed:
        return f"the same {table.rows_after:,} rows, and no column changed"
    return f"the same {table.rows_after:,} rows; nothing but {', '.join(table.changed)} changed"


def _write_page(found: RunDifference, path: Path) -> None:
    from dobonomodo.runs.report.difference import render_difference
    from dobonomodo.workspace.stamp import now

    title = "What changed"
    with writing(path):
        path.write_text(render_difference(found, title=title, made_at=now()), encoding="utf-8")
    say(f"wrote {path}")


def show_locked(found: LockedComparison) -> None:
    """What the first run since a locked period was reopened changed in its result."""
    say(f"this period was locked with the result of run {found.run}; this run changes it:")
    if found.difference is None:
        show_problems(found.problems)
        return
    _show_runs(found.difference)
    if found.difference.attribution is not None:
        show_attribution(found.difference.attribution)


def show_attribution(found: Attribution) -> None:
    """The causes of differences: a waterfall for each number that differs."""
    for line in list_differences(found):
        show(f"{name_number(line)}: {line.difference:+,f}")
        show_lines([("CAUSE", "PART", ""), *render_waterfall(found, line)])
    for name in found.unknown:
        show(f"{name}: not attributed, since it has more digits than can be summed")
    for note in found.notes:
        say(note)


def _show_runs(found: RunDifference) -> None:
    for note in found.notes:
        say(note)
    for name in found.only_before:
        show(f"- {name}: only in run {found.before}")
    for name in found.only_after:
        show(f"+ {name}: only in run {found.after}")
    for table in found.tables:
        for line in _head(table):
            show(line)
        if lines := list(_columns(table)):
            show_lines([("COLUMN", "CHANGED", "BEFORE", "AFTER", "DIFFERENCE"), *lines])
        if table.largest:
            show(f"largest changes, by {', '.join(table.key)}:")
            show_lines([("COLUMN", "ROW", "KEY", "BEFORE", "AFTER", "DIFFERENCE"), *_largest(table)])
    if not found.differs:
        say(f"the rows of runs {found.before} and {found.after} are the same")


def _head(table: TableDifference) -> Iterator[str]:
    how = f"{table.changed:,} changed" if table.changed is not None else "not paired"
    yield (
        f"{table.table}: {table.rows_before:,} rows before, {table.rows_after:,} after: "
        f"{table.added:,} added, {table.removed:,} removed, {how}"
    )
    if table.unpaired is not None:
        yield f"  rows are compared as a whole, since {table.unpaired}; --key names columns to pair them by"
    if table.new_columns:
        yield f"  new columns: {', '.join(table.new_columns)}"
    if table.lost_columns:
        yield f"  removed columns: {', '.join(table.lost_columns)}"


def _columns(table: TableDifference) -> Iterator[tuple[str, ...]]:
    for each in table.columns:
        if each.differs:
            changed = f"{each.changed:,}" if each.changed is not None else ""
            kinds = table.kinds_of(each.column)
            numbers = (each.before, each.after, each.difference) if not kinds else (None, None, None)
            yield (each.column, changed, *(f"{number:,f}" if number is not None else "" for number in numbers))
            for kind in kinds:
                if kind.difference:
                    yield f"  {kind.kind}", "", f"{kind.before:,f}", f"{kind.after:,f}", f"{kind.difference:,f}"


def _largest(table: TableDifference) -> Iterator[tuple[str, ...]]:
    for each in table.largest:
        difference = f"{each.difference:,f}" if each.difference is not None else ""
        yield each.column, each.row, ", ".join(part or "NULL" for part in each.key), *each.shown, difference


def _diff_projects(workspace: Workspace, one: str, other: str, *, as_json: bool) -> None:
    found = workspace.diff_projects(one, other)
    if as_json:
        show_json("diff", found)
        return
    if not found:
        say(f"{one} and {other} are the same")
        return
    for field in found.fields:
        _show_field(field, indent="")
    for operation in found.operations:
        show(f"{_SIGNS[operation.change]} {operation.seq} {operation.name} ({operation.type})")
        for field in operation.fields:
            _show_field(field, indent="    ")


def _show_field(field: FieldChange, *, indent: str) -> None:
    if field.before is None or field.after is None:
        sign, value = ("+", field.after) if field.before is None else ("-", field.before)
        show(f"{indent}{sign} {field.path}: {_text(value)}")
    else:
        show(f"{indent}{field.path}: {_text(field.before)} -> {_text(field.after)}")


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
