"""The run that wrote a file is found by the files that its record has, whatever the storage is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dobonomodo.problems import Source
from dobonomodo.store import Run
from dobonomodo.workspace.explaining import find_writer
from dobonomodo.workspace.files import Files
from tests.unit.runs.reporting import make_run

SOURCES = """
datasource: {id: delta, type: delta, options: {path_prefix: lake}}
---
datasource: {id: ice, type: iceberg, options: {uri: "sqlite:///catalog.db", warehouse: wh}}
"""
FILES = {
    "delta": "_run_period=2026-01/dobo-1/part-00000.parquet",
    "iceberg": "file:///elsewhere/wh/default/sales/data/dobo-1/part-00000.parquet",
}
TABLES = {
    kind: {
        "kind": kind,
        "datasource_id": source,
        "schema": "default",
        "table": "sales",
        "version": 3,
        "files": [{"path": FILES[kind], "size": 1, "values": {}}],
    }
    for kind, source in (("delta", "delta"), ("iceberg", "ice"))
}
FOLDER = {"kind": "parquet", "folder": "out/sales", "data": "out/.data/1", "files": ["part-00000.parquet"]}


def files_of(root: Path, text: str) -> Files:
    return Files.load(root, [Source("definitions.yaml", text)])


def made(number: int, location: Mapping[str, object]) -> Run:
    output = {"seq": 90, "table": "sales", "destination": "x:sales", "rows": 3, "digest": "d-3", "location": location}
    more = {"dataset_id": None, "dataset_version": None}
    return replace(make_run(number), progress={"outputs": [{**output, **more}]})


@pytest.mark.parametrize(
    ("location", "file"),
    [
        (FOLDER, "{root}/out/.data/1/part-00000.parquet"),
        (TABLES["delta"], f"{{root}}/lake/sales/{FILES['delta']}"),
        (TABLES["iceberg"], "/elsewhere/wh/default/sales/data/dobo-1/part-00000.parquet"),
    ],
    ids=["files", "delta", "iceberg"],
)
def test_the_run_that_wrote_a_file(location: Mapping[str, object], file: str, tmp_path: Path) -> None:
    place = files_of(tmp_path, SOURCES)
    other = {**FOLDER, "data": "out/.data/2"}
    runs = [made(2, other), made(1, location)]
    found = find_writer(file.format(root=tmp_path), runs, place)
    assert found == (runs[1], "sales")
    assert find_writer(f"{tmp_path}/out/.data/3/part-00000.parquet", runs, place) is None


def test_a_datasource_that_is_there_no_more(tmp_path: Path) -> None:
    place = files_of(tmp_path, "datasource: {id: ice, type: csv, options: {path_prefix: data}}")
    runs = [made(1, TABLES["delta"]), made(2, TABLES["iceberg"])]
    assert find_writer(f"{tmp_path}/lake/sales/{FILES['delta']}", runs, place) is None


def test_files_are_named_without_the_secret_of_their_store(tmp_path: Path) -> None:
    secret, store = "credential_ref: env://DOBO_NO_SUCH_SECRET", "s3://bucket/lake"
    place = files_of(
        tmp_path,
        f"datasource: {{id: delta, type: delta, {secret}, options: {{path_prefix: {store}}}}}\n---\n"
        f'datasource: {{id: ice, type: iceberg, {secret}, options: {{uri: "sqlite:///c.db", warehouse: {store}}}}}',
    )
    address = f"{store}/default/sales/data/dobo-1/part-00000.parquet"
    iceberg = {**TABLES["iceberg"], "files": [{"path": address, "size": 1, "values": {}}]}
    runs = [made(1, TABLES["delta"]), made(2, iceberg), made(3, FOLDER)]
    find = partial(find_writer, runs=runs, files=place)
    assert find(f"{store}/sales/{FILES['delta']}") == (runs[0], "sales")
    assert find(address) == (runs[1], "sales")
    assert find(f"{tmp_path}/out/.data/1/part-00000.parquet") == (runs[2], "sales")


def test_the_writer_is_found_where_its_datasource_was(tmp_path: Path) -> None:
    before = {"id": "delta", "type": "delta", "options": {"path_prefix": "before"}}
    run = made(1, TABLES["delta"])
    run = replace(run, snapshot={**run.snapshot, "datasources": [before]})
    find = partial(find_writer, runs=[run], files=files_of(tmp_path, SOURCES))
    assert find(f"{tmp_path}/before/sales/{FILES['delta']}") == (run, "sales")
    assert find(f"{tmp_path}/lake/sales/{FILES['delta']}") is None
