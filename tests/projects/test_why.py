"""Every row that Spark wrote for generated projects is found again in plain Python, with the same values and the same id."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dobonomodo.engine.rowid import seed_of
from dobonomodo.formula.meaning import Value, as_value, fit
from dobonomodo.formula.types import DecimalType, Type
from dobonomodo.model import Definitions, load_documents
from dobonomodo.plan import DatasetUse, Plan, Step
from dobonomodo.plan.counts import OutputTotals
from dobonomodo.plan.facts import RunFacts
from dobonomodo.problems import Source
from dobonomodo.scenarios import run_suite
from dobonomodo.scenarios.suite import Found
from dobonomodo.why.explain import Explainer, group_of
from dobonomodo.why.explanation import Summary
from dobonomodo.why.interpret import Interpreter
from dobonomodo.why.loading import Loader
from dobonomodo.why.row import StoredRow, Traced, Wanted
from dobonomodo.why.scenario import find_used, write_scenario
from dobonomodo.why.totals import sum_outputs
from tests.projects.interpreter import sum_of
from tests.projects.running import facts_of, plain, plan_case, run_case
from tests.projects.strategies import Case, draw_case, show
from tests.projects.test_agree import expected
from tests.searching import tries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


VALIDITY = {"valid_from": "_period_from", "valid_to": "_period_to"}


def read(value: object, kind: Type | None) -> Value:
    """A stored value in the type of its column."""
    found = as_value(value)
    return fit(found, kind) if isinstance(kind, DecimalType) and isinstance(found, int | Decimal) else found


class Given:
    """The rows of a case."""

    def __init__(self, case: Case, facts: RunFacts) -> None:
        self._case, self._facts = case, facts

    def find(
        self, use: DatasetUse, wanted: Wanted, *, numbers: frozenset[int] | None, columns: frozenset[str] | None
    ) -> Iterator[StoredRow]:
        given = next(
            each
            for each in self._case.datasets
            if each["dataset"]["id"] == use.dataset_id and each["version"] == use.version
        )
        types = {name.casefold(): kind for name, kind in use.columns.items()}
        names = {name.casefold() for row in given["rows"] for name in row}
        located, periods = given["located"], use.identifiers(self._facts)
        for number, row in enumerate(given["rows"]):
            period = row["_period"] if located else None
            if located and period not in periods:
                continue  # no file has rows without a period
            folded = {name.casefold(): read(value, types.get(name.casefold())) for name, value in row.items()}
            values = {
                # Files could not have a column that is not declared.
                name if name in use.columns else VALIDITY.get(name, name): folded.get(name)
                for name in names
                if not located or name != "_period"
            }
            if numbers is not None and number not in numbers:
                continue
            if all(values.get(name) in allowed for name, allowed in wanted.items()):
                yield StoredRow(values, number, f"row {number + 1}", period)


def interpreter_of(case: Case, plan: Plan) -> Interpreter:
    facts = facts_of(case, plan)
    seed = seed_of(plan.project.id, plan.project.fingerprint(), facts)
    return Interpreter(Loader(Given(case, facts), facts, case.period.as_of, seed), facts=facts, seed=seed)


Written = tuple[Step, dict[str, Any], list[Traced]]


def find_written(case: Case, plan: Plan, spark: SparkSession) -> Iterator[Written]:
    """Every row that Spark wrote, with the rows that Python computes for it."""
    outputs = {output.seq: output for output in run_case(case, spark).outputs}
    interpreter = interpreter_of(case, plan)
    for step in plan.steps:
        for row in outputs[step.spec.seq].rows if step.spec.seq in outputs else ():
            wanted = {name: frozenset([as_value(value)]) for name, value in row.items()}
            yield step, row, interpreter.find(step.write.rows, wanted)


@pytest.mark.search
def test_every_row_is_found_with_its_stored_values(spark: SparkSession, record_property: Any) -> None:
    cells = number = contributors = 0
    while cells < tries(sample=150, full=10_000):
        case = draw_case(number)
        plan = plan_case(case).plan
        assert plan is not None
        for step, row, found in find_written(case, plan, spark):
            assert len(found) == 1 or (found and "_row_id" not in row), (number, step.spec.seq, row)
            contributors += explain_all(case, plan, step, found[0])
            cells += len(row)
        number += 1
    record_property("projects", number)
    record_property("cells", cells)
    record_property("contributors", contributors)


@pytest.mark.search
def test_every_row_is_explained_and_outputs_are_summed(record_property: Any) -> None:
    """Without Spark: as many rows as the reference has, with its totals, each explained."""
    cells = number = contributors = 0
    while cells < tries(sample=300, full=10_000):
        case = draw_case(number)
        plan = plan_case(case).plan
        assert plan is not None
        facts, want = facts_of(case, plan), expected(case)
        sums = sum_outputs(plan, facts, Given(case, facts), as_of=case.period.as_of)
        number += 1
        if want.failures:
            continue
        assert sums is not None
        steps = {step.spec.seq: step for step in plan.steps}
        for output in want.outputs:
            step, summed = steps[output.seq], sums[output.seq]
            check_kinds(summed)
            rows = interpreter_of(case, plan).find(step.write.rows, {})
            assert summed.rows == len(rows) == len(output.rows), (number, output.seq)
            for name, total in summed.totals.items():
                assert total == sum_of(row.values[name] for row in output.rows), (number, output.seq, name)
            for row in rows:
                contributors += explain_all(case, plan, step, row)
                cells += len(step.write.columns)
    record_property("projects", number)
    record_property("cells", cells)
    record_property("contributors", contributors)


def check_kinds(summed: OutputTotals) -> None:
    """Every row is of one kind, so that kinds add up to the whole."""
    assert summed.kinds is not None
    assert sum(kind.rows for kind in summed.kinds) == summed.rows
    for name, total in summed.totals.items():
        parts = [kind.totals[name] for kind in summed.kinds]
        if total is not None and None not in parts:
            assert sum((part or Decimal(0) for part in parts), Decimal(0)) == total, name


def explain_all(case: Case, plan: Plan, step: Step, row: Traced) -> int:
    """Explain a row, and those that lead to it if it is a total; gives their number."""
    explainer = Explainer(plan, facts_of(case, plan))
    _, origin = explainer.explain(row, step, contributors=None)
    group = group_of(row)
    assert (group is None) == (not isinstance(origin, Summary))
    if group is None or not isinstance(origin, Summary):
        return 0
    members = interpreter_of(case, plan).find_members(group, {})
    assert len(members) == origin.rows
    for member in members:
        explainer.explain_contributor(member, group, contributors=None)
    return len(members)


def snapshot_of(case: Case) -> dict[str, Any]:
    """What the record of a run of the case would say of its definitions."""
    datasets = [{"document": plain(each["dataset"]), "version": each["version"]} for each in case.datasets]
    period = {"identifier": case.period.identifier, "start_date": case.period.start_date, "end_date": date(2026, 1, 31)}
    return {
        "period": period,
        "started_at": case.clock.isoformat(),
        "as_of": case.period.as_of,
        "parameters": {name: show(value) for name, value in case.given.items()},
        "datasets": datasets,
        "project": {"document": plain(case.project)},
    }


@pytest.mark.search
def test_every_exported_scenario_passes(spark: SparkSession, record_property: Any) -> None:
    suite = []
    for number in range(1000, 1000 + tries(sample=5, full=60)):
        case = draw_case(number)
        plan = plan_case(case).plan
        assert plan is not None
        for step, row, found in islice(find_written(case, plan, spark), 0, None, 7):
            expected = {name: as_value(value) for name, value in row.items()}
            name = f"{number}: {step.spec.seq}"
            table = step.write.destination.name
            text = write_scenario(
                name, snapshot_of(case), plan, step, found[0], find_used(found[0]), expected, table=table
            )
            ((document,), problems) = load_documents(Source(name, text))
            assert problems == ()
            suite.append(Found(name, name, document, Path()))
            break
    assert suite
    for result in run_suite(suite, lambda: spark, definitions=Definitions()):
        assert result.differences == (), result.name
    record_property("scenarios", len(suite))
