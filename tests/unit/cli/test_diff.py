"""`dobo diff` of two versions of a project, and how differences of rows are shown."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from dobonomodo.cli.diff import show_locked
from dobonomodo.runs.difference import (
    ColumnDifference,
    KindDifference,
    LockedComparison,
    RunDifference,
    TableDifference,
)
from dobonomodo.workspace import Workspace
from tests.unit.cli.conftest import Dobo, change

PROJECT = "monthly-sales"


def apply(folder: Path) -> None:
    workspace = Workspace.open(folder)
    workspace.apply()
    workspace.close()


def test_versions_and_files_are_compared(dobo: Dobo, stored: Path) -> None:
    apply(stored)
    change(stored, f"projects/{PROJECT}.yaml", "0.9", "0.8")
    (operation,) = dobo("diff", f"{PROJECT}@v1", PROJECT, "--json").document["data"]["operations"]
    assert operation["change"] == "changed"
    (field,) = operation["fields"]
    assert ("0.9" in field["before"], "0.8" in field["after"]) == (True, True)
    apply(stored)
    shown = dobo("diff", f"{PROJECT}@v1", f"{PROJECT}@v2")
    assert (shown.code, " -> " in shown.out) == (0, True)
    assert dobo("diff", f"{PROJECT}@v2", PROJECT).out == ""


def test_what_there_is_not(dobo: Dobo, stored: Path) -> None:
    apply(stored)
    assert dobo("diff", f"{PROJECT}@v1", f"{PROJECT}@v9", "--json").codes == ["VERSION_NOT_FOUND"]
    assert dobo("diff", "nobody", f"{PROJECT}@v1", "--json").codes == ["NOT_DEFINED"]


def test_what_is_typed_in_a_wrong_way(dobo: Dobo, stored: Path) -> None:
    assert dobo("diff", "latest").code == 2
    assert dobo("diff", "a@2026-01", "b", "c", "--draft").code == 2
    assert dobo("diff", "latest", "previous", "--json").codes == ["RUN_NOT_FOUND"]
    assert dobo("diff", "nobody@2026-01", "--draft", "--json").codes == ["RUN_NOT_FOUND"]


def test_totals_of_each_kind_of_rows_stand_in_place_of_their_sum(capsys: pytest.CaptureFixture[str]) -> None:
    table = TableDifference(
        table="closed",
        key=(),
        unpaired=None,
        rows_before=4,
        rows_after=4,
        added=0,
        removed=0,
        changed=2,
        columns=(
            ColumnDifference("net", 2, Decimal("20.00"), Decimal("24.00"), is_number=True),
            ColumnDifference("tax", 1, Decimal("1.00"), Decimal("3.00"), is_number=True),
        ),
        kinds=(
            KindDifference("loaded rows", "net", Decimal("10.00"), Decimal("12.00")),
            KindDifference("Totals", "net", Decimal("10.00"), Decimal("12.00")),
            KindDifference("Budget", "net", Decimal("0.00"), Decimal("0.00")),
        ),
    )
    show_locked(LockedComparison("r1", RunDifference("r1", "r2", (table,))))
    shown = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert shown == [
        ["COLUMN", "CHANGED", "BEFORE", "AFTER", "DIFFERENCE"],
        ["net", "2"],
        ["loaded", "rows", "10.00", "12.00", "2.00"],
        ["Totals", "10.00", "12.00", "2.00"],
        ["tax", "1", "1.00", "3.00", "2.00"],
    ]
