# ruff: noqa: DTZ001 - a time may have no zone

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.storage import first_rows as module
from dobonomodo.storage.first_rows import first_rows, leading_rows, show_value

SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("name", pa.string()), ("amount", pa.decimal128(38, 10)), ("day", pa.date32()),
        ("flag", pa.bool_()), ("at", pa.timestamp("us", tz="UTC")),
    ]
)  # fmt: skip
COLUMNS = SCHEMA.names


def make_row(number: int, chance: random.Random) -> dict[str, Any]:
    row = {
        "id": number,
        "name": chance.choice(["", "a", "ä", "Z", "zz"]),
        "amount": Decimal(chance.randrange(-(10**38), 10**38)).scaleb(-10, Context(prec=38)),
        "day": date(2026, 1, 1 + chance.randrange(3)),
        "flag": chance.random() < 0.5,
        "at": datetime(2026, 1, 1, chance.randrange(3), tzinfo=UTC),
    }
    return {name: None if chance.random() < 0.1 and name != "id" else value for name, value in row.items()}


def write(folder: Path, rows: list[dict[str, Any]], *, parts: int) -> list[Path]:
    paths = []
    for part in range(parts):
        path = folder / f"part-{part}.parquet"
        table = pa.Table.from_pylist(rows[part::parts], schema=SCHEMA)
        pq.write_table(table, path, row_group_size=37)
        paths.append(path)
    return paths


def expect(rows: list[dict[str, Any]], order: list[str], count: int) -> list[tuple[str | None, ...]]:
    def key(row: dict[str, Any]) -> list[Any]:
        names = [*order, *(name for name in COLUMNS if name not in order)]
        # Spark orders texts by their bytes.
        values = [row[name].encode() if isinstance(row[name], str) else row[name] for name in names]
        return [(value is not None, value) for value in values]

    return [tuple(show_value(row[name]) for name in COLUMNS) for row in sorted(rows, key=key)[:count]]


ORDERS = [["id"], ["amount"], ["name", "day"], ["flag", "at", "name"], ["day", "flag"], COLUMNS[1:]]


@pytest.mark.parametrize(
    ("order", "rows"), [*((order, 300) for order in ORDERS), *((ORDERS[3], rows) for rows in (0, 3, 10, 11))]
)
def test_rows_are_the_first_of_all(tmp_path: Path, order: list[str], rows: int) -> None:
    chance = random.Random(rows)
    made = [make_row(number, chance) for number in range(rows)]
    chance.shuffle(made)
    files = write(tmp_path, made, parts=3)
    assert list(first_rows(files, COLUMNS, order=order, count=10)) == expect(made, order, 10)


def test_few_candidates_are_enough_where_keys_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CANDIDATES", 12)
    monkeypatch.setattr(module, "BATCH", 16)
    chance = random.Random(1)
    made = [make_row(number, chance) for number in range(400)]
    made += [{**make_row(0, chance), "id": None} for _ in range(5)]
    chance.shuffle(made)
    files = write(tmp_path, made, parts=2)
    assert list(first_rows(files, COLUMNS, order=["id"], count=10)) == expect(made, ["id"], 10)


@pytest.mark.parametrize("order", [["id"], ["name", "id"], ["at", "id"]])
def test_row_groups_behind_all_candidates_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: list[str]
) -> None:
    """Rows in the order of a key; the last file, whose first value is smaller, is read."""
    monkeypatch.setattr(module, "CANDIDATES", 12)
    read: list[int] = []
    find_near = module._find_near

    def note(rows: pa.Table, best: pa.Table | None, order: list[str]) -> pa.Array:
        read.append(rows.num_rows)
        return find_near(rows, best, order)

    monkeypatch.setattr(module, "_find_near", note)
    chance = random.Random(3)
    made = [
        {**make_row(number, chance), "name": f"n{number:04}", "at": datetime(2026, 1, 1, tzinfo=UTC)}
        for number in range(900)
    ]
    first, second, last = made[100:500], made[500:], made[:100]
    files = [path for at, rows in enumerate((first, second, last)) for path in write_at(tmp_path / str(at), rows)]
    assert list(first_rows(files, COLUMNS, order=order, count=10)) == expect(made, order, 10)
    assert sum(read) < 300 or order[0] == "at"


@pytest.mark.parametrize("candidates", [12, 13])
def test_row_groups_with_the_same_first_value_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, candidates: int
) -> None:
    """The last row of all comes first by the second column."""
    monkeypatch.setattr(module, "CANDIDATES", candidates)
    monkeypatch.setattr(module, "BATCH", 10)
    chance = random.Random(5)
    made = [{**make_row(200 - number, chance), "name": "a"} for number in range(200)]
    files = write(tmp_path, made, parts=1)
    for count in (1, 5, 12):
        assert list(first_rows(files, COLUMNS, order=["name", "id"], count=count)) == expect(
            made, ["name", "id"], count
        )


def write_at(folder: Path, rows: list[dict[str, Any]]) -> list[Path]:
    folder.mkdir()
    return write(folder, rows, parts=1)


def test_columns_of_the_order_need_not_be_shown(tmp_path: Path) -> None:
    made = [{**make_row(number, random.Random(2)), "id": -number} for number in range(20)]
    files = write(tmp_path, made, parts=1)
    assert first_rows(files, ["name"], order=["id"], count=1) == ((made[19]["name"],),)


def test_there_are_no_files() -> None:
    assert first_rows([], ["a"], order=["a"], count=10) == ()
    assert leading_rows([], ["a"], count=10) == ()


def test_rows_may_be_shown_as_they_are_in_their_files(tmp_path: Path) -> None:
    made = [{**make_row(number, random.Random(2)), "id": -number} for number in range(100)]
    files = write(tmp_path, made, parts=2)
    for count in (0, 3, 60, 100, 200):
        expected = tuple((str(row["id"]), row["name"]) for row in (made[0::2] + made[1::2])[:count])
        assert leading_rows(files, ["id", "name"], count=count) == expected


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None), (True, "true"), (7, "7"), (Decimal("1E+3"), "1000"), (Decimal("-0.10"), "-0.10"),
        (date(2026, 1, 31), "2026-01-31"), (datetime(2026, 1, 31, 8, 0, 0, 5, tzinfo=UTC), "2026-01-31T08:00:00.000005Z"),
        (False, "false"), (datetime(2026, 1, 31, 8, tzinfo=timezone(timedelta(hours=2))), "2026-01-31T06:00:00Z"),
        (datetime(2026, 1, 31, 8), "2026-01-31T08:00:00"), ("006100", "006100"), ("x" * 200, "x" * 200), ("x" * 201, "x" * 200 + "…"),
    ],
)  # fmt: skip
def test_values_are_exact_text(value: object, shown: str | None) -> None:
    assert show_value(value) == shown
