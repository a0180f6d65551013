"""Generated formulas over generated rows have the same value on Spark as by meaning, exactly, and the same type."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dobonomodo.formula import FUNCTIONS, Columns, Scope, check_formula, render_formula
from dobonomodo.formula.typed import Apply, walk
from dobonomodo.formula.types import TEXT, Type
from dobonomodo.problems import Passage
from tests.property import reference
from tests.property.on_spark import (
    COMPILED,
    FAILURES,
    INTERPRETED,
    Formula,
    budget,
    check_tree,
    compare,
    decode,
    encode,
    expected,
    frame,
    same,
    settings_of,
)
from tests.property.strategies import DATE_TEXTS, GROUPED, KEYS, OWN, RUN, Drawing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from tests.property.reference import Row

FORMULAS = 25
ROWS = 16
NOTE: dict[str, Type] = {"note": TEXT}

seeds = st.integers(0, 2**64 - 1)
a_few = settings(max_examples=budget(share=8), phases=[Phase.explicit, Phase.generate], database=None)


def draw_formulas(random_: random.Random, count: int = FORMULAS) -> list[Formula]:
    drawing = Drawing(random_.randint)
    found: list[Formula] = []
    while len(found) < count:
        formula = check_tree(drawing.formula(4))
        if formula:
            found.append(formula)
    return found


def test_the_reference_knows_every_function() -> None:
    assert {function.name for function in FUNCTIONS} == reference.KNOWN


def test_every_function_is_drawn() -> None:
    drawing = Drawing(random.Random(1).randint)
    grouped = Drawing(random.Random(2).randint, grouped=True)
    formulas = [check_tree(drawing.formula(4)) for _ in range(500)]
    formulas += [check_tree(grouped.formula(2), GROUPED) for _ in range(200)]
    names = {part.function.name for each in formulas if each for part in walk(each.node) if isinstance(part, Apply)}
    drawn = {
        function.name for function in FUNCTIONS if not function.needs_window
    }  # windows are drawn by test_windows.py
    assert names == drawn - {"NOT"}, "NOT(x) is read as the operator"
    assert sum(each is not None for each in formulas) > 0.85 * len(formulas)


@pytest.mark.parametrize("mode", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
def test_values_are_the_same(spark: SparkSession, mode: dict[str, str]) -> None:
    @a_few
    @given(seeds)
    def check(seed: int) -> None:
        generator = random.Random(seed)
        formulas = draw_formulas(generator)
        rows = [Drawing(generator.randint).row() for _ in range(ROWS)]
        wrong = compare(spark, formulas, rows)
        assert not wrong, "\n".join(wrong)

    with settings_of(spark, mode):
        check()


def test_what_has_no_value_is_an_error_on_spark(spark: SparkSession) -> None:
    def faults(seed: int, most: int) -> list[tuple[Formula, Row]]:
        generator = random.Random(seed)
        rows = [Drawing(generator.randint).row() for _ in range(ROWS)]
        found: list[tuple[Formula, Row]] = []
        for formula in draw_formulas(generator, 200):
            for row in rows:
                fault = expected(formula.node, row)
                if isinstance(fault, reference.Fault) and fault.certain:
                    found.append((formula, row))
                    break
        return found[:most]

    @settings(a_few, max_examples=budget(share=100))
    @given(seeds)
    def check(seed: int) -> None:
        for formula, row in faults(seed, 12):
            sql = encode(render_formula(formula.node, RUN), formula.node.type)
            with pytest.raises(FAILURES):
                pytest.fail(
                    f"{formula.text!r} gives {frame(spark, [row]).selectExpr(sql).collect()[0][0]!r} with {row}"
                )

    check()


@pytest.mark.parametrize("mode", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
def test_aggregates_are_the_same(spark: SparkSession, mode: dict[str, str]) -> None:
    @settings(a_few, max_examples=budget(share=25))
    @given(seeds)
    def check(seed: int) -> None:
        generator = random.Random(seed)
        drawing = Drawing(generator.randint, grouped=True)
        rows = [drawing.grouped_row() for _ in range(2 * ROWS)]
        groups = _grouped(rows)
        formulas: list[Formula] = []
        while len(formulas) < FORMULAS:
            formula = check_tree(drawing.formula(2), GROUPED)
            if formula and all(not isinstance(_total(formula, group), reference.Fault) for group in groups.values()):
                formulas.append(formula)
        wrong = _compare_groups(spark, formulas, rows, groups)
        assert not wrong, "\n".join(wrong)

    with settings_of(spark, mode):
        check()


def test_totals_inside_what_spark_rewrites(spark: SparkSession) -> None:
    """BETWEEN and NULLIF name their first operand once, and then take it and the totals beside it apart."""
    texts = (
        "COUNT_DISTINCT(LOWER(note)) BETWEEN COUNT_IF(NOT paid) AND 100",
        "COUNT_IF(quantity > 1) BETWEEN COUNT(quantity) AND COUNT(*)",
        "NULLIF(COUNT(quantity), COUNT_IF(quantity > 1))",
        "COUNT(*) / COUNT_IF(quantity > 1)",
    )
    drawing = Drawing(random.Random(7).randint, grouped=True)
    rows = [drawing.grouped_row() for _ in range(2 * ROWS)]
    formulas = []
    for text in texts:
        checked = check_formula(Passage.alone(text), GROUPED)
        assert checked.tree is not None, checked.problems
        formulas.append(Formula(text, checked.tree))
    assert _compare_groups(spark, formulas, rows, _grouped(rows)) == []


@pytest.mark.parametrize("mode", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
def test_a_date_has_a_year_of_four_digits_and_no_sign(spark: SparkSession, mode: dict[str, str]) -> None:
    rows = [{"note": text} for text in (None, *DATE_TEXTS)]
    bad = [row for row in rows if row["note"] in ("-2026-01-31", "+12026-01-31", "0000-01-01")]
    assert len(bad) == 3
    formulas = [_of_note(text) for text in ("DATE(note)", "TRY_DATE(note)", "ISNULL(TRY_DATE(note))")]
    totals = [_of_note(f"{name}(1, TRY_DATE(note))", total=True) for name in ("FIRST_BY", "LAST_BY")]
    sqls = [render_formula(each.node, RUN) for each in totals]
    with settings_of(spark, mode):
        assert compare(spark, formulas, rows, NOTE) == []
        for row in bad:
            with pytest.raises(FAILURES):
                frame(spark, [row], NOTE).selectExpr(render_formula(formulas[0].node, RUN)).collect()
        assert frame(spark, bad, NOTE).selectExpr(*sqls).collect() == [(None, None)]
        assert frame(spark, rows, NOTE).selectExpr(*sqls).collect() == [(1, 1)]


def _of_note(text: str, *, total: bool = False) -> Formula:
    scope = Scope(columns=Columns(NOTE), group_by=() if total else None)
    checked = check_formula(Passage.alone(text), scope)
    assert checked.tree is not None, checked.problems
    return Formula(text, checked.tree)


def _grouped(rows: Sequence[Row]) -> dict[tuple[object, ...], list[Row]]:
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in KEYS), []).append(row)
    return groups


def _total(formula: Formula, rows: Sequence[Row]) -> reference.Value | reference.Fault:
    try:
        return reference.aggregate(formula.node, rows, RUN)
    except reference.Fault as fault:
        return fault


def _compare_groups(
    spark: SparkSession, formulas: Sequence[Formula], rows: Sequence[Row], groups: dict[tuple[object, ...], list[Row]]
) -> list[str]:
    from pyspark.sql import functions as F

    assert all(key in OWN for key in KEYS)
    totals = [
        F.expr(encode(render_formula(each.node, RUN), each.node.type)).alias(f"r{at}")
        for at, each in enumerate(formulas)
    ]
    types = [F.expr(render_formula(each.node, RUN)).alias(f"r{at}") for at, each in enumerate(formulas)]
    data = frame(spark, rows).repartition(3).groupBy(*KEYS)
    wrong = [
        f"{each.text!r}: {field.dataType.simpleString()} instead of {each.node.type}"
        for each, field in zip(formulas, data.agg(*types).schema.fields[len(KEYS) :], strict=True)
        if field.dataType.simpleString() != each.node.type.sql.lower()
    ]
    for found in data.agg(*totals).collect():
        group = groups[tuple(found[: len(KEYS)])]
        for at, formula in enumerate(formulas):
            got, value = decode(found[at + len(KEYS)], formula.node.type), _total(formula, group)
            if isinstance(value, reference.Fault) or not same(got, value):
                wrong.append(f"{formula.text!r} of {len(group)} rows\n  expected {value!r}\n  got      {got!r}")
    return wrong
