"""``delete``: mark the rows that match a selector as deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dobonomodo.plan.context import Context
from dobonomodo.plan.expression import CLOCK, TRUE, column, if_else
from dobonomodo.plan.operations.lowered import Lowered, derive
from dobonomodo.plan.operations.operation import Effect, Facts, Operation
from dobonomodo.plan.rows import Rows
from dobonomodo.plan.system import DELETED, UPDATED_AT
from dobonomodo.problems.operation import BlankDelete

if TYPE_CHECKING:
    from dobonomodo.plan.step import Step


class Delete(Operation):
    """Mark every selected row as deleted; rows where the selector is unknown stay."""

    type: ClassVar[str] = "delete"
    facts: ClassVar[Facts] = Facts(Effect.SELECTS | Effect.DELETES, badge="−", color="red", counted="deleted")

    def lower(self, rows: Rows, ctx: Context) -> Lowered:
        """Only active rows are selected, so that rows deleted before keep their time."""
        if ctx.spec.blank_selector:
            ctx.report(BlankDelete(span=ctx.spec.places.span("selector")))
        selected = ctx.selected(rows)
        columns = rows.columns
        marked = {
            DELETED: if_else(selected, TRUE, column(DELETED, columns)),
            UPDATED_AT: if_else(selected, CLOCK, column(UPDATED_AT, columns)),
        }
        after = derive(rows, marked, conditions=(selected,), seq=ctx.spec.seq)
        return Lowered(after, selected=selected, reads=rows.names_in(selected))

    @classmethod
    def describe(cls, step: Step) -> list[str]:
        """The effect on rows; the selector is described elsewhere."""
        del step
        return ["marks them as deleted"]
