"""`dobo why` and `dobo why-not`: explain a value of an output, or why a row is missing."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.arguments import RunId
from dobonomodo.cli.console import (
    Exit,
    Json,
    in_folder,
    open_workspace,
    say,
    show,
    show_json,
    show_problems,
    stop,
    usage_error,
    writing,
)

if TYPE_CHECKING:
    from dobonomodo.formula.meaning import Value
    from dobonomodo.why.explanation import Explanation

LISTED = 20
"""How many contributors are listed by default."""

Table = Annotated[str | None, typer.Argument(metavar="TABLE", help="The output; not needed if the run has only one.")]
Key = Annotated[
    list[str] | None,
    typer.Option(
        "--key", "-k", metavar="COLUMN=VALUE", help="Values that name the row, separated by commas; repeatable."
    ),
]
RowIdOption = Annotated[str | None, typer.Option("--row-id", metavar="ID", help="The row by its `_row_id`.")]


def why(
    run: RunId,
    table: Table = None,
    key: Key = None,
    row_id: RowIdOption = None,
    column: Annotated[str | None, typer.Option("--column", "-c", help="Only what this column depends on.")] = None,
    contributors: Annotated[
        str, typer.Option("--contributors", metavar="N|all", help="How many rows of a summary are listed.")
    ] = str(LISTED),
    contributor: Annotated[
        list[str] | None,
        typer.Option(
            "--contributor",
            metavar="COLUMN=VALUE",
            help="Explain the row of a total with these values; repeat it for a row of that row.",
        ),
    ] = None,
    depth: Annotated[int, typer.Option("--depth", min=1, help="The number of runs through which rows are traced.")] = 1,
    to_csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write the contributors of a summary to a CSV file.")
    ] = None,
    to_html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the explanation as one HTML file.")
    ] = None,
    as_scenario: Annotated[
        Path | None,
        typer.Option(
            "--as-scenario", metavar="FILE", help="Write the rows it depends on as a scenario for `dobo test`."
        ),
    ] = None,
    mask: Annotated[bool, typer.Option("--mask", help="Replace texts in the scenario, consistently.")] = False,
    as_json: Json = False,
) -> None:
    """Explain a row of an output: what each operation did with it, every formula with its values, and where it was loaded from.

    The row is computed again from the inputs of the run; if it differs from what is stored, nothing is explained.
    """
    from dobonomodo.problems import Rejected
    from dobonomodo.problems.why import RowNotFound
    from dobonomodo.why.text import render_text

    if not key and row_id is None:
        usage_error("name the row: --key COLUMN=VALUE, or --row-id ID")
    if mask and as_scenario is None:
        usage_error("--mask is for --as-scenario")
    if contributor and as_scenario is not None:
        usage_error("--as-scenario is for a row of an output, not for a contributor")
    workspace = open_workspace()
    try:
        found = workspace.why(
            run,
            table,
            key=read_keys(key or []),
            row_id=row_id,
            column=column,
            contributors=read_count(contributors),
            contributor=[read_keys([each]) for each in contributor or []],
            depth=depth,
            report=say,
        )
    except Rejected as rejected:
        if not any(isinstance(each, RowNotFound) for each in rejected.problems):
            raise
        if as_json:
            show_json("why", None, problems=rejected.problems, ok=False)
        else:
            show_problems(rejected.problems)
        stop(Exit.NOTHING)
    if as_scenario is not None:
        text = workspace.why_scenario(run, table, key=read_keys(key or []), row_id=row_id, mask=mask)
        _write(as_scenario, text)
    if to_html is not None:
        _write(to_html, found.to_html())
    if to_csv is not None:
        _write(to_csv, write_contributors(found))
    if as_json:
        show_json("why", found)
        return
    for line in render_text(found if to_csv is None else _shorten(found)):
        show(line)
    if (next_key := _find_next(found)) is not None:
        say(f"next: add {next_key} for what this row adds, and where it comes from")


def _shorten(found: Explanation) -> Explanation:
    """Without the contributors that a file has, but the largest."""
    from dobonomodo.why.explanation import Summary

    if not isinstance(found.origin, Summary):
        return found
    return replace(found, origin=replace(found.origin, contributors=found.origin.contributors[:LISTED]))


def _find_next(found: Explanation) -> str | None:
    """The option that explains the largest contributor."""
    from dobonomodo.why.explanation import Summary
    from dobonomodo.why.explanation import show as show_value

    listed = found.origin.contributors if isinstance(found.origin, Summary) else ()
    if not listed or not listed[0].key:
        return None
    key = ",".join(f"{name}={show_value(value)}" for name, value in listed[0].key.items())
    return f"--contributor {quote(key)}"


def _write(path: Path, text: str) -> None:
    target = in_folder(path)
    with writing(target):
        target.write_text(text, encoding="utf-8")
    say(f"wrote {path}")


def write_contributors(found: Explanation) -> str:
    """The rows of a summary as CSV: key, row id, amounts, what totals read that are not sums of amounts, and place."""
    from dobonomodo.why.explanation import Summary, plain

    if not isinstance(found.origin, Summary):
        usage_error("--csv is for summary rows, which have contributors")
    rows: list[dict[str, Value]] = []
    for each in found.origin.contributors:
        reads = {f"reads {text}": value for read in each.reads.values() for text, value in read.items()}
        rows.append({**each.key, "_row_id": each.row_id, **each.amounts, **reads, "place": each.place})
    names = list(dict.fromkeys(name for row in rows for name in row))
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([plain(row.get(name)) for name in names] for row in rows)
    return buffer.getvalue()


def why_not(
    run: RunId,
    table: Table = None,
    key: Key = None,
    column: Annotated[
        str | None, typer.Option("--column", "-c", help="Why this column of the row was not set.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain why a row is not in an output: not in the input, outside the period, deleted, or not selected.

    With --column: which operations could have set it, and why they did not.
    """
    if not key:
        usage_error("name the row: --key COLUMN=VALUE")
    found = open_workspace().why_not(run, table, key=read_keys(key), column=column)
    if as_json:
        show_json("why-not", found)
        return
    for line in found.lines():
        show(line)


def read_keys(given: list[str]) -> dict[str, object]:
    """The columns and values of `--key`; a comma before a name and an equals sign begins the next one."""
    found: dict[str, object] = {}
    for each in given:
        name = ""
        for part in each.split(","):
            before, sign, value = part.partition("=")
            if sign and before.strip():
                name = before.strip()
                found[name] = value
            elif name:
                found[name] = f"{found[name]},{part}"
            else:
                usage_error(f"`{each}` is not COLUMN=VALUE")
    return found


def read_count(text: str) -> int | None:
    """A number, or all."""
    if text == "all":
        return None
    if not text.isdecimal():
        usage_error(f"--contributors takes a number or `all`, not `{text}`")
    return int(text)
