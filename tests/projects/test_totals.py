"""Totals of generated projects: the plan says which operations cannot change them, and checks find what they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hypothesis import given

from dobonomodo.plan.conservation import find_conservation
from tests.projects.running import plan_case, run_case
from tests.projects.strategies import Case, draw_case, seeds
from tests.projects.test_agree import expected, many

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_what_the_plan_says_of_totals_is_true() -> None:
    """An operation that is not listed for a column leaves its total as it was."""
    seen: Counter[str] = Counter()

    @many(3, least=100)
    @given(seeds)
    def go(seed: int) -> None:
        case = draw_case(seed)
        plan, totals = plan_case(case).plan, expected(case).totals
        assert plan is not None
        for each in find_conservation(plan):
            changing = {seq for seq, _ in each.changes}
            for before, seq in pairwise(totals):
                same = totals[before][each.column] == totals[seq][each.column]
                assert same or seq in changing, (seed, each.column, seq)
                seen["kept" if seq not in changing else "same" if same else "changed"] += 1

    go()
    assert seen["kept"]
    assert seen["changed"]


def with_checks(case: Case) -> tuple[Case, dict[int, tuple[str, int, int]]]:
    """The case with checks at its end that compare totals of states; what each compares, by its number."""
    operations = case.project["operations"]
    seqs = sorted(operation["seq"] for operation in operations)
    totals = expected(case).totals
    compared: dict[int, tuple[str, int, int]] = {}
    checks: list[dict[str, Any]] = []
    for column in totals[0]:
        for at, state in enumerate((0, *seqs[:2])):
            seq = seqs[-1] + 10 * len(compared) + 5
            compared[seq] = (column, seqs[-1], state)
            there = "start" if state == 0 else f"after_{state}"
            arguments = {"expect": f"SUM(`{column}`) = SUM({there}.`{column}`)", "severity": "warn", "empty": "pass"}
            checks.append({"seq": seq, "name": f"{column} {at}", "type": "check", "arguments": arguments})
    # An output behind them observes them; without one, each takes a job of its own.
    seq = seqs[-1] + 10 * len(compared) + 9
    destination = {"datasource_id": "out", "table": "checked"}
    last = {"seq": seq, "type": "output", "name": "checked", "arguments": {"destination": destination}}
    return replace(case, project={**case.project, "operations": [*operations, *checks, last]}), compared


def test_checks_find_the_totals_of_every_state(spark: SparkSession) -> None:
    seen: Counter[str] = Counter()

    @many(50, least=8)
    @given(seeds)
    def go(seed: int) -> None:
        case = draw_case(seed)
        want = expected(case)
        if want.failures:
            return
        checked, compared = with_checks(case)
        ran = run_case(checked, spark, partitions=1 + seed % 2)
        assert ran.problem is None, (seed, ran.problem)
        results = {each.seq: each for result in ran.results for each in result.checks}
        assert set(results) == set(compared), seed
        for seq, (column, last, state) in compared.items():
            found = results[seq]
            sides = ((found.left, want.totals[last][column]), (found.right, want.totals[state][column]))
            for side, total in sides:
                assert Decimal(side or 0) == total, (seed, seq, column, found)
            same = found.left is not None and found.right is not None and Decimal(found.left) == Decimal(found.right)
            assert found.holds is (same or found.reached == 0), (seed, found)
            seen["holds" if found.holds else "fails"] += 1

    go()
    assert seen["holds"]
    assert seen["fails"]
