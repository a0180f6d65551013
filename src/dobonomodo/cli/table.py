"""Tables on the screen. One that is too wide for the terminal is folded by column, never inside a word."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TextIO

from dobonomodo.cli.console import colored, put, say, terminal_width
from dobonomodo.problems.render import cell_width, fold_words, printable

GAP = "  "


def show_lines(lines: Sequence[Sequence[str]]) -> None:
    """Short cells in columns, the first line their head."""
    _show(lines, sys.stdout, style=None)


def show_rows(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Rows with a column for every value; those that are empty everywhere are left out and named below."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    empty = [name for name in names if all(row.get(name) in (None, "") for row in rows)]
    shown = [name for name in names if name not in empty]
    numbers = {at for at, name in enumerate(shown) if all(isinstance(row.get(name), _NUMBERS) for row in rows)}
    if title:
        put(printable(title) + "\n", sys.stdout)
    _show([shown, *([_text(row.get(name)) for name in shown] for row in rows)], sys.stdout, right=numbers)
    if empty:
        say(f"without a value in these rows: {', '.join(empty)}")


def show_counts(lines: Sequence[Sequence[str]], *, right: Collection[int]) -> None:
    """A table on stderr, among the messages."""
    _show(lines, sys.stderr, right=right, style="2")


def _show(
    lines: Sequence[Sequence[str]], stream: TextIO, *, right: Collection[int] = (), style: str | None = "1"
) -> None:
    shown = [[printable(cell) for cell in line] for line in lines]
    for number, (head, *rest) in enumerate(fold_columns(shown, terminal_width(stream), right=right)):
        if number:
            put("\n", stream)
        painted = f"\x1b[{style}m{head}\x1b[0m" if style and colored(stream) else head
        put("\n".join([painted, *rest]) + "\n", stream)


def fold_columns(
    lines: Sequence[Sequence[str]], width: int | None, *, right: Collection[int] = ()
) -> Iterator[list[str]]:
    """The lines of a table. Columns that do not fit follow below in a block of their own, behind the first column again.

    A cell that is wider than the terminal is folded between words.
    """
    if not lines or not lines[0]:
        return
    widths = [max(map(cell_width, column)) for column in zip(*lines, strict=True)]
    for block in _pack(widths, width):
        yield [
            folded for line in lines for folded in _join([(line[at], widths[at], at in right) for at in block], width)
        ]


def _pack(widths: Sequence[int], width: int | None) -> Iterator[list[int]]:
    """Which columns are side by side."""
    block: list[int] = []
    for at in range(len(widths)):
        if block and width is not None and _total(widths, [*block, at]) > width:
            yield block
            block = [0] if _total(widths, [0, at]) <= width else []
        block.append(at)
    yield block


def _total(widths: Sequence[int], block: Sequence[int]) -> int:
    return sum(widths[at] for at in block) + len(GAP) * (len(block) - 1)


def _join(cells: Sequence[tuple[str, int, bool]], width: int | None) -> list[str]:
    if len(cells) == 1:
        return fold_words(cells[0][0], width)
    padded = [_pad(text, size, right=right) for text, size, right in cells]
    return [GAP.join(padded).rstrip()]


def _pad(text: str, size: int, *, right: bool) -> str:
    blanks = " " * (size - cell_width(text))
    return blanks + text if right else text + blanks


_NUMBERS = (int, Decimal, type(None))


def _text(value: object) -> str:
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
            return str(value)
