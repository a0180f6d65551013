"""The contract of the storages: what goes out comes back, what is wrong is said, what is published is whole."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from csv import reader
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial, reduce
from itertools import count, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from psycopg import sql
from pyarrow import dataset

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, DECIMAL, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.model.schema import AsOf
from dobonomodo.plan import DatasetUse
from dobonomodo.problems import OperationRef, Rejected
from dobonomodo.problems.run import AppendDataLoad, DataLoad, OutputWrite
from dobonomodo.storage import STORAGES, Pin, WrittenOutput, load_pin, load_stored
from dobonomodo.storage.csv import BLOCK
from dobonomodo.storage.file_storage import file_pin
from dobonomodo.storage.files import PinnedFile, find_changes, pin_files
from dobonomodo.storage.folder import GRACE_SECONDS
from dobonomodo.storage.kept import KeptInputs, hash_file
from dobonomodo.storage.manifest import HIDDEN
from dobonomodo.storage.rows import ROW_NUMBER
from dobonomodo.storage.table_files import stored_files
from tests.contract import storages
from tests.contract.nobody import as_nobody
from tests.contract.read_only import READ_ONLY, execute_in_file, is_duckdb
from tests.contract.storages import (
    PASSWORD_FILE,
    READERS,
    SEQ,
    SERVERS,
    TABLES,
    Fault,
    Row,
    Storage,
    Watch,
    arrow_table,
    failure,
    fault_of,
    in_order,
    open_source,
    publish,
    require_world,
    rows_of,
)
from tests.native.connectors import ICEBERG_CATALOG
from tests.postgresql import PASSWORD, running_server
from tests.world import PERIOD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.object_server import ObjectServer
    from tests.postgresql import Server

TABLE = pytest.param("database", marks=pytest.mark.postgresql)
CATALOGS = [pytest.param(f"table of {form}", marks=pytest.mark.native) for form in ("delta", "iceberg")]
"""Tables of a catalog of Spark, which needs the connectors of their formats."""
KINDS = [
    TABLE if each.kind in SERVERS else each.kind
    for each in STORAGES
    if each.destinations.can_write and each.kind != "table"
] + CATALOGS
"""Every storage that there is and that can be written: one that is new runs through this suite by itself."""
SCHEMA = 'Sch"ä %s ma.'
CATALOG = "sqlite:///catalog.db"

SIMPLE: dict[str, Type] = {"id": INTEGER, "value": TEXT}
"""Enough to tell rows apart."""


def rows(*values: str | None, start: int = 1) -> list[Row]:
    return [{"id": number, "value": value} for number, value in enumerate(values, start)]


_numbers = count(1)


@pytest.fixture(scope="module")
def database(postgresql_server: Server) -> Iterator[str]:
    with postgresql_server.fresh_database() as url:
        yield url


FILES_IN_S3 = ["parquet in S3", "csv in S3"]
"""Files that are not on this machine."""
IN_OBJECT_STORES = [*FILES_IN_S3, "iceberg in S3"]
FILES_IN_HDFS = [pytest.param(f"{kind} in HDFS", marks=pytest.mark.native) for kind in ("parquet", "csv")]


def server_for(request: pytest.FixtureRequest) -> Callable[[], ObjectServer]:
    """Gives the server that a storage of this test is on."""
    name = "hdfs_server" if request.param.endswith(" in HDFS") else "object_server"
    return partial(request.getfixturevalue, name)


def make_storage(
    kind: str,
    root: Path,
    url: str | None = None,
    server: Callable[[], ObjectServer] | None = None,
    spark: Callable[[], SparkSession] | None = None,
) -> Storage:
    """A storage with nothing in it; ``server`` is asked for the object store, where it is in one, ``spark`` for a catalog."""
    if kind.startswith("table of "):
        assert spark is not None
        return make_catalog(kind.removeprefix("table of "), root, spark)
    if kind.endswith((" in S3", " in HDFS")):
        assert server is not None
        running, kind = server(), kind.partition(" ")[0]
        address = f"{running.fresh_bucket()}/some folder/data"
        options = {"path_prefix": address} if kind != "iceberg" else {"uri": CATALOG, "warehouse": address}
        return Storage(root, open_source(kind, **options), server=running)
    require_world(kind.partition(" ")[0])
    if kind in READ_ONLY:
        execute_in_file(root, READ_ONLY[kind], "CREATE TABLE anything (id INTEGER)")
        return Storage(root, open_source("sql", **READ_ONLY[kind]))
    if kind == "iceberg":
        return Storage(root, open_source(kind, uri=CATALOG, warehouse="warehouse"))
    if url is None:
        return Storage(root, open_source(kind, path_prefix="data"))
    (root / PASSWORD_FILE).write_text(PASSWORD + "\n")
    source = open_source(kind, url=url.replace(f":{PASSWORD}", ""), schema=f"{SCHEMA} {next(_numbers)}")
    storage = Storage(root, source, url)
    storage.execute("CREATE SCHEMA {schema}")
    return storage


def make_catalog(form: str, root: Path, spark: Callable[[], SparkSession]) -> Storage:
    """A schema of its own in a catalog that the session knows."""
    catalog = {"delta": "spark_catalog", "iceberg": ICEBERG_CATALOG}[form]
    schema = f"own_{next(_numbers)}"
    spark().sql(f"CREATE SCHEMA {catalog}.{schema}")
    source = open_source("table", catalog=catalog, schema=schema, format=form)
    return Storage(root, source, session=spark)


@pytest.fixture(params=[*KINDS, *IN_OBJECT_STORES, *FILES_IN_HDFS])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return open_storage(request, tmp_path)


def open_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if (
        request.param == IN_OBJECT_STORES[-1]
        and "spark" in request.fixturenames
        and not os.environ.get("DOBO_TEST_ALL")
    ):
        pytest.skip("what Spark reads is the same Parquet as of CSV files on this machine; all with DOBO_TEST_ALL")
    url = request.getfixturevalue("database") if request.param == "database" else None
    session = partial(request.getfixturevalue, "spark")
    return make_storage(request.param, tmp_path, url, server_for(request), session)


@pytest.fixture(params=["parquet", "csv"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """A storage of files."""
    return make_storage(request.param, tmp_path)


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """A storage of tables that are lists of files."""
    return make_storage(request.param, tmp_path)


@pytest.fixture
def parquet(tmp_path: Path) -> Storage:
    return make_storage("parquet", tmp_path)


@pytest.fixture
def csv(tmp_path: Path) -> Storage:
    return make_storage("csv", tmp_path)


@pytest.fixture
def table(tmp_path: Path, database: str) -> Storage:
    return make_storage("database", tmp_path, database)


def test_a_storage_without_a_world_fails_by_name(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="FILE_WORLDS"):
        make_storage("lake", tmp_path)


def test_every_storage_that_is_only_read_takes_part() -> None:
    assert {each.kind for each in STORAGES if not each.destinations.can_write} == READERS
    assert {name.partition(" ")[0] for name in READ_ONLY} == READERS


def is_untyped(storage: Storage) -> bool:
    """Whether the columns of a database have no types that its values follow."""
    return storage.kind in READERS and not is_duckdb(storage.source.options)


def unreadable(storage: Storage, columns: Mapping[str, Type], *names: str, **more: Any) -> DataLoad:
    """The problem of rows that cannot be read, whatever one tries."""
    failed = failure(lambda: storage.extract(storage.use(columns, *names, **more)))
    assert isinstance(failed.problem, DataLoad)
    assert failed.problem.code == "DATA_LOAD"
    assert not failed.retry_helps
    return failed.problem


def unwritable(call: Callable[[], object]) -> OutputWrite:
    failed = failure(call)
    assert isinstance(failed.problem, OutputWrite)
    assert not failed.retry_helps
    return failed.problem


# --- what goes out comes back

TEXTS = [
    None, "", " ", "  lead", "trail \t", "a,b", "a;b", "a\tb", "a|b", 'quo"te', '"', '""', '","', "o'brien", "back`tick",
    "back\\slash", "\\", "\\N", "\\n", "NULL", "null", "NA", "NaN", "None", "N/A", "#N/A", "nan", "-inf", "true", "1.0",
    "0x10", "2026-01-01", "CR\rin", "LF\nin", "CRLF\r\nin", "\n", "\r", "\r\n\r\n", "größe", "日本語", "🧾👩‍👩‍👧", "e\u0301",
    "\u00e9", "\u200b\u202e", "\ufeffbom", "\x01\x7f\x1a", "\u2028\u0085", "=1+1", "${x}", "%s%(a)s", "{}", "#", "--", "x" * 70_000,
]  # fmt: skip
INTEGERS = [0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, None]
WIDE = [Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(0), Decimal(1), Decimal(-(10**37)), None]
PLAIN = [
    Decimal("0E-10"), Decimal("9999999999999999999999999999.9999999999"), Decimal("1E-10"), Decimal("-1E-10"),
    Decimal("-9999999999999999999999999999.9999999999"), Decimal("0.1"), Decimal("1234.5600000000"), Decimal("1E+27"), None,
    Decimal("10000.0001"), Decimal("100000000"), Decimal("-0.0001"),
]  # fmt: skip
SMALL = [Decimal("0." + "9" * 38), Decimal("1E-38"), Decimal("-1E-38"), Decimal("0.5"), Decimal(0)]
CENTS = [Decimal("-999.99"), Decimal("0.00"), Decimal("0.01"), Decimal("100.00"), Decimal("-0.10")]
DAYS = [
    date(1, 1, 1),
    date(9999, 12, 31),
    date(1582, 10, 4),
    date(1582, 10, 15),
    date(1969, 12, 31),
    date(2024, 2, 29),
    None,
]
TIMES = [
    datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), None,
    datetime(1970, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=UTC), datetime(1677, 9, 21, 0, 12, 43, 145224, tzinfo=UTC),
    datetime(2262, 4, 11, 23, 47, 16, 854776, tzinfo=UTC), datetime(1500, 2, 28, 12, tzinfo=UTC),
]  # fmt: skip
HURTFUL: dict[str, tuple[Type, list[Any]]] = {
    "text": (TEXT, TEXTS),
    "whole": (INTEGER, INTEGERS),
    "wide": (DecimalType(38, 0), WIDE),
    "plain": (DECIMAL, PLAIN),
    "small": (DecimalType(38, 38), SMALL),
    "cents": (DecimalType(5, 2), CENTS),
    "digit": (DecimalType(1, 0), [Decimal(9), Decimal(-9), Decimal(0)]),
    "yes": (BOOLEAN, [True, False, None]),
    "day": (DATE, DAYS),
    "time": (TIMESTAMP, TIMES),
}
HURTFUL_COLUMNS: dict[str, Type] = {"id": INTEGER, **{name: kind for name, (kind, _) in HURTFUL.items()}}
HURTFUL_ROWS: list[Row] = [
    {"id": number, **dict(zip(HURTFUL, values, strict=True))}
    for number, values in enumerate(zip_longest(*(values for _, values in HURTFUL.values())))
]
HURTFUL_NAMES = [
    "plain", "Mixed Case", "UPPER", 'quo"te', "o'brien", "dot.ted", "a,b;c|d", "back`tick", "back\\slash", "run_period",
    "dobo_run_period", "größe", "日本", "🧾", "%s", "{x}", "[y]", "select", "$1", "a=b", "(p)", "a/b", "x" * 63,
]  # fmt: skip
HURTFUL_FILES = [
    "_hidden", ".hidden", "a b", "*", "[a]", "{b}", "{a,b}", "x%20y", "größe-🧾", "a'b\"c", "?", "back\\slash", "a+b", "10:30", "${x}",
]  # fmt: skip


class TestRoundTrip:
    def test_every_value_comes_back_as_it_was(self, storage: Storage, spark: SparkSession) -> None:
        storage.put(HURTFUL_ROWS, HURTFUL_COLUMNS, spark=spark)
        assert storage.get(spark, HURTFUL_COLUMNS) == HURTFUL_ROWS

    @pytest.mark.parametrize("options", [{"delimiter": ";"}, {"delimiter": "\t"}, {"has_header": False}], ids=str)
    def test_every_value_comes_back_from_any_csv(
        self, csv: Storage, spark: SparkSession, options: dict[str, Any]
    ) -> None:
        other = csv.with_options(**options)
        other.put(HURTFUL_ROWS, HURTFUL_COLUMNS)
        assert other.get(spark, HURTFUL_COLUMNS) == HURTFUL_ROWS

    def test_every_name_comes_back(self, storage: Storage, spark: SparkSession) -> None:
        columns: dict[str, Type] = {"id": INTEGER, **dict.fromkeys(HURTFUL_NAMES, TEXT)}
        row = {"id": 1, **{name: f"value of {name}" for name in HURTFUL_NAMES}}
        storage.put([row], columns, spark=spark)
        assert storage.get(spark, columns) == [row]

    def test_columns_are_written_in_the_order_that_is_asked_for(self, storage: Storage, spark: SparkSession) -> None:
        columns: dict[str, Type] = {"id": INTEGER, "b": TEXT, "a": TEXT}
        storage.put([{"id": 1, "b": "of b", "a": "of a"}], columns, spark=spark)
        other: dict[str, Type] = {"id": INTEGER, "a": TEXT, "b": TEXT}
        assert storage.get(spark, other) == [{"id": 1, "a": "of a", "b": "of b"}]
        assert list(storage.see(columns)[0]) == ["id", "b", "a"]

    def test_columns_are_found_in_any_case(self, storage: Storage, spark: SparkSession) -> None:
        storage.put(rows("x"), SIMPLE)
        columns: dict[str, Type] = {"ID": INTEGER, "Value": TEXT}
        assert storage.get(spark, columns) == [{"ID": 1, "Value": "x"}]

    @pytest.mark.parametrize(
        ("kind", "values"),
        [(TEXT, [None, "", None, "x", "\n", None]), (INTEGER, [None, 1, None]), (TEXT, [None, None]), (TEXT, [""])],
        ids=str,
    )
    def test_a_single_column_keeps_its_nulls(
        self, storage: Storage, spark: SparkSession, kind: Type, values: list[Any]
    ) -> None:
        columns = {"only": kind}
        storage.put([{"only": value} for value in values], columns)
        (frame,) = storage.frames(spark, storage.use(columns))
        found = [row["only"] for row in rows_of(frame, columns)]
        assert sorted(found, key=repr) == sorted(values, key=repr)

    def test_no_rows_have_all_columns(self, storage: Storage, spark: SparkSession) -> None:
        storage.put([], HURTFUL_COLUMNS, spark=spark)
        (frame,) = storage.frames(spark, storage.use(HURTFUL_COLUMNS))
        assert rows_of(frame, HURTFUL_COLUMNS) == []

    def test_a_text_of_many_megabytes(self, storage: Storage, spark: SparkSession) -> None:
        long = rows("short", "ab\n" * 1_600_000, "short")
        storage.put(long, SIMPLE)
        assert storage.get(spark, SIMPLE) == long

    def test_several_locations_are_several_frames(self, storage: Storage, spark: SparkSession) -> None:
        storage.put(rows("a"), SIMPLE, table="one")
        storage.put(rows("b", "c"), SIMPLE, table="two")
        found = [rows_of(frame, SIMPLE) for frame in storage.frames(spark, storage.use(SIMPLE, "two", "one"))]
        assert [len(each) for each in found] == [2, 1]
        assert found[1] == rows("a")

    def test_a_dataset_that_is_read_several_times_is_opened_once(self, storage: Storage, spark: SparkSession) -> None:
        storage.put(rows("a"), SIMPLE, table="one")
        storage.put(rows("b", "c"), SIMPLE, table="two")
        inputs = storage.inputs()
        first, again, other = (
            storage.use(SIMPLE, name, role="join", alias=alias)
            for name, alias in (("one", "x"), ("one", "y"), ("two", "z"))
        )
        reader = inputs.reader(spark, inputs.extract([first, again, other], inputs.pin([first, again, other])))
        frame = reader.read(first)[0].frame
        assert reader.read(again)[0].frame is frame
        assert len(rows_of(reader.read(other)[0].frame, SIMPLE)) == 2
        joined = frame.alias("x").join(reader.read(again)[0].frame.alias("y"), on="id")
        assert [row.asDict() for row in joined.selectExpr("x.value AS x", "y.value AS y").collect()] == [
            {"x": "a", "y": "a"}
        ]

    def test_system_columns_are_stored_and_come_along(self, storage: Storage, spark: SparkSession) -> None:
        written: dict[str, Type] = {
            **SIMPLE,
            "_row_id": TEXT,
            "_period": TEXT,
            "_created_at": TIMESTAMP,
            "_deleted": BOOLEAN,
        }
        row = {"id": 1, "value": "x", "_row_id": "r", "_period": PERIOD, "_created_at": TIMES[1], "_deleted": False}
        if storage.is_reserving:
            for name in ("_row_id", "_deleted"):
                problem = unwritable(
                    lambda: storage.outputs().check(WrittenOutput(SEQ, storage.write(written), written))
                )
                assert f"`{name}`" in problem.detail
                assert f"{{column: {name}, as: {name[1:]}}}" in problem.detail
                del written[name], row[name]
        storage.put([row], written, spark=spark)
        (frame,) = storage.frames(spark, storage.use(SIMPLE))
        assert rows_of(frame, written) == [row]

    def test_a_registered_dataset_is_found_by_its_record(self, storage: Storage, spark: SparkSession) -> None:
        check_registered(storage, spark)

    def test_a_registered_dataset_may_be_files_without_header(self, csv: Storage, spark: SparkSession) -> None:
        check_registered(csv.with_options(has_header=False), spark)


def check_registered(storage: Storage, spark: SparkSession) -> None:
    """A version is the destination as it was after its run, and stays so (C-64, C-83)."""
    written: dict[str, Type] = {"_labels" if storage.is_reserving else "_row_id": TEXT, "_labels": TEXT, **SIMPLE}
    write = storage.write(written, register_as="made")
    storage.put(rows("other"), written, run="run-0", period="2025-12")
    storage.put(rows("old", start=2), written, register_as="made")
    _, record = storage.outputs().registered(WrittenOutput(SEQ, write, written))
    storage.put(rows("new", start=3), written, run="run-2")
    assert storage.outputs(run="run-2").find_commit(WrittenOutput(SEQ, write, written)) is not None
    use = storage.use(SIMPLE, locations=(), registered=record)
    found = in_order(row for frame in storage.frames(spark, use) for row in rows_of(frame, SIMPLE))
    assert found == [*rows("other"), *rows("old", start=2)]


class TestReadOnly:
    """What somebody else stored, in databases that are only read."""

    @pytest.fixture(params=READ_ONLY)
    def storage(self, request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
        return open_storage(request, tmp_path)

    def test_every_value_is_read_as_it_is(self, storage: Storage, spark: SparkSession) -> None:
        storage.plant(HURTFUL_COLUMNS, HURTFUL_ROWS)
        assert storage.get(spark, HURTFUL_COLUMNS) == HURTFUL_ROWS

    def test_every_name_is_read(self, storage: Storage, spark: SparkSession) -> None:
        columns: dict[str, Type] = {"id": INTEGER, **dict.fromkeys(HURTFUL_NAMES, TEXT)}
        written = [{"id": 1, **{name: name for name in HURTFUL_NAMES}}, {"id": 2, **dict.fromkeys(HURTFUL_NAMES)}]
        storage.plant(columns, written)
        assert storage.get(spark, columns) == written

    def test_rows_of_all_databases_have_the_same_places(self, tmp_path: Path, spark: SparkSession) -> None:
        columns: dict[str, Type] = {"key": TEXT, "n": DecimalType(5, 2), "day": DATE}
        texts = ["b", "A", "a", "B", "ä", None, "a ", "a"]
        stored = [
            {"key": key, "n": Decimal(number), "day": date(2026, 1, 8 - number)} for number, key in enumerate(texts)
        ]
        places, fingerprints = [], set()
        for kind in READ_ONLY:
            for number, order in enumerate((stored, stored[::-1])):
                root = tmp_path / kind / str(number)
                root.mkdir(parents=True)
                storage = make_storage(kind, root)
                storage.plant(columns, order)
                use = storage.use(columns, natural_key=("key",))
                fingerprints.add(storage.extract(use)[0].document()["fingerprint"])
                (frame,) = storage.frames(spark, use)
                found = frame.orderBy(ROW_NUMBER).select("key", "n").collect()
                places.append([(row["key"], int(row["n"])) for row in found])
        expected = [("A", 1), ("B", 3), ("a", 2), ("a", 7), ("a ", 6), ("b", 0), ("ä", 4), (None, 5)]
        assert places == [expected] * len(places)
        assert len(fingerprints) == 1

    def test_rows_of_other_periods_and_days(self, storage: Storage, spark: SparkSession) -> None:
        columns: dict[str, Type] = {**SIMPLE, "_period": TEXT}
        periods = ["2025-12", PERIOD, "2026-02", None]
        storage.plant(columns, [{"id": number, "_period": each} for number, each in enumerate(periods)])
        (frame,) = storage.frames(spark, storage.use(SIMPLE, temporal_mode="period"))
        assert rows_of(frame, columns) == [{"id": 1, "value": None, "_period": PERIOD}]


class TestTools:
    """A destination can be read by tools that know nothing of us."""

    def test_a_folder_of_parquet_is_a_dataset_by_run_period(self, parquet: Storage, spark: SparkSession) -> None:
        parquet.put(rows("a", "b"), SIMPLE, period="2026-01", spark=spark)
        parquet.put(rows("c", start=3), SIMPLE, run="run-2", period="2026-02", spark=spark)
        expected = [
            {"id": number, "value": value, "run_period": period}
            for number, value, period in [(1, "a", "2026-01"), (2, "b", "2026-01"), (3, "c", "2026-02")]
        ]
        path = parquet.folder / "out"
        by_arrow = dataset.dataset(path, format="parquet", partitioning="hive").to_table()
        assert in_order(by_arrow.to_pylist()) == expected
        found = spark.read.parquet(str(path)).selectExpr(
            "id", "value", "date_format(run_period, 'yyyy-MM') AS run_period"
        )
        assert in_order(row.asDict() for row in found.collect()) == expected

    def test_times_are_the_same_for_every_tool(self, parquet: Storage, spark: SparkSession) -> None:
        columns: dict[str, Type] = {"id": INTEGER, "time": TIMESTAMP}
        written = [{"id": number, "time": value} for number, value in enumerate(TIMES)]
        parquet.put(written, columns, spark=spark)
        assert parquet.see(columns) == written

    def test_numbers_in_csv_are_written_plainly(self, csv: Storage) -> None:
        columns: dict[str, Type] = {"id": INTEGER, "amount": DECIMAL}
        amounts = ["0", "0.0000000001", "-0.0000001", "12.5"]
        csv.put([{"id": number, "amount": Decimal(each)} for number, each in enumerate(amounts)], columns)
        found = [row["amount"] for row in csv.see(columns)]
        assert found == ["0.0000000000", "0.0000000001", "-0.0000001000", "12.5000000000"]

    def test_no_file_of_another_kind_lies_beside_the_data(self, folder: Storage, spark: SparkSession) -> None:
        folder.put(rows("a"), SIMPLE, spark=spark)
        (data,) = (folder.folder / "out").iterdir()
        assert {path.suffix for path in data.iterdir()} == {f".{folder.kind}"}
        assert not any(path.name.startswith(("_", ".")) for path in data.iterdir())


# --- what is wrong is said


class TestStrictReading:
    @pytest.fixture(params=[*KINDS, *IN_OBJECT_STORES, *READ_ONLY])
    def storage(self, request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
        """Every storage, also those that are only read."""
        return open_storage(request, tmp_path)

    def test_every_difference_is_listed(self, storage: Storage) -> None:
        storage.plant({"id": INTEGER, "extra": TEXT, "more": INTEGER}, [{"id": 1, "extra": "x", "more": 2}])
        problem = unreadable(storage, {"id": INTEGER, "missing": TEXT, "gone": DATE})
        assert problem.dataset_id == "ds"
        assert problem.differences == (
            "column `missing` is missing",
            "column `gone` is missing",
            "column `extra` is not declared",
            "column `more` is not declared",
        )

    def test_columns_that_differ_in_case_only(self, storage: Storage) -> None:
        if storage.kind in TABLES or storage.kind in READERS:
            pytest.skip("such a table cannot be made")
        storage.plant({"id": INTEGER, "value": TEXT, "VALUE": TEXT}, [{"id": 1}])
        twice = "column `VALUE` occurs twice; names are compared without regard to case"
        assert unreadable(storage, SIMPLE).differences == (twice,)

    def test_a_column_that_must_have_values(self, storage: Storage) -> None:
        storage.plant(SIMPLE, rows("a", None, "c"))
        problem = unreadable(storage, SIMPLE, required=["value"])
        (cell,) = problem.cells
        address = (None, "sheet `Sheet1`, cell B3")
        # Rows that Spark reads by the name of a table have no numbers.
        known = {"csv": (3, None), "excel": address, "table": (None, None)}
        place = known.get(storage.kind, (None, "row 2"))
        assert (cell.column, cell.value, (cell.line, cell.row)) == ("value", None, place)
        assert problem.counts == (("value", 1),)
        storage.extract(storage.use(SIMPLE, required=["id"]))

    def test_a_location_that_is_not_there(self, storage: Storage) -> None:
        if storage.kind not in SERVERS | READERS and not storage.is_remote:
            storage.folder.mkdir(parents=True)
        assert "nowhere" in unreadable(storage, SIMPLE, "nowhere").detail

    def test_a_location_that_may_be_missing(self, storage: Storage) -> None:
        storage.plant(SIMPLE, rows("a"))
        places = (storage.location(), storage.location("nowhere"))
        use = replace(storage.use(SIMPLE, locations=places), may_be_missing=True)
        (pins,) = storage.inputs().pin([use]).values()
        assert [pin.name for pin in pins] == [str(places[0])]
        assert storage.inputs().pin([replace(use, locations=places[1:])])[use.key] == ()

    def test_what_an_append_reads_has_a_code_of_its_own(self, storage: Storage) -> None:
        operation = OperationRef(30, "budget")
        use = storage.use(SIMPLE, "nowhere", role="append", operation=operation)
        failed = failure(lambda: storage.extract(use))
        assert isinstance(failed.problem, AppendDataLoad)
        assert (failed.problem.code, failed.problem.operation) == ("APPEND_008", operation)

    def test_a_datasource_that_is_unknown_or_disabled(self, storage: Storage) -> None:
        unknown = replace(storage.location(), datasource_id="elsewhere")
        assert "`elsewhere`" in unreadable(storage, SIMPLE, locations=(unknown,)).detail
        disabled = replace(storage, source=storage.source.model_copy(update={"status": "disabled"}))
        assert "`src`" in unreadable(disabled, SIMPLE).detail

    @pytest.mark.parametrize(
        ("stored", "declared"),
        [
            (INTEGER, DecimalType(19, 0)),
            (INTEGER, DECIMAL),
            (DecimalType(5, 2), DecimalType(6, 3)),
            (DecimalType(5, 0), DecimalType(38, 10)),
        ],
        ids=str,
    )
    def test_numbers_become_wider(self, storage: Storage, spark: SparkSession, stored: Type, declared: Type) -> None:
        storage.plant({"id": INTEGER, "n": stored}, [{"id": 1, "n": 123}])
        assert storage.get(spark, {"id": INTEGER, "n": declared}) == [{"id": 1, "n": Decimal(123)}]

    @pytest.mark.parametrize(
        ("stored", "declared"),
        [
            (TEXT, INTEGER),
            (INTEGER, TEXT),
            (INTEGER, DecimalType(18, 0)),
            (DecimalType(6, 2), DecimalType(5, 2)),
            (DecimalType(6, 3), DecimalType(7, 2)),
            (DecimalType(5, 0), INTEGER),
            (TIMESTAMP, DATE),
            (DATE, TIMESTAMP),
            (BOOLEAN, INTEGER),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("kind", ["parquet", TABLE, "sql of DuckDB"])
    def test_another_type_is_refused_even_without_rows(
        self, kind: str, tmp_path: Path, request: pytest.FixtureRequest, stored: Type, declared: Type
    ) -> None:
        url = request.getfixturevalue("database") if kind == "database" else None
        storage = make_storage(kind, tmp_path, url)
        storage.plant({"id": INTEGER, "n": stored}, [])
        kind_of_spark = stored.sql.lower()
        assert unreadable(storage, {"id": INTEGER, "n": declared}).differences == (
            f"column `n` is {kind_of_spark}, declared {declared}",
        )

    def test_a_system_column_of_another_type(self, storage: Storage) -> None:
        storage.plant({**SIMPLE, "_deleted": TEXT}, [{"id": 1, "_deleted": "maybe"}])
        problem = unreadable(storage, SIMPLE)
        if storage.is_reserving:
            assert "[_deleted]" in problem.detail
        elif storage.kind in ("csv", "excel") or is_untyped(storage):
            assert "`_deleted`" in problem.detail
        else:
            assert problem.differences == ("system column `_deleted` is string, should be boolean",)


class TestFolders:
    """Which files there are, and what they are called."""

    def test_an_empty_folder_has_no_rows_and_all_columns(self, folder: Storage, spark: SparkSession) -> None:
        (folder.folder / "out").mkdir(parents=True)
        assert folder.get(spark, HURTFUL_COLUMNS) == []
        (frame,) = folder.frames(spark, folder.use(SIMPLE, temporal_mode="period"))
        assert {"_period", ROW_NUMBER} <= set(frame.columns)

    def test_every_file_is_read_and_every_row_has_its_place(self, folder: Storage, spark: SparkSession) -> None:
        names = ["b", "a/deep", "c=1/x", "10", "9"]
        for name in names:
            planted = folder.plant(SIMPLE, rows(f"{name}-1", f"{name}-2"), f"out/{name}")
            planted.rename(planted.parent.with_suffix(f".{folder.kind}"))
            planted.parent.rmdir()
        (frame,) = folder.frames(spark, folder.use(SIMPLE))
        found = frame.selectExpr("value", f"`{ROW_NUMBER}`").collect()
        expected = sorted(f"{name}.{folder.kind}" for name in names)
        for value, place in found:
            name, _, number = value.rpartition("-")
            assert place == 2 * expected.index(f"{name}.{folder.kind}") + int(number) - 1
        assert len(found) == 10

    def test_marks_of_writers_are_no_data(self, folder: Storage, spark: SparkSession) -> None:
        path = folder.plant(SIMPLE, rows("a"))
        for name in ("_SUCCESS", ".rows.crc", "_temporary/0/part.parquet", ".hidden/rows.csv"):
            mark = path.parent / name
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.write_text("no data")
        assert folder.get(spark, SIMPLE) == rows("a")

    def test_files_with_names_chosen_to_hurt(self, folder: Storage, spark: SparkSession) -> None:
        names = [*HURTFUL_FILES, "a", "b", "other"]
        for number, name in enumerate(names, start=1):
            folder.plant(SIMPLE, rows(name, start=number), "staging").rename(folder.folder / name)
        frames = folder.frames(spark, folder.use(SIMPLE, *names))
        found = [frame.selectExpr("*", f"{number} AS location") for number, frame in enumerate(frames, start=1)]
        columns: dict[str, Type] = {**SIMPLE, "location": INTEGER}
        union = reduce(lambda one, other: one.unionByName(other), found).selectExpr(
            "id", "value", "location + 0L AS location"
        )
        assert in_order(rows_of(union, columns)) == [{**row, "location": row["id"]} for row in rows(*names)]

    def test_a_folder_of_files_with_names_chosen_to_hurt(self, folder: Storage, spark: SparkSession) -> None:
        names = sorted(name for name in HURTFUL_FILES if not name.startswith(("_", ".")))
        for number, name in enumerate(names, start=1):
            planted = folder.plant(SIMPLE, rows(name, name, start=2 * number), "staging")
            (folder.folder / "out").mkdir(exist_ok=True)
            planted.rename(folder.folder / "out" / name)
        (frame,) = folder.frames(spark, folder.use(SIMPLE))
        places = frame.selectExpr("id", "value", f"`{ROW_NUMBER}` + 0L AS place")
        assert in_order(rows_of(places, {**SIMPLE, "place": INTEGER})) == [
            {"id": 2 + place, "value": name, "place": place}
            for place, name in enumerate(name for name in names for _ in (0, 1))
        ]

    @pytest.mark.parametrize("name", ["a b", "[a]{b}*%20'größe\\", "10:30"])
    def test_a_workspace_with_a_name_chosen_to_hurt(self, tmp_path: Path, spark: SparkSession, name: str) -> None:
        for kind in ("parquet", "csv"):
            root = tmp_path / kind / name
            root.mkdir(parents=True)
            storage = make_storage(kind, root)
            storage.put(rows("a", "b", "c"), SIMPLE, spark=spark)
            storage.put(rows("d", start=4), SIMPLE, run="run-2", period="2026-02")
            (frame,) = storage.frames(spark, storage.use(SIMPLE))
            assert in_order(rows_of(frame, SIMPLE)) == rows("a", "b", "c", "d")
            assert frame.select(ROW_NUMBER).distinct().count() == 4

    @pytest.mark.parametrize("name", ["a b", "[a]{b}*%20'größe\\", "_under", ".dot", "a.b", "deep/er", "10:30"])
    def test_a_destination_with_a_name_chosen_to_hurt(self, folder: Storage, spark: SparkSession, name: str) -> None:
        folder.put(rows("a"), SIMPLE, table=name, spark=spark if folder.kind == "parquet" else None)
        folder.put(rows("b"), SIMPLE, table="other")
        assert folder.get(spark, SIMPLE, name) == rows("a")
        assert folder.see(SIMPLE, name) == rows("a")

    def test_a_link_that_leads_nowhere(self, folder: Storage) -> None:
        path = folder.plant(SIMPLE, rows("a"))
        broken = path.with_name(f"more.{folder.kind}")
        broken.symlink_to("nowhere")
        assert str(broken) in unreadable(folder, SIMPLE).detail

    def test_links_that_lead_in_a_circle_end(self, folder: Storage, spark: SparkSession) -> None:
        path = folder.plant(SIMPLE, rows("a"))
        (path.parent / "again").symlink_to(path.parent)
        assert folder.get(spark, SIMPLE) == rows("a")

    def test_files_may_have_their_columns_in_any_order(self, folder: Storage, spark: SparkSession) -> None:
        folder.plant(SIMPLE, rows("a"), "out/1")
        folder.plant({"value": TEXT, "id": INTEGER}, rows("b", start=2), "out/2")
        folder.plant({"_labels": TEXT, **SIMPLE}, rows("c", start=3), "out/3")
        assert folder.get(spark, SIMPLE) == rows("a", "b", "c")

    def test_one_wrong_file_among_many(self, folder: Storage) -> None:
        for number in range(3):
            folder.plant(SIMPLE, rows("a"), f"out/{number}")
        wrong = folder.plant({"id": INTEGER, "other": TEXT}, [], "out/zz")
        problem = unreadable(folder, SIMPLE)
        assert str(wrong) in problem.detail
        assert problem.differences == ("column `value` is missing", "column `other` is not declared")


class TestParquetFiles:
    def test_a_file_that_is_cut_off(self, parquet: Storage) -> None:
        path = parquet.plant(SIMPLE, rows("a", "b"))
        path.write_bytes(path.read_bytes()[:-10])
        assert str(path) in unreadable(parquet, SIMPLE).detail

    @pytest.mark.parametrize("content", [b"", b"id,value\n1,a\n", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1"], ids=repr)
    def test_a_file_that_is_no_parquet(self, parquet: Storage, content: bytes) -> None:
        parquet.plant(SIMPLE, rows("a"))
        other = parquet.plant_text(content, "out/readme.txt")
        assert str(other) in unreadable(parquet, SIMPLE).detail

    @pytest.mark.parametrize(
        ("stored", "shown"),
        [
            (pa.float64(), "double"),
            (pa.float32(), "float"),
            (pa.binary(), "binary"),
            (pa.timestamp("ns"), "timestamp in nanoseconds"),
            (pa.list_(pa.int64()), "list<element: int64>"),
            (pa.struct([("a", pa.int64())]), "struct<a: int64>"),
            (pa.uint64(), "uint64"),
        ],
        ids=str,
    )
    def test_types_that_hold_something_else(self, parquet: Storage, stored: pa.DataType, shown: str) -> None:
        table = pa.table({"id": pa.array([], pa.int64()), "n": pa.array([], stored)})
        path = parquet.plant(SIMPLE, [])
        pq.write_table(table, path)
        expected = (f"column `n` is {shown}, declared {DECIMAL}",)
        assert unreadable(parquet, {"id": INTEGER, "n": DECIMAL}).differences == expected

    def test_the_same_in_other_types(self, parquet: Storage, spark: SparkSession) -> None:
        moment = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
        naive = moment.replace(tzinfo=None)
        columns: dict[str, Type] = {
            "id": INTEGER, "small": INTEGER, "tiny": INTEGER, "large": TEXT, "listed": TEXT, "viewed": TEXT,
            "naive": TIMESTAMP, "milli": TIMESTAMP, "zoned": TIMESTAMP,
        }  # fmt: skip
        table = pa.table(
            {
                "id": pa.array([1], pa.int32()),
                "small": pa.array([-(2**15)], pa.int16()),
                "tiny": pa.array([-128], pa.int8()),
                "large": pa.array(["x"], pa.large_string()),
                "listed": pa.array(["y"]).dictionary_encode(),
                "viewed": pa.array(["z"], pa.string_view()),
                "naive": pa.array([naive], pa.timestamp("us")),
                "milli": pa.array([naive], pa.timestamp("ms")),
                "zoned": pa.array([moment], pa.timestamp("us", "America/New_York")),
            }
        )
        pq.write_table(table, parquet.plant(SIMPLE, []))
        assert parquet.get(spark, columns) == [
            {"id": 1, "small": -(2**15), "tiny": -128, "large": "x", "listed": "y", "viewed": "z"}
            | dict.fromkeys(("naive", "milli", "zoned"), moment)
        ]

    @pytest.mark.parametrize("format_", ["int96", "us"])
    def test_old_times_of_other_writers(self, parquet: Storage, spark: SparkSession, format_: str) -> None:
        columns: dict[str, Type] = {"id": INTEGER, "time": TIMESTAMP, "day": DATE}
        old = [each for each in TIMES if each is None or format_ == "us" or 1700 < each.year < 2200]
        stored: list[Row] = [{"id": number, "time": each, "day": date(1, 1, 1)} for number, each in enumerate(old)]
        path = parquet.plant(columns, [])
        pq.write_table(arrow_table(columns, stored), path, use_deprecated_int96_timestamps=format_ == "int96")
        assert parquet.get(spark, columns) == stored

    def test_columns_of_no_concern_may_have_any_type(self, parquet: Storage, spark: SparkSession) -> None:
        table = arrow_table(SIMPLE, rows("a"))
        for name, kind in {
            "_nested": pa.struct([("x.y", pa.int64())]),
            "_ns": pa.timestamp("ns"),
            "_u": pa.uint8(),
        }.items():
            table = table.append_column(name, pa.array([None], kind))
        pq.write_table(table, parquet.plant(SIMPLE, []))
        assert parquet.get(spark, SIMPLE) == rows("a")

    def test_values_are_required_of_files_that_keep_no_count(self, parquet: Storage) -> None:
        columns: dict[str, Type] = {"a": INTEGER, "a.b": TEXT}
        stored: list[Row] = [{"a": 1, "a.b": "x"}, {"a": 2, "a.b": None}]
        pq.write_table(arrow_table(columns, stored), parquet.plant(columns, []), write_statistics=False)
        assert unreadable(parquet, columns, required=["a", "a.b"]).counts == (("a.b", 1),)
        parquet.extract(parquet.use(columns, required=["a"]))

    def test_a_file_that_goes_away_is_missed_whatever_the_session_says(
        self, parquet: Storage, spark: SparkSession
    ) -> None:
        parquet.plant(SIMPLE, rows("a"), "out/1")
        path = parquet.plant(SIMPLE, rows("b"), "out/2")
        setting = "spark.sql.files.ignoreMissingFiles"
        spark.conf.set(setting, "true")
        try:
            (frame,) = parquet.frames(spark, parquet.use(SIMPLE))
            path.unlink()
            with pytest.raises(Exception, match=r"FILE_NOT_EXIST|FAILED_READ_FILE"):
                frame.collect()
        finally:
            spark.conf.unset(setting)


CENT = DecimalType(5, 2)
TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
WRONG: dict[Type, list[str]] = {
    INTEGER: ["1.0", "x", "9223372036854775808", "0x10", "1 2", '""', "1e3", "\u0661", "NULL", "1_000"],
    CENT: [
        "1.234", "1000.00", "1000", "12345", '"1,5"', "NaN", "Infinity", '""', "1e999999999", ".", "9" * 154, "0." + "0" * 40 + "1",
        "340282366920938463463374607431768211457",
    ],
    DecimalType(38, 0): ["1" * 39, "0.5"],
    DECIMAL: ["1" * 29, "0." + "1" * 11],
    BOOLEAN: ["1", "yes", '""', "tRUE"],
    DATE: ["2026-02-30", "2026-1-1", "01.02.2026", "2026-01-01 00:00:00", "0000-01-01", '""', "20260101"],
    TIMESTAMP: [
        "2026-02-30 00:00:00", "2026-01-01 24:00:01", "2026-01-01 00:00:00.1234567", "9999-12-31 23:59:59-10:00", "soon", '""',
        "0001-01-01 00:00:00+01:00",
    ],
}  # fmt: skip
"""What is no value of a type."""
FOREIGN: dict[Type, dict[str, Any]] = {
    INTEGER: {" 7 ": 7, '"7"': 7, "007": 7, "-0": 0},
    CENT: {text: Decimal("1.5") for text in ("1.5", "1.50000000", "+1.5", " 1.5", "15e-1", "0001.5", '"1.5"')},
    DECIMAL: {"0E-10": Decimal(0), "1E+3": Decimal(1000), ".5": Decimal("0.5")},
    BOOLEAN: {"TRUE": True, "False": False, " true": True},
    TIMESTAMP: {
        "2026-01-01": datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T10:00": TEN, "2026-01-01 10:00:00": TEN,
        "2026-01-01 10:00:00.5": TEN.replace(microsecond=500_000), "2026-01-01 10:00:00Z": TEN,
        "2026-01-01T11:30:00+01:30": TEN, "2026-01-01T05:00:00-0500": TEN,
    },
}  # fmt: skip
"""How others write values."""


class TestCsvFiles:
    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("id,value\n1,a\n2\n", 3),
            ("id,value\n1,a\n2,b,c\n", 3),
            ('id,value\n1,"a\nb\r\nc"\n\n\n2,b,c\n', 7),
            ('id,value\r\n1,"a\n\n"\r\n2,b,c\r\n', 5),
            ("id,value\r1,a\r2,b,c\r", 3),
            ('id,value\n1,a "quoted" word\n2\n', 3),
            ("id,value\n" + "1,a\n" * 5000 + "2\n", 5002),
            ("id,value\n" + ('1,"' + "x\n" * 50 + '"\n') * 200 + "2\n", 1 + 200 * 51 + 1),
            ('id,value\n1,"' + "x" * 200_000 + '"\n2\n', 3),
        ],
        ids=range(9),
    )
    def test_another_number_of_fields(self, csv: Storage, text: str, line: int) -> None:
        path = csv.plant_text(text)
        problem = unreadable(csv, SIMPLE, "rows.csv")
        (cell,) = problem.cells
        assert (cell.place, cell.line, cell.column, cell.value) == (str(path), line, None, None)
        assert problem.counts == (("", 1),)

    @pytest.mark.parametrize(
        ("kind", "text"), [(kind, each) for kind, found in WRONG.items() for each in found], ids=str
    )
    def test_a_value_that_is_none_of_its_type(self, csv: Storage, kind: Type, text: str) -> None:
        good_by_type: dict[Type, str] = {BOOLEAN: "true", DATE: "2026-01-01", TIMESTAMP: "2026-01-01 00:00:00"}
        good = good_by_type.get(kind, "1")
        path = csv.plant_text(f'text,n\n"a\nb",{good}\n\nx,{text}\ny,{text}\n')
        problem = unreadable(csv, {"text": TEXT, "n": kind}, "rows.csv")
        value = next(iter(reader([text])))[0]
        shown = value if len(value) <= 60 else f"{value[:60]}..."
        assert [(cell.place, cell.line, cell.column, cell.value) for cell in problem.cells] == [
            (str(path), line, "n", shown) for line in (5, 6)
        ]
        assert problem.counts == (("n", 2),)

    @pytest.mark.parametrize(
        ("kind", "text", "value"), [(kind, *each) for kind, found in FOREIGN.items() for each in found.items()], ids=str
    )
    def test_values_that_others_write(self, csv: Storage, kind: Type, text: str, value: Any) -> None:
        csv.plant_text(f"id,n\n1,{text}\n2,\n")
        assert extracted(csv, {"id": INTEGER, "n": kind}) == [{"id": 1, "n": value}, {"id": 2, "n": None}]

    @pytest.mark.parametrize(
        "text",
        [
            "id,value\n1,a\n2,b\n", "id,value\r\n1,a\r\n2,b\r\n", "\ufeffid,value\n1,a\n2,b\n", "id,value\n1,a\n2,b",
            "id,value\n\n1,a\n\n\n2,b\n\n", '"id","value"\n"1","a"\n"2","b"\n', "value,id\na,1\nb,2\n", "id,value\r1,a\r2,b\r",
            "ID,Value\n1,a\n2,b\n", '\ufeff"id","value"\r\n1,a\r\n2,b',
        ],
        ids=range(10),
    )  # fmt: skip
    def test_files_that_say_the_same(self, csv: Storage, text: str) -> None:
        csv.plant_text(text)
        assert extracted(csv, SIMPLE) == rows("a", "b")

    @pytest.mark.parametrize("text", ["id,value", "id,value\n", "\ufeffid,value\r\n\r\n", '"id","value"'], ids=repr)
    def test_a_header_alone_is_no_rows(self, csv: Storage, text: str) -> None:
        csv.plant_text(text)
        assert extracted(csv, SIMPLE) == []

    @pytest.mark.parametrize("text", ["", "\n\n", "\ufeff"], ids=repr)
    def test_a_file_without_header_may_be_empty(self, csv: Storage, text: str) -> None:
        csv = csv.with_options(has_header=False)
        csv.plant_text(text)
        assert extracted(csv, SIMPLE) == []

    def test_blank_lines_of_a_single_column_are_nulls(self, csv: Storage) -> None:
        csv.plant_text('value\na\n\n""\nb\n\n')
        found = extracted(csv, {"value": TEXT})
        assert [row["value"] for row in found] == ["a", None, "", "b", None]

    def test_the_line_in_a_single_column_counts_its_blank_lines(self, csv: Storage) -> None:
        for text in ("n\n1\n\n\nx\n", "n\n1\n\n\n2,3\n"):
            csv.plant_text(text)
            assert [cell.line for cell in unreadable(csv, {"n": INTEGER}, "rows.csv").cells] == [5]

    @pytest.mark.parametrize("text", ["", "\ufeff"], ids=repr)
    def test_a_file_that_should_have_a_header_and_has_nothing(self, csv: Storage, text: str) -> None:
        path = csv.plant_text(text)
        assert f"`{path}`" in unreadable(csv, SIMPLE, "rows.csv").detail

    def test_a_header_that_is_none(self, csv: Storage) -> None:
        csv.plant_text("1,a\n2,b\n")
        assert unreadable(csv, SIMPLE, "rows.csv").differences == (
            "column `id` is missing",
            "column `value` is missing",
            "column `1` is not declared",
            "column `a` is not declared",
        )

    def test_a_header_where_none_should_be(self, csv: Storage) -> None:
        csv.plant_text("id,value\n1,a\n")
        (cell,) = unreadable(csv.with_options(has_header=False), SIMPLE, "rows.csv").cells
        assert (cell.line, cell.column, cell.value) == (1, "id", "id")

    def test_another_delimiter(self, csv: Storage) -> None:
        csv.plant_text("id;value\n1;a\n")
        problem = unreadable(csv, SIMPLE, "rows.csv")
        assert (problem.diagnosis, problem.differences) == ("separator", ())
        assert unreadable(csv.with_options(has_header=False), SIMPLE, "rows.csv").diagnosis == "separator"
        assert extracted(csv.with_options(delimiter=";"), SIMPLE) == rows("a")

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            (b"id,value\n1,a\n2,gr\xf6\xdfe\n", 3),
            (b'id,value\n1,"a\n\n"\n2,ok\n3,\xff\xfe\n', 6),
            ("id,value\n1,a\n".encode("utf-16"), 1),
            (b"id,val\xfce\n1,a\n", 1),
            (b"id,value\n\xff,a\n", 2),
            (b"id,value\n1,\xed\xa0\x80\n", 2),
        ],
        ids=range(6),
    )
    def test_bytes_that_are_not_utf_8(self, csv: Storage, content: bytes, line: int) -> None:
        path = csv.plant_text(content)
        problem = unreadable(csv, SIMPLE, "rows.csv")
        assert problem.diagnosis == "encoding"
        assert f"`{path}`, line {line}:" in problem.detail

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ('id,value\n1,a\n2,"b\n3,c\n', 3),
            ('id,value\n1,a\n2,b\n3,"c', 4),
            ('id,value\n1,a\n2,b\n3,"', 4),
            ('id,value\n1,a\n"2,b\n3,c\n', 3),
            ('id,value\n1,5" pipe\n2,"b\n3,c\n', 3),
            ('id,value\n1,"a""\n2,b\n3,c\n', 2),
        ],
        ids=range(6),
    )
    def test_a_quote_that_is_not_closed(self, csv: Storage, text: str, line: int) -> None:
        path = csv.plant_text(text)
        assert f"`{path}`, line {line}:" in unreadable(csv, SIMPLE, "rows.csv").detail

    @pytest.mark.parametrize("text", ['id,"value\n1,a\n', 'id,"value'], ids=repr)
    def test_a_quote_that_is_not_closed_in_the_header(self, csv: Storage, text: str) -> None:
        path = csv.plant_text(text)
        assert f"`{path}`, line 1" in unreadable(csv, SIMPLE, "rows.csv").detail

    def test_a_quote_that_is_not_closed_in_a_single_column(self, csv: Storage) -> None:
        path = csv.plant_text('value\na\n"b\nc\n')
        assert f"`{path}`, line 3:" in unreadable(csv, {"value": TEXT}, "rows.csv").detail

    def test_quotes_inside_a_value_are_quotes(self, csv: Storage) -> None:
        csv.plant_text('id,value\n1,5" pipe\n2,"6"" pipe"\n3,a "b" c\n')
        assert extracted(csv, SIMPLE) == rows('5" pipe', '6" pipe', 'a "b" c')

    def test_rows_on_both_sides_of_a_block(self, csv: Storage) -> None:
        written = rows(*(f'{number} "x", \n' + "y" * (2_000 + number % 97) for number in range(2_500)))
        text = "id,value\n" + "".join('{id},"{0}"\n'.format(row["value"].replace('"', '""'), **row) for row in written)
        assert len(text) > BLOCK
        csv.plant_text(text + "x,y\n")
        (cell,) = unreadable(csv, SIMPLE, "rows.csv").cells
        assert (cell.line, cell.column) == (5002, "id")
        csv.plant_text(text)
        assert extracted(csv, SIMPLE) == written


def extracted(storage: Storage, columns: Mapping[str, Type], name: str = "rows.csv") -> list[Row]:
    """The rows of a CSV file as they were turned into Parquet, which Spark then reads."""
    inputs = storage.inputs(f"reading-{time.monotonic_ns()}")
    use = storage.use(columns, name)
    storage.extract(use, inputs=inputs)
    (path,) = (storage.root / ".dobo" / "runs").glob("reading-*/inputs/*.parquet")
    found: list[Row] = (
        pq.read_table(path).rename_columns(list(_in_file_order(path, columns))).select(list(columns)).to_pylist()
    )
    shutil.rmtree(storage.root / ".dobo")
    return found


def _in_file_order(path: Path, columns: Mapping[str, Type]) -> Iterator[str]:
    spelled = {name.casefold(): name for name in columns}
    yield from (spelled[name.casefold()] for name in pq.read_schema(path).names)


@pytest.mark.postgresql
class TestTables:
    def test_other_types_of_the_same_values(self, table: Storage, spark: SparkSession) -> None:
        columns: dict[str, Type] = {
            "id": INTEGER, "small": INTEGER, "short": TEXT, "fixed": TEXT, "uid": TEXT, "naive": TIMESTAMP,
            "free": DECIMAL, "limited": DecimalType(10, 2), "plenty": DecimalType(38, 0),
        }  # fmt: skip
        uid = "6f2b5c1e-0000-4000-8000-00000000abcd"
        row = {
            "id": 1, "small": -5, "short": "varchar", "fixed": "ab", "uid": uid, "naive": datetime(2026, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001
            "free": Decimal("12.5"), "limited": Decimal("1.5"), "plenty": Decimal(10**38 - 1),
        }  # fmt: skip
        nulls = {**dict.fromkeys(columns), "id": 2}
        table.plant(
            columns, [row, nulls], id="integer", small="smallint", short="varchar(20)", fixed="char(5)", uid="uuid",
            naive="timestamp", free="numeric", limited="numeric(4,1)", plenty="numeric",
        )  # fmt: skip
        expected = {**row, "naive": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)}
        assert table.get(spark, columns) == [expected, nulls]

    def test_a_number_without_limits_that_does_not_fit(self, table: Storage) -> None:
        table.plant({"id": INTEGER, "n": DECIMAL}, [], n="numeric")
        for value in ("NaN", "Infinity", "-Infinity", "1.23456", "1e30", "12345678901234567890123456789"):
            table.execute(f"TRUNCATE {{0}}; INSERT INTO {{0}} VALUES (1, 1.5), (2, '{value}')", "out")
            (cell,) = unreadable(table, {"id": INTEGER, "n": DecimalType(32, 4)}).cells
            assert (cell.place, cell.row, cell.column) == ("out", "row 2", "n")
            assert cell.value == f"{Decimal(value):f}"

    def test_numbers_that_128_bits_do_not_hold(self, table: Storage) -> None:
        table.plant({"id": INTEGER, "n": DECIMAL}, [], n="numeric")
        wrong = ["340282366920938463463374607431768211457", "9" * 60, "0." + "0" * 40 + "1"]
        for number, value in enumerate(["1.5", *wrong]):
            table.execute(f"INSERT INTO {{}} VALUES ({number}, {value})", "out")
        problem = unreadable(table, {"id": INTEGER, "n": DecimalType(15, 2)}, natural_key=("id",))
        assert [(cell.row, cell.value) for cell in problem.cells] == [
            (f"`id` {number}", value) for number, value in enumerate(wrong, start=1)
        ]
        assert problem.counts == (("n", 3),)

    @pytest.mark.parametrize(
        ("kind", "declared"), [(DATE, "date"), (TIMESTAMP, "timestamptz"), (TIMESTAMP, "timestamp")]
    )
    def test_days_outside_of_the_calendar(self, table: Storage, kind: Type, declared: str) -> None:
        columns = {"id": INTEGER, "when": kind}
        table.plant(columns, [], when=declared)
        for value in ("infinity", "-infinity", "10000-01-01", "0044-03-15 BC", "0001-12-31 BC"):
            table.execute(f"TRUNCATE {{0}}; INSERT INTO {{0}} VALUES (1, '2026-01-01'), (2, '{value}')", "out")
            (cell,) = unreadable(table, columns).cells
            assert cell.column == "when"

    def test_types_that_hold_something_else(self, table: Storage) -> None:
        stored = {
            "a": "double precision", "b": "real", "c": "money", "d": "bytea", "e": "jsonb", "f": "integer[]", "g": "interval",
            "h": "time without time zone", "i": "xml",
        }  # fmt: skip
        columns: dict[str, Type] = {"id": INTEGER, **dict.fromkeys(stored, DECIMAL)}
        table.plant(columns, [], **stored)
        assert unreadable(table, columns).differences == tuple(
            f"column `{name}` is {shown}, declared {DECIMAL}" for name, shown in stored.items()
        )

    def test_a_number_without_limits_is_no_integer(self, table: Storage) -> None:
        table.plant(SIMPLE, [], id="numeric")
        assert unreadable(table, SIMPLE).differences == ("column `id` is numeric, declared integer",)

    def test_a_table_without_a_schema_is_found_where_the_database_looks(
        self, table: Storage, database: str, spark: SparkSession
    ) -> None:
        address = database.replace(f":{PASSWORD}", "")
        plain = replace(table, source=open_source("database", url=address))
        name = f"Plain {next(_numbers)}"
        plain.put(rows("a"), SIMPLE, table=name)
        assert plain.get(spark, SIMPLE, name) == rows("a")

    def test_a_view_is_read_as_a_table(self, table: Storage, spark: SparkSession) -> None:
        table.plant(SIMPLE, rows("a", "b"))
        table.execute("CREATE VIEW {} AS SELECT * FROM {} WHERE id > 1", "seen", "out")
        assert table.get(spark, SIMPLE, "seen") == rows("b", start=2)

    def test_a_name_that_is_cut_off_is_not_another_table(self, table: Storage) -> None:
        table.plant(SIMPLE, rows("a"), "x" * 63)
        assert "x" * 64 in unreadable(table, SIMPLE, "x" * 64).detail

    def test_rows_have_the_same_place_however_they_lie_in_the_table(self, table: Storage, spark: SparkSession) -> None:
        values = ["b", "A", "a", "B", "ä", None]
        fingerprints = []
        for order in (values, values[::-1]):
            table.execute("DROP TABLE IF EXISTS {}", "out")
            table.plant({"value": TEXT}, [{"value": value} for value in order])
            use = table.use({"value": TEXT})
            fingerprints.append(table.extract(use)[0].document()["fingerprint"])
            (frame,) = table.frames(spark, use)
            found = [row["value"] for row in frame.orderBy(ROW_NUMBER).select("value").collect()]
            assert found == ["A", "B", "a", "b", "ä", None]
        assert fingerprints[0] == fingerprints[1]

    def test_rows_that_share_a_key_have_the_same_place_too(self, table: Storage) -> None:
        """C-85: by the natural key, then by all columns."""
        found = [{"id": key, "value": value} for key, value in ((2, "b"), (1, "d"), (1, "a"), (None, "c"), (None, "b"))]
        fingerprints = []
        for order in (found, found[::-1]):
            table.execute("DROP TABLE IF EXISTS {}", "out")
            table.plant(SIMPLE, order)
            use = table.use(SIMPLE, natural_key=("id",))
            fingerprints.append(table.extract(use)[0].document()["fingerprint"])
        assert fingerprints[0] == fingerprints[1]

    def test_rows_of_other_periods_do_not_travel(self, table: Storage, spark: SparkSession) -> None:
        columns: dict[str, Type] = {**SIMPLE, "_period": TEXT}
        periods = ["2025-12", PERIOD, "2026-02", None]
        table.plant(columns, [{"id": number, "_period": each} for number, each in enumerate(periods)])
        (frame,) = table.frames(spark, table.use(SIMPLE, temporal_mode="period"))
        assert rows_of(frame, columns) == [{"id": 1, "value": None, "_period": PERIOD}]

    def test_rows_of_other_days_do_not_travel(self, table: Storage, spark: SparkSession) -> None:
        """Each reading has a day of its own (C-94), and `_period_from` goes before `valid_from` (C-57)."""
        columns: dict[str, Type] = {"id": INTEGER, "valid_from": DATE, "valid_to": DATE}
        stored: dict[str, Type] = {**columns, "_period_from": DATE, "_period_to": DATE}
        first, last, never = date(2026, 1, 1), date(2026, 1, 31), date(2030, 1, 1)
        table.plant(
            stored,
            [
                {"id": 1, "_period_from": first, "_period_to": last, "valid_from": never},
                {"id": 2, "_period_from": last, "valid_from": first},
            ],
        )
        use = table.use(columns, temporal_mode="bitemporal")
        days: dict[AsOf | None, int] = {None: 1, "period_start": 1, "period_end": 2}
        for as_of, expected in days.items():
            (frame,) = table.frames(spark, replace(use, as_of=as_of))
            assert [row["id"] for row in rows_of(frame, stored)] == [expected]

    @pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Auckland"])
    def test_days_do_not_depend_on_the_zone_of_the_server(
        self, table: Storage, database: str, spark: SparkSession, zone: str
    ) -> None:
        columns: dict[str, Type] = {"id": INTEGER, "valid_from": TIMESTAMP, "valid_to": TIMESTAMP}
        day = datetime(2026, 1, 1, tzinfo=UTC)
        hour = timedelta(hours=1)
        table.plant(
            columns,
            [
                {"id": 1, "valid_from": day + 23 * hour, "valid_to": day + 25 * hour},
                {"id": 2, "valid_from": day - 24 * hour, "valid_to": day + 23 * hour},
                {"id": 3, "valid_from": day + 24 * hour, "valid_to": None},
            ],
        )
        name = database.rpartition("/")[2]
        with table.connect() as connection:
            connection.execute(f"ALTER DATABASE {name} SET timezone = '{zone}'")
        try:
            (frame,) = table.frames(spark, table.use(columns, temporal_mode="bitemporal"))
            assert [row["id"] for row in rows_of(frame, columns)] == [1]
        finally:
            with table.connect() as connection:
                connection.execute(f"ALTER DATABASE {name} RESET timezone")

    def test_a_table_that_changed_since_it_was_pinned(self, table: Storage) -> None:
        table.plant(SIMPLE, rows("a"))
        use = table.use(SIMPLE)
        (pinned,) = table.extract(use)
        inputs = table.inputs("again")
        assert inputs.extract([use], {use.key: (pinned,)})[use.key] == (pinned,)
        table.execute("UPDATE {} SET value = 'b'", "out")
        failed = failure(lambda: table.inputs("once-more").extract([use], {use.key: (pinned,)}))
        assert (failed.problem.code, failed.retry_helps) == ("DATA_LOAD", False)
        # What is already extracted is what the run goes on with.
        assert inputs.extract([use], {use.key: (pinned,)})[use.key] == (pinned,)

    def test_other_ways_to_read_it_give_the_same_file(self, table: Storage) -> None:
        columns: dict[str, Type] = {
            "id": INTEGER, "text": TEXT, "n": DecimalType(15, 2), "free": DECIMAL, "yes": BOOLEAN, "day": DATE, "time": TIMESTAMP,
        }  # fmt: skip
        row = {"n": Decimal("-0.10"), "free": Decimal("12.5"), "yes": True, "day": DAYS[0], "time": TIMES[5]}
        table.plant(columns, [{"id": 2, "text": "B", **row}, {"id": 2, "text": "a", **row}, {"id": 1}], free="numeric")
        (pin,) = table.extract(use := table.use(columns, natural_key=("id",)))
        options = table.source.options
        by_url = {**options, "url": options["url"].replace("postgresql://", "postgresql+psycopg://")}
        for given in (by_url, {**options, "driver": "adbc_driver_postgresql"}):
            source = open_source("sql", credential_ref=f"file://{PASSWORD_FILE}", **given)
            (other,) = replace(table, source=source).extract(use)
            assert other.document() == {**pin.document(), "kind": "sql"}

    def test_the_password_is_shown_nowhere(self, table: Storage, tmp_path: Path) -> None:
        secret = "Wrong-pass'word%40\"@:/ 7"
        (tmp_path / PASSWORD_FILE).write_text(secret)
        target = table.target(SIMPLE)
        shown = [repr(target), repr(table.source)]
        for call in (
            lambda: table.extract(table.use(SIMPLE)),
            lambda: table.outputs().check(WrittenOutput(SEQ, table.write(SIMPLE), SIMPLE)),
            lambda: table.put(rows("a"), SIMPLE),
        ):
            failed = failure(call)
            shown += [str(failed), repr(failed), repr(failed.problem), *traceback.format_exception(failed)]
        assert "password authentication failed" in "".join(shown)
        quoted = secret.replace("%", "%25").replace(" ", "%20").replace("/", "%2F")
        assert not [text for text in shown if secret in text or quoted in text or "Wrong-pass" in text]

    def test_a_password_with_every_character(self, table: Storage, tmp_path: Path, spark: SparkSession) -> None:
        secret, user = "p@ss:w/o?r#d%40 \"'\\&=+ü", f"user_{next(_numbers)}"
        with table.connect() as connection:
            connection.execute(f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD " + "'" + secret.replace("'", "''") + "'")
        (tmp_path / PASSWORD_FILE).write_text(secret)
        options = table.source.options
        address = re.sub(r"//[^@]*@", f"//{user}@", options["url"])
        other = replace(table, source=open_source("database", **{**options, "url": address}))
        try:
            other.put(rows("a"), SIMPLE)
            assert other.get(spark, SIMPLE) == rows("a")
        finally:
            with table.connect() as connection:
                connection.execute(f"REASSIGN OWNED BY {user} TO CURRENT_USER")
                connection.execute(f"DROP ROLE {user}")

    def test_a_secret_that_is_missing(self, table: Storage, tmp_path: Path) -> None:
        (tmp_path / PASSWORD_FILE).unlink()
        with pytest.raises(Rejected) as refusal:
            table.extract(table.use(SIMPLE))
        (problem,) = refusal.value.problems
        assert problem.code == "CREDENTIAL_NOT_FOUND"


# --- what is published is whole


def expire(storage: Storage) -> None:
    """Have all that was replaced be replaced long ago."""
    if storage.kind == "database":
        return
    if storage.server is not None:
        storage.server.age(storage.address, timedelta(seconds=2 * GRACE_SECONDS))
        return
    long_ago = time.time() - 2 * GRACE_SECONDS
    for mark in (storage.folder / HIDDEN).glob("*/*/replaced"):
        os.utime(mark, (long_ago, long_ago))


class TestPublishing:
    def test_replace_replaces_the_rows_of_its_period_alone(self, storage: Storage, spark: SparkSession) -> None:
        storage.put(rows("a", "b"), SIMPLE, run="run-1", period="2026-01", spark=spark)
        storage.put(rows("c", start=3), SIMPLE, run="run-2", period="2026-02", spark=spark)
        storage.put(rows("d", start=4), SIMPLE, run="run-3", period="2026-01", spark=spark)
        assert storage.see(SIMPLE) == [*rows("c", start=3), *rows("d", start=4)]
        assert storage.get(spark, SIMPLE) == storage.see(SIMPLE)

    def test_replacing_by_nothing_leaves_nothing(self, storage: Storage, spark: SparkSession) -> None:
        storage.put(rows("a"), SIMPLE, run="run-1")
        storage.put(rows("b", start=2), SIMPLE, run="run-2", period="2026-02")
        storage.put([], SIMPLE, run="run-3", spark=spark)
        assert storage.see(SIMPLE) == rows("b", start=2)

    def test_append_adds(self, storage: Storage, spark: SparkSession) -> None:
        storage.put(rows("a"), SIMPLE, run="run-1", mode="append", spark=spark)
        storage.put(rows("b", start=2), SIMPLE, run="run-2", mode="append", spark=spark)
        storage.put(rows("c", start=3), SIMPLE, run="run-3", period="2026-02", mode="append")
        assert storage.see(SIMPLE) == rows("a", "b", "c")

    def test_two_outputs_of_a_run_to_one_destination(self, storage: Storage) -> None:
        for run in ("run-1", "run-2"):
            storage.put(rows(f"{run} replaces"), SIMPLE, run=run, seq=10)
            location = storage.put(rows(f"{run} appends", start=2), SIMPLE, run=run, seq=20, mode="append")
            assert storage.see(SIMPLE) == rows(f"{run} replaces", f"{run} appends")
            if storage.lists_files:
                assert len(location["files"]) == 2
        write = storage.write(SIMPLE)
        found = [storage.outputs(run="run-2").find_commit(WrittenOutput(seq, write, SIMPLE)) for seq in (10, 20, 30)]
        assert [each and (each.run, each.seq, each.rows, each.digest) for each in found] == [
            ("run-2", 10, 1, "run-2/10"),
            ("run-2", 20, 1, "run-2/20"),
            None,
        ]

    @pytest.mark.parametrize("mode", ["replace", "append"])
    def test_the_same_again_changes_nothing(self, storage: Storage, spark: SparkSession, mode: str) -> None:
        storage.put(rows("old"), SIMPLE, run="run-0")
        outputs, write = storage.outputs(), storage.write(SIMPLE, mode=mode)
        assert outputs.find_commit(WrittenOutput(SEQ, write, SIMPLE)) is None
        first = storage.put(rows("a", start=2), SIMPLE, mode=mode, spark=spark)
        before = storage.see(SIMPLE)
        for _ in range(2):
            assert storage.put(rows("b", start=3), SIMPLE, mode=mode, spark=spark) == first
        assert storage.see(SIMPLE) == before
        commit = outputs.find_commit(WrittenOutput(SEQ, write, SIMPLE))
        assert commit is not None
        assert (commit.run, commit.seq, commit.rows, commit.digest) == ("run-1", SEQ, 1, f"run-1/{SEQ}")

    def test_what_is_staged_once_can_be_published_twice(self, storage: Storage, spark: SparkSession) -> None:
        outputs, write = storage.outputs(), storage.write(SIMPLE, mode="append")
        frame = spark.createDataFrame(arrow_table(SIMPLE, rows("a", "b")))
        output = WrittenOutput(SEQ, write, SIMPLE)
        staged = outputs.stage(frame, output)
        locations = [publish(outputs, output, staged, rows=2, digest="d") for _ in range(2)]
        assert locations[0] == locations[1]
        assert storage.see(SIMPLE) == rows("a", "b")

    def test_what_was_staged_and_never_published_is_forgotten(self, storage: Storage, spark: SparkSession) -> None:
        outputs, write = storage.outputs(), storage.write(SIMPLE)
        outputs.stage(spark.createDataFrame(arrow_table(SIMPLE, rows("x", "y"))), WrittenOutput(SEQ, write, SIMPLE))
        storage.put(rows("a"), SIMPLE, spark=spark)
        assert storage.see(SIMPLE) == rows("a")

    @pytest.mark.parametrize("register_as", [None, "made"])
    def test_rows_that_are_kept_stay_readable_once_they_are_replaced(
        self, storage: Storage, spark: SparkSession, register_as: str | None
    ) -> None:
        stored = load_stored(storage.put(rows("locked"), SIMPLE, spark=spark, register_as=register_as))
        storage.put(rows("other", start=5), SIMPLE, run="run-2", period="2026-02", spark=spark)
        port = storage.port.of_record(stored)
        keep = partial(port.keep, stored, period=PERIOD, run="run-1", seq=SEQ)
        kept = keep()
        assert kept is not None
        assert kept.place != stored.place
        assert load_stored(kept.document()) == kept == keep()
        storage.put(rows("new"), SIMPLE, run="run-3", spark=spark)
        expire(storage)
        storage.put(rows("newer"), SIMPLE, run="run-4", spark=spark)
        use = storage.use(SIMPLE)
        inputs = storage.inputs("kept")
        pin = port.pin_output(kept, name="out", period=PERIOD)
        (found,) = inputs.read(spark, use, inputs.extract([use], {use.key: (pin,)})[use.key])
        assert in_order(rows_of(found.frame, SIMPLE)) == rows("locked")
        assert storage.see(SIMPLE) == [*rows("newer"), *rows("other", start=5)]

    def test_rows_that_are_gone_are_not_kept(self, storage: Storage) -> None:
        stored = load_stored(storage.put(rows("gone"), SIMPLE))
        if storage.kind == "database":
            storage.execute("DROP TABLE {}", "out")
        else:
            storage.remove("out" if storage.kind in TABLES else HIDDEN)
        port = storage.port.of_record(stored)
        assert port.keep(stored, period=PERIOD, run="run-1", seq=SEQ) is None

    def test_rows_that_are_not_all_there_are_not_published(self, storage: Storage) -> None:
        storage.put(rows("old"), SIMPLE, run="run-0")
        outputs, output = storage.outputs(), WrittenOutput(SEQ, storage.write(SIMPLE), SIMPLE)
        staged = storage.stage_by_hand(outputs, arrow_table(SIMPLE, rows("a", "b")), output)
        problem = unwritable(lambda: publish(outputs, output, staged, rows=3, digest="d"))
        assert problem.destination == "src:out"
        assert storage.see(SIMPLE) == rows("old")
        assert outputs.find_commit(output) is None

    def test_a_later_run_may_have_other_columns(self, storage: Storage, spark: SparkSession) -> None:
        storage.put(rows("a"), SIMPLE, run="run-1")
        wider: dict[str, Type] = {"id": INTEGER, "new": DATE, "value": TEXT}
        row = {"id": 2, "value": "b", "new": date(2026, 2, 1)}
        storage.outputs(run="run-2").check(WrittenOutput(SEQ, storage.write(wider), wider))
        storage.put([row], wider, run="run-2")
        assert storage.get(spark, wider) == [row]
        if storage.kind == "database":
            storage.put(rows("c", start=3), SIMPLE, run="run-3", period="2026-02")
            assert storage.get(spark, wider) == [row, {"id": 3, "value": "c", "new": None}]

    def test_a_column_may_be_spelled_otherwise_later(self, storage: Storage, spark: SparkSession) -> None:
        storage.put(rows("a"), SIMPLE, run="run-1")
        other: dict[str, Type] = {"ID": INTEGER, "Value": TEXT}
        storage.put([{"ID": 2, "Value": "b"}], other, run="run-2", period="2026-02")
        assert storage.get(spark, SIMPLE) == rows("a", "b")

    def test_publications_at_the_same_time_wait_for_each_other(self, storage: Storage) -> None:
        faults: list[BaseException] = []
        start = threading.Barrier(4)

        def publish(number: int) -> None:
            try:
                start.wait()
                for table in (f"own_{number}", "out"):
                    storage.put(
                        rows(f"{number}", start=number), SIMPLE, run=f"run-{number}", mode="append", table=table
                    )
            except BaseException as fault:  # noqa: BLE001  it is raised where it is seen
                faults.append(fault)

        threads = [threading.Thread(target=publish, args=(number,)) for number in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
        assert storage.see(SIMPLE) == rows("1", "2", "3", "4")


class TestRecords:
    """The record of an output leads to its rows, without Spark."""

    def read(self, storage: Storage, use: DatasetUse, pins: Sequence[Pin]) -> list[Row]:
        """The rows of some pins, from the Parquet files that Spark would read."""
        inputs = storage.inputs(f"reading-{uuid4()}")
        extracted = inputs.extract([use], {use.key: tuple(pins)})
        paths = [path for each in inputs.files(use, extracted[use.key]) for path in each]
        found = in_order(row for path in paths for row in pq.read_table(path, columns=list(SIMPLE)).to_pylist())
        assert inputs.count([use], extracted) == len(found)
        return found

    def test_of_an_output(self, storage: Storage) -> None:
        document = storage.put(rows("a", "b"), SIMPLE)
        storage.put(rows("other", start=5), SIMPLE, run="run-2", period="2026-02")
        stored = load_stored(document)
        assert stored.document() == document
        pin = storage.port.of_record(stored).pin_output(stored, name="the output", period=PERIOD)
        assert (pin.name, load_pin(pin.document())) == ("the output", pin)
        assert (pin.size > 0) == storage.lists_files
        assert self.read(storage, storage.use(SIMPLE), [pin]) == rows("a", "b")
        (row,) = storage.port.of_record(stored).sample(stored, SIMPLE, 1)
        assert {name: row[name] for name in SIMPLE} in rows("a", "b")

    def test_of_a_registered_dataset(self, storage: Storage) -> None:
        storage.put(rows("other"), SIMPLE, run="run-0", period="2025-12")
        storage.put(rows("old", start=2), SIMPLE, register_as="made")
        written = WrittenOutput(SEQ, storage.write(SIMPLE, register_as="made"), SIMPLE)
        columns, record = storage.outputs().registered(written)
        assert SIMPLE.items() <= dict(columns).items()
        assert load_stored(record.document()) == record
        storage.put(rows("new", start=3), SIMPLE, run="run-2")
        use = storage.use(SIMPLE, locations=(), registered=record)
        pins = storage.inputs().pin([use])[use.key]
        assert all(pin.name for pin in pins)
        assert self.read(storage, use, pins) == [*rows("other"), *rows("old", start=2)]

    @pytest.mark.parametrize("register_as", [None, "made"])
    def test_of_what_is_kept(self, storage: Storage, register_as: str | None) -> None:
        stored = load_stored(storage.put(rows("locked"), SIMPLE, register_as=register_as))
        port = storage.port.of_record(stored)
        keep = partial(port.keep, stored, period=PERIOD, run="run-1", seq=SEQ)
        kept = keep()
        assert kept is not None
        assert load_stored(kept.document()) == kept == keep()
        assert kept.place != stored.place
        storage.put(rows("new"), SIMPLE, run="run-3")
        expire(storage)
        storage.put(rows("newer"), SIMPLE, run="run-4")
        pin = port.pin_output(kept, name="out", period=PERIOD)
        assert self.read(storage, storage.use(SIMPLE), [pin]) == rows("locked")

    def test_of_a_lake_table_whose_old_files_are_removed(self, lake: Storage) -> None:
        """What the output wrote is where its period is now; of what was kept, nothing else will do."""
        stored = load_stored(lake.put(rows("old"), SIMPLE, register_as="made"))
        port = lake.port.of_record(stored)
        kept = port.keep(stored, period=PERIOD, run="run-1", seq=SEQ)
        assert kept is not None
        _, record = lake.outputs().registered(WrittenOutput(SEQ, lake.write(SIMPLE, register_as="made"), SIMPLE))
        lake.put(rows("other", start=5), SIMPLE, run="run-2", period="2026-02")
        lake.put(rows("new"), SIMPLE, run="run-3")
        for file in stored_files(stored).files:
            (lake.folder / "out" / file.path.removeprefix(f"{lake.folder}/out/")).unlink()
        pin = port.pin_output(stored, name="out", period=PERIOD)
        assert pin.name == "out"
        assert self.read(lake, lake.use(SIMPLE), [pin]) == rows("new")
        with pytest.raises(FileNotFoundError):
            port.pin_output(kept, name="out", period=PERIOD)
        assert port.keep(stored, period=PERIOD, run="run-1", seq=SEQ) is None
        assert "lacks" in unreadable(lake, SIMPLE, locations=(), registered=record).detail


class TestFolderDestinations:
    @pytest.mark.parametrize("name", ["report.xlsx", "_SUCCESS", "run_period=2026-01", "part-0.parquet"])
    def test_a_folder_of_somebody_else_is_refused(self, folder: Storage, name: str) -> None:
        foreign = folder.folder / "out" / name
        foreign.parent.mkdir(parents=True)
        foreign.write_text("precious")
        problem = unwritable(lambda: folder.outputs().check(WrittenOutput(SEQ, folder.write(SIMPLE), SIMPLE)))
        assert name in problem.detail
        assert foreign.read_text() == "precious"

    def test_a_file_in_the_place_of_the_folder(self, folder: Storage) -> None:
        folder.plant_text("precious", "out")
        unwritable(lambda: folder.outputs().check(WrittenOutput(SEQ, folder.write(SIMPLE), SIMPLE)))
        unwritable(lambda: folder.put(rows("a"), SIMPLE))
        assert (folder.folder / "out").read_text() == "precious"

    def test_our_own_folder_is_taken(self, folder: Storage) -> None:
        folder.outputs().check(WrittenOutput(SEQ, folder.write(SIMPLE), SIMPLE))
        folder.put(rows("a"), SIMPLE)
        folder.outputs(run="run-2").check(WrittenOutput(SEQ, folder.write(SIMPLE), SIMPLE))
        assert folder.see(SIMPLE) == rows("a")

    def test_a_folder_that_is_a_link(self, folder: Storage, tmp_path: Path, spark: SparkSession) -> None:
        real = folder.folder / "elsewhere" / "deep" / "store"
        real.mkdir(parents=True)
        (folder.folder / "out").symlink_to(real)
        folder.put(rows("a"), SIMPLE, spark=spark)
        assert folder.see(SIMPLE) == rows("a")
        assert any(path.is_symlink() for path in real.iterdir())

    def test_a_link_out_of_the_datasource_is_not_written_to(self, folder: Storage, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        folder.folder.mkdir()
        (folder.folder / "out").symlink_to(outside)
        unwritable(lambda: folder.outputs().check(WrittenOutput(SEQ, folder.write(SIMPLE), SIMPLE)))
        unwritable(lambda: folder.put(rows("a"), SIMPLE))
        assert list(outside.iterdir()) == []

    def test_a_link_out_of_the_datasource_is_not_read(self, folder: Storage, tmp_path: Path) -> None:
        path = folder.plant(SIMPLE, rows("a"))
        outside = tmp_path / f"outside.{folder.kind}"
        path.rename(outside)
        path.symlink_to(outside)
        assert str(outside) in unreadable(folder, SIMPLE).detail

    def test_a_column_named_like_the_folders_of_periods(self, folder: Storage) -> None:
        columns: dict[str, Type] = {**SIMPLE, "Run_Period": TEXT}
        folder.put([{"id": 1, "value": "a", "Run_Period": "mine"}], columns, run="run-1")
        folder.put([{"id": 2, "value": "b", "Run_Period": "mine"}], columns, run="run-2")
        # A later version of the project has no such column, and still replaces what was there.
        folder.put(rows("c", start=3), SIMPLE, run="run-3")
        assert folder.see(SIMPLE) == rows("c", start=3)

    def test_a_column_that_would_hide_the_folders_of_periods_is_refused(self, folder: Storage) -> None:
        folder.put(rows("a"), SIMPLE, run="run-1")
        columns: dict[str, Type] = {**SIMPLE, "run_period": TEXT}
        problem = unwritable(
            lambda: folder.outputs(run="run-2").check(WrittenOutput(SEQ, folder.write(columns), columns))
        )
        assert "`run_period`" in problem.detail
        unwritable(lambda: folder.put([], columns, run="run-2"))
        assert folder.see(SIMPLE) == rows("a")

    def test_replaced_data_stay_for_readers_that_have_begun(self, folder: Storage) -> None:
        folder.put(rows("old"), SIMPLE, run="run-1")
        pinned = folder.inputs().pin([folder.use(SIMPLE)])
        folder.put(rows("new"), SIMPLE, run="run-2")
        assert folder.inputs().find_changes(pinned, listing=True) == ()
        use = folder.use(SIMPLE)
        assert folder.inputs("late").extract([use], pinned)[use.key] == pinned[use.key]

    def test_replaced_data_go_in_the_end_unless_they_are_kept(self, folder: Storage) -> None:
        folder.put(rows("registered"), SIMPLE, run="run-1", register_as="made")
        folder.outputs(run="run-1").registered(WrittenOutput(SEQ, folder.write(SIMPLE, register_as="made"), SIMPLE))
        folder.put(rows("replaced"), SIMPLE, run="run-2")
        folder.put(rows("latest"), SIMPLE, run="run-3")
        store = folder.folder / HIDDEN / "out"
        expire(folder)
        folder.put(rows("more"), SIMPLE, run="run-4")
        assert sorted(path.name for path in store.iterdir() if path.is_dir()) == [
            f"{PERIOD}~run-{number}-{SEQ}-1" for number in (1, 3, 4)
        ]

    def test_appending_does_not_change_what_was_there_before(self, folder: Storage) -> None:
        folder.put(rows("a"), SIMPLE, run="run-1", mode="append")
        pinned = folder.inputs().pin([folder.use(SIMPLE)])
        folder.put(rows("b", start=2), SIMPLE, run="run-2", mode="append")
        assert folder.inputs().find_changes(pinned, listing=False) == ()
        ((before,),) = pinned.values()
        assert [Path(file.path).parent.parent.name for file in file_pin(before).files] == [
            f"{PERIOD}~run-1-{SEQ}-1"
        ] * 2

    def test_where_an_output_is_can_be_moved_with_the_workspace(self, folder: Storage) -> None:
        found = folder.put(rows("a"), SIMPLE)
        assert found["kind"] == folder.kind
        assert found["folder"] == "data/out"
        assert [(folder.root / found["data"] / name).is_file() for name in found["files"]] == [True, True]


@pytest.mark.postgresql
class TestTableDestinations:
    def test_a_table_of_somebody_else_is_refused(self, table: Storage) -> None:
        table.plant(SIMPLE, rows("precious"))
        problem = unwritable(lambda: table.outputs().check(WrittenOutput(SEQ, table.write(SIMPLE), SIMPLE)))
        assert "`_run_period`" in problem.detail
        unwritable(lambda: table.put(rows("a"), SIMPLE))
        assert table.see(SIMPLE) == rows("precious")

    def test_every_change_of_a_type_is_listed(self, table: Storage) -> None:
        """But for a decimal that grows wider: its column does too (C-86)."""
        columns: dict[str, Type] = {**SIMPLE, "n": DecimalType(10, 2), "day": DATE}
        table.put([], columns, run="run-1")
        other: dict[str, Type] = {"id": INTEGER, "value": INTEGER, "n": DecimalType(11, 2), "day": DecimalType(9, 3)}
        problem = unwritable(lambda: table.outputs(run="run-2").check(WrittenOutput(SEQ, table.write(other), other)))
        assert [name for name in other if f"`{name}`" in problem.detail] == ["value", "day"]
        for kind in ("string", "integer", "date", "decimal(9,3)"):
            assert kind in problem.detail
        unwritable(lambda: table.put([], other, run="run-2"))

    def test_the_run_period_is_written_whatever_is_listed(self, table: Storage) -> None:
        columns: dict[str, Type] = {**SIMPLE, "_run_period": TEXT}
        table.put(rows("a"), SIMPLE, run="run-1", period="2026-01")
        table.put([{**row, "_run_period": "lie"} for row in rows("b", start=2)], columns, run="run-2", period="2026-02")
        assert [row["_run_period"] for row in table.see(columns)] == ["2026-01", "2026-02"]

    def test_a_name_that_would_be_cut_off_is_refused(self, table: Storage) -> None:
        columns: dict[str, Type] = {"id": INTEGER, "ä" * 32: TEXT}
        assert (
            "ä" * 32
            in unwritable(lambda: table.outputs().check(WrittenOutput(SEQ, table.write(columns), columns))).detail
        )
        long = table.write(SIMPLE, table="x" * 64)
        assert "x" * 64 in unwritable(lambda: table.outputs().check(WrittenOutput(SEQ, long, SIMPLE))).detail

    def test_a_schema_that_is_not_there_is_refused(self, table: Storage) -> None:
        other = table.with_options(schema="nowhere")
        assert (
            "nowhere"
            in unwritable(lambda: other.outputs().check(WrittenOutput(SEQ, other.write(SIMPLE), SIMPLE))).detail
        )

    def test_text_that_a_database_cannot_hold(self, table: Storage) -> None:
        table.put(rows("old"), SIMPLE, run="run-1")
        unwritable(lambda: table.put(rows("a\0b"), SIMPLE, run="run-2"))
        assert table.see(SIMPLE) == rows("old")

    @pytest.mark.parametrize("change", ["TRUNCATE {}", "DROP TABLE {}"])
    def test_rows_that_are_not_staged_any_more_are_staged_again(self, table: Storage, change: LiteralString) -> None:
        """A crash of the server empties staging tables, which are not logged."""
        outputs, output = table.outputs(), WrittenOutput(SEQ, table.write(SIMPLE), SIMPLE)
        staged = table.stage_by_hand(outputs, arrow_table(SIMPLE, rows("a", "b")), output)
        staged = outputs.convert(output, staged, rows=2)
        with table.connect() as connection:
            found = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = %s AND starts_with(tablename, 'dobo_stage_')",
                [table.schema],
            ).fetchall()
        ((stage,),) = found
        table.execute(change, stage)
        outputs.publish([(output, staged, 2, "d")])
        assert table.see(SIMPLE) == rows("a", "b")

    def test_nothing_is_left_behind(self, table: Storage) -> None:
        table.put(rows("a"), SIMPLE, run="run-1")
        with table.connect() as connection:
            found = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = %s", [table.schema]
            ).fetchall()
        assert sorted(found) == [("dobo_commit",), ("dobo_fence",), ("out",)]


class TestReaders:
    """A reader that never stops looking sees the old rows or the new ones, all of them."""

    PUBLICATIONS = 30
    ROWS = 40

    @pytest.mark.parametrize(
        ("kind", "way"),
        [
            ("parquet", "folder"),
            ("parquet", "product"),
            ("csv", "product"),
            ("delta", "table"),
            ("iceberg", "table"),
            pytest.param("database", "table", marks=pytest.mark.postgresql),
        ],
    )
    def test_a_reader_sees_complete_rows(
        self, kind: str, way: str, tmp_path: Path, request: pytest.FixtureRequest
    ) -> None:
        url = request.getfixturevalue("database") if kind == "database" else None
        storage = make_storage(kind, tmp_path, url)

        def publish(number: int) -> None:
            storage.put(rows(*[f"{number:03}"] * self.ROWS), SIMPLE, run=f"run-{number}")

        publish(0)
        with watching(storage, way) as (look_again, found):
            for number in range(1, self.PUBLICATIONS + 1):
                publish(number)
                look_again()
        (watch,) = found
        complete = {((f"{number:03}", self.ROWS),) for number in range(self.PUBLICATIONS + 1)}
        assert set(watch.seen) <= complete
        assert len(watch.seen) >= 3
        assert ((f"{self.PUBLICATIONS:03}", self.ROWS),) in watch.seen
        # Only a reader that lists by one path and opens by the same path again can find files gone, and then looks again.
        assert watch.missed == 0 or way == "folder"


@contextmanager
def watching(storage: Storage, way: str) -> Iterator[tuple[Callable[[], None], list[Watch]]]:
    """Another process reads while this one works; afterwards there is what it saw.

    Gives a function that waits until the other has looked once more, so that nobody depends on how fast it is.
    """
    context = multiprocessing.get_context("spawn")
    over, looks, (mine, theirs) = context.Event(), context.Value("i", 0), context.Pipe()
    process = context.Process(target=storages.watch, args=(storage, way, SIMPLE, over, looks, theirs))
    process.start()
    found: list[Watch] = []

    def look_again() -> None:
        before = looks.value
        while looks.value == before:
            assert process.is_alive()
            time.sleep(0.001)

    try:
        look_again()
        yield look_again, found
        over.set()
        while not mine.poll(1):
            assert process.is_alive()
        found.append(mine.recv())
    finally:
        over.set()
        process.join()


# --- when the world is in the way


class TestPermissions:
    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    def test_a_destination_that_may_not_be_written(self, open_root: Path, kind: str) -> None:
        storage = make_storage(kind, open_root)
        closed = replace(storage, source=open_source(kind, path_prefix="closed"))
        closed.folder.mkdir(mode=0o755 if os.geteuid() == 0 else 0o555)
        denied = Fault("OUTPUT_WRITE", True, "Permission denied")
        old, new = rows("old"), rows("new", "er")
        assert as_nobody(storages.check_forbidden_destination, closed, SIMPLE) == denied
        # A permission that is lost on the way, and comes back.
        assert as_nobody(storages.publish_into_forbidden, storage, SIMPLE, old, new) == [denied, old, new]

    def test_a_lake_table_whose_folder_may_not_be_written(self, open_root: Path) -> None:
        """It is seen before anything is computed."""
        closed = replace(make_storage("delta", open_root), source=open_source("delta", path_prefix="closed"))
        closed.folder.mkdir(mode=0o755 if os.geteuid() == 0 else 0o555)
        fault = as_nobody(storages.check_forbidden_destination, closed, SIMPLE)
        assert (fault.code, fault.retry_helps, "Permission denied" in fault.detail) == ("OUTPUT_WRITE", True, True)

    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    def test_rows_that_may_not_be_read(self, open_root: Path, kind: str) -> None:
        storage = make_storage(kind, open_root)
        blocked = []
        for name, closed in {"whole": "whole", "part": "part/sub", "file": f"file/sub/rows.{kind}"}.items():
            storage.plant(SIMPLE, rows("a"), name)
            storage.plant(SIMPLE, rows("b"), f"{name}/sub")
            blocked.append((name, storage.folder / closed))
            (storage.folder / closed).chmod(0)
        faults = as_nobody(storages.read_forbidden, storage, SIMPLE, blocked)
        assert [(fault.code, fault.retry_helps) for fault in faults] == [("DATA_LOAD", True)] * 3
        assert [
            (str(path) in fault.detail, "Permission denied" in fault.detail)
            for fault, (_, path) in zip(faults, blocked, strict=True)
        ] == [(True, True)] * 3

    @pytest.mark.postgresql
    def test_a_table_that_may_not_be_read(self, table: Storage) -> None:
        user = f"guest_{next(_numbers)}"
        table.plant(SIMPLE, rows("a"))
        table.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'")
        table.execute(f"GRANT USAGE ON SCHEMA {{schema}} TO {user}")
        options = table.source.options
        address = re.sub(r"//[^@]*@", f"//{user}@", options["url"])
        guest = replace(table, source=open_source("database", **{**options, "url": address}))
        problem = unreadable(guest, SIMPLE)
        assert "permission denied" in problem.detail
        unwritable(lambda: guest.put(rows("a"), SIMPLE, table="new"))


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of two megabytes, where the platform lets us have one."""
    path = Path(tempfile.mkdtemp(prefix="dobo-small disk-"))
    try:
        mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "dobo-test", str(path)]
        try:
            done = subprocess.run(mount, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("no test of a full disk: there is no `mount` on this platform")
        if done.returncode:
            pytest.skip(f"no test of a full disk: {done.stderr.strip()}")
        yield path
        # Spark may keep a file open that it could not finish.
        subprocess.run(["umount", "--lazy", str(path)], check=True)
    finally:
        path.rmdir()


MANY: list[Row] = [{"id": number, "value": os.urandom(60).hex()} for number in range(40_000)]
"""More than a small disk holds, however it is packed."""


class TestFullDisk:
    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    def test_of_a_destination(self, small_disk: Path, tmp_path: Path, kind: str, spark: SparkSession) -> None:
        storage = replace(make_storage(kind, tmp_path), source=open_source(kind, path_prefix=str(small_disk)))
        storage.put(rows("old"), SIMPLE, run="run-1", spark=spark)
        fault = fault_of(lambda: storage.put(MANY, SIMPLE, run="run-2", spark=spark))
        assert (fault.code, fault.retry_helps) == ("OUTPUT_WRITE", True)
        assert "No space left on device" in fault.detail
        assert storage.see(SIMPLE) == rows("old")
        # Java closes a file that it could not finish when it collects garbage, and only then is there room again.
        spark.sparkContext._jvm.System.gc()  # type: ignore[union-attr]
        storage.put(rows("new"), SIMPLE, run="run-2", spark=spark)
        assert storage.see(SIMPLE) == rows("new")

    @pytest.mark.parametrize("kind", ["csv", TABLE])
    def test_of_the_runs_own_folder_while_reading(
        self, small_disk: Path, tmp_path: Path, kind: str, request: pytest.FixtureRequest
    ) -> None:
        url = request.getfixturevalue("database") if kind == "database" else None
        storage = make_storage(kind, tmp_path, url)
        if kind == "database":
            storage.put(MANY, SIMPLE)
        else:
            storage.plant(SIMPLE, MANY)
        (tmp_path / ".dobo" / "runs").mkdir(parents=True, exist_ok=True)
        (tmp_path / ".dobo" / "runs" / "full").symlink_to(small_disk)
        use = storage.use(SIMPLE)
        fault = fault_of(lambda: storage.extract(use, inputs=storage.inputs("full")))
        assert (fault.code, fault.retry_helps) == ("DATA_LOAD", True)
        assert "No space left on device" in fault.detail
        assert not list(small_disk.rglob("*.parquet"))
        assert shutil.disk_usage(small_disk).free > 1_000_000

    @pytest.mark.postgresql
    def test_of_a_database(self, small_disk: Path, table: Storage, postgresql_server: Server, database: str) -> None:
        owner = postgresql_server.folder.owner()
        shutil.chown(small_disk, owner)
        name = database.rpartition("/")[2]
        space = f"small_{next(_numbers)}"
        postgresql_server.execute(f"CREATE TABLESPACE {space} LOCATION '{small_disk}'", database=name)
        postgresql_server.execute(f"ALTER DATABASE {name} SET default_tablespace = {space}", database=name)
        try:
            table.put(rows("old"), SIMPLE, run="run-1")
            fault = fault_of(lambda: table.put(MANY, SIMPLE, run="run-2"))
            assert (fault.code, fault.retry_helps) == ("OUTPUT_WRITE", True)
            assert table.see(SIMPLE) == rows("old")
        finally:
            postgresql_server.execute(f"ALTER DATABASE {name} RESET default_tablespace", database=name)
            table.execute("DROP SCHEMA {schema} CASCADE")
            postgresql_server.execute(f"DROP TABLESPACE {space}", database=name)


@pytest.mark.postgresql
class TestOutage:
    def test_a_server_that_is_stopped(self, postgresql_server: Server, tmp_path: Path) -> None:
        with running_server(postgresql_server.programs) as server:
            storage = make_storage("database", tmp_path, server.url("postgres"))
            storage.put(rows("a"), SIMPLE)
            storage.extract(storage.use(SIMPLE))
        calls: list[Callable[[], object]] = [
            lambda: storage.extract(storage.use(SIMPLE)),
            lambda: storage.outputs(run="run-2").check(WrittenOutput(SEQ, storage.write(SIMPLE), SIMPLE)),
            lambda: storage.outputs(run="run-2").find_commit(WrittenOutput(SEQ, storage.write(SIMPLE), SIMPLE)),
            lambda: storage.put(rows("a"), SIMPLE, run="run-2"),
        ]
        faults = [fault_of(call) for call in calls]
        assert [fault.code for fault in faults] == ["DATA_LOAD", *["OUTPUT_WRITE"] * 3]
        assert all(fault.retry_helps for fault in faults)
        assert not [fault for fault in faults if PASSWORD in fault.detail]

    def test_a_connection_that_is_cut(self, table: Storage) -> None:
        table.put(rows("old"), SIMPLE, run="run-1")
        outputs, output = table.outputs(run="run-2"), WrittenOutput(SEQ, table.write(SIMPLE), SIMPLE)
        staged = table.stage_by_hand(outputs, arrow_table(SIMPLE, rows("a")), output)
        over = threading.Event()
        cutter = threading.Thread(target=cut_waiting_connections, args=(table, over))
        with table.connect() as connection:
            connection.execute(sql.SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(table.named("dobo_commit")))
            cutter.start()
            try:
                fault = fault_of(lambda: publish(outputs, output, staged, rows=1, digest="d"))
            finally:
                over.set()
        cutter.join()
        assert (fault.code, fault.retry_helps) == ("OUTPUT_WRITE", True)
        assert table.see(SIMPLE) == rows("old")
        publish(outputs, output, staged, rows=1, digest="d")
        assert table.see(SIMPLE) == rows("a")


def cut_waiting_connections(storage: Storage, over: threading.Event) -> None:
    """End the connection that waits for a lock, as an administrator may."""
    while not over.wait(0.05):
        with storage.connect() as connection:
            found = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'dobo' AND wait_event_type = 'Lock'"
            ).fetchall()
        if found:
            return


# --- what outputs wrote


@pytest.mark.parametrize("storage", ["csv", "delta", "iceberg", *FILES_IN_S3[1:], "iceberg in S3"], indirect=True)
def test_the_files_of_an_output_are_listed_with_their_hashes(storage: Storage) -> None:
    stored = load_stored(storage.put(rows("a", "b"), SIMPLE))
    files = storage.port.list_files(stored)
    assert files
    for file in files:
        assert not file.is_named
        if storage.is_remote:
            assert file.path.startswith(f"{storage.address}/")
        else:
            assert not file.path.startswith("/"), "the workspace can be moved"
            assert hash_file(storage.root / file.path) == file.sha256


# --- what became of inputs


class TestChanges:
    @pytest.fixture(params=[*KINDS, *IN_OBJECT_STORES, *READ_ONLY])
    def storage(self, request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
        """Every storage, also those that are only read."""
        return open_storage(request, tmp_path)

    def test_nothing_changed(self, folder: Storage) -> None:
        folder.plant(SIMPLE, rows("a"))
        pinned = pin_files(folder.folder / "out")
        assert find_changes(pinned) == ()
        assert tuple(PinnedFile.load(each.document()) for each in pinned) == pinned

    @pytest.mark.parametrize("change", ["size", "time", "content of the same size", "gone", "a folder instead"])
    def test_a_file_changed(self, folder: Storage, change: str) -> None:
        path = folder.plant(SIMPLE, rows("a"))
        same = folder.plant(SIMPLE, rows("a"), "out/other")
        pinned = pin_files(folder.folder / "out")
        content = path.read_bytes()
        match change:
            case "size":
                path.write_bytes(content + b"\n")
            case "time":
                os.utime(path, ns=(0, pinned[1].modified + 1))
            case "content of the same size":
                path.write_bytes(bytes(reversed(content)))
            case "gone":
                path.unlink()
            case _:
                path.unlink()
                path.mkdir()
        (found,) = find_changes(pinned)
        assert f"`{path}`" in found
        assert str(same) not in found

    def test_a_new_file_in_a_folder(self, folder: Storage) -> None:
        folder.plant(SIMPLE, rows("a"))
        inputs = folder.inputs()
        pinned = inputs.pin([folder.use(SIMPLE)])
        assert inputs.find_changes(pinned, listing=True) == ()
        more = folder.plant(SIMPLE, rows("b"), "out/sub")
        assert inputs.find_changes(pinned, listing=False) == ()
        (found,) = inputs.find_changes(pinned, listing=True)
        assert f"`{more}`" in found

    def test_a_new_file_in_an_empty_folder(self, folder: Storage) -> None:
        (folder.folder / "out").mkdir(parents=True)
        inputs = folder.inputs()
        pinned = inputs.pin([folder.use(SIMPLE)])
        more = folder.plant(SIMPLE, rows("b"))
        (found,) = inputs.find_changes(pinned, listing=True)
        assert f"`{more}`" in found

    def test_pins_survive_being_written_down(self, storage: Storage) -> None:
        storage.plant(SIMPLE, rows("a"))
        for location in storage.extract(storage.use(SIMPLE)):
            assert load_pin(json.loads(json.dumps(location.document()))) == location


class TestKeptInputs:
    @pytest.fixture(params=[*KINDS, *IN_OBJECT_STORES, *READ_ONLY])
    def storage(self, request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
        """Every storage, also those that are only read."""
        return open_storage(request, tmp_path)

    def test_what_was_read_stays_when_the_original_is_gone(self, storage: Storage) -> None:
        if storage.kind == "table":
            pytest.skip("of a version that Spark alone can read no copy is kept; of what has no versions: tests/native")
        storage.plant(SIMPLE, rows("a", "b"), "lines")
        use, kept = storage.use(SIMPLE, "lines"), KeptInputs.of(storage.root)
        inputs = storage.inputs("first")
        pinned = inputs.extract([use], inputs.pin([use]))
        hashes = json.loads(json.dumps(inputs.keep([use], pinned, kept)))
        if storage.kind == "database":
            storage.execute("DELETE FROM {}", "lines")
        else:
            storage.remove("lines")
        later = storage.inputs("later")
        restored = later.restore([use], pinned, hashes, kept)
        assert (len(restored.used), restored.changes) == (1, ())
        again = later.extract([use], restored.pinned)
        assert later.keep([use], again, None) == {key: tuple(map(tuple, pins)) for key, pins in hashes.items()}

    def test_originals_that_are_as_they_were_are_read(self, folder: Storage) -> None:
        folder.plant(SIMPLE, rows("a"), "lines")
        use, inputs, kept = folder.use(SIMPLE, "lines"), folder.inputs(), KeptInputs.of(folder.root)
        pinned = inputs.pin([use])
        restored = inputs.restore([use], pinned, inputs.keep([use], pinned, kept), kept)
        assert (restored.pinned, restored.used, restored.changes) == (pinned, (), ())

    @pytest.mark.parametrize("lost", ["never kept", "changed since"])
    def test_without_a_true_copy_the_change_is_told(self, folder: Storage, lost: str) -> None:
        path = folder.plant(SIMPLE, rows("a"), "lines")
        use, inputs, kept = folder.use(SIMPLE, "lines"), folder.inputs(), KeptInputs.of(folder.root)
        pinned = inputs.pin([use])
        hashes = inputs.keep([use], pinned, None if lost == "never kept" else kept)
        for file in kept.files():
            file.path.write_bytes(b"something else")
        path.unlink()
        restored = inputs.restore([use], pinned, hashes, kept)
        assert restored.used == ()
        assert [change for change in restored.changes if str(path) in change] == [f"`{path}` is gone"]
