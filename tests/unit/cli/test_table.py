"""Rows on the screen."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dobonomodo.cli.table import fold_columns, show_rows
from dobonomodo.problems.render import cell_width


def test_values_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    values = ["[bold]x[/bold]", "[/]", ":smile:", "two\nlines", "\x1b[31mred", "ä 漢"]
    show_rows("some [rows]", [{"a": value, "b": Decimal("0.0000001"), "c": None} for value in values])
    out, err = capsys.readouterr()
    assert [" ".join(line.split("0.0000001")[0].split()) for line in out.splitlines()] == [
        "some [rows]",
        "a b",
        "[bold]x[/bold]",
        "[/]",
        ":smile:",
        "two\\nlines",
        "\\x1b[31mred",
        "ä 漢",
    ]
    assert err == "without a value in these rows: c\n"


LINES = [
    ("RUN", "PROJECT", "STATUS", "WHAT IT SAYS"),
    ("20260203-080000-abc", "monthly-sales", "completed", "a sentence of several words that no narrow terminal holds"),
    ("20260203-080001-def", "売上高", "failed", "short"),
]


@pytest.mark.parametrize("width", [20, 30, 50, 80, 200])
def test_a_wide_table_is_folded_by_column_and_never_inside_a_word(width: int) -> None:
    blocks = list(fold_columns(LINES, width))
    shown = [line for block in blocks for line in block]
    assert all(cell_width(line) <= width for line in shown)
    words = {word for line in shown for word in line.split()}
    assert words == {word for line in LINES for cell in line for word in cell.split()}
    assert (len(blocks) == 1) == (width == 200)


def test_the_first_column_is_repeated_where_there_is_room() -> None:
    blocks = list(fold_columns([("ID", "A", "B"), ("x", "a" * 20, "b" * 20)], 30))
    assert blocks == [["ID  A", f"x   {'a' * 20}"], ["ID  B", f"x   {'b' * 20}"]]


def test_a_program_gets_lines_of_any_length(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows("", [{"a": "x" * 300, "b": Decimal(1)}])
    assert capsys.readouterr().out.splitlines()[1] == f"{'x' * 300}  1"


def test_numbers_are_on_the_right() -> None:
    assert list(fold_columns([("A", "N"), ("x", "1"), ("y", "100")], None, right={1})) == [
        ["A    N", "x    1", "y  100"]
    ]
