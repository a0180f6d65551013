"""The conditions of resolver rules: formulas over the table and the period, evaluated without Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from dobonomodo.formula import Checked, Columns, Scope, Typed, check_formula
from dobonomodo.formula.typed import Apply, Cast, ColumnRef, Literal, Operation, walk
from dobonomodo.formula.types import BOOLEAN, DATE, TEXT, TIMESTAMP
from dobonomodo.problems import Passage
from dobonomodo.problems.formula import UnknownFunction

SCOPE = Scope(
    joined={
        "table": Columns({"name": TEXT}),
        "period": Columns({"identifier": TEXT, "level": TEXT, "start_date": DATE, "end_date": DATE}),
    }
)
"""What a rule can look at."""


def check_rule(passage: Passage) -> Checked:
    """A condition that can be decided from the names alone: comparisons, AND, OR, NOT, IN, BETWEEN, LIKE."""
    checked = check_formula(passage, SCOPE, wanted=BOOLEAN, what="`when`")
    if checked.tree is None:
        return checked
    calls = [node.function.name for node in walk(checked.tree) if isinstance(node, Apply)]
    if not calls:
        return checked
    problem = UnknownFunction(
        name=calls[0],
        instead="a rule has no functions; compare with =, IN, BETWEEN or LIKE",
        span=passage.span(0, len(passage.value)),
        expression=passage.value,
    )
    return Checked(None, (problem,))


def decide(node: Typed, facts: Mapping[str, Any]) -> Any:
    """The value of a checked condition; None is unknown."""
    match node:
        case Literal():
            return node.value
        case ColumnRef():
            return facts[f"{node.qualifier}.{node.name}"]
        case Cast():
            value = decide(node.operand, facts)
            is_day = node.type == TIMESTAMP and isinstance(value, date)
            return datetime(value.year, value.month, value.day, tzinfo=UTC) if is_day else value
        case Operation():
            return _operate(node.operator, [decide(each, facts) for each in node.operands])
        case Apply():
            raise AssertionError(node.function.name)


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "LIKE": lambda a, b: _like(a, b),
    "&": lambda a, b: _written(a) + _written(b),
    "ADD DAYS": lambda a, b: a + timedelta(days=b),
    "SUBTRACT DAYS": lambda a, b: a - timedelta(days=b),
    "DAYS BETWEEN": lambda a, b: (a - b).days,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: Decimal(a) / Decimal(b) if b else None,
}


def _operate(operator: str, values: list[Any]) -> Any:
    if operator.startswith("NOT ") and operator != "NOT":
        inner = _operate(operator.removeprefix("NOT "), values)
        return None if inner is None else not inner
    match operator:
        case "AND":
            return False if False in values else None if None in values else True
        case "OR":
            return True if True in values else None if None in values else False
        case "NOT":
            return None if values[0] is None else not values[0]
        case "IS NULL":
            return values[0] is None
        case "IS NOT NULL":
            return values[0] is not None
        case "CASE":
            *branches, otherwise = values
            pairs = zip(branches[::2], branches[1::2], strict=True)
            return next((value for test, value in pairs if test is True), otherwise)
        case "IN":
            subject, *items = values
            equal = [_operate("=", [subject, item]) for item in items]
            return _operate("OR", equal)
        case "BETWEEN":
            subject, low, high = values
            return _operate("AND", [_operate(">=", [subject, low]), _operate("<=", [subject, high])])
        case "NEGATE":
            return None if values[0] is None else -values[0]
        case _:
            return None if None in values else _COMPARE[operator](*values)


def _like(text: str, pattern: str) -> bool:
    parts = {"%": ".*", "_": "."}
    return re.fullmatch("".join(parts.get(char, re.escape(char)) for char in pattern), text, re.DOTALL) is not None


def _written(value: Any) -> str:
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
