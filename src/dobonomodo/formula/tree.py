"""The syntax tree: what was written, before any name or type is known. Every node knows its place in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of an expression, from character ``start`` up to ``end``."""

    start: int = field(default=0, compare=False, repr=False)
    end: int = field(default=0, compare=False, repr=False)
    depth: int = field(default=1, compare=False, repr=False)
    """Levels of nodes from here down, so that a limit can be kept while parsing."""


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A number without sign; ``1`` is an integer and ``1.0`` a decimal, so the digits are kept as written."""

    value: Decimal


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A text literal, without its quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class Truth(Node):
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True, slots=True)
class Null(Node):
    """NULL."""


@dataclass(frozen=True, slots=True)
class Column(Node):
    """A column, alone or behind the name of a table or join alias."""

    name: str
    qualifier: str | None = None


@dataclass(frozen=True, slots=True)
class SelectorRef(Node):
    """``{{NAME}}``: a selector of the project, as one parenthesised unit."""

    name: str


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function and its arguments; ``star`` for ``COUNT(*)``."""

    name: str
    arguments: tuple[Expression, ...]
    star: bool = False
    name_start: int = field(default=0, compare=False, repr=False)
    """The place of the name; ``start`` is where its parentheses begin, if it has any."""


@dataclass(frozen=True, slots=True)
class Ordering(Node):
    """A key of ORDER BY."""

    key: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Over(Node):
    """A window: a call over the rows with the same keys as this one, in an order."""

    call: Call
    partition: tuple[Expression, ...] = ()
    order: tuple[Ordering, ...] = ()


@dataclass(frozen=True, slots=True)
class Negate(Node):
    """Unary minus."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """``+ - * /``, ``&`` and the comparisons, the synonyms already made one."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """AND or OR over two or more conditions."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    """NOT."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """IS NULL, IS NOT NULL."""

    operand: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class In(Node):
    """IN and NOT IN over a list."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class Between(Node):
    """BETWEEN and NOT BETWEEN, both ends included."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class Like(Node):
    """LIKE and NOT LIKE, with ``%`` for any text and ``_`` for any character."""

    operand: Expression
    pattern: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class Case(Node):
    """CASE WHEN .. THEN .. ELSE .. END; no ELSE means NULL."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


Expression = (
    Number
    | Text
    | Truth
    | Null
    | Column
    | SelectorRef
    | Call
    | Over
    | Negate
    | Binary
    | Logic
    | Not
    | IsNull
    | In
    | Between
    | Like
    | Case
)
