"""``update``: set columns on the selected rows, also from columns of other datasets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from dobonomodo.formula import Columns, Scope, Typed, columns_of, convert
from dobonomodo.formula.scope import PARAM
from dobonomodo.formula.types import BOOLEAN
from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity
from dobonomodo.model.horizon import MISSING_HELP, PERIOD_HELP, Missing, PeriodHorizon, check_horizon
from dobonomodo.model.schema import AS_OF, AsOf
from dobonomodo.model.shape import CheckedApart
from dobonomodo.model.value import Count, Id, Identifier, Setting
from dobonomodo.plan.columns import joined_columns
from dobonomodo.plan.context import Context
from dobonomodo.plan.dataset import KnownDataset, time_reading, unknown_use
from dobonomodo.plan.expression import ACTIVE, CLOCK, all_of, coalesce, column, if_else, null
from dobonomodo.plan.operations.lowered import Formula, Lowered, derive, warn_of_summaries
from dobonomodo.plan.operations.operation import Effect, Facts, Operation
from dobonomodo.plan.relation import Keep, Lookup, Rel, Scan, walk_between, walk_relation
from dobonomodo.plan.rows import Origin, Rows
from dobonomodo.plan.system import ASSIGNABLE, LABELS, RESERVED, UPDATED_AT
from dobonomodo.plan.window import compute_windows
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidColumnName, ReservedColumn
from dobonomodo.problems.operation import (
    DuplicateTarget,
    EmptyAssignments,
    JoinAliasConflict,
    JoinDatasetNotFound,
    JoinVersionNotFound,
    UnderscoreColumn,
)

if TYPE_CHECKING:
    from dobonomodo.plan.step import Step

_TARGET = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class Join(Entity):
    """Another dataset, whose matching row is joined to each row."""

    alias: Identifier = Field(description="The name that qualifies its columns: `alias.column`.")
    dataset_id: Id = Field(description="The dataset to join.")
    dataset_version: Count | None = Field(
        default=None, description="A fixed version; the default is the latest active version."
    )
    on: Setting = Field(description="The join condition; at most one row may match.")
    as_of: AsOf | None = Field(default=None, description=f"{AS_OF} The default is the setting of the dataset.")
    period: PeriodHorizon | None = Field(default=None, description=PERIOD_HELP)
    missing: Missing | None = Field(default=None, description=MISSING_HELP)

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Periods that can be counted."""
        yield from check_horizon(places, "period")


class Assignment(Entity):
    """A column and the expression for its new value."""

    column: Annotated[str, CheckedApart()] = Field(description="An existing column, or a new one.")
    expression: Setting = Field(description="The value, computed from the values before the update.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A name that a column can have, existing or new (VR-002)."""
        name = places.get("column")
        if name is not None and not (isinstance(name, str) and _is_target(name)):
            yield InvalidColumnName(name=str(name), span=places.span("column"))


class Update(Operation):
    """Set columns on the selected rows; every expression reads the row as it was before."""

    type: ClassVar[str] = "update"
    facts: ClassVar[Facts] = Facts(Effect.SELECTS, badge="U", color="blue", counted="changed")

    joins: tuple[Join, ...] = Field(default=(), description="Datasets to join; expressions can use their columns.")
    assignments: tuple[Assignment, ...] = Field(default=(), description="The columns to set.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """At least one assignment (VR-001)."""
        given = places.at("assignments")
        if given is None or (given.is_list and not given.node.value) or given.node.value is None:
            yield EmptyAssignments(span=places.key_span("assignments"))

    def lower(self, rows: Rows, ctx: Context) -> Lowered:
        """One select: a CASE per target, so that rows that are not selected cannot raise."""
        joins = Joins(rows, ctx)
        for position, join in enumerate(self.joins):
            joins.add(join, ctx.arguments.at("joins", position) or ctx.arguments)
        targets = [each.column for each in self.assignments]
        upcoming = frozenset(name for name in targets if rows.columns.spelling(name) is None)
        scope = ctx.scope(rows, joined=joins.columns, upcoming=upcoming)
        selected = all_of(ACTIVE, ctx.selector(scope))
        inside = replace(scope, windows=True)
        values: dict[str, Typed] = {}
        written: list[Typed] = []
        formulas: dict[str, Formula] = {}
        places_by_target: dict[str, Places] = {}
        for position, assignment in enumerate(self.assignments):
            places = ctx.arguments.at("assignments", position) or ctx.arguments
            passage = places.passage("expression")
            value = ctx.check(passage, inside)
            written.append(value)
            name = find_target(assignment, places, rows, places_by_target, ctx)
            if name is not None:
                values[name] = self._assign(name, value, selected, places, rows, ctx)
                formulas[name] = Formula(passage.value, value)
        values[UPDATED_AT] = if_else(selected, CLOCK, column(UPDATED_AT, rows.columns))
        over, computed = compute_windows(rows, joins.lower(selected), written, selected=selected)
        for window in computed:
            warn_of_summaries(rows, ctx, chosen_by=(selected, *window.partition), window=True)
        updated = derive(
            rows,
            values,
            conditions=(selected,),
            seq=ctx.spec.seq,
            over=over,
            origins={**rows.origins, **joins.origins},
            on_by_alias=joins.on_by_alias,
            whole=ctx.spec.selector is None,
            computed=computed,
        )
        reads = rows.names_in(selected, *joins.on_by_alias.values(), *written)
        return Lowered(
            updated,
            selected=selected,
            reads=reads,
            sets=frozenset(values),
            formulas=formulas,
            conditions=joins.conditions,
        )

    @classmethod
    def describe(cls, step: Step) -> list[str]:
        """The joins and the columns that are set, in the order in which they were written."""
        return [
            *describe_joins(step),
            *(f"sets {step.show_column(name)} = {each}" for name, each in step.lowered.formulas.items()),
        ]

    def _assign(self, name: str, value: Typed, selected: Typed, places: Places, rows: Rows, ctx: Context) -> Typed:
        value, kind = ctx.assign(name, value, places, rows)
        old: Typed = column(name, rows.columns) if name in rows.columns else null(kind)
        if name == LABELS:
            value = coalesce(value, old)
        return if_else(selected, convert(value, kind), old)


def find_target(
    assignment: Assignment, places: Places, rows: Rows, taken: dict[str, Places], ctx: Context
) -> str | None:
    """The stored spelling of the column to set, None when it cannot be set; ``taken`` are those that are set already."""
    name, span = assignment.column, places.span("column")
    if not _is_target(name):
        return None
    if name.casefold() in RESERVED and name.casefold() not in ASSIGNABLE:
        ctx.report(ReservedColumn(name=name, span=span))
        return None
    stored = rows.columns.spelling(name) or name
    first = taken.setdefault(stored.casefold(), places)
    if first is not places:
        ctx.report(DuplicateTarget(name=name, first=first.span("column"), span=span))
        return None
    if stored == name and name.startswith("_") and name not in rows.columns:
        ctx.report(UnderscoreColumn(name=name, span=span))
    return stored


def describe_joins(step: Step) -> list[str]:
    """The joins of an operation, the first first; those of datasets have no condition of the operation's."""
    found = [node for node in walk_between(step.top, step.before.node) if isinstance(node, Lookup)]
    return [
        f"joins {scan.use.dataset_id} as {node.alias}"
        + (f" on {step.lowered.conditions[node.alias]}" if node.alias in step.lowered.conditions else "")
        for node in reversed(found)
        for scan in walk_relation(node.source)
        if isinstance(scan, Scan)
    ]


class Joins:
    """The joins of one operation: each may use the aliases before it."""

    def __init__(self, rows: Rows, ctx: Context, *, visible: Scope | None = None) -> None:
        self.rows, self.ctx = rows, ctx
        self._visible = visible or ctx.scope(rows)
        self.columns: dict[str, Columns] = {}
        self.origins: dict[str, Origin] = {}
        self.on_by_alias: dict[str, Typed] = {}
        self.conditions: dict[str, Formula] = {}
        self._lookups: list[tuple[str, Rel, Typed]] = []

    def add(self, join: Join, places: Places) -> None:
        """Check a join and make its columns visible."""
        ctx, alias = self.ctx, join.alias
        if (taken_by := find_conflict(alias, self.rows, ctx, self.columns)) is not None:
            ctx.report(JoinAliasConflict(alias=alias, taken_by=taken_by, span=places.span("alias")))
        known = find_join(join.dataset_id, join.dataset_version, places, ctx)
        if known is None:
            scan = Scan(unknown_use("join", join.dataset_id, alias=alias))
        else:
            timing = time_reading(join, places)
            scan = ctx.scan(known, "join", alias=alias, timing=timing, at=places.at("dataset_id"))
            ctx.check_as_of(places, scan.use)
        self.columns[alias] = joined_columns(scan.schema.columns)
        for name in self.columns[alias]:
            self.origins[f"{alias}.{name}"] = Origin(frozenset({f"{join.dataset_id}.{name}"}))
        scope = replace(self._visible, joined={**self._visible.joined, **self.columns})
        passage = places.passage("on")
        on = ctx.check(passage, scope, wanted=BOOLEAN, what="`on`")
        self.conditions[alias] = Formula(passage.value, on)
        self.on_by_alias[alias] = on
        self._lookups.append((alias, Keep(scan, ACTIVE), on))

    def lower(self, selected: Typed) -> Rel:
        """The rows with the joined columns.

        Only selected rows need a match, unless what selects them is itself joined: then all active rows do.
        """
        uses_alias = any(column.qualifier in self.columns for column in columns_of(selected))
        only = ACTIVE if uses_alias else selected
        node = self.rows.node
        for alias, source, on in self._lookups:
            node = Lookup(node, alias, source, on, only)
        return node


def find_conflict(alias: str, rows: Rows, ctx: Context, others: Iterable[str] = ()) -> str | None:
    """What has the name of an alias already; ``others`` are the aliases of the same operation."""
    folded = alias.casefold()
    if ctx.parameters and folded == PARAM:
        return "the parameters of the project"
    if folded == rows.table.casefold():
        return "the main table"
    if any(folded == each.casefold() for each in rows.joined):
        return "a lookup of the dataset"
    if any(folded == each.casefold() for each in others):
        return "another join of this operation"
    flat = [name for name in rows.columns if name.casefold().startswith(f"{folded}.")]
    return f"the column `{flat[0]}`" if flat else None


def find_join(dataset_id: str, version: int | None, places: Places, ctx: Context) -> KnownDataset | None:
    """The dataset that a join names, or a problem."""
    known = ctx.datasets.find(dataset_id, version)
    if known is not None:
        return known
    if ctx.datasets.is_broken(dataset_id):
        ctx.blocked = True
        return None
    versions = tuple(ctx.datasets.versions(dataset_id))
    if version is not None and versions:
        span = places.span("dataset_version")
        ctx.report(JoinVersionNotFound(dataset_id=dataset_id, version=version, versions=versions, span=span))
    else:
        span = places.span("dataset_id")
        ctx.report(
            JoinDatasetNotFound(
                dataset_id=dataset_id, known=tuple(ctx.datasets.ids()), disabled=bool(versions), span=span
            )
        )
    return None


def _is_target(name: str) -> bool:
    return _TARGET.fullmatch(name) is not None
