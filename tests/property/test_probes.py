"""What the language relies on in Spark itself, probe by probe."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROBES: tuple[tuple[str, list[tuple[Any, ...]]], ...] = (
    ("SELECT typeof(CAST(1 AS DECIMAL(38,10))+CAST(1 AS DECIMAL(38,10)))", [("decimal(38,9)",)]),
    ("SELECT typeof(CAST(1 AS DECIMAL(23,10))*CAST(1 AS DECIMAL(23,10)))", [("decimal(38,11)",)]),
    (
        "SELECT CAST(CAST('1234567.89' AS DECIMAL(23,10))*CAST('0.00672131' AS DECIMAL(23,10)) AS DECIMAL(38,10))",
        [(Decimal("8297.9135047359"),)],
    ),
    ("SELECT typeof(1/CAST(3 AS DECIMAL(1,0))), 1/CAST(3 AS DECIMAL(1,0))", [("decimal(7,6)", Decimal("0.333333"))]),
    (
        "SELECT round(CAST('-2.5' AS DECIMAL(38,10)),0), round(CAST('1250' AS DECIMAL(38,10)),-2)",
        [(Decimal(-3), Decimal(1300))],
    ),
    ("SELECT ((-7 % nullif(2,0)) + 2) % nullif(2,0), 5 % nullif(0,0)", [(1, None)]),
    (r"SELECT left('abc',-1)='' , right('abc',9), btrim('\t a \n',' \t\r\n')", [(True, "abc", "a")]),
    ("SELECT least(NULL,5), greatest(5,NULL)", [(5, 5)]),
    (
        "SELECT sum(CAST(v AS DECIMAL(20,0))) FROM VALUES (9223372036854775807L),(9223372036854775807L),(2L) t(v)",
        [(Decimal(18446744073709551616),)],
    ),
    (
        "SELECT CASE WHEN id=1 THEN to_date(s,'yyyy-MM-dd') END FROM VALUES (1,'2026-02-28'),(2,'2026-02-30') t(id,s)",
        [(date(2026, 2, 28),), (None,)],
    ),
    (
        "SELECT add_months(DATE'2026-01-31',1), last_day(add_months(DATE'2026-02-28',1))",
        [(date(2026, 2, 28), date(2026, 3, 31))],
    ),
)


@pytest.mark.parametrize(("query", "rows"), PROBES, ids=[query[7:40] for query, _ in PROBES])
def test_probe(spark: SparkSession, query: str, rows: list[tuple[Any, ...]]) -> None:
    assert [tuple(row) for row in spark.sql(query).collect()] == rows
