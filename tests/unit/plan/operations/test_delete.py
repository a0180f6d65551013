"""``delete``: a mask, and nothing else."""

from __future__ import annotations

import pytest

from dobonomodo.formula.typed import Operation
from dobonomodo.plan.expression import ACTIVE, CLOCK, TRUE
from dobonomodo.plan.relation import Derive
from tests.unit.plan.building import (
    aggregate,
    codes,
    delete,
    found,
    no_problem,
    plan_of,
    planned,
    problem_in,
    step_of,
    update,
)


def test_a_delete_marks_rows_and_stamps_them() -> None:
    # C-38, C-40
    plan = plan_of(delete("amount = 0"))
    step = step_of(plan, 1)
    node = step.after.node
    assert isinstance(node, Derive)
    assert (node.rows is plan.start.node, list(node.values)) == (True, ["_deleted", "_updated_at"])
    selected = step.lowered.selected
    assert isinstance(selected, Operation)
    assert (selected.operator, selected.operands[0]) == ("AND", ACTIVE)
    assert node.values["_deleted"].operands[:2] == (selected, TRUE)
    assert node.values["_updated_at"].operands[:2] == (selected, CLOCK)


def test_columns_stay_as_they_are() -> None:
    #
    plan = plan_of(delete("amount = 0"))
    assert list(step_of(plan, 1).after.columns.items()) == list(plan.start.columns.items())


@pytest.mark.parametrize("written", ["- {seq: 1, type: delete}\n", "- {seq: 1, type: delete, arguments: {}}\n"])
def test_without_selector_every_active_row_is_deleted_without_a_word(written: str) -> None:
    # C-08
    with no_problem(written) as plan:
        assert step_of(plan, 1).lowered.selected == ACTIVE


@pytest.mark.parametrize("blank", ["", "   "])
def test_a_blank_selector_is_warned_of(blank: str) -> None:
    # W-02, C-20
    result = planned(delete(blank))
    assert [(each.code, each.span and each.span.line) for each in result.problems] == [("W-02", 7)]
    assert result.plan is not None
    assert step_of(result.plan, 1).lowered.selected == ACTIVE


def test_a_blank_selector_among_the_arguments_is_warned_of() -> None:
    # W-02, C-04
    assert codes("- {seq: 1, type: delete, arguments: {selector: ''}}\n") == ["W-02"]


def test_a_selector_among_the_arguments_counts() -> None:
    # C-04
    with no_problem("- {seq: 1, type: delete, arguments: {selector: amount = 0}}\n") as plan:
        assert step_of(plan, 1).lowered.selected != ACTIVE


@pytest.mark.parametrize(
    ("selector", "code"),
    [
        ("amount", "TYPE_MISMATCH"),
        ("amount + 1", "TYPE_MISMATCH"),
        ("SUM(amount) = 0", "AGGREGATE_NOT_ALLOWED"),
        ("amout = 0", "UNKNOWN_COLUMN"),
        ("amount = ", "EXPRESSION_SYNTAX"),
        ("{{zero}}", "SELECTOR_UNDEFINED"),
    ],
)
def test_a_selector_that_is_none_is_refused(selector: str, code: str) -> None:
    # R-041..R-043, R-060
    problem = problem_in(delete(selector))
    assert (problem.code, problem.operation) == (code, (1, "delete-1"))


def test_a_delete_has_no_arguments() -> None:
    #
    assert found("- {seq: 1, type: delete, arguments: {where: paid}}\n") == [("UNKNOWN_KEY", "where")]


def test_later_operations_mask_deleted_rows() -> None:
    #
    text = delete("paid") + update("net = 1", seq=2) + aggregate("region", "n = COUNT(*)", seq=3)
    plan = plan_of(text)
    assert [step_of(plan, seq).lowered.selected for seq in (2, 3)] == [ACTIVE, ACTIVE]
