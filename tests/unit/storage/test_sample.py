"""The first rows of what a run wrote, in the types that it recorded."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.storage import Storages, csv, load_stored
from dobonomodo.storage.csv import write_csv
from dobonomodo.storage.csv_dialect import Dialect
from dobonomodo.storage.schema import arrow_type

COLUMNS: dict[str, Type] = {
    "account": TEXT, "amount": DecimalType(19, 2), "wide": DecimalType(38, 10), "count": INTEGER, "day": DATE, "at": TIMESTAMP,
    "done": BOOLEAN,
}  # fmt: skip
ROWS: list[dict[str, Any]] = [
    {
        "account": "006100", "amount": Decimal("875.20"), "wide": Decimal("1234567890123456789012345678.0000000001"), "count": 7,
        "day": date(2026, 1, 31), "at": datetime(2026, 1, 31, 8, tzinfo=UTC), "done": True,
    },
    {
        "account": "1e5", "amount": Decimal("12345678901234567.89"), "wide": Decimal("0E-10"), "count": 2**63 - 1, "day": None, "at": None,
        "done": False,
    },
    {**dict.fromkeys(COLUMNS), "account": ""},
    {**dict.fromkeys(COLUMNS), "account": None},
    {**dict.fromkeys(COLUMNS), "account": "2026-01-01\nNULL,true"},
]  # fmt: skip


def written(root: Path, *, delimiter: str = ",", has_header: bool = True) -> dict[str, Any]:
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in COLUMNS.items()])
    pq.write_table(pa.Table.from_pylist(ROWS, schema), root / "part.parquet")
    (root / "data").mkdir()
    dialect = Dialect(delimiter=delimiter, has_header=has_header)
    write_csv(root / "part.parquet", root / "data" / "part.csv", dialect, columns=COLUMNS, to="out")
    files = {"kind": "csv", "folder": "out", "data": "data", "files": []}
    return {**files, "delimiter": delimiter, "has_header": has_header}


def sample(location: dict[str, Any], rows: int, root: Path) -> list[dict[str, Any]]:
    stored = load_stored(location)
    return Storages(root, {}).of_record(stored).sample(stored, COLUMNS, rows)


@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_values_have_their_recorded_types(tmp_path: Path, delimiter: str, has_header: bool) -> None:
    location = written(tmp_path, delimiter=delimiter, has_header=has_header)
    found = sample(location, 10, tmp_path)
    assert found == ROWS
    assert [str(row["amount"]) for row in found[:2]] == ["875.20", "12345678901234567.89"]
    assert sample(location, 1, tmp_path) == ROWS[:1]


def test_what_a_workbook_was_made_of_is_shown(tmp_path: Path) -> None:
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in COLUMNS.items()])
    (tmp_path / "data").mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS, schema), tmp_path / "data" / "part.parquet")
    location = {"kind": "excel", "folder": "out", "data": "data", "files": []}
    assert sample(location, 10, tmp_path) == ROWS
    assert sample(location, 2, tmp_path) == ROWS[:2]


def test_a_record_that_is_larger_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv, "BLOCK", 64)
    assert sample(written(tmp_path), 10, tmp_path) == ROWS


def test_a_file_that_was_edited_is_shown_as_it_is(tmp_path: Path) -> None:
    location = written(tmp_path)
    (tmp_path / "data" / "part.csv").write_text("account,amount\n1,about 5\n2,6\n")
    assert sample(location, 10, tmp_path) == [{"account": "1", "amount": "about 5"}, {"account": "2", "amount": "6"}]
