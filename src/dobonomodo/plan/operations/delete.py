"""``delete``: mark the rows that match a selector as deleted."""

from __future__ import annotations

from typing import ClassVar

from dobonomodo.model.entity import Entity
from dobonomodo.plan.context import Context
from dobonomodo.plan.expression import CLOCK, TRUE, either, own
from dobonomodo.plan.operations.step import Lowered, derive, names_in
from dobonomodo.plan.rows import Rows
from dobonomodo.plan.system import DELETED, UPDATED_AT
from dobonomodo.problems.operation import BlankDelete


class Delete(Entity):
    """Mark every selected row as deleted; rows where the selector is unknown stay."""

    type: ClassVar[str] = "delete"

    def lower(self, rows: Rows, ctx: Context) -> Lowered:
        """Only active rows are selected, so that rows deleted before keep their time."""
        if ctx.spec.blank_selector:
            ctx.report(BlankDelete(span=ctx.spec.places.span("selector")))
        selected = ctx.selected(rows)
        columns = rows.columns
        marked = {
            DELETED: either(selected, TRUE, own(DELETED, columns)),
            UPDATED_AT: either(selected, CLOCK, own(UPDATED_AT, columns)),
        }
        after = derive(rows, marked, conditions=(selected,), seq=ctx.spec.seq)
        return Lowered(after, selected=selected, reads=names_in(rows, selected))
