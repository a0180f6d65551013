"""Lookups: the joins that a dataset defines for its own rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dobonomodo.formula import ColumnRef, Columns, Typed, convert
from dobonomodo.formula.types import as_decimal, describe, is_number, unify
from dobonomodo.model.dataset import Dataset, DatasetTarget
from dobonomodo.model.dataset import Lookup as LookupSpec
from dobonomodo.plan.columns import joined_columns
from dobonomodo.plan.context import Context
from dobonomodo.plan.dataset import KnownDataset, time_reading, unknown_use
from dobonomodo.plan.expression import ACTIVE, TRUE, all_of, equal
from dobonomodo.plan.relation import Keep, Lookup, Scan
from dobonomodo.plan.rows import Origin, Rows
from dobonomodo.problems.formula import TypeMismatch, UnknownColumn
from dobonomodo.problems.operation import JoinDatasetNotFound


def join_lookup(rows: Rows, lookup: LookupSpec, known: KnownDataset, position: int, ctx: Context) -> Rows:
    """A lookup of a dataset, joined before anything else is done with its rows (C-82)."""
    places = known.dataset.places.at("lookups", position)
    target = known
    if isinstance(lookup.target, DatasetTarget):
        found = ctx.datasets.find(lookup.target.id)
        if found is None:
            if ctx.datasets.is_broken(lookup.target.id):
                ctx.blocked = True
            else:
                span = places.span("target", "id") if places is not None else None
                ctx.report(JoinDatasetNotFound(dataset_id=lookup.target.id, known=tuple(ctx.datasets.ids()), span=span))
            unknown = Scan(unknown_use("lookup", lookup.target.id, alias=lookup.alias))
            return replace(rows, node=Lookup(rows.node, lookup.alias, unknown, TRUE, ACTIVE))
        target = found
        at = places.at("target", "id") if places is not None else None
        scan = ctx.scan(found, "lookup", alias=lookup.alias, timing=time_reading(lookup, places), at=at)
        if places is not None:
            ctx.check_as_of(places, scan.use)
    else:
        timing = time_reading(lookup, places)
        scan = ctx.scan_table(known, lookup.target, "lookup", alias=lookup.alias, timing=timing, at=places)
    columns = joined_columns(scan.schema.columns)
    conditions = list(_lookup_conditions(rows, lookup, columns, known.dataset, position, ctx))
    node = Lookup(rows.node, lookup.alias, Keep(scan, ACTIVE), all_of(*conditions), ACTIVE)
    table_of = target.dataset.id if target is not known else f"{known.dataset.id}.{lookup.alias}"
    origins = {f"{lookup.alias}.{name}": Origin(frozenset({f"{table_of}.{name}"})) for name in columns}
    return replace(rows, node=node, origins={**rows.origins, **origins})


def _lookup_conditions(
    rows: Rows, lookup: LookupSpec, columns: Columns, dataset: Dataset, position: int, ctx: Context
) -> Iterator[Typed]:
    for number, condition in enumerate(lookup.join_conditions):
        left = rows.columns.spelling(condition.source_column)
        right = columns.spelling(condition.target_column)
        if right is None:
            span = dataset.places.span("lookups", position, "join_conditions", number, "target_column")
            name, known = condition.target_column, tuple(columns)
            ctx.report(UnknownColumn(name=name, known=known, qualifier=lookup.alias, span=span))
        if left is None or right is None:
            continue  # the source column is checked where the dataset is defined
        one, other = rows.columns[left], columns[right]
        common = unify((one, other))
        if common is None:
            ctx.report(
                TypeMismatch(
                    what=f"the lookup `{lookup.alias}`",
                    expected=f"columns of one kind, here {describe(one)}",
                    found=describe(other),
                    span=dataset.places.span("lookups", position, "join_conditions", number),
                )
            )
            continue
        mine, theirs = ColumnRef(left, None, one), ColumnRef(right, lookup.alias, other)
        if is_number(one) and is_number(other) and one != other:
            yield equal(convert(mine, as_decimal(one)), convert(theirs, as_decimal(other)))
        else:
            yield equal(convert(mine, common), convert(theirs, common))
