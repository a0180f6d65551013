"""The condition of a join, split into equalities and a range in which a value of the rows must lie.

Only the checked tree is read. A range is recognised if one value of the rows is compared with columns of the joined side, and
the condition can never raise: then it may be evaluated for any row, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from dobonomodo.formula import ColumnRef, Type, Typed, columns_of, evaluate
from dobonomodo.formula.functions.dates import MOST_DAYS
from dobonomodo.formula.functions.signature import NO_RUN, Argument
from dobonomodo.formula.typed import Apply, Cast, Literal, Operation, ParameterRef, walk
from dobonomodo.formula.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    TEXT,
    TIMESTAMP,
    DecimalType,
    as_decimal,
    common_decimal,
    is_number,
)
from dobonomodo.plan.relation import Lookup, Match

KeyPairs = tuple[tuple[Typed, Typed], ...]
"""The two sides of equalities, the joined one second."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An end of a range, as an expression over the joined side."""

    value: Typed
    strict: bool
    """Whether the end itself is outside."""
    open: bool = False
    """Whether NULL means that there is no end; otherwise a range with NULL holds nothing."""


@dataclass(frozen=True, slots=True)
class Range:
    """A value of the rows between values of the joined side; an end that is None does not limit it."""

    point: Typed
    low: Bound | None
    high: Bound | None
    type: Type
    """Holds the point and both ends exactly, in the same order."""

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The ends that there are."""
        return tuple(each for each in (self.low, self.high) if each is not None)


@dataclass(frozen=True, slots=True)
class Sides:
    """The parts of a condition: those over one side alone, equalities, and at most one range."""

    of_rows: tuple[Typed, ...]
    of_source: tuple[Typed, ...]
    range: Range | None


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition whose parts must all be true."""

    keys: KeyPairs
    rest: tuple[Typed, ...]
    """The parts that are no equalities of both sides."""
    sides: Sides | None
    """The same parts by the side they read; None if one of them has another shape, or can raise."""

    @property
    def range(self) -> Range | None:
        """The range, if the condition consists of equalities and one range."""
        return self.sides.range if self.sides is not None else None

    @property
    def way(self) -> Way:
        """The join strategy."""
        if self.range is not None:
            return Way.RANGE
        return Way.KEY if self.keys and self.sides is not None else Way.SEARCH


class Way(Enum):
    """The join strategy, in words for users."""

    KEY = "by key"
    RANGE = "by range, or by comparing with each candidate where they are few"
    SEARCH = "by comparing with each candidate"


def take_apart(node: Lookup | Match) -> Condition:
    """Split the condition of a join into its parts."""
    found = [(part, _equality(part, node.alias)) for part in parts_of(node.on)]
    keys = tuple(pair for _, pair in found if pair is not None)
    rest = tuple(part for part, pair in found if pair is None)
    return Condition(keys, rest, _find_sides(rest, node.alias))


def parts_of(on: Typed) -> Iterator[Typed]:
    """The conditions that are joined by AND at the top."""
    plain = _as_operation(on)
    if isinstance(plain, Operation) and plain.operator == "AND":
        for operand in plain.operands:
            yield from parts_of(operand)
    else:
        yield on


def _equality(part: Typed, alias: str) -> tuple[Typed, Typed] | None:
    """The two sides of ``mine = theirs``, the joined one second; None for any other condition."""
    if not isinstance(part, Operation) or part.operator != "=":
        return None
    return _own_and_joined(part, alias)


def _own_and_joined(part: Operation, alias: str) -> tuple[Typed, Typed] | None:
    """The two sides of a comparison of a value of the rows with one of the joined side; None for any other one."""
    left, right = part.operands
    sides = [_sides(side, alias) for side in (left, right)]
    if sides == [{False}, {True}]:
        return left, right
    return (right, left) if sides == [{True}, {False}] else None


def _sides(part: Typed, alias: str) -> set[bool]:
    """Whether the columns of an expression are joined ones: one answer, both, or none where it has no columns."""
    return {column.qualifier == alias for column in columns_of(part)}


# --- ranges


def _find_sides(rest: Iterable[Typed], alias: str) -> Sides | None:
    of_rows: list[Typed] = []
    of_source: list[Typed] = []
    ends: list[tuple[str, Typed, Bound]] = []
    for part in (simple for each in rest for simple in _without_between(each)):
        if not _never_fails(part):
            return None
        sides = _sides(part, alias)
        if len(sides) < 2:
            (of_source if True in sides else of_rows).append(part)
        elif (end := _end_of(part, alias)) is not None:
            ends.append(end)
        else:
            return None
    found = _range_of(ends)
    return Sides(tuple(of_rows), tuple(of_source), found) if found is not None or not ends else None


def _range_of(ends: list[tuple[str, Typed, Bound]]) -> Range | None:
    """The range with these ends: of one point, and at most one on each side."""
    by_side = {side: bound for side, _, bound in ends}
    points = {_without_casts(point) for _, point, _ in ends}
    if len(by_side) != len(ends) or len(points) != 1:
        return None
    point = points.pop()
    kind = _common_type([point.type, *(bound.value.type for bound in by_side.values())])
    return Range(point, by_side.get("low"), by_side.get("high"), kind) if kind is not None else None


def _end_of(part: Typed, alias: str) -> tuple[str, Typed, Bound] | None:
    """``low`` or ``high``, the point and the end, of a comparison or of ``end IS NULL OR comparison``."""
    plain = _as_operation(part)
    if not isinstance(plain, Operation):
        return None
    if plain.operator == "OR" and len(plain.operands) == 2:
        for absent, compared in (plain.operands, plain.operands[::-1]):
            end = _end_of_comparison(compared, alias)
            test = _as_operation(absent)
            if end is None or not isinstance(test, Operation) or test.operator != "IS NULL":
                continue
            side, point, bound = end
            if _without_casts(test.operands[0]) == _without_casts(bound.value):
                return side, point, replace(bound, open=True)
        return None
    return _end_of_comparison(plain, alias)


def _end_of_comparison(part: Typed, alias: str) -> tuple[str, Typed, Bound] | None:
    if not isinstance(part, Operation) or part.operator not in ("<", "<=", ">", ">="):
        return None
    pair = _own_and_joined(part, alias)
    if pair is None:
        return None
    point, end = pair
    above = part.operator.startswith(">") == (point is part.operands[0])
    return "low" if above else "high", point, Bound(end, strict="=" not in part.operator)


def _without_between(part: Typed) -> Iterator[Typed]:
    if isinstance(part, Operation) and part.operator == "BETWEEN":
        subject, low, high = part.operands
        yield Operation(">=", (subject, low), BOOLEAN)
        yield Operation("<=", (subject, high), BOOLEAN)
    else:
        yield part


def _as_operation(node: Typed) -> Typed:
    """A call that Spark sees as an operator, such as ``AND(a, b)``, as that operator."""
    if not isinstance(node, Apply) or node.type != BOOLEAN or not node.operands:
        return node
    marks = [f"${at}" for at in range(len(node.operands))]
    arguments = [Argument(mark, each) for mark, each in zip(marks, node.operands, strict=True)]
    rendered = node.function.render(node.way, arguments, NO_RUN)
    forms = {f"({' AND '.join(marks)})": "AND", f"({' OR '.join(marks)})": "OR", f"({marks[0]} IS NULL)": "IS NULL"}
    operator = forms.get(rendered)
    return Operation(operator, node.operands, BOOLEAN) if operator is not None else node


def _without_casts(node: Typed) -> Typed:
    """What is converted: conversions that cannot fail keep the order of values, and NULL."""
    while isinstance(node, Cast):
        node = node.operand
    return node


def _common_type(kinds: list[Type]) -> Type | None:
    """The type that holds all values exactly and in order; None where there is none."""
    if all(is_number(kind) for kind in kinds):
        return INTEGER if set(kinds) == {INTEGER} else common_decimal(as_decimal(kind) for kind in kinds)
    if set(kinds) in ({DATE}, {TIMESTAMP}, {TEXT}):
        return kinds[0]
    return TIMESTAMP if set(kinds) == {DATE, TIMESTAMP} else None


_SAFE_OPERATORS = frozenset(
    ("AND", "OR", "NOT", "IS NULL", "IS NOT NULL", "IN", "NOT IN", "=", "<>", "<", "<=", ">", ">=", "CASE", "LIKE")
)


def _never_fails(node: Typed) -> bool:
    """Whether an expression has a value for any row."""
    if all(isinstance(each, Literal | Cast | Apply | Operation) for each in walk(node)):
        return evaluate(node, {}, NO_RUN).problem is None
    return _is_safe(node) and all(_never_fails(each) for each in node.operands)


def _is_safe(node: Typed) -> bool:
    match node:
        case Literal() | ColumnRef() | ParameterRef():
            return True
        case Cast():
            return _widens(node.operand.type, node.type)
        case Operation():
            return node.operator in _SAFE_OPERATORS or _has_room(node) or _shifts_by_constant(node)
        case Apply():
            return node.function.never_fails or _shifts_by_constant(node)
        case _:
            return False


def _has_room(node: Operation) -> bool:
    """Whether the type of an arithmetic result cannot overflow. Integers have no more digits than their operands."""
    if not isinstance(node.type, DecimalType):
        return False
    digits = [as_decimal(each.type).whole for each in node.operands]
    match node.operator:
        case "+" | "-":
            return node.type.whole > max(digits)
        case "*":
            return node.type.whole >= sum(digits)
        case _:
            return False


def _shifts_by_constant(node: Operation | Apply) -> bool:
    """Whether a small constant number of days is added to a date, which never raises in Spark."""
    name = node.operator if isinstance(node, Operation) else node.function.name
    if name not in ("ADD DAYS", "SUBTRACT DAYS", "DATEADD") or len(node.operands) != 2:
        return False
    count = node.operands[1]
    if not isinstance(count, Literal):
        return False
    return count.value is None or (isinstance(count.value, int) and abs(count.value) < MOST_DAYS)


def _widens(kind: Type, wanted: Type) -> bool:
    if isinstance(wanted, DecimalType):
        return is_number(kind) and as_decimal(kind).whole <= wanted.whole and as_decimal(kind).scale <= wanted.scale
    return (kind, wanted) == (DATE, TIMESTAMP)
