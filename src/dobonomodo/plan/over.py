"""Values over the rows of a partition, as the node `Window` computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from dobonomodo.formula import Type, Typed
from dobonomodo.formula.sql import cast
from dobonomodo.formula.types import INTEGER
from dobonomodo.plan.expression import apply
from dobonomodo.problems import InternalError


class WindowFunction(StrEnum):
    """What can be computed; all but the number of a row are aggregates of the catalogue."""

    SUM = "SUM"
    COUNT = "COUNT"
    SMALLEST = "MIN_AGG"
    LARGEST = "MAX_AGG"
    ROW_NUMBER = "ROW_NUMBER"


@dataclass(frozen=True, slots=True)
class Order:
    """A key to sort by. NULL is smaller than any value."""

    key: Typed
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Over:
    """A function of the rows with the same values of ``partition``; without keys, of all rows.

    ``running``: of those up to the row itself in the order, rows with the same keys (peers) included; else of all of them.
    Sums, counts and extremes do not depend on how rows with the same keys are sorted. The number of a row does: whoever asks
    for it must give an order in which no two rows of a partition are equal, such as one that ends with the row id.
    """

    function: WindowFunction
    argument: Typed | None = None
    partition: tuple[Typed, ...] = ()
    order: tuple[Order, ...] = ()
    running: bool = False

    def __post_init__(self) -> None:
        numbers = self.function is WindowFunction.ROW_NUMBER
        if numbers != (self.argument is None):
            raise InternalError(f"{self.function} needs {'no argument' if numbers else 'an argument'}")
        if bool(self.order) != (numbers or self.running) or (numbers and self.running):
            raise InternalError(f"{self.function} over a partition: an order is for row numbers and running values")

    @property
    def type(self) -> Type:
        """The type of the value."""
        return INTEGER if self.argument is None else apply(self.function, self.argument).type

    @property
    def expressions(self) -> tuple[Typed, ...]:
        """All that it reads."""
        given = () if self.argument is None else (self.argument,)
        return (*given, *self.partition, *(each.key for each in self.order))

    def render(self, sql: Callable[[Typed], str]) -> str:
        """The value in Spark SQL; ``sql`` renders an expression."""
        parts = []
        if self.partition:
            parts.append(f"PARTITION BY {', '.join(sql(each) for each in self.partition)}")
        if self.order:
            parts.append(f"ORDER BY {', '.join(_render_order(each, sql) for each in self.order)}")
        if self.running:
            parts.append("RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
        call = "row_number()" if self.argument is None else sql(apply(self.function, self.argument))
        found = f"{call} OVER ({' '.join(parts)})"
        return cast(found, INTEGER) if self.argument is None else found


def _render_order(order: Order, sql: Callable[[Typed], str]) -> str:
    return f"{sql(order.key)} {'DESC NULLS LAST' if order.descending else 'ASC NULLS FIRST'}"
