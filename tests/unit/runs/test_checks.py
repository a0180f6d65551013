"""A run with checks: what it publishes, what it records, and whether it can be resumed. Without a JVM."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from dobonomodo.model.locale import LOCALES
from dobonomodo.plan import Plan
from dobonomodo.plan.check import CheckResult, Severity, Status
from dobonomodo.plan.facts import RunFacts
from dobonomodo.problems import Rejected
from dobonomodo.runs import RunSpec
from dobonomodo.runs.progress import Progress
from dobonomodo.runs.runner import Computed
from dobonomodo.store import Store
from tests.unit.runs import test_runner as runs
from tests.unit.runs.test_runner import Diary, store
from tests.world import EngineByHand

__all__ = ["store"]

OPERATIONS = """
  operations:
    - {seq: 1, name: rows, type: check, arguments: {expect: id > 0, quarantine: {datasource_id: lake, table: bad}}}
    - {seq: 2, type: output, arguments: {destination: {datasource_id: lake, table: one}}}
    - {seq: 3, type: output, arguments: {destination: {datasource_id: lake, table: two}}}
    - {seq: 4, name: total, type: check, arguments: {expect: SUM(id) > 0}}
"""


def result(seq: int, status: Status, *, severity: Severity = "stop", reached: int = 3, **more: Any) -> CheckResult:
    name = {0: "lines: rows", 1: "rows", 4: "total"}[seq]
    violations = 1 if status == "failed" else 0
    return CheckResult(seq, name, "id > 0", severity, status, "rows", reached, violations, **more)


class Checking(EngineByHand):
    """An engine whose checks come out as it is told: the first with its outputs, the last in a job of its own."""

    def __init__(self, first: CheckResult, last: CheckResult, contract: CheckResult | None = None) -> None:
        super().__init__()
        self.first, self.last, self.contract = first, last, contract
        self.asked: list[str] = []

    def outputs(
        self, plan: Plan, facts: RunFacts, *, as_of: date | None, skip: Collection[int], figures: bool, digests: bool
    ) -> Iterator[Computed]:
        for output in super().outputs(plan, facts, as_of=as_of, skip=skip, figures=figures, digests=digests):
            finished = output.finish

            def finish(written: Any = None, finished: Any = finished, seq: int = output.step.spec.seq) -> Any:
                found = finished(written)
                found.checks = (self.first,) if seq == 1 else ()
                return found

            output.finish = finish  # type: ignore[method-assign]
            yield output

    def contracts(self, plan: Plan, facts: RunFacts, *, as_of: date | None) -> Sequence[CheckResult]:
        self.asked.append("contracts")
        return (self.contract,) if self.contract is not None else ()

    def checks(
        self, plan: Plan, facts: RunFacts, *, as_of: date | None, skip: Collection[int]
    ) -> Sequence[CheckResult]:
        self.asked.append(f"checks but {sorted(skip)}")
        return (self.last,)


@pytest.fixture(scope="module")
def planned() -> RunSpec:
    return plan_runs()


def plan_runs(*, publish: str = "together") -> RunSpec:
    head, _, _ = runs.LINES.partition("  operations:")
    return runs.plan_definitions(f"{head.rstrip()}\n  publish: {publish}{OPERATIONS}")


def test_checks_that_hold_let_everything_be_published(store: Store, planned: RunSpec) -> None:
    data, engine = Diary(), Checking(result(1, "passed"), result(4, "passed"))
    run = runs.start(store, planned, data, engine)
    assert (run.status, [each.status for each in run.checks]) == ("completed", ["passed", "passed"])
    assert [line for line in data.log if line.startswith("publish")] == ["publish 1", "publish 2", "publish 3"]
    assert data.of_failed_run == []
    assert engine.asked == ["checks but [1]"]


@pytest.mark.parametrize("stopping", [1, 4])
def test_a_check_that_fails_publishes_nothing_but_quarantines(store: Store, planned: RunSpec, stopping: int) -> None:
    results = {seq: result(seq, "failed" if seq == stopping else "passed") for seq in (1, 4)}
    data = Diary()
    run = runs.start(store, planned, data, Checking(results[1], results[4]))
    assert run.status == "failed"
    assert [(each.code, each.operation and each.operation.seq) for each in run.problems] == [("CHECK_FAILED", stopping)]
    assert [line for line in data.log if line.startswith("publish")] == ["publish 1"]
    assert data.of_failed_run == [1]
    assert list(run.outputs) == ["bad"]


def test_every_check_that_fails_is_recorded(store: Store, planned: RunSpec) -> None:
    run = runs.start(store, planned, Diary(), Checking(result(1, "empty", reached=0), result(4, "failed")))
    assert [each.code for each in run.problems] == ["CHECK_EMPTY", "CHECK_FAILED"]


def test_a_check_that_warns_stops_nothing(store: Store, planned: RunSpec) -> None:
    run = runs.start(store, planned, Diary(), Checking(result(1, "failed", severity="warn"), result(4, "passed")))
    assert (run.status, run.problems) == ("completed", ())
    assert [(each.status, each.severity) for each in run.checks] == [("failed", "warn"), ("passed", "stop")]


def test_a_run_that_a_check_has_stopped_is_not_resumed(store: Store, planned: RunSpec) -> None:
    runs.start(store, planned, Diary(), Checking(result(1, "passed"), result(4, "failed")))
    with pytest.raises(Rejected) as refused:
        runs.resume(store, Diary())
    assert [problem.code for problem in refused.value.problems] == ["RESUME_REFUSED"]


def test_results_of_checks_survive_a_failure(store: Store, planned: RunSpec) -> None:
    """The output that evaluated a check is staged; what is computed after a failure evaluates it no more."""
    engine = Checking(result(1, "passed"), result(4, "passed"))
    broken = Diary(fails_at="stage 3")
    assert runs.start(store, planned, broken, engine).status == "failed"
    again = Checking(result(1, "failed"), result(4, "passed"))
    run = runs.resume(store, Diary(), engine=again)
    assert (run.status, [each.status for each in run.checks]) == ("completed", ["passed", "passed"])


def test_outputs_that_are_published_as_they_are_done_stay_before_a_check_that_fails(store: Store) -> None:
    data = Diary()
    run = runs.start(store, plan_runs(publish="as_done"), data, Checking(result(1, "passed"), result(4, "failed")))
    assert run.status == "failed"
    assert sorted(run.outputs) == ["bad", "one", "two"]


def test_an_output_behind_a_check_that_fails_is_not_published_as_done(store: Store) -> None:
    data = Diary()
    run = runs.start(store, plan_runs(publish="as_done"), data, Checking(result(1, "failed"), result(4, "passed")))
    assert (run.status, list(run.outputs)) == ("failed", ["bad"])


def test_results_as_plain_data_and_back() -> None:
    given = result(4, "failed", left="1.00", right="2.00", difference="-1.00", sample=((("id", "1"),),))
    progress = Progress().with_checks([given])
    assert Progress.load(progress.document()).checks == (given,)


@pytest.fixture(scope="module")
def contracted() -> RunSpec:
    """A run whose input has a contract."""
    column = "{name: id, type: integer}]}"
    return runs.plan_definitions(runs.LINES.replace(column, f"{column}, checks: [{{not_null: [id]}}]"))


def contract_of(planned: RunSpec, status: Status) -> CheckResult:
    (contract,) = planned.plan.contracts
    return replace(result(0, status), seq=contract.seq, name=contract.name)


def test_a_contract_is_evaluated_before_anything_is_computed(store: Store, contracted: RunSpec) -> None:
    data, engine = Diary(), Checking(result(1, "passed"), result(4, "passed"), contract_of(contracted, "failed"))
    run = runs.start(store, contracted, data, engine)
    assert (run.status, [each.code for each in run.problems]) == ("failed", ["CHECK_FAILED"])
    assert engine.asked == ["contracts"]
    assert not any(line.startswith("stage") for line in data.log)


def test_a_contract_that_was_evaluated_is_not_evaluated_again(store: Store, contracted: RunSpec) -> None:
    first = Checking(result(1, "passed"), result(4, "passed"), contract_of(contracted, "passed"))
    assert runs.start(store, contracted, Diary(fails_at="stage 3"), first).status == "failed"
    again = Checking(result(1, "passed"), result(4, "passed"), contract_of(contracted, "failed"))
    record = store.get_run("r1")
    assert record is not None
    run = runs.runner(store).resume(record, contracted, Diary(), lambda: again)
    assert (run.status, [each.status for each in run.checks]) == ("completed", ["passed"])
    assert (first.asked, again.asked) == (["contracts"], [])


@pytest.mark.parametrize(("rows", "status"), [(120, "passed"), (121, "failed"), (80, "passed"), (79, "failed")])
def test_rows_against_the_previous_period(rows: int, status: str) -> None:
    before = replace(result(0, "passed", reached=100), tolerance="20")
    assert replace(before, reached=rows).against(before).status == status


def test_without_a_previous_period_there_is_nothing_to_compare_with() -> None:
    first = replace(result(0, "passed", reached=5), tolerance="20")
    assert first.against(None) == first


def test_what_came_of_checks_in_words() -> None:
    total = replace(result(4, "failed"), what="total", left="1.00", right="2.00", difference="-1.00")
    described = {
        each.describe(): each.outcome
        for each in (
            result(1, "passed", reached=1200),
            result(1, "failed", severity="warn", reached=1200),
            result(1, "empty", reached=0),
            total,
            replace(total, status="passed", violations=0, right="1.00", difference="0.00"),
        )
    }
    assert described == {
        "1,200 rows": "passed",
        "1 of 1,200 rows violate it": "warned",
        "no row reached it": "failed",
        "1.00 and 2.00, difference -1.00": "failed",
        "1.00 and 1.00": "passed",
    }


def test_sides_of_a_check_are_written_as_people_write_them() -> None:
    total = replace(result(4, "failed"), what="total", left="1550972.63", right="-0.10", difference="1550972.73")
    assert total.describe(LOCALES["de"]) == "1.550.972,63 and -0,10, difference 1.550.972,73"
    numbers = replace(total, status="passed", left="006100", right="4000")
    assert numbers.describe(LOCALES["de"]) == "006100 and 4000"
    counted = replace(numbers, left="51269", right="-48731", amounts=True)
    assert counted.describe(LOCALES["de"]) == "51.269 and -48.731"
    assert CheckResult.load(counted.document()) == counted
