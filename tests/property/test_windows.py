"""Windows give the same values on Spark, by meaning and in the evaluator, however the rows are parted."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dobonomodo.formula import FUNCTIONS, ColumnRef, check_formula, evaluate_over, print_formula, render_formula
from dobonomodo.formula.print import print_checked
from dobonomodo.formula.typed import Order, Over, rewrite, walk, windows_of
from dobonomodo.formula.types import INTEGER
from dobonomodo.problems import Passage
from tests.property import reference
from tests.property.on_spark import (
    COMPILED,
    INTERPRETED,
    Formula,
    budget,
    check_tree,
    decode,
    encode,
    frame,
    same,
    settings_of,
)
from tests.property.strategies import RUN, WINDOWS, Drawing, windows
from tests.property.test_evaluate import outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.formula import Typed
    from dobonomodo.formula.tree import Expression
    from tests.property.reference import Row

FORMULAS = 20
ROWS = 24

seeds = st.integers(0, 2**64 - 1)
a_few = settings(max_examples=budget(share=12), phases=[Phase.explicit, Phase.generate], database=None)

Outcome = reference.Value | reference.Fault


def drawn(generator: random.Random, count: int) -> list[Formula]:
    drawing = Drawing(generator.randint, windows=True)
    found: list[Formula] = []
    while len(found) < count:
        formula = check_tree(drawing.formula(2), WINDOWS)
        if formula and windows_of(formula.node):
            found.append(formula)
    return found


def rows_for(generator: random.Random, count: int = ROWS) -> list[Row]:
    drawing = Drawing(generator.randint)
    return [drawing.grouped_row() for _ in range(count)]


def wanted(node: Typed, rows: list[Row]) -> list[Outcome]:
    found: list[Outcome] = []
    for at in range(len(rows)):
        try:
            found.append(reference.windowed(node, rows, at, RUN))
        except reference.Fault as fault:
            found.append(fault)
    return found


def by_place(node: Typed) -> Typed:
    """As an update has it: rows that are equal in all keys go by their place, where that shows."""
    place = Order(ColumnRef("_at", None, INTEGER))

    def change(part: Typed) -> Typed | None:
        if not isinstance(part, Over):
            return None
        window = part.call.function.window
        return replace(part, order=(*part.order, place)) if window is not None and window.breaks_ties else None

    return rewrite(node, change)


def test_every_window_function_is_drawn() -> None:
    formulas = drawn(random.Random(3), 300)
    names = {over.call.function.name for each in formulas for over in windows_of(each.node)}
    assert names == {function.name for function in FUNCTIONS if function.window is not None}


@given(windows())
@settings(max_examples=budget(share=2))
def test_windows_are_printed_as_they_are_read(written: Expression) -> None:
    text = print_formula(written)
    checked = check_formula(Passage.alone(text), WINDOWS)
    if checked.tree is not None:
        again = check_formula(Passage.alone(print_checked(checked.tree)), WINDOWS)
        assert again.tree == checked.tree, text


@a_few
@given(seeds)
def test_the_evaluator_agrees(seed: int) -> None:
    generator = random.Random(seed)
    rows = rows_for(generator)
    for formula in drawn(generator, FORMULAS):
        for at, value in enumerate(wanted(formula.node, rows)):
            found = outcome(evaluate_over(formula.node, rows, at, RUN))
            if not isinstance(value, reference.Fault):
                assert not isinstance(found, reference.Fault), formula.text
                assert same(found, value), f"{formula.text!r} in row {at}: {found!r} instead of {value!r}"
            elif value.certain:
                assert isinstance(found, reference.Fault), formula.text


@pytest.mark.parametrize("mode", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
def test_spark_agrees_on_any_partitioning(spark: SparkSession, mode: dict[str, str]) -> None:
    @settings(a_few, max_examples=budget(share=25))
    @given(seeds)
    def check(seed: int) -> None:
        generator = random.Random(seed)
        rows = rows_for(generator)
        formulas: list[Formula] = []
        values: list[list[Outcome]] = []
        while len(formulas) < FORMULAS:
            (formula,) = drawn(generator, 1)
            found = wanted(formula.node, rows)
            if not any(isinstance(value, reference.Fault) for value in found):
                formulas.append(formula)
                values.append(found)
        trees = [by_place(each.node) for each in formulas]
        sqls = [f"{encode(render_formula(tree, RUN), tree.type)} AS `r{at}`" for at, tree in enumerate(trees)]
        data = frame(spark, rows)
        for parts in (1, 5):
            parted = data.repartition(parts, "`rate`").selectExpr("`_at`", *sqls).collect()
            assert len(parted) == len(rows)
            for row in parted:
                for at, formula in enumerate(formulas):
                    got, value = decode(row[at + 1], formula.node.type), values[at][row[0]]
                    assert not isinstance(value, reference.Fault)
                    assert same(got, value), f"{formula.text!r} in row {row[0]}: {got!r} instead of {value!r}"

    with settings_of(spark, mode):
        check()


def test_the_window_functions_of_a_formula_are_found() -> None:
    tree = check_formula(Passage.alone("1 + SUM(quantity) OVER () + SUM(quantity) OVER ()"), WINDOWS).tree
    assert tree is not None
    assert len(windows_of(tree)) == 1
    assert sum(isinstance(each, Over) for each in walk(tree)) == 2
