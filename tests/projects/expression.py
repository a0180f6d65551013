"""A small expression language of the tests' own: trees that can be written as formulas and evaluated in Python.

Shares no code with the package. Numbers are exact (``int``, ``Decimal``, and ``Fraction`` between a division and the
ROUND around it), NULL is ``None``, and every node knows its kind, so that a whole number in a decimal place is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

INTEGER, DECIMAL, TEXT, BOOLEAN, DATE, TIMESTAMP = "integer", "decimal", "string", "boolean", "date", "timestamp"
NULL = "null"
NUMBERS = (INTEGER, DECIMAL)

Read = Callable[[str | None, str], Any]
"""The value of a column: qualifier (None for the rows' own) and name, both in their stored spelling."""


@dataclass(frozen=True)
class Literal:
    """A value that is written out."""

    value: Any
    kind: str


@dataclass(frozen=True)
class Column:
    """A column, with the text by which this formula refers to it."""

    qualifier: str | None
    name: str
    kind: str
    written: str


@dataclass(frozen=True)
class Parameter:
    """A parameter of the project, with the value that the run has for it."""

    name: str
    value: Any
    kind: str


@dataclass(frozen=True)
class Named:
    """A reference to a named selector; ``tree`` is what the project says under that name."""

    name: str
    tree: Node
    kind: str = BOOLEAN


@dataclass(frozen=True)
class MadeBy:
    """The rows of an operation by its name; ``tree`` is the same by its number."""

    name: str
    tree: Node
    kind: str = BOOLEAN


@dataclass(frozen=True)
class Apply:
    """An operator or a function over its operands."""

    name: str
    operands: tuple[Node, ...]
    kind: str


@dataclass(frozen=True)
class Total:
    """An aggregate function; COUNT(*) has no operand."""

    name: str
    operand: Node | None
    kind: str


@dataclass(frozen=True)
class Windowed:
    """A function over the rows with the same keys, with an order up to the rows that are equal in it; RANK has no operand."""

    name: str
    operand: Node | None
    partition: tuple[Node, ...]
    order: tuple[tuple[Node, bool], ...]
    """Keys, and whether they are descending."""
    kind: str


Node = Literal | Column | Parameter | Named | MadeBy | Apply | Total | Windowed

OVER = " over"
"""The qualifier under which the values of windows are read."""

RANKS = ("RANK", "DENSE_RANK")
INFIX = ("+", "-", "*", "/", "=", "<>", "<", "<=", ">", ">=", "AND", "OR")


class Formula(str):
    """The text that a user would write, with the tree it was written from."""

    tree: Node

    def __new__(cls, tree: Node) -> Formula:
        made = super().__new__(cls, write(tree))
        made.tree = tree
        return made


def walk(node: Node) -> Iterator[Node]:
    """A node and everything below it, selectors included."""
    yield node
    below: tuple[Node | None, ...] = ()
    if isinstance(node, Apply):
        below = node.operands
    elif isinstance(node, Named | MadeBy):
        below = (node.tree,)
    elif isinstance(node, Total):
        below = (node.operand,)
    elif isinstance(node, Windowed):
        below = (node.operand, *node.partition, *(key for key, _ in node.order))
    for each in below:
        if each is not None:
            yield from walk(each)


def qualifiers(node: Node) -> set[str]:
    """The aliases that an expression uses."""
    return {each.qualifier for each in walk(node) if isinstance(each, Column) and each.qualifier is not None}


# --- writing


def write(node: Node) -> str:
    """The formula; every operator below another is in parentheses."""
    match node:
        case Literal():
            return write_value(node.value)
        case Column():
            return node.written
        case Parameter():
            return f"param.{node.name}"
        case Named():
            return "{{" + node.name + "}}"
        case MadeBy():
            return f"MADE_BY({write_value(node.name)})"
        case Total():
            return f"{node.name}({'*' if node.operand is None else write(node.operand)})"
        case Windowed():
            return _write_window(node)
        case Apply(name, operands):
            if name in INFIX:
                return f" {name} ".join(_inner(each) for each in operands)
            if name == "NOT":
                return f"NOT {_inner(operands[0])}"
            if name == "NEGATE":
                return f"-{_inner(operands[0])}"
            return f"{name}({', '.join(write(each) for each in operands)})"


def _write_window(node: Windowed) -> str:
    called = "" if node.name in RANKS else "*" if node.operand is None else write(node.operand)
    keys = [f"{write(key)}{' DESC' if descending else ''}" for key, descending in node.order]
    partition = f"PARTITION BY {', '.join(map(write, node.partition))}" if node.partition else ""
    order = f"ORDER BY {', '.join(keys)}" if keys else ""
    return f"{node.name}({called}) OVER ({' '.join(filter(None, (partition, order)))})"


def _inner(node: Node) -> str:
    text = write(node)
    bare = not isinstance(node, Apply) or node.name not in (*INFIX, "NOT", "NEGATE")
    return text if bare and not text.startswith("-") else f"({text})"


def write_value(value: Any) -> str:
    """A literal."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() | Decimal():
            return f"{value:f}" if isinstance(value, Decimal) else str(value)
        case datetime():  # the run's clock, the only time that is ever written
            return "NOW()"
        case date():
            return f'DATE("{value.isoformat()}")'
        case _:
            quote = "'" if '"' in value else '"'
            return f"{quote}{value.replace(quote, quote * 2)}{quote}"


# --- evaluating


def evaluate(node: Node, read: Read) -> Any:
    """The value of an expression for one row."""
    match node:
        case Literal() | Parameter():
            value = node.value
        case Column():
            value = read(node.qualifier, node.name)
        case Named() | MadeBy():
            return evaluate(node.tree, read)
        case Apply():
            value = _apply(node, lambda each: evaluate(each, read))
        case Windowed():
            value = read(OVER, write(node))
        case Total():
            raise AssertionError("an aggregate outside of a group")
    return as_kind(value, node.kind)


def summarise(node: Node, rows: Sequence[Read], keys: Mapping[tuple[str | None, str], Any]) -> Any:
    """The value of an expression for a group: columns outside of aggregates are group keys."""
    match node:
        case Total(name, None):
            assert name == "COUNT"
            return len(rows)
        case Total(name, operand):
            values = [value for read in rows if (value := evaluate(operand, read)) is not None]  # type: ignore[arg-type]
            return as_kind(_total(name, values), node.kind)
        case Apply():
            return as_kind(_apply(node, lambda each: summarise(each, rows, keys)), node.kind)
        case _:
            return evaluate(node, lambda qualifier, name: keys[qualifier, name])


def compute_windows(nodes: Sequence[Windowed], rows: Sequence[Read]) -> list[dict[str, Any]]:
    """For each row the values of windows over all of them, by the formula. NULL is a key like any other, and the smallest."""
    found: list[dict[str, Any]] = [{} for _ in rows]
    for node in nodes:
        partitions: dict[tuple[Any, ...], list[int]] = {}
        for at, read in enumerate(rows):
            partitions.setdefault(tuple(evaluate(key, read) for key in node.partition), []).append(at)
        for members in partitions.values():
            keys = {at: [evaluate(key, rows[at]) for key, _ in node.order] for at in members}
            for place, (_, descending) in reversed(list(enumerate(node.order))):
                members.sort(key=lambda at: _null_first(keys[at][place]), reverse=descending)
            for at in members:
                last = max(place for place, other in enumerate(members) if keys[other] == keys[at])
                found[at][write(node)] = as_kind(_over(node, at, members, last, keys, rows), node.kind)
    return found


def _over(
    node: Windowed, at: int, members: list[int], last: int, keys: Mapping[int, list[Any]], rows: Sequence[Read]
) -> Any:
    if node.name == "RANK":
        return 1 + next(place for place, other in enumerate(members) if keys[other] == keys[at])
    before = members[: last + 1]
    if node.name == "DENSE_RANK":
        return sum(place == 0 or keys[other] != keys[before[place - 1]] for place, other in enumerate(before))
    if node.operand is None:
        return len(before)
    values = [value for other in before if (value := evaluate(node.operand, rows[other])) is not None]
    return _total(node.name, values)


def _null_first(value: Any) -> tuple[bool, Any]:
    return value is not None, value


def as_kind(value: Any, kind: str) -> Any:
    """A whole number becomes a decimal where a decimal is due; nothing else changes."""
    if kind == DECIMAL and type(value) is int:
        return Decimal(value)
    return value


def _total(name: str, values: list[Any]) -> Any:
    if name == "COUNT":
        return len(values)
    if not values:
        return None
    match name:
        case "SUM":
            return sum(values)
        case "AVG":
            return sum((Fraction(value) for value in values), Fraction(0)) / len(values)
        case "MIN_AGG":
            return min(values)
        case "MAX_AGG":
            return max(values)
    raise AssertionError(name)


def _apply(node: Apply, value_of: Callable[[Node], Any]) -> Any:
    name, operands = node.name, node.operands
    if name == "IF":
        return value_of(operands[1] if value_of(operands[0]) is True else operands[2])
    if name == "COALESCE":
        return next((value for each in operands if (value := value_of(each)) is not None), None)
    values = [value_of(each) for each in operands]
    if name == "AND":
        return False if False in values else None if None in values else True
    if name == "OR":
        return True if True in values else None if None in values else False
    if name == "ISNULL":
        return values[0] is None
    if None in values:
        return None
    return _STRICT[name](*values)


def _divide(one: Any, other: Any) -> Fraction | None:
    return Fraction(one) / Fraction(other) if other != 0 else None


def _round(value: Any, places: int) -> Decimal:
    """Half away from zero."""
    unit = Fraction(10) ** places
    scaled = abs(Fraction(value)) * unit
    whole = int(scaled + Fraction(1, 2))
    exact = Fraction(whole if value >= 0 else -whole) / unit
    return Decimal(exact.numerator) / Decimal(exact.denominator)


_STRICT: dict[str, Callable[..., Any]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "/": _divide,
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "NOT": lambda one: not one,
    "NEGATE": lambda one: -one,
    "ROUND": _round,
    "CONCAT": lambda *texts: "".join(texts),
    "TO_INTEGER": int,
}
"""Of values that are not NULL. ``TO_INTEGER`` of a text that is no number raises, here as there."""
