"""Every example of every function is true on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dobonomodo.formula import FUNCTIONS, render_formula
from dobonomodo.formula.meaning import Scalar
from tests.unit.formula.orders import GROUPS, WINDOWS, check
from tests.world import JANUARY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCALARS = [each for function in FUNCTIONS if isinstance(function.python, Scalar) for each in function.examples]
NEIGHBOURS = [example for function in FUNCTIONS if function.needs_window for example in function.examples]
AGGREGATES = [example for function in FUNCTIONS if function.is_aggregate for example in function.examples]


def render(example: str) -> str:
    tree = check(example, GROUPS if example in AGGREGATES else WINDOWS).tree
    assert tree is not None, example
    return render_formula(tree, JANUARY)


def numbered(examples: Sequence[str]) -> list[str]:
    return [f"{render(example)} AS e{number}" for number, example in enumerate(examples)]


def report(examples: Sequence[str], values: Sequence[object]) -> str:
    pairs = zip(examples, values, strict=True)
    return "\n".join(f"{value}: {example}\n  {render(example)}" for example, value in pairs if value is not True)


def test_scalars(spark: SparkSession) -> None:
    (row,) = spark.range(1).selectExpr(*numbered(SCALARS)).collect()
    wrong = report(SCALARS, row)
    assert not wrong, wrong


def three_rows(spark: SparkSession) -> DataFrame:
    values = "(10.50, 1L, 'N'), (20.00, 2L, 'N'), (NULL, 3L, 'S') AS t(amount, quantity, region)"
    return spark.sql(f"SELECT CAST(amount AS DECIMAL(15,2)) AS amount, quantity, region FROM VALUES {values}")


def test_windows_in_every_row(spark: SparkSession) -> None:
    rows = three_rows(spark).selectExpr(*numbered(NEIGHBOURS)).collect()
    wrong = "\n".join(report(NEIGHBOURS, row) for row in rows).strip()
    assert len(rows) == 3
    assert not wrong, wrong


def test_aggregates(spark: SparkSession) -> None:
    (row,) = three_rows(spark).selectExpr(*numbered(AGGREGATES)).collect()
    wrong = report(AGGREGATES, row)
    assert not wrong, wrong
