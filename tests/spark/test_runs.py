"""Runs of whole workspaces, from files to files: what Python's front door promises."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

import dobonomodo as dobo
from dobonomodo.engine import cutting
from dobonomodo.problems import Rejected
from tests.world import LAKE, OUT, Folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CLOCK = datetime(2026, 4, 1, 8, tzinfo=UTC)

DEFINITIONS = """
resolver:
  id: monthly
  is_default: true
  rules:
    - {when: 'table.name = "accounts"', strategy: {type: path, datasource_id: lake, path: accounts.parquet}}
    - {data_level: month, strategy: {type: path, datasource_id: lake, path: "{{table_name}}/{{identifier}}.parquet"}}
---
resolver:
  id: results
  rules: [{strategy: {type: path, datasource_id: out, path: "{{table_name}}"}}]
---
calendar:
  id: months
  levels:
    - {name: year, identifier_pattern: "{year}"}
    - {name: quarter, parent_level: year, identifier_pattern: "{year}-Q{sequence}"}
    - {name: month, parent_level: quarter, identifier_pattern: "{year}-{sequence:02}"}
  generate: {from: 2026-01-01, to: 2026-12-31}
---
dataset:
  id: lines
  natural_key_columns: [id]
  main_table:
    name: lines
    temporal_mode: period
    columns:
      - {name: id, type: integer, nullable: false}
      - {name: account, type: string}
      - {name: amount, type: "decimal(15,2)"}
---
dataset:
  id: accounts
  main_table: {name: accounts, temporal_mode: snapshot, columns: [{name: code, type: string}, {name: title, type: string}]}
---
project:
  id: close
  input_dataset_id: lines
  operations:
    - seq: 1
      type: update
      arguments:
        joins: [{alias: a, dataset_id: accounts, on: account = a.code}]
        assignments: [{column: title, expression: a.title}, {column: seen, expression: NOW()}]
    - {seq: 2, type: aggregate, arguments: {group_by: [_period, title], aggregations: [{column: total, expression: SUM(amount)}]}}
    - {seq: 3, type: delete, selector: amount = 0}
    - seq: 4
      type: output
      arguments: {destination: {datasource_id: out, table: closed}, register_as_dataset: closed}
    - seq: 5
      type: output
      arguments: {destination: {type: csv, path: texts/all}, include_deleted: true, columns: [id, title, total, _period, _deleted]}
"""

CONSUMER = """
project:
  id: consume{suffix}
  input_dataset_id: closed
  {version}
  operations:
    - {{seq: 1, type: update, arguments: {{assignments: [{{column: doubled, expression: amount * 2}}]}}}}
    - {{seq: 2, type: append, arguments: {{source: {{dataset_id: closed}}, source_selector: total > 0}}}}
    - {{seq: 3, type: output, arguments: {{destination: {{datasource_id: out, table: consumed{suffix}}}}}}}
"""


class Ledger:
    """A workspace under a folder, with lines for two months."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self.spark = root, spark
        self.folder = Folder.make(root, LAKE.replace("path_prefix: data", "path_prefix: lake"), OUT, DEFINITIONS)
        self.write_lines("2026-01", [(1, "A", "10.00"), (2, "B", "20.50"), (3, "A", "0.00")])
        self.write_lines("2026-02", [(4, "A", "1.25"), (5, None, "2.00")])
        accounts = pyarrow.table({"code": ["A", "B"], "title": ["Assets", "Bonds"]})
        pyarrow.parquet.write_table(accounts, root / "lake/accounts.parquet")

    def write_lines(self, period: str, rows: Sequence[tuple[int, str | None, str]]) -> Path:
        path = self.root / f"lake/lines/{period}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        schema = pyarrow.schema(
            [("id", pyarrow.int64()), ("account", pyarrow.string()), ("amount", pyarrow.decimal128(15, 2))]
        )
        values = [{"id": one, "account": two, "amount": Decimal(three)} for one, two, three in rows]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(values, schema=schema), path)
        return path

    def add(self, name: str, text: str) -> None:
        self.folder.put(f"projects/{name}.yaml", text)

    def open(self) -> Any:
        return dobo.open(self.root)

    def activate(self, project: str = "close") -> None:
        workspace = self.open()
        workspace.apply()
        workspace.activate(project)

    def run(self, project: str = "close", period: str = "2026-01", **options: Any) -> Any:
        return self.open().run(project, period=period, started_at=options.pop("at", CLOCK), spark=self.spark, **options)

    def rows(self, table: str = "out/closed") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (
            pyarrow.dataset.dataset(self.root / table, partitioning="hive").to_table().to_pylist()
        )
        return found


@pytest.fixture
def ledger(tmp_path: Path, spark: SparkSession) -> Ledger:
    return Ledger(tmp_path, spark)


def test_two_periods_twice(ledger: Ledger) -> None:
    ledger.activate()
    first = [ledger.run(period=period) for period in ("2026-01", "2026-02")]
    rows = sorted(str(row) for row in ledger.rows())
    second = [ledger.run(period=period) for period in ("2026-01", "2026-02")]
    assert [run.problems for run in first + second] == [()] * 4
    assert [run.status for run in first + second] == ["completed"] * 4
    for one, other in zip(first, second, strict=True):
        assert {name: output.digest for name, output in one.outputs.items()} == {
            name: output.digest for name, output in other.outputs.items()
        }
    assert sorted(str(row) for row in ledger.rows()) == rows
    assert {row["run_period"] for row in ledger.rows()} == {"2026-01", "2026-02"}
    assert [(each.seq, each.rows_in, each.selected, each.added, each.deleted) for each in second[0].operations] == [
        (1, 3, 3, 0, 0),
        (2, 3, 3, 2, 0),
        (3, 5, 1, 0, 1),
        (4, 5, 4, 0, 0),
        (5, 5, 5, 0, 0),
    ]
    assert second[0].outputs["closed"].dataset_version == 3
    assert second[0].last_completed_operation == 5


SUMS = """
project:
  id: sums
  input_dataset_id: lines
  operations:
    - seq: 1
      type: update
      arguments:
        joins: [{alias: a, dataset_id: accounts, on: account = a.code}]
        assignments: [{column: title, expression: a.title}]
    - {seq: 2, type: aggregate, arguments: {group_by: [title], aggregations: [{column: total, expression: SUM(amount)}]}}
    - {seq: 3, type: aggregate, arguments: {group_by: [_period], aggregations: [{column: all, expression: SUM(total)}]}}
    - {seq: 4, type: aggregate, arguments: {group_by: [account], aggregations: [{column: number, expression: COUNT(id)}]}}
    - {seq: 5, type: output, arguments: {destination: {datasource_id: out, table: sums}, columns: [id, title, total, all, number, _row_id]}}
"""


def test_plans_are_cut_in_memory_or_by_files_with_the_same_rows(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder has what Spark would take for a pattern."""
    (tmp_path / "[a] {b}").mkdir()
    ledger = Ledger(tmp_path / "[a] {b}", spark)
    ledger.add("sums", SUMS)
    whole = ledger.run("sums", draft=True)
    assert whole.outputs["sums"].rows == 10
    staged: list[list[str]] = []

    def watch(folder: str, session: SparkSession) -> cutting.Cut:
        real = stage_in(folder, session)

        def apply(frame: DataFrame) -> DataFrame:
            cut = real.apply(frame)
            staged.append(sorted(each.name for each in Path(folder).iterdir()))
            return cut

        return replace(real, apply=apply)

    stage_in = cutting.stage_in
    monkeypatch.setattr(cutting, "stage_in", watch)
    monkeypatch.setattr("dobonomodo.engine.frames.LEAVES", 3)
    in_memory = ledger.run("sums", draft=True)
    assert staged == []
    monkeypatch.setattr("dobonomodo.engine.size.SMALL_BYTES", 0)
    by_files = ledger.run("sums", draft=True)
    assert staged[-1][-1] == f"stage-{len(staged) - 1}"
    for run in (in_memory, by_files):
        assert run.outputs["sums"].digest == whole.outputs["sums"].digest
        assert [(each.rows_in, each.selected, each.added) for each in run.operations] == [
            (each.rows_in, each.selected, each.added) for each in whole.operations
        ]
    assert not list(ledger.root.rglob("stage-*"))


@pytest.mark.parametrize("as_text", [False, True], ids=["datetime", "text"])
def test_a_clock_in_another_zone_is_one_instant(ledger: Ledger, *, as_text: bool) -> None:
    """C-89: loaded rows, NOW() and the record of the run agree."""
    clock = datetime(2026, 2, 3, 1, 30, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    run = ledger.run(at=clock.isoformat() if as_text else clock)
    rows = [row.asDict() for row in run.outputs["closed"].dataframe(ledger.spark).collect()]
    instants = {row[name] for row in rows for name in ("seen", "_created_at", "_updated_at") if row[name] is not None}
    assert len(instants) == 1
    assert run.started_at == clock
    assert run.started_at.utcoffset() == timedelta(0)
    (seen,) = run.outputs["closed"].dataframe(ledger.spark).selectExpr("unix_micros(max(seen))").first()
    assert seen == int(clock.timestamp()) * 1_000_000


def test_what_was_written_can_be_read(ledger: Ledger) -> None:
    run = ledger.run()
    assert run.draft
    assert run.outputs["closed"].location.folder.startswith(".dobo/sandbox/")
    for output, rows in (("closed", 4), ("all", 5)):
        frame = run.outputs[output].dataframe(ledger.spark)
        assert frame.count() == rows
        assert [
            (field.name, kind)
            for field, kind in zip(frame.schema.fields, run.outputs[output].columns.values(), strict=True)
        ] == list(run.outputs[output].columns.items())
    assert "Assets" in str(run.outputs["all"].dataframe(ledger.spark).collect())
    assert "closed" in run._repr_html_()


def test_a_draft_leaves_everything_alone(ledger: Ledger) -> None:
    assert ledger.run().status == "completed"
    assert not (ledger.root / "out").exists()
    assert not (ledger.root / "texts").exists()
    assert ledger.open().store.list_versions("dataset", "closed") == ()
    ledger.add("consumer", CONSUMER.format(suffix="", version=""))
    run = ledger.run("consume")
    assert run.status == "completed"
    assert run.outputs["consumed"].rows == 6


def test_a_registered_dataset_is_input_and_source_of_another_project(ledger: Ledger) -> None:
    ledger.activate()
    ledger.run()
    ledger.write_lines("2026-01", [(1, "A", "11.00")])
    ledger.run()
    ledger.add("consumer", CONSUMER.format(suffix="", version=""))
    ledger.add("pinned", CONSUMER.format(suffix="-first", version="input_dataset_version: 1"))
    workspace = ledger.open()
    workspace.apply()
    workspace.activate("consume")
    workspace.activate("consume-first")
    newest, first = ledger.run("consume"), ledger.run("consume-first")
    assert (newest.status, first.status) == ("completed", "completed")
    assert sorted(row["doubled"] for row in ledger.rows("out/consumed") if row["doubled"] is not None) == [Decimal(22)]
    doubled = [row["doubled"] for row in ledger.rows("out/consumed-first") if row["doubled"] is not None]
    assert sorted(doubled) == [Decimal(20), Decimal(41)]
    kept = {row["id"]: row["_row_id"] for row in ledger.rows() if row["id"]}
    carried = {row["id"]: row["_row_id"] for row in ledger.rows("out/consumed") if row["id"] and row["doubled"]}
    assert carried == kept


def test_a_quarter_reads_its_months(ledger: Ledger) -> None:
    ledger.write_lines("2026-03", [])
    ledger.activate()
    run = ledger.run(period="2026-Q1")
    assert run.status == "completed"
    details = [row for row in ledger.rows() if row["id"] is not None]
    assert sorted((row["id"], row["_period"]) for row in details) == [
        (1, "2026-01"),
        (2, "2026-01"),
        (4, "2026-02"),
        (5, "2026-02"),
    ]


def test_an_empty_period_is_legal(ledger: Ledger) -> None:
    ledger.write_lines("2026-03", [])
    ledger.activate()
    run = ledger.run(period="2026-03")
    assert run.status == "completed"
    assert run.outputs["closed"].rows == 0
    assert run.outputs["closed"].dataframe(ledger.spark).columns == list(run.outputs["closed"].columns)


def test_a_missing_file_fails_the_run(ledger: Ledger) -> None:
    ledger.activate()
    run = ledger.run(period="2026-05")
    assert run.status == "failed"
    assert [problem.code for problem in run.problems] == ["DATA_LOAD"]
    assert "2026-05.parquet" in run.problems[0].message()
    assert not (ledger.root / "out/closed").exists()
    with pytest.raises(Rejected) as refused:
        ledger.open().resume(run.id, spark=ledger.spark)
    assert [problem.code for problem in refused.value.problems] == ["RESUME_REFUSED"]


def check_what_a_failed_run_has_published(ledger: Ledger, run: str) -> None:
    """It is explained, compared and proved like any other result; the output that failed is not."""
    workspace = ledger.open()
    found = workspace.find_run(run)
    assert found.why("early", key={"id": 1}).row["amount"] == Decimal("10.00")
    (table,) = workspace.diff_runs(run, run, spark=ledger.spark).tables
    assert (table.table, table.rows_after, table.differs) == ("early", 3, False)
    package = workspace.write_evidence(run, ledger.root / "evidence.zip")
    assert package.path.exists()
    with pytest.raises(Rejected) as unexplained:
        found.why("late", key={"id": 1})
    with pytest.raises(Rejected) as uncompared:
        workspace.diff_runs(run, run, "late")
    for refused in (unexplained, uncompared):
        assert [problem.code for problem in refused.value.problems] == ["OUTPUT_NOT_FOUND"]


@pytest.mark.parametrize("publish", ["together", "as_done"])
def test_a_fault_in_the_data_names_the_operation_and_publishes_nothing_more(ledger: Ledger, publish: str) -> None:
    ledger.add(
        "faulty",
        f"""
project:
  id: faulty
  input_dataset_id: lines
  publish: {publish}
  operations:
    - {{seq: 1, type: output, arguments: {{destination: {{datasource_id: out, table: early}}}}}}
    - seq: 2
      name: too large
      type: update
      selector: id > 0
      arguments:
        assignments: [{{column: small, expression: id * 2}}, {{column: big, expression: id * 9223372036854775807}}]
    - {{seq: 3, type: output, arguments: {{destination: {{datasource_id: out, table: late}}}}}}
""",
    )
    ledger.activate("faulty")
    run = ledger.run("faulty")
    assert run.status == "failed"
    assert (run.problems[0].code, run.problems[0].to_dict()["operation_seq"]) == ("ARITHMETIC_OVERFLOW", 2)
    assert run.problems[0].expression == "id * 9223372036854775807"
    early = publish == "as_done"
    assert run.last_completed_operation == (1 if early else None)
    assert (ledger.root / "out/early").exists() == early
    assert not early or len(ledger.rows("out/early")) == 3
    assert not (ledger.root / "out/late").exists()
    if early:
        check_what_a_failed_run_has_published(ledger, run.id)
    again = ledger.open().resume(run.id, spark=ledger.spark)
    assert (again.status, again.attempts) == ("failed", 2)
    ledger.write_lines("2026-01", [(1, "A", "1.00")])
    with pytest.raises(Rejected) as refused:
        ledger.open().resume(run.id, spark=ledger.spark)
    assert [problem.code for problem in refused.value.problems] == ["INPUT_CHANGED"]


def test_verifying(ledger: Ledger) -> None:
    ledger.activate()
    first = ledger.run()
    workspace = ledger.open()
    assert workspace.verify(first.id, spark=ledger.spark)[1] == ()
    assert workspace.verify(first.id, replay=True, spark=ledger.spark)[1] == ()

    data = ledger.root / first.outputs["closed"].location.data
    path = data / first.outputs["closed"].location.files[0]
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table.set_column(0, "id", pyarrow.array([9] * table.num_rows, pyarrow.int64())), path)
    found = workspace.verify(first.id, spark=ledger.spark)[1]
    assert [(problem.code, problem.table) for problem in found] == [("DIGEST_DIFFERS", "closed")]

    second = ledger.run()
    found = workspace.verify(first.id, spark=ledger.spark)[1]
    assert {problem.table for problem in found} == {"closed", "all"}
    assert all(second.id in problem.found for problem in found)


def test_a_destination_that_the_run_reads_is_safe(ledger: Ledger) -> None:
    ledger.add(
        "rolling",
        """
dataset:
  id: rolled
  resolver_id: results
  main_table: {name: rolled, columns: [{name: id, type: integer}, {name: amount, type: "decimal(15,2)"}]}
---
project:
  id: start
  input_dataset_id: lines
  operations:
    - {seq: 1, type: output, arguments: {destination: {datasource_id: out, table: rolled}, columns: [id, amount]}}
---
project:
  id: roll
  input_dataset_id: rolled
  operations:
    - {seq: 1, type: update, arguments: {assignments: [{column: id, expression: id + 10}]}}
    - {seq: 2, type: output, arguments: {destination: {datasource_id: out, table: rolled}, columns: [id, amount]}}
    - {seq: 3, type: output, arguments: {destination: {datasource_id: out, table: copy}, columns: [id, amount]}}
""",
    )
    ledger.activate("start")
    ledger.run("start")
    ledger.activate("roll")
    for number in (1, 2):
        run = ledger.run("roll")
        assert run.status == "completed", run.problems
        for table in ("rolled", "copy"):
            found = sorted(row["id"] for row in ledger.rows(f"out/{table}"))
            assert found == [1 + 10 * number, 2 + 10 * number, 3 + 10 * number]


def test_a_closed_period_runs_only_on_request(ledger: Ledger) -> None:
    ledger.activate()
    ledger.open().change_period("2026-01", "closed")
    with pytest.raises(Rejected) as refused:
        ledger.run()
    assert [problem.code for problem in refused.value.problems] == ["PERIOD_NOT_RUNNABLE"]
    run = ledger.run(override_closed=True, reason="late invoice")
    assert (run.status, run.override.reason) == ("completed", "late invoice")


def test_locked_results_stay_readable_after_the_period_was_reopened_and_run_again(ledger: Ledger) -> None:
    ledger.activate()
    locked = ledger.run()
    workspace = ledger.open()
    for status in ("closed", "locked"):
        workspace.change_period("2026-01", status)
    workspace.reopen_period("2026-01", reason="late invoice")
    ledger.write_lines("2026-01", [(1, "A", "10.00"), (2, "B", "20.50"), (9, "B", "7.00")])
    again = ledger.run(at=CLOCK + timedelta(hours=1))
    assert again.outputs["closed"].digest != locked.outputs["closed"].digest
    assert (again.locked.run, again.locked.problems) == (locked.id, ())
    attributed = again.locked.difference.attribution
    assert attributed.causes == ("rows of input lines", "clock")
    amount = next(line for line in attributed.lines if (line.table, line.column) == ("closed", "amount"))
    assert [str(part) for part in amount.parts] == ["7.00", "0.00"]
    page = workspace.write_report(again.id).read_text()
    assert page.count("<svg") == sum(bool(part) for line in attributed.lines for part in line.parts)
    assert f"locked with the result of run {locked.id}" in page
    assert "Changes to the locked result" not in workspace.write_report(locked.id).read_text()
    long_ago = time.time() - 24 * 3600
    for mark in ledger.root.rglob("replaced"):
        os.utime(mark, (long_ago, long_ago))
    third = ledger.run(at=CLOCK + timedelta(hours=2))
    assert (third.status, third.locked) == ("completed", None)
    for run, ids in ((locked, [1, 2]), (again, None)):
        found = workspace.find_run(run.id)
        if ids is not None:
            rows = found.outputs["closed"].dataframe(ledger.spark).collect()
            assert sorted(row["id"] for row in rows if row["id"] is not None) == ids
            assert len(workspace.sample(run.id, 100)["all"]) == run.outputs["all"].rows
            assert workspace.verify(run.id, spark=ledger.spark)[1] == ()
        else:
            _, problems = workspace.verify(run.id, spark=ledger.spark)
            assert {problem.code for problem in problems} == {"DIGEST_DIFFERS"}


def test_a_session_that_is_passed_in_keeps_its_settings(ledger: Ledger) -> None:
    before = {name: ledger.spark.conf.get(name) for name in ("spark.sql.ansi.enabled", "spark.sql.shuffle.partitions")}
    other = ledger.spark.newSession()
    other.conf.set("spark.sql.ansi.enabled", "false")
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    ledger.activate()
    theirs = ledger.open().run("close", period="2026-01", started_at=CLOCK, spark=other)
    assert other.conf.get("spark.sql.ansi.enabled") == "false"
    assert other.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert theirs.outputs["closed"].digest == ledger.run().outputs["closed"].digest
    assert {name: ledger.spark.conf.get(name) for name in before} == before


def test_outputs_that_are_taken_from_another_one_are_what_they_would_be_by_themselves(ledger: Ledger) -> None:
    ledger.add(
        "shared",
        """
project:
  id: shared
  input_dataset_id: lines
  operations:
    - seq: 1
      type: update
      arguments:
        joins: [{alias: a, dataset_id: accounts, on: account = a.code}]
        assignments: [{column: title, expression: a.title}, {column: seen, expression: NOW()}]
    - {seq: 2, type: aggregate, arguments: {group_by: [title], aggregations: [{column: total, expression: SUM(amount)}]}}
    - {seq: 3, type: delete, selector: amount = 0}
    - {seq: 4, type: output, arguments: {destination: {datasource_id: out, table: active}}}
    - {seq: 5, type: output, arguments: {destination: {datasource_id: out, table: everything}, include_deleted: true}}
    - seq: 6
      type: output
      selector: title = "Assets" AND _operation_seq = 0
      arguments: {destination: {type: csv, path: texts/some}, columns: [title, id, _row_id]}
    - {seq: 7, type: delete}
    - {seq: 8, type: output, arguments: {destination: {datasource_id: out, table: nothing}}}
""",
    )
    ledger.activate("shared")
    run = ledger.run("shared")
    assert run.status == "completed", run.problems
    assert {name: output.rows for name, output in run.outputs.items()} == {
        "active": 4,
        "everything": 5,
        "some": 1,
        "nothing": 0,
    }
    assert [each.selected for each in run.operations] == [3, 3, 1, 4, 5, 1, 4, 0]
    # Replaying computes every output from the inputs.
    assert ledger.open().verify(run.id, replay=True, spark=ledger.spark)[1] == ()
    assert ledger.open().verify(run.id, spark=ledger.spark)[1] == ()
    ids = {row["id"]: row["_row_id"] for row in ledger.rows("out/everything")}
    assert {row["id"]: row["_row_id"] for row in ledger.rows("out/active")}.items() <= ids.items()


TYPES = {"id": pyarrow.int64(), "_period": pyarrow.string()}
LOOSE = """
datasource: {id: texts, type: csv, options: {path_prefix: lake}}
---
resolver: {id: beside, rules: [{strategy: {type: path, datasource_id: %s, path: "{{table_name}}-{{identifier}}"}}]}
---
dataset:
  id: loose
  resolver_id: beside
  main_table: {name: loose, columns: [{name: id, type: integer}]}
---
project:
  id: loose
  input_dataset_id: lines
  operations:
    - {seq: 1, type: append, arguments: {source: {dataset_id: loose}}}
    - seq: 2
      type: output
      selector: _operation_seq = 1
      arguments: {destination: {datasource_id: out, table: loose}, columns: [id, _period]}
"""


@pytest.mark.parametrize("source", ["lake", "texts"])
def test_periods_that_a_source_without_a_temporal_mode_stores_are_appended(ledger: Ledger, source: str) -> None:
    """As in scenarios (C-87); a file that is named by a period does not give its rows one."""
    ledger.add("loose", LOOSE % source)
    rows: dict[str, dict[str, list[Any]]] = {
        "2026-01": {"id": [7, 8], "_period": ["2025-12", None]},
        "2026-02": {"id": [9]},
    }
    for period, values in rows.items():
        table = pyarrow.table(values, schema=pyarrow.schema({name: TYPES[name] for name in values}))
        write = pyarrow.csv.write_csv if source == "texts" else pyarrow.parquet.write_table
        write(table, ledger.root / f"lake/loose-{period}")
    found = {}
    for period in rows:
        run = ledger.run("loose", period, draft=True)
        assert run.status == "completed", run.problems
        for row in run.outputs["loose"].dataframe(ledger.spark).collect():
            found[row["id"]] = row["_period"]
    assert found == {7: "2025-12", 8: None, 9: None}


IDS = """
project:
  id: ids{suffix}
  input_dataset_id: lines
  operations:
    - {{seq: 1, type: update, arguments: {{assignments: [{{column: own, expression: "{own}"}}]}}}}
    - {{seq: 2, type: aggregate, arguments: {{group_by: [account], aggregations: [{{column: total, expression: SUM(amount)}}]}}}}
    - {{seq: 3, type: append, arguments: {{source: {{dataset_id: lines}}}}}}
    - seq: 4
      type: output
      arguments: {{destination: {{datasource_id: out, table: ids{suffix}}}, columns: [id, own, _row_id, _operation_seq]}}
"""

GROWN = """
project:
  id: grown
  input_dataset_id: lines
  operations:
    - {{seq: 1, type: update, arguments: {{assignments: [{{column: {column}, expression: {value}}}]}}}}
    - {{seq: 2, type: output, arguments: {{destination: {destination}, register_as_dataset: grown, columns: {columns}}}}}
"""
READ_GROWN = """
project:
  id: read-grown
  input_dataset_id: lines
  operations:
    - {seq: 1, type: update, arguments: {assignments: [{column: note, expression: '"none"'}, {column: size, expression: "amount * 1"}]}}
    - {seq: 2, type: append, arguments: {source: {dataset_id: grown}}}
    - seq: 3
      type: output
      selector: _operation_seq = 2
      arguments: {destination: {datasource_id: out, table: seen}, columns: [id, note, size]}
"""


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_later_period_with_more_and_wider_columns_is_read_by_the_next_project(ledger: Ledger, kind: str) -> None:
    """C-86: and what the earlier run wrote is still what it was; a change that cannot be read is refused before Spark works."""
    destination = f"{{type: {kind}, path: grown}}"

    def run(period: str, column: str, value: str, columns: str) -> Any:
        text = GROWN.format(column=column, value=value, columns=columns, destination=destination)
        ledger.add("grown", text)
        ledger.activate("grown")
        return ledger.run("grown", period)

    first = run("2026-01", "size", "id + 0", "[id, size]")
    second = run("2026-02", "note", "'\"new\"'", "[note, id]")
    ledger.write_lines("2026-03", [(6, "A", "1.25")])
    third = run("2026-03", "size", "amount", "[size, id]")
    assert [each.problems for each in (first, second, third)] == [()] * 3
    ledger.add("read-grown", READ_GROWN)
    seen = ledger.run("read-grown", draft=True)
    assert seen.problems == ()
    found = {row["id"]: (row["note"], row["size"]) for row in seen.outputs["seen"].dataframe(ledger.spark).collect()}
    old = {1: (None, 1), 2: (None, 2), 3: (None, 3)}
    assert found == {**old, 4: ("new", None), 5: ("new", None), 6: (None, Decimal("1.25"))}
    assert ledger.open().verify(first.id, spark=ledger.spark)[1] == ()
    refused = run("2026-02", "size", "account", "[id, size]")
    assert [(each.code, each.operation and each.operation.seq) for each in refused.problems] == [("OUTPUT_WRITE", 2)]
    assert ledger.open().store.list_versions("dataset", "grown")[-1].version == 3


UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest.mark.parametrize("keyed", [True, False])
def test_row_ids_are_all_different(ledger: Ledger, keyed: bool) -> None:
    """Over several locations, with and without a natural key, and whether a formula looks at them or not."""
    if not keyed:
        path = ledger.root / "dobo.yaml"
        path.write_text(path.read_text().replace("  natural_key_columns: [id]\n", ""))
    # A key that repeats, within a file and beyond it, is no reason for an id that does (C-85).
    keys = [0, 1, -1, 1, 2**63 - 1, 2, 0]
    ledger.write_lines("2026-01", [(key, "A", "1.00") for key in keys])
    ledger.write_lines("2026-02", [(key, "B", "1.00") for key in range(2, 9)])
    ledger.write_lines("2026-03", [(key, "C", "1.00") for key in range(100, 107)])
    found = {}
    for suffix, own in {"-early": "_row_id", "-late": "'none'"}.items():
        ledger.add(f"ids{suffix}", IDS.format(suffix=suffix, own=own))
        run = ledger.run(f"ids{suffix}", "2026-Q1", draft=True)
        found[suffix] = ledger.rows(run.outputs[f"ids{suffix}"].location.folder)
    for suffix, rows in found.items():
        assert len(rows) == 3 * 7 + 3 + 3 * 7, suffix
        assert len({row["_row_id"] for row in rows}) == len(rows), suffix
        assert all(UUID.fullmatch(row["_row_id"]) for row in rows), suffix
    assert all(row["own"] == row["_row_id"] for row in found["-early"] if row["_operation_seq"] == 0)


def test_a_chain_of_drafts_runs_in_order(ledger: Ledger) -> None:
    """C-93: the second project is refused before the first has run, and names it."""
    ledger.add("consumer", CONSUMER.format(suffix="", version=""))
    assert ledger.open().problems() == ()
    with pytest.raises(Rejected) as refused:
        ledger.run("consume")
    problems: Any = refused.value.problems
    assert [(each.code, each.registered_by, each.period) for each in problems] == [
        ("INPUT_DATASET_NOT_FOUND", ("close",), "2026-01"),
        ("APPEND_001", ("close",), "2026-01"),
    ]
    assert not (ledger.root / ".dobo/runs").exists()
    assert ledger.run("close").status == "completed"
    assert ledger.run("consume").outputs["consumed"].rows == 6


# --- runs in a thread


class Held:
    """A listener that keeps a run from going on before it computes."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.reached = threading.Event()

    def started(self, run: object, plan: object) -> None: ...

    def working(self, what: str) -> None: ...

    def output_started(self, step: object) -> None:
        self.reached.set()
        assert self.go.wait(120)

    def advanced(self, run: object) -> None: ...

    def finished(self, run: object) -> None: ...


def test_a_started_run_goes_on_by_itself(ledger: Ledger) -> None:
    ledger.activate()
    workspace, held = ledger.open(), Held()
    handle = workspace.start("close", period="2026-01", spark=ledger.spark, listener=held)
    assert (handle.status, handle.is_over, handle.id) == ("running", False, workspace.find_run("latest").id)
    assert held.reached.wait(120)
    with pytest.raises(TimeoutError):
        handle.wait(timeout=0.01)
    held.go.set()
    run = handle.wait(timeout=240)
    assert (run.id, run.status, handle.status, handle.is_over) == (handle.id, "completed", "completed", True)
    assert run.outputs["closed"].dataframe(ledger.spark).count() == run.outputs["closed"].rows
    assert (
        run.outputs["closed"].digest
        == workspace.run("close", period="2026-01", spark=ledger.spark, started_at=run.started_at)
        .outputs["closed"]
        .digest
    )


def test_what_is_rejected_is_raised_before_a_run_starts(ledger: Ledger) -> None:
    workspace = ledger.open()
    for project, period, code in (("close", "2026-13", "PERIOD_NOT_FOUND"), ("clos", "2026-01", "NOT_DEFINED")):
        with pytest.raises(Rejected) as refused:
            workspace.start(project, period=period, spark=ledger.spark)
        assert [problem.code for problem in refused.value.problems] == [code]
    with pytest.raises(TypeError):
        workspace.start("close", period=2026, spark=ledger.spark)
    assert workspace.runs() == ()


def test_a_second_run_of_the_same_period_is_refused_at_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOBO_LEASE_SECONDS", "2")
    ledger.activate()
    workspace, held = ledger.open(), Held()
    first = workspace.start("close", period="2026-01", spark=ledger.spark, listener=held)
    assert held.reached.wait(120)
    with pytest.raises(Rejected) as refused:
        workspace.start("close", period="2026-01", spark=ledger.spark)
    assert [problem.code for problem in refused.value.problems] == ["RUN_HELD"]
    held.go.set()
    assert first.wait(timeout=240).status == "completed"


def test_a_started_run_can_be_cancelled(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOBO_LEASE_SECONDS", "2")
    ledger.activate()
    workspace, held = ledger.open(), Held()
    handle = workspace.start("close", period="2026-01", spark=ledger.spark, listener=held)
    assert held.reached.wait(120)
    assert handle.cancel().status == "cancelled"
    held.go.set()
    run = handle.wait(timeout=240)
    assert (run.status, dict(run.outputs), handle.status) == ("cancelled", {}, "cancelled")


def test_runs_of_one_workspace_go_on_side_by_side(ledger: Ledger) -> None:
    ledger.activate()
    workspace = ledger.open()
    handles = [workspace.start("close", period=period, spark=ledger.spark) for period in ("2026-01", "2026-02")]
    runs = [handle.wait(timeout=240) for handle in handles]
    assert [(run.status, run.problems) for run in runs] == [("completed", ())] * 2
    assert [workspace.verify(run.id, spark=ledger.spark)[1] for run in runs] == [(), ()]
