"""Figures of whole runs, compared with sums over the same rows in plain Python."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dobonomodo as dobo
from dobonomodo.runs.figures import Figures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLOCK = datetime(2026, 4, 1, 8, tzinfo=UTC)
EXACT = Context(prec=100)
Rows = list[dict[str, Any]]

DEFINITIONS = """
workspace: {name: ledger}
---
datasource: {id: lake, type: parquet, options: {path_prefix: lake}}
---
datasource: {id: out, type: parquet, options: {path_prefix: out}}
---
resolver:
  id: files
  is_default: true
  rules: [{strategy: {type: path, datasource_id: lake, path: "{{table_name}}.parquet"}}]
---
calendar:
  id: months
  levels: [{name: month, identifier_pattern: "{year}-{sequence:02}"}]
  generate: {from: 2026-01-01, to: 2026-12-31}
---
dataset:
  id: lines
  natural_key_columns: [id]
  main_table:
    name: lines
    temporal_mode: snapshot
    columns:
      - {name: id, type: integer, nullable: false}
      - {name: account, type: string}
      - {name: amount, type: "decimal(15,2)"}
      - {name: wide, type: "decimal(38,10)"}
      - {name: quantity, type: integer}
  lookups:
    - alias: account_of
      target: {type: dataset, id: accounts}
      join_conditions: [{source_column: account, target_column: code}]
---
dataset:
  id: accounts
  main_table: {name: accounts, temporal_mode: snapshot, columns: [{name: code, type: string}, {name: title, type: string}]}
---
dataset:
  id: rates
  main_table:
    name: rates
    temporal_mode: snapshot
    columns: [{name: account, type: string}, {name: rate, type: "decimal(6,3)"}]
---
dataset:
  id: extra
  main_table:
    name: extra
    temporal_mode: snapshot
    columns: [{name: account, type: string}, {name: amount, type: "decimal(15,2)"}, {name: wide, type: "decimal(38,10)"}]
---
project:
  id: close
  input_dataset_id: lines
  operations:
    - seq: 10
      name: Convert
      type: update
      selector: quantity > 0
      arguments:
        joins: [{alias: r, dataset_id: rates, on: account = r.account}]
        assignments: [{column: eur, expression: "ROUND(amount * r.rate, 2)"}]
    - seq: 20
      name: Correct
      type: update
      selector: amount < 0
      arguments: {assignments: [{column: amount, expression: amount * 2}, {column: wide, expression: wide - 1}]}
    - seq: 30
      name: Correct again
      type: update
      selector: quantity > 3
      arguments: {assignments: [{column: amount, expression: amount + 1}]}
    - seq: 40
      name: Sum up
      type: aggregate
      arguments: {group_by: [account], aggregations: [{column: total, expression: SUM(amount)}]}
    - seq: 50
      name: Bring in
      type: append
      arguments: {source: {dataset_id: extra, joins: [{alias: known, dataset_id: rates, on: account = known.account}]}}
    - seq: 60
      name: Change what came in
      type: update
      selector: _operation_seq = 50
      arguments: {assignments: [{column: amount, expression: amount * 10}]}
    - seq: 65
      name: Not too many
      type: check
      arguments: {expect: "COALESCE(quantity, 0) < 5", severity: warn, exclude: true}
    - {seq: 70, name: Drop, type: delete, selector: quantity = 0 OR ISNULL(account)}
    - {seq: 80, type: output, arguments: {destination: {datasource_id: out, table: closed}}}
    - seq: 90
      name: Reset
      type: update
      selector: id < 10
      arguments: {assignments: [{column: amount, expression: "0"}]}
    - seq: 100
      type: output
      arguments: {destination: {datasource_id: out, table: all}, include_deleted: true, columns: [id, amount, wide, eur]}
    - seq: 110
      type: output
      selector: _operation_seq = 40
      arguments: {destination: {type: csv, path: texts/sums}, columns: [account, total]}
"""


def number(text: str | None) -> Decimal | None:
    return Decimal(text) if text is not None else None


def make_lines(count: int, *, seed: int = 7) -> Rows:
    chance = random.Random(seed)
    return [
        {
            "id": at,
            "account": chance.choice([None, "A", "A", "B", "B", "C", "X", "Y"]),
            "amount": None if chance.random() < 0.1 else EXACT.scaleb(Decimal(chance.randrange(-(10**8), 10**8)), -2),
            "wide": None if chance.random() < 0.1 else EXACT.scaleb(Decimal(chance.randrange(-(10**35), 10**35)), -10),
            "quantity": chance.choice([None, 0, 1, 2, 3, 4, 5]),
        }
        for at in range(count)
    ]


ACCOUNTS: Rows = [{"code": code, "title": code.lower()} for code in "ABC"]
RATES: Rows = [{"account": "A", "rate": Decimal("1.100")}, {"account": "B", "rate": Decimal("0.333")}]
EXTRA: Rows = [
    {"account": "A", "amount": Decimal("5.55"), "wide": Decimal("-1234567890123456789012345678.0000000001")},
    {"account": None, "amount": Decimal("-7.00"), "wide": None},
    {"account": "B", "amount": None, "wide": Decimal("1.0000000000")},
]
MONEY, WIDE = pa.decimal128(15, 2), pa.decimal128(38, 10)
TYPES = {
    "lines": {"id": pa.int64(), "account": pa.string(), "amount": MONEY, "wide": WIDE, "quantity": pa.int64()},
    "accounts": {"code": pa.string(), "title": pa.string()},
    "rates": {"account": pa.string(), "rate": pa.decimal128(6, 3)},
    "extra": {"account": pa.string(), "amount": MONEY, "wide": WIDE},
}  # fmt: skip


def write_workspace(root: Path, lines: Rows, *, definitions: str = DEFINITIONS) -> None:
    (root / "dobo.yaml").write_text(definitions)
    (root / "lake").mkdir()
    for name, rows in {"lines": lines, "accounts": ACCOUNTS, "rates": RATES, "extra": EXTRA}.items():
        table = pa.Table.from_pylist(rows, schema=pa.schema(TYPES[name].items()))
        pq.write_table(table, root / f"lake/{name}.parquet", row_group_size=50)


def run(root: Path, spark: SparkSession | None, **options: Any) -> Any:
    return dobo.open(root).run("close", period="2026-01", started_at=CLOCK, spark=spark, draft=True, **options)


# --- the same in plain Python


def total(rows: Iterable[Mapping[str, Any]], column: str) -> Decimal:
    found = Decimal(0)
    for row in rows:
        if row.get(column) is not None:
            found = EXACT.add(found, Decimal(row[column]))
    return found


COLUMNS = ("id", "amount", "wide", "quantity", "eur", "total")


class Ledger:
    """The rows between operations, and what each of these did to the totals of active rows."""

    def __init__(self, lines: Rows) -> None:
        self.rows: Rows = [{**line, "seq": 0, "deleted": False} for line in lines]
        self.changes: dict[int, dict[str, Decimal]] = {}
        self.loaded = self.totals()
        self._before = self.loaded

    def totals(self) -> dict[str, Decimal]:
        return {name: total((row for row in self.rows if not row["deleted"]), name) for name in COLUMNS}

    def step(self, seq: int) -> None:
        now = self.totals()
        self.changes[seq] = {name: EXACT.subtract(now[name], self._before[name]) for name in COLUMNS}
        self._before = now

    def change(
        self, seq: int, chosen: Callable[[dict[str, Any]], Any], values: Callable[[dict[str, Any]], Any]
    ) -> None:
        for row in self.rows:
            if not row["deleted"] and chosen(row):
                row.update(values(row))
        self.step(seq)


def rounded(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.01"), rounding="ROUND_HALF_UP", context=EXACT)


def times(value: Decimal | None, factor: Decimal | int) -> Decimal | None:
    return EXACT.multiply(value, Decimal(factor)) if value is not None else None


def plus(value: Decimal | None, more: int) -> Decimal | None:
    return EXACT.add(value, Decimal(more)) if value is not None else None


def compute(lines: Rows) -> tuple[Ledger, Rows, Rows, Rows]:
    """The ledger at the end, and the rows of the three outputs."""
    ledger = Ledger(lines)
    rates = {each["account"]: each["rate"] for each in RATES}

    def convert(row: dict[str, Any]) -> dict[str, Any]:
        product = times(row["amount"], rates[row["account"]]) if row["account"] in rates else None
        return {"eur": rounded(product) if product is not None else None}

    ledger.change(10, lambda row: (row["quantity"] or 0) > 0, convert)
    ledger.change(
        20,
        lambda row: row["amount"] is not None and row["amount"] < 0,
        lambda row: {"amount": times(row["amount"], 2), "wide": plus(row["wide"], -1)},
    )
    ledger.change(30, lambda row: (row["quantity"] or 0) > 3, lambda row: {"amount": plus(row["amount"], 1)})
    groups: dict[str | None, Rows] = {}
    for row in ledger.rows:
        groups.setdefault(row["account"], []).append(row)
    sums = [
        {"account": key, "total": total(rows, "amount"), "seq": 40, "deleted": False, "quantity": None, "amount": None}
        for key, rows in groups.items()
    ]
    ledger.rows += sums
    ledger.step(40)
    ledger.rows += [{**each, "seq": 50, "deleted": False, "quantity": None} for each in EXTRA]
    ledger.step(50)
    ledger.change(60, lambda row: row["seq"] == 50, lambda row: {"amount": times(row["amount"], 10)})
    ledger.change(65, lambda row: row["quantity"] == 5, lambda row: {"deleted": True})
    ledger.change(70, lambda row: row["quantity"] == 0 or row["account"] is None, lambda row: {"deleted": True})
    closed = [dict(row) for row in ledger.rows if not row["deleted"]]
    ledger.change(90, lambda row: row.get("id") is not None and row["id"] < 10, lambda row: {"amount": Decimal(0)})
    everything = [dict(row) for row in ledger.rows]
    summary = [dict(row) for row in ledger.rows if not row["deleted"] and row["seq"] == 40]
    return ledger, closed, everything, summary


def check_totals(figures: Figures, seq: int, rows: Rows, columns: Sequence[str]) -> None:
    (output,) = [each for each in figures.outputs if each.seq == seq]
    assert output.rows == len(rows)
    assert dict(output.totals) == {name: total(rows, name) for name in columns}


@pytest.mark.parametrize(
    ("settings", "small"),
    [({}, True), ({"spark.sql.shuffle.partitions": "5", "spark.sql.files.maxPartitionBytes": "2000"}, False)],
)
def test_figures_are_those_of_plain_python(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], *, small: bool
) -> None:
    """Observed while the rows are written, or in part read again from what was written, as it is done for many rows."""
    if not small:
        monkeypatch.setattr("dobonomodo.engine.size.SMALL_BYTES", 0)
    lines = make_lines(300)
    write_workspace(tmp_path, lines)
    session = spark.newSession()
    for name, value in {"spark.sql.shuffle.partitions": "1", **settings}.items():
        session.conf.set(name, value)
    view = run(tmp_path, session)
    assert view.status == "completed", view.problems
    figures = view.figures
    ledger, closed, everything, summary = compute(lines)
    check_totals(figures, 80, closed, COLUMNS)
    check_totals(figures, 100, everything, ["id", "amount", "wide", "eur"])
    check_totals(figures, 110, summary, ["total"])
    assert figures.loaded == {name: ledger.loaded[name] for name in ("id", "amount", "wide", "quantity")}
    for seq, changes in ledger.changes.items():
        known = {name: value for name, value in figures.changes.get(seq, {}).items() if value != 0}
        assert known == {name: value for name, value in changes.items() if value != 0}, seq
    check_joins(figures, lines)
    check_first_rows(figures, closed, summary)
    deleted = {each.seq: each.deleted for each in view.operations if each.deleted}
    assert set(deleted) == {65, 70}
    assert sum(deleted.values()) == sum(row["deleted"] for row in everything)


def check_joins(figures: Figures, lines: Rows) -> None:
    lookup, join, brought = figures.joins
    unknown = Counter(row["account"] for row in lines if row["account"] not in ("A", "B", "C"))
    assert (lookup.seq, lookup.alias, lookup.dataset, lookup.key) == (0, "account_of", "accounts", ("account",))
    assert (lookup.unmatched, lookup.rows) == (unknown.total(), len(lines))
    assert {each.values[0]: each.rows for each in lookup.most_frequent} == unknown
    chosen = [row for row in lines if (row["quantity"] or 0) > 0]
    without = Counter(row["account"] for row in chosen if row["account"] not in ("A", "B"))
    assert (join.seq, join.dataset, join.unmatched, join.rows) == (10, "rates", without.total(), len(chosen))
    ranked = sorted(without.items(), key=lambda item: (-item[1], item[0] is not None, item[0]))
    assert [(each.values[0], each.rows) for each in join.most_frequent] == ranked[:5]
    assert (brought.seq, brought.alias, brought.dataset, brought.matched, brought.unmatched) == (
        50,
        "known",
        "rates",
        2,
        1,
    )
    assert [(each.values, each.rows) for each in brought.most_frequent] == [((None,), 1)]


def check_first_rows(figures: Figures, closed: Rows, summary: Rows) -> None:
    first = figures.outputs[0].first
    assert first is not None
    assert first.order == ("id", "account")
    wanted = sorted(closed, key=lambda row: (row.get("id") is not None, row.get("id") or 0, row["account"]))[:10]
    shown = [dict(zip(first.columns, row, strict=True)) for row in first.rows]
    assert [row["account"] for row in shown] == [row["account"] for row in wanted]
    ids = [row.get("id") for row in wanted]
    assert [number(row["id"]) for row in shown] == ids
    last = figures.outputs[2].first
    assert last is not None
    assert [row[0] for row in last.rows] == sorted(row["account"] for row in summary)


def test_a_total_with_too_many_digits_is_not_known_and_fails_nothing(spark: SparkSession, tmp_path: Path) -> None:
    most = Decimal("9" * 28 + "." + "9" * 10)
    lines = [{"id": at, "account": "A", "amount": Decimal("1.00"), "wide": most, "quantity": 1} for at in range(3)]
    write_workspace(tmp_path, lines)
    view = run(tmp_path, spark)
    assert view.status == "completed", view.problems
    assert view.figures.outputs[0].totals["wide"] is None
    assert view.figures.loaded["wide"] is None
    assert view.figures.outputs[0].totals["id"] == 3
    # One that just fits is exact.
    other = tmp_path / "other"
    other.mkdir()
    write_workspace(other, lines[:1])
    assert run(other, spark).figures.loaded["wide"] == most


def test_figures_change_no_row(spark: SparkSession, tmp_path: Path) -> None:
    write_workspace(tmp_path, make_lines(200))
    on, off = run(tmp_path, spark), run(tmp_path, spark, figures=False)
    assert off.figures is None
    assert {name: output.digest for name, output in on.outputs.items()} == {
        name: output.digest for name, output in off.outputs.items()
    }
    assert [each.document() | {"milliseconds": 0} for each in on.operations] == [
        each.document() | {"milliseconds": 0} for each in off.operations
    ]


def test_the_workspace_can_switch_them_off(spark: SparkSession, tmp_path: Path) -> None:
    write_workspace(
        tmp_path, make_lines(10), definitions=DEFINITIONS.replace("{name: ledger}", "{name: ledger, figures: off}")
    )
    assert run(tmp_path, spark).figures is None
    assert run(tmp_path, spark, figures=True).figures is not None


def test_no_rows_have_totals_of_zero(spark: SparkSession, tmp_path: Path) -> None:
    write_workspace(tmp_path, [])
    view = run(tmp_path, spark)
    assert {f"{value:f}" for value in view.figures.loaded.values()} == {"0", "0.00", "0.0000000000"}
    assert view.figures.outputs[2].totals == {"total": 0}
    assert view.figures.outputs[2].first.rows == ()


def test_over_spark_connect(spark: SparkSession, connect_url: str, tmp_path: Path) -> None:
    write_workspace(tmp_path, make_lines(200))
    classic = run(tmp_path, spark).to_dict()["figures"]
    command = [
        sys.executable,
        "-m",
        "dobonomodo.cli",
        "-C",
        str(tmp_path),
        "run",
        "close",
        "-p",
        "2026-01",
        "--draft",
        "--json",
    ]
    done = subprocess.run(
        [*command, "--remote", connect_url], capture_output=True, text=True, timeout=300, env={**os.environ}, check=True
    )
    connect = json.loads(done.stdout)["data"]["figures"]
    for each in connect["outputs"]:
        each["compared"] = []
    connect["compared_with"] = []
    assert connect == classic
