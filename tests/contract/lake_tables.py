"""What holds for tables of Delta and of Iceberg alike, in folders and in object stores."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from pyarrow.dataset import dataset

from dobonomodo import failpoint
from dobonomodo.formula import Type
from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
from dobonomodo.plan.registration import United
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import OutputWrite
from dobonomodo.storage import Outputs, StagedRows, Storages, WrittenOutput, load_stored
from dobonomodo.storage.fence import Fence
from tests.contract.storages import SEQ, Storage, arrow_table, failure, in_order, publish
from tests.contract.test_storages import SIMPLE, rows
from tests.world import PERIOD


def check_replaced_fenced_and_found(storage: Storage) -> None:
    """Rows of a period are replaced, a late run is refused, and what was published is found again."""
    storage.put(rows("a", "b"), SIMPLE, run="run-1")
    stored = load_stored(storage.put(rows("c", start=3), SIMPLE, run="run-2"))
    storage.put(rows("d", start=4), SIMPLE, run="run-3", period="2026-02")
    assert storage.see(SIMPLE) == [*rows("c", start=3), *rows("d", start=4)]
    # What was made here to be uploaded is removed with the run's staged files.
    assert {path.name for path in (storage.root / ".dobo/runs/run-2").glob("*")} <= {"outputs"}
    port = Storages(storage.root, {storage.source.id: storage.source}).of_record(stored)
    inspected = port.inspect(stored, run="run-2", seq=SEQ)
    assert (inspected.changed, inspected.gone, inspected.files) == ((), (), 2)
    assert port.sample(stored, SIMPLE, 5) == rows("c", start=3)
    assert port.keep(stored, period=PERIOD, run="run-2", seq=SEQ) is not None
    outputs, output = storage.outputs(run="run-9", fence=0), WrittenOutput(SEQ, storage.write(SIMPLE), SIMPLE)
    staged = storage.stage_by_hand(outputs, arrow_table(SIMPLE, rows("late")), output)
    assert failure(lambda: publish(outputs, output, staged, rows=1, digest="x")).problem.code == "LEASE_LOST"


def check_columns_of_rows_that_stay(storage: Storage) -> None:
    """A period that is alone may have any columns; other rows keep theirs, and get those that are new."""
    storage.put(rows("a"), SIMPLE, run="run-1")
    other: dict[str, Type] = {"id": TEXT, "day": DATE}
    changed = WrittenOutput(SEQ, storage.write(other), other)
    assert storage.target(other, run="run-2").check(mode="replace") == United({})
    storage.put([{"id": "x", "day": date(2026, 1, 31)}], other, run="run-2")
    assert storage.see(other) == [{"id": "x", "day": date(2026, 1, 31)}]
    assert storage.outputs(run="run-2").registered(changed)[0] == other
    assert storage.target({"value": TEXT}, run="run-3").check(mode="append") == United(other)
    for outputs in (storage.outputs(run="run-4", period="2026-02"), storage.outputs(run="run-4")):
        append = WrittenOutput(SEQ, storage.write(SIMPLE, mode="append"), SIMPLE)
        assert isinstance(failure(partial(outputs.check, append)).problem, OutputWrite)
    storage.put([{"ID": "y", "value": "b"}], {"ID": TEXT, "value": TEXT}, run="run-5", mode="append")
    whole: dict[str, Type] = {**other, "value": TEXT}
    assert storage.outputs(run="run-5").registered(changed)[0] == whole
    assert storage.see(whole) == [
        {"id": "x", "day": date(2026, 1, 31), "value": None},
        {"id": "y", "day": None, "value": "b"},
    ]


def check_replaced_by_nothing(storage: Storage) -> None:
    """Rows that are replaced by none are gone, and the publication is found."""
    storage.put(rows("b", start=2), SIMPLE, run="run-1", period="2026-02")
    storage.put(rows("a"), SIMPLE, run="run-2")
    stored = load_stored(storage.put([], SIMPLE, run="run-3"))
    assert storage.see(SIMPLE) == rows("b", start=2)
    commit = storage.outputs(run="run-3").find_commit(WrittenOutput(SEQ, storage.write(SIMPLE), SIMPLE))
    assert commit is not None
    assert commit.rows == 0
    assert storage.port.of_record(stored).sample(stored, SIMPLE, 5) == []


def check_staged_files_that_are_not_as_they_should_be(storage: Storage) -> None:
    """Files are converted again if they are gone, or if the table has got wider numbers since."""
    narrow: dict[str, Type] = {"id": INTEGER, "amount": DecimalType(5, 2)}
    wide: dict[str, Type] = {"id": INTEGER, "amount": DecimalType(9, 4)}
    outputs, output = storage.outputs(), WrittenOutput(SEQ, storage.write(narrow), narrow)
    table = arrow_table(narrow, [{"id": 1, "amount": Decimal("1.25")}])
    staged = outputs.convert(output, storage.stage_by_hand(outputs, table, output), rows=1)
    storage.put([{"id": 2, "amount": Decimal("2.1234")}], wide, run="run-2", period="2026-02")
    outputs.publish([(output, staged, 1, "d")])
    expected = [{"id": 1, "amount": Decimal("1.2500")}, {"id": 2, "amount": Decimal("2.1234")}]
    assert storage.see(wide) == expected
    stored = load_stored(outputs.stored(output).document())
    inspected = storage.port.of_record(stored).inspect(stored, run="run-1", seq=SEQ)
    assert (inspected.changed, inspected.gone, inspected.files) == ((), (), 2)
    assert outputs.find_leftovers(output) == []


def check_column_of_run_periods_that_comes_later(storage: Storage) -> None:
    storage.put(rows("a"), SIMPLE, run="run-1")
    columns: dict[str, Type] = {**SIMPLE, "_Run_Period": TEXT}
    output = WrittenOutput(SEQ, storage.write(columns), columns)
    problem = failure(lambda: storage.outputs(run="run-2").check(output)).problem
    assert isinstance(problem, OutputWrite)
    assert "now also a column" in problem.detail


def check_drafts_are_files(storage: Storage) -> None:
    """What is only tried out is written to Parquet files in a folder of its own, and the table is not touched."""
    drafts = storage.root / "drafts"
    outputs = Outputs(
        Storages(storage.root, {storage.source.id: storage.source}, sandbox=drafts),
        folder=storage.root / ".dobo/runs/draft",
        period=PERIOD,
        run="draft",
        fence=Fence("store", "project", PERIOD, 1),
        started=0.0,
    )
    output = WrittenOutput(SEQ, storage.write(SIMPLE), SIMPLE)
    staged = storage.stage_by_hand(outputs, arrow_table(SIMPLE, rows("a", "b")), output)
    document = publish(outputs, output, staged, rows=2, digest="d")
    assert document["kind"] == "parquet"
    found = dataset(drafts / storage.source.id / "out", format="parquet").to_table(columns=list(SIMPLE)).to_pylist()
    assert in_order(found) == rows("a", "b")
    assert not (storage.folder / "out").exists()


def check_nothing_is_published_upon_what_nobody_looked_at(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another period is published while a publication is under way, then a later run claims the table."""
    storage.put(rows("old"), SIMPLE, run="run-1")
    output = WrittenOutput(SEQ, storage.write(SIMPLE), SIMPLE)

    def publish_meanwhile(run: str, meanwhile: Callable[[], object]) -> RunFailed | None:
        outputs, go = storage.outputs(run=run), storage.root / f"go-{run}"
        staged = storage.stage_by_hand(outputs, arrow_table(SIMPLE, rows(run)), output)
        ready = outputs.convert(output, staged, rows=1)
        monkeypatch.setattr(failpoint, "_reached", {})
        monkeypatch.setenv(failpoint.VARIABLE, f"publish.during@{go}")
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(outputs.publish, [(output, ready, 1, run)])
            while not Path(f"{go}.waiting").exists() and not done.done():
                time.sleep(0.01)
            monkeypatch.delenv(failpoint.VARIABLE)
            meanwhile()
            go.touch()
            fault = done.exception(timeout=60)
        assert fault is None or isinstance(fault, RunFailed)
        return fault

    other = partial(storage.put, rows("other", start=5), SIMPLE, run="run-2", period="2026-02")
    assert publish_meanwhile("run-3", other) is None
    assert storage.see(SIMPLE) == [*rows("run-3"), *rows("other", start=5)]
    commit = storage.outputs(run="run-3").find_commit(output)
    assert commit is not None
    assert commit.digest == "run-3"
    failed = publish_meanwhile("run-4", partial(storage.outputs(run="run-5", fence=9).claim, [output]))
    assert failed is not None
    assert failed.problem.code == "LEASE_LOST"
    assert storage.see(SIMPLE) == [*rows("run-3"), *rows("other", start=5)]


Ready = list[tuple[WrittenOutput, StagedRows, int, str]]
"""Outputs as they are published."""


def stage_several(storage: Storage, outputs: Outputs, value: str, tables: Sequence[str]) -> Ready:
    """One row for each of several tables, ready to be published."""
    ready = []
    for seq, table in enumerate(tables, 10):
        output = WrittenOutput(seq, storage.write(SIMPLE, table=table), SIMPLE)
        staged = storage.stage_by_hand(outputs, arrow_table(SIMPLE, rows(value)), output)
        ready.append((output, outputs.convert(output, staged, rows=1), 1, value))
    return ready


def see_all(storage: Storage, tables: Sequence[str]) -> dict[str, list[str]]:
    """The values in each of several tables."""
    return {table: sorted(row["value"] for row in storage.see(SIMPLE, table)) for table in tables}
