"""Other programs that read a destination while runs publish into it, and the process that publishes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dobonomodo.formula.types import INTEGER, TEXT
from tests.contract.storages import Storage
from tests.world import PERIOD

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

    from pyspark.sql import SparkSession

    from dobonomodo.formula import Type

ROWS = 40
COLUMNS: dict[str, Type] = {"id": INTEGER, "value": TEXT}

Read = Callable[[list[str]], list[str]]
"""The column ``value`` of some files."""


def publish_while_read(storage: Storage, publications: int, every: int, reads: Synchronized[int]) -> None:
    """Publish again whenever so many reads were done since; readers do not wait for it."""
    for number in range(1, publications + 1):
        before = reads.value
        publish(storage, number)
        while reads.value < before + every:
            time.sleep(0.001)


def publish(storage: Storage, number: int) -> None:
    """Rows that all tell which publication they are of."""
    rows = [{"id": row, "value": f"{number:03}"} for row in range(ROWS)]
    storage.put(rows, COLUMNS, run=f"run-{number}")


def list_by_manifest(folder: Path) -> list[str]:
    """The files of the period, as docs/data.md says."""
    with open(f"{folder}/run_period={PERIOD}/../manifest.json") as file:
        manifest = json.load(file)
    return [f"{folder.parent}/{manifest['folder']}/{name}" for name in manifest["files"]]


def leave_it_to_the_program(folder: Path) -> list[str]:
    """The folder: the program lists what is behind the link, and opens it."""
    return [str(folder)]


def read_by_arrow(files: list[str]) -> list[str]:
    import pyarrow.parquet as pq

    return [value for path in files for value in pq.read_table(path, partitioning=None)["value"].to_pylist()]


def read_by_pandas(files: list[str]) -> list[str]:
    import pandas  # type: ignore[import-untyped, unused-ignore]

    return [value for path in files for value in pandas.read_parquet(path, partitioning=None)["value"]]


def read_by_duckdb(files: list[str]) -> list[str]:
    import duckdb  # type: ignore[import-not-found, unused-ignore]

    # DuckDB reads no folders.
    patterns = [path if path.endswith(".parquet") else f"{path}/*/*.parquet" for path in files]
    return [row[0] for row in duckdb.execute("SELECT value FROM read_parquet(?)", [patterns]).fetchall()]


def read_by_spark(spark: SparkSession) -> Read:
    def read(files: list[str]) -> list[str]:
        rows = spark.read.schema("id bigint, value string").parquet(*files).select("value").collect()
        return [row.value for row in rows]

    return read


@dataclass
class Findings:
    """What came of many reads."""

    reads: int = 0
    seen: Counter[tuple[tuple[str, int], ...]] = field(default_factory=Counter)
    """How often which values were found how many times."""
    faults: Counter[str] = field(default_factory=Counter)
    """How often a file was gone or a read failed otherwise."""

    def look(self, find: Callable[[], list[str]], read: Read) -> None:
        """Read once."""
        self.reads += 1
        try:
            values = read(find())
        except Exception as fault:  # noqa: BLE001  whatever a program raises is a read that failed
            self.faults[type(fault).__name__] += 1
        else:
            self.seen[tuple(sorted(Counter(values).items()))] += 1

    @property
    def empty(self) -> int:
        """How often there were no rows at all, without an error."""
        return self.seen[()]

    def torn(self) -> list[Any]:
        """Rows of several publications at once, or some rows of one."""
        return [found for found in self.seen if found and (len(found) != 1 or found[0][1] != ROWS)]
