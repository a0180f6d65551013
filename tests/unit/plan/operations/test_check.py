"""``check``: what must hold of rows, totals and groups, and what is wrong with how it is said."""

from __future__ import annotations

import pytest

from dobonomodo.formula.typed import Apply, ColumnRef, Literal, walk
from dobonomodo.formula.types import TEXT
from dobonomodo.plan.check import Check, GroupCondition, RowCondition
from dobonomodo.plan.conservation import find_conservation
from dobonomodo.problems.definition import InvalidOperation, OperationReason
from dobonomodo.problems.formula import UnknownColumn
from tests.unit.plan.building import WORLD_BUILT, aggregate, append, codes, delete, plan_of, problem_in, update


def check(arguments: str, *, seq: int = 50, selector: str | None = None) -> str:
    chosen = f", selector: '{selector}'" if selector else ""
    return f"- {{seq: {seq}, name: the check, type: check{chosen}, arguments: {{{arguments}}}}}\n"


def planned(arguments: str, before: str = "", **more: str) -> Check:
    plan = plan_of(before + check(arguments, **more))  # type: ignore[arg-type]
    (found,) = [step.lowered.check for step in plan.steps if step.lowered.check is not None]
    return found


def test_without_an_aggregate_every_row_is_checked() -> None:
    found = planned("expect: amount > 0")
    assert isinstance(found.condition, RowCondition)
    assert (found.seq, found.name, found.severity, found.may_be_empty, found.excludes) == (
        50, "the check", "stop", False, False,
    )  # fmt: skip
    assert found.condition.shown == ("order_id", "amount")


def test_with_an_aggregate_all_rows_together_are_checked() -> None:
    found = planned("expect: SUM(amount) = SUM(quantity), severity: warn, empty: pass")
    assert isinstance(found.condition, GroupCondition)
    assert (found.severity, found.may_be_empty, found.condition.keys) == ("warn", True, ())
    assert found.condition.left is not None
    assert [measure.name for measure in found.condition.measures] == ["=0", "=1", "=rows0"]


@pytest.mark.parametrize(
    "arguments",
    [
        "expect: SUM(amount) > 0, group_by: [region]",
        "expect: SUM(amount) = SUM(against.amount), against: {dataset_id: budget}",
        "expect: COUNT_DISTINCT(region) > 1",
    ],
)
def test_what_cannot_be_observed_takes_a_job_of_its_own(arguments: str) -> None:
    found = planned(arguments)
    assert isinstance(found.condition, GroupCondition)
    assert found.condition.measures == ()


def test_a_condition_on_groups_reads_keys_and_aggregates_of_the_groups() -> None:
    condition = planned('expect: SUM(amount) > 0 OR Region = "north", group_by: [region]').condition
    assert isinstance(condition, GroupCondition)
    read = [node.name for node in walk(condition.holds) if isinstance(node, ColumnRef)]
    assert read == ["=0", "#region"]
    assert set(read) <= set(condition.groups.schema.columns)


def test_keys_of_two_sides_lose_no_digit() -> None:
    world = WORLD_BUILT.with_dataset(
        "dataset: {id: fine, main_table: {name: fine, columns: [{name: amount, type: 'decimal(20,12)'}]}}"
    )
    compared = check("expect: COUNT(*) = COUNT(against.amount), group_by: [amount], against: {dataset_id: fine}")
    plain = update("amount = TO_DECIMAL(region)")
    (found,) = [step.lowered.check for step in plan_of(plain + compared, world=world).steps if step.lowered.check]
    assert isinstance(found.condition, GroupCondition)
    assert str(found.condition.groups.schema.columns["#amount"]) == "decimal(38,12)"


@pytest.mark.parametrize(
    ("expect", "compares"),
    [
        ("SUM(amount) = 0", True),
        ("MAX_AGG(region) = MIN_AGG(region)", False),
        ("SUM(amount) > 0 AND COUNT(*) > 1", False),
    ],
)
def test_texts_have_no_difference(expect: str, *, compares: bool) -> None:
    condition = planned(f"expect: '{expect}'").condition
    assert isinstance(condition, GroupCondition)
    assert condition.compares_numbers is compares


def test_constants_of_an_aggregate_stay_constants() -> None:
    condition = planned("""expect: 'STRING_AGG(region, "+") = "N+S"', group_by: [status]""").condition
    assert isinstance(condition, GroupCondition)
    joined = condition.groups.values["=0"]
    assert isinstance(joined, Apply)
    assert joined.operands[1] == Literal("+", TEXT)


def test_states_are_known_by_their_names() -> None:
    before = update("amount = amount + 1", seq=10) + delete(seq=20, selector="paid")
    found = planned("expect: SUM(amount) = SUM(start.amount) + SUM(after_10.amount)", before)
    assert isinstance(found.condition, GroupCondition)
    assert len({id(measure.rows) for measure in found.condition.measures}) == 3


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("expect: amount > 0, exclude: true", OperationReason.EXCLUDED_AND_STOPPED),
        ("expect: SUM(amount) > 0, exclude: true, severity: warn", OperationReason.ROWS_OF_GROUPS),
        ("expect: SUM(amount) > 0, quarantine: {datasource_id: lake, table: bad}", OperationReason.ROWS_OF_GROUPS),
        ("expect: SUM(amount - start.amount) = 0", OperationReason.MIXED_STATES),
        ("expect: SUM(start.amount - against.amount) = 0, against: {dataset_id: budget}", OperationReason.MIXED_STATES),
        ("expect: SUM(amount) = 0, against: {dataset_id: budget}", OperationReason.UNUSED_AGAINST),
    ],
)
def test_what_contradicts_itself(arguments: str, reason: OperationReason) -> None:
    problem = problem_in(check(arguments))
    assert isinstance(problem, InvalidOperation)
    assert problem.reason is reason


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("expect: amout > 0", "UNKNOWN_COLUMN"),
        ("expect: amount", "TYPE_MISMATCH"),
        ("expect: start.amount > 0", "INVALID_AGGREGATE"),
        ("expect: SUM(after_99.amount) > 0", "UNKNOWN_COLUMN"),
        ("expect: SUM(after_50.amount) > 0", "UNKNOWN_COLUMN"),
        ("expect: SUM(start.nothing) > 0", "UNKNOWN_COLUMN"),
        ("expect: region = 'a', group_by: [region]", "INVALID_AGGREGATE"),
        ("expect: amount = SUM(amount), group_by: [region]", "INVALID_AGGREGATE"),
        ("expect: SUM(amount) > 0, group_by: [region, orders.region]", "DUPLICATE_GROUP_BY"),
        ("expect: SUM(amount) = SUM(against.amount), group_by: [quantity], against: {dataset_id: budget}", "UNKNOWN_COLUMN"),
        ("expect: SUM(amount) = SUM(against.amount), against: {dataset_id: nothing}", "JOIN_DATASET_NOT_FOUND"),
        ("expect: SUM(amount) = SUM(against.amount), against: {dataset_id: budget, selector: paid}", "UNKNOWN_COLUMN"),
        ("expect: amount > 0, quarantine: {datasource_id: nowhere, table: bad}", "INVALID_DESTINATION"),
        ("expect: amount > 0, severity: loud", "INVALID_VALUE"),
        ("severity: warn", "MISSING_KEY"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found_before_a_row_is_read(arguments: str, code: str) -> None:
    assert code in codes(check(arguments))


def test_a_selector_must_fit_every_state_that_is_read() -> None:
    before = update("fresh = amount * 2", seq=10)
    good = check("expect: SUM(amount) = SUM(after_10.amount)", selector="fresh > 1")
    assert plan_of(before + good).steps
    bad = check("expect: SUM(amount) = SUM(start.amount)", selector="fresh > 1")
    assert set(codes(before + bad)) == {"UNKNOWN_COLUMN"}


@pytest.mark.parametrize(
    ("arguments", "selector"),
    [
        ("expect: SUM(amount) = SUM(start.amount), group_by: [fresh]", None),
        ("expect: SUM(amount) = SUM(start.amount)", "fresh > 1"),
        ("expect: SUM(amount) = SUM(start.amount)", "orders.fresh > 1"),
    ],
)
def test_a_state_that_lacks_a_column_is_named(arguments: str, selector: str | None) -> None:
    problem = problem_in(update("fresh = 2", seq=10) + check(arguments, selector=selector))
    assert isinstance(problem, UnknownColumn)
    assert (problem.name, problem.state) == ("fresh", "start")
    assert "`start`" in problem.message()


def test_a_state_after_a_later_operation_is_answered_with_those_there_are() -> None:
    problem = problem_in(delete(seq=10) + check("expect: SUM(after_90.amount) > 0") + delete(seq=90))
    hint = problem.hint() or ""
    assert "`start`, `after_10`" in hint
    assert "`after_50`" not in hint
    assert "check" in (problem_in(update("x = after_90.amount")).hint() or "")


@pytest.mark.parametrize("arguments", ["severity: warn", "expect: amount > 0, tolerance: 1"])
def test_wrong_keys_are_told_of_the_check(arguments: str) -> None:
    assert problem_in(check(arguments)).owner == "`check`"


def test_a_check_behind_the_last_output_has_an_effect() -> None:
    text = update("fresh = amount * 2", seq=950) + check("expect: SUM(fresh) > 0", seq=960)
    assert codes(text) == []


def test_which_totals_can_change() -> None:
    plan = plan_of(
        update("amount = amount * 2", "region = UPPER(region)", seq=10)
        + delete(seq=20, selector="paid")
        + append("budget", seq=30)
        + aggregate("region", "quantity = SUM(quantity)", seq=40)
    )
    assert {each.column: each.changes for each in find_conservation(plan)} == {
        "quantity": ((20, "deletes rows"), (40, "adds rows")),
        "amount": ((10, "assigns"), (20, "deletes rows"), (30, "adds rows")),
    }


@pytest.mark.parametrize(
    ("expect", "amounts"),
    [
        ("SUM(quantity) = 4000", True),
        ("4000 >= COUNT(*)", True),
        ("MIN_AGG(quantity) >= 4000", False),
        ("MAX_AGG(region) = 'N'", False),
    ],
)
def test_what_is_added_up_or_counted_is_an_amount(expect: str, *, amounts: bool) -> None:
    given = expect.replace("'", '"')
    assert planned(f"expect: '{given}'").result(reached=1, violations=0, left="5000", right="4000").amounts is amounts
