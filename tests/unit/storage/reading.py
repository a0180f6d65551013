"""A reading of files, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from dobonomodo.formula import Type
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.problems.run import DataLoad
from dobonomodo.storage import Inputs
from tests import world
from tests.world import JANUARY


def use_of(columns: Mapping[str, Type], *paths: str, required: Sequence[str] = (), **more: Any) -> DatasetUse:
    """A reading of some paths of the datasource `files`."""
    locations = tuple(Location("files", "path", path=path) for path in paths)
    return world.use_of(columns, dataset_id="sales", table="sales", required=required, locations=locations, **more)


def extract(root: Path, use: DatasetUse, *, kind: str = "csv", **options: Any) -> list[Path]:
    """Read; gives the Parquet files that came of it."""
    source = world.source_of(kind, **{"path_prefix": ".", **options})
    folder = root / f".run-{uuid4()}"
    inputs = Inputs(root=root, datasources={"files": source}, folder=folder, facts=JANUARY, as_of=JANUARY.period_start)
    inputs.extract([use], inputs.pin([use]))
    return sorted(folder.rglob("*.parquet"))


def refused(root: Path, use: DatasetUse, **options: Any) -> DataLoad:
    """The problem of a reading that fails."""
    failed = world.failure(extract, root, use, **options)
    assert not failed.retry_helps
    assert not list(root.rglob("*.part"))
    assert isinstance(failed.problem, DataLoad)
    return failed.problem
