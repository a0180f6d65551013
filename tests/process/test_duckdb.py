"""DuckDB by its dialect. Its module reports leaks when Python ends, so another process imports it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import adbc_driver_duckdb.dbapi
import pytest

READ = """
from pathlib import Path
from dobonomodo.formula.types import DecimalType
from dobonomodo.storage.sql_reading import Reading, UrlDatabase
from tests.world import use_of
with UrlDatabase('duckdb:///m.db', Path(r'{root}')).open() as opened:
    print(*opened.describe(None, 't', use_of({{}})).types, opened.describe(None, 'nowhere', use_of({{}})))
    (batch,) = opened.read(Reading(None, 't', {{'b': DecimalType(15, 2)}}))
    print(*batch[0].values.to_pylist())
"""


@pytest.mark.skipif(importlib.util.find_spec("duckdb_engine") is None, reason="`duckdb-engine` is not installed")
def test_by_a_dialect_that_cannot_describe_tables(tmp_path: Path) -> None:
    with adbc_driver_duckdb.dbapi.connect(str(tmp_path / "m.db")) as base, base.cursor() as cursor:
        cursor.execute("CREATE TABLE t AS SELECT 7 AS a, 0.1::DECIMAL(15,2) AS b, DATE '2026-01-31' AS c")
        base.commit()
    done = subprocess.run(
        [sys.executable, "-c", READ.format(root=tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["a", "b", "c", "None", "0.10"], done.stderr
