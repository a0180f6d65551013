"""`dobo init --from`: a workspace for files that somebody has."""

from __future__ import annotations

from pathlib import Path

import xlsxwriter

from dobonomodo.workspace import Workspace
from tests.unit.cli.conftest import Dobo


def export(folder: Path, name: str, amount: str) -> str:
    (folder / name).write_bytes(
        f"Datum;Ort;Betrag\r\n31.01.2026;Köln;{amount}\r\n01.02.2026;Bonn;-0,05\r\n".encode("cp1252")
    )
    return str(folder / name)


def test_a_workspace_for_files(dobo: Dobo, tmp_path: Path) -> None:
    files = [export(tmp_path, "lines-2026-01.csv", "1,50"), export(tmp_path, "lines-2026-02.csv", "2.000,125")]
    with xlsxwriter.Workbook(str(tmp_path / "plan.xlsx")) as book:
        sheet = book.add_worksheet()
        sheet.write_row("A1", ["Konto", "Betrag"])
        sheet.write_row("A2", [4000, 0.1 + 0.2])
    home = tmp_path / "new"
    result = dobo("init", str(home), "--from", files[0], "--from", str(tmp_path / "plan.xlsx"))
    assert (result.code, "dobo show lines --rows 5 --period 2026-01" in result.err) == (0, True)
    workspace = Workspace.open(home)
    assert workspace.problems() == ()
    ((_, rows),) = workspace.sample("lines", 5, period="2026-01").items()
    assert [(str(row["Datum"]), row["Ort"], str(row["Betrag"])) for row in rows] == [
        ("2026-01-31", "Köln", "1.50"),
        ("2026-02-01", "Bonn", "-0.05"),
    ]
    shown = dobo("-C", str(home), "show", "plan", "--rows", "1", "-p", "2026-01")
    assert shown.out.split() == ["plan", "2026-01", "Konto", "Betrag", "4000", "0.30"]
    data = dobo("-C", str(home), "show", "plan", "--rows", "1", "-p", "2026-01", "--json").document["data"]
    assert list(data) == ["plan 2026-01"]
    assert dobo("init", str(home), "--from", files[0]).code == 2, "nothing is overwritten"


def test_files_of_several_periods_are_one_dataset(dobo: Dobo, tmp_path: Path) -> None:
    files = [export(tmp_path, "lines-2026-01.csv", "1.000,50"), export(tmp_path, "lines-2026-02.csv", "2.000,125")]
    result = dobo("init", str(tmp_path / "new"), "--from", files[0], "--from", files[1])
    assert result.code == 0
    workspace = Workspace.open(tmp_path / "new")
    for period, amount in (("2026-01", "1000.500"), ("2026-02", "2000.125")):
        ((_, rows),) = workspace.sample("lines", 1, period=period).items()
        assert str(rows[0]["Betrag"]) == amount
    for name, amount in (("rows-2026-01.csv", "1.50"), ("rows-2026-02.csv", "1.234")):
        (tmp_path / name).write_text(f"id,amount\na,{amount}\n")
    told = dobo("init", str(tmp_path / "third"), *(f"--from={tmp_path}/rows-2026-0{month}.csv" for month in (1, 2)))
    assert (told.code, "note: rows: `amount` has values such as `1.234`" in told.err) == (0, True)
    (tmp_path / "lines-2026-03.csv").write_text("a,b\n1,2\n")
    again = dobo("init", str(tmp_path / "other"), "--from", files[0], "--from", str(tmp_path / "lines-2026-03.csv"))
    assert (again.code, "not written alike" in again.err) == (2, True)


def test_rows_of_a_dataset_are_checked_and_those_of_the_period(dobo: Dobo, tmp_path: Path) -> None:
    home = tmp_path / "new"
    (tmp_path / "lines.csv").write_text("id,v,_period\n1,a,2026-01\n2,b,2026-02\n")
    assert dobo("init", str(home), "--from", str(tmp_path / "lines.csv")).code == 0
    definition = home / "datasets" / "lines.yaml"
    definition.write_text(
        definition.read_text().replace("    name: lines\n", "    name: lines\n    temporal_mode: period\n")
    )
    year = Workspace.open(home).list_periods()[0].period.identifier[:4]
    (home / "data" / "lines.csv").write_text(f"id,v,_period\n1,a,{year}-01\n2,b,{year}-02\n")
    ((_, rows),) = Workspace.open(home).sample("lines", 5, period=f"{year}-02").items()
    assert [row["id"] for row in rows] == [2]
    (home / "data" / "lines.csv").write_text("id,v\nx,a\n")
    result = dobo("-C", str(home), "show", "lines", "--rows", "5", "-p", f"{year}-01")
    assert (result.code, "DATA_LOAD" in result.err) == (1, True)
