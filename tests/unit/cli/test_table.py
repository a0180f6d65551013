"""Rows on the screen."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dobonomodo.cli.table import show_rows


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
