"""Rows of all types that an output writes into a file, and an input reads again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.storage.csv import extract_csv, write_csv
from dobonomodo.storage.csv_dialect import Dialect
from dobonomodo.storage.excel import ExcelFormat, extract_excel
from dobonomodo.storage.faults import refuse
from dobonomodo.storage.folder import FilePart
from dobonomodo.storage.manifest import DATA, HIDDEN
from dobonomodo.storage.schema import arrow_type
from tests import world

Rows = list[dict[str, Any]]
KINDS: dict[str, Type] = {
    "text": TEXT,
    "whole": INTEGER,
    "money": DecimalType(15, 2),
    "small": DecimalType(20, 9),
    "flag": BOOLEAN,
    "day": DATE,
    "moment": TIMESTAMP,
}


def no_values(**values: object) -> dict[str, Any]:
    """A row without values but some."""
    return {**dict.fromkeys(KINDS), **values}


def by_csv(folder: Path, dialect: Dialect, rows: Rows) -> Rows:
    data = folder / HIDDEN / "out" / "version" / DATA
    data.mkdir(parents=True)
    source, written, target = _write(folder, rows), data / "rows.csv", folder / "out.parquet"
    write_csv(source, written, dialect, columns=KINDS, to="out")
    use = world.use_of(KINDS)
    refuse(extract_csv(written, target, use, dialect), use)
    return _read(target)


def by_excel(folder: Path, rows: Rows) -> Rows:
    source, book, target = _write(folder, rows), folder / "book.xlsx", folder / "out.parquet"
    form = ExcelFormat(sheet="Two")
    form.check([source], columns=KINDS, to="out")
    form.combine([FilePart((source,), KINDS, sheet) for sheet in ("One", "Two")], book, to="out")
    use = world.use_of(KINDS)
    refuse(extract_excel(book, target, use, form), use)
    return _read(target)


def _write(folder: Path, rows: Rows) -> Path:
    source = folder / "in.parquet"
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in KINDS.items()])
    pq.write_table(pa.Table.from_pylist(rows, schema), source)
    return source


def _read(file: Path) -> Rows:
    found: Rows = pq.read_table(file).to_pylist()
    return found
