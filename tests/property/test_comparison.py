"""Comparison of decimals of any two types against Python's own: it neither overflows nor rounds (C-90)."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from dobonomodo.formula import Columns, Scope, check_formula, render_formula
from dobonomodo.formula.types import DecimalType, unify
from dobonomodo.problems import Passage
from tests.property import reference
from tests.property.on_spark import COMPILED, FAILURES, INTERPRETED, frame, settings_of
from tests.property.strategies import RUN, Picking, scaled
from tests.searching import tries

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from dobonomodo.formula.types import Type

TYPES = tries(sample=12, full=200)
"""Pairs of types, each in both orders."""
ROWS = tries(sample=60, full=2_500)
"""Pairs of values for each."""

Pair = tuple[Decimal, Decimal]
ANSWERS: dict[str, Callable[[Decimal, Decimal], object]] = {
    "a = b": lambda a, b: a == b,
    "a <> b": lambda a, b: a != b,
    "a < b": lambda a, b: a < b,
    "a <= b": lambda a, b: a <= b,
    "a > b": lambda a, b: a > b,
    "a >= b": lambda a, b: a >= b,
    "a BETWEEN b AND b": lambda a, b: a == b,
    "a NOT BETWEEN b AND 0.5": lambda a, b: not b <= a <= Decimal("0.5"),
    "a IN (0.25, b, 7)": lambda a, b: a in (Decimal("0.25"), b, 7),
    "a NOT IN (0.25, b)": lambda a, b: a not in (Decimal("0.25"), b),
    "a > 0": lambda a, b: a > 0,
    "a > 0.00000000005": lambda a, b: a > Decimal("0.00000000005"),
    "a <= 99999999999999999999999999999999999999": lambda a, b: a <= 10**38 - 1,
    "a = -0.00000000000000000000000000000000000001": lambda a, b: a == Decimal("-1e-38"),
    "SWITCH(a, b, 1, 0.5, 2, 3)": lambda a, b: 1 if a == b else 2 if a == Decimal("0.5") else 3,
    "IF(a = b, 1, 2)": lambda a, b: 1 if a == b else 2,
    "CASE WHEN a < b THEN 1 WHEN a > b THEN 2 ELSE 3 END": lambda a, b: 1 if a < b else 2 if a > b else 3,
    "ISNULL(NULLIF(a, b))": lambda a, b: a == b,
    "NULLIF(a, b)": lambda a, b: None if a == b else a,
}
"""The formulas, and the answers of Python, whose comparison of decimals is exact."""


def draw_kinds(generator: random.Random) -> tuple[DecimalType, DecimalType]:
    """Two types, most often such that no type of 38 digits holds both."""
    while True:
        one, other = (DecimalType(precision, generator.randint(0, precision)) for precision in _precisions(generator))
        digits = max(one.whole, other.whole) + max(one.scale, other.scale)
        if digits > 38 or generator.random() < 0.2:
            return one, other


def _precisions(generator: random.Random) -> tuple[int, int]:
    one, other = (generator.choice((38, 38, generator.randint(1, 38))) for _ in range(2))
    return one, other


def draw_pair(generator: random.Random, one: DecimalType, other: DecimalType) -> Pair:
    """Any two values, or two that are equal but for the last places."""
    picking = Picking(generator.randint)
    a = picking.decimal(one)
    if generator.random() < 0.3:
        return a, picking.decimal(other)
    exponent = other.scale - one.scale
    units = int(Fraction(a) * 10**one.scale)
    near = units * 10**exponent if exponent >= 0 else units // 10**-exponent
    near += generator.choice((0, 0, 1, -1, 5, -5))
    most = 10**other.precision - 1
    return a, scaled(max(-most, min(most, near)), other.scale)


@pytest.mark.search
@pytest.mark.parametrize("mode", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
def test_decimals_are_compared_exactly(
    spark: SparkSession, mode: dict[str, str], record_property: Callable[[str, object], None]
) -> None:
    generator = random.Random(90)
    with settings_of(spark, mode):
        for _ in range(TYPES):
            one, other = draw_kinds(generator)
            pairs = [draw_pair(generator, one, other) for _ in range(ROWS)]
            for a, b, kinds in ((0, 1, (one, other)), (1, 0, (other, one))):
                wrong = _compare(spark, [(pair[a], pair[b]) for pair in pairs], kinds)
                assert not wrong, f"{kinds[0]}, {kinds[1]}\n" + "\n".join(wrong[:10])
    record_property("pairs of values", 2 * TYPES * ROWS)
    record_property("comparisons", 2 * TYPES * ROWS * len(ANSWERS))


def _compare(spark: SparkSession, pairs: list[Pair], kinds: tuple[DecimalType, DecimalType]) -> list[str]:
    types: dict[str, Type] = {"a": kinds[0], "b": kinds[1]}
    sqls = [_render(text, types) for text in ANSWERS]
    rows = frame(spark, [{"a": a, "b": b} for a, b in pairs], types).selectExpr("_at", *sqls).collect()
    return [
        f"{text} with {a}, {b}: {found[1 + at]}"
        for found in rows
        for a, b in [pairs[found[0]]]
        for at, (text, answer) in enumerate(ANSWERS.items())
        if found[1 + at] != answer(a, b)
    ]


def _render(text: str, types: dict[str, Type]) -> str:
    checked = check_formula(Passage.alone(text), Scope(columns=Columns(types)))
    assert checked.tree is not None, checked.problems
    return render_formula(checked.tree, RUN)


@pytest.mark.parametrize("mode", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
def test_a_null_beside_a_decimal_is_unknown(spark: SparkSession, mode: dict[str, str]) -> None:
    types: dict[str, Type] = {"a": DecimalType(38, 0), "b": DecimalType(38, 38)}
    rows: list[reference.Row] = [{"a": None, "b": Decimal(0)}, {"a": Decimal(0), "b": None}, {"a": None, "b": None}]
    operators = ("=", "<>", "<", "<=", ">", ">=")
    sqls = [_render(f"ISNULL(a {operator} b)", types) for operator in operators]
    with settings_of(spark, mode):
        found = frame(spark, rows, types).selectExpr(*sqls).collect()
    assert [tuple(row) for row in found] == [(True,) * len(operators)] * len(rows)


@pytest.mark.search
@pytest.mark.parametrize("mode", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
def test_the_smaller_and_the_larger_are_chosen_before_they_are_converted(
    spark: SparkSession, mode: dict[str, str], record_property: Callable[[str, object], None]
) -> None:
    """A value that the result cannot hold does no harm unless it is the one that is chosen."""
    generator = random.Random(91)
    compared = 0
    with settings_of(spark, mode):
        for _ in range(TYPES):
            one, other = draw_kinds(generator)
            types: dict[str, Type] = {"a": one, "b": other}
            common = unify((one, other))
            assert isinstance(common, DecimalType)
            pairs = [draw_pair(generator, one, other) for _ in range(ROWS)]
            for name, choose in (("MIN", min), ("MAX", max)):
                kept = [pair for pair in pairs if _fits(choose(pair), common)]
                compared += len(kept)
                data = frame(spark, [{"a": a, "b": b} for a, b in kept], types)
                found = data.selectExpr("_at", _render(f"{name}(a, b)", types)).collect()
                wrong = [
                    (kept[at], value)
                    for at, value in found
                    if value != reference.to_scale(choose(kept[at]), common.scale)
                ]
                assert not wrong, (name, one, other, wrong[:5])
    record_property("pairs whose smaller or larger value fits the result", compared)


def _fits(value: Decimal, kind: DecimalType) -> bool:
    return bool(abs(Fraction(reference.to_scale(value, kind.scale))) < 10**kind.whole)


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [("MIN", "-1e37", "0.5"), ("MAX", "1e37", "0.5"), ("MIN", "1e37", None), ("MAX", "-1e37", None)],
)
def test_a_chosen_value_that_does_not_fit_is_an_error_and_never_another_value(
    spark: SparkSession, name: str, a: str, b: str | None
) -> None:
    types: dict[str, Type] = {"a": DecimalType(38, 0), "b": DecimalType(38, 18)}
    row = {"a": Decimal(int(Decimal(a))), "b": Decimal(b) if b else None}
    sql = _render(f"{name}(a, b)", types)
    with pytest.raises(FAILURES):
        frame(spark, [row], types).selectExpr(sql).collect()
