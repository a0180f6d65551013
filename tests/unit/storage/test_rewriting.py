"""Files that are written again have the same rows, with columns as a table spells and types them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.problems import RunFailed
from dobonomodo.storage.rewriting import Fit, clear_folder, fit_columns, fit_files, hash_files, rewrite_files

COLUMNS: dict[str, Type] = {
    "Id": INTEGER,
    "region": TEXT,
    "note": TEXT,
    "x.y": TEXT,
    "amount": DecimalType(20, 2),
    "day": DATE,
    "at": TIMESTAMP,
    "flag": BOOLEAN,
}
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "region": pa.string(),
        "note": pa.string(),
        "x.y": pa.string(),
        "amount": pa.decimal128(12, 2),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "flag": pa.bool_(),
    }
)
WITH_DICTIONARY = ["region", "x.y", "day"]


def make_table(start: int, count: int) -> pa.Table:
    rows = [
        {
            "id": at,
            "region": ["north", "süd", None, ""][at % 4],
            "note": f"note {at}" if at % 7 else None,
            "x.y": "a" if at % 2 else None,
            "amount": Decimal(at) / 4 if at % 5 else None,
            "day": date(2026, 1, 1 + at % 28),
            "at": datetime(2026, 1, 1, 0, 0, at % 60, at, tzinfo=UTC),
            "flag": [True, False, None][at % 3],
        }
        for at in range(start, start + count)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def write(path: Path, table: pa.Table, rows: int = 100) -> Path:
    """As Spark writes: its dictionaries have an encoding of their own."""
    pq.write_table(
        table,
        path,
        row_group_size=rows,
        use_dictionary=WITH_DICTIONARY,
        store_schema=False,
        version="1.0",
    )
    return path


def expected(table: pa.Table) -> list[dict[str, object]]:
    return [{"Id": row.pop("id"), **row} for row in table.to_pylist()]


def test_rows_stay_and_columns_are_spelled_and_typed_as_the_table_has_them(tmp_path: Path) -> None:
    tables = [make_table(0, 250), make_table(1_000, 0), make_table(2_000, 1)]
    files = [write(tmp_path / f"{at}.parquet", table) for at, table in enumerate(tables)]
    written = rewrite_files(files, tmp_path / "out", COLUMNS, added=("_run_period", "2026-01"))
    assert [path.name for path in written] == [f"part-{at:05}.parquet" for at in range(3)]
    for path, table in zip(written, tables, strict=True):
        found = pq.read_table(path)
        assert found.to_pylist() == [{**row, "_run_period": "2026-01"} for row in expected(table)]
        assert [str(field.type) for field in found.schema] == [
            "int64", "string", "string", "string", "decimal128(20, 2)", "date32[day]", "timestamp[us, tz=UTC]", "bool",
            "string",
        ]  # fmt: skip


def test_columns_keep_their_dictionaries_and_no_other_begins_one(tmp_path: Path) -> None:
    made = [write(tmp_path / "a.parquet", make_table(0, 250))]
    (path,) = rewrite_files(made, tmp_path / "out", COLUMNS, added=("_run_period", "2026-01"))
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [100, 100, 50]
    for group in groups:
        columns = [group.column(at) for at in range(group.num_columns)]
        kept = {each.path_in_schema for each in columns if each.has_dictionary_page}
        assert kept == {"region", "day", "_run_period"}


def test_a_file_without_any_row_group_stays_one(tmp_path: Path) -> None:
    pq.ParquetWriter(tmp_path / "a.parquet", SCHEMA).close()
    (path,) = rewrite_files([tmp_path / "a.parquet"], tmp_path / "out", COLUMNS, added=("_run_period", "2026-01"))
    found = pq.read_table(path)
    assert (found.num_rows, found.column_names) == (0, [*COLUMNS, "_run_period"])


def test_files_that_fit_are_linked_unless_one_does_not(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{at}.parquet", make_table(at, 3)) for at in range(2)]
    own: dict[str, Type] = {("id" if name == "Id" else name): kind for name, kind in COLUMNS.items()}
    own["amount"] = DecimalType(12, 2)
    linked = fit_files(files, tmp_path / "linked", own)
    assert [path.samefile(file) for path, file in zip(linked, files, strict=True)] == [True, True]
    again = fit_files(files, tmp_path / "again", COLUMNS)
    assert [path.samefile(file) for path, file in zip(again, files, strict=True)] == [False, False]
    assert pq.read_table(again[1]).to_pylist() == expected(make_table(1, 3))


def test_a_value_that_does_not_fit_leaves_no_files(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{at}.parquet", make_table(at, 300)) for at in range(3)]
    with pytest.raises(pa.ArrowInvalid):
        rewrite_files(files, tmp_path / "out", {**COLUMNS, "amount": DecimalType(3, 2)})
    assert not (tmp_path / "out").exists()


def test_columns_are_added_and_widened_beside_rows_that_stay() -> None:
    there: dict[str, Type] = {"Id": INTEGER, "amount": DecimalType(5, 2), "note": TEXT}
    written: list[dict[str, Type]] = [{"id": INTEGER, "amount": DecimalType(9, 4)}, {"new": DATE}]
    wider: dict[str, Type] = {"Id": INTEGER, "amount": DecimalType(9, 4), "note": TEXT, "new": DATE}
    fit = fit_columns(there, written, table="orders")
    assert (list(fit.columns.items()), fit.widened) == (list(wider.items()), frozenset({"amount"}))
    assert fit_columns({}, written[1:], table="orders") == Fit({"new": DATE})
    with pytest.raises(RunFailed) as refused:
        fit_columns(there, [{"note": INTEGER}], table="orders")
    assert "`note`" in str(refused.value.problem)


def test_files_are_hashed_once(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    two.write_bytes(b"")
    hashes = {one: "known"}
    hash_files(hashes, [one, two])
    assert hashes == {one: "known", two: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}


def test_a_folder_is_cleared_before_it_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "c"
    for _ in range(2):
        assert clear_folder(folder) == folder
        assert (folder.exists(), folder.parent.is_dir()) == (False, True)
        (folder / "more").mkdir(parents=True)
        (folder / "more" / "leftover").touch()
