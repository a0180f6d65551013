"""Every row that Spark wrote for generated projects is found again in plain Python, with the same values and the same id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from dobonomodo.engine.rowid import seed_of
from dobonomodo.formula.meaning import as_value
from dobonomodo.plan import DatasetUse, Plan
from dobonomodo.why.interpret import Interpreter
from dobonomodo.why.loading import Loader
from dobonomodo.why.row import StoredRow, Wanted
from tests.projects.running import facts_of, plan_case, run_case
from tests.projects.strategies import Case, draw_case
from tests.searching import tries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Given:
    """The rows of a case."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def find(
        self, use: DatasetUse, wanted: Wanted, *, numbers: frozenset[int] | None, columns: frozenset[str] | None
    ) -> Iterator[StoredRow]:
        given = next(
            each
            for each in self._case.datasets
            if each["dataset"]["id"] == use.dataset_id and each["version"] == use.version
        )
        names = {name.casefold() for row in given["rows"] for name in row}
        period = self._case.period.identifier if given["located"] else None
        for number, row in enumerate(given["rows"]):
            if period is not None and row["_period"] != period:
                continue
            folded = {name.casefold(): as_value(value) for name, value in row.items()}
            values = {name: folded.get(name) for name in names if period is None or name != "_period"}
            if numbers is not None and number not in numbers:
                continue
            if all(values.get(name) in allowed for name, allowed in wanted.items()):
                yield StoredRow(values, number, f"row {number + 1}", period)


def interpreter_of(case: Case, plan: Plan) -> Interpreter:
    period = case.period
    facts = facts_of(case, plan)
    seed = seed_of(plan.project.id, plan.project.fingerprint(), facts)
    return Interpreter(Loader(Given(case), facts, period.as_of, seed), facts=facts, seed=seed)


@pytest.mark.search
def test_every_row_is_found_with_its_stored_values(spark: SparkSession) -> None:
    cells = 0
    for number in range(tries(sample=5, full=150)):
        case = draw_case(number)
        plan = plan_case(case).plan
        assert plan is not None
        outputs = {output.seq: output for output in run_case(case, spark).outputs}
        interpreter = interpreter_of(case, plan)
        for step in plan.steps:
            if step.lowered.write is None or step.spec.seq not in outputs:
                continue
            for row in outputs[step.spec.seq].rows:
                wanted = {name: frozenset([as_value(value)]) for name, value in row.items()}
                found = interpreter.find(step.write.rows, wanted)
                assert len(found) == 1 or (found and "_row_id" not in row), (number, step.spec.seq, row)
                cells += len(row)
    assert cells > 300
