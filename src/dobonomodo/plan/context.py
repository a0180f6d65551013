"""The context in which an operation is lowered: visible names, known datasets, and a list for its problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from dobonomodo.formula import HOLE, Checked, Columns, Scope, Type, Typed, check_formula
from dobonomodo.formula.scope import PARAM
from dobonomodo.formula.types import BOOLEAN, describe
from dobonomodo.model.dataset import Dataset, TableTarget
from dobonomodo.model.datasource import DataSource
from dobonomodo.model.document import Places
from dobonomodo.model.operation import OperationSpec
from dobonomodo.model.project import Project
from dobonomodo.model.schema import AsOf, Table, check_as_of
from dobonomodo.plan.check import Check
from dobonomodo.plan.columns import assigned_type, new_column_type
from dobonomodo.plan.contract import find_contracts
from dobonomodo.plan.dataset import (
    Datasets,
    DatasetUse,
    KnownDataset,
    Role,
    Timing,
    column_types,
    stored_names,
    type_of,
)
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.plan.expression import ACTIVE, all_of, null
from dobonomodo.plan.relation import Scan
from dobonomodo.plan.resolution import Locator
from dobonomodo.plan.rows import Rows
from dobonomodo.problems import Passage, Problem, Span
from dobonomodo.problems.definition import InvalidPeriodRange, InvalidValue, PeriodNotFound
from dobonomodo.problems.formula import TypeMismatch, UnknownColumn
from dobonomodo.problems.operation import (
    AppendColumnMismatch,
    JoinAliasConflict,
    OtherPeriodMissing,
    ResolverNotFound,
)

PERIOD_PROBLEMS = (OtherPeriodMissing, PeriodNotFound, InvalidPeriodRange)
"""Problems of the periods that a reading names."""


class Context:
    """Collects the problems of a project while its operations are lowered one after the other."""

    def __init__(
        self,
        project: Project,
        *,
        datasets: Datasets,
        resolution: Locator,
        datasources: Mapping[str, DataSource],
        kinds: Mapping[str, DestinationKind],
    ) -> None:
        self.project = project
        self.datasets = datasets
        self.resolution = resolution
        self.datasources = datasources
        self.kinds = kinds
        self.problems: list[Problem] = []
        self.uses: list[DatasetUse] = []
        self.resolver_problems: list[Problem] = []
        self.selectors = {name: project.places.passage("selectors", name) for name in project.selectors}
        self.used_selectors: set[str] = set()
        self.parameters = Columns({name: type_of(each.type) for name, each in (project.parameters or {}).items()})
        self.used_parameters: set[str] = set()
        self.makers: dict[str, tuple[int, ...]] = {}
        """The numbers of the operations that make rows, by name."""
        self.idle: frozenset[str] = frozenset()
        """The names of the other operations."""
        self.unchecked: list[OperationSpec] = []
        """Operations of which parts could not be checked."""
        self.destinations: dict[object, int] = {}
        self.contracts: list[Check] = []
        """The checks of the datasets that are read."""
        self._contracted: set[object] = set()
        self.states: dict[str, Rows] = {}
        """The working dataset as it was loaded, and as each operation so far left it, by the names that checks know them by."""
        self.operation: OperationSpec | None = None
        self.blocked = False
        """Whether the cause is a definition that could not be read; it is reported where it is."""
        self._certain = True
        self._arguments: Places | None = None

    # --- problems

    def report(self, problem: Problem) -> None:
        """A problem of the current operation."""
        if not self._certain and _is_about_columns(problem):
            return
        ref = self.operation.ref if self.operation else None
        self.problems.append(problem if problem.operation or ref is None else replace(problem, operation=ref))

    def begin(self, operation: OperationSpec, *, certain: bool) -> None:
        """Turn to the next operation; ``certain``: whether the columns before it are known."""
        self.operation = operation
        self._certain = certain

    @property
    def spec(self) -> OperationSpec:
        """The current operation."""
        if self.operation is None:
            raise AssertionError("no operation has begun")
        return self.operation

    @contextmanager
    def using(self, arguments: Places) -> Iterator[None]:
        """Take these for the arguments of the current operation."""
        self._arguments = arguments
        yield
        self._arguments = None

    @property
    def arguments(self) -> Places:
        """Where the arguments of the current operation are written."""
        if self._arguments is not None:
            return self._arguments
        places = self.spec.places
        return places.at("arguments") or places.empty()

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
            parameters=self.parameters,
            makers=self.makers,
            idle=self.idle,
            upcoming=upcoming,
        )

    def scope_of(self, scan: Scan) -> Scope:
        """What an expression over the stored rows of another dataset can see."""
        return self.scope_over(Rows(scan, scan.use.table, scan.use.dataset_id, {}))

    def scope_over(self, rows: Rows, *, joined: Mapping[str, Columns] | None = None) -> Scope:
        """The same with what is joined to those rows."""
        return Scope(
            columns=rows.columns,
            table=rows.table,
            joined={**rows.joined, **(joined or {})},
            selectors=self.selectors,
            parameters=self.parameters,
        )

    def check(
        self, passage: Passage, scope: Scope, *, wanted: Type | None = None, what: str = "this expression"
    ) -> Typed:
        """An expression, checked; a hole where it has problems."""
        checked = self.note(check_formula(passage, scope, wanted=wanted, what=what))
        for problem in checked.problems:
            self.report(problem)
        return checked.tree if checked.tree is not None else HOLE

    def note(self, checked: Checked) -> Checked:
        """Remember which selectors and parameters an expression uses."""
        self.used_selectors |= checked.selectors
        self.used_parameters |= checked.parameters
        return checked

    def check_qualifier(self, name: str, *, taken_by: str, span: Span | None) -> None:
        """A table or alias with the qualifier of parameters could mean either (C-95)."""
        if self.parameters and name.casefold() == PARAM:
            self.report(JoinAliasConflict(alias=name, taken_by=taken_by, span=span))

    def selector(self, scope: Scope) -> Typed | None:
        """The selector of the current operation, None if it has no selector."""
        if self.spec.selector is None:
            return None
        return self.check(self.spec.places.passage("selector"), scope, wanted=BOOLEAN, what="a selector")

    def selected(self, rows: Rows) -> Typed:
        """The rows that the current operation takes: those not deleted for which its selector is true."""
        return all_of(ACTIVE, self.selector(self.scope(rows)))

    def assign(self, name: str, value: Typed, places: Places, rows: Rows) -> tuple[Typed, Type]:
        """A value for a column, and the column's type with it; a value that does not fit is reported, and NULL instead."""
        existing = rows.columns.get(name)
        if existing is None:
            return value, new_column_type(value.type)
        kind = assigned_type(existing, value.type)
        if kind is not None:
            return value, kind
        passage = places.passage("expression")
        self.report(
            TypeMismatch(
                what=f"column `{name}`",
                expected=describe(existing),
                found=describe(value.type),
                span=passage.span(0, len(passage.value)),
                expression=passage.value,
            )
        )
        return null(existing), existing

    # --- datasets

    def scan(
        self,
        known: KnownDataset,
        role: Role,
        *,
        alias: str | None = None,
        as_of: AsOf | None = None,
        timing: Timing | None = None,
        problem: type[ResolverNotFound] = ResolverNotFound,
        at: Places | None = None,
        later: bool = False,
    ) -> Scan:
        """The stored rows of a dataset's main table."""
        table, when = known.dataset.main_table, timing or Timing(as_of)
        return self.scan_table(
            known,
            table,
            role,
            alias=alias,
            timing=replace(when, as_of=when.as_of or table.as_of),
            problem=problem,
            at=at,
            later=later,
        )

    def check_as_of(self, places: Places, use: DatasetUse) -> None:
        """A reading may name a day only of a bitemporal dataset."""
        for problem in check_as_of(places, use.temporal_mode):
            self.report(problem)

    def report_resolvers(self) -> None:
        """Report what is wrong with the resolvers of the tables scanned so far."""
        for problem in self.resolver_problems:
            self.report(problem)
        self.resolver_problems.clear()

    def _place_resolver_problem(
        self, found: Problem, wanted: type[ResolverNotFound], dataset: Dataset, at: Places | None, *, overridden: bool
    ) -> Problem:
        span = at.span() if at is not None else found.span
        if overridden:
            span = self.project.places.span("resolver_overrides", dataset.id)
        if not isinstance(found, ResolverNotFound):
            return replace(found, span=span)
        return wanted(
            dataset_id=found.dataset_id,
            resolver_id=found.resolver_id,
            known=found.known,
            disabled=found.disabled,
            span=span,
        )

    def scan_table(
        self,
        known: KnownDataset,
        table: Table | TableTarget,
        role: Role,
        *,
        alias: str | None = None,
        timing: Timing | None = None,
        problem: type[ResolverNotFound] = ResolverNotFound,
        at: Places | None = None,
        later: bool = False,
    ) -> Scan:
        """The stored rows of one table of a dataset; ``later``: its resolver's problems are reported on request."""
        dataset, when = known.dataset, timing or Timing()
        columns = Columns(column_types(table.columns))
        use = DatasetUse(
            role=role,
            dataset_id=dataset.id,
            version=known.version,
            table=table.name,
            temporal_mode=table.temporal_mode,
            as_of=when.as_of,
            horizon=when.horizon,
            may_be_missing=when.may_be_missing,
            columns=columns,
            natural_key=dataset.natural_key_columns if isinstance(table, Table) else (),
            nullable=frozenset(column.name for column in table.columns if column.nullable),
            sources=stored_names(table.columns),
            alias=alias,
            operation=self.operation.ref if self.operation else None,
            registered=known.registered if isinstance(table, Table) else None,
            registered_by=known.registered_by if isinstance(table, Table) else (),
            planned=known.planned,
            place=at.span() if at is not None else None,
        )
        found = self.resolution.resolve(use, self.project, dataset)
        self.blocked = self.blocked or found.blocked
        self._check_horizon(use, when)
        for each in found.problems:
            if isinstance(each, PERIOD_PROBLEMS):
                span = when.places.span("period") if when.places is not None else None
                self.report(replace(each, span=span))
                continue
            self.resolver_problems.append(
                self._place_resolver_problem(each, problem, dataset, at, overridden=found.overridden)
            )
        if not later:
            self.report_resolvers()
        use = replace(
            use, resolver_id=found.resolver_id, rule=found.rule, locations=found.locations, periods=found.periods
        )
        self.uses.append(use)
        scan = Scan(use)
        if isinstance(table, Table) and when.horizon.is_current:
            # Rows of other periods were checked when those periods ran; keys may repeat from period to period.
            self._note_contracts(scan, dataset)
        return scan

    def _check_horizon(self, use: DatasetUse, when: Timing) -> None:
        """Rows that are valid on a day do not say for which of several periods they are read."""
        if use.temporal_mode == "bitemporal" and not when.horizon.is_single:
            span = when.places.span("period") if when.places is not None else None
            expected, found = "one period, as the dataset is bitemporal", f"`{when.horizon}`"
            advice = "read it for `current`, `previous` or `previous_year`"
            self.report(InvalidValue(key="period", expected=expected, found=found, advice=advice, span=span))

    def _note_contracts(self, scan: Scan, dataset: Dataset) -> None:
        """Collect the checks that the dataset declares; once, however often the same rows are read."""
        key = (dataset.id, scan.use.version, scan.use.as_of)
        if key in self._contracted:
            return
        self._contracted.add(key)
        for found in find_contracts(scan, dataset):
            if isinstance(found, Check):
                self.contracts.append(found)
            else:
                self.report(found)


def _is_about_columns(problem: Problem) -> bool:
    """Whether a problem says that the working dataset lacks a column."""
    return isinstance(problem, UnknownColumn) or (
        isinstance(problem, AppendColumnMismatch) and problem.working_type is None
    )
