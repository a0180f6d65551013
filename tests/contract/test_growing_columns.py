"""Destinations whose later periods have more or wider columns: read as one, or refused before anything is computed (C-86)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.problems.run import OutputWrite
from dobonomodo.storage import Storages, WrittenOutput
from dobonomodo.storage.extracted import TablePin
from dobonomodo.storage.manifest import HIDDEN, read_parts
from dobonomodo.storage.table_target import TableTarget
from tests.contract.storages import SEQ, TABLES, Row, Storage, arrow_table, failure, in_order, publish, rows_of
from tests.contract.test_storages import TABLE, make_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.postgresql import Server

FIRST, SECOND = "2026-01", "2026-02"
MONEY = DecimalType(9, 2)
NARROW: dict[str, Type] = {"id": INTEGER, "amount": INTEGER, "rate": DecimalType(5, 2)}
WIDE: dict[str, Type] = {"ID": INTEGER, "title": TEXT, "amount": MONEY, "rate": DecimalType(7, 4)}
UNITED: dict[str, Type] = {"id": INTEGER, "amount": DecimalType(21, 2), "rate": DecimalType(7, 4), "title": TEXT}

NARROW_ROWS: list[Row] = [
    {"id": 1, "amount": 2**63 - 1, "rate": Decimal("999.99")},
    {"id": 2, "amount": None, "rate": None},
]
WIDE_ROWS: list[Row] = [{"ID": 3, "title": "three", "amount": Decimal("0.25"), "rate": Decimal("0.0001")}]
ALL_ROWS: list[Row] = [
    {"id": 1, "amount": Decimal(2**63 - 1), "rate": Decimal("999.99"), "title": None},
    {"id": 2, "amount": None, "rate": None, "title": None},
    {"id": 3, "amount": Decimal("0.25"), "rate": Decimal("0.0001"), "title": "three"},
]


@pytest.fixture(scope="module")
def database(postgresql_server: Server) -> Iterator[str]:
    with postgresql_server.fresh_database() as url:
        yield url


@pytest.fixture(params=["parquet", "csv", "csv without header", "delta", "iceberg", TABLE])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "database":
        return make_storage("database", tmp_path, request.getfixturevalue("database"))
    kind, _, bare = request.param.partition(" ")
    made = make_storage(kind, tmp_path)
    return made.with_options(has_header=False) if bare else made


def put(storage: Storage, rows: list[Row], columns: Mapping[str, Type], *, run: str, period: str, **more: Any) -> None:
    """Check and write, as a run does."""
    more = {"register_as": "made", **more}
    storage.outputs(run=run, period=period).check(WrittenOutput(SEQ, storage.write(columns, **more), columns))
    storage.put(rows, columns, run=run, period=period, **more)


def register(storage: Storage, columns: Mapping[str, Type], *, run: str, period: str) -> tuple[Any, Any]:
    write = storage.write(columns, register_as="made")
    return storage.outputs(run=run, period=period).registered(WrittenOutput(SEQ, write, columns))


def read(storage: Storage, spark: SparkSession, columns: Mapping[str, Type], record: Any) -> list[Row]:
    use, inputs = storage.use(columns, locations=(), registered=record), storage.inputs(f"reading-{id(record)}")
    found = inputs.read(spark, use, storage.extract(use, inputs=inputs))
    return in_order(row for each in found for row in rows_of(each.frame, columns))


def published(storage: Storage) -> list[str]:
    """The periods that readers find."""
    if storage.kind == "database":
        return [row["_run_period"] for row in storage.see({"_run_period": TEXT})]
    if storage.kind in TABLES:
        return sorted({row["_run_period"] for row in storage.see({"_run_period": TEXT})})
    return [path.name.removeprefix("run_period=") for path in (storage.folder / "out").iterdir()]


def forget_types(storage: Storage) -> None:
    """Make every manifest what it was before types were recorded."""
    for path in storage.folder.glob(f"{HIDDEN}/*/*/manifest.json"):
        document = json.loads(path.read_text())
        document["columns"] = list(document.pop("parts")[-1]["columns"])
        path.write_text(json.dumps(document))


@pytest.mark.parametrize("order", [(FIRST, SECOND), (SECOND, FIRST)], ids=["wider later", "narrower later"])
def test_periods_with_other_columns_are_read_as_one(
    storage: Storage, spark: SparkSession, order: tuple[str, str]
) -> None:
    """Whichever is written last: running the narrower period again does not narrow what is registered."""
    written = {FIRST: (NARROW_ROWS, NARROW), SECOND: (WIDE_ROWS, WIDE)}
    for period in order:
        put(storage, *written[period], run=f"run-{period}", period=period)
    last = order[-1]
    united, record = register(storage, written[last][1], run=f"run-{last}", period=last)
    by_name = {name.casefold(): kind for name, kind in united.items() if name != "_run_period"}
    assert by_name == UNITED
    columns = {name: by_name[name.casefold()] for name in UNITED}
    assert read(storage, spark, columns, record) == ALL_ROWS


def test_what_was_registered_before_stays_as_it_was(storage: Storage, spark: SparkSession) -> None:
    put(storage, NARROW_ROWS, NARROW, run="run-1", period=FIRST)
    united, record = register(storage, NARROW, run="run-1", period=FIRST)
    put(storage, WIDE_ROWS, WIDE, run="run-2", period=SECOND)
    assert {name: kind for name, kind in united.items() if name != "_run_period"} == NARROW
    assert read(storage, spark, NARROW, record) == NARROW_ROWS


def test_a_look_at_what_is_registered_shows_all_columns(storage: Storage) -> None:
    put(storage, NARROW_ROWS, NARROW, run="run-1", period=FIRST)
    put(storage, WIDE_ROWS, WIDE, run="run-2", period=SECOND)
    united, record = register(storage, WIDE, run="run-2", period=SECOND)
    found = Storages(storage.root, {storage.source.id: storage.source}).of_record(record).sample(record, united, 10)
    assert in_order({name: row[name] for name in UNITED} for row in found) == ALL_ROWS


def test_rows_with_more_columns_can_be_added_to_a_period(storage: Storage, spark: SparkSession) -> None:
    put(storage, NARROW_ROWS, NARROW, run="run-1", period=FIRST, mode="append")
    put(storage, WIDE_ROWS, WIDE, run="run-2", period=FIRST, mode="append")
    united, record = register(storage, WIDE, run="run-2", period=FIRST)
    assert {name.casefold() for name in united} - {"_run_period"} == set(UNITED)
    assert read(storage, spark, UNITED, record) == ALL_ROWS


def test_whoever_declares_all_columns_reads_the_destination_too(storage: Storage, spark: SparkSession) -> None:
    put(storage, NARROW_ROWS, NARROW, run="run-1", period=FIRST)
    put(storage, WIDE_ROWS, WIDE, run="run-2", period=SECOND)
    assert storage.get(spark, UNITED) == ALL_ROWS
    misspelled = {**UNITED, "titel": TEXT}
    problem = failure(lambda: storage.extract(storage.use(misspelled))).problem
    assert problem.code == "DATA_LOAD"
    required = storage.use(UNITED, required=["title"])
    assert failure(lambda: storage.extract(required)).problem.code == "DATA_LOAD"


@pytest.mark.parametrize(
    ("there", "here"),
    [
        (TEXT, INTEGER),
        (DecimalType(9, 2), DATE),
        (DATE, TIMESTAMP),
        (INTEGER, TEXT),
        (DecimalType(38, 0), DecimalType(38, 10)),
        (INTEGER, DecimalType(38, 30)),
    ],
    ids=str,
)
def test_a_change_that_cannot_be_read_is_refused(storage: Storage, there: Type, here: Type) -> None:
    put(storage, [{"id": 1}], {"id": INTEGER, "value": there}, run="run-1", period=FIRST)
    changed: dict[str, Type] = {"id": INTEGER, "Value": here}
    failed = failure(lambda: put(storage, [{"id": 2}], changed, run="run-2", period=SECOND))
    assert isinstance(failed.problem, OutputWrite)
    assert not failed.retry_helps
    assert all(part in failed.problem.detail for part in ("`value`", str(there), str(here)))
    # Another run that got past the check before this one published is refused as it publishes.
    failed = failure(lambda: storage.put([{"id": 2}], changed, run="run-2", period=SECOND))
    assert failed.problem.code == "OUTPUT_WRITE"
    assert published(storage) == [FIRST]


def test_a_period_may_change_its_types_where_it_is_alone(tmp_path: Path, spark: SparkSession) -> None:
    storage = make_storage("parquet", tmp_path)
    put(storage, [{"id": 1, "value": "a"}], {"id": INTEGER, "value": TEXT}, run="run-1", period=FIRST)
    changed: dict[str, Type] = {"id": INTEGER, "value": INTEGER}
    put(storage, [{"id": 1, "value": 5}], changed, run="run-2", period=FIRST)
    _, record = register(storage, changed, run="run-2", period=FIRST)
    assert read(storage, spark, changed, record) == [{"id": 1, "value": 5}]
    failed = failure(lambda: put(storage, [], {"id": TEXT}, run="run-3", period=FIRST, mode="append"))
    assert failed.problem.code == "OUTPUT_WRITE"


def test_rows_of_two_temporal_modes_are_not_registered_together(storage: Storage) -> None:
    """Those without a period would be in none."""
    put(storage, [{"id": 1}], {"id": INTEGER}, run="run-1", period=FIRST)
    timed: dict[str, Type] = {"id": INTEGER, "_period": TEXT}
    failed = failure(lambda: put(storage, [{"id": 2}], timed, run="run-2", period=SECOND))
    assert failed.problem.code == "OUTPUT_WRITE"
    put(storage, [{"id": 2}], timed, run="run-3", period=SECOND, register_as=None)


def test_parquet_files_say_what_an_old_manifest_does_not(tmp_path: Path, spark: SparkSession) -> None:
    storage = make_storage("parquet", tmp_path)
    put(storage, NARROW_ROWS, NARROW, run="run-1", period=FIRST)
    forget_types(storage)
    assert types_of(storage) == [NARROW, NARROW]
    put(storage, WIDE_ROWS, WIDE, run="run-2", period=SECOND)
    united, record = register(storage, WIDE, run="run-2", period=SECOND)
    assert united == UNITED
    assert read(storage, spark, UNITED, record) == ALL_ROWS
    failed = failure(lambda: put(storage, [], {"id": TEXT}, run="run-3", period=SECOND))
    assert failed.problem.code == "OUTPUT_WRITE"


@pytest.mark.parametrize("has_header", [True, False])
def test_csv_files_of_an_old_manifest_have_the_types_of_later_ones(
    tmp_path: Path, spark: SparkSession, has_header: bool
) -> None:
    """Nobody recorded theirs, and all of them are text."""
    storage = make_storage("csv", tmp_path).with_options(has_header=has_header)
    put(storage, [{"id": 1, "amount": 7, "rate": None}], NARROW, run="run-1", period=FIRST)
    forget_types(storage)
    assert types_of(storage) == [dict.fromkeys(NARROW), dict.fromkeys(NARROW)]
    put(storage, WIDE_ROWS, WIDE, run="run-2", period=SECOND)
    united, record = register(storage, WIDE, run="run-2", period=SECOND)
    columns = {name: WIDE.get(name, INTEGER) for name in united}
    assert (united, list(united)) == (columns, ["id", "amount", "rate", "title"])
    assert [row["amount"] for row in read(storage, spark, columns, record)] == [Decimal(7), Decimal("0.25")]


def types_of(storage: Storage) -> list[Mapping[str, Type | None]]:
    """What is known of every file."""
    versions = sorted(path for path in storage.folder.glob(f"{HIDDEN}/*/*") if path.is_dir())
    return [part.columns for version in versions for part in read_parts(version)]


@pytest.mark.postgresql
class TestTables:
    def test_the_rows_of_a_run_are_read_as_it_wrote_them(
        self, tmp_path: Path, database: str, spark: SparkSession
    ) -> None:
        """Though the table has more and wider columns since; a value that was tampered with is noticed."""
        table = make_storage("database", tmp_path, database)
        put(table, NARROW_ROWS, NARROW, run="run-1", period=FIRST)
        put(table, WIDE_ROWS, WIDE, run="run-2", period=SECOND)
        use, inputs = table.use(NARROW, locations=()), table.inputs()
        where = TablePin("database", "out", "src", "out", table.schema, run_period=FIRST)
        (found,) = inputs.read(spark, use, inputs.extract([use], {use.key: (where,)})[use.key])
        assert in_order(rows_of(found.frame, NARROW)) == NARROW_ROWS
        table.execute("UPDATE {} SET amount = 0.5 WHERE id = 1", "out")
        again = table.inputs("again")
        assert failure(lambda: again.extract([use], {use.key: (where,)})).problem.code == "DATA_LOAD"

    def test_a_column_of_a_type_that_no_run_writes_is_refused(self, tmp_path: Path, database: str) -> None:
        table = make_storage("database", tmp_path, database)
        put(table, [{"id": 1}], {"id": INTEGER}, run="run-1", period=FIRST)
        table.execute("ALTER TABLE {} ADD COLUMN note varchar(5)", "out")
        failed = failure(lambda: put(table, [], {"id": INTEGER, "note": TEXT}, run="run-2", period=SECOND))
        assert failed.problem.code == "OUTPUT_WRITE"

    def test_nothing_is_altered_by_a_publication_that_fails(self, tmp_path: Path, database: str) -> None:
        """Columns are added and widened in the transaction that publishes the rows."""
        table = make_storage("database", tmp_path, database)
        put(table, NARROW_ROWS, NARROW, run="run-1", period=FIRST)
        outputs, output = table.outputs(run="run-2", period=SECOND), WrittenOutput(SEQ, table.write(WIDE), WIDE)
        target = outputs.target(output)
        assert isinstance(target, TableTarget)
        before = target.find_columns("out")
        staged = table.stage_by_hand(outputs, arrow_table(WIDE, WIDE_ROWS), output)
        table.execute("ALTER TABLE {} ADD CONSTRAINT small CHECK (id < 3)", "out")
        assert failure(lambda: publish(outputs, output, staged, rows=1, digest="x")).problem.code == "OUTPUT_WRITE"
        assert target.find_columns("out") == before
