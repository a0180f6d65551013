"""A storage that does not exist, written as `docs/adding.md` says: one file and one word; all else follows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

import dobonomodo as dobo
from dobonomodo.formula import Type
from dobonomodo.model import StorageOptions
from dobonomodo.model.json_schema import make_schema
from dobonomodo.model.plain import Document
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.storage import STORAGES, catalogue, options_by_type
from dobonomodo.storage.file_storage import FileStorage, FolderOptions
from dobonomodo.storage.files import list_files
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.folder import Format
from dobonomodo.storage.schema import arrow_type
from dobonomodo.storage.storage import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LinesOptions(FolderOptions):
    """A folder of JSON lines."""


@dataclass(frozen=True, slots=True)
class LinesFormat:
    """JSON lines as a destination."""

    kind: ClassVar[str] = "lines"
    in_place: ClassVar[bool] = False
    options: ClassVar[Mapping[str, object]] = {}

    def convert(self, files: Sequence[Path], folder: Path, *, columns: Mapping[str, Type], to: str) -> None:
        import pyarrow.parquet as pq

        del columns, to
        for path in files:
            lines = [json.dumps(row, default=str) for row in pq.read_table(path).to_pylist()]
            (folder / f"{path.stem}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class LinesStorage(FileStorage):
    """A folder of JSON lines. They pass through Parquet files in the folder of the run."""

    kind: ClassVar[str] = "lines"
    options: ClassVar[type[StorageOptions]] = LinesOptions

    @classmethod
    def load_format(cls, document: Document) -> Format:
        del document
        return LinesFormat()

    def extract_file(self, use: DatasetUse, source: Path, target: Path) -> Findings:
        import pyarrow as pa
        import pyarrow.json as pj
        import pyarrow.parquet as pq

        if not target.exists():
            schema = pa.schema([(name, arrow_type(kind)) for name, kind in use.columns.items()])
            target.parent.mkdir(parents=True, exist_ok=True)
            options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
            pq.write_table(pj.read_json(source, parse_options=options), target)
        return Findings()

    def sample_file(self, path: Path, columns: Mapping[str, Type], rows: int) -> Iterable[Row]:
        del columns
        with path.open(encoding="utf-8") as file:
            yield from (json.loads(line) for line in islice(file, rows))


WORKSPACE = """
workspace: {default_resolver: files}
---
datasource: {id: logs, type: lines, options: {path_prefix: logs}}
---
resolver: {id: files, rules: [{strategy: {type: path, datasource_id: logs, path: "{{table_name}}"}}]}
---
calendar:
  id: c
  levels: [{name: month}]
  periods: [{identifier: "2026-01", level: month, start_date: 2026-01-01, end_date: 2026-01-31}]
---
dataset:
  id: sales
  main_table: {name: sales, columns: [{name: item, type: string}, {name: pieces, type: integer}]}
---
dataset:
  id: sold
  main_table: {name: sold, columns: [{name: item, type: string}, {name: pieces, type: integer}]}
---
project:
  id: again
  input_dataset_id: sold
  operations:
    - {seq: 1, type: output, arguments: {destination: {datasource_id: logs, table: copy}, columns: [item, pieces]}}
---
project:
  id: close
  input_dataset_id: sales
  operations:
    - {seq: 1, type: delete, selector: pieces = 0}
    - {seq: 2, type: output, arguments: {destination: {datasource_id: logs, table: sold}, columns: [item, pieces]}}
    - {seq: 3, type: output, arguments: {destination: {datasource_id: logs, table: items}, columns: [item]}}
    - {seq: 4, type: output, arguments: {destination: {type: lines, path: own/names}, columns: [item]}}
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with rows, where the one word is in the tuple."""
    monkeypatch.setattr(catalogue, "STORAGES", (*STORAGES, LinesStorage))
    (tmp_path / "dobo.yaml").write_text(WORKSPACE, encoding="utf-8")
    (tmp_path / "logs").mkdir()
    lines = [{"item": "apple", "pieces": 3}, {"item": "pear", "pieces": 0}, {"item": "plum", "pieces": None}]
    (tmp_path / "logs" / "sales").write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    return tmp_path


def test_definitions_and_schemas_know_it(root: Path) -> None:
    with closing(dobo.open(root)) as workspace:
        assert list(workspace.problems()) == []
    (root / "dobo.yaml").write_text(WORKSPACE.replace("path_prefix", "path_prefx"), encoding="utf-8")
    with closing(dobo.open(root)) as workspace:
        assert {problem.code for problem in workspace.problems()} >= {"MISSING_KEY", "UNKNOWN_KEY"}
    assert make_schema("datasource", options_by_type=options_by_type())["definitions"].keys() >= {"LinesOptions"}


def test_one_file_and_one_word(root: Path, spark: SparkSession) -> None:
    with closing(dobo.open(root)) as workspace:
        planned = workspace.plan("close", period="2026-01", draft=True)
        assert planned.together is not None
        workspace.apply()
        for project in ("close", "again"):
            workspace.activate(project)
        run = workspace.run("close", period="2026-01", spark=spark)
        assert run.problems == ()
        assert {name: output.rows for name, output in run.outputs.items()} == {"sold": 2, "items": 2, "names": 2}
        assert run.snapshot["together"]["places"]["logs"] == LinesStorage.together
        again = workspace.run("again", period="2026-01", spark=spark)
        rows = workspace.sample(again.id, 5)["copy"]
        assert sorted(rows, key=str) == [{"item": "apple", "pieces": 3}, {"item": "plum", "pieces": None}]
        assert workspace.verify(run.id, spark=spark)[1] == ()
    (written,) = list_files(root / "own" / "names")
    assert {json.loads(line)["item"] for line in written.read_text(encoding="utf-8").splitlines()} == {"apple", "plum"}
