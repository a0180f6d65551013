"""A running Spark answers as Spark does, digests are those that earlier versions recorded, and other sessions are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dobonomodo.cli.init import make_workspace
from dobonomodo.engine.arithmetic import require_arithmetic
from dobonomodo.engine.engine import SparkEngine
from dobonomodo.problems import RunFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = """
SELECT id, CASE WHEN id % 7 <> 0 THEN concat('row ', id) END AS name, CAST(id * 1.25 - 3 AS DECIMAL(15,2)) AS amount,
       date_add(DATE '2026-01-01', CAST(id AS INT)) AS day
FROM range(1000)
"""

TURKISH = """
from pyspark.sql import SparkSession
import dobonomodo as dobo

options = "-Duser.language=tr -Duser.country=TR"
spark = SparkSession.builder.master("local[1]").config("spark.driver.extraJavaOptions", options).getOrCreate()
run = dobo.open(".").run("totals", period="2026-01", spark=spark, draft=True)
print(run.status, len(run.outputs), *(f"{each.code} {each.retry_helps}" for each in run.problems))
"""


def test_spark_computes_as_spark_does(spark: SparkSession) -> None:
    require_arithmetic(spark, of=spark)


@pytest.mark.parametrize(
    ("setting", "value", "differing"),
    [
        ("spark.sql.ansi.enabled", "false", "9223372036854775807 + 1"),
        ("spark.sql.session.timeZone", "Asia/Tokyo", "max(s)"),
        ("spark.sql.caseSensitive", "true", "it fails"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false", "DECIMAL(38,18)"),
    ],
)
def test_a_session_that_computes_otherwise_is_refused(
    spark: SparkSession, setting: str, value: str, differing: str
) -> None:
    other = spark.newSession()
    other.conf.set(setting, value)
    with pytest.raises(RunFailed) as refused:
        SparkEngine(other).require_arithmetic(of=other)
    assert (refused.value.problem.code, refused.value.retry_helps) == ("SPARK_DIFFERS", False)
    assert differing in " ".join(getattr(refused.value.problem, "differences", ()))


def test_digests_are_those_that_were_recorded_before(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    assert engine.digest(spark.sql(ROWS), ["id", "name", "amount", "day"]) == "6f59900d6fb228d0-1000"
    assert engine.digest(spark.sql(ROWS).where("false"), ["id"]) == "0000000000000000-0"


@pytest.mark.spark
def test_a_session_with_another_locale_is_refused_before_it_computes(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    make_workspace(root, "minimal")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TURKISH],
        cwd=root,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout == "failed 0 SPARK_DIFFERS False\n", done.stderr
