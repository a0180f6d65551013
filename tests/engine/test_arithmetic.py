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
from dobonomodo.plan.digest import is_same_digest
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
    digest = engine.digest(spark.sql(ROWS), ["id", "name", "amount", "day"])
    assert digest == "6f59900d6fb228d0c71a352e98d06823-1000"
    assert is_same_digest(digest, "6f59900d6fb228d0-1000")
    assert engine.digest(spark.sql(ROWS).where("false"), ["id"]) == f"{0:032x}-0"


P1, P2, P3, P4, P5 = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)
ALL_BITS = 2**64 - 1


def rotate(number: int, bits: int) -> int:
    return (number << bits | number >> (64 - bits)) & ALL_BITS


def finish(number: int) -> int:
    number = (number ^ number >> 33) * P2 & ALL_BITS
    number = (number ^ number >> 29) * P3 & ALL_BITS
    return number ^ number >> 32


def hash_number(value: int, seed: int) -> int:
    """As xxHash hashes eight bytes."""
    mixed = rotate(value * P2 & ALL_BITS, 31) * P1
    return finish((rotate((seed + P5 + 8 ^ mixed) & ALL_BITS, 27) * P1 + P4) & ALL_BITS)


def hash_false(seed: int) -> int:
    """As it hashes four bytes that are zero."""
    return finish((rotate((seed + P5 + 4) & ALL_BITS, 23) * P2 + P3) & ALL_BITS)


def find_twin(one: int, other: int, value: int) -> int:
    """What must be beside ``other`` for a row that has the first hash of ``one`` and ``value``."""
    seeds = [hash_false(hash_number(each, 42)) + P5 + 8 for each in (one, other)]
    mixed = (rotate(value * P2 & ALL_BITS, 31) * P1 ^ seeds[0] ^ seeds[1]) & ALL_BITS
    found = rotate(mixed * pow(P1, -1, 2**64) & ALL_BITS, 33) * pow(P2, -1, 2**64) & ALL_BITS
    return found - 2**64 if found >= 2**63 else found


def test_rows_that_one_hash_cannot_tell_apart_have_different_digests(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    twins = [(1, 5), (2, find_twin(1, 2, 5))]
    digests = [engine.digest(spark.sql(f"SELECT {a}L AS a, {b}L AS b"), ["a", "b"]) for a, b in twins]
    assert digests[0][:16] == digests[1][:16]
    assert not is_same_digest(*digests)


def test_a_missing_value_is_told_apart_by_both_hashes(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    rows = ["NULL, 1", "1, NULL", "NULL, NULL", "0, 1", "1, 1"]
    digests = [engine.digest(spark.sql(f"SELECT * FROM VALUES ({each}) AS v(a, b)"), ["a", "b"]) for each in rows]
    for half in (slice(0, 16), slice(16, 32)):
        assert len({each[half] for each in digests}) == len(rows)


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
