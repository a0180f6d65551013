"""The same pipeline, written in the ways that a user could choose. All of them give the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PERIOD = "2026-01"
COLUMNS = (
    "o_orderkey",
    "o_custkey",
    "o_orderstatus",
    "o_totalprice",
    "o_orderdate",
    "segment",
    "nation",
    "discounted",
    "total",
    "number",
    "_period",
    "_labels",
    "_deleted",
)


NAMES = ["o_orderkey", "o_custkey", "o_orderstatus", "o_totalprice", "o_orderdate", "o_orderpriority", "_period"]


def run_dobo(spark: SparkSession, workspace: Path) -> Any:
    """The project, through the whole life of a run."""
    import dobonomodo as dobo

    run = dobo.open(workspace).run("pipeline", period=PERIOD, spark=spark, draft=True)
    if run.status != "completed":
        raise RuntimeError(str(run.problems))
    return run


def run_expert(spark: SparkSession, data: Path, out: Path) -> None:
    """PySpark as the best expert writes it: left-deep joins, everything computed once, the second output taken from the first."""
    from pyspark.sql import functions as F

    customer = spark.read.parquet(f"{data}/customer.parquet").select("c_custkey", "c_nationkey", "c_mktsegment")
    nation = F.broadcast(spark.read.parquet(f"{data}/nation.parquet").select("n_nationkey", "n_name"))
    orders = _read_orders(spark, data)
    joined = orders.join(customer, F.expr("o_custkey = c_custkey AND o_orderstatus <> 'P'"), "left")
    joined = joined.join(nation, F.expr("c_nationkey = n_nationkey"), "left")
    _finish(spark, data, joined).write.mode("overwrite").parquet(f"{out}/everything")
    written = spark.read.parquet(f"{out}/everything")
    written.where("NOT _deleted").write.mode("overwrite").parquet(f"{out}/active")


def run_typical(spark: SparkSession, data: Path, out: Path) -> None:
    """PySpark as it is often written: the two small sides joined first, and each output computed from the inputs."""
    from pyspark.sql import functions as F

    customer = spark.read.parquet(f"{data}/customer.parquet").select("c_custkey", "c_nationkey", "c_mktsegment")
    nation = spark.read.parquet(f"{data}/nation.parquet").select("n_nationkey", "n_name")
    sides = customer.join(F.broadcast(nation), F.expr("c_nationkey = n_nationkey"), "left")
    joined = _read_orders(spark, data).join(sides, F.expr("o_custkey = c_custkey AND o_orderstatus <> 'P'"), "left")
    full = _finish(spark, data, joined)
    full.where("NOT _deleted").write.mode("overwrite").parquet(f"{out}/active")
    full.write.mode("overwrite").parquet(f"{out}/everything")


def _read_orders(spark: SparkSession, data: Path) -> DataFrame:
    return spark.read.parquet(f"{data}/orders.parquet").where(f"_period = '{PERIOD}'").select(*NAMES)


def _finish(spark: SparkSession, data: Path, joined: DataFrame) -> DataFrame:
    """All rows of the pipeline, from orders with their customers and nations beside them."""
    from pyspark.sql import functions as F

    working = joined.selectExpr(
        *NAMES[:5],
        "c_mktsegment AS segment",
        "n_name AS nation",
        "CASE WHEN o_orderstatus <> 'P' THEN CAST(CASE WHEN c_mktsegment = 'BUILDING' THEN ROUND(o_totalprice * 0.9, 2) "
        "ELSE o_totalprice END AS DECIMAL(18,2)) END AS discounted",
        "_period",
        "CASE WHEN o_orderpriority = '1-URGENT' THEN '{urgent}' ELSE '' END AS _labels",
    )
    totals = working.groupBy("_period", "segment").agg(
        F.expr("sum(discounted)").alias("total"), F.expr("count(o_orderkey)").alias("number")
    )
    balance = spark.read.parquet(f"{data}/balance.parquet").groupBy("segment").agg(F.expr("sum(total)").alias("total"))
    full = _stack(working, totals, balance).withColumn("_deleted", F.expr("coalesce(o_totalprice < 1000, false)"))
    return full.select(*COLUMNS)


def run_beginner(spark: SparkSession, data: Path, out: Path) -> None:
    """PySpark as a beginner writes it: filter and union for each update, a count after each step, all columns."""
    from pyspark.sql import functions as F

    working = spark.read.parquet(f"{data}/orders.parquet").where(F.col("_period") == PERIOD)
    working = working.withColumn("_labels", F.lit("")).withColumn("_deleted", F.lit(False))
    working.count()
    urgent = working.where(F.col("o_orderpriority") == "1-URGENT").withColumn("_labels", F.lit("{urgent}"))
    working = urgent.union(working.where(F.col("o_orderpriority") != "1-URGENT"))
    working.count()
    customer = spark.read.parquet(f"{data}/customer.parquet")
    nation = spark.read.parquet(f"{data}/nation.parquet")
    price = F.when(
        F.col("c_mktsegment") == "BUILDING", F.round(F.col("o_totalprice") * F.lit("0.9").cast("decimal(2,1)"), 2)
    )
    changed = (
        working.where(F.col("o_orderstatus") != "P")
        .join(customer, working.o_custkey == customer.c_custkey, "left")
        .join(nation, customer.c_nationkey == nation.n_nationkey, "left")
        .withColumn("segment", F.col("c_mktsegment"))
        .withColumn("nation", F.col("n_name"))
        .withColumn("discounted", price.otherwise(F.col("o_totalprice")).cast("decimal(18,2)"))
        .select(*working.columns, "segment", "nation", "discounted")
    )
    rest = working.where(F.col("o_orderstatus") == "P")
    working = changed.unionByName(rest, allowMissingColumns=True)
    working.count()
    totals = working.groupBy("_period", "segment").agg(
        F.sum("discounted").alias("total"), F.count("o_orderkey").alias("number")
    )
    balance = spark.read.parquet(f"{data}/balance.parquet").groupBy("segment").agg(F.sum("total").alias("total"))
    working = _stack(working, totals, balance)
    working.count()
    small = working.where(F.col("o_totalprice") < 1000).withColumn("_deleted", F.lit(True))
    large = working.where(~(F.coalesce(F.col("o_totalprice"), F.lit(1000)) < 1000)).withColumn("_deleted", F.lit(False))
    working = small.union(large)
    working.count()
    working.where(~F.col("_deleted")).select(*COLUMNS).write.mode("overwrite").parquet(f"{out}/active")
    working.select(*COLUMNS).write.mode("overwrite").parquet(f"{out}/everything")


def _stack(working: DataFrame, totals: DataFrame, balance: DataFrame) -> DataFrame:
    return working.unionByName(totals.selectExpr("*", "'' AS _labels"), allowMissingColumns=True).unionByName(
        balance.selectExpr("*", "'' AS _labels"), allowMissingColumns=True
    )


SQL = """
WITH sides AS (
  SELECT c_custkey, c_mktsegment, n_name
  FROM '{data}/customer.parquet' LEFT JOIN '{data}/nation.parquet' ON c_nationkey = n_nationkey),
working AS (
  SELECT o_orderkey, o_custkey, o_orderstatus, o_totalprice, o_orderdate, c_mktsegment AS segment, n_name AS nation,
         CASE WHEN o_orderstatus <> 'P' THEN CAST(CASE WHEN c_mktsegment = 'BUILDING'
           THEN ROUND(o_totalprice * 0.9, 2) ELSE o_totalprice END AS DECIMAL(18,2)) END AS discounted,
         _period, CASE WHEN o_orderpriority = '1-URGENT' THEN '{{urgent}}' ELSE '' END AS _labels
  FROM '{data}/orders.parquet' LEFT JOIN sides ON o_custkey = c_custkey AND o_orderstatus <> 'P' WHERE _period = '2026-01'),
totals AS (SELECT _period, segment, SUM(discounted) AS total, COUNT(o_orderkey) AS number FROM working GROUP BY ALL),
balance AS (SELECT segment, SUM(total) AS total FROM '{data}/balance.parquet' GROUP BY ALL),
stacked AS (
  SELECT *, CAST(NULL AS DECIMAL(38,2)) AS total, CAST(NULL AS BIGINT) AS number FROM working
  UNION ALL BY NAME SELECT *, '' AS _labels FROM totals
  UNION ALL BY NAME SELECT *, '' AS _labels FROM balance)
SELECT o_orderkey, o_custkey, o_orderstatus, o_totalprice, o_orderdate, segment, nation, discounted, total, number, _period, _labels,
       COALESCE(o_totalprice < 1000, false) AS _deleted FROM stacked
"""


def run_duckdb(data: Path, out: Path) -> None:
    """One SQL query, two copies of it."""
    import duckdb

    out.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TEMP TABLE result AS {SQL.format(data=data)}")
        connection.execute(f"COPY (FROM result WHERE NOT _deleted) TO '{out}/active.parquet' (FORMAT parquet)")
        connection.execute(f"COPY result TO '{out}/everything.parquet' (FORMAT parquet)")


def run_polars(data: Path, out: Path) -> None:
    """Lazy frames, collected once."""
    import polars as pl

    out.mkdir(parents=True, exist_ok=True)
    customer = pl.scan_parquet(data / "customer.parquet").select("c_custkey", "c_nationkey", "c_mktsegment")
    nation = pl.scan_parquet(data / "nation.parquet").select("n_nationkey", "n_name")
    sides = customer.join(nation, left_on="c_nationkey", right_on="n_nationkey", how="left")
    price = pl.col("o_totalprice")
    chosen = pl.col("o_orderstatus") != "P"
    # Cents as integers: multiplying by nine and rounding half up is exact.
    cents = (price * 100).cast(pl.Int64)
    reduced = ((cents * 9 + 5) // 10).cast(pl.Decimal(18, 0)) / pl.lit(100, pl.Decimal(18, 2))
    working = (
        pl.scan_parquet(data / "orders.parquet")
        .filter(pl.col("_period") == PERIOD)
        .with_columns(key=pl.when(chosen).then(pl.col("o_custkey")))
        .join(sides, left_on="key", right_on="c_custkey", how="left")
        .select(
            *COLUMNS[:5],
            pl.col("c_mktsegment").alias("segment"),
            pl.col("n_name").alias("nation"),
            pl.when(chosen)
            .then(
                pl.when(pl.col("c_mktsegment") == "BUILDING")
                .then(reduced.cast(pl.Decimal(18, 2)))
                .otherwise(price.cast(pl.Decimal(18, 2)))
            )
            .alias("discounted"),
            "_period",
            pl.when(pl.col("o_orderpriority") == "1-URGENT")
            .then(pl.lit("{urgent}"))
            .otherwise(pl.lit(""))
            .alias("_labels"),
        )
    )
    totals = working.group_by("_period", "segment").agg(
        # A sum of nothing is nothing, not zero.
        pl.when(pl.col("discounted").count() > 0)
        .then(pl.col("discounted").sum().cast(pl.Decimal(38, 2)))
        .alias("total"),
        pl.col("o_orderkey").count().cast(pl.Int64).alias("number"),
    )
    balance = (
        pl.scan_parquet(data / "balance.parquet").group_by("segment").agg(pl.col("total").cast(pl.Decimal(38, 2)).sum())
    )
    stacked = pl.concat(
        [working, totals.with_columns(pl.lit("").alias("_labels")), balance.with_columns(pl.lit("").alias("_labels"))],
        how="diagonal",
    )
    result = stacked.with_columns((price < 1000).fill_null(value=False).alias("_deleted")).select(*COLUMNS).collect()
    result.filter(~pl.col("_deleted")).write_parquet(out / "active.parquet")
    result.write_parquet(out / "everything.parquet")
