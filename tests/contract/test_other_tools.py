"""Lake tables that runs wrote are read by the tools that people have, on this machine and in an object store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.contract.storages import LOOPBACK, Row, Storage, delta_uri, in_order, open_catalog, open_delta
from tests.contract.test_storages import SIMPLE, make_storage, rows
from tests.world import PERIOD

PLACES = ["delta", "delta in S3", "iceberg", "iceberg in S3"]
OTHER = "FY 26/Q1 ü%"
EXPECTED = [
    *({**row, "_run_period": PERIOD} for row in rows("a", "b")),
    *({**row, "_run_period": OTHER} for row in rows("c", start=3)),
]


def by_polars(storage: Storage) -> list[Row]:
    polars: Any = pytest.importorskip("polars", reason="polars is not installed; `make bench` brings it")
    if storage.kind == "delta":
        return list(polars.scan_delta(delta_uri(storage), storage_options=access_of(storage)).collect().to_dicts())
    with closing(open_catalog(storage)) as catalog, pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
        return list(polars.scan_iceberg(catalog.load_table("default.out")).collect().to_dicts())


def access_of(storage: Storage) -> dict[str, str] | None:
    """What polars has to be told of a server; other tools find it in the environment."""
    return {**LOOPBACK, "aws_endpoint_url": storage.server.endpoint} if storage.server is not None else None


def by_pandas(storage: Storage) -> list[Row]:
    if storage.kind == "delta":
        return list(open_delta(storage).to_pandas().to_dict("records"))
    with closing(open_catalog(storage)) as catalog:
        return list(catalog.load_table("default.out").scan().to_pandas().to_dict("records"))


def by_duckdb(storage: Storage) -> list[Row]:
    """By the list of files on this machine. In an object store through Arrow: its extensions are not part of the package."""
    import duckdb

    if storage.kind == "delta":
        table = open_delta(storage)
        files, arrow = table.file_uris(), table.to_pyarrow_table()
    else:
        with closing(open_catalog(storage)) as catalog:
            scan = catalog.load_table("default.out").scan()
            files, arrow = [task.file.file_path for task in scan.plan_files()], scan.to_arrow()
    with duckdb.connect() as connection:
        if storage.is_remote:
            connection.register("made", arrow)
        else:
            listed = ", ".join(f"'{file}'" for file in files)
            connection.execute(f"CREATE VIEW made AS SELECT * FROM read_parquet([{listed}], hive_partitioning = true)")
        found = connection.execute("SELECT id, value, CAST(_run_period AS VARCHAR) FROM made").fetchall()
    return [dict(zip(EXPECTED[0], values, strict=True)) for values in found]


@pytest.fixture(scope="module", params=PLACES)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Storage:
    """A table with two periods, one of which was replaced."""
    root = tmp_path_factory.mktemp("written")
    storage = make_storage(request.param, root, None, lambda: request.getfixturevalue("object_server"))
    if storage.kind == "delta" and storage.server is not None:
        # Polars cannot read from an address with a space (2.1).
        storage = storage.with_options(path_prefix=f"{storage.server.fresh_bucket()}/data")
    storage.put(rows("old"), SIMPLE, run="run-1")
    storage.put(rows("a", "b"), SIMPLE, run="run-2")
    storage.put(rows("c", start=3), SIMPLE, run="run-3", period=OTHER)
    return storage


@pytest.mark.parametrize("read", [by_polars, by_pandas, by_duckdb])
def test_what_runs_wrote(written: Storage, read: Callable[[Storage], list[Row]]) -> None:
    assert in_order({name: row[name] for name in EXPECTED[0]} for row in read(written)) == EXPECTED
