"""What is measured. Each part runs in a process of its own and gives plain data."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from benchmarks import contestants
from benchmarks.data import HOME, WORK, make_data, make_workspace
from benchmarks.database import database
from benchmarks.executors import executors
from benchmarks.explaining import explaining
from benchmarks.files import many_files
from benchmarks.lake import lake
from benchmarks.measure import measure, peak_megabytes, ratio, ratio_of_cpu
from benchmarks.ranges import ranges
from benchmarks.shapes import few_rows, files_of_run, outputs, periods, skew, wide
from benchmarks.sharing import sharing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_spark(**conf: str) -> SparkSession:
    """The session that all contestants share."""
    from dobonomodo.engine import open_session

    return open_session(conf=conf)


# --- figure 1: the whole pipeline


def pipeline(scale: float, warm: int, *, beginner: bool) -> dict[str, Any]:
    """DobONoMoDo against hand-written code, in turns, with the digests of what all of them wrote."""
    data = make_data(scale)
    root = WORK / "pipeline"
    workspace = make_workspace(root / "workspace", data)
    spark = open_spark()
    runs: list[Any] = []
    chosen: dict[str, Callable[[], object]] = {
        "expert": partial(contestants.run_expert, spark, data, root / "expert"),
        "dobo": lambda: runs.append(contestants.run_dobo(spark, workspace)),
    }
    # Java compiles what it finds worth it over some ten runs: until then that is a fifth of the processor time of either.
    measured, first = measure(chosen, warm=warm, cold=8 if scale <= 1 else 1)
    others: dict[str, Callable[[], object]] = {}
    if beginner:
        others["typical"] = partial(contestants.run_typical, spark, data, root / "typical")
        others["beginner"] = partial(contestants.run_beginner, spark, data, root / "beginner")
    others["duckdb"] = partial(contestants.run_duckdb, data, root / "duckdb")
    others["polars"] = partial(contestants.run_polars, data, root / "polars")
    more, first_of_others = measure(others, warm=max(2, warm // 2))
    measured |= more
    run = runs[-1]
    rows = {name: output.rows for name, output in run.outputs.items()}
    return {
        "scale": scale,
        "rows": rows,
        "measured": {name: each.document() for name, each in measured.items()},
        "first": {name: round(each, 3) for name, each in (first | first_of_others).items()},
        "ratio": round(ratio(measured["dobo"], measured["expert"]), 3),
        "ratio_cpu": round(ratio_of_cpu(measured["dobo"], measured["expert"]), 3),
        "against_beginner": round(ratio(measured["beginner"], measured["dobo"]), 2) if beginner else None,
        "digests": _digests(spark, run, root),
    }


def _digests(spark: SparkSession, run: Any, root: Path) -> dict[str, str]:
    """By contestant, whether it wrote the very same rows."""
    from dobonomodo.engine.engine import SparkEngine

    engine = SparkEngine(spark)
    types = {"o_orderkey": "bigint", "o_custkey": "bigint", "o_totalprice": "decimal(15,2)", "number": "bigint"}
    types |= {"discounted": "decimal(18,2)", "total": "decimal(38,2)", "o_orderdate": "date", "_deleted": "boolean"}
    select = [f"CAST(`{name}` AS {types.get(name, 'string')}) AS `{name}`" for name in contestants.COLUMNS]
    found = {}
    for name in ("dobo", "expert", "typical", "beginner", "duckdb", "polars"):
        parts = []
        for table, output in run.outputs.items():
            path = (
                root / name / table if name in ("expert", "typical", "beginner") else root / name / f"{table}.parquet"
            )
            if name == "dobo":
                path = root / "workspace" / output.location.document()["data"]
            if not path.exists():
                break
            frame = spark.read.parquet(str(path)).selectExpr(*select)
            parts.append(engine.digest(frame, list(contestants.COLUMNS)))
        if parts:
            found[name] = " ".join(parts)
    return found


def memory(scale: float, who: str) -> dict[str, Any]:
    """The peak memory of one contestant after three runs, in a process where nothing else ran."""
    data = make_data(scale)
    root = WORK / "memory"
    workspace = make_workspace(root / "workspace", data)
    spark = open_spark()
    for _ in range(3):
        if who == "dobo":
            contestants.run_dobo(spark, workspace)
        else:
            contestants.run_expert(spark, data, root / "expert")
    return {"megabytes": round(peak_megabytes())}


# --- windows


WINDOWS = {
    "share": ("o_totalprice / SUM(o_totalprice) OVER (PARTITION BY o_custkey)",
              "CAST(o_totalprice / nullif(sum(o_totalprice) OVER (PARTITION BY o_custkey), 0) AS DECIMAL(38,10))"),
    "running": ("SUM(o_totalprice) OVER (PARTITION BY o_custkey ORDER BY o_orderdate)",
                "sum(o_totalprice) OVER (PARTITION BY o_custkey ORDER BY o_orderdate)"),
    "place": ("RANK() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC)",
              "CAST(rank() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC NULLS LAST) AS BIGINT)"),
}  # fmt: skip
"""Columns that an update computes over the orders of a customer, and the same by hand."""
NO_WINDOWS = {
    "share": ("o_totalprice / o_custkey", "CAST(o_totalprice / nullif(o_custkey, 0) AS DECIMAL(38,10))"),
    "running": ("o_totalprice + o_totalprice", "o_totalprice + o_totalprice"),
    "place": ("o_custkey + 1", "o_custkey + 1"),
}
"""As many columns of the same kinds, from the row alone."""


def windows(scale: float, warm: int) -> dict[str, Any]:
    """An update with three windows against the same windows by hand, and both without windows: the rest is what windows add."""
    from dobonomodo.workspace import Workspace

    data = make_data(scale)
    root = WORK / "windows"
    shutil.rmtree(root, ignore_errors=True)
    spark = open_spark()
    workspaces, chosen = [], dict[str, Callable[[], object]]()
    for ending, made in (("", WINDOWS), (", no windows", NO_WINDOWS)):
        folder = root / f"workspace{len(workspaces)}"
        workspaces.append(Workspace.open(_write_windows(folder, data, made)))
        chosen |= {
            f"expert{ending}": partial(_compute_windows, spark, data, made, root / f"expert{len(workspaces)}"),
            f"dobo{ending}": partial(workspaces[-1].run, "windows", period="2026-01", spark=spark, figures=False),
        }
    measured, _ = measure(chosen, warm=warm, cold=8)
    for workspace in workspaces:
        workspace.close()
    own = {who: measured[who].cpu - measured[f"{who}, no windows"].cpu for who in ("expert", "dobo")}
    return {
        "scale": scale,
        "measured": {name: each.document() for name, each in measured.items()},
        "ratio": round(ratio(measured["dobo"], measured["expert"]), 3),
        "ratio_cpu": round(ratio_of_cpu(measured["dobo"], measured["expert"]), 3),
        "own_cpu": {who: round(each, 2) for who, each in own.items()},
        "own_ratio_cpu": round(own["dobo"] / own["expert"], 3),
    }


ORDERS = ("o_orderkey", "o_custkey", "o_totalprice", "o_orderdate")


def _write_windows(folder: Path, data: Path, made: Mapping[str, tuple[str, str]]) -> Path:
    folder.mkdir(parents=True)
    (folder / "data").symlink_to(data)
    assignments = "\n".join(f"          - {{column: {name}, expression: '{own}'}}" for name, (own, _) in made.items())
    text = (HOME / "windows.yaml").read_text().replace("ASSIGNMENTS", assignments)
    (folder / "dobo.yaml").write_text(text.replace("COLUMNS", ", ".join([*ORDERS, *made])))
    return folder


def _compute_windows(spark: SparkSession, data: Path, made: Mapping[str, tuple[str, str]], to: Path) -> None:
    orders = spark.read.parquet(str(data / "orders.parquet")).where("_period = '2026-01'")
    orders.selectExpr(*ORDERS, *(f"{sql} AS {name}" for name, (_, sql) in made.items())).write.mode(
        "overwrite"
    ).parquet(str(to))


# --- figure 2: applying and materialising one operation


OPERATIONS = {
    "filtered": "{seq: 1, type: delete, selector: amount > 50}",
    "updated": "{seq: 1, type: update, selector: amount > 50, arguments: {assignments: [{column: net, expression: amount * 2}]}}",
    "aggregated": "{seq: 1, type: aggregate, arguments: {group_by: [region], aggregations: [{column: total, expression: SUM(amount)}]}}",
    "appended": "{seq: 1, type: append, arguments: {source: {dataset_id: lines}}}",
}


def operations() -> dict[str, Any]:
    """The seeds' table: applying an operation, which builds the plan, and materialising it, which is a Spark job."""
    spark = open_spark(**{"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"})
    found: dict[str, Any] = {}
    # The first pass warms the JVM up, which would otherwise favour what comes last.
    for rows in (10_000, 10_000, 100_000):
        with _lines(rows) as root:
            for name, operation in OPERATIONS.items():
                found[f"{name} {rows}"] = _apply(spark, root, operation)
    return found


def _apply(spark: SparkSession, root: Path, operation: str) -> dict[str, float]:
    from dobonomodo.engine.frames import Frames
    from dobonomodo.plan.relation import Scan, walk_relation

    _write_project(root, [operation])
    plan, reader, context = _prepare(spark, root)
    applied, materialised = [], []
    for _ in range(40):
        frames = Frames(reader(), context)
        # Opening the inputs is not what is measured.
        for node in walk_relation(plan.steps[0].after.node):
            if isinstance(node, Scan) or node is plan.start.node:
                frames.make(node)
        started = time.perf_counter()
        frame = frames.make(plan.steps[0].after.node)
        applied.append(time.perf_counter() - started)
        started = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        materialised.append(time.perf_counter() - started)
    return {
        "applied_ms": round(1000 * statistics.median(applied[15:]), 1),
        "job_ms": round(1000 * statistics.median(materialised[15:]), 1),
    }


def _prepare(spark: SparkSession, root: Path) -> tuple[Any, Any, Any]:
    """The plan of the project, what gives a reader of its rows, and what its frames are made with."""
    import dobonomodo as dobo
    from dobonomodo.engine.context import RunContext
    from dobonomodo.engine.cutting import hold_in_memory
    from dobonomodo.engine.rowid import seed_of
    from dobonomodo.runs import RunSpec
    from dobonomodo.workspace.running import RunData

    planned = dobo.open(root).plan("lines", period="2026-01", draft=True)
    facts = planned.facts
    spec = RunSpec(planned.plan, facts, facts.period_start, planned.definitions.datasources, "active", None)
    data = RunData(root=root, run="bench", planned=spec, registry=lambda: None, store_id="", sandbox=None)  # type: ignore[arg-type,return-value]
    data.pin()
    seed = seed_of("bench", "", facts)
    return (
        planned.plan,
        partial(data.reader, spark),
        RunContext(facts, seed, facts.period_start, ids=False, cut=hold_in_memory()),
    )


class _lines:  # noqa: N801  reads as a function where it is used
    """A workspace with so many lines."""

    def __init__(self, rows: int, columns: int = 0) -> None:
        self._rows, self._columns = rows, columns

    def __enter__(self) -> Path:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._folder = Path(tempfile.mkdtemp(prefix="dobo-bench-"))
        regions = ["EMEA", "AMER", "APAC"]
        amounts = (
            pa.array([number % 100 for number in range(self._rows)])
            .cast(pa.decimal128(21, 2))
            .cast(pa.decimal128(15, 2))
        )
        table = {
            "id": list(range(self._rows)),
            "region": [regions[n % 3] for n in range(self._rows)],
            "amount": amounts,
        }
        extra = {f"c{number}": pa.nulls(self._rows, pa.int64()) for number in range(self._columns)}
        pq.write_table(pa.table({**table, **extra}), self._folder / "lines.parquet")
        return self._folder

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _write_project(root: Path, operations: list[str], columns: int = 0) -> None:
    more = "".join(f"\n      - {{name: c{number}, type: integer}}" for number in range(columns))
    listed = "".join(f"\n    - {operation}" for operation in operations)
    (root / "dobo.yaml").write_text(
        f"""workspace: {{name: bench}}
---
datasource: {{id: files, type: parquet, options: {{path_prefix: .}}}}
---
resolver: {{id: files, is_default: true, rules: [{{strategy: {{type: path, datasource_id: files, path: "{{{{table_name}}}}.parquet"}}}}]}}
---
calendar:
  id: months
  levels: [{{name: month, identifier_pattern: "{{year}}-{{sequence:02}}"}}]
  generate: {{from: 2026-01-01, to: 2026-12-31}}
---
dataset:
  id: lines
  main_table:
    name: lines
    columns:
      - {{name: id, type: integer}}
      - {{name: region, type: string}}
      - {{name: amount, type: "decimal(15,2)"}}{more}
---
project:
  id: lines
  input_dataset_id: lines
  operations:{listed}
"""
    )


# --- figures 3 and 4: planning, and how things grow


UPDATE = (
    "{{seq: {seq}, type: update, selector: amount > {seq}, arguments: {{assignments: ["
    "{{column: amount, expression: 'IF(id > {seq}, amount, amount)'}}, {{column: n{name}, expression: id + {seq}}}]}}}}"
)
TOTAL = "{{seq: {seq}, type: aggregate, arguments: {{group_by: [region], aggregations: [{{column: t{seq}, expression: SUM(amount)}}]}}}}"
OUTPUT = (
    "{{seq: {seq}, type: output, arguments: {{destination: {{datasource_id: files, table: out}}, columns: {columns}}}}}"
)


def planning() -> dict[str, Any]:
    """Loading, checking and planning without Spark, against the number of operations and of columns."""
    found: dict[str, Any] = {"operations": {}, "columns": {}}
    with _lines(1) as root:
        for number in (10, 20, 50, 100, 200, 400):
            _write_project(root, [UPDATE.format(seq=seq, name=seq % 10) for seq in range(1, number + 1)])
            found["operations"][number] = _time_planning(root)
        for number in (10, 100, 1000):
            _write_project(root, [UPDATE.format(seq=seq, name=seq % 10) for seq in range(1, 21)], columns=number)
            found["columns"][number] = _time_planning(root)
    return found


def _time_planning(root: Path) -> float:
    import dobonomodo as dobo

    times = []
    for _ in range(5):
        started = time.perf_counter()
        workspace = dobo.open(root)
        problems = workspace.problems()
        times.append(time.perf_counter() - started)
        if any(problem.severity == "error" for problem in problems):
            raise RuntimeError(str(problems))
    return round(1000 * sorted(times)[2], 1)


def chains() -> dict[str, Any]:
    """Whole runs of 100 k rows against the number of updates, aggregates and joins in a row."""
    import dobonomodo as dobo

    spark = open_spark()
    found: dict[str, Any] = {"updates": {}, "aggregates": {}, "joins": {}, "plans": {}, "large aggregates": {}}
    clock = datetime(2026, 2, 3, tzinfo=UTC)

    def timed(root: Path, operations: list[str], columns: str = "[id, region, amount]") -> float:
        _write_project(root, [*operations, OUTPUT.format(seq=9999, columns=columns)])
        times = []
        for _ in range(4):
            started = time.perf_counter()
            run = dobo.open(root).run("lines", period="2026-01", started_at=clock, spark=spark, draft=True)
            times.append(time.perf_counter() - started)
            if run.status != "completed":
                raise RuntimeError(str(run.problems))
        return round(sorted(times[1:])[1], 3)

    with _lines(100_000) as root:
        for number in (1, 20, 100, 200):
            found["updates"][number] = timed(
                root, [UPDATE.format(seq=seq, name=seq % 10) for seq in range(1, number + 1)]
            )
        for number in (1, 2, 4, 6, 8):
            found["aggregates"][number] = timed(root, [TOTAL.format(seq=seq) for seq in range(1, number + 1)])
        for number in (1, 2, 4):
            joins = ", ".join(f"{{alias: j{at}, dataset_id: lines, on: lines.id = j{at}.id}}" for at in range(number))
            update = f"{{seq: 1, type: update, arguments: {{joins: [{joins}], assignments: [{{column: amount, expression: j0.amount}}]}}}}"
            found["joins"][number] = timed(root, [update])
        for number in (21, 210):
            found["plans"][number] = _time_building(spark, root, number)
    with _lines(3_000_000) as root:
        for number in (1, 8):
            found["large aggregates"][number] = timed(root, [TOTAL.format(seq=seq) for seq in range(1, number + 1)])
    return found


MIXED = (
    "{{seq: {seq}, type: update, selector: amount > {seq}, arguments: {{joins: [{{alias: j, dataset_id: lines, on: lines.id = j.id}}], "
    "assignments: [{{column: amount, expression: j.amount}}]}}}}",
    "{{seq: {seq}, type: delete, selector: amount > 1{seq}}}",
    *[UPDATE] * 5,
)
"""Of 7 operations, one has a join."""


def _time_building(spark: SparkSession, root: Path, number: int) -> float:
    """Building the plan of updates, joins and deletions for Spark as a run does, with figures, until its columns are known.

    The least of some warm ones: what else happens on the machine only adds to it.
    """
    from dobonomodo.engine.engine import SparkEngine

    operations = [MIXED[seq % len(MIXED)].format(seq=seq, name=seq % 10) for seq in range(1, number + 1)]
    _write_project(root, [*operations, OUTPUT.format(seq=9999, columns="[id, region, amount]")])
    plan, reader, context = _prepare(spark, root)
    times = []
    for _ in range(8):
        started = time.perf_counter()
        _ = next(SparkEngine(spark).outputs(plan, context.facts, reader=reader(), figures=True)).frame.schema
        times.append(time.perf_counter() - started)
    return round(min(times[2:]), 3)


def row_ids(scale: float) -> dict[str, Any]:
    """The pipeline with row ids in both outputs and without them."""
    data = make_data(scale)
    spark = open_spark()
    text = (HOME / "pipeline.yaml").read_text()
    with_ids = text.replace("_deleted]", "_deleted, _row_id]")
    runs: dict[str, Callable[[], object]] = {}
    for name, project in (("without", text), ("by position", with_ids)):
        workspace = make_workspace(WORK / "ids" / name.replace(" ", "-"), data)
        (workspace / "dobo.yaml").write_text(project)
        runs[name] = partial(contestants.run_dobo, spark, workspace)
    measured, _ = measure(runs, warm=5, cold=3)
    return {name: each.document() for name, each in measured.items()}


TEN_CHECKS = """\
    - {seq: 51, type: check, selector: _operation_seq = 0, arguments: {expect: NOT ISNULL(o_custkey)}}
    - {seq: 52, type: check, selector: _operation_seq = 0, arguments: {expect: o_totalprice >= 1000}}
    - {seq: 53, type: check, selector: _operation_seq = 0, arguments: {expect: 'o_orderstatus IN ("F", "O", "P")'}}
    - {seq: 54, type: check, selector: _operation_seq = 0, arguments: {expect: SUM(o_totalprice) <= SUM(start.o_totalprice)}}
    - {seq: 55, type: check, selector: _operation_seq = 0, arguments: {expect: COUNT(o_orderkey) <= COUNT(start.o_orderkey)}}
    - {seq: 56, type: check, selector: _operation_seq = 0, arguments: {expect: SUM(discounted) <= SUM(o_totalprice)}}
    - {seq: 57, type: check, arguments: {expect: 'SUM(IF(_operation_seq = 30, number, 0)) = COUNT(start.o_orderkey)'}}
    - {seq: 58, type: check, selector: _operation_seq = 0, arguments: {expect: MIN_AGG(o_totalprice) >= 1000}}
    - {seq: 59, type: check, selector: _operation_seq = 30, arguments: {expect: COUNT(*) > 1}}
    - {seq: 45, type: check, selector: _operation_seq = 40, arguments: {expect: NOT ISNULL(segment)}}
"""


def prices(scale: float) -> dict[str, Any]:
    """What checks, figures and proofs cost: the pipeline as it is, and with more or less of them, in turns."""
    data = make_data(scale)
    spark = open_spark()
    text = (HOME / "pipeline.yaml").read_text()
    start = text.index("    - seq: 60\n")
    checked = text[:start] + TEN_CHECKS + text[start:]
    runs: dict[str, Callable[[], object]] = {}

    def having(setting: str) -> str:
        return text.replace("{name: tpch}", f"{{name: tpch, {setting}}}")

    projects = {
        "plain": text,
        "ten checks": checked,
        "no figures": having("figures: off"),
        COLUMN_DIGESTS: having("figures: columns"),
        COPIES: text,
        NO_HASHES: having('keep_inputs: "no"'),
    }
    for name, project in projects.items():
        workspace = make_workspace(WORK / "prices" / name.replace(" ", "-"), data)
        (workspace / "dobo.yaml").write_text(project)
        runs[name] = partial(contestants.run_dobo, spark, workspace)
        if name == COPIES:
            runs[name] = partial(_copy_again, runs[name], workspace)
        elif name == NO_HASHES:
            runs[name] = partial(_run_without_hashes, runs[name])
    measured, _ = measure(runs, warm=9, cold=2)
    return {name: each.document() for name, each in measured.items()}


COLUMN_DIGESTS, COPIES, NO_HASHES = "column digests", "inputs copied each time", "no SHA-256 of inputs"


def _copy_again(run: Callable[[], object], workspace: Path) -> None:
    """A run that finds no copies of its inputs; others find those of the run before."""
    shutil.rmtree(workspace / ".dobo/inputs", ignore_errors=True)
    run()


def _run_without_hashes(run: Callable[[], object]) -> None:
    """A run that does not hash its inputs, which no setting allows."""
    from dobonomodo.storage import Inputs

    with patch.object(Inputs, "keep", lambda *_: {}):
        run()


def grown(scale: float) -> dict[str, Any]:
    """Time and memory per row of the whole pipeline at one scale."""
    data = make_data(scale)
    workspace = make_workspace(WORK / "growth" / "workspace", data)
    spark = open_spark()
    measured, _ = measure({"dobo": lambda: contestants.run_dobo(spark, workspace)}, warm=3 if scale <= 1 else 1)
    import pyarrow.parquet as pq

    rows = pq.read_metadata(data / "orders.parquet").num_rows
    shutil.rmtree(workspace, ignore_errors=True)
    seconds = measured["dobo"].seconds
    return {
        "rows": rows,
        "seconds": round(seconds, 2),
        "microseconds_per_row": round(1e6 * seconds / rows, 2),
        "megabytes": round(peak_megabytes()),
    }


# --- reading CSV, starting


def csv_reading() -> dict[str, Any]:
    """Our strict reading of a million CSV rows against Spark's own, each until Spark has seen every value."""
    from dobonomodo.formula import Columns
    from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
    from dobonomodo.plan import DatasetUse
    from dobonomodo.storage.csv import extract_csv
    from dobonomodo.storage.csv_dialect import Dialect

    rows = 1_000_000
    folder = Path(tempfile.mkdtemp(prefix="dobo-bench-"))
    path = folder / "lines.csv"
    with path.open("w") as file:
        file.write("id,customer,amount,day,note\n")
        for n in range(rows):
            file.write(f'{n},C{n % 1000},{n / 100:.2f},2026-01-{n % 28 + 1:02d},"hello, {n}"\n')
    columns = {"id": INTEGER, "customer": TEXT, "amount": DecimalType(15, 2), "day": DATE, "note": TEXT}
    use = DatasetUse("input", "lines", 1, "lines", None, Columns(columns), nullable=frozenset(columns))
    spark = open_spark()
    schema = "id BIGINT, customer STRING, amount DECIMAL(15,2), day DATE, note STRING"

    def ours() -> None:
        extract_csv(path, folder / "lines.parquet", use, Dialect())
        spark.read.schema(schema).parquet(str(folder / "lines.parquet")).write.format("noop").mode("overwrite").save()

    def theirs() -> None:
        frame = spark.read.csv(str(path), header=True, schema=schema, mode="FAILFAST", multiLine=True)
        frame.write.format("noop").mode("overwrite").save()

    measured, _ = measure({"dobo": ours, "spark": theirs}, warm=3, cold=2)
    shutil.rmtree(folder)
    return {"rows": rows, **{name: each.document() for name, each in measured.items()}}


SCENARIO = """scenario:
  name: one
  period: {identifier: "2026-01", start_date: 2026-01-01, end_date: 2026-01-31}
  datasets: [{use: lines, rows: [{id: 1, region: EMEA, amount: "10.10"}]}]
  project: {use: lines}
  expect: {outputs: {out: {columns: [id, amount], rows: [{id: 1, amount: "10.10"}, {id: null, amount: null}]}}}
"""


def startup() -> dict[str, Any]:
    """Whole commands, as a user waits for them."""
    with _lines(10_000) as root:
        _write_project(
            root, [UPDATE.format(seq=1, name=1), TOTAL.format(seq=2), OUTPUT.format(seq=3, columns="[id, amount]")]
        )
        (root / "scenarios").mkdir()
        (root / "scenarios" / "one.yaml").write_text(SCENARIO)
        commands = {
            "dobo --help": ["--help"],
            "dobo validate": ["-C", str(root), "validate"],
            "dobo run, 10 k rows": ["-C", str(root), "-q", "run", "lines", "-p", "2026-01"],
            "dobo test, one scenario": ["-C", str(root), "-q", "test"],
        }
        found = {}
        for name, arguments in commands.items():
            found[name] = _time_command([sys.executable, "-m", "dobonomodo.cli", *arguments])
        scripts = {
            "the same three operations by hand": BY_HAND.format(root=root),
            "Spark alone: session and first query": "spark.range(10).collect()",
        }
        opening = "from dobonomodo.engine import InputSize, open_session\nspark = open_session(size=InputSize(1, 1))\n"
        for name, script in scripts.items():
            found[name] = _time_command([sys.executable, "-c", opening + script])
    return found


BY_HAND = """
lines = spark.read.parquet("{root}/lines.parquet")
lines = lines.selectExpr("id", "region", "IF(amount > 1, IF(id > 1, amount, amount), amount) AS amount")
totals = lines.groupBy("region").agg({{"amount": "sum"}})
totals = totals.selectExpr("CAST(NULL AS BIGINT) AS id", "CAST(NULL AS DECIMAL(15,2)) AS amount")
lines.select("id", "amount").unionByName(totals).write.parquet("{root}/by-hand", mode="overwrite")
"""
"""The project of `startup` in PySpark, without ids, counts, digest and record."""


def _time_command(command: list[str]) -> float:
    """The median of five, with compiled modules, as an installed package has them."""
    times = []
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, env=environment)
        times.append(time.perf_counter() - started)
    return round(sorted(times)[2], 2)


PARTS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "pipeline": lambda scale, warm, beginner: pipeline(float(scale), int(warm), beginner=beginner == "yes"),
    "memory": lambda scale, who: memory(float(scale), who),
    "windows": lambda scale, warm: windows(float(scale), int(warm)),
    "ranges": lambda rows, warm: ranges(open_spark(), int(rows), int(warm)),
    "operations": operations,
    "planning": planning,
    "chains": chains,
    "ids": lambda scale: row_ids(float(scale)),
    "prices": lambda scale: prices(float(scale)),
    "grown": lambda scale: grown(float(scale)),
    "csv": csv_reading,
    "database": lambda scale, alone: database(float(scale), alone=alone == "yes"),
    "files": lambda count: many_files(int(count)),
    "executors": lambda rows, turns: executors(int(rows), int(turns)),
    "files-run": lambda rows, files: files_of_run(open_spark(), int(rows), int(files)),
    "wide": lambda rows, columns: wide(open_spark(), int(rows), int(columns)),
    "periods": lambda rows, count: periods(open_spark(), int(rows), int(count)),
    "outputs": lambda rows, count: outputs(open_spark(), int(rows), int(count)),
    "skew": lambda rows: skew(open_spark(), int(rows)),
    "few": lambda rows, scenarios: few_rows(int(rows), int(scenarios)),
    "lake": lambda scale, warm: lake(open_spark(), float(scale), int(warm)),
    "startup": startup,
    "why": lambda rows: explaining(int(rows)),
    "allocate": lambda scale, warm: sharing(open_spark(), float(scale), int(warm)),
}
