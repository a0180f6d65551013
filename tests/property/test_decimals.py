"""Arithmetic, comparison, rounding and writing of decimals of any declared type: exact, and of the computed type."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dobonomodo.formula import Columns, Scope, check_formula
from dobonomodo.formula.types import INTEGER, DecimalType, Type
from dobonomodo.problems import Passage
from tests.property.on_spark import COMPILED, INTERPRETED, Formula, budget, compare, settings_of
from tests.property.strategies import Drawing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_TWO = (
    *("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "MOD({a}, {b})", "{a} = {b}", "{a} < {b}", "{a} IN ({b}, 0)"),
    *("{a} BETWEEN {b} AND 1", "COALESCE({a}, {b})", "MIN({a}, {b})", "NULLIF({a}, {b})", "SWITCH({a}, {b}, 1, 2)"),
)
OF_ONE = (
    *("ABS({a})", "-{a}", "ROUND({a}, {n})", "ROUNDUP({a}, {n})", "TRUNC({a}, {n})", "BROUND({a}, {n})", "FLOOR({a})"),
    *("CEIL({a})", "TO_TEXT({a})", 'TEXT({a}, "0.00")', 'TEXT({a}, "#,##0.000")', 'TEXT({a}, "0000.0")'),
    *(
        'TEXT({a}, "0.00%")',
        "TO_DECIMAL({a})",
        "TO_INTEGER({a})",
        "ZEROIFNULL({a})",
        "{a} * 0.07",
        "{a} / 3",
        "{a} + 0.5",
    ),
    *("1 / {a}", "{a} - 1", "{a} * 100", "{a} > 0.005", "{a} + NULL", "MAX({a}, 0)"),
)
MOST_SCALE = 38
TYPES_AT_ONCE = 4
ROWS = 40
FORMULAS_AT_ONCE = 40

some = settings(max_examples=budget(share=50), phases=[Phase.explicit, Phase.generate], database=None)


def draw_type(generator: random.Random) -> Type:
    if generator.random() < 0.15:
        return INTEGER
    precision = generator.choice((38, 38, generator.randint(1, 38)))
    scale = generator.choice((0, min(10, precision), generator.randint(0, precision)))
    return DecimalType(precision, min(scale, MOST_SCALE))


def check(text: str, scope: Scope) -> Formula:
    checked = check_formula(Passage.alone(text), scope)
    assert checked.tree is not None, (text, checked.problems)
    return Formula(f"{text} with {dict(scope.columns)}", checked.tree)


@pytest.mark.parametrize("mode", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
def test_decimals_of_any_type(spark: SparkSession, mode: dict[str, str]) -> None:
    @some
    @given(st.integers(0, 2**64 - 1))
    def run(seed: int) -> None:
        generator = random.Random(seed)
        drawing = Drawing(generator.randint)
        types = {f"c{at}": draw_type(generator) for at in range(TYPES_AT_ONCE)}
        scope = Scope(columns=Columns(types))
        rows = [{name: drawing.value(kind) for name, kind in types.items()} for _ in range(ROWS)]
        texts = [each.format(a=a, b=b) for each in OF_TWO for a in types for b in types if generator.random() < 0.5]
        texts += [each.format(a=a, n=generator.randint(-38, 38)) for each in OF_ONE for a in types]
        formulas = [check(text, scope) for text in texts]
        for at in range(0, len(formulas), FORMULAS_AT_ONCE):
            wrong = compare(spark, formulas[at : at + FORMULAS_AT_ONCE], rows, types)
            assert not wrong, "\n".join(wrong)

    with settings_of(spark, mode):
        run()
