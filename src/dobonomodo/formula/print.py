"""From tree to text: a syntax tree parses back from it to the same tree, a checked tree is checked back from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import assert_never

from dobonomodo.formula import tree
from dobonomodo.formula.moment import Day, Moment
from dobonomodo.formula.scope import PARAM
from dobonomodo.formula.typed import Apply, Cast, ColumnRef, Literal, Operation, Over, ParameterRef, Typed

_LEVEL = {"OR": 1, "AND": 2, "NOT": 3, "COMPARE": 4, "&": 5, "+": 6, "-": 6, "*": 7, "/": 7, "NEGATE": 8, "PRIMARY": 9}
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


def print_formula(node: tree.Expression) -> str:
    """The expression with as few parentheses as it needs."""
    return _print(node)[0]


def _print(node: tree.Expression) -> tuple[str, int]:
    """The text of a node and how tightly it binds."""
    match node:
        case tree.Number():
            return f"{node.value:f}", _LEVEL["PRIMARY"]
        case tree.Text():
            return '"' + node.value.replace('"', '""') + '"', _LEVEL["PRIMARY"]
        case tree.Truth():
            return ("TRUE" if node.value else "FALSE"), _LEVEL["PRIMARY"]
        case tree.Null():
            return "NULL", _LEVEL["PRIMARY"]
        case tree.Column():
            names = [node.name] if node.qualifier is None else [node.qualifier, node.name]
            return ".".join(_print_name(name) for name in names), _LEVEL["PRIMARY"]
        case tree.SelectorRef():
            return "{{" + node.name + "}}", _LEVEL["PRIMARY"]
        case tree.Call():
            inner = "*" if node.star else ", ".join(print_formula(each) for each in node.arguments)
            return f"{node.name}({inner})", _LEVEL["PRIMARY"]
        case tree.Over():
            return f"{print_formula(node.call)} OVER ({_print_window(node)})", _LEVEL["PRIMARY"]
        case tree.Negate():
            return f"-{_wrap(node.operand, 'NEGATE')}", _LEVEL["NEGATE"]
        case tree.Binary():
            level = "COMPARE" if node.operator not in _LEVEL else node.operator
            left = _wrap(node.left, level, above=level == "COMPARE")
            return f"{left} {node.operator} {_wrap(node.right, level, above=True)}", _LEVEL[level]
        case tree.Logic():
            parts = (_wrap(each, node.operator, above=True) for each in node.operands)
            return f" {node.operator} ".join(parts), _LEVEL[node.operator]
        case tree.Not():
            return f"NOT {_wrap(node.operand, 'NOT')}", _LEVEL["NOT"]
        case tree.IsNull():
            return f"{_wrap(node.operand, '&')} IS {'NOT ' if node.negated else ''}NULL", _LEVEL["COMPARE"]
        case tree.In():
            items = ", ".join(print_formula(each) for each in node.items)
            return f"{_wrap(node.operand, '&')} {'NOT ' if node.negated else ''}IN ({items})", _LEVEL["COMPARE"]
        case tree.Between():
            ends = f"{_wrap(node.low, '&')} AND {_wrap(node.high, '&')}"
            return f"{_wrap(node.operand, '&')} {'NOT ' if node.negated else ''}BETWEEN {ends}", _LEVEL["COMPARE"]
        case tree.Like():
            negation = "NOT " if node.negated else ""
            return f"{_wrap(node.operand, '&')} {negation}LIKE {_wrap(node.pattern, '&')}", _LEVEL["COMPARE"]
        case tree.Case():
            whens = "".join(f" WHEN {print_formula(a)} THEN {print_formula(b)}" for a, b in node.branches)
            otherwise = f" ELSE {print_formula(node.otherwise)}" if node.otherwise else ""
            return f"CASE{whens}{otherwise} END", _LEVEL["PRIMARY"]
        case _:
            assert_never(node)


def _print_window(node: tree.Over) -> str:
    parts = []
    if node.partition:
        parts.append(f"PARTITION BY {', '.join(print_formula(each) for each in node.partition)}")
    if node.order:
        keys = (f"{print_formula(each.key)}{' DESC' if each.descending else ''}" for each in node.order)
        parts.append(f"ORDER BY {', '.join(keys)}")
    return " ".join(parts)


def _wrap(node: tree.Expression, around: str, *, above: bool = False) -> str:
    """In parentheses if it binds less tightly than its surroundings; ``above``: also if equally."""
    text, level = _print(node)
    return f"({text})" if level < _LEVEL[around] + above else text


def _print_name(name: str) -> str:
    from dobonomodo.formula.parse import KEYWORDS

    plain = _PLAIN_NAME.fullmatch(name) and name.upper() not in KEYWORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


# --- checked trees

_Value = bool | int | Decimal | str | date | Day | Moment | None
Shown = Typed | _Value
"""What can be put in the place of an operand: another tree, or a value."""


def print_checked(node: Typed, *, operands: Sequence[Shown] | None = None) -> str:
    """The formula of a checked tree: selectors spelled out, conversions left out.

    ``operands``: what to show in place of its operands.
    """
    return print_formula(_as_written(node) if operands is None else _show_over(node, operands))


def _as_written(node: Typed) -> tree.Expression:
    return _show_over(node, _without_casts(node).operands)


def _without_casts(node: Typed) -> Typed:
    while isinstance(node, Cast):
        node = node.operand
    return node


def _show(shown: Shown) -> tree.Expression:
    if isinstance(shown, Literal | ColumnRef | ParameterRef | Cast | Operation | Apply | Over):
        return _as_written(shown)
    return _show_value(shown)


def _show_value(value: _Value) -> tree.Expression:
    match value:
        case None:
            return tree.Null()
        case bool():
            return tree.Truth(value)
        case int() | Decimal():
            number = Decimal(value)
            unsigned = tree.Number(number.copy_abs())
            return tree.Negate(unsigned) if number.is_signed() else unsigned
        case str():
            return tree.Text(value)
        case datetime():
            return tree.Text(value.isoformat())
        case date() | Day() | Moment():
            return tree.Text(str(value))


def _show_over(node: Typed, operands: Sequence[Shown]) -> tree.Expression:
    """The syntax of a node, with these in place of its operands."""
    found = _without_casts(node)
    match found:
        case Literal():
            return _show_value(found.value)
        case ColumnRef():
            return tree.Column(found.name, found.qualifier)
        case ParameterRef():
            return tree.Column(found.name, PARAM)
        case Apply():
            return tree.Call(found.function.name, tuple(map(_show, operands)))
        case Operation():
            return _show_operation(found.operator, tuple(map(_show, operands)))
        case Over():
            return _show_window(found, [_show(each) for each in operands])
        case _:
            raise AssertionError(found)


def _show_window(over: Over, shown: Sequence[tree.Expression]) -> tree.Expression:
    first, last = len(over.call.operands), len(over.call.operands) + len(over.partition)
    order = zip(shown[last:], over.order, strict=True)
    return tree.Over(
        tree.Call(over.call.function.name, tuple(shown[:first])),
        tuple(shown[first:last]),
        tuple(tree.Ordering(key, each.descending) for key, each in order),
    )


_SIGN_BY_OPERATOR = {"ADD DAYS": "+", "SUBTRACT DAYS": "-", "DAYS BETWEEN": "-"}


def _show_operation(operator: str, operands: tuple[tree.Expression, ...]) -> tree.Expression:
    first, *others = operands
    negated = operator.startswith("NOT ") or operator == "IS NOT NULL"
    match operator.removeprefix("NOT "):
        case "AND" | "OR":
            return tree.Logic(operator, operands)
        case "NOT":
            return tree.Not(first)
        case "NEGATE":
            return tree.Negate(first)
        case "IS NULL" | "IS NOT NULL":
            return tree.IsNull(first, negated)
        case "IN":
            return tree.In(first, tuple(others), negated)
        case "BETWEEN":
            return tree.Between(first, others[0], others[1], negated)
        case "LIKE":
            return tree.Like(first, others[0], negated)
        case "CASE":
            tests, values = operands[:-1:2], operands[1:-1:2]
            return tree.Case(tuple(zip(tests, values, strict=True)), operands[-1])
        case _:
            return tree.Binary(_SIGN_BY_OPERATOR.get(operator, operator), first, others[0])
