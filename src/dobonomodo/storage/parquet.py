"""Parquet files: read strictly, with the stable position of every row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.formula.sql import quote_name, quote_text
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import AppendDataLoad, DataLoad
from dobonomodo.storage.schema import find_differences

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE_NUMBER = " file"
ROW_NUMBER = " row"


def read_parquet(spark: SparkSession, files: Sequence[Path], use: DatasetUse) -> DataFrame:
    """The rows of some files, declared columns in their declared types, with the number of each row's file and its place there.

    The position is stable under any split, filter or partitioning (``_metadata``, Spark 3.5 and later).
    """
    frame = spark.read.parquet(*(str(path) for path in files))
    differences = find_differences(frame, use)
    if differences:
        kind = AppendDataLoad if use.role == "append" else DataLoad
        raise RunFailed(
            kind(dataset_id=use.dataset_id, detail="the files are not as declared", differences=differences)
        )
    names = ", ".join(quote_text(path.resolve().as_uri().replace("file:///", "file:/")) for path in files)
    place = "regexp_replace(_metadata.file_path, '^file:/+', 'file:/')"
    present = {name.casefold(): name for name in frame.columns}
    declared = [
        f"CAST({quote_name(present[name.casefold()])} AS {kind.sql}) AS {quote_name(name)}"
        for name, kind in use.columns.items()
    ]
    stored = [quote_name(name) for name in frame.columns if name.startswith("_")]
    return frame.selectExpr(
        *declared,
        *stored,
        f"array_position(array({names}), {place}) AS {quote_name(FILE_NUMBER)}",
        f"_metadata.row_index AS {quote_name(ROW_NUMBER)}",
    )
