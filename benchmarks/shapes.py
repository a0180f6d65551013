"""Inputs and projects of unusual shapes: many files, many columns, many periods, many outputs, skewed keys, few rows."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.data import WORK
from benchmarks.measure import cpu_seconds, measure, memory_megabytes, ratio, ratio_of_cpu

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.workspace import Workspace

FIRST_YEAR = 2026

HEAD = """\
workspace: {name: shapes}
---
datasource: {id: files, type: parquet, options: {path_prefix: .}}
---
resolver: {id: files, is_default: true, rules: [{strategy: {type: path, datasource_id: files, path: "{{table_name}}"}}]}
---
calendar:
  id: months
  levels: [{name: month, identifier_pattern: "{year}-{sequence:02}"}]
  generate: {from: 2026-01-01, to: 2028-12-31}
"""
LINES = {"id": "integer", "region": "string", "amount": "decimal(15,2)"}


def _dataset(name: str, columns: dict[str, str], mode: str = "") -> str:
    listed = "".join(f"\n      - {{name: {each}, type: '{kind}'}}" for each, kind in columns.items())
    temporal = f"\n    temporal_mode: {mode}" if mode else ""
    return f"---\ndataset:\n  id: {name}\n  main_table:\n    name: {name}{temporal}\n    columns:{listed}\n"


def _project(name: str, operations: Sequence[str], dataset: str = "lines") -> str:
    listed = "".join(f"\n    - {each}" for each in operations)
    return f"---\nproject:\n  id: {name}\n  input_dataset_id: {dataset}\n  operations:{listed}\n"


def _update(seq: int, expression: str, column: str = "amount", joins: str = "") -> str:
    arguments = f"{joins}assignments: [{{column: {column}, expression: '{expression}'}}]"
    return f"{{seq: {seq}, type: update, selector: amount > {seq}, arguments: {{{arguments}}}}}"


def _total(seq: int) -> str:
    return (
        f"{{seq: {seq}, type: aggregate, arguments: "
        "{group_by: [region], aggregations: [{column: total, expression: SUM(amount)}]}}"
    )


def _output(seq: int, columns: Sequence[str], table: str = "out", selector: str = "") -> str:
    chosen = f"selector: {selector}, " if selector else ""
    destination = f"{{datasource_id: files, table: {table}}}"
    return f"{{seq: {seq}, type: output, {chosen}arguments: {{destination: {destination}, columns: [{', '.join(columns)}]}}}}"


@contextmanager
def _workspace(name: str, *parts: str) -> Iterator[tuple[Path, Callable[[], Workspace]]]:
    """An empty folder with definitions, and how to open it."""
    from dobonomodo.workspace import Workspace

    root = WORK / "shapes" / name
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    (root / "dobo.yaml").write_text("".join([HEAD, *parts]))
    yield root, lambda: Workspace.open(root)
    shutil.rmtree(root, ignore_errors=True)


def _run(workspace: Workspace, project: str, spark: SparkSession, period: str = "2026-01") -> None:
    run = workspace.run(project, period=period, spark=spark, draft=True)
    if run.status != "completed":
        raise RuntimeError(str(run.problems))


def _lines(spark: SparkSession, rows: int, key: str = "id % 3") -> Any:
    return spark.range(rows).selectExpr(
        "id", f"concat('R', {key}) AS region", "CAST(pmod(xxhash64(id), 100000) / 100 AS DECIMAL(15,2)) AS amount"
    )


# --- 1,000 files


def files_of_run(spark: SparkSession, rows: int, files: int) -> dict[str, Any]:
    """A whole run over many small files, in turns with the same rows in one."""
    operations = [_update(1, "amount * 2"), _total(2)]
    projects = [
        _dataset(name, LINES) + _project(name, [*operations, _output(3, list(LINES), f"out-{name}")], name)
        for name in ("one", "many")
    ]
    with _workspace("files", *projects) as (root, opened):
        for name, count in (("one", 1), ("many", files)):
            _lines(spark, rows).repartition(count).write.parquet(str(root / name))
        workspace = opened()
        runs: dict[str, Callable[[], object]] = {
            name: lambda name=name: _run(workspace, name, spark)  # type: ignore[misc]
            for name in ("one", "many")
        }
        measured, _ = measure(runs, warm=3)
        workspace.close()
    return {
        "rows": rows,
        "files": files,
        "measured": {name: each.document() for name, each in measured.items()},
        "ratio_cpu": round(ratio_of_cpu(measured["many"], measured["one"]), 2),
    }


# --- 500 columns


def wide(spark: SparkSession, rows: int, columns: int) -> dict[str, Any]:
    """Many columns, all of them written, in turns with the same by hand, and with a tenth of the columns."""
    found: dict[str, Any] = {"rows": rows, "columns": columns}
    names = [f"c{number}" for number in range(columns)]
    tenth = names[: columns // 10]
    parts = [
        _dataset(table, {**LINES, **dict.fromkeys(own, "integer")})
        + _project(table, [_update(1, "amount * 2"), _update(2, "c1 + 1", "c0"), _output(3, [*LINES, *own])], table)
        for table, own in (("wide", names), ("narrow", tenth))
    ]
    with _workspace("wide", *parts) as (root, opened):
        for table, own in (("wide", names), ("narrow", tenth)):
            made = [f"pmod(xxhash64(id, {at}), 1000) AS {name}" for at, name in enumerate(own)]
            _lines(spark, rows).selectExpr("*", *made).repartition(1).write.parquet(str(root / table))

        def by_hand() -> None:
            frame = spark.read.parquet(str(root / "wide"))
            doubled = "CASE WHEN amount > 1 THEN CAST(amount * 2 AS DECIMAL(15,2)) ELSE amount END AS amount"
            frame = frame.selectExpr("id", "region", doubled, *names)
            added = "CASE WHEN amount > 2 THEN c1 + 1 ELSE c0 END AS c0"
            frame.selectExpr("id", "region", "amount", added, *names[1:]).write.mode("overwrite").parquet(
                str(root / "expert")
            )

        workspace = opened()
        runs: dict[str, Callable[[], object]] = {
            "expert": by_hand,
            "dobo": lambda: _run(workspace, "wide", spark),
            "a tenth of the columns": lambda: _run(workspace, "narrow", spark),
        }
        measured, _ = measure(runs, warm=3, cold=2)
        workspace.close()
    found["measured"] = {name: each.document() for name, each in measured.items()}
    found["ratio_cpu"] = round(ratio_of_cpu(measured["dobo"], measured["expert"]), 2)
    found["growth"] = round(ratio_of_cpu(measured["dobo"], measured["a tenth of the columns"]), 2)
    return found


# --- 36 periods in one process


def periods(spark: SparkSession, rows: int, count: int) -> dict[str, Any]:
    """One period after the other in one process: processor time and memory after each."""
    months = [f"{FIRST_YEAR + at // 12}-{at % 12 + 1:02}" for at in range(count)]
    parts = [
        _dataset("lines", LINES, "period"),
        _project("lines", [_update(1, "amount * 2"), _total(2), _output(3, list(LINES))]),
    ]
    with _workspace("periods", *parts) as (root, opened):
        listed = ", ".join(f"'{each}'" for each in months)
        chosen = f"element_at(array({listed}), CAST(id % {count} AS INT) + 1) AS _period"
        _lines(spark, rows * count).selectExpr("*", chosen).repartition(1).write.parquet(str(root / "lines"))
        workspace = opened()
        taken = []
        for month in months:
            before, started = cpu_seconds(), time.perf_counter()
            _run(workspace, "lines", spark, month)
            seconds, cpu = time.perf_counter() - started, cpu_seconds() - before
            own, java = memory_megabytes()
            taken.append(
                {"seconds": round(seconds, 3), "cpu": round(cpu, 2), "python": round(own), "java": round(java)}
            )
        workspace.close()
    # Java compiles and grows its heap during the first third.
    third = count // 3
    middle, last = taken[third : 2 * third], taken[-third:]
    return {
        "rows": rows,
        "periods": count,
        "taken": taken,
        **{
            f"{what}_growth": round(_median(last, what) / _median(middle, what), 2)
            for what in ("cpu", "seconds", "python", "java")
        },
    }


def _median(taken: Sequence[dict[str, float]], what: str) -> float:
    return statistics.median(each[what] for each in taken)


# --- 20 outputs


def outputs(spark: SparkSession, rows: int, count: int) -> dict[str, Any]:
    """Many outputs of one working dataset, each with some of the rows, in turns with one output of all of them."""
    operations = [_update(1, "amount * 2")]
    all_rows = _output(3, list(LINES), "everything")
    others = [_output(4 + at, list(LINES), f"part{at}", f"'MOD(id, {count - 1}) = {at}'") for at in range(count - 1)]
    parts = [
        _dataset("lines", LINES),
        _project("one", [*operations, all_rows]),
        _project("many", [*operations, all_rows, *others]),
    ]
    with _workspace("outputs", *parts) as (root, opened):
        _lines(spark, rows).repartition(2).write.parquet(str(root / "lines"))
        workspace = opened()
        runs: dict[str, Callable[[], object]] = {
            name: lambda name=name: _run(workspace, name, spark)  # type: ignore[misc]
            for name in ("one", "many")
        }
        measured, _ = measure(runs, warm=2)
        workspace.close()
    return {
        "rows": rows,
        "outputs": count,
        "measured": {name: each.document() for name, each in measured.items()},
        "ratio_cpu": round(ratio_of_cpu(measured["many"], measured["one"]), 2),
    }


# --- skewed keys


def skew(spark: SparkSession, rows: int) -> dict[str, Any]:
    """A join and an aggregate by a key that nine rows of ten share, in turns with even keys, and with the same by hand."""
    keys, side = 100_000, {"key": "string", "rate": "decimal(9,4)"}
    joins = "joins: [{alias: k, dataset_id: keys, on: region = k.key}], "
    operations = [
        _update(1, "amount * k.rate", joins=joins),
        _total(2),
        _output(3, [*LINES, "total"]),
    ]
    parts = [_dataset("keys", side)]
    parts += [_dataset(name, LINES) + _project(name, operations, name) for name in ("even", "skewed")]
    with _workspace("skew", *parts) as (root, opened):
        spark.range(keys).selectExpr(
            "concat('R', id) AS key", "CAST(1 + id % 7 / 10 AS DECIMAL(9,4)) AS rate"
        ).repartition(1).write.parquet(str(root / "keys"))
        shares = {"even": f"pmod(xxhash64(id), {keys})", "skewed": f"IF(id % 10 < 9, 0, pmod(xxhash64(id), {keys}))"}
        for name, key in shares.items():
            _lines(spark, rows, key).repartition(4).write.parquet(str(root / name))

        def by_hand() -> None:
            lines, sides = spark.read.parquet(str(root / "skewed")), spark.read.parquet(str(root / "keys"))
            rated = (
                "CASE WHEN amount > 1 AND rate IS NOT NULL THEN CAST(amount * rate AS DECIMAL(15,2)) ELSE amount END"
            )
            joined = lines.join(sides, lines.region == sides.key, "left")
            joined = joined.selectExpr("id", "region", f"{rated} AS amount")
            totals = joined.groupBy("region").agg({"amount": "sum"}).withColumnRenamed("sum(amount)", "total")
            both = joined.unionByName(totals, allowMissingColumns=True)
            both.write.mode("overwrite").parquet(str(root / "expert"))

        workspace = opened()
        runs: dict[str, Callable[[], object]] = {
            "expert, skewed": by_hand,
            "dobo, skewed": lambda: _run(workspace, "skewed", spark),
            "dobo, even": lambda: _run(workspace, "even", spark),
        }
        measured, _ = measure(runs, warm=2)
        workspace.close()
    return {
        "rows": rows,
        "measured": {name: each.document() for name, each in measured.items()},
        "ratio": round(ratio(measured["dobo, skewed"], measured["dobo, even"]), 2),
        "ratio_cpu": round(ratio_of_cpu(measured["dobo, skewed"], measured["expert, skewed"]), 2),
    }


# --- few rows


SCENARIO = """\
---
scenario:
  name: number {at}
  period: {{identifier: "2026-01", start_date: 2026-01-01, end_date: 2026-01-31}}
  datasets: [{{use: lines, rows: [{{id: {at}, region: EMEA, amount: "10.10"}}, {{id: 0, region: APAC, amount: "0.50"}}]}}]
  project: {{use: lines}}
  expect:
    outputs:
      out:
        columns: [id, region, amount]
        rows:
          - {{id: {at}, region: EMEA, amount: "20.20"}}
          - {{id: 0, region: APAC, amount: "0.50"}}
          - {{id: null, region: EMEA, amount: null}}
          - {{id: null, region: APAC, amount: null}}
"""


def _run_by_hand(spark: SparkSession, root: Path) -> None:
    """The three operations in PySpark, without ids, counts, digest and record."""
    lines = spark.read.parquet(str(root / "lines"))
    lines = lines.selectExpr("id", "region", "CAST(IF(amount > 1, amount * 2, amount) AS DECIMAL(15,2)) AS amount")
    totals = lines.groupBy("region").count().selectExpr("CAST(NULL AS BIGINT) AS id", "region")
    both = lines.unionByName(totals, allowMissingColumns=True)
    both.write.mode("overwrite").parquet(str(root / "by-hand"))


def few_rows(rows: int, scenarios: int) -> dict[str, Any]:
    """A warm run of three operations on few rows, and many scenarios in one session, as `dobo run` and `dobo test` set it up."""
    from dobonomodo import scenarios as suite
    from dobonomodo.engine import InputSize, open_session

    spark = open_session(size=InputSize(0, 0))
    project = _project("lines", [_update(1, "amount * 2"), _total(2), _output(3, list(LINES))])
    with _workspace("few", _dataset("lines", LINES), project) as (root, opened):
        _lines(spark, rows).repartition(1).write.parquet(str(root / "lines"))
        workspace = opened()
        runs: dict[str, Callable[[], object]] = {
            "run": lambda: workspace.run("lines", period="2026-01", draft=True),
            "by hand": lambda: _run_by_hand(spark, root),
        }
        measured, first = measure(runs, warm=20, cold=10)
        (root / "scenarios").mkdir()
        (root / "scenarios" / "all.yaml").write_text("".join(SCENARIO.format(at=at) for at in range(1, scenarios + 1)))
        found, problems = suite.find_scenarios([root / "scenarios"], root=root)
        if problems:
            raise RuntimeError(str(problems))

        def test() -> None:
            for result in suite.run_suite(found, lambda: spark, definitions=workspace.definitions):
                if not result.passed:
                    raise RuntimeError(str(result.differences))

        tested, _ = measure({"test": test}, warm=1, cold=1)
        workspace.close()
    return {
        "rows": rows,
        "run": measured["run"].document(),
        "by hand": measured["by hand"].document(),
        "first": round(first["run"], 3),
        "scenarios": scenarios,
        "test": tested["test"].document(),
    }
