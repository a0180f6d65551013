"""Databases that are only read, as a storage: what must be installed, what answers, what a run is told."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import INTEGER, TEXT, DecimalType
from dobonomodo.model import DataSource
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.problems import Rejected, RunFailed
from dobonomodo.problems.package import PackageMissing
from dobonomodo.problems.run import CELLS_AT_MOST, DataLoad
from dobonomodo.storage import sql, sql_reading
from dobonomodo.storage.extracted import TablePin
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.kept import InputFile
from dobonomodo.storage.sql import SqlStorage, UnknownDialectError, find_missing
from dobonomodo.storage.storage import Belongs, Pin, Scratch
from tests.world import use_of

CENTS = DecimalType(15, 2)
COLUMNS: dict[str, Type] = {"id": INTEGER, "line": TEXT, "amount": CENTS}
BELONGS = Belongs(("2026-01",), date(2026, 1, 1))
OPTIONS = [{"url": "sqlite:///base.db"}, {"url": "base.db", "driver": "adbc_driver_sqlite"}]


@pytest.fixture(params=OPTIONS, ids=["url", "adbc"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> SqlStorage:
    execute(tmp_path, "CREATE TABLE lines (id INTEGER, line TEXT, amount DECIMAL(15,2))")
    return open_storage(tmp_path, request.param)


def open_storage(root: Path, options: dict[str, str], credential_ref: str | None = None) -> SqlStorage:
    source = DataSource.from_data({"id": "base", "type": "sql", "options": options, "credential_ref": credential_ref})
    return SqlStorage.open(source, root=str(root))


def execute(root: Path, *statements: str) -> None:
    with closing(sqlite3.connect(root / "base.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def extract(
    storage: SqlStorage, use: DatasetUse, name: str = "reading", pin: Pin | None = None
) -> tuple[Pin, Any, Path]:
    scratch = Scratch(str(storage.root / name), "input")
    pins = storage.pin(use, [Location("base", "table", table="lines")])
    done, findings = storage.extract(use, pin or pins[0], scratch, belongs=BELONGS)
    return done, findings, Path(scratch.file(0))


def failure(storage: SqlStorage, use: DatasetUse) -> DataLoad:
    with pytest.raises(RunFailed) as failed:
        extract(storage, use)
    assert isinstance(failed.value.problem, DataLoad)
    return failed.value.problem


def test_rows_are_sorted_by_key_and_then_by_everything(storage: SqlStorage) -> None:
    rows = ["(2, 'b', 1)", "(2, 'B', 1)", "(1, 'z', 2)", "(NULL, 'a', 0.1)", "(10, NULL, -5)", "(1, 'z', -1)"]
    seen = set()
    for number, order in enumerate((rows, rows[::-1], sorted(rows))):
        execute(storage.root, "DELETE FROM lines", *(f"INSERT INTO lines VALUES {row}" for row in order))
        _, findings, file = extract(storage, use_of(COLUMNS, natural_key=("ID",)), f"reading-{number}")
        assert not findings
        seen.add(file.read_bytes())
    found = [(row["id"], row["line"], str(row["amount"])) for row in pq.read_table(file).to_pylist()]
    assert found == [
        (1, "z", "-1.00"), (1, "z", "2.00"), (2, "B", "1.00"), (2, "b", "1.00"), (10, None, "-5.00"), (None, "a", "0.10"),
    ]  # fmt: skip
    assert len(seen) == 1


def test_many_rows_come_in_batches(storage: SqlStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_reading, "BATCH", 400)
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)"
    execute(storage.root, f"INSERT INTO lines {many} SELECT 901 - i, 'x' || i, i / 100.0 FROM n")
    _, findings, file = extract(storage, use_of(COLUMNS, natural_key=("id",)))
    table = pq.read_table(file)
    assert not findings
    assert table["id"].to_pylist() == list(range(1, 901))
    assert str(table["amount"][0].as_py()) == "9.00"


def test_no_rows_have_all_columns(storage: SqlStorage) -> None:
    _, findings, file = extract(storage, use_of(COLUMNS))
    assert not findings
    assert pq.read_schema(file).names == list(COLUMNS)


def test_all_bad_cells_at_once_with_the_key_of_their_row(storage: SqlStorage) -> None:
    execute(storage.root, "INSERT INTO lines VALUES (1, 'a', 'x'), (NULL, x'00', 0.001), (3, NULL, 2)")
    execute(storage.root, *["INSERT INTO lines VALUES ('y', 'c', 'z')"] * 30)
    _, findings, file = extract(storage, use_of(COLUMNS, required=["id"], natural_key=("id", "line")))
    assert (dict(findings.counts), len(findings.cells)) == ({"amount": 32, "id": 31, "line": 1}, CELLS_AT_MOST)
    assert [cell.row for cell in findings.cells[:2]] == ["`id` 1, `line` a", "`id` None, `line` ?"]
    assert not file.exists()
    assert not list(file.parent.glob("*.part"))


def test_a_row_without_a_key_has_a_number(storage: SqlStorage) -> None:
    execute(storage.root, "INSERT INTO lines VALUES (1, 'a', 1), (2, 'b', 'x')")
    (cell,) = extract(storage, use_of(COLUMNS))[1].cells
    assert (cell.row, cell.value) == ("row 2", "x")


def test_an_inexact_column_is_refused_whatever_it_holds(storage: SqlStorage) -> None:
    for declared in ("REAL", "FLOAT", "DOUBLE"):
        execute(storage.root, "DROP TABLE lines", f"CREATE TABLE lines (id INTEGER, line TEXT, amount {declared})")
        (difference,) = failure(storage, use_of(COLUMNS)).differences
        assert difference.startswith(f"column `amount` is {declared.lower()}")


def test_a_table_that_is_missing_or_changes(storage: SqlStorage) -> None:
    use = use_of(COLUMNS)
    pinned, _, _ = extract(storage, use, "first")
    assert extract(storage, use, "again", pinned)[0] == pinned
    execute(storage.root, "INSERT INTO lines VALUES (1, 'a', 1)")
    with pytest.raises(RunFailed) as failed:
        extract(storage, use, "later", pinned)
    assert "has changed" in failed.value.problem.message()
    assert extract(storage, use, "first", pinned)[0] == pinned
    execute(storage.root, "DROP TABLE lines")
    assert failure(storage, use).detail == "table `lines` does not exist"
    may_be_missing = use_of(COLUMNS, may_be_missing=True)
    assert storage.pin(may_be_missing, [Location("base", "table", table="lines")]) == ()


def test_a_missing_file_is_no_missing_table(storage: SqlStorage) -> None:
    (storage.root / "base.db").unlink()
    use = use_of(COLUMNS, may_be_missing=True)
    with pytest.raises(RunFailed) as failed:
        storage.pin(use, [Location("base", "table", table="lines")])
    assert "base.db" in failed.value.problem.message()
    assert not isinstance(failed.value.__cause__, FileNotFoundError)
    assert "base.db" in failure(storage, use_of(COLUMNS)).detail
    assert not (storage.root / "base.db").exists()


def test_a_table_with_other_columns_alone(storage: SqlStorage) -> None:
    execute(storage.root, "DROP TABLE lines", "CREATE TABLE lines (_other INTEGER)")
    use = use_of({"id": INTEGER}, optional=frozenset({"id"}))
    assert "none of the declared columns" in failure(storage, use).detail


def test_names_in_the_table(storage: SqlStorage) -> None:
    execute(storage.root, "INSERT INTO lines VALUES (1, 'a', 1)")
    use = use_of({"id": INTEGER, "text": TEXT, "amount": CENTS}, sources={"text": "LINE"})
    _, findings, file = extract(storage, use)
    assert not findings
    assert pq.read_schema(file).names == ["id", "line", "amount"]


def test_what_answers(storage: SqlStorage) -> None:
    answer = storage.call()
    assert answer is not None
    assert answer.works
    assert "3." in answer.detail
    (storage.root / "base.db").write_text("no database, but a file that is long enough to be taken for one" * 20)
    broken = storage.call()
    assert broken is not None
    assert not broken.works


def test_what_was_extracted_is_counted_and_can_be_put_back(storage: SqlStorage) -> None:
    execute(storage.root, "INSERT INTO lines VALUES (1, 'a', 1), (2, 'b', 2)")
    use = use_of(COLUMNS)
    pin, _, file = extract(storage, use)
    scratch = Scratch(str(file.parent), "input")
    assert (list(storage.extracted(pin, scratch)), storage.count(pin, scratch), pin.size) == ([str(file)], 2, 0)
    assert storage.input_files(pin, scratch) == (InputFile(str(file), is_ours=True),)
    execute(storage.root, "DROP TABLE lines")
    kept = Scratch(str(storage.root / "kept"), "input")
    assert storage.from_kept(pin, [str(file)], kept) == pin
    assert Path(kept.file(0)).read_bytes() == file.read_bytes()
    # It is complete, so that the database is not asked.
    assert storage.extract(use, pin, kept, belongs=BELONGS) == (pin, Findings())
    Path(kept.file(0)).unlink()
    with pytest.raises(RunFailed):
        storage.extract(use, pin, kept, belongs=BELONGS)


def test_a_large_table_is_kept_in_several_files(storage: SqlStorage) -> None:
    pin, _, file = extract(storage, use_of(COLUMNS))
    assert isinstance(pin, TablePin)
    other = file.with_name("other.parquet")
    pq.write_table(pq.read_table(file).slice(0, 0).rename_columns(["a", "b", "c"]), other)
    kept = Scratch(str(storage.root / "kept"), "input")
    large = replace(pin, parts=2)
    storage.from_kept(large, [str(file), str(other)], kept)
    assert [Path(each).read_bytes() for each in storage.extracted(large, kept)] == [
        file.read_bytes(),
        other.read_bytes(),
    ]
    done, _ = storage.extract(use_of(COLUMNS), replace(large, fingerprint=None), kept, belongs=BELONGS)
    assert isinstance(done, TablePin)
    assert (done.parts, done.fingerprint == pin.fingerprint) == (2, False)
    for each in (pin, done):
        assert storage.load_pin(each.document()) == each
    assert ("parts" in pin.document(), "parts" in done.document()) == (False, True)


def test_rows_are_numbered_and_remembered_across_batches(storage: SqlStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_reading, "BATCH", 3)
    execute(
        storage.root, *(f"INSERT INTO lines VALUES ({n}, 'a', '{'x' if n in (2, 5, 7) else n}')" for n in range(1, 8))
    )
    _, findings, _ = extract(storage, use_of(COLUMNS))
    assert [cell.row for cell in findings.cells] == ["row 2", "row 5", "row 7"]
    assert dict(findings.counts) == {"amount": 3}


def test_large_tables_are_written_in_row_groups(storage: SqlStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "_ROW_GROUP", 2)
    execute(storage.root, *(f"INSERT INTO lines VALUES ({n}, 'a', {n})" for n in (5, 1, 4, 2, 3)))
    _, _, file = extract(storage, use_of(COLUMNS))
    with pq.ParquetFile(file) as found:
        groups = [found.read_row_group(number)["id"].to_pylist() for number in range(found.num_row_groups)]
    assert groups == [[1, 2], [3, 4], [5]]


def test_nothing_is_written_to_a_database_that_is_only_read(storage: SqlStorage) -> None:
    nothing: Any = None
    for write in (
        lambda: storage.load_stored({}),
        lambda: storage.pin_registered(nothing, nothing),
        lambda: storage.pin_output(nothing, name="x", period="2026-01"),
        lambda: storage.sample(nothing, {}, 1),
        lambda: storage.target(nothing),
        lambda: storage.inspect(nothing, run="r", seq=1),
        lambda: storage.keep(nothing, period="2026-01", run="r", seq=1),
    ):
        with pytest.raises(AssertionError, match="only read"):
            write()


def test_names_of_tables_lead_nowhere_else(storage: SqlStorage) -> None:
    location = Location("base", "table", table="../lines")
    assert (storage.leaves(location), storage.escapes("../lines")) == (False, False)
    pin, _, _ = extract(storage, use_of(COLUMNS))
    assert list(storage.find_changes(pin, listing=True)) == []
    # Options of one location are none of a table.
    assert storage.with_options([("sheet", "x")]) is storage


class TestDrivers:
    @pytest.mark.parametrize(
        ("url", "driver", "modules", "packages"),
        [
            ("mysql+mysqldb://h/d", None, ("MySQLdb",), ("mysqlclient",)),
            ("oracle+oracledb://h/d", None, ("oracledb",), ("oracledb",)),
            ("snowflake://h/d", None, ("snowflake",), ("snowflake-sqlalchemy",)),
            ("x.db", "adbc_driver_snowflake", ("adbc_driver_snowflake",), ("adbc-driver-snowflake",)),
        ],
    )
    def test_what_to_install(
        self, tmp_path: Path, url: str, driver: str | None, modules: tuple[str, ...], packages: tuple[str, ...]
    ) -> None:
        missing = find_missing(url, driver)
        assert missing == PackageMissing(modules=modules, packages=packages)
        assert (missing.hint() or "").startswith(f"pip install {packages[0]}")
        storage = open_storage(tmp_path, {"url": url, **({"driver": driver} if driver else {})})
        with pytest.raises(RunFailed) as failed:
            storage.call()
        assert failed.value.problem == missing

    def test_what_is_installed(self) -> None:
        for options in OPTIONS:
            assert find_missing(options["url"], options.get("driver")) is None

    def test_a_dialect_that_nobody_knows(self, tmp_path: Path) -> None:
        with pytest.raises(UnknownDialectError):
            find_missing("mysq://h/d", None)
        with pytest.raises(Rejected) as refusal:
            open_storage(tmp_path, {"url": "mysql+nobody://h/d"}).connect()
        assert [problem.code for problem in refusal.value.problems] == ["INVALID_VALUE"]

    def test_a_secret_that_is_missing(self, tmp_path: Path) -> None:
        storage = open_storage(tmp_path, OPTIONS[0], "env://DOBO_NO_SUCH_SECRET")
        with pytest.raises(Rejected) as refusal:
            storage.call()
        assert [problem.code for problem in refusal.value.problems] == ["CREDENTIAL_NOT_FOUND"]
