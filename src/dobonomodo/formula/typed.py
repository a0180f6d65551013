"""The checked tree: every name resolved, every type known, every conversion explicit. The only input of rendering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from dobonomodo.formula.types import INTEGER_DIGITS, DecimalType, Type, as_decimal

if TYPE_CHECKING:
    from dobonomodo.formula.functions.signature import Function

Value = None | bool | int | Decimal | str | date | datetime


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal value."""

    value: Value
    type: Type

    @property
    def operands(self) -> tuple[Typed, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column in its stored spelling; ``qualifier`` only for joined columns."""

    name: str
    qualifier: str | None
    type: Type

    @property
    def operands(self) -> tuple[Typed, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class ParameterRef:
    """A parameter of the project. Its value is one of the run, so that a plan and its types do not depend on it."""

    name: str
    type: Type

    @property
    def operands(self) -> tuple[Typed, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion that loses nothing, or fails."""

    operand: Typed
    type: Type

    @property
    def operands(self) -> tuple[Typed, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator over operands of the types it needs. CASE has conditions and values in turn, then the ELSE."""

    operator: str
    operands: tuple[Typed, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of the catalogue over arguments of the types that one of its signatures wants."""

    function: Function
    way: int
    """Which of the function's signatures it is."""
    operands: tuple[Typed, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Order:
    """A key to sort rows by. NULL is smaller than any value."""

    key: Typed
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Over:
    """A window: a function over the rows that have the same values of ``partition``, or over all rows."""

    call: Apply
    partition: tuple[Typed, ...] = ()
    order: tuple[Order, ...] = ()

    @property
    def type(self) -> Type:
        return self.call.type

    @property
    def operands(self) -> tuple[Typed, ...]:
        """The arguments, then the keys of the partition, then those of the order."""
        return (*self.call.operands, *self.partition, *(each.key for each in self.order))

    def with_operands(self, operands: Sequence[Typed]) -> Over:
        """The same with other operands, as many and in the same places."""
        first, last = len(self.call.operands), len(self.call.operands) + len(self.partition)
        order = zip(operands[last:], self.order, strict=True)
        return Over(
            replace(self.call, operands=tuple(operands[:first])),
            tuple(operands[first:last]),
            tuple(Order(key, each.descending) for key, each in order),
        )


Typed = Literal | ColumnRef | ParameterRef | Cast | Operation | Apply | Over


def walk(node: Typed) -> Iterator[Typed]:
    """The node and everything below it."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.operands))


def rewrite(node: Typed, change: Callable[[Typed], Typed | None]) -> Typed:
    """The tree with some nodes replaced, from the top down; ``change`` returns None for a node that stays."""
    changed = change(node)
    if changed is not None:
        return changed
    match node:
        case Cast():
            return replace(node, operand=rewrite(node.operand, change))
        case Operation() | Apply():
            return replace(node, operands=tuple(rewrite(each, change) for each in node.operands))
        case Over():
            return node.with_operands([rewrite(each, change) for each in node.operands])
        case _:
            return node


def columns_of(node: Typed) -> tuple[ColumnRef, ...]:
    """The columns an expression reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(each for each in walk(node) if isinstance(each, ColumnRef)))


def windows_of(node: Typed) -> tuple[Over, ...]:
    """The windows in an expression, each once, in order of appearance."""
    return tuple(dict.fromkeys(each for each in walk(node) if isinstance(each, Over)))


def flat_name(column: ColumnRef) -> str:
    """The name of a column in a frame, which may also hold joined columns."""
    return column.name if column.qualifier is None else f"{column.qualifier}.{column.name}"


def decimal_of(node: Typed) -> DecimalType:
    """The narrowest decimal type for a number; a literal is as narrow as its digits."""
    if isinstance(node, Literal) and isinstance(node.value, int | Decimal):
        return literal_decimal(Decimal(node.value))
    return as_decimal(node.type)


def literal_decimal(value: Decimal) -> DecimalType:
    """The type that Spark gives a decimal literal."""
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = len(digits) + max(0, int(exponent)) if any(digits) else 1
    return DecimalType(max(precision, scale, 1), scale)


def is_integer(value: Decimal) -> bool:
    """Whether a written number is a 64-bit integer."""
    return int(value.as_tuple().exponent) >= 0 and value.adjusted() < INTEGER_DIGITS and -(2**63) <= int(value) < 2**63
