"""Templates whose inputs and outputs are lake tables or objects in S3 give the digests that they give on files of this machine."""

from __future__ import annotations

import re
import shutil
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog import load_catalog

from dobonomodo.cli.init import make_workspace
from dobonomodo.formula.types import parse_type
from dobonomodo.storage.schema import arrow_type
from dobonomodo.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.object_server import ObjectServer

PERIOD = "2026-01"
AT = datetime(2026, 2, 3, tzinfo=UTC)
PROJECTS = {"sales": "monthly-sales", "fx": "group-result"}
RESOLVER = """resolver:
  id: files
  rules: [{strategy: {type: %s, datasource_id: %s, %s: "{{table_name}}"}}]
"""


@dataclass(frozen=True)
class Lake:
    """Where all datasources of a workspace are, and how somebody else puts a table there."""

    options: str
    """Of a datasource, by its id."""
    kind: str
    strategy: str
    write: Callable[[str, pa.Table], None]


def in_delta(root: Path, _: Callable[[], ObjectServer]) -> Lake:
    def write(name: str, rows: pa.Table) -> None:
        parts = [each for each in ("_period",) if each in rows.column_names]
        write_deltalake(root / "lake/in" / name, rows, partition_by=parts)

    return Lake("{path_prefix: lake/%s}", "delta", "path", write)


def in_iceberg(root: Path, _: Callable[[], ObjectServer]) -> Lake:
    def write(name: str, rows: pa.Table) -> None:
        (root / "lake").mkdir(exist_ok=True)
        uri, warehouse = f"sqlite:///{root / 'lake.db'}", str(root / "lake")
        with closing(load_catalog("default", type="sql", uri=uri, warehouse=warehouse)) as catalog:
            catalog.create_namespace_if_not_exists("in")
            catalog.create_table(("in", name), rows.schema).append(rows)

    return Lake('{uri: "sqlite:///lake.db", warehouse: lake, namespace: %s}', "iceberg", "table", write)


def in_s3(root: Path, server: Callable[[], ObjectServer]) -> Lake:
    running = server()
    address = f"{running.fresh_bucket()}/lake"

    def write(name: str, rows: pa.Table) -> None:
        pq.write_table(rows, root / "rows.parquet")
        running.put(f"{address}/in/{name}/rows.parquet", (root / "rows.parquet").read_bytes())

    return Lake(f'{{path_prefix: "{address}/%s"}}', "parquet", "path", write)


@pytest.mark.parametrize("place", [in_delta, in_iceberg, in_s3])
@pytest.mark.parametrize("template", PROJECTS)
def test_digests_are_those_of_local_files(
    template: str,
    place: Callable[[Path, Callable[[], ObjectServer]], Lake],
    tmp_path: Path,
    spark: SparkSession,
    request: pytest.FixtureRequest,
) -> None:
    make_workspace(tmp_path, template)
    with closing(Workspace.open(tmp_path)) as workspace:
        local = workspace.run(PROJECTS[template], period=PERIOD, spark=spark, draft=True, started_at=AT)
        tables = read_tables(workspace)
    lake = place(tmp_path, lambda: request.getfixturevalue("object_server"))
    for name, rows in tables.items():
        lake.write(name, rows)
    shutil.rmtree(tmp_path / "data")
    move(tmp_path, lake)
    with closing(Workspace.open(tmp_path)) as workspace:
        workspace.apply()
        workspace.activate(PROJECTS[template])
        remote = workspace.run(PROJECTS[template], period=PERIOD, spark=spark, started_at=AT)
        assert remote.status == "completed", remote.problems
        assert {name: (each.rows, each.digest) for name, each in remote.outputs.items()} == {
            name: (each.rows, each.digest) for name, each in local.outputs.items()
        }
        assert workspace.verify(remote.id, spark=spark)[1] == ()


def read_tables(workspace: Workspace) -> dict[str, pa.Table]:
    """The rows of every dataset, all months in one table."""
    found = {}
    for dataset in workspace.definitions.datasets.values():
        table = dataset.main_table
        assert table is not None
        types = {each.name: arrow_type(parse_type(str(each.type))) for each in table.columns}  # type: ignore[arg-type]
        parts = [read_file(path, types) for path in find_files(workspace.root / "data", table.name)]
        found[table.name] = pa.concat_tables(parts)
    return found


def find_files(data: Path, name: str) -> list[Path]:
    """Those of one table: a file for all months, or one for each."""
    return [
        path
        for path in sorted(data.rglob("*.*"))
        if re.match(rf"{name}([-/]\d{{4}}-\d\d)?\.\w+$", str(path.relative_to(data)))
    ]


def read_file(path: Path, types: dict[str, pa.DataType]) -> pa.Table:
    """Rows as they are declared, with the month where a file is of one."""
    if path.suffix == ".csv":
        options = pc.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
        rows = pc.read_csv(path, convert_options=options)
    else:
        rows = pq.read_table(path)
    month = re.search(r"\d{4}-\d\d", path.name)
    declared = rows.select(list(types)).cast(pa.schema(types))
    return declared.append_column("_period", pa.array([month[0]] * len(rows), pa.string())) if month else declared


def move(root: Path, lake: Lake) -> None:
    """Have the definitions name the lake."""
    ids = re.findall(r"^  id: (\w+)", (root / "datasources/files.yaml").read_text(), re.MULTILINE)
    sources = [
        f"datasource:\n  id: {each}\n  type: {lake.kind}\n  options: {lake.options % ('in' if each == ids[0] else each)}\n"
        for each in ids
    ]
    (root / "datasources/files.yaml").write_text("---\n".join(sources))
    (root / "resolvers/files.yaml").write_text(RESOLVER % (lake.strategy, ids[0], lake.strategy))
