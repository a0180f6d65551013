"""An operation that does not exist, written as `docs/adding.md` says: one class and one word; all else follows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

from dobonomodo.formula import ColumnRef, Scope, Typed
from dobonomodo.formula.types import BOOLEAN
from dobonomodo.model import Definitions
from dobonomodo.model.value import Id, Setting
from dobonomodo.plan.columns import joined_columns
from dobonomodo.plan.context import Context
from dobonomodo.plan.expression import ACTIVE, column, over
from dobonomodo.plan.operations import OPERATION_BY_TYPE, Effect, Facts, Lowered, Operation
from dobonomodo.plan.operations.lowered import Formula, stack
from dobonomodo.plan.relation import Keep, Match, Window
from dobonomodo.plan.rows import Rows
from dobonomodo.plan.step import Step
from dobonomodo.plan.system import ROW_ID
from dobonomodo.scenarios import find_scenarios, run_suite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Spread(Operation):
    """One new row for each row of another dataset that matches a selected row, with the number of such rows."""

    type: ClassVar[str] = "spread"
    facts: ClassVar[Facts] = Facts(Effect.SELECTS | Effect.ADDS, badge="⇉", color="blue", counted="spread")

    dataset_id: Id
    on: Setting

    def lower(self, rows: Rows, ctx: Context) -> Lowered:
        selected = ctx.selected(rows)
        known = ctx.datasets.find(self.dataset_id)
        assert known is not None
        scan = ctx.scan(known, "join", alias="to")
        passage = ctx.arguments.passage("on")
        scope = Scope(columns=rows.columns, table=rows.table, joined={"to": joined_columns(scan.schema.columns)})
        on = ctx.check(passage, scope, wanted=BOOLEAN)
        matched = Match(rows.node, "to", Keep(scan, ACTIVE), on, selected)
        mine = column(ROW_ID, rows.columns)
        made = Window(matched, "over", {"n": over("COUNT", mine, partition=(mine,))})
        values: dict[str, Typed] = {name: column(name, rows.columns) for name in ("cost", "amount")}
        values["n"] = ColumnRef("n", "over", made.schema.joined["over"]["n"])
        by = (ROW_ID, f"to.{ROW_ID}")
        node, added = stack(
            rows, {"n": values["n"].type}, made, values, ctx, by=by, source=(rows.dataset_id, rows.table)
        )
        after = Rows(node, rows.table, rows.dataset_id, rows.origins)
        return Lowered(after, selected=selected, added=added, conditions={"to": Formula(passage.value, on)})

    @classmethod
    def describe(cls, step: Step) -> list[str]:
        return [f"spreads rows where {step.lowered.conditions['to']}"]


SCENARIO = """
scenario:
  name: costs spread over their centers
  period: {identifier: "2026-01", start_date: 2026-01-01, end_date: 2026-01-31}
  datasets:
    - dataset: {id: costs, main_table: {name: costs, columns: [{name: cost, type: string}, {name: amount, type: integer}]}}
      rows: [{cost: rent, amount: 10}, {cost: power, amount: 20}, {cost: none, amount: 30}]
    - dataset: {id: centers, main_table: {name: centers, columns: [{name: cost, type: string}, {name: center, type: string}]}}
      rows: [{cost: rent, center: A}, {cost: rent, center: B}, {cost: power, center: A}]
  project:
    input_dataset_id: costs
    operations:
      - {seq: 1, type: spread, selector: amount < 100, arguments: {dataset_id: centers, on: costs.cost = to.cost}}
      - {seq: 2, type: output, arguments: {destination: {datasource_id: lake, table: result}}}
  expect:
    outputs:
      result:
        rows:
          - {cost: rent, amount: 10}
          - {cost: power, amount: 20}
          - {cost: none, amount: 30}
          - {cost: rent, amount: 10, n: 2, _operation_seq: 1}
          - {cost: rent, amount: 10, n: 2, _operation_seq: 1}
          - {cost: power, amount: 20, n: 1, _operation_seq: 1}
    operations:
      1: {rows_in: 3, matched: 3, added: 3, deleted: 0, rows_out: 6}
"""


def test_one_class_and_one_word(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPERATION_BY_TYPE, Spread.type, Spread)
    (tmp_path / "spread.yaml").write_text(SCENARIO, encoding="utf-8")
    found, problems = find_scenarios([tmp_path], root=tmp_path)
    assert problems == []
    (result,) = run_suite(found, lambda: spark, definitions=Definitions())
    assert result.differences == ()
