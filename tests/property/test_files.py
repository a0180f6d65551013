"""What is written into a file is read back, and a proposal for a file loads it."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dobonomodo.formula import Columns
from dobonomodo.formula.types import DecimalType
from dobonomodo.model import load_definitions
from dobonomodo.problems import Source
from dobonomodo.storage import load_datasource
from dobonomodo.storage.csv_dialect import Dialect
from dobonomodo.storage.excel_cells import show_number
from dobonomodo.storage.inference import infer
from dobonomodo.storage.sql_values import check_columns, convert_column
from tests import world
from tests.searching import tries
from tests.unit.storage.reading import extract, use_of
from tests.unit.storage.round_trip import KINDS, Rows, by_csv, by_excel

_LETTERS = st.text(st.characters(codec="cp1252", categories=("L", "N", "P", "S", "Zs")), max_size=6) | st.sampled_from(
    ["", "NA", '"', '""', "#", "a\nb", "\r", ";", ",", "Ã¤", " x ", "1.5", "true", "-"]
)
IN_TEXTS: dict[str, st.SearchStrategy[object]] = {
    "text": _LETTERS,
    "whole": st.integers(-(2**63), 2**63 - 1),
    "money": st.decimals(-(10**12), 10**12, places=2),
    "small": st.decimals(-1, 1, places=9),
    "flag": st.booleans(),
    "day": st.dates(),
    "moment": st.datetimes(timezones=st.just(UTC)),
}
IN_CELLS: dict[str, st.SearchStrategy[object]] = {
    **IN_TEXTS,
    "text": st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8),
    "whole": st.integers(-(10**15) + 1, 10**15 - 1),
    "small": st.decimals(-1000, 1000, places=9),
    "day": st.dates(min_value=date(1900, 3, 1)),
    "moment": st.datetimes(
        datetime(1900, 3, 1),  # noqa: DTZ001 - the zone is given apart
        datetime(2200, 1, 1),  # noqa: DTZ001
        timezones=st.just(UTC),
    ).map(lambda at: at.replace(microsecond=0)),
}
"""What a cell of Excel can hold."""
assert [*IN_TEXTS] == [*IN_CELLS] == [*KINDS]


DIALECTS = st.builds(
    Dialect,
    delimiter=st.sampled_from([",", ";", "\t", "|", "1", "e", "-", ":", " ", "."]),
    has_header=st.booleans(),
    encoding=st.sampled_from(["utf-8", "cp1252", "utf-16"]),
    decimal=st.just(","),
    thousands=st.sampled_from([None, ".", " ", "'"]),
    date_format=st.sampled_from([None, "dd.mm.yyyy", "yyyymmdd", "m/d/yyyy", "d-m-yyyy", "mm dd yyyy"]),
    null_values=st.sampled_from([(), ("NA", "-"), ("0", "true", "")]),
    skip_lines=st.integers(0, 2),
    comment=st.sampled_from([None, "#", "%"]),
) | st.builds(Dialect, thousands=st.sampled_from([None, ","]))


@settings(max_examples=tries(sample=40, full=3_000), deadline=None)
@given(
    dialect=DIALECTS,
    rows=st.lists(
        st.fixed_dictionaries({name: st.none() | values for name, values in IN_TEXTS.items()}),
        max_size=4,
    ),
)
def test_what_is_written_as_csv_is_read_back(dialect: Dialect, rows: Rows) -> None:
    with TemporaryDirectory() as folder:
        assert by_csv(Path(folder), dialect, rows) == rows


@settings(max_examples=15, deadline=None)
@given(rows=st.lists(st.fixed_dictionaries(IN_CELLS), max_size=4))
def test_what_is_written_into_a_workbook_is_read_back(rows: Rows) -> None:
    with TemporaryDirectory() as folder:
        assert by_excel(Path(folder), rows) == rows


_CELLS: dict[str, st.SearchStrategy[str]] = {
    "whole": st.integers(-(10**12), 10**12).map(str),
    "money": st.decimals(-(10**9), 10**9, places=2).map(lambda each: f"{each:f}"),
    "day": st.dates().map(date.isoformat),
    "text": st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=5),
    "mixed": st.sampled_from(["", "NA", "-", "1", "1,5", "1.5", "007", "01.02.2026", "true", "x"]),
}


@settings(max_examples=12, deadline=None)
@given(rows=st.lists(st.fixed_dictionaries(_CELLS), min_size=1, max_size=5), delimiter=st.sampled_from(",;\t"))
def test_the_proposal_loads_every_row(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], delimiter: str
) -> None:
    folder = tmp_path_factory.mktemp("inferred")
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(_CELLS), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    found = infer(folder / "rows.csv")
    text = json.dumps({"datasource": {"id": "s", "type": "csv", "options": {"path_prefix": "x", **found.options}}})
    assert not load_definitions([Source("a.yaml", text)], load_datasource=load_datasource)[1]
    options: dict[str, Any] = dict(found.options)
    columns = Columns({column.name: column.kind for column in found.columns})
    (made,) = extract(folder, use_of(columns, "rows.csv", required=found.key), **options)
    assert pq.read_metadata(made).num_rows == len(rows)


@settings(max_examples=200)
@given(whole=st.integers(-(10**15) + 1, 10**15 - 1), scale=st.integers(0, 12))
def test_a_decimal_of_15_digits_is_what_a_workbook_shows(whole: int, scale: int) -> None:
    exact = Decimal(whole).scaleb(-scale)
    assert Decimal(show_number(float(exact))) == exact


@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(0, 6))
def test_decimals_of_15_digits_survive_binary_numbers(digits: int, scale: int) -> None:
    amount = Decimal(digits).scaleb(-scale)
    kind = DecimalType(38, 10)
    column = convert_column([float(amount)], kind, name="x", is_typed=False)
    checked = check_columns([column], {"x": kind}, use=world.use_of({"x": kind}), place="t")
    assert checked.columns[0].to_pylist() == [amount]
