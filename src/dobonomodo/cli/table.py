"""Tables on the screen."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from dobonomodo.cli.console import make_console, say, show
from dobonomodo.problems.render import printable


def show_lines(lines: Sequence[Sequence[str]]) -> None:
    """Short cells in columns, the first line their head."""
    shown = [[printable(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for line in shown:
        show("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())


def show_rows(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows with a column for every value; those that are empty everywhere are left out and named below."""
    from rich.table import Table

    console = make_console(sys.stdout)
    names = list(dict.fromkeys(name for row in rows for name in row))
    empty = [name for name in names if all(row.get(name) in (None, "") for row in rows)]
    shown = [name for name in names if name not in empty]
    table = Table(
        title=printable(title), title_justify="left", box=None, header_style="bold", pad_edge=False, show_edge=False
    )
    for name in shown:
        number = all(isinstance(row.get(name), int | Decimal | None) for row in rows)
        table.add_column(printable(name), justify="right" if number else "left", overflow="ellipsis", no_wrap=True)
    for row in rows:
        table.add_row(*(_text(row.get(name)) for name in shown))
    console.print(table)
    if empty:
        say(f"without a value in these rows: {', '.join(empty)}")


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}"
        case _:
            return printable(str(value))
