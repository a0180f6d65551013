"""A reading of files, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dobonomodo.formula import Columns, Type
from dobonomodo.model.datasource import DataSource
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.facts import RunFacts
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import DataLoad
from dobonomodo.storage import Inputs

FACTS = RunFacts(datetime(2026, 2, 3, tzinfo=UTC), "2026-01", date(2026, 1, 1), date(2026, 1, 31))


def use_of(columns: Mapping[str, Type], *paths: str, required: Sequence[str] = (), **more: Any) -> DatasetUse:
    """A reading of some paths of the datasource `files`."""
    locations = tuple(Location("files", "path", path=path) for path in paths)
    nullable = frozenset(columns) - frozenset(required)
    return DatasetUse(
        "input", "sales", 1, "sales", None, Columns(columns), nullable=nullable, locations=locations, **more
    )


def extract(root: Path, use: DatasetUse, *, kind: str = "csv", **options: Any) -> list[Path]:
    """Read; gives the Parquet files that came of it."""
    source = DataSource.from_data({"id": "files", "type": kind, "options": {"path_prefix": ".", **options}})
    folder = root / f".run-{uuid4()}"
    inputs = Inputs(root=root, datasources={"files": source}, folder=folder, facts=FACTS, as_of=FACTS.period_start)
    inputs.extract([use], inputs.pin([use]))
    return sorted(folder.rglob("*.parquet"))


def refused(root: Path, use: DatasetUse, **options: Any) -> DataLoad:
    """The problem of a reading that fails."""
    with pytest.raises(RunFailed) as failed:
        extract(root, use, **options)
    assert not failed.value.retry_helps
    assert not list(root.rglob("*.part"))
    assert isinstance(failed.value.problem, DataLoad)
    return failed.value.problem
