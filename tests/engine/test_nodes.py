"""Nodes that no operation uses yet, on Spark: matches that multiply rows, and windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from dobonomodo.engine.context import RunContext
from dobonomodo.engine.faults import find_repeated
from dobonomodo.engine.frames import Frames
from dobonomodo.engine.loading import REPEATED
from dobonomodo.engine.query import DEPTH, Query
from dobonomodo.engine.reading import StoredRows
from dobonomodo.engine.rowid import seed_of
from dobonomodo.formula import ColumnRef, Columns, Scope, Type, Typed, check_formula, parse_type
from dobonomodo.formula.typed import Order, Over
from dobonomodo.plan import DatasetUse
from dobonomodo.plan.expression import TRUE, column, over
from dobonomodo.plan.relation import AssignIds, Derive, Group, Keep, Match, Rel, Scan, Window
from dobonomodo.plan.system import ROW_ID
from dobonomodo.problems import Passage
from tests.world import JANUARY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COSTS = """id string, code string, amount decimal(15,2)"""
SHARES = """cost string, target string, part decimal(5,2), number integer"""

COST_ROWS = "('a', '1', 10.00), ('b', '2', 20.00), ('c', 'none', 30.00), (NULL, '4', 40.00)"
SHARE_ROWS = "('a', 'x', 0.25, 1), ('a', 'y', 0.75, 2), ('b', 'x', 1.00, 2), (NULL, 'z', 1.00, 9)"


@dataclass
class Tables:
    """Rows by dataset, in as many partitions as a test wants."""

    frames: Mapping[str, DataFrame]
    partitions: int = 3

    def read(self, use: DatasetUse) -> list[StoredRows]:
        return [StoredRows(self.frames[use.dataset_id].repartition(self.partitions))]


def types(declared: str) -> dict[str, Type]:
    pairs = (
        each.strip().split(" ")
        for each in declared.replace("decimal(15,2)", "money").replace("decimal(5,2)", "part_").split(",")
    )
    kinds = {"money": "decimal(15,2)", "part_": "decimal(5,2)"}
    return {name: parse_type(kinds.get(kind, kind)) for name, kind in pairs}  # type: ignore[misc]


def scan(dataset_id: str, declared: str, role: Any = "input") -> Scan:
    return Scan(DatasetUse(role, dataset_id, 1, dataset_id, None, Columns(types(declared))))


COST, SHARE = scan("costs", COSTS), scan("shares", SHARES, "join")


def formula(text: str, rows: Rel, source: Rel | None = None) -> Typed:
    joined = {} if source is None else {"s": Columns(source.schema.columns)}
    checked = check_formula(Passage.alone(text), Scope(columns=rows.schema.columns, joined=joined))
    assert checked.tree is not None, checked.problems
    return checked.tree


def formula_over(rows: Rel, text: str) -> Typed:
    checked = check_formula(Passage.alone(text), Scope(columns=rows.schema.columns, group_by=()))
    assert checked.tree is not None, checked.problems
    return checked.tree


def frames_of(spark: SparkSession, *, partitions: int = 3) -> Frames:
    def frame(declared: str, values: str) -> DataFrame:
        columns = ", ".join(f"CAST({name} AS {kind.sql}) AS {name}" for name, kind in types(declared).items())
        return spark.sql(f"SELECT {columns} FROM VALUES {values} AS t({', '.join(types(declared))})")

    tables = Tables({"costs": frame(COSTS, COST_ROWS), "shares": frame(SHARES, SHARE_ROWS)}, partitions)
    return Frames(tables, RunContext(JANUARY, seed_of("p", "f", JANUARY), JANUARY.period_start))


def rows_of(spark: SparkSession, node: Rel, *names: str, partitions: int = 3) -> list[tuple[Any, ...]]:
    found = frames_of(spark, partitions=partitions).make(node).select(*(f"`{name}`" for name in names)).collect()
    return sorted((tuple(str(each) if each is not None else None for each in row) for row in found), key=repr)


def matched(on: str, only: str | None = None) -> Match:
    return Match(COST, "s", SHARE, formula(on, COST, SHARE), TRUE if only is None else formula(only, COST))


def test_a_match_multiplies_rows_and_drops_those_without_one(spark: SparkSession) -> None:
    found = rows_of(spark, matched("id = s.cost"), "id", "amount", "s.target", "s.part")
    assert found == [("a", "10.00", "x", "0.25"), ("a", "10.00", "y", "0.75"), ("b", "20.00", "x", "1.00")]


def test_only_rows_that_take_part_are_matched(spark: SparkSession) -> None:
    assert rows_of(spark, matched("id = s.cost", "amount > 10"), "id", "s.target") == [("b", "x")]
    assert rows_of(spark, matched("id = s.cost", "NULL = 1"), "id") == []


def test_a_match_may_have_any_condition(spark: SparkSession) -> None:
    found = rows_of(spark, matched("amount > 15 AND s.part < 1 AND s.number >= 1"), "id", "s.target")
    assert found == [("b", "x"), ("b", "y"), ("c", "x"), ("c", "y"), (None, "x"), (None, "y")]


def test_conditions_are_not_computed_for_rows_that_take_no_part(spark: SparkSession) -> None:
    only = 'code <> "none"'
    assert rows_of(spark, matched("TO_INTEGER(code) = s.number", only), "id", "s.target") == [
        ("a", "x"),
        ("b", "x"),
        ("b", "y"),
    ]
    assert rows_of(spark, matched("TO_INTEGER(code) > 3 AND s.number = 9", only), "id", "s.target") == [(None, "z")]


def test_matched_rows_get_ids_of_their_own_whatever_the_partitions(spark: SparkSession) -> None:
    node = AssignIds(matched("id = s.cost"), 7, (ROW_ID, f"s.{ROW_ID}"))
    first = rows_of(spark, node, "id", "s.target", ROW_ID)
    assert len({row_id for _, _, row_id in first}) == 3
    assert rows_of(spark, node, "id", "s.target", ROW_ID, partitions=1) == first


TARGET, PART, NUMBER = (column(name, SHARE.schema.columns) for name in ("target", "part", "number"))
SHARED = Keep(SHARE, formula("target <> 'none'".replace("'", '"'), SHARE))


def windowed(spark: SparkSession, **values: Over) -> list[tuple[Any, ...]]:
    return rows_of(spark, Window(SHARED, "w", values), "cost", "target", *(f"w.{name}" for name in values))


def test_values_over_a_whole_partition(spark: SparkSession) -> None:
    found = windowed(
        spark,
        total=over("SUM", PART, partition=(TARGET,)),
        rows=over("COUNT", column("cost", SHARE.schema.columns), partition=(TARGET,)),
        least=over("MIN_AGG", PART, partition=(TARGET,)),
        most=over("MAX_AGG", NUMBER),
    )
    assert found == [
        ("a", "x", "1.25", "2", "0.25", "9"),
        ("a", "y", "0.75", "1", "0.75", "9"),
        ("b", "x", "1.25", "2", "0.25", "9"),
        (None, "z", "1.00", "0", "1.00", "9"),
    ]


def test_running_values_include_peers(spark: SparkSession) -> None:
    found = windowed(spark, total=over("SUM", PART, order=(Order(NUMBER),)))
    assert found == [("a", "x", "0.25"), ("a", "y", "2.00"), ("b", "x", "2.00"), (None, "z", "3.00")]


def test_rows_are_numbered_in_a_total_order(spark: SparkSession) -> None:
    cost = column("cost", SHARE.schema.columns)
    order = (Order(cost, descending=True), Order(TARGET))
    assert windowed(spark, n=over("ROW_NUMBER", order=order)) == [
        ("a", "x", "2"),
        ("a", "y", "3"),
        ("b", "x", "1"),
        (None, "z", "4"),
    ]
    up = (Order(cost), Order(TARGET, descending=True))
    assert windowed(spark, n=over("ROW_NUMBER", order=up)) == [
        ("a", "x", "3"),
        ("a", "y", "2"),
        ("b", "x", "4"),
        (None, "z", "1"),
    ]


def test_the_largest_remainder_can_be_given_away(spark: SparkSession) -> None:
    """What `allocate` will need: shares of an amount to the cent, and what is left to one row, whatever the partitions."""
    rows = matched("id = s.cost")
    share = Derive(rows, {"share": formula("ROUND(amount * s.part, 2)", rows, SHARE)})
    mine = (ColumnRef("id", None, types(COSTS)["id"]),)
    given = column("share", share.schema.columns)
    last = (Order(given, descending=True), Order(ColumnRef("target", "s", types(SHARES)["target"])))
    values = {"given": over("SUM", given, partition=mine), "rank": over("ROW_NUMBER", partition=mine, order=last)}
    node = Window(share, "w", values)
    expected = [("a", "2.50", "10.00", "2"), ("a", "7.50", "10.00", "1"), ("b", "20.00", "20.00", "1")]
    for partitions in (1, 4):
        assert rows_of(spark, node, "id", "share", "w.given", "w.rank", partitions=partitions) == expected


def test_a_repeated_key_of_a_joined_dataset_is_named_below_groups_too(spark: SparkSession) -> None:
    """Groups that need no ids of their rows read them again without; the joined rows have ids all the same."""
    declared = Columns(types(SHARES))
    shares = Scan(DatasetUse("join", "shares", 1, "shares", None, declared, natural_key=("cost",)))
    joined = Match(COST, "s", shares, formula("id = s.cost", COST, shares), TRUE)
    node = Group(joined, {"code": column("code", COST.schema.columns)}, {"n": formula_over(joined, "COUNT(amount)")})
    frames = frames_of(spark)
    with pytest.raises(Exception, match=REPEATED) as stopped:
        frames.make(node).collect()
    number = find_repeated(stopped.value)
    assert number is not None
    problem = frames.explain_repeated(number)
    assert problem.dataset_id == "shares"
    assert problem.differences == ("cost = a (2 rows)",)


def test_projections_in_a_row_are_given_to_spark_as_few_queries(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Braces of users are text in them."""
    queries: list[str] = []
    sql = type(spark).sql

    def note(session: SparkSession, text: str, args: None, **frames: Any) -> DataFrame:
        queries.append(text)
        return sql(session, text, args, **frames)

    monkeypatch.setattr(type(spark), "sql", note)
    query = Query.of(spark.range(2).selectExpr("id AS number", "'' AS labels"))
    steps = range(DEPTH * 2 + 3)
    for at in steps:
        tagged = f"CASE WHEN number = {at} THEN concat(labels, '{{tag:{at}}}') ELSE labels END AS labels"
        query = query.select(["number + 1 AS number", tagged])
    rows = {row["number"]: row["labels"] for row in query.make().collect()}
    assert rows == {23: "".join(f"{{tag:{at}}}" for at in steps), 24: ""}
    assert len(queries) == 3


def test_filters_and_joins_are_part_of_a_query(spark: SparkSession) -> None:
    rows = Query.of(spark.range(6).selectExpr("id", "'{' AS text"))
    names = Query.of(spark.range(4).selectExpr("id AS key", "concat('n', id) AS name")).where("key <> 2")
    joined = rows.where("id > 0").left_join(
        names, on="id = key", where="id <> 5 AND text = '{'", columns=["id", "name", "text || '}' AS text"]
    )
    found = joined.select(["id * 2 AS id", "name", "text"]).make()
    assert {(row.id, row.name, row.text) for row in found.collect()} == {
        (2, "n1", "{}"),
        (4, None, "{}"),
        (6, "n3", "{}"),
        (8, None, "{}"),
    }
