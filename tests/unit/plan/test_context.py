"""What an operation is lowered with: problems are named and placed, selectors that are used are remembered."""

from __future__ import annotations

from dobonomodo.plan.context import Context
from dobonomodo.problems.formula import SelectorUndefined, UnknownColumn
from tests.unit.plan.building import WORLD_BUILT, load_project, project_text


def context() -> Context:
    project, _, _ = load_project(project_text("- {seq: 5, type: delete, name: gone}", head="selectors: {a: paid}"))
    assert project is not None
    world = WORLD_BUILT
    return Context(
        project,
        datasets=world.datasets,
        resolution=world.resolution,
        datasources=world.definitions.datasources,
        kinds={},
    )


def test_a_problem_gets_the_operation_at_hand() -> None:
    ctx = context()
    ctx.report(SelectorUndefined(name="x"))
    ctx.begin(ctx.project.operations[0], certain=True)
    ctx.report(SelectorUndefined(name="x"))
    assert [each.operation for each in ctx.problems] == [None, (5, "gone")]


def test_columns_are_not_missed_where_they_are_not_certain() -> None:
    ctx = context()
    ctx.begin(ctx.project.operations[0], certain=False)
    ctx.report(UnknownColumn(name="x", known=()))
    ctx.report(SelectorUndefined(name="x"))
    assert [each.code for each in ctx.problems] == ["SELECTOR_UNDEFINED"]


def test_arguments_that_are_not_written_are_empty_and_have_a_place() -> None:
    ctx = context()
    ctx.begin(ctx.project.operations[0], certain=True)
    assert ctx.arguments.data == {}
    span = ctx.arguments.key_span("assignments")
    assert span is not None
    assert span.line == 6
