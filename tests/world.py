"""The world around what a test is about: a clock, definitions, datasets to plan with, workspaces, stores, runs without Spark.

Tests that need another world change this one. It imports no Spark.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dobonomodo.formula import Columns, Type
from dobonomodo.model import Dataset, DataSource, Definitions, Project, load_definitions
from dobonomodo.plan import DatasetUse, KnownDataset, Plan, Resolution, Step, plan_project
from dobonomodo.plan.check import CheckResult
from dobonomodo.plan.counts import ColumnDigests, JoinCounts, Measures, UnmatchedKey
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.resolution import Resolved
from dobonomodo.problems import Problem, Rejected, RunFailed, Source
from dobonomodo.runs import RunSpec
from dobonomodo.runs.runner import Computed, SharedFiles
from dobonomodo.storage import destination_kinds
from dobonomodo.store import Store, open_store
from dobonomodo.workspace import Workspace

CLOCK = datetime(2026, 2, 3, 8, tzinfo=UTC)
PERIOD = "2026-01"
JANUARY = RunFacts(CLOCK, PERIOD, date(2026, 1, 1), date(2026, 1, 31))
FIRST_QUARTER = RunFacts(datetime(2026, 7, 1, tzinfo=UTC), "2026-Q1", date(2026, 1, 1), date(2026, 3, 31))

WORKSPACES = Path(__file__).parent / "data" / "workspaces"
"""Workspaces that are kept as files."""

# --- definitions

LAKE = "datasource: {id: lake, type: parquet, options: {path_prefix: data}}"
OUT = "datasource: {id: out, type: parquet, options: {path_prefix: out}}"
FILES = """\
resolver:
  id: files
  is_default: true
  rules: [{strategy: {type: path, datasource_id: lake, path: "{{table_name}}.parquet"}}]"""
MONTHS = """\
calendar:
  id: months
  levels: [{name: month, identifier_pattern: "{year}-{sequence:02}"}]
  generate: {from: 2026-01-01, to: 2026-12-31}"""


def documents(*texts: str) -> str:
    """One text of several definitions."""
    return "\n---\n".join(text.strip("\n") for text in texts) + "\n"


def define(*texts: str) -> Definitions:
    """The definitions in some texts, which have no problem."""
    definitions, problems = load_definitions([Source("world.yaml", documents(*texts))])
    assert problems == (), [problem.message() for problem in problems]
    return definitions


def source_of(kind: str, source_id: str = "files", **more: Any) -> DataSource:
    """A datasource; what is neither key nor credential is one of its options."""
    keys: dict[str, Any] = {key: more.pop(key) for key in ("credential_ref", "status") if key in more}
    return DataSource.from_data({"id": source_id, "type": kind, "options": more, **keys})


def use_of(columns: Mapping[str, Type], *, required: Collection[str] = (), **more: Any) -> DatasetUse:
    """A reading of a dataset; columns may be without values unless they are required."""
    given: dict[str, Any] = {"role": "input", "dataset_id": "ds", "version": 1, "table": "t", "temporal_mode": None}
    nullable = frozenset(columns) - frozenset(required)
    return DatasetUse(**{**given, "columns": Columns(columns), "nullable": nullable, **more})


# --- planning


@dataclass(frozen=True)
class KnownDatasets:
    """Datasets by id and version, where planning finds them; the versions of one id count up."""

    by_id: Mapping[str, Sequence[KnownDataset]]
    broken: frozenset[str] = frozenset()

    @classmethod
    def of(cls, definitions: Definitions) -> KnownDatasets:
        """The first version of each."""
        return cls({name: (KnownDataset(each, 1),) for name, each in definitions.datasets.items()})

    def ids(self) -> Sequence[str]:
        return (*self.by_id, *self.broken)

    def versions(self, dataset_id: str) -> Sequence[int]:
        return [known.version for known in self.by_id.get(dataset_id, ())]

    def is_broken(self, dataset_id: str) -> bool:
        return dataset_id in self.broken

    def find(self, dataset_id: str, version: int | None = None) -> KnownDataset | None:
        fitting = [
            known
            for known in self.by_id.get(dataset_id, ())
            if known.version == version or (version is None and known.dataset.status == "active")
        ]
        return fitting[-1] if fitting else None


class Anywhere:
    """A resolution for rows that the test has itself."""

    def resolve(self, use: DatasetUse, project: Project, dataset: Dataset) -> Resolved:
        del use, project, dataset
        return Resolved(None)


def resolution_of(definitions: Definitions, **more: Any) -> Resolution:
    return Resolution(
        resolvers=definitions.resolvers,
        default_resolver=definitions.default_resolver,
        datasources=definitions.datasources,
        **more,
    )


def plan_only_project(definitions: Definitions, *, resolution: Any = None) -> Plan:
    """The plan of the only project; its rows are where the default resolver says unless the test has them."""
    (project,) = definitions.projects.values()
    found = plan_project(
        project,
        datasets=KnownDatasets.of(definitions),
        resolution=resolution or resolution_of(definitions),
        datasources=definitions.datasources,
        kinds=destination_kinds(),
    )
    assert found.plan is not None, [problem.message() for problem in found.problems]
    return found.plan


def spec_of(definitions: Definitions, facts: RunFacts = JANUARY) -> RunSpec:
    """What a run of the only project is about."""
    plan = plan_only_project(definitions)
    return RunSpec(plan, facts, facts.period_start, definitions.datasources, "active", None)


# --- stores and workspaces


@cache
def empty_store() -> bytes:
    """A store file without anything in it; copying one is quicker than making it."""
    with tempfile.TemporaryDirectory() as folder:
        open_store("sqlite:///store.db", root=Path(folder)).close()
        return (Path(folder) / "store.db").read_bytes()


def new_store(root: Path, name: str = "store.db") -> Store:
    """An empty store in a folder."""
    root.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(empty_store())
    return open_store(f"sqlite:///{name}", root=root)


def copy_workspace(name: str, root: Path) -> Path:
    """A kept workspace, to be changed."""
    shutil.copytree(WORKSPACES / name, root)
    return root


def change_file(path: Path, old: str, new: str) -> None:
    """Replace a text in a file, which must be there."""
    text = path.read_text(encoding="utf-8")
    assert old in text, old
    path.write_text(text.replace(old, new), encoding="utf-8")


@dataclass
class Folder:
    """The folder of a workspace that a test writes, changes and opens."""

    root: Path
    opened: list[Workspace] = field(default_factory=list)
    untouched: bool = True

    @classmethod
    def make(cls, root: Path, *texts: str) -> Folder:
        """A new workspace of some definitions."""
        made = cls(root)
        made.put("dobo.yaml", documents("workspace: {name: test}", *texts))
        return made

    @property
    def store_file(self) -> Path:
        return self.root / ".dobo" / "store.db"

    def put(self, file: str, text: str) -> Folder:
        """Write a file."""
        path = self.root / file
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")
        return self

    def write(self, file: str, text: str) -> Workspace:
        """Write a file, and open the workspace anew."""
        return self.put(file, text).open()

    def change(self, file: str, old: str, new: str) -> Workspace:
        """Replace a text in a file, and open the workspace anew."""
        text = (self.root / file).read_text(encoding="utf-8")
        assert old in text, old
        return self.write(file, text.replace(old, new))

    def add(self, file: str, text: str) -> Workspace:
        """Append lines to a file, and open the workspace anew."""
        return self.write(file, (self.root / file).read_text(encoding="utf-8").rstrip("\n") + "\n" + text)

    def with_store(self, content: bytes | None = None) -> Folder:
        """With a store, an empty one unless its content is given."""
        if not self.store_file.exists():
            self.store_file.parent.mkdir()
            self.store_file.write_bytes(content or empty_store())
        return self

    def open(self, at: str = ".", **more: Any) -> Workspace:
        workspace = Workspace.open(self.root / at, **more)
        self.opened.append(workspace)
        return workspace

    def apply(self) -> Workspace:
        workspace = self.with_store().open()
        workspace.apply()
        return workspace

    def activate(self, project: str) -> Workspace:
        workspace = self.apply()
        workspace.activate(project)
        return workspace

    def sandbox(self) -> Store:
        """The store of what drafts register."""
        return new_store(self.root / ".dobo" / "sandbox", "registered.db")

    def close(self) -> None:
        for workspace in self.opened:
            workspace.close()


@cache
def sales_stores() -> tuple[bytes, bytes]:
    """The store of the kept workspace `sales` when it was applied, and when its project was activated then."""
    with tempfile.TemporaryDirectory() as folder:
        sales = Folder(copy_workspace("sales", Path(folder) / "sales"))
        sales.apply().close()
        applied = sales.store_file.read_bytes()
        workspace = sales.open()
        workspace.activate("monthly-sales")
        workspace.close()
        return applied, sales.store_file.read_bytes()


class Sales(Folder):
    """A copy of the kept workspace `sales`. Its store is a copy too, until a test writes a file."""

    @classmethod
    def copy(cls, root: Path) -> Sales:
        return cls(copy_workspace("sales", root))

    def put(self, file: str, text: str) -> Folder:
        self.untouched = False
        return super().put(file, text)

    def apply(self) -> Workspace:
        return self.with_store(sales_stores()[0]).open() if self.untouched else super().apply()

    def activate(self, project: str = "monthly-sales") -> Workspace:
        assert self.untouched
        assert project == "monthly-sales"
        return self.with_store(sales_stores()[1]).open()


def refusal(call: Callable[..., object], *arguments: Any, **more: Any) -> tuple[Problem, ...]:
    """The problems with which a call is rejected."""
    with pytest.raises(Rejected) as caught:
        call(*arguments, **more)
    return tuple(caught.value.problems)


def failure(call: Callable[..., object], *arguments: Any, **more: Any) -> RunFailed:
    """What a call fails with."""
    with pytest.raises(RunFailed) as caught:
        call(*arguments, **more)
    return caught.value


# --- runs without Spark


class ThreeRows:
    """An output of three rows, which are nowhere."""

    frame = None
    columns: Mapping[str, Any] = {}
    divided_by: str | None = None
    shared: SharedFiles | None = None

    def __init__(self, step: Step, *, figures: bool = False, digests: bool = False) -> None:
        self.step, self._figures, self._digests = step, figures, digests
        self.asked: list[str] = []
        """The joins of which unmatched keys were wanted."""

    def explained(self) -> AbstractContextManager[None]:
        return nullcontext()

    def finish(self, written: Callable[[int | None], Any] | None = None) -> Any:
        del written
        counts = [SimpleNamespace(seq=1, name="", type="", rows_in=3, selected=3, added=0, deleted=0, rows_out=3)]
        seq = self.step.spec.seq
        rates, tiers = JoinCounts(1, "rates", "fx", ("id",), 3, 0), JoinCounts(1, "tiers", "customers", ("id",), 1, 2)
        # What is joined after the first output, only later ones count.
        late = [JoinCounts(2, "late", "customers", ("id",), 1, 2)] if seq > 2 else []
        joins = (rates, tiers, *late)
        digests = ColumnDigests(((0, ("id",)),), "1f", {"twice": "2f"}) if self._digests else None
        measures = Measures({"id": Decimal(seq)}, {"id": Decimal(6)}, {1: {"twice": Decimal(12)}}, joins, digests)
        measured = measures if self._figures else None
        return SimpleNamespace(rows=3, digest=f"d{seq}", seconds=0.5, operations=counts, checks=(), measures=measured)

    def find_unmatched(self, join: JoinCounts, *, at_most: int) -> tuple[UnmatchedKey, ...]:
        self.asked.append(join.alias)
        return (UnmatchedKey(("7",), at_most),)


class EngineByHand:
    """An engine that computes nothing: three rows per output."""

    def __init__(self, between: Callable[[int], None] = lambda seq: None) -> None:
        self._between = between
        self.digested: list[str] = []
        self.written: list[ThreeRows] = []

    def outputs(
        self, plan: Plan, facts: RunFacts, *, as_of: date | None, skip: Collection[int], figures: bool, digests: bool
    ) -> Iterator[Computed]:
        del facts, as_of
        for step in plan.steps:
            if step.lowered.write is not None and step.spec.seq not in skip:
                self._between(step.spec.seq)
                self.written.append(ThreeRows(step, figures=figures, digests=digests))
                yield self.written[-1]

    def digest(self, frame: Any, columns: Sequence[str]) -> str:
        """The digest of staged rows, which are their place."""
        del columns
        self.digested.append(frame)
        return f"d{frame.rpartition('/')[2]}"

    def stored_columns(self, use: DatasetUse) -> Collection[str]:
        """Also a period, whatever is read."""
        return (*use.columns, "_Period")

    def contracts(self, plan: Plan, facts: RunFacts, *, as_of: date | None) -> Sequence[CheckResult]:
        del plan, facts, as_of
        return ()

    def checks(
        self, plan: Plan, facts: RunFacts, *, as_of: date | None, skip: Collection[int]
    ) -> Sequence[CheckResult]:
        del plan, facts, as_of, skip
        return ()

    def interrupt(self) -> None:
        """There is nothing to stop."""
