"""Builders of checked expressions for operations."""

from __future__ import annotations

from collections.abc import Sequence

from dobonomodo.formula import FUNCTION_BY_NAME, ColumnRef, Columns, Type, Typed, convert
from dobonomodo.formula.typed import Apply, Literal, Operation, Order, Over
from dobonomodo.formula.types import BOOLEAN, INTEGER, TEXT, TIMESTAMP
from dobonomodo.plan.system import DELETED

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)
CLOCK: Typed = Apply(FUNCTION_BY_NAME["NOW"], 0, (), TIMESTAMP)
"""The moment at which the run started."""
ACTIVE: Typed = Operation("NOT", (ColumnRef(DELETED, None, BOOLEAN),), BOOLEAN)
"""Not deleted. The flag is never NULL after loading."""


def text(value: str) -> Literal:
    """A text."""
    return Literal(value, TEXT)


def integer(value: int) -> Literal:
    """A whole number."""
    return Literal(value, INTEGER)


def null(kind: Type) -> Literal:
    """NULL of a type."""
    return Literal(None, kind)


def column(name: str, columns: Columns) -> ColumnRef:
    """A column of the rows themselves."""
    return ColumnRef(name, None, columns[name])


def all_of(*conditions: Typed | None) -> Typed:
    """The conjunction (AND) of conditions; None is ignored."""
    given = tuple(each for each in conditions if each is not None and each != TRUE)
    if not given:
        return TRUE
    return given[0] if len(given) == 1 else Operation("AND", given, BOOLEAN)


def if_else(condition: Typed, then: Typed, otherwise: Typed) -> Typed:
    """CASE WHEN: one value if a condition is true, else the other; both in the type of the first."""
    return Operation("CASE", (condition, then, convert(otherwise, then.type)), then.type)


def apply(name: str, *operands: Typed) -> Apply:
    """A function of the catalogue, called in the first of its ways with operands of the types that it wants."""
    function = FUNCTION_BY_NAME[name]
    result = function.ways[0][0].result
    if isinstance(result, str):
        raise AssertionError(f"the type of {name} follows from several operands")
    return Apply(function, 0, operands, result(operands) if callable(result) else result)


def over(name: str, *operands: Typed, partition: Sequence[Typed] = (), order: Sequence[Order] = ()) -> Over:
    """A function of the catalogue over a window.

    A function that depends on the order of ties needs a total order.
    """
    return Over(apply(name, *operands), tuple(partition), tuple(order))


def equal(left: Typed, right: Typed) -> Typed:
    """Whether two values of one type, or two decimals, are equal; unknown where one is NULL."""
    return Operation("=", (left, right), BOOLEAN)


def coalesce(value: Typed, otherwise: Typed) -> Typed:
    """A value, or another where it is NULL."""
    return Apply(FUNCTION_BY_NAME["COALESCE"], 0, (value, otherwise), value.type)
