"""What executors do in place of the driver comes out as if the driver had done it, to the last byte and the last finding."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo.engine import tasks
from dobonomodo.engine.engine import SparkEngine
from dobonomodo.engine.tasks import SparkExecutors
from dobonomodo.formula import Type
from dobonomodo.formula.types import INTEGER, TEXT, DecimalType
from dobonomodo.problems.run import InputChanged
from dobonomodo.storage import Pin, Storages, WrittenOutput, load_pin, load_stored
from dobonomodo.storage.executors import Limits
from tests.contract.storages import SEQ, Storage, arrow_table, open_source, publish
from tests.contract.test_storages import make_storage
from tests.object_server import SECRET, ObjectServer
from tests.postgresql import Server
from tests.world import failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.storage import Inputs

T = TypeVar("T")
R = TypeVar("R")

ROOT = Path(__file__).parents[2]
COLUMNS: dict[str, Type] = {"id": INTEGER, "name": TEXT, "amount": DecimalType(9, 2)}


class Asked(SparkExecutors):
    """Executors that remember what they were asked and what they said."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        super().__init__(lambda: SparkEngine(spark), root / "probes", limits=Limits.of(0))
        self.said: list[str] = []
        self.asked: list[int] = []
        self.say = self.said.append

    def do(self, work: Callable[[T], R], things: Sequence[T]) -> list[R] | None:
        self.asked.append(len(things))
        return super().do(work, things)


@pytest.fixture
def files(tmp_path: Path) -> Storage:
    """Three CSV files."""
    storage = Storage(tmp_path, open_source("csv", path_prefix="data"))
    for number in range(3):
        lines = "".join(f'{number}{at},"na\nme ü {at}",{at}.5\n' for at in range(40))
        storage.plant_text(f"id,name,amount\n{lines}", f"out/{number}.csv")
    return storage


def extracted(inputs: Inputs, storage: Storage, **more: object) -> list[bytes]:
    use = storage.use(COLUMNS, **more)  # type: ignore[arg-type]
    (pins,) = inputs.extract([use], inputs.pin([use])).values()
    return [path.read_bytes() for paths in inputs.files(use, pins) for path in paths]


def in_both_ways(storage: Storage, executors: Asked) -> list[Inputs]:
    return [storage.inputs("driver"), storage.inputs("executors", executors=executors)]


def test_csv_files_become_the_same_parquet(files: Storage, spark: SparkSession) -> None:
    executors = Asked(spark, files.root)
    by_driver, by_executors = (extracted(each, files) for each in in_both_ways(files, executors))
    assert by_executors == by_driver
    assert (len(by_driver), executors.asked, executors.said) == (3, [3], [])
    assert extracted(files.inputs("executors", executors=executors), files) == by_driver
    assert executors.asked == [3, 0]
    # Nothing is left but the files.
    assert len(list((files.root / ".dobo/runs/executors/inputs").iterdir())) == 3


def test_wrong_values_are_found_in_the_same_places(files: Storage, spark: SparkSession) -> None:
    wrong = "".join(f"{at},x,1.234\n,y,z\n" for at in range(30))
    files.plant_text(f"id,name,amount\n{wrong}1,2\n", "out/1.csv")
    found = [failure(extracted, each, files, required=["id"]) for each in in_both_ways(files, Asked(spark, files.root))]
    assert found[0].problem == found[1].problem
    assert "30 in `id`" in found[0].problem.message()


def test_the_first_file_that_cannot_be_read_is_named(files: Storage, spark: SparkSession) -> None:
    files.plant_text("id,other\n1,2\n", "out/1.csv")
    files.plant_text(b"PK\x03\x04", "out/2.csv")
    found = [failure(extracted, each, files) for each in in_both_ways(files, Asked(spark, files.root))]
    assert found[0].problem == found[1].problem
    assert "1.csv" in found[0].problem.message()


def test_executors_of_another_version_are_not_asked_twice(
    files: Storage, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_versions", lambda: {"dobonomodo": "0", "nowhere": "1"})
    executors = Asked(spark, files.root)
    by_driver, by_executors = (extracted(each, files) for each in in_both_ways(files, executors))
    assert by_executors == by_driver
    assert extracted(files.inputs("again", executors=executors), files) == by_driver
    (said,) = executors.said
    assert "needs dobonomodo 0" in said


def test_small_files_stay_in_the_driver(files: Storage) -> None:
    def never() -> SparkEngine:
        raise AssertionError("nothing is to be done")

    assert len(extracted(files.inputs(executors=SparkExecutors(never, files.root)), files)) == 3


def test_parquet_files_without_statistics_are_checked(tmp_path: Path, spark: SparkSession) -> None:
    storage, executors = Storage(tmp_path, open_source("parquet", path_prefix="data")), Asked(spark, tmp_path)
    contents: list[list[int | None]] = [[1, 2, 3], [None, 5, None], [*[None] * 30, 7]]
    for number, ids in enumerate(contents):
        path = tmp_path / f"data/out/{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        table = arrow_table(COLUMNS, [{"id": each, "amount": Decimal(1)} for each in ids])
        pq.write_table(table, path, write_statistics=False)
    found = [failure(extracted, each, storage, required=["id"]) for each in in_both_ways(storage, executors)]
    assert found[0].problem == found[1].problem
    assert "32 in `id`" in found[0].problem.message()
    by_driver, by_executors = (extracted(each, storage) for each in in_both_ways(storage, executors))
    assert by_driver == by_executors
    # One task for the footers of all, then one for each file that has to be read.
    assert (executors.asked, executors.said) == ([1, 3, 1, 3], [])


@pytest.mark.parametrize("kind", ["csv in S3", "parquet in S3"])
def test_objects_are_read_as_they_were_pinned(
    kind: str, tmp_path: Path, object_server: ObjectServer, spark: SparkSession
) -> None:
    storage = make_storage(kind, tmp_path, None, lambda: object_server)
    executors = Asked(spark, tmp_path)
    for number in range(3):
        storage.plant(COLUMNS, [{"id": number, "name": "ü", "amount": Decimal(number)}], f"out/{number}")
    by_driver, by_executors = (extracted(each, storage) for each in in_both_ways(storage, executors))
    assert by_executors == by_driver
    assert (executors.asked[0], executors.said) == (3, [])
    use, inputs = storage.use(COLUMNS), storage.inputs("late", executors=executors)
    pinned = inputs.pin([use])
    storage.plant(COLUMNS, [{"id": 7, "name": "x", "amount": Decimal(1)}], "out/1")
    changed = failure(inputs.extract, [use], pinned).problem
    assert isinstance(changed, InputChanged)
    assert changed.changes == (f"`{storage.address}/out/1/rows.{storage.kind}` was changed",)


@pytest.mark.parametrize("kind", ["csv in S3", "parquet in S3"])
def test_outputs_become_the_same_objects(
    kind: str, tmp_path: Path, object_server: ObjectServer, spark: SparkSession
) -> None:
    storage = make_storage(kind, tmp_path, None, lambda: object_server)
    executors = Asked(spark, tmp_path)
    rows = [{"id": number, "name": "ü", "amount": Decimal(number)} for number in range(5)]
    output, found = WrittenOutput(SEQ, storage.write(COLUMNS), COLUMNS), []
    for run, asked in (("run-1", None), ("run-2", executors)):
        outputs = storage.outputs(run=run, executors=asked)
        staged = storage.stage_by_hand(outputs, arrow_table(COLUMNS, rows), output)
        found.append(publish(outputs, output, staged, rows=len(rows), digest=run))
        assert [row["id"] for row in storage.see(COLUMNS)] == [0, 1, 2, 3, 4]
        port = Storages(storage.root, {storage.source.id: storage.source}).open(storage.source)
        inspected = port.inspect(load_stored(found[-1]), run=run, seq=SEQ)
        assert (inspected.changed, inspected.gone) == ((), ())
    assert found[0]["hashes"] == found[1]["hashes"]
    assert (len(executors.asked), executors.said) == (1, [])


def test_what_tasks_get_is_in_no_plan(spark: SparkSession) -> None:
    frame = spark.range(1).mapInArrow(tasks._make_task(pickle.dumps(SECRET), {}), tasks._SCHEMA)
    assert SECRET not in frame._jdf.queryExecution().toString()


@pytest.fixture(scope="module")
def database(postgresql_server: Server) -> Iterator[str]:
    with postgresql_server.fresh_database() as url:
        yield url


@pytest.fixture
def table(tmp_path: Path, database: str) -> Storage:
    """A database in which somebody else has stored rows, of whose number it knows."""
    storage = make_storage("database", tmp_path, database)
    rows = [{"id": (number * 7) % 400, "name": NAMES[number % 5], "amount": Decimal(number)} for number in range(400)]
    storage.plant(COLUMNS, [*rows, *rows[:10]])
    storage.execute("ANALYZE {schema}.out")
    return storage


NAMES = ["b", "B", "ä", None, "a"]
"""Texts that languages sort in other ways; those that are missing come last."""


def read_table(inputs: Inputs, storage: Storage, **more: Any) -> tuple[pa.Table, Pin]:
    use = storage.use(COLUMNS, **more)
    (pins,) = inputs.extract([use], inputs.pin([use])).values()
    (paths,) = inputs.files(use, pins)
    return pa.concat_tables(map(pq.read_table, paths)), pins[0]


def test_a_table_is_read_in_ranges_at_one_moment(table: Storage, spark: SparkSession) -> None:
    class Late(Asked):
        """Rows come while executors read."""

        def do(self, work: Callable[[T], R], things: Sequence[T]) -> list[R] | None:
            table.execute("INSERT INTO {schema}.out VALUES (-1, 'late', 1)")
            return super().do(work, things)

    for number, key in enumerate([("id",), ("name", "id"), ()]):
        executors = Late(spark, table.root)
        ways = (("driver", None), ("executors", executors), ("executors", None))
        # What was extracted is not extracted again.
        (whole, one), (parts, several), (_, same) = (
            read_table(table.inputs(f"{way}-{number}", executors=asked), table, natural_key=key) for way, asked in ways
        )
        assert parts.equals(whole)
        assert same == several
        assert (executors.asked, executors.said) == ([2], [])
        assert (one.document().get("parts"), several.document()["parts"]) == (None, 2)
        table.execute("DELETE FROM {schema}.out WHERE id = -1")
        # The driver reads the same files later, if it has to; other rows are noticed.
        use = table.use(COLUMNS, natural_key=key)
        again = load_pin(json.loads(json.dumps(several.document())))
        assert table.inputs(f"again-{number}").extract([use], {use.key: (again,)}) == {use.key: (several,)}
    table.execute("DELETE FROM {schema}.out WHERE id = 77")
    assert "has changed" in failure(table.inputs("changed").extract, [use], {use.key: (again,)}).problem.message()


def test_wrong_values_of_a_table_are_found_in_the_same_rows(table: Storage, spark: SparkSession) -> None:
    executors = Asked(spark, table.root)
    for key in [("id",), ()]:
        found = [
            failure(read_table, each, table, natural_key=key, required=["name"])
            for each in in_both_ways(table, executors)
        ]
        assert found[0].problem == found[1].problem
        assert "82 in `name`" in found[0].problem.message()
    assert (executors.asked, executors.said) == ([2, 2], [])


def test_rows_go_into_a_table_by_several_tasks(table: Storage, spark: SparkSession) -> None:
    rows = [{"id": number, "name": "ü", "amount": Decimal(number)} for number in range(5)]
    output, executors = WrittenOutput(SEQ, table.write(COLUMNS, table="new"), COLUMNS), Asked(spark, table.root)
    outputs = table.outputs(executors=executors)
    staged = table.stage_by_hand(outputs, arrow_table(COLUMNS, rows), output)
    converted = outputs.convert(output, staged, rows=len(rows))
    # Another attempt at the same, as after a kill.
    outputs.convert(output, staged, rows=len(rows))
    outputs.publish([(output, converted, len(rows), "digest")])
    assert table.see(COLUMNS, "new") == rows
    assert (executors.asked, executors.said) == ([2, 2], [])
    with table.connect() as connection:
        left = connection.execute("SELECT count(*) FROM pg_class WHERE starts_with(relname, 'dobo_stage_')").fetchone()
    assert left == (0,)


OVER_CONNECT = """
import sys
from pathlib import Path
from dobonomodo.engine import open_session
from tests.contract.storages import Storage, open_source
from tests.contract.test_executors import Asked, extracted, in_both_ways

root = Path(sys.argv[2])
storage = Storage(root, open_source("csv", path_prefix="data"))
executors = Asked(open_session(remote=sys.argv[1]), root)
by_driver, by_executors = (extracted(each, storage) for each in in_both_ways(storage, executors))
assert by_executors == by_driver and not executors.said, executors.said
"""


def test_over_connect(files: Storage, connect_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OVER_CONNECT, connect_url, str(files.root)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
