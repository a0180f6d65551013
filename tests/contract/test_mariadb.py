"""A real MariaDB is read as any database is that SQLAlchemy reaches."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.model import DataSource
from dobonomodo.plan.dataset import Location
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import DataLoad
from dobonomodo.storage.sql import SqlStorage
from dobonomodo.storage.storage import Belongs, Scratch
from tests.mariadb import PASSWORD, MariaDb, mariadb_server
from tests.world import use_of

__all__ = ["mariadb_server"]

pytestmark = pytest.mark.mariadb

CENTS = DecimalType(15, 2)
BELONGS = Belongs(("2026-01",), date(2026, 1, 31))


@dataclass(frozen=True)
class Base:
    """A database of the server, as a storage."""

    server: MariaDb
    name: str
    root: Path
    password: str = PASSWORD

    def execute(self, *statements: str) -> None:
        self.server.execute(*statements, database=self.name)

    @property
    def storage(self) -> SqlStorage:
        (self.root / "secret").write_text(self.password)
        options = {"url": self.server.url(self.name)}
        source = {"id": "base", "type": "sql", "options": options, "credential_ref": "file://secret"}
        return SqlStorage.open(DataSource.from_data(source), root=str(self.root))

    def extract(self, columns: dict[str, Type], **more: Any) -> tuple[list[dict[str, Any]], Any]:
        """The rows in the order of the file, and what is wrong."""
        storage, use = self.storage, use_of(columns, **more)
        (pin,) = storage.pin(use, [Location("base", "table", table="lines")])
        scratch = Scratch(str(self.root / f"reading-{len(list(self.root.iterdir()))}"), "input")
        _, findings = storage.extract(use, pin, scratch, belongs=BELONGS)
        return ([] if findings else pq.read_table(scratch.file(0)).to_pylist()), findings

    def refusal(self, columns: dict[str, Type], **more: Any) -> DataLoad:
        with pytest.raises(RunFailed) as failed:
            self.extract(columns, **more)
        assert isinstance(failed.value.problem, DataLoad)
        return failed.value.problem


@pytest.fixture
def base(mariadb_server: MariaDb, tmp_path: Path) -> Base:
    return Base(mariadb_server, mariadb_server.fresh_database(), tmp_path)


def test_every_type_that_can_be_read(base: Base) -> None:
    base.execute(
        "CREATE TABLE `lines` (a BIGINT, b TINYINT, c BIGINT UNSIGNED, d DECIMAL(38,10), e DECIMAL(5,2), f VARCHAR(20),"
        " g CHAR(3), h LONGTEXT, i BOOLEAN, j DATE, k DATETIME(6), l UUID, m ENUM('x', 'y'), n INT)",
        "INSERT INTO `lines` VALUES (-9223372036854775808, -5, 7, 9999999999999999999999999999.9999999999, -0.10, 'größe 🧾',"
        " 'ab', ' h\\n', 1, '0001-01-01', '9999-12-31 23:59:59.999999', '6f2b5c1e-0000-4000-8000-00000000abcd', 'y', 0)",
        "INSERT INTO `lines` (a) VALUES (1)",
    )
    columns: dict[str, Type] = {
        "a": INTEGER, "b": INTEGER, "c": INTEGER, "d": DecimalType(38, 10), "e": CENTS, "f": TEXT, "g": TEXT, "h": TEXT,
        "i": BOOLEAN, "j": DATE, "k": TIMESTAMP, "l": TEXT, "m": TEXT, "n": BOOLEAN,
    }  # fmt: skip
    rows, findings = base.extract(columns)
    assert not findings
    assert rows == [
        {
            "a": -(2**63), "b": -5, "c": 7, "d": Decimal("9999999999999999999999999999.9999999999"), "e": Decimal("-0.10"),
            "f": "größe 🧾", "g": "ab", "h": " h\n", "i": True, "j": date(1, 1, 1),
            "k": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            "l": "6f2b5c1e-0000-4000-8000-00000000abcd", "m": "y", "n": False,
        },
        {**dict.fromkeys(columns), "a": 1},
    ]  # fmt: skip


def test_every_type_that_holds_something_else(base: Base) -> None:
    stored = {
        "a": "double", "b": "float", "c": "time", "d": "blob", "e": "year(4)", "f": "bit(1)", "g": "decimal(16,2)", "h": "int",
        "i": "datetime", "j": "varchar(9)",
    }  # fmt: skip
    base.execute(f"CREATE TABLE `lines` ({', '.join(f'{name} {kind}' for name, kind in stored.items())})")
    shown = {**stored, "i": "timestamp_ntz", "j": "string"}
    assert base.refusal(dict.fromkeys(stored, CENTS)).differences == tuple(
        f"column `{name}` is {kind}, declared {CENTS}" for name, kind in shown.items()
    )


def test_all_bad_values_at_once(base: Base) -> None:
    base.execute(
        "SET sql_mode = ''",
        "CREATE TABLE `lines` (id INT PRIMARY KEY, day DATE, yes TINYINT, large BIGINT UNSIGNED, small DECIMAL(15,2))",
        "INSERT INTO `lines` VALUES (7, '0000-00-00', 2, 18446744073709551615, NULL), (8, '2026-01-31', 1, 1, 0.01)",
    )
    columns: dict[str, Type] = {"id": INTEGER, "day": DATE, "yes": BOOLEAN, "large": INTEGER, "small": CENTS}
    _, findings = base.extract(columns, required=["small"])
    assert [
        (cell.row, cell.column, cell.value) for cell in sorted(findings.cells, key=lambda cell: cell.column or "")
    ] == [
        ("`id` 7", "day", "0000-00-00"),
        ("`id` 7", "large", "18446744073709551615"),
        ("`id` 7", "small", None),
        ("`id` 7", "yes", "2"),
    ]


def test_the_order_is_not_that_of_the_server(base: Base) -> None:
    texts = ["b", "A", "a", "B", "ä", None, "a ", "Ä", "ae"]
    base.execute("CREATE TABLE `lines` (line VARCHAR(5) COLLATE utf8mb4_german2_ci)")
    values = ", ".join("(NULL)" if text is None else f"('{text}')" for text in texts)
    base.execute(f"INSERT INTO `lines` VALUES {values}")
    rows, _ = base.extract({"line": TEXT})
    assert [row["line"] for row in rows] == ["A", "B", "a", "a ", "ae", "b", "Ä", "ä", None]


def test_times_do_not_depend_on_the_zone_of_the_server(base: Base) -> None:
    base.execute("CREATE TABLE `lines` (id INT, at TIMESTAMP NULL, naive DATETIME)")
    base.execute(
        "SET time_zone = '+00:00'", "INSERT INTO `lines` VALUES (1, '2026-01-31 23:30:00', '2026-01-31 23:30:00')"
    )
    base.execute("SET GLOBAL time_zone = '-05:00'")
    try:
        rows, _ = base.extract({"id": INTEGER, "at": TIMESTAMP, "naive": TIMESTAMP})
    finally:
        base.execute("SET GLOBAL time_zone = '+00:00'")
    moment = datetime(2026, 1, 31, 23, 30, tzinfo=UTC)
    assert rows == [{"id": 1, "at": moment, "naive": moment}]


def test_rows_of_other_periods_and_days_do_not_travel(base: Base) -> None:
    base.execute(
        "CREATE TABLE `lines` (id INT, _period VARCHAR(9), valid_from DATE, valid_to DATE)",
        "INSERT INTO `lines` VALUES (1, '2026-01', '2026-01-31', NULL), (2, '2026-02', '2026-02-01', NULL),"
        " (3, '2026-01', '2026-01-01', '2026-01-31'), (4, NULL, NULL, NULL)",
    )
    columns: dict[str, Type] = {"id": INTEGER, "valid_from": DATE, "valid_to": DATE}
    by_period, _ = base.extract(columns, temporal_mode="period")
    assert [row["id"] for row in by_period] == [1, 3]
    by_day, _ = base.extract(columns, temporal_mode="bitemporal")
    assert [row["id"] for row in by_day] == [1]


def test_another_database_gives_the_same_file(base: Base, tmp_path: Path) -> None:
    made = "CREATE TABLE `lines` (id INTEGER, line VARCHAR(9), amount DECIMAL(15,2))"
    rows = "INSERT INTO `lines` VALUES (2, 'b', 0.10), (1, 'B', -7), (1, 'a', NULL), (1, 'B', -7)"
    base.execute(made, rows)
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute(made)
        connection.execute(rows)
    other = DataSource.from_data({"id": "base", "type": "sql", "options": {"url": "sqlite:///other.db"}})
    found: list[object] = []
    for storage in (base.storage, SqlStorage.open(other, root=str(tmp_path))):
        use = use_of({"id": INTEGER, "line": TEXT, "amount": CENTS})
        (pin,) = storage.pin(use, [Location("base", "table", table="lines")])
        done, _ = storage.extract(use, pin, Scratch(str(tmp_path / str(len(found))), "input"), belongs=BELONGS)
        found.append(done.document()["fingerprint"])
    assert found[0] == found[1]


def test_what_the_server_says(base: Base) -> None:
    answer = base.storage.call()
    assert answer is not None
    assert answer.works
    assert base.refusal({"id": INTEGER}).detail == "table `lines` does not exist"
    secret = "Wrong-pass@word"
    wrong = Base(base.server, base.name, base.root, secret)
    denied = wrong.storage.call()
    assert denied is not None
    assert (denied.works, "Access denied" in denied.detail) == (False, True)
    assert secret not in denied.detail + repr(wrong.storage.connect()) + repr(wrong.refusal({"id": INTEGER}))
