"""The golden formulas on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dobonomodo.formula import render_formula
from dobonomodo.formula.sql import literal, quote_name
from tests.golden.test_formulas import FILES, read
from tests.unit.formula.orders import COLUMNS, GROUPS, JOINED, check
from tests.world import JANUARY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_gives_the_types(spark: SparkSession) -> None:
    """Every rendered formula is one that Spark accepts, and its type there is the one that was promised."""
    from pyspark.sql.functions import expr

    kinds = {**COLUMNS, **{f"{alias}.{name}": kind for alias, each in JOINED.items() for name, kind in each.items()}}
    rows = spark.range(1).selectExpr(*(f"{literal(None, kind)} AS {quote_name(name)}" for name, kind in kinds.items()))
    wrong = []
    for golden in map(read, FILES):
        for entry in golden.entries:
            tree = check(entry.formula, golden.scope).tree
            if tree is None:
                continue
            column = expr(render_formula(tree, JANUARY))
            result = rows.groupBy("region").agg(column) if golden.scope is GROUPS else rows.select(column)
            found = result.schema.fields[-1].dataType.simpleString()
            if found.upper() != tree.type.sql:
                wrong.append(f"{entry.formula}: promised {tree.type.sql}, on Spark {found}")
    assert not wrong, "\n".join(wrong)
