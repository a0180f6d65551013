"""What an operation is lowered with: the names it can see, the datasets there are, and a place for its problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dobonomodo.formula import HOLE, Columns, Scope, Type, Typed, check_formula
from dobonomodo.formula.types import BOOLEAN
from dobonomodo.model.dataset import TableTarget
from dobonomodo.model.datasource import DataSource
from dobonomodo.model.document import Places
from dobonomodo.model.operation import OperationSpec
from dobonomodo.model.project import Project
from dobonomodo.model.schema import Table
from dobonomodo.plan.dataset import Datasets, DatasetUse, KnownDataset, Role, column_types, working_columns
from dobonomodo.plan.expression import ACTIVE, both
from dobonomodo.plan.relation import Scan, Schema
from dobonomodo.plan.resolution import Locator
from dobonomodo.plan.rows import Rows
from dobonomodo.problems import Passage, Problem
from dobonomodo.problems.formula import UnknownColumn
from dobonomodo.problems.operation import ResolverNotFound


class Context:
    """Collects the problems of a project while its operations are lowered one after the other."""

    def __init__(
        self,
        project: Project,
        *,
        datasets: Datasets,
        resolution: Locator,
        datasources: Mapping[str, DataSource],
    ) -> None:
        self.project = project
        self.datasets = datasets
        self.resolution = resolution
        self.datasources = datasources
        self.problems: list[Problem] = []
        self.uses: list[DatasetUse] = []
        self.selectors = {name: project.places.passage("selectors", name) for name in project.selectors}
        self.used_selectors: set[str] = set()
        self.destinations: dict[object, int] = {}
        self.operation: OperationSpec | None = None
        self._certain = True

    # --- problems

    def report(self, problem: Problem) -> None:
        """A problem of the operation at hand."""
        if not self._certain and isinstance(problem, UnknownColumn):
            return
        ref = self.operation.ref if self.operation else None
        self.problems.append(problem if problem.operation or ref is None else replace(problem, operation=ref))

    def begin(self, operation: OperationSpec, *, certain: bool) -> None:
        """Turn to the next operation; ``certain``: whether the columns before it are known."""
        self.operation = operation
        self._certain = certain

    @property
    def spec(self) -> OperationSpec:
        """The operation at hand."""
        if self.operation is None:
            raise AssertionError("no operation has begun")
        return self.operation

    @property
    def arguments(self) -> Places:
        """Where the arguments of the operation at hand are written."""
        places = self.spec.places
        return places.at("arguments") or replace(Places.of_data({}), source=places.source, outer=places.key_span())

    # --- expressions

    def scope(
        self, rows: Rows, *, joined: Mapping[str, Columns] | None = None, upcoming: frozenset[str] = frozenset()
    ) -> Scope:
        """What an expression over the working dataset can see."""
        return Scope(
            columns=rows.columns,
            table=rows.table,
            joined={**rows.joined, **(joined or {})},
            selectors=self.selectors,
            upcoming=upcoming,
        )

    def check(
        self, passage: Passage, scope: Scope, *, wanted: Type | None = None, what: str = "this expression"
    ) -> Typed:
        """An expression, checked; a hole where it has problems."""
        checked = check_formula(passage, scope, wanted=wanted, what=what)
        self.used_selectors |= checked.selectors
        for problem in checked.problems:
            self.report(problem)
        return checked.tree if checked.tree is not None else HOLE

    def selector(self, scope: Scope) -> Typed | None:
        """The selector of the operation at hand, None when it has none."""
        if self.spec.selector is None:
            return None
        return self.check(self.spec.places.passage("selector"), scope, wanted=BOOLEAN, what="a selector")

    def selected(self, rows: Rows) -> Typed:
        """The rows that the operation at hand takes: those not deleted for which its selector is true."""
        return both(ACTIVE, self.selector(self.scope(rows)))

    # --- datasets

    def scan(
        self,
        known: KnownDataset,
        role: Role,
        *,
        alias: str | None = None,
        problem: type[ResolverNotFound] = ResolverNotFound,
        at: Places | None = None,
    ) -> Scan:
        """The stored rows of a dataset's main table."""
        table = known.dataset.main_table
        return self.scan_table(known, table, role, alias=alias, problem=problem, at=at)

    def scan_table(
        self,
        known: KnownDataset,
        table: Table | TableTarget,
        role: Role,
        *,
        alias: str | None = None,
        problem: type[ResolverNotFound] = ResolverNotFound,
        at: Places | None = None,
    ) -> Scan:
        """The stored rows of one table of a dataset."""
        dataset = known.dataset
        columns = Columns(column_types(table.columns))
        use = DatasetUse(
            role=role,
            dataset_id=dataset.id,
            version=known.version,
            table=table.name,
            temporal_mode=table.temporal_mode,
            columns=columns,
            natural_key=dataset.natural_key_columns if isinstance(table, Table) else (),
            nullable=frozenset(column.name for column in table.columns if column.nullable),
            alias=alias,
            seq=self.operation.seq if self.operation else None,
            registered=known.registered if isinstance(table, Table) else None,
        )
        found = self.resolution.resolve(use, self.project, dataset)
        for each in found.problems:
            placed = replace(each, span=at.span()) if at is not None else each
            if isinstance(placed, ResolverNotFound) and problem is not ResolverNotFound:
                placed = problem(
                    dataset_id=placed.dataset_id,
                    resolver_id=placed.resolver_id,
                    known=placed.known,
                    disabled=placed.disabled,
                    span=placed.span,
                )
            self.report(placed)
        use = replace(use, resolver_id=found.resolver_id, locations=found.locations)
        self.uses.append(use)
        return Scan(use, Schema(working_columns(columns, table.temporal_mode)))
