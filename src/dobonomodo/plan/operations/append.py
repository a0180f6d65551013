"""``append``: add rows of another dataset, unchanged or aggregated."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from dobonomodo.formula import HOLE, Scope, Type, Typed, check_formula, convert
from dobonomodo.formula.types import BOOLEAN, DATE, TEXT, UNKNOWN, widen_column
from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity
from dobonomodo.model.horizon import MISSING_HELP, PERIOD_HELP, Missing, PeriodHorizon, check_horizon
from dobonomodo.model.schema import AS_OF, AsOf
from dobonomodo.model.value import Count, Id, Setting
from dobonomodo.plan.columns import is_hole
from dobonomodo.plan.context import Context
from dobonomodo.plan.dataset import KnownDataset, time_reading
from dobonomodo.plan.expression import ACTIVE, all_of, column
from dobonomodo.plan.lookup import join_lookup
from dobonomodo.plan.operations.aggregate import Grouping, describe_groups, group
from dobonomodo.plan.operations.lowered import Formula, Lowered, stack
from dobonomodo.plan.operations.operation import Effect, Facts, Operation
from dobonomodo.plan.operations.update import Join, Joins, describe_joins
from dobonomodo.plan.relation import Keep, Rel, Scan, walk_between
from dobonomodo.plan.rows import Origin, Rows, merge
from dobonomodo.plan.system import LABELS, PERIOD, PERIOD_FROM, PERIOD_TO, ROW_ID
from dobonomodo.problems import Passage, Problem, Span
from dobonomodo.problems.definition import InvalidOperation, OperationReason
from dobonomodo.problems.formula import SelectorCycle, SelectorUndefined, UnknownColumn
from dobonomodo.problems.operation import (
    AppendAggregationInvalid,
    AppendColumnMismatch,
    AppendColumnNotFound,
    AppendDatasetNotFound,
    AppendExpressionInvalid,
    AppendResolverNotFound,
    AppendVersionNotFound,
    DuplicateAggColumn,
    DuplicateGroupBy,
    UnfilteredPeriods,
)

if TYPE_CHECKING:
    from dobonomodo.plan.step import Step

CARRIED: Mapping[str, Type] = {PERIOD: TEXT, PERIOD_FROM: DATE, PERIOD_TO: DATE}
"""System columns that appended rows bring with them."""


class Source(Entity):
    """The dataset that rows come from."""

    dataset_id: Id = Field(description="The dataset to append from.")
    dataset_version: Count | None = Field(
        default=None, description="A fixed version; the default is the latest active version."
    )
    as_of: AsOf | None = Field(default=None, description=f"{AS_OF} The default is the setting of the dataset.")
    period: PeriodHorizon | None = Field(default=None, description=PERIOD_HELP)
    missing: Missing | None = Field(default=None, description=MISSING_HELP)
    joins: tuple[Join, ...] = Field(
        default=(), description="Datasets to join to its rows; the selector and the aggregation can use their columns."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Periods that can be counted."""
        yield from check_horizon(places, "period")


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """The rows to append from: as they are stored, with what is joined to them and what selects them."""

    rows: Rows
    scan: Scan
    selector: Typed | None
    joins: Joins

    def conditions(self) -> frozenset[str]:
        """The stored columns that decide which rows are taken, and which rows are joined to them."""
        chosen = [self.selector] if self.selector is not None else []
        return self.rows.conditions_of(*chosen, *self.joins.on_by_alias.values())


class Append(Operation):
    """Append the rows of another dataset; each of their columns must exist in the working dataset."""

    type: ClassVar[str] = "append"
    facts: ClassVar[Facts] = Facts(Effect.ADDS, badge="+", color="green")
    advice_by_key: ClassVar[Mapping[str, str]] = {
        name: f"`{name}` belongs to the source: write it below `source`, next to `dataset_id`"
        for name in ("joins", "period", "missing", "as_of", "dataset_version")
    }

    source: Source = Field(description="The source of the rows.")
    source_selector: Setting | None = Field(
        default=None, description="The condition for the rows of the source; only its columns are visible."
    )
    aggregation: Grouping | None = Field(default=None, description="Aggregate the rows before they are appended.")

    def lower(self, rows: Rows, ctx: Context) -> Lowered:
        """Checked in the order of R-170; a source that is missing hides everything that depends on it."""
        places = ctx.arguments
        if ctx.spec.selector is not None:
            span = ctx.spec.places.key_span("selector")
            ctx.report(InvalidOperation(reason=OperationReason.SELECTOR_ON_APPEND, span=span))
            ctx.unchecked.append(ctx.spec)
        known = self._find(places.at("source") or places, ctx)
        if known is None:
            ctx.unchecked.append(ctx.spec)
            return Lowered(rows)
        source = places.at("source") or places
        scan = ctx.scan(
            known,
            "append",
            timing=time_reading(self.source, source),
            problem=AppendResolverNotFound,
            at=source.at("dataset_id"),
            later=True,
        )
        ctx.check_as_of(source, scan.use)
        if known.has_period and scan.use.temporal_mode is None:
            ctx.report(UnfilteredPeriods(dataset_id=known.dataset.id, span=places.span("source", "dataset_id")))
        # Stored rows may carry them whatever the temporal mode is; where they do not, they are NULL (C-87).
        scan = replace(scan, carried=CARRIED)
        ctx.check_qualifier(scan.use.table, taken_by="the table of the source", span=source.span("dataset_id"))
        stored = self._look_up(Rows(scan, scan.use.table, scan.use.dataset_id, _stored_origins(scan)), known, ctx)
        joins = Joins(stored, ctx, visible=ctx.scope_over(stored))
        for position, join in enumerate(self.source.joins):
            joins.add(join, source.at("joins", position) or source)
        scope = ctx.scope_over(stored, joined=joins.columns)
        selector = self._selector(places, scope, ctx)
        kept = Keep(joins.lower(all_of(ACTIVE, selector)), all_of(ACTIVE, selector))
        from_source = _Source(replace(stored, origins={**stored.origins, **joins.origins}), scan, selector, joins)
        if self.aggregation is None:
            lowered = self._append_rows(rows, from_source, kept, ctx)
        else:
            lowered = self._append_groups(rows, from_source, kept, scope, places.at("aggregation") or places, ctx)
        ctx.report_resolvers()
        if not known.has_period and scan.use.temporal_mode != "period" and PERIOD in rows.columns:
            lowered = replace(lowered, rows=_without_period(lowered.rows, ctx.spec.seq))
        conditions = dict(joins.conditions)
        if selector is not None:
            conditions[scan.use.table] = Formula(places.passage("source_selector").value, selector)
        return replace(lowered, conditions=conditions)

    def _look_up(self, stored: Rows, known: KnownDataset, ctx: Context) -> Rows:
        """The rows of the source with those lookups of its dataset that are mentioned; others are not read."""
        arguments = json.dumps(ctx.arguments.data, default=str)
        texts = " ".join([arguments, *ctx.project.selectors.values()])
        for position, lookup in enumerate(known.dataset.lookups):
            if re.search(rf"\b{re.escape(lookup.alias)}`?\s*\.", texts, re.IGNORECASE):
                stored = join_lookup(stored, lookup, known, position, ctx)
        return stored

    @classmethod
    def describe(cls, step: Step) -> list[str]:
        """The rows that come in, how they are summarised, and which columns they widen."""
        lines = []
        for node in walk_between(step.top, step.before.node):
            if isinstance(node, Scan) and node.use.role == "append":
                chosen = step.lowered.conditions.get(node.use.table)
                lines.append(f"takes rows of {node.use.dataset_id}" + (f" where {chosen}" if chosen else ""))
        lines += describe_joins(step)
        lines += describe_groups(step, show=str)
        widened = [name for name, (before, after) in step.shown_changes().items() if before != after]
        return lines + ([f"widens {', '.join(map(step.show_column, widened))}"] if widened else [])

    def _find(self, places: Places, ctx: Context) -> KnownDataset | None:
        dataset_id, version = self.source.dataset_id, self.source.dataset_version
        known = ctx.datasets.find(dataset_id, version)
        if known is not None:
            return known
        if ctx.datasets.is_broken(dataset_id):
            ctx.blocked = True
            return None
        versions = tuple(ctx.datasets.versions(dataset_id))
        if version is not None and versions:
            span = places.span("dataset_version")
            ctx.report(AppendVersionNotFound(dataset_id=dataset_id, version=version, versions=versions, span=span))
        else:
            ids = tuple(ctx.datasets.ids())
            span = places.span("dataset_id")
            ctx.report(AppendDatasetNotFound(dataset_id=dataset_id, known=ids, disabled=bool(versions), span=span))
        return None

    def _selector(self, places: Places, scope: Scope, ctx: Context) -> Typed | None:
        if self.source_selector is None or not self.source_selector.strip():
            return None
        passage = places.passage("source_selector")
        checked = ctx.note(check_formula(passage, scope, wanted=BOOLEAN, what="source_selector"))
        for problem in checked.problems:
            ctx.report(recode(problem, AppendExpressionInvalid))
        return checked.tree if checked.tree is not None else HOLE

    def _append_rows(self, rows: Rows, given: _Source, kept: Rel, ctx: Context) -> Lowered:
        """Each row with all its business columns."""
        scan = given.scan
        source = scan.schema.columns
        values: dict[str, Typed] = {name: column(name, source) for name in scan.use.columns}
        span_of = {name: ctx.arguments.span("source", "dataset_id") for name in values}
        values |= {name: column(name, source) for name in CARRIED if name in rows.columns}
        values[LABELS] = column(LABELS, source)
        origins = {name: Origin(frozenset({f"{scan.use.dataset_id}.{name}"})) for name in scan.use.columns}
        return self._stack(rows, given, kept, values, origins, span_of, (ROW_ID,), ctx, key=scan.use.natural_key)

    def _append_groups(
        self, rows: Rows, given: _Source, kept: Rel, scope: Scope, places: Places, ctx: Context
    ) -> Lowered:
        """One row per group, with the keys and the results as its columns."""

        def check(passage: Passage, inside: Scope) -> Typed:
            checked = ctx.note(check_formula(passage, inside))
            for problem in checked.problems:
                ctx.report(recode(problem, AppendAggregationInvalid))
            return checked.tree if checked.tree is not None else HOLE

        assert self.aggregation is not None  # noqa: S101  the caller has looked
        groups = group(
            self.aggregation,
            kept,
            scope,
            places,
            ctx,
            check=check,
            report=lambda problem: ctx.report(recode(problem, AppendColumnNotFound)),
        )
        made = groups.node
        key_places = places.at("group_by") or places
        values: dict[str, Typed] = {}
        for name, key in groups.keys.items():
            if any(key.name.casefold() == each.casefold() for each in values):
                ctx.report(DuplicateGroupBy(name=key.name, span=key_places.span()))
            values[key.name] = column(name, made.schema.columns)
        span_of = {key.name: key_places.span() for key in groups.keys.values()}
        stored = given.rows
        origins = {key.name: stored.origin_of(key) for key in groups.keys.values()}
        keys = {name.casefold() for name in values}
        for name, value, at in groups.values:
            if name.casefold() in keys:
                ctx.report(DuplicateAggColumn(name=name, is_key=True, span=at.span("column")))
            span_of[name] = at.span("column")
            values[name] = column(f"={name}", made.schema.columns) if not is_hole(value) else HOLE
            origins[name] = stored.origin_of(value)
        dropped = [name for name in CARRIED if name in values and name not in rows.columns]
        values = {name: value for name, value in values.items() if name not in dropped}
        names = [each.name for each in groups.keys.values()]
        lowered = self._stack(rows, given, made, values, origins, span_of, tuple(groups.keys), ctx, key=names)
        return replace(lowered, formulas=groups.formulas)

    def _stack(
        self,
        rows: Rows,
        given: _Source,
        made: Rel,
        values: Mapping[str, Typed],
        origins: Mapping[str, Origin],
        span_of: Mapping[str, Span | None],
        by: tuple[str, ...],
        ctx: Context,
        *,
        key: Sequence[str],
    ) -> Lowered:
        aligned: dict[str, Typed] = {}
        changes: dict[str, Type] = {}
        for name, value in values.items():
            stored = rows.columns.spelling(name)
            span = span_of.get(name)
            if stored is None:
                business = tuple(each for each in rows.columns if not each.startswith("_"))
                ctx.report(AppendColumnMismatch(name=name, known=business, span=span))
                continue
            kind = _aligned_type(rows.columns[stored], value.type)
            if kind is None:
                ctx.report(
                    AppendColumnMismatch(
                        name=name,
                        working_type=str(rows.columns[stored]),
                        source_type=str(value.type),
                        span=span,
                    )
                )
                continue
            aligned[stored] = convert(value, kind)
            if kind != rows.columns[stored]:
                changes[stored] = kind
        seq, use = ctx.spec.seq, given.scan.use
        node, added = stack(rows, changes, made, aligned, ctx, by=by, source=(use.dataset_id, use.table))
        conditions = given.conditions()
        merged = dict(rows.origins)
        for name in values:
            column = rows.columns.spelling(name)
            if column is not None and name in origins:
                origin = merge([*([merged[column]] if column in merged else []), origins[name]])
                merged[column] = replace(origin, conditions=origin.conditions | conditions).through(seq)
        after = replace(rows, node=node, origins=merged, keys={**rows.keys, seq: _stored_names(rows, key)})
        if PERIOD in rows.columns and PERIOD not in aligned:
            after = _without_period(after, seq)
        return Lowered(after, added=added, reads=frozenset(aligned))


def _stored_names(rows: Rows, names: Sequence[str]) -> tuple[str, ...]:
    """The columns of the working dataset that have these names."""
    return tuple(stored for name in names if (stored := rows.columns.spelling(name)) is not None)


def _without_period(rows: Rows, seq: int) -> Rows:
    """The same rows, some of which an operation made without a period, as far as is known."""
    return replace(rows, periodless_of=tuple(dict.fromkeys((*rows.periodless_of, seq))))


def _aligned_type(working: Type, source: Type) -> Type | None:
    """The one type of a column that both have (C-52): numbers and dates widen, nothing else does."""
    if UNKNOWN in (working, source):
        return working
    return widen_column(working, source)


def _stored_origins(scan: Scan) -> dict[str, Origin]:
    return {name: Origin(frozenset({f"{scan.use.dataset_id}.{name}"})) for name in scan.use.columns}


def recode(problem: Problem, kind: type[AppendExpressionInvalid]) -> Problem:
    """A problem of a formula under the code that append gives it; warnings and selectors keep their own."""
    if problem.severity == "warning" or isinstance(problem, SelectorUndefined | SelectorCycle):
        return problem
    chosen = AppendColumnNotFound if isinstance(problem, UnknownColumn) else kind
    return chosen(cause=problem, span=problem.span, operation=problem.operation, expression=problem.expression)
