"""From syntax tree to text that reads the same and parses back to the same tree."""

from __future__ import annotations

import re
from typing import assert_never

from dobonomodo.formula import tree

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


def _wrap(node: tree.Expression, around: str, *, above: bool = False) -> str:
    """In parentheses if it binds less tightly than where it stands; ``above``: also if equally."""
    text, level = _print(node)
    return f"({text})" if level < _LEVEL[around] + above else text


def _print_name(name: str) -> str:
    from dobonomodo.formula.parse import KEYWORDS

    plain = _PLAIN_NAME.fullmatch(name) and name.upper() not in KEYWORDS
    return name if plain else "`" + name.replace("`", "``") + "`"
