"""Generated projects give the same rows on Spark as by the rules: every column, every id, every count, every failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pprint import pformat
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from dobonomodo.plan.counts import JoinCounts, KindTotals
from tests.projects.interpreter import Interpreted, Joined, Written, interpret, sum_of
from tests.projects.running import Output, Ran, plain, plan_case, run_case
from tests.projects.strategies import Case, draw_case, reduce, seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def many(share: int, *, least: int) -> settings:
    """So many examples of the profile's; seeds do not shrink, projects are made smaller by ``reduce``."""
    number = max(least, (settings.default.max_examples if settings.default else 100) // share)
    return settings(
        max_examples=number,
        phases=[Phase.explicit, Phase.generate],
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


def expected(case: Case) -> Interpreted:
    return interpret(case.project, case.datasets, period=case.period, clock=case.clock)


# --- comparing


def differences(want: Interpreted, ran: Ran) -> Iterator[str]:
    """What is not as expected, in lines."""
    if ran.problem is not None:
        problem = ran.problem
        seq = problem.operation.seq if problem.operation else None
        found = (problem.code, getattr(problem, "alias", None), getattr(problem, "count", None))
        known = [
            each for each in want.failures if (each.kind, each.alias, each.count) == found and each.seq in (None, seq)
        ]
        if not known:
            yield f"failed with {found} in {seq}: {problem.message()}; expected {want.failures or 'no failure'}"
    elif want.failures:
        yield f"did not fail; expected {want.failures}"
    if [each.seq for each in want.outputs] != [each.seq for each in ran.outputs]:
        yield f"outputs {[each.seq for each in ran.outputs]}, expected {[each.seq for each in want.outputs]}"
        return
    for written, output in zip(want.outputs, ran.outputs, strict=True):
        yield from (f"output {written.seq}: {line}" for line in _compare_output(written, output))
    yield from _compare_ids(want, ran)
    if ran.problem is None and ran.results:
        yield from _compare_counts(want, ran)
        if ran.results[-1].measures is not None:
            yield from compare_figures(want, ran)


def _compare_output(want: Written, got: Output) -> Iterator[str]:
    listed = [name for name in want.columns if not name.startswith("_")]
    if set(got.columns) != set(want.columns) or [name for name in got.columns if not name.startswith("_")] != listed:
        yield f"columns {got.columns}, expected {want.columns}"
        return
    names = [name for name in want.columns if name != "_row_id"]
    wanted = Counter(_key(row.values, names) for row in want.rows)
    actual = Counter(_key(row, names) for row in got.rows)
    yield from (f"missing {number} x {_show(row, names)}" for row, number in (wanted - actual).items())
    yield from (f"extra   {number} x {_show(row, names)}" for row, number in (actual - wanted).items())


def _key(row: Mapping[str, Any], names: list[str]) -> tuple[Any, ...]:
    """The values with their kinds: 1 is not 1.0, and neither is true."""
    return tuple((type(row[name]).__name__, row[name]) for name in names)


def _show(row: tuple[Any, ...], names: list[str]) -> str:
    return ", ".join(f"{name}={value}" for name, (_, value) in zip(names, row, strict=True))


def _compare_ids(want: Interpreted, ran: Ran) -> Iterator[str]:
    """Ids are unique, a row has the same in all outputs, and a stored one stays.

    Rows that are equal in all columns cannot be told apart, so each of them has several candidates.
    """
    candidates: dict[tuple[Any, ...], set[str]] = {}
    stored = {row.stored_id for written in want.outputs for row in written.rows if row.stored_id is not None}
    for written, output in zip(want.outputs, ran.outputs, strict=True):
        if "_row_id" not in written.columns:
            continue
        ids = [row["_row_id"] for row in output.rows]
        if len(set(ids)) != len(ids) or None in ids:
            yield f"output {written.seq}: ids are not unique: {sorted(map(str, ids))}"
        names = [name for name in written.columns if name != "_row_id"]
        by_values: dict[tuple[Any, ...], set[str]] = {}
        for row in output.rows:
            by_values.setdefault(_key(row, names), set()).add(row["_row_id"])
        for each in written.rows:
            found = by_values.get(_key(each.values, names), set())
            if each.stored_id is not None:
                if each.stored_id not in found:
                    yield f"output {written.seq}: the stored id {each.stored_id} is not kept"
                continue
            left = (candidates.get(each.identity, found) & found) - stored
            if not left:
                yield f"output {written.seq}: {each.identity} has another id than before"
            candidates[each.identity] = left


def _compare_counts(want: Interpreted, ran: Ran) -> Iterator[str]:
    for found in ran.results[-1].operations:
        counts = want.counts[found.seq]
        for name in ("rows_in", "selected", "added", "deleted", "rows_out"):
            wanted, actual = getattr(counts, name), getattr(found, name)
            if wanted is not None and wanted != actual:
                yield f"operation {found.seq} ({found.type}): {name} is {actual}, should be {wanted}"


def compare_figures(want: Interpreted, ran: Ran) -> Iterator[str]:
    """Totals of outputs, changes of totals by operations, and matches of joins, against sums over rows in plain Python."""
    seqs = list(want.totals)
    for written, result in zip(want.outputs, ran.results, strict=False):
        measures = result.measures
        assert measures is not None
        numeric = [name for name in written.columns if name in want.totals[written.seq]]
        totals = {name: sum_of(row.values[name] for row in written.rows) for name in numeric}
        if measures.totals != totals:
            yield f"output {written.seq}: totals {dict(measures.totals)}, should be {totals}"
        yield from _compare_kinds(written, numeric, measures.kinds)
        loaded = {name: want.totals[0][name] for name in numeric if name in want.totals[0]}
        if measures.loaded != loaded:
            yield f"output {written.seq}: loaded {dict(measures.loaded)}, should be {loaded}"
        for before, seq in pairwise(each for each in seqs if each <= written.seq):
            changes = measures.changes.get(seq, {})
            for name in numeric:
                change = want.totals[seq].get(name, Decimal(0)) - want.totals[before].get(name, Decimal(0))
                if changes.get(name, Decimal(0)) != change:
                    yield f"output {written.seq}: operation {seq} changes {name} by {changes.get(name)}, should be {change}"
        for join in measures.joins:
            yield from _compare_join(want.joins.get((join.seq, join.alias), Joined()), join, ran)


def _compare_kinds(written: Written, numeric: Sequence[str], kinds: Sequence[KindTotals] | None) -> Iterator[str]:
    """Totals by what made the rows, where that is known; none where one kind made all of them."""
    if kinds is None:
        return
    found: dict[int, tuple[int, dict[str, Decimal]]] = {}
    for each in kinds:
        rows, totals = found.get(each.seq, (0, dict.fromkeys(numeric, Decimal(0))))
        added = {name: totals[name] + (each.totals[name] or 0) for name in numeric}
        found[each.seq] = (rows + each.rows, added)
    wanted: dict[int, tuple[int, dict[str, Decimal]]] = {}
    for seq in {row.values["_operation_seq"] for row in written.rows}:
        own = [row.values for row in written.rows if row.values["_operation_seq"] == seq]
        wanted[seq] = (len(own), {name: sum_of(row[name] for row in own) for name in numeric})
    if found != wanted and (kinds or len(wanted) > 1):
        yield f"output {written.seq}: kinds {found}, should be {wanted}"


def _compare_join(want: Joined, join: JoinCounts, ran: Ran) -> Iterator[str]:
    if (join.matched, join.unmatched) != (want.matched, len(want.unmatched)):
        found = (join.matched, join.unmatched)
        yield f"join {join.seq} {join.alias}: {found} matched, should be {(want.matched, len(want.unmatched))}"
    keys = ran.unmatched.get((join.seq, join.alias), ())
    if sum(each.rows for each in keys) != len(want.unmatched):
        yield f"join {join.seq} {join.alias}: unmatched keys {keys} are not of {len(want.unmatched)} rows"
    if [each.rows for each in keys] != sorted((each.rows for each in keys), reverse=True):
        yield f"join {join.seq} {join.alias}: {keys} do not begin with the most frequent"
    if all("." not in name for name in join.key):
        wanted = Counter(tuple(_as_text(row.values[name]) for name in join.key) for row in want.unmatched)
        if {tuple(map(_as_text, each.values)): each.rows for each in keys} != wanted:
            yield f"join {join.seq} {join.alias}: unmatched keys {keys}, should be {wanted}"


def _as_text(value: Any) -> str | None:
    """A value as Spark writes it, but for the zeros at the end of a decimal."""
    if value is None or isinstance(value, str):
        with suppress(InvalidOperation):
            return str(Decimal(value).normalize()) if value is not None else None
        return value
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        return str(Decimal(value).normalize())
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S.%f}".rstrip("0").rstrip(".")
    return str(value).lower()


def check(seed: int, spark: SparkSession, **reading: Any) -> None:
    """Fail with the smallest project that shows a difference, if there is one."""
    case = draw_case(seed)
    ran = run_case(case, spark, **reading)
    if not any(differences(expected(case), ran)):
        return

    def differs(smaller: Case) -> bool:
        """With the same failure or none: a smaller project may be wrong in a way of its own."""
        try:
            if plan_case(smaller).plan is None:
                return False
            found = run_case(smaller, spark, **reading)
            return _code_of(found) == _code_of(ran) and any(differences(expected(smaller), found))
        except (KeyError, ValueError):
            return False

    case = reduce(case, differs)
    lines = list(differences(expected(case), run_case(case, spark, **reading)))
    shown = {"project": plain(case.project), "datasets": case.datasets, "period": case.period}
    pytest.fail("\n".join([f"seed {seed}", *lines, pformat(shown, width=140, sort_dicts=False)]), pytrace=False)


def _code_of(ran: Ran) -> str | None:
    return ran.problem.code if ran.problem is not None else None


# --- tests


def test_generated_projects_are_valid() -> None:
    """No project is refused, and there is some of everything."""
    seen: Counter[str] = Counter()

    @many(5, least=100)
    @given(seeds)
    def go(seed: int) -> None:
        case = draw_case(seed)
        planned = plan_case(case)
        errors = [problem.message() for problem in planned.problems if problem.severity == "error"]
        assert planned.plan is not None, errors
        result = expected(case)
        seen.update(operation["type"] for operation in case.project["operations"])
        seen["join"] += any("joins" in operation.get("arguments", {}) for operation in case.project["operations"])
        seen["lookup"] += any("lookups" in given["dataset"] for given in case.datasets)
        seen["made by"] += "MADE_BY(" in str(plain(case.project))
        seen["failure"] += bool(result.failures)
        seen["deleted"] += any(row.values["_deleted"] for output in result.outputs for row in output.rows)

    go()
    assert {"update", "delete", "aggregate", "append", "output", "allocate"} <= set(+seen)
    assert {"join", "lookup", "made by", "failure", "deleted"} <= set(+seen)


def test_rows_ids_counts_and_failures_are_the_same(spark: SparkSession) -> None:
    @many(10, least=25)
    @given(seeds)
    def go(seed: int) -> None:
        check(seed, spark, partitions=1 + seed % 2, figures=True)

    go()


SETTINGS = {
    "shuffle partitions": {"spark.sql.shuffle.partitions": "7"},
    "adaptive": {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "4"},
    "interpreted": {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    "no broadcast": {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.shuffle.partitions": "3"},
}


@contextmanager
def having(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_project_gives_the_same_rows_and_ids_however_spark_is_set(spark: SparkSession, name: str) -> None:
    def written(case: Case, **reading: Any) -> tuple[Any, ...]:
        ran = run_case(case, spark, **reading)
        rows = [Counter(_key(row, list(output.columns)) for row in output.rows) for output in ran.outputs]
        digests = [result.digest for result in ran.results] if ran.problem is None else []
        return rows, digests, ran.problem is None

    @many(250, least=2)
    @given(seeds)
    def go(seed: int) -> None:
        case = draw_case(seed)
        first = written(case)
        with having(spark, SETTINGS[name]):
            second = written(case, partitions=3, shuffled=True)
        assert first == second, f"seed {seed}"

    go()


def test_the_comparison_notices() -> None:
    """A wrong value, kind, id or count is a difference."""
    case = next(
        case
        for case in map(draw_case, range(1000))
        if len(expected(case).outputs[-1:]) and expected(case).outputs[-1].rows
    )
    want = expected(case)
    last = want.outputs[-1]

    def ran(change: Mapping[str, Any], ids: str = "") -> Ran:
        outputs = [
            Output(
                written.seq,
                written.columns,
                [
                    {
                        name: {**row.values, "_row_id": row.stored_id or ids or repr(row.identity)}[name]
                        for name in written.columns
                    }
                    for row in written.rows
                ],
            )
            for written in want.outputs
        ]
        outputs[-1].rows[0].update(change)
        return Ran(outputs)

    assert list(differences(want, ran({}))) == []
    assert any("missing" in line for line in differences(want, ran({"no": 10_000})))
    assert any("extra" in line for line in differences(want, ran({"no": Decimal(last.rows[0].values["no"] or 0)})))
    assert any("unique" in line for line in differences(want, ran({"_row_id": None})))
