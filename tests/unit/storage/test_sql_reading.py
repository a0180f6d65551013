"""How databases are reached, what they say of their columns, and what is asked of them."""

from __future__ import annotations

import errno
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import adbc_driver_duckdb.dbapi
import pytest
from sqlalchemy import event, make_url, types
from sqlalchemy.dialects import mssql, mysql, oracle, registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import Engine
from sqlalchemy.exc import ProgrammingError

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.storage.sql_reading import (
    AdbcDatabase,
    NoFileError,
    Reading,
    SqlDatabase,
    TableColumns,
    UrlDatabase,
    _OpenUrl,
    database_faults,
    is_passing_fault,
    name_type,
    plan_reading,
)
from dobonomodo.storage.storage import Belongs
from tests.world import use_of

CENTS = DecimalType(15, 2)
MADE = """
    CREATE TABLE lines (id INTEGER, line TEXT, amount DECIMAL(15,2), rate REAL, share DOUBLE PRECISION, PRIMARY KEY (line, id));
    INSERT INTO lines VALUES (1, 'a', 0.1, 1, 1), (2, 'b', 7, 1, 1);
    CREATE VIEW totals AS SELECT sum(amount) AS amount, count(*) AS lines FROM lines;
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "a b#ü.db")) as connection:
        connection.executescript(MADE)
    return tmp_path


def databases(root: Path) -> list[SqlDatabase]:
    return [
        UrlDatabase("sqlite:///a b#ü.db", root),
        UrlDatabase(f"sqlite:///{root}/a b#ü.db", root),
        AdbcDatabase("adbc_driver_sqlite", "a b#ü.db", root),
    ]


def read_rows(database: SqlDatabase, table: str, columns: dict[str, Type]) -> list[dict[str, Any]]:
    with database.open() as opened:
        batches = [[each.values.to_pylist() for each in batch] for batch in opened.read(Reading(None, table, columns))]
    return [dict(zip(columns, row, strict=True)) for batch in batches for row in zip(*batch, strict=True)]


class TestSqlite:
    @pytest.fixture(params=[0, 1, 2])
    def database(self, base: Path, request: pytest.FixtureRequest) -> SqlDatabase:
        database: SqlDatabase = databases(base)[request.param]
        return database

    def test_columns(self, database: SqlDatabase) -> None:
        use = use_of({"id": INTEGER, "line": TEXT, "amount": CENTS, "rate": CENTS, "share": CENTS})
        with database.open() as opened:
            found = opened.describe(None, "lines", use)
            assert opened.describe(None, "nowhere", use) is None
            assert opened.describe("main", "lines", use) == found
            assert opened.version().lower().startswith("sqlite 3.")
        assert found is not None
        assert (found.primary_key, found.days) == (("line", "id"), frozenset())
        assert list(found.types) == ["id", "line", "amount", "rate", "share"]
        # Only values tell what is in a column, unless its very type is inexact.
        assert found.types["amount"] == "decimal(15,2)"
        assert found.types["rate"] == "real"
        assert found.types["share"] in ("real", "double precision")

    def test_rows_and_views(self, database: SqlDatabase) -> None:
        columns: dict[str, Type] = {"line": TEXT, "amount": CENTS}
        rows = sorted(read_rows(database, "lines", columns), key=str)
        assert rows == [{"line": "a", "amount": "0.1"}, {"line": "b", "amount": "7"}]
        assert read_rows(database, "totals", {"amount": CENTS}) == [{"amount": "7.1"}]

    def test_it_is_only_read(self, database: SqlDatabase, base: Path) -> None:
        before = sorted(base.iterdir())
        with database.open() as opened:
            with pytest.raises(database_faults()):
                delete_rows(opened)
            assert opened.describe(None, "lines", use_of({})) is not None
        assert sorted(base.iterdir()) == before


def delete_rows(opened: Any) -> None:
    if isinstance(opened, _OpenUrl):
        opened.connection.exec_driver_sql("DELETE FROM lines")
    else:
        with opened.connection.cursor() as cursor:
            cursor.execute("DELETE FROM lines")


@pytest.mark.parametrize(
    "database",
    [
        UrlDatabase("sqlite:///nowhere.db", Path("/nowhere")),
        AdbcDatabase("adbc_driver_sqlite", "nowhere.db", Path("/nowhere")),
        AdbcDatabase("adbc_driver_duckdb", "nowhere.db", Path("/nowhere")),
    ],
    ids=str,
)
def test_a_missing_file_is_not_made(database: SqlDatabase) -> None:
    with pytest.raises(NoFileError) as fault, database.open():
        pass
    assert "/nowhere/nowhere.db" in database.explain(fault.value)


def test_numbers_of_one_column_may_be_stored_in_several_ways(tmp_path: Path) -> None:
    """The driver would guess a type by the first rows, and round what does not fit in it."""
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection, connection:
        connection.execute("CREATE TABLE t (n)")
        values = [(1234567.89,), ("x",), (7,), (None,), (2**53 + 1,), (b"b",), ("",), (1e-300,), (0.1 + 0.2,), ("i5",)]
        connection.executemany("INSERT INTO t VALUES (?)", values)
    expected = ["1234567.89", "x", "7", None, str(2**53 + 1), "?", "", "1e-300", "?", "i5"]
    for database in (UrlDatabase("sqlite:///m.db", tmp_path), AdbcDatabase("adbc_driver_sqlite", "m.db", tmp_path)):
        assert [row["n"] for row in read_rows(database, "t", {"n": CENTS})] == expected


class TestDuckDb:
    @pytest.fixture
    def database(self, tmp_path: Path) -> AdbcDatabase:
        with adbc_driver_duckdb.dbapi.connect(str(tmp_path / "m.db")) as base, base.cursor() as cursor:
            cursor.execute(
                "CREATE TABLE t (a TINYINT, b DECIMAL(4,2), c DOUBLE, d DATE, e TIMESTAMP, f TIMESTAMPTZ, g TIMESTAMP_NS,"
                " h ENUM ('x'), i UUID, j HUGEINT, k UBIGINT, l BLOB, m BOOLEAN, n VARCHAR, o INTEGER)"
            )
            cursor.execute("CREATE SCHEMA s")
            cursor.execute("CREATE TABLE lines AS SELECT 7 AS id, 0.1::DECIMAL(15,2) AS amount")
            cursor.execute("CREATE TABLE s.t (id INTEGER)")
            base.commit()
        return AdbcDatabase("adbc_driver_duckdb", "m.db", tmp_path)

    def test_columns_have_types(self, database: AdbcDatabase) -> None:
        with database.open() as opened:
            found = opened.describe(None, "t", use_of({"o": BOOLEAN}))
            assert opened.describe("s", "t", use_of({})) == TableColumns({"id": "int"})
            assert opened.describe("s", "nowhere", use_of({})) is None
            # After a statement has failed, another one is possible.
            assert opened.describe(None, "t", use_of({"o": BOOLEAN})) == found
        assert found is not None
        assert found.days == {"d"}
        assert " ".join(found.types.values()) == (
            "tinyint decimal(4,2) double date timestamp_ntz timestamp timestamp in nanoseconds string string decimal(38,0) "
            "uint64 binary boolean string boolean"
        )

    def test_values_are_what_the_table_has(self, database: AdbcDatabase) -> None:
        with adbc_driver_duckdb.dbapi.connect(str(database.root / "m.db")) as base, base.cursor() as cursor:
            cursor.execute(
                "INSERT INTO t (a, b, h, i, j, m, n, o) VALUES (1, 12.34, 'x', '00000000-0000-0000-0000-000000000001', 5, true,"
                " 'ü', 1), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
            )
            base.commit()
        columns: dict[str, Type] = {
            "a": INTEGER, "b": DecimalType(4, 2), "h": TEXT, "i": TEXT, "j": DecimalType(38, 0), "m": BOOLEAN, "n": TEXT, "o": BOOLEAN,
        }  # fmt: skip
        first, second = read_rows(database, "t", columns)
        # Whole numbers that are to be booleans are checked as texts.
        assert first == {
            "a": 1, "b": Decimal("12.34"), "h": "x", "i": "00000000-0000-0000-0000-000000000001", "j": Decimal(5), "m": True, "n": "ü",
            "o": "true",
        }  # fmt: skip
        assert second == dict.fromkeys(columns)

    def test_a_table_that_cannot_be_read_is_not_a_missing_one(self, database: AdbcDatabase) -> None:
        with adbc_driver_duckdb.dbapi.connect(str(database.root / "m.db")) as base, base.cursor() as cursor:
            cursor.execute("CREATE VIEW v AS SELECT * FROM lines")
            cursor.execute("DROP TABLE lines")
            base.commit()
        with database.open() as opened:
            with pytest.raises(database_faults()):
                opened.describe(None, "v", use_of({}))
            assert opened.describe(None, "lines", use_of({})) is None
            assert opened.version().startswith("duckdb ")

    def test_it_is_only_read_and_others_may_read_it_too(self, database: AdbcDatabase) -> None:
        with database.open(), database.open() as opened, pytest.raises(database_faults()):
            delete_rows(opened)


class TypedDialect(SQLiteDialect_pysqlite):
    """A database whose columns have types, as most have."""

    name = "typed"
    supports_statement_cache = True


def test_a_database_with_types(tmp_path: Path) -> None:
    registry.register("typed", TypedDialect.__module__, TypedDialect.__name__)
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, p VARCHAR, a DATE, b DATE)")
        connection.execute(
            "INSERT INTO t VALUES (1, 'x', '2026-01-31', NULL), (2, 'x', '2026-01-30', '2026-02-01'), (3, 'x', '2026-02-01', NULL),"
            " (4, 'x', '2026-01-01', '2026-01-31'), (5, 'y', '2026-01-01', NULL), (6, 'x', NULL, NULL)"
        )
    reading = Reading(None, "t", {"id": INTEGER}, ("p", ("x",)), ("a", "b", date(2026, 1, 31)))
    with UrlDatabase(f"typed:///{tmp_path}/t.db", tmp_path).open() as opened:
        found = opened.describe(None, "t", use_of({"id": INTEGER}))
        assert found == TableColumns(
            {"id": "int", "p": "string", "a": "date", "b": "date"}, ("id",), frozenset({"a", "b"})
        )
        assert sorted(each for batch in opened.read(reading) for each in batch[0].values.to_pylist()) == [1, 2]
        # The version would be that of the database that it resembles.
        assert opened.version() == "typed"


def test_a_file_of_duckdb_is_opened_to_be_read_only(tmp_path: Path) -> None:
    (tmp_path / "m.db").touch()
    url, given = UrlDatabase("duckdb:///m.db", tmp_path)._address()
    assert (url.database, given) == (str(tmp_path / "m.db"), {"read_only": True})
    for other in ("duckdb:///:memory:", "postgresql://h/m.db"):
        url, given = UrlDatabase(other, tmp_path)._address()
        assert (url, given) == (make_url(other), {})


class BlindDialect(SQLiteDialect_pysqlite):
    """A dialect that does not know the columns of a table."""

    supports_statement_cache = True

    def get_columns(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def test_a_dialect_that_knows_no_columns(base: Path) -> None:
    registry.register("sqlite.blind", BlindDialect.__module__, BlindDialect.__name__)
    with UrlDatabase("sqlite+blind:///a b#ü.db", base).open() as opened:
        found = opened.describe(None, "lines", use_of({"id": INTEGER, "amount": CENTS}))
    assert found is not None
    assert dict(found.types) == {
        "id": "bigint", "line": "string", "amount": "decimal(15,2)", "rate": "string", "share": "string",
    }  # fmt: skip


number: Callable[[int, int], types.TypeEngine[Any]] = oracle.NUMBER  # it has no types


@pytest.mark.parametrize(
    ("kind", "wanted", "expected"),
    [
        (types.BigInteger(), INTEGER, "bigint"),
        (types.SmallInteger(), INTEGER, "int"),
        (mysql.BIGINT(unsigned=True), INTEGER, "bigint"),
        (mysql.TINYINT(1), BOOLEAN, "boolean"),
        (mysql.TINYINT(1), INTEGER, "int"),
        (mssql.BIT(), BOOLEAN, "boolean"),
        (types.Numeric(15, 2), CENTS, "decimal(15,2)"),
        (types.Numeric(15), CENTS, "decimal(15,0)"),
        (types.Numeric(), CENTS, "decimal(15,2)"),
        (types.Numeric(), INTEGER, "numeric"),
        (types.Numeric(10, 0), INTEGER, "decimal(10,0)"),
        (number(10, 0), INTEGER, "bigint"),
        (number(19, 0), INTEGER, "decimal(19,0)"),
        (number(10, 2), INTEGER, "decimal(10,2)"),
        (number(10, 2), CENTS, "decimal(10,2)"),
        (oracle.DATE(), DATE, "date"),
        (oracle.DATE(), TIMESTAMP, "timestamp_ntz"),
        (types.Date(), TIMESTAMP, "date"),
        (types.DateTime(), DATE, "timestamp_ntz"),
        (types.DateTime(timezone=True), TIMESTAMP, "timestamp"),
        (types.Uuid(), TEXT, "string"),
        (types.Unicode(20), TEXT, "string"),
        (types.Enum("a"), TEXT, "string"),
        (mysql.DOUBLE(), CENTS, "double"),
        (mysql.FLOAT(), CENTS, "float"),
        (types.REAL(), CENTS, "real"),
        (types.Time(), TEXT, "time"),
        (types.LargeBinary(), TEXT, "blob"),
        (mysql.YEAR(), INTEGER, "year"),
        (types.NullType(), TEXT, "of an unknown type"),
    ],
    ids=repr,
)
def test_types_of_other_databases(kind: types.TypeEngine[Any], wanted: Type, expected: str) -> None:
    assert name_type(kind, wanted, mysql.dialect()) == expected


class TestConditions:
    BELONGS = Belongs(("2026-01", "O'Neil"), date(2026, 1, 31))

    def plan(self, mode: Any, *names: str, days: tuple[str, ...] = ()) -> Reading:
        stored = TableColumns(dict.fromkeys(names, "date"), days=frozenset(days))
        use = use_of({"id": INTEGER}, temporal_mode=mode)
        return plan_reading(stored, use, self.BELONGS, schema=None, table="t", columns={"id": INTEGER})

    def test_periods_in_any_spelling(self) -> None:
        assert self.plan("period", "id", "_Period").periods == ("_Period", self.BELONGS.periods)
        assert self.plan("period", "id").periods is None
        assert self.plan(None, "_period").periods is None

    def test_days_that_the_database_compares_as_days(self) -> None:
        pair = ("Valid_From", "valid_to")
        assert self.plan("bitemporal", *pair, days=pair).valid == (*pair, self.BELONGS.as_of)
        assert self.plan("bitemporal", *pair, days=pair[:1]).valid is None
        assert self.plan("bitemporal", *pair).valid is None
        # The first pair that is there decides (C-57).
        assert self.plan("bitemporal", *pair, "_period_from", "_period_to", days=pair).valid is None

    def test_other_rows_do_not_travel(self, tmp_path: Path) -> None:
        rows = (
            "(1, '2026-01', '2026-01-31', NULL), (2, 'O''Neil', '2026-01-31', '2026-02-01'), (3, '2025', NULL, NULL), "
        )
        rows += "(4, '2026-01', '2026-02-01', NULL), (5, '2026-01', '2026-01-01', '2026-01-31')"
        made = "CREATE TABLE t (id INTEGER, p VARCHAR, a DATE, b DATE)"
        with adbc_driver_duckdb.dbapi.connect(str(tmp_path / "m.db")) as base, base.cursor() as cursor:
            cursor.execute(made)
            cursor.execute(f"INSERT INTO t VALUES {rows}")
            base.commit()
        reading = Reading(None, "t", {"id": INTEGER}, ("p", self.BELONGS.periods), ("a", "b", self.BELONGS.as_of))
        with AdbcDatabase("adbc_driver_duckdb", "m.db", tmp_path).open() as opened:
            assert sorted(each for batch in opened.read(reading) for each in batch[0].values.to_pylist()) == [1, 2]
        with closing(sqlite3.connect(tmp_path / "s.db")) as file, file:
            file.execute(made)
            file.execute(f"INSERT INTO t VALUES {rows}")
        only_periods = Reading(None, "t", {"id": INTEGER}, ("p", self.BELONGS.periods))
        for database in (UrlDatabase("sqlite:///s.db", tmp_path), AdbcDatabase("adbc_driver_sqlite", "s.db", tmp_path)):
            with database.open() as opened:
                read = [each for batch in opened.read(only_periods) for each in batch[0].values.to_pylist()]
            assert sorted(map(int, read)) == [1, 2, 4, 5]

    def test_a_period_that_databases_read_in_two_ways_is_not_asked_for(self, tmp_path: Path) -> None:
        """Some take a backslash for an escape; the engine tests the rows that come."""
        with closing(sqlite3.connect(tmp_path / "s.db")) as file, file:
            file.execute("CREATE TABLE t (id INTEGER, p)")
            file.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        database = AdbcDatabase("adbc_driver_sqlite", "s.db", tmp_path)
        for periods, expected in ((("a",), ["1"]), (("a\\", "a"), ["1", "2"])):
            with database.open() as opened:
                (batch,) = opened.read(Reading(None, "t", {"id": TEXT}, ("p", periods)))
            assert batch[0].values.to_pylist() == expected

    def test_a_period_may_be_stored_as_a_number(self, tmp_path: Path) -> None:
        with closing(sqlite3.connect(tmp_path / "s.db")) as file, file:
            file.execute("CREATE TABLE t (id INTEGER, p)")
            file.execute("INSERT INTO t VALUES (1, 2026), (2, '2026'), (3, 2025)")
        reading = Reading(None, "t", {"id": INTEGER}, ("p", ("2026",)))
        for database in (UrlDatabase("sqlite:///s.db", tmp_path), AdbcDatabase("adbc_driver_sqlite", "s.db", tmp_path)):
            with database.open() as opened:
                read = [each for batch in opened.read(reading) for each in batch[0].values.to_pylist()]
            assert sorted(map(int, read)) == [1, 2]


class TestSecrets:
    SECRET = "p@ss:w/o?r#d%40 ü"

    def test_the_password_goes_into_the_url_and_nowhere_else(self, tmp_path: Path) -> None:
        database = UrlDatabase("mysql+pymysql://ann@127.0.0.1:1/base", tmp_path, self.SECRET)
        given: list[Any] = []

        def note(_dialect: Any, _record: Any, _args: Any, kwargs: Any) -> None:
            given.append(kwargs["password"])

        event.listen(Engine, "do_connect", note)
        try:
            with pytest.raises(database_faults()) as fault, database.open():
                pass
        finally:
            event.remove(Engine, "do_connect", note)
        assert given == [self.SECRET]
        assert "127.0.0.1" in database.explain(fault.value)
        assert self.SECRET not in database.explain(fault.value) + repr(database)

    def test_a_driver_that_needs_more(self, tmp_path: Path) -> None:
        def fail(*_: Any) -> None:
            raise RuntimeError("another package is required")

        event.listen(Engine, "do_connect", fail)
        try:
            database = UrlDatabase("mysql+pymysql://ann@127.0.0.1:1/base", tmp_path)
            with pytest.raises(database_faults()) as fault, database.open():
                pass
        finally:
            event.remove(Engine, "do_connect", fail)
        assert database.explain(fault.value) == "another package is required"

    @pytest.mark.parametrize(
        ("url", "password", "expected"),
        [
            ("postgresql://ann@h:5432/d?a=b@c", SECRET, ("postgresql://ann:p%40ss%3Aw%2Fo%3Fr%23d%2540%20%C3%BC@h:5432/d?a=b@c", {})),
            ("ann@account/d", "x", ("ann:x@account/d", {})),
            ("grpc://h:1", SECRET, ("grpc://h:1", {"db_kwargs": {"password": SECRET}})),
            ("postgresql://ann@h/d", None, ("postgresql://ann@h/d", {})),
        ],
    )  # fmt: skip
    def test_a_driver_gets_it_with_the_user_or_beside_the_url(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, password: str | None, expected: object
    ) -> None:
        """A driver that says what it was given."""
        (tmp_path / "adbc_driver_telling").mkdir()
        (tmp_path / "adbc_driver_telling" / "dbapi.py").write_text(
            "def connect(place, **more):\n    raise OSError((place, more))\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        for name in ("adbc_driver_telling", "adbc_driver_telling.dbapi"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        with (
            pytest.raises(database_faults()) as fault,
            AdbcDatabase("adbc_driver_telling", url, tmp_path, password).open(),
        ):
            pass
        assert fault.value.args == (expected,)

    def test_messages_are_the_first_line_that_says_something(self, tmp_path: Path) -> None:
        for database in (UrlDatabase("sqlite:///x", tmp_path), AdbcDatabase("adbc_driver_x", "x", tmp_path, "")):
            assert database.explain(OSError("\n \nno table\nmore")) == "no table"
            assert database.explain(OSError()) == "OSError"
            # As drivers of MySQL have it.
            assert database.explain(ValueError(2003, "no server\nmore")) == "no server"

    def test_messages_do_not_show_it(self, tmp_path: Path) -> None:
        database = AdbcDatabase("adbc_driver_x", "x", tmp_path, self.SECRET)
        for shown in (self.SECRET, "p%40ss%3Aw%2Fo%3Fr%23d%2540%20%C3%BC"):
            assert database.explain(OSError(f"cannot open `{shown}`\nmore")) == "cannot open `***`"


def test_another_try_may_help_where_a_server_did_not_answer(tmp_path: Path) -> None:
    with pytest.raises(database_faults()) as fault, UrlDatabase("mysql+pymysql://ann@127.0.0.1:1/d", tmp_path).open():
        pass
    assert is_passing_fault(fault.value)
    assert is_passing_fault(OSError(errno.ENOSPC, "full"))
    assert not is_passing_fault(NoFileError("there is no file"))
    assert not is_passing_fault(ProgrammingError("SELECT", {}, ValueError()))


def test_engines_leave_no_connection_behind(base: Path) -> None:
    # Warnings about open files and connections are errors here.
    for database in databases(base):
        for _ in range(3):
            read_rows(database, "lines", {"id": INTEGER})
    with closing(sqlite3.connect(base / "a b#ü.db")) as connection, connection:
        connection.execute("DROP VIEW totals")
