"""Rows of Parquet files by values: what is found is what a scan of all rows would find."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.formula.meaning import Value, as_value
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType, Type
from dobonomodo.storage import finding
from dobonomodo.storage.finding import count_rows, find_rows

TYPES: dict[str, Type] = {
    "id": TEXT,
    "n": INTEGER,
    "m": DecimalType(15, 2),
    "b": BOOLEAN,
    "d": DATE,
    "t": TIMESTAMP,
    "missing": TEXT,
}
AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten rows in row groups of three; the last row has no values."""
    rows = [
        {"ID": f"A{n}", "n": n, "m": Decimal(n), "b": n % 2 == 0, "d": date(2026, 1, n + 1), "t": AT.replace(day=n + 1)}
        for n in range(9)
    ]
    schema = pa.schema(
        {
            "ID": pa.string(),
            "n": pa.int32(),
            "m": pa.decimal128(10, 1),
            "b": pa.bool_(),
            "d": pa.date32(),
            "t": pa.timestamp("us", "UTC"),
        }
    )
    found = tmp_path_factory.mktemp("finding") / "rows.parquet"
    pq.write_table(pa.Table.from_pylist([*rows, {}], schema=schema), found, row_group_size=3)
    return found


@pytest.mark.parametrize(
    ("column", "value", "numbers"),
    [
        ("id", "A4", [4]),
        ("id", "B", []),
        ("id", None, [9]),
        ("n", 4, [4]),
        ("n", Decimal("4.00"), [4]),
        ("n", Decimal("4.5"), []),
        ("n", 2**40, []),
        ("m", Decimal("4.00"), [4]),
        ("m", Decimal("4.04"), []),
        ("m", 10**30, []),
        ("b", True, [0, 2, 4, 6, 8]),
        ("d", as_value(date(2026, 1, 5)), [4]),
        ("t", as_value(AT.replace(day=5)), [4]),
        ("t", as_value(AT.replace(day=5, microsecond=7)), []),
        ("missing", None, list(range(10))),
        ("missing", "x", []),
    ],
)
def test_rows_by_one_column(path: Path, column: str, value: Value, numbers: list[int]) -> None:
    assert [number for number, _ in find_rows(path, TYPES, {column: [value]})] == numbers


def test_rows_by_several_columns_and_values(path: Path) -> None:
    found = find_rows(path, TYPES, {"n": [1, 2, None], "b": [True, None]})
    assert [number for number, _ in found] == [2, 9]


def test_rows_by_their_numbers(path: Path) -> None:
    assert [number for number, _ in find_rows(path, TYPES, {}, numbers={8, 2, 40})] == [2, 8]
    assert [number for number, _ in find_rows(path, TYPES, {"b": [True]}, numbers={1, 2})] == [2]


def test_values_have_the_types_of_their_columns(path: Path) -> None:
    ((_, row),) = find_rows(path, TYPES, {"id": ["A4"]})
    assert row == {
        "id": "A4",
        "n": 4,
        "m": Decimal("4.00"),
        "b": True,
        "d": as_value(date(2026, 1, 5)),
        "t": as_value(AT.replace(day=5)),
    }
    assert str(row["m"]) == "4.00"


def test_only_some_columns(path: Path) -> None:
    ((_, row),) = find_rows(path, TYPES, {"id": ["A4"]}, columns={"n"})
    assert row == {"n": 4}


def test_all_rows(path: Path) -> None:
    assert [row["n"] for _, row in find_rows(path, TYPES, {})] == [*range(9), None]
    assert count_rows(path) == 10


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hundred rows in one row group, every twentieth of one kind."""
    rows = [{"id": "twentieth" if n % 20 == 0 else "other", "n": n} for n in range(200)]
    found = tmp_path_factory.mktemp("finding") / "many.parquet"
    pq.write_table(pa.Table.from_pylist(rows), found)
    return found


@pytest.mark.parametrize("read", [1, 64, 1 << 16])
@pytest.mark.parametrize("few", [0, 5, 100])
def test_rows_are_the_same_however_many_are_read_at_a_time(
    many: Path, monkeypatch: pytest.MonkeyPatch, read: int, few: int
) -> None:
    monkeypatch.setattr(finding, "READ", read)
    monkeypatch.setattr(finding, "FEW", few)

    def numbers(wanted: dict[str, list[Value]], at: set[int] | None = None) -> list[int]:
        return [number for number, _ in find_rows(many, {"id": TEXT, "n": INTEGER}, wanted, numbers=at)]

    assert numbers({"id": ["twentieth"]}) == list(range(0, 200, 20))
    assert numbers({"id": ["twentieth"], "n": [60, 61, 180]}) == [60, 180]
    assert numbers({"n": [7], "id": ["twentieth"]}) == []
    assert numbers({"id": ["twentieth"]}, {20, 21, 199}) == [20]
    assert [row for _, row in find_rows(many, {"id": TEXT, "n": INTEGER}, {"n": [100]}, columns=["id"])] == [
        {"id": "twentieth"}
    ]
