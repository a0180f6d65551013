"""Joins by a range against the same written by hand: rates by day, exploded into days, and bands, by a window over both sides."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.data import HOME, WORK
from benchmarks.measure import measure, ratio, ratio_of_cpu

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CURRENCIES, DAYS, BANDS = 200, 3650, 10_000
COLUMNS = ["id", "currency", "day", "amount", "customer"]


def ranges(spark: SparkSession, rows: int, warm: int) -> dict[str, Any]:
    """Rates and bands, each in turns with the expert's way, and whether both wrote the same rows."""
    from dobonomodo.engine.engine import SparkEngine
    from dobonomodo.workspace import Workspace

    root = WORK / "ranges"
    shutil.rmtree(root, ignore_errors=True)
    data = root / "workspace" / "data"
    data.mkdir(parents=True)
    _make_data(spark, data, rows)
    (root / "workspace" / "dobo.yaml").write_text((HOME / "ranges.yaml").read_text())
    workspace, engine = Workspace.open(root / "workspace"), SparkEngine(spark)
    experts: dict[str, Callable[[], DataFrame]] = {
        "fx": partial(_explode_days, spark, data),
        "bands": partial(_search_bands, spark, data),
    }
    found: dict[str, Any] = {"rows": rows}
    for name, expert in experts.items():
        runs: list[Any] = []
        there = str(root / name)
        chosen: dict[str, Callable[[], object]] = {
            "expert": lambda expert=expert, there=there: expert().write.mode("overwrite").parquet(there),  # type: ignore[misc]
            "dobo": lambda name=name, runs=runs: runs.append(  # type: ignore[misc]
                workspace.run(name, period="2026-01", spark=spark, figures=False)
            ),
        }
        measured, _ = measure(chosen, warm=warm, cold=1)
        digest = engine.digest(spark.read.parquet(there), [*COLUMNS, "found"])
        found[name] = {
            "measured": {who: each.document() for who, each in measured.items()},
            "ratio": round(ratio(measured["dobo"], measured["expert"]), 3),
            "ratio_cpu": round(ratio_of_cpu(measured["dobo"], measured["expert"]), 3),
            "same": digest == runs[-1].outputs[name].digest,
        }
    workspace.close()
    return found


def _make_data(spark: SparkSession, data: Path, rows: int) -> None:
    currency = "concat('C', lpad(CAST({} AS STRING), 3, '0'))"
    amounts = spark.range(rows).selectExpr(
        "id",
        f"{currency.format(f'pmod(xxhash64(id), {CURRENCIES})')} AS currency",
        f"date_add(DATE'2016-01-01', CAST(pmod(xxhash64(id, 1), {DAYS}) AS INT)) AS day",
        f"CAST(pmod(xxhash64(id, 2), {BANDS * 10_000}) / 100 AS DECIMAL(18,2)) AS amount",
        "concat('customer ', pmod(id, 1000)) AS customer",
    )
    day = f"date_add(DATE'2016-01-01', CAST(id % {DAYS} AS INT))"
    rates = spark.range(CURRENCIES * DAYS).selectExpr(
        f"{currency.format(f'id div {DAYS}')} AS currency",
        f"{day} AS valid_from",
        f"{day} AS valid_to",
        "CAST(pmod(xxhash64(id, 3), 1000000) / 10000 AS DECIMAL(12,4)) AS rate",
    )
    bands = spark.range(BANDS).selectExpr(
        "CAST(id * 100 AS DECIMAL(18,2)) AS low",
        "CAST(id * 100 + 100 AS DECIMAL(18,2)) AS high",
        "concat('band ', id) AS band",
    )
    for name, frame, files in (("amounts", amounts, 4), ("rates", rates, 1), ("bands", bands, 1)):
        frame.repartition(files).write.parquet(str(data / f"{name}.parquet"))


def _explode_days(spark: SparkSession, data: Path) -> DataFrame:
    """Each rate once for each of its days, joined by equality. That no day has two rates is not checked."""
    amounts, rates = (spark.read.parquet(str(data / f"{name}.parquet")) for name in ("amounts", "rates"))
    daily = rates.selectExpr("currency", "rate", "explode(sequence(valid_from, valid_to)) AS day")
    return amounts.join(daily, ["currency", "day"], "left").selectExpr(*COLUMNS, "rate AS found")


def _search_bands(spark: SparkSession, data: Path) -> DataFrame:
    """Both sides in the order of amounts, each row with the last band that begins before it. Overlaps are not noticed."""
    amounts, bands = (spark.read.parquet(str(data / f"{name}.parquet")) for name in ("amounts", "bands"))
    points = amounts.selectExpr("*", "amount AS at", "1 AS turn")
    starts = bands.selectExpr("low AS at", "0 AS turn", "struct(high, band) AS last")
    both = points.unionByName(starts, allowMissingColumns=True).selectExpr(
        "*", "last_value(last, TRUE) OVER (ORDER BY at, turn ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS hit"
    )
    return both.where("turn = 1").selectExpr(*COLUMNS, "CASE WHEN amount < hit.high THEN hit.band END AS found")
