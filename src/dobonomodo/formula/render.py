"""From checked tree to Spark SQL text. It names no function of the catalogue and receives no text of the user."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import assert_never

from dobonomodo.formula.compare import compare, compare_list, compare_range
from dobonomodo.formula.functions.dates import days
from dobonomodo.formula.functions.signature import NO_RUN, Argument, RunValues
from dobonomodo.formula.sql import cast, literal, negate, quote_name
from dobonomodo.formula.typed import Apply, Cast, ColumnRef, Literal, Operation, Over, ParameterRef, Typed, flat_name


def render_column(column: ColumnRef) -> str:
    """A column of a frame, which may also hold joined columns."""
    return quote_name(flat_name(column))


def render_formula(node: Typed, run: RunValues, *, column: Callable[[ColumnRef], str] = render_column) -> str:
    """The expression for Spark; its type there is ``node.type``. ``column`` says how columns are found."""
    sqls = [render_formula(each, run, column=column) for each in node.operands]
    return column(node) if isinstance(node, ColumnRef) else _render_node(node, sqls, run)


def rendered_size(node: Typed) -> int:
    """How long the SQL of an expression will be, found without building it.

    Some functions and comparisons say their argument more than once, so nesting them multiplies.
    """
    if isinstance(node, Literal | ColumnRef | ParameterRef):
        return 20
    size_by_mark = {chr(_FIRST_MARK + at): rendered_size(each) for at, each in enumerate(node.operands)}
    sql = _render_node(node, list(size_by_mark), NO_RUN)
    return sum(size_by_mark.get(character, 1) for character in sql)


def rendered_depth(node: Typed) -> int:
    """How deep the SQL of an expression will be nested, found without building it: each bracket and CASE is a level."""
    depths = [rendered_depth(each) for each in node.operands]
    if isinstance(node, Literal | ColumnRef | ParameterRef):
        return 1
    depth_by_mark = {chr(_FIRST_MARK + at): depth for at, depth in enumerate(depths)}
    level = deepest = 0
    for piece in _PIECE.findall(_render_node(node, list(depth_by_mark), NO_RUN)):
        level += (piece in ("(", "CASE")) - (piece in (")", "END"))
        deepest = max(deepest, level + depth_by_mark.get(piece, 0))
    return deepest


_FIRST_MARK = 0xF0000
"""The first of the characters that replace operands while SQL is measured; nothing else is written with them."""
_PIECE = re.compile(rf"""'(?:[^'\\]|\\.)*'|[()]|\b(?:CASE|END)\b|[{chr(_FIRST_MARK)}-{chr(_FIRST_MARK + 0xFFFD)}]""")


def _render_node(
    node: Literal | ParameterRef | Cast | Operation | Apply | Over, sqls: list[str], run: RunValues
) -> str:
    match node:
        case Literal():
            return literal(node.value, node.type)
        case ParameterRef():
            return literal(run.parameters[node.name], node.type)
        case Cast():
            return cast(sqls[0], node.type)
        case Apply():
            arguments = [Argument(sql, each) for sql, each in zip(sqls, node.operands, strict=True)]
            return node.function.render(node.way, arguments, run)
        case Operation():
            return _render_operation(node, sqls)
        case Over():
            return _render_over(node, sqls, run)
        case _:
            assert_never(node)


def _render_over(node: Over, sqls: list[str], run: RunValues) -> str:
    """Sorted as everywhere: NULL is smaller than any value."""
    call, window = node.call, node.call.function.window
    if window is None:
        raise AssertionError(f"{call.function.name} is not for windows")
    first, last = len(call.operands), len(call.operands) + len(node.partition)
    keys = [
        f"{sql} {'DESC NULLS LAST' if each.descending else 'ASC NULLS FIRST'}"
        for sql, each in zip(sqls[last:], node.order, strict=True)
    ]
    parts = [
        f"PARTITION BY {', '.join(sqls[first:last])}" if node.partition else "",
        f"ORDER BY {', '.join(keys)}" if keys else "",
        window.frame if keys else "",
    ]
    called = _render_node(call, sqls[:first], run)
    return window.template.format(call=called, window=" ".join(filter(None, parts)))


def _render_operation(node: Operation, sqls: list[str]) -> str:
    arguments = [Argument(sql, each) for sql, each in zip(sqls, node.operands, strict=True)]
    match node.operator, sqls:
        case (("AND" | "OR" as operator), _):
            return f"({f' {operator} '.join(sqls)})"
        case "NOT", [sql]:
            return f"(NOT {sql})"
        case "NEGATE", [sql]:
            return negate(sql, node.type)
        case (("IS NULL" | "IS NOT NULL" as operator), [sql]):
            return f"({sql} {operator})"
        case (("IN" | "NOT IN" as operator), _):
            return compare_list(operator, arguments[0], arguments[1:])
        case (("BETWEEN" | "NOT BETWEEN" as operator), _):
            return compare_range(operator, *arguments)
        case (("=" | "<>" | "<" | "<=" | ">" | ">=" as operator), _):
            return compare(operator, *arguments)
        case (("LIKE" | "NOT LIKE" as operator), [sql, pattern]):
            return f"({sql} {operator} {_plain_backslashes(node.operands[1], pattern)})"
        case "CASE", [*branches, otherwise]:
            whens = (f"WHEN {test} THEN {value}" for test, value in zip(branches[::2], branches[1::2], strict=True))
            return f"CASE {' '.join(whens)} ELSE {otherwise} END"
        case "&", [left, right]:
            return f"concat({left}, {right})"
        case "ADD DAYS", [day, count]:
            return f"date_add({day}, {days(count)})"
        case "SUBTRACT DAYS", [day, count]:
            return f"date_sub({day}, {days(count)})"
        case "DAYS BETWEEN", [end, start]:
            return cast(f"datediff({end}, {start})", node.type)
        case "/", [dividend, divisor]:
            return f"({dividend} / {_without_zero(node.operands[1], divisor)})"
        case operator, [left, right]:
            return f"({left} {operator} {right})"
        case operator, _:
            raise AssertionError(operator)


def _without_zero(node: Typed, sql: str) -> str:
    return sql if isinstance(node, Literal) and node.value else f"nullif({sql}, 0BD)"


def _plain_backslashes(node: Typed, sql: str) -> str:
    """Spark's LIKE escapes with a backslash; ours has no escapes."""
    if isinstance(node, Literal) and isinstance(node.value, str):
        return literal(node.value.replace("\\", "\\\\"), node.type)
    return rf"replace({sql}, '\\', '\\\\')"
