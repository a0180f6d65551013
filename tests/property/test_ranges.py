"""Joins by a range find the same number of matches as the condition itself, computed in plain Python for each pair of rows."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame

from dobonomodo.engine.context import RunContext
from dobonomodo.engine.ranges import COUNT, ROW, Keys, Line
from dobonomodo.engine.rowid import seed_of
from dobonomodo.formula import Columns, Scope, check_formula
from dobonomodo.formula.evaluate import compute
from dobonomodo.formula.print import print_checked
from dobonomodo.formula.sql import literal
from dobonomodo.formula.types import DATE, INTEGER, TEXT, TIMESTAMP, DecimalType, Type
from dobonomodo.plan import DatasetUse
from dobonomodo.plan.condition import Way, take_apart
from dobonomodo.plan.expression import TRUE
from dobonomodo.plan.relation import Lookup, Scan
from dobonomodo.problems import Passage
from tests.searching import SEARCH, tries
from tests.world import JANUARY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POINTS, RANGES = 60, 24
KINDS: Mapping[str, tuple[Type, Type, Type]] = {
    "days": (DATE, DATE, DATE),
    "times": (TIMESTAMP, TIMESTAMP, TIMESTAMP),
    "a time between days": (TIMESTAMP, DATE, TIMESTAMP),
    "integers": (INTEGER, INTEGER, INTEGER),
    "decimals of different scales": (DecimalType(12, 2), DecimalType(9, 4), INTEGER),
    "texts": (TEXT, TEXT, TEXT),
}
"""The types of the point and of both ends."""
CONDITIONS = (
    "k = r.k AND r.low <= x AND x <= r.high",
    "x >= r.low AND x < r.high",
    "k = r.k AND r.low < x AND r.high > x",
    "k = r.k AND r.low < x AND x <= r.high",
    "k = r.k AND x BETWEEN r.low AND r.high",
    "k = r.k AND x >= r.low AND (ISNULL(r.high) OR x < r.high)",
    "OR(r.low IS NULL, r.low <= x) AND (r.high >= x OR r.high IS NULL) AND k = r.k",
    "k = r.k AND x > r.low",
    "k = r.k AND (r.high IS NULL OR x <= r.high)",
    'k = r.k AND x BETWEEN r.low AND r.high AND r.k <> "b" AND NOT ISNULL(k) AND id > 30',
)
COMPUTED: Mapping[str, tuple[str, ...]] = {
    "days": ("k = r.k AND x - 2 >= r.low AND x - 2 < DATEADD(r.high, 3)", "k = r.k AND x BETWEEN r.low AND r.low + 4"),
    "decimals of different scales": ("k = r.k AND x >= r.low - 0.25 AND x < r.low * 1.5 + 2.125",),
}
"""Conditions with arithmetic that cannot fail."""


def pick(draw: random.Random, kind: Type, *, often: int) -> Any:
    """A value from few ones, so that ranges touch; now and then one that is far away, and NULL."""
    if draw.randrange(often) == 0:
        return None
    step = draw.choice((draw.randint(0, 12), draw.randint(0, 12), draw.choice((-900_000, 4_000, 900_000))))
    match kind:
        case DecimalType():
            return (Decimal(step % 90_000) / draw.choice((1, 2, 4))).quantize(Decimal(1).scaleb(-kind.scale))
        case _ if kind == DATE:
            return date(2026, 1, 1) + timedelta(days=draw.choice((step % 13, step // 2)))
        case _ if kind == TIMESTAMP:
            return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=step // 2, microseconds=step % 3)
        case _ if kind == TEXT:
            return draw.choice(("", "konto", "\N{LATIN SMALL LETTER E WITH ACUTE}")) + str(abs(step))
        case _:
            return step


def frame(spark: SparkSession, rows: list[dict[str, Any]], types: Mapping[str, Type]) -> DataFrame:
    nothing = f"SELECT {', '.join(f'{literal(None, kind)} AS {name}' for name, kind in types.items())}"
    values = ", ".join(f"({', '.join(literal(row[name], kind) for name, kind in types.items())})" for row in rows)
    found = spark.sql(f"{nothing} WHERE FALSE")
    return found.unionAll(spark.sql(f"VALUES {values}")) if rows else found


def lookup(condition: str, own: Mapping[str, Type], joined: Mapping[str, Type]) -> Lookup:
    rows, source = (
        Scan(DatasetUse("join", name, 1, name, None, Columns(types))) for name, types in (("o", own), ("r", joined))
    )
    checked = check_formula(Passage.alone(condition), Scope(columns=Columns(own), joined={"r": Columns(joined)}))
    assert checked.tree is not None, checked.problems
    node = Lookup(rows, "r", source, checked.tree, TRUE)
    assert take_apart(node).way is Way.RANGE, condition
    return node


def find_ranges(node: Lookup, rows: DataFrame, source: DataFrame, run: RunContext) -> DataFrame:
    condition = take_apart(node)
    assert condition.range is not None
    assert condition.sides is not None
    flat = source.selectExpr(*(f"`{name}` AS `r.{name}`" for name in source.columns))
    for each in condition.sides.of_source:
        flat = flat.where(run.sql(each))
    own, joined = ([run.sql(pair[side]) for pair in condition.keys] for side in (0, 1))
    only = " AND ".join(map(run.sql, (TRUE, *condition.sides.of_rows)))
    keys = Keys(own, joined)
    return Line(condition.range, run).join(rows, flat, keys, only=only, fields="`r.id` AS id")


@pytest.mark.search
@pytest.mark.parametrize("kind", KINDS)
def test_a_range_holds_the_points_that_the_condition_says(spark: SparkSession, kind: str) -> None:
    point, low, high = KINDS[kind]
    own: dict[str, Type] = {"id": INTEGER, "k": TEXT, "x": point}
    joined: dict[str, Type] = {"id": INTEGER, "k": TEXT, "low": low, "high": high}
    run = RunContext(JANUARY, seed_of("p", "f", JANUARY), JANUARY.period_start)
    for seed in range(tries(sample=1, full=40)):
        draw = random.Random(f"{kind} {seed}")
        rows = [
            {"id": at, "k": draw.choice(("a", "b", "c", None)), "x": pick(draw, point, often=12)}
            for at in range(POINTS)
        ]
        ranges = [
            {"id": at, "k": draw.choice("abd"), "low": pick(draw, low, often=6), "high": pick(draw, high, often=6)}
            for at in range(draw.choice((0, 3, RANGES)) if seed else RANGES)
        ]
        # In a sample, each kind has some of the conditions, and all kinds together have them all.
        first = list(KINDS).index(kind)
        conditions = [*(CONDITIONS if SEARCH else CONDITIONS[first::5]), *COMPUTED.get(kind, ())]
        nodes = [lookup(condition, own, joined) for condition in conditions]
        own_rows, joined_rows = frame(spark, rows, own).repartition(2), frame(spark, ranges, joined).repartition(3)
        shown = [
            find_ranges(node, own_rows, joined_rows, run).selectExpr(
                f"{at} AS at", "id", COUNT, f"IF({COUNT} = 1, {ROW}.id, NULL) AS match"
            )
            for at, node in enumerate(nodes)
        ]
        got = {(row[0], row[1]): (row[2], row[3]) for row in reduce(DataFrame.unionAll, shown).collect()}
        assert len(got) == len(nodes) * len(rows)
        for (at, node), row in product(enumerate(nodes), rows):
            matches = [
                each["id"]
                for each in ranges
                if compute(node.on, {**row, **{f"r.{name}": value for name, value in each.items()}}, JANUARY)
            ]
            wanted = (len(matches) or None, matches[0] if len(matches) == 1 else None)
            assert got[at, row["id"]] == wanted, (print_checked(node.on), row, seed)
