"""`dobo dataset infer`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dobonomodo.cli.dataset import render_definition
from dobonomodo.model import load_definitions
from dobonomodo.model.plain import PlainDict
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


@pytest.mark.parametrize(
    "text", ["\u00a0", "\u202f", "a\tb", "a\nb", "\x1b[1m", "x\x85\u2028", "\U000e0001", "\u202eü", "'\""]
)
def test_characters_that_are_not_seen_have_escapes(text: str) -> None:
    definition: PlainDict = {"id": "d", "options": {"thousands": text, "decimal": ","}}
    shown = render_definition("datasource", definition, notes=[f"a note: {text}"])
    assert shown.replace("\n", "").isprintable()
    assert yaml.safe_load(shown) == {"datasource": definition}


@pytest.mark.parametrize("sign", ["\u00a0", "\u202f"])
def test_blanks_between_thousands_are_printed_so_that_they_load(dobo: Dobo, tmp_path: Path, sign: str) -> None:
    (tmp_path / "lines.csv").write_text(f"Konto;Betrag\n12;1{sign}234,56\n13;5,00\n", encoding="utf-8")
    _, datasource = yaml.safe_load_all(dobo("dataset", "infer", str(tmp_path / "lines.csv")).out)
    assert datasource["datasource"]["options"]["thousands"] == sign
