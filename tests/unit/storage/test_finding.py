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
from dobonomodo.storage.finding import DamagedFileError, count_rows, find_rows

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


@pytest.mark.parametrize("statistics", [True, False])
def test_rows_are_found_in_every_form_of_storage(tmp_path: Path, statistics: bool) -> None:
    day = datetime(2026, 1, 2, tzinfo=UTC)
    stored = pa.table(
        {
            "code": pa.array(["a", None, "b", "a"]).dictionary_encode(),
            "at": pa.array([day, None, day.replace(hour=1), day], pa.timestamp("ms", "UTC")),
            "fine": pa.array([day, None, day.replace(hour=1), day], pa.timestamp("ns")),
            "n": pa.array([-(2**31), 2**31 - 1, None, 0], pa.int32()),
            "m": pa.array([Decimal("-99.9"), Decimal("99.9"), None, Decimal("0.1")], pa.decimal128(3, 1)),
        }
    )
    pq.write_table(stored, tmp_path / "rows.parquet", write_statistics=statistics)
    types: dict[str, Type] = {"code": TEXT, "at": TIMESTAMP, "fine": TIMESTAMP, "n": INTEGER, "m": DecimalType(15, 2)}

    def numbers(column: str, *values: Value) -> list[int]:
        return [number for number, _ in find_rows(tmp_path / "rows.parquet", types, {column: values})]

    assert (numbers("code", "a"), numbers("code", "a", None), numbers("code", "c")) == ([0, 3], [0, 1, 3], [])
    for column in ("at", "fine"):
        assert numbers(column, as_value(day)) == [0, 3]
        assert numbers(column, as_value(day.replace(hour=1)), None) == [1, 2]
    assert [numbers("n", value) for value in (-(2**31), 2**31 - 1, None, -(2**31) - 1, 2**31)] == [
        [0],
        [1],
        [2],
        [],
        [],
    ]
    assert [numbers("m", Decimal(value)) for value in ("-99.90", "99.9", "0.1", "0.10", "100")] == [
        [0],
        [1],
        [3],
        [3],
        [],
    ]
    ((_, row),) = find_rows(tmp_path / "rows.parquet", types, {"n": [0]})
    assert row == {"code": "a", "at": as_value(day), "fine": as_value(day), "n": 0, "m": Decimal("0.10")}


def test_only_row_groups_that_may_have_a_value_are_read(path: Path, tmp_path: Path) -> None:
    """What is damaged in another row group does not matter."""
    with pq.ParquetFile(path) as file:
        chunk = file.metadata.row_group(0).column(0)
        start, size = chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size
    content = path.read_bytes()
    (tmp_path / "rows.parquet").write_bytes(content[:start] + b"\xff" * size + content[start + size :])

    def numbers(**wanted: list[Value]) -> list[int]:
        return [number for number, _ in find_rows(tmp_path / "rows.parquet", TYPES, wanted)]

    assert (numbers(id=["A3"]), numbers(n=[3, 8]), numbers(n=[Decimal("4.0")]), numbers(id=[None])) == (
        [3],
        [3, 8],
        [4],
        [9],
    )
    assert [number for number, _ in find_rows(tmp_path / "rows.parquet", TYPES, {}, numbers={3, 9})] == [3, 9]
    with pytest.raises(DamagedFileError):
        numbers(id=["A2"])


@pytest.mark.parametrize("damage", ["nothing left", "end cut off", "letters that are none", "no such file"])
def test_a_damaged_file_is_told_from_a_missing_one(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": ["letters"]}), path, compression="none", use_dictionary=False)
    content = path.read_bytes()
    match damage:
        case "nothing left":
            path.write_bytes(b"")
        case "end cut off":
            path.write_bytes(content[:-9])
        case "letters that are none":
            path.write_bytes(content.replace(b"letters", b"\xff\xff\xff\xff\xff\xff\xff"))
        case _:
            path.unlink()
    with pytest.raises(FileNotFoundError if damage == "no such file" else DamagedFileError):
        list(find_rows(path, {"id": TEXT}, {}))
    if damage != "letters that are none":
        with pytest.raises(FileNotFoundError if damage == "no such file" else DamagedFileError):
            count_rows(path)


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pa.array([{"a": 1}]), ["A1"]),
        (pa.array([[1]]), ["A1"]),
        (pa.array([Decimal(10**20)]), []),
    ],
)
def test_a_column_of_another_type_is_damage(tmp_path: Path, column: pa.Array, wanted: list[Value]) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": column}), path)
    with pytest.raises(DamagedFileError):
        list(find_rows(path, {"id": TEXT if wanted else DecimalType(15, 2)}, {"id": wanted} if wanted else {}))


@pytest.mark.parametrize("fault", [ValueError("a bug"), KeyError("a bug")])
def test_our_own_faults_are_not_damage(path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    def fail(*_: object) -> None:
        raise fault

    monkeypatch.setattr(finding, "_take", fail)
    with pytest.raises(type(fault), match="a bug"):
        list(find_rows(path, TYPES, {}))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hundred rows in one row group, every twentieth of one kind."""
    rows = [{"id": "twentieth" if n % 20 == 0 else "other", "n": n} for n in range(200)]
    found = tmp_path_factory.mktemp("finding") / "many.parquet"
    pq.write_table(pa.Table.from_pylist(rows), found)
    return found


@pytest.mark.parametrize("read", [9, 64, 1 << 16])
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
