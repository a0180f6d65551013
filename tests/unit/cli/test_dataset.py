"""`dobo dataset infer`."""

from __future__ import annotations

from pathlib import Path

from dobonomodo.cli.dataset import render_definition
from dobonomodo.model import load_definitions
from dobonomodo.problems import Source
from dobonomodo.storage import load_datasource
from tests.unit.cli.conftest import Dobo

TEXT = "Beleg Nr.;Datum;Betrag\n7;31.01.2026;1.234,50\n8;01.02.2026;-0,05\n"


def test_definitions_that_load_the_file(dobo: Dobo, tmp_path: Path) -> None:
    (tmp_path / "lines.csv").write_text(TEXT)
    result = dobo("dataset", "infer", str(tmp_path / "lines.csv"))
    assert (result.code, "2 rows" in result.err) == (0, True)
    sources = [Source(f"{number}.yaml", text) for number, text in enumerate(result.out.split("---\n"))]
    definitions, problems = load_definitions(sources, load_datasource=load_datasource)
    assert problems == ()
    columns = definitions.datasets["lines"].main_table.columns
    assert [(column.name, str(column.type), column.source) for column in columns] == [
        ("beleg_nr", "integer", "Beleg Nr."),
        ("Datum", "date", None),
        ("Betrag", "decimal(15,2)", None),
    ]
    assert definitions.datasources["csv"].options["date_format"] == "dd.mm.yyyy"


def test_for_programs(dobo: Dobo, tmp_path: Path) -> None:
    (tmp_path / "lines.csv").write_text(TEXT)
    data = dobo("-C", str(tmp_path), "dataset", "infer", "lines.csv", "--json").document["data"]
    assert (data["rows"], data["dataset"]["natural_key_columns"]) == (2, ["beleg_nr"])
    assert data["datasource"]["options"]["delimiter"] == ";"


def test_a_file_that_is_not_there_or_not_clear(dobo: Dobo, tmp_path: Path) -> None:
    assert dobo("dataset", "infer", str(tmp_path / "none.csv")).code == 2
    (tmp_path / "empty.csv").write_text("")
    result = dobo("dataset", "infer", str(tmp_path / "empty.csv"))
    assert (result.code, "empty" in result.err) == (2, True)


def test_texts_that_yaml_would_misread_are_quoted() -> None:
    text = render_definition("dataset", {"id": "d", "main_table": {"columns": [{"name": "no", "source": "1:2"}]}})
    assert "{name: 'no', source: '1:2'}" in text
