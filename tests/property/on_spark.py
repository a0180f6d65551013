"""Checked formulas on Spark: rows in, values of many formulas out in one query, and what each value should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow
from hypothesis import settings
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from dobonomodo.formula import check_formula, columns_of, flat_name, print_formula, render_formula
from dobonomodo.formula.typed import Typed, walk
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType, Type
from dobonomodo.problems import Passage
from tests.property import reference
from tests.property.reference import Day, Fault, Moment, Row, Value
from tests.property.strategies import RUN, SCOPE, TYPES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dobonomodo.formula import Scope
    from dobonomodo.formula.tree import Expression

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
FAILURES = (PySparkException, Py4JJavaError)
"""A query that fails in Java without Spark noticing is not wrapped by PySpark."""
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


CARRIERS: dict[Type, pyarrow.DataType] = {
    BOOLEAN: pyarrow.bool_(),
    INTEGER: pyarrow.int64(),
    TEXT: pyarrow.string(),
    DATE: pyarrow.int32(),
    TIMESTAMP: pyarrow.int64(),
}
MOST_PARTS = 60
"""How many parts of a formula are tried to find the one that differs."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that was found to be in order."""

    text: str
    node: Typed


def check_tree(written: Expression, scope: Scope = SCOPE) -> Formula | None:
    """The formula that a tree is, or None if it is in error."""
    text = print_formula(written)
    found = check_formula(Passage.alone(text), scope).tree
    return Formula(text, found) if found else None


def budget(*, share: int) -> int:
    """One in so many of the examples that the profile asks for."""
    profile = settings.default
    return max(1, (profile.max_examples if profile else 100) // share)


@contextmanager
def settings_of(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Spark settings for as long as the block runs."""
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.set(name, old) if old is not None else spark.conf.unset(name)


def frame(spark: SparkSession, rows: Sequence[Row], types: Mapping[str, Type] = TYPES) -> DataFrame:
    """The rows with their columns in the declared types, and ``_at``, the place of each row."""
    schema = pyarrow.schema([("_at", pyarrow.int32()), *((name, _carrier(kind)) for name, kind in types.items())])
    columns = [list(range(len(rows))), *([_plain(row[name]) for row in rows] for name in types)]
    # Tuples would go through a Python process of Spark's, ten times as slowly; a local relation would be computed while
    # the query is planned, and no code be generated for it.
    with settings_of(spark, {"spark.sql.execution.arrow.localRelationThreshold": "0"}):
        loaded = spark.createDataFrame(pyarrow.table(columns, schema=schema))
    return loaded.selectExpr(
        "`_at`", *(f"{_decode(_quote(name), kind)} AS {_quote(name)}" for name, kind in types.items())
    )


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _plain(value: object) -> object:
    """Dates and times as numbers: Python would read a time in the zone of the machine."""
    found = reference.as_value(value)
    return found.number if isinstance(found, Day) else found.micros if isinstance(found, Moment) else found


def _carrier(kind: Type) -> pyarrow.DataType:
    if isinstance(kind, DecimalType):
        return pyarrow.decimal128(kind.precision, kind.scale)
    return CARRIERS[kind]


def _decode(sql: str, kind: Type) -> str:
    function = "date_from_unix_date" if kind == DATE else "timestamp_micros" if kind == TIMESTAMP else ""
    return f"{function}({sql})"


def encode(sql: str, kind: Type) -> str:
    """A value in a form that Python can hold: dates and times have years here that it does not know."""
    function = "unix_date" if kind == DATE else "unix_micros" if kind == TIMESTAMP else ""
    return f"{function}({sql})"


def decode(value: Any, kind: Type) -> Value:
    """The value that was encoded."""
    if value is None:
        return None
    if kind == DATE:
        return Day(value)
    assert not isinstance(value, date | datetime)
    found: Value = Moment(value) if kind == TIMESTAMP else value
    return found


def expected(node: Typed, row: Row) -> Value | Fault:
    """The value by meaning, or why there is none."""
    try:
        return reference.evaluate(node, row, RUN)
    except Fault as fault:
        return fault


def same(one: Value, other: Value) -> bool:
    """Equal, and of the same type: TRUE is not 1."""
    return type(one) is type(other) and one == other


def check_types(data: DataFrame, formulas: Sequence[Formula]) -> list[str]:
    """The formulas whose type on Spark is not the one that was computed, or that Spark does not take at all."""
    columns = [f"{render_formula(each.node, RUN)} AS `r{at}`" for at, each in enumerate(formulas)]
    try:
        fields = data.selectExpr(*columns).schema.fields
    except FAILURES as error:
        if len(formulas) == 1:
            return [f"{formulas[0].text!r} is refused: {_first_line(error)}"]
        return [wrong for each in formulas for wrong in check_types(data, [each])]
    return [
        f"{each.text!r}: {field.dataType.simpleString()} instead of {each.node.type.sql.lower()}"
        for each, field in zip(formulas, fields, strict=True)
        if field.dataType.simpleString() != each.node.type.sql.lower()
    ]


def compare(
    spark: SparkSession,
    formulas: Sequence[Formula],
    rows: Sequence[Row],
    types: Mapping[str, Type] = TYPES,
    *,
    wanted_by: Callable[[Typed, Row], Value | Fault] = expected,
) -> list[str]:
    """What differs between Spark and ``wanted_by``. Rows for which there is no value are left out of a formula."""
    wanted = [[wanted_by(each.node, row) for row in rows] for each in formulas]
    data = frame(spark, rows, types)
    wrong = check_types(data, formulas)
    columns = [_guarded(each, values) for each, values in zip(formulas, wanted, strict=True)]
    for at, found in enumerate(_values(data, formulas, columns)):
        if isinstance(found, Exception):
            wrong.append(
                f"{formulas[at].text!r} fails on Spark: {_first_line(found)}\n{_explain(spark, formulas[at], rows, types)}"
            )
            continue
        pairs = zip(found, wanted[at], rows, strict=True)
        different = [row for got, value, row in pairs if not isinstance(value, Fault) and not same(got, value)]
        if different:
            wrong.append(f"{formulas[at].text!r}\n{_explain(spark, formulas[at], different[:1], types)}")
    return wrong


def _guarded(formula: Formula, values: Sequence[Value | Fault]) -> str:
    """The formula, kept by a CASE from the rows that have no value."""
    sql = encode(render_formula(formula.node, RUN), formula.node.type)
    rows = [str(at) for at, value in enumerate(values) if not isinstance(value, Fault)]
    if len(rows) == len(values):
        return sql
    return f"CASE WHEN `_at` IN ({', '.join(rows) or '-1'}) THEN {sql} END"


def _values(data: DataFrame, formulas: Sequence[Formula], columns: Sequence[str]) -> list[list[Value] | Exception]:
    """The values of each column, row by row. A query that fails is taken apart to find the column that is to blame."""
    try:
        rows = data.selectExpr("`_at`", *(f"{sql} AS `r{at}`" for at, sql in enumerate(columns))).collect()
    except FAILURES as error:
        if len(columns) == 1:
            return [error]
        half = len(columns) // 2
        return _values(data, formulas[:half], columns[:half]) + _values(data, formulas[half:], columns[half:])
    rows.sort(key=lambda row: row[0])
    return [[decode(row[at + 1], each.node.type) for row in rows] for at, each in enumerate(formulas)]


def _explain(spark: SparkSession, formula: Formula, rows: Sequence[Row], types: Mapping[str, Type]) -> str:
    """The smallest part of a formula on which Spark and the reference differ."""
    parts = sorted(set(walk(formula.node)), key=lambda part: sum(1 for _ in walk(part)))
    for row in rows:
        data = frame(spark, [row], types)
        known = [(part, value) for part in parts[:MOST_PARTS] if not isinstance(value := expected(part, row), Fault)]
        sqls = [encode(render_formula(part, RUN), part.type) for part, _ in known]
        for (part, value), sql, got in zip(known, sqls, _each(data, [part for part, _ in known], sqls), strict=True):
            if isinstance(got, Exception) or not same(got, value):
                shown = _first_line(got) if isinstance(got, Exception) else repr(got)
                used = {flat_name(column): row[flat_name(column)] for column in columns_of(part)}
                return f"  {sql[:600]}\n  expected {value!r}\n  got      {shown}\n  with {used}"
    return "  no single part differs on its own"


def _each(data: DataFrame, parts: Sequence[Typed], sqls: Sequence[str]) -> Iterator[Value | Exception]:
    """The value of each part, in one query if it works."""
    try:
        row = data.selectExpr(*(f"{sql} AS `r{at}`" for at, sql in enumerate(sqls))).collect()[0]
    except FAILURES:
        for part, sql in zip(parts, sqls, strict=True):
            try:
                yield decode(data.selectExpr(sql).collect()[0][0], part.type)
            except FAILURES as error:
                yield error
    else:
        yield from (decode(value, part.type) for part, value in zip(parts, row, strict=True))


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split("\n", 2)[:2])[:300]
