"""Random changes to random projects: every difference is divided among what was changed, with nothing left over."""

from __future__ import annotations

import random
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.parquet
import pytest

from tests.searching import tries
from tests.spark.test_runs import CLOCK, DEFINITIONS, Ledger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPERATIONS: dict[int, list[str | None]] = {
    10: [
        "{seq: 10, type: update, selector: amount > 5, arguments: {assignments: [{column: net, expression: 'ROUND(amount * 0.9, 2)'}]}}",
        "{seq: 10, type: update, selector: amount > 1, arguments: {assignments: [{column: net, expression: 'ROUND(amount / 3, 2)'}]}}",
        "{seq: 10, type: update, arguments: {assignments: [{column: net, expression: amount}, {column: fee, expression: '0.35'}]}}",
    ],
    15: [
        "{seq: 15, type: update, arguments: {assignments: [{column: fee, expression: 'ROUND(net * 0.01, 2)'}]}}",
        "{seq: 15, type: update, arguments: {assignments: [{column: tax, expression: 'ROUND(net * 0.19, 2)'}]}}",
        None,
    ],
    20: [
        "{seq: 20, type: delete, selector: amount = 0}",
        "{seq: 20, type: delete, selector: amount < 4}",
        "{seq: 20, type: delete, selector: 'MOD(id, 3) = 0'}",
        None,
    ],
    30: [
        "{seq: 30, type: aggregate, arguments: {group_by: [account], aggregations: [{column: total, expression: SUM(net)}]}}",
        "{seq: 30, type: aggregate, arguments: {group_by: [title], aggregations: [{column: total, expression: SUM(amount)}]}}",
        None,
    ],
}
"""Variants of each operation; some need what only some variants of others make."""
HEAD = """\
project:
  id: close
  input_dataset_id: lines
  operations:
    - seq: 1
      type: update
      arguments:
        joins: [{alias: a, dataset_id: accounts, on: account = a.code}]
        assignments: [{column: title, expression: a.title}, {column: day, expression: DAY(TODAY())}]
"""
OUTPUT = "    - {seq: 90, type: output, arguments: {destination: {datasource_id: out, table: closed}}}\n"


class Random:
    """A workspace that changes at random."""

    def __init__(self, ledger: Ledger, chance: random.Random) -> None:
        self.ledger, self.chance = ledger, chance
        self.chosen = {seq: chance.randrange(len(variants)) for seq, variants in OPERATIONS.items()}
        self.clock = CLOCK
        self.write_lines()
        self.write_accounts()

    def write_lines(self) -> None:
        rows = range(self.chance.randrange(3, 9))
        amounts = [f"{self.chance.randrange(0, 2000) / 100:.2f}" for _ in rows]
        self.ledger.write_lines("2026-01", [(at, self.chance.choice("ABC"), amounts[at]) for at in rows])

    def write_accounts(self) -> None:
        titles = [self.chance.choice(["Assets", "Bonds", "Cash"]) for _ in "AB"]
        table = pyarrow.table({"code": ["A", "B"], "title": titles})
        pyarrow.parquet.write_table(table, self.ledger.root / "lake/accounts.parquet")

    def change(self) -> set[str]:
        """Change some of it; gives the kinds of causes."""
        kinds = self.chance.sample(["input", "dataset", "operation", "facts"], self.chance.randrange(1, 5))
        if "input" in kinds:
            self.write_lines()
        if "dataset" in kinds:
            self.write_accounts()
        if "facts" in kinds:
            self.clock += timedelta(days=3)
        if "operation" in kinds:
            for seq in self.chance.sample(list(OPERATIONS), self.chance.randrange(1, 4)):
                self.chosen[seq] = self.chance.randrange(len(OPERATIONS[seq]))
        return {*kinds, "program"}

    def run(self) -> Any:
        """Run the project as it is now; None if it does not plan."""
        operations = [OPERATIONS[seq][at] for seq, at in self.chosen.items()]
        text = HEAD + "".join(f"    - {each}\n" for each in operations if each is not None) + OUTPUT
        self.ledger.folder.put("dobo.yaml", self.rest() + "---\n" + text)
        workspace = self.ledger.open()
        if any(problem.severity == "error" for problem in workspace.problems()):
            return None
        self.ledger.activate()
        return self.ledger.run(at=self.clock)

    def change_and_run(self) -> tuple[Any, set[str]]:
        """The next run that plans, with the kinds of all that was changed for it."""
        kinds, run = set[str](), None
        while run is None:
            kinds |= self.change()
            run = self.run()
        return run, kinds

    def rest(self) -> str:
        """The definitions but the project."""
        text = (self.ledger.root / "dobo.yaml").read_text()
        return text[: text.index("---\nproject:")]


def divide_by_spark(ledger: Ledger, one: Any, other: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same as for many rows, which are not computed in Python."""
    with monkeypatch.context() as changed:
        changed.setattr("dobonomodo.why.totals.FEW_ROWS", -1)
        return ledger.open().diff_runs(one.id, other.id, attribute=True, spark=ledger.spark).attribution


def divide_among_all(ledger: Ledger, one: Any, other: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same with every changed operation, whether or not it reaches a number that changed."""
    with monkeypatch.context() as changed:
        changed.setattr("dobonomodo.workspace.attributing._find_reached", lambda *given: {})
        return ledger.open().diff_runs(one.id, other.id, attribute=True, spark=ledger.spark).attribution


def parts_of(attribution: Any) -> dict[tuple[str, str | None, str | None], dict[str, Decimal]]:
    """What changed, with the causes that have a part of it."""
    return {
        (line.table, line.column, line.kind): {
            name: part for name, part in zip(attribution.causes, line.parts, strict=True) if part
        }
        for line in (*attribution.lines, *attribution.by_kind)
        if line.difference
    }


def check_kinds(attribution: Any) -> int:
    """What the kinds of rows of a table grew by is what all of its rows grew by; gives the number of their lines."""
    whole = {(line.table, line.column): line.difference for line in attribution.lines}
    kinds: dict[tuple[str, str | None], Decimal] = {}
    for line in attribution.by_kind:
        kinds[line.table, line.column] = kinds.get((line.table, line.column), Decimal(0)) + line.difference
    assert kinds == {name: whole[name] for name in kinds}
    return len(attribution.by_kind)


@pytest.mark.search
def test_random_changes_are_divided_among_their_causes(
    tmp_path: Path, spark: SparkSession, record_property: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "---\nproject:" in DEFINITIONS
    compared = several = left_out = by_kind = 0
    made = Random(Ledger(tmp_path, spark), random.Random(1))
    one, _ = made.change_and_run()
    for number in range(tries(sample=1, full=100)):
        other, kinds = made.change_and_run()
        assert (one.status, other.status) == ("completed", "completed")
        found = made.ledger.open().diff_runs(one.id, other.id, attribute=True, spark=spark)
        attribution = found.attribution
        if number % 20 == 0:
            assert divide_by_spark(made.ledger, one, other, monkeypatch) == attribution, number
        beside = sum("reaches no number that changed" in note for note in attribution.notes)
        if beside:
            among_all = divide_among_all(made.ledger, one, other, monkeypatch)
            # Where causes had to be put together, there were fewer of them without the operations beside.
            if not any(" + " in cause for cause in (*among_all.causes, *attribution.causes)):
                assert parts_of(among_all) == parts_of(attribution), number
        left_out += beside
        assert {kind for each in attribution.kinds for kind in each} <= kinds, number
        for line in (*attribution.lines, *attribution.by_kind):
            assert (line.residual, sum(line.parts, Decimal(0))) == (0, line.difference), (number, line)
        by_kind += check_kinds(attribution)
        (table,) = found.tables
        rows = next(line for line in attribution.lines if line.column is None)
        assert (rows.before, rows.after) == (table.rows_before, table.rows_after)
        compared += 1
        several += len(attribution.causes) > 1
        one = other
    record_property("pairs of runs", compared)
    record_property("with several causes", several)
    record_property("numbers of a kind of rows", by_kind)
    record_property("operations that reach no number that changed", left_out)
