"""How far a run got: each act changes what it is about and nothing else, and all of it comes back from the store."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from dobonomodo.plan.check import CheckResult
from dobonomodo.plan.counts import OperationCounts
from dobonomodo.runs.figures import Figures
from dobonomodo.runs.progress import Progress, PublishedOutput, StagedOutput
from dobonomodo.storage import StagedRows, load_stored
from tests.unit.runs.test_runner import LINES
from tests.world import FILES, LAKE, define, plan_only_project

PLAN = plan_only_project(define(LAKE, FILES, LINES))
LOCATION = {"kind": "parquet", "folder": "out/2", "data": "out/2/data", "files": []}


def staged(seq: int, **changes: Any) -> StagedOutput:
    made = StagedOutput(seq, rows=3, digest=f"d{seq}", milliseconds=40, place=StagedRows(f"staged/{seq}", 1))
    return replace(made, **changes)


def published(seq: int) -> PublishedOutput:
    return PublishedOutput(
        seq,
        table="one",
        destination="lake:one",
        rows=3,
        digest=f"d{seq}",
        dataset_id=None,
        dataset_version=None,
        milliseconds=40,
        columns={"b": "integer", "a": "string"},
        location=load_stored(LOCATION),
    )


def test_a_run_begins_with_its_operations_uncounted() -> None:
    begun = Progress.begin(PLAN, warnings=[{"code": "W-09"}])
    assert [(each.seq, each.rows_in) for each in begun.operations] == [(1, None), (2, None), (3, None)]
    assert (begun.attempts, begun.figures, begun.warnings) == (1, None, ({"code": "W-09"},))
    assert Progress.begin(PLAN, figures=True).figures == Figures()


def test_a_staged_output_counts_the_operations_before_it() -> None:
    counts = [OperationCounts(1, "double", "update", 3, 2, 0, 0, 3), OperationCounts(3, "", "output")]
    found = Progress.begin(PLAN).with_staged(staged(2), counts)
    assert [each.rows_in for each in found.operations] == [3, None, None]
    assert (found.operations[1].selected, found.operations[1].milliseconds) == (3, 40)
    assert [each.seq for each in found.staged] == [2]


def test_a_quarantine_does_not_count_for_its_check() -> None:
    counts = [OperationCounts(2, "has a rate", "check", 5, 5, 0, 0, 5)]
    found = Progress.begin(PLAN).with_staged(staged(2, rows=1), counts)
    assert (found.operations[1].rows_in, found.operations[1].selected, found.operations[1].milliseconds) == (5, 5, 40)
    # A resumed run does not evaluate the check again.
    assert found.with_staged(staged(2, rows=1), []).operations[1].selected == 5


def test_an_output_that_is_staged_again_takes_the_place_of_the_first() -> None:
    found = (
        Progress.begin(PLAN).with_staged(staged(2), []).with_staged(staged(3), []).with_staged(staged(2, rows=9), [])
    )
    assert [(each.seq, each.rows) for each in found.staged] == [(3, 3), (2, 9)]


def test_only_what_is_kept_is_used_again() -> None:
    both = Progress.begin(PLAN).with_staged(staged(2), []).with_staged(staged(3), [])
    assert [each.seq for each in both.with_kept(both.staged[1:]).staged] == [3]


def test_the_intent_names_staged_outputs_and_ends_with_publication() -> None:
    both = Progress.begin(PLAN).with_staged(staged(2), []).with_staged(staged(3), [])
    assert both.intended == ()
    intending = replace(both, intent=(2,))
    assert [each.seq for each in intending.intended] == [2]
    done = intending.with_published([published(2)])
    assert (done.intent, done.published, done.last_completed_operation) == (None, frozenset({2}), 2)
    assert [each.seq for each in done.staged] == [3]
    assert [each.seq for each in done.with_published([published(1)]).outputs] == [1, 2]
    assert Progress().with_published([]).last_completed_operation is None


def test_a_check_is_recorded_once_in_the_order_of_operations() -> None:
    def result(seq: int, status: Any) -> CheckResult:
        return CheckResult(seq, f"c{seq}", "x", "stop", status, "rows", 3, 1)

    found = Progress().with_checks([result(5, "failed"), result(1, "passed")]).with_checks([result(5, "passed")])
    assert [(each.seq, each.status) for each in found.checks] == [(1, "passed"), (5, "passed")]


def test_all_of_it_comes_back() -> None:
    check = CheckResult(5, "c", "x", "stop", "failed", "rows", 3, 1)
    whole = replace(
        Progress.begin(PLAN, figures=True)
        .with_staged(staged(2), [])
        .with_published([published(2)])
        .with_checks([check]),
        staged=(staged(3),),
        intent=(3,),
        attempts=4,
        milliseconds=1234,
        warnings=({"code": "W-09"},),
        problems=({"code": "DATA_LOAD"},),
    )
    document = json.loads(json.dumps(whole.document()))
    assert Progress.load(document).document() == whole.document()
    # The order of columns is kept where a database keeps no order of keys.
    assert list(Progress.load(document).outputs[0].columns) == ["b", "a"]


def test_what_earlier_versions_did_not_keep_is_empty() -> None:
    assert Progress.load({}).document() == Progress().document()
    old = {key: value for key, value in published(2).document().items() if key not in ("milliseconds", "columns")}
    loaded = PublishedOutput.load(old)
    assert (loaded.milliseconds, dict(loaded.columns)) == (0, {})
