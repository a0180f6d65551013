"""Mutants of a module: one small change of its syntax tree each, such as another comparison or a statement left out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A changed tree, and what was changed where; ``on_spark`` if the function around it handles objects of Spark."""

    line: int
    change: str
    tree: ast.Module
    on_spark: bool = False


def count_mutants(text: str) -> int:
    """How many mutants a module has."""
    return sum(1 for _ in _changes(ast.parse(text)))


def make_mutant(text: str, number: int) -> Mutant:
    """One of them."""
    tree = ast.parse(text)
    function, (node, change) = next(islice(_changes(tree), number, None))
    before = ast.unparse(node).partition("\n")[0]
    on_spark = not _names_of_spark(tree).isdisjoint(
        each.id for each in ast.walk(function) if isinstance(each, ast.Name)
    )
    after = change()
    return Mutant(getattr(node, "lineno", 0), f"{before}  ->  {after}", ast.fix_missing_locations(tree), on_spark)


def _names_of_spark(tree: ast.Module) -> set[str]:
    """What a module imports from PySpark, also for its types alone."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "pyspark"
        for alias in node.names
    }


def _changes(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, tuple[ast.AST, Callable[[], str]]]]:
    """What could be changed inside of functions. Types, docstrings, messages and names of loggers say nothing there."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for change in _changes_below(ast.Module(function.body, [])):
                yield function, change


def _changes_below(node: ast.AST) -> Iterator[tuple[ast.AST, Callable[[], str]]]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":
        # `zip(strict=True)` states what always holds.
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "type_comment"):
            continue
        if isinstance(value, ast.cmpop | ast.boolop | ast.operator) and type(value) in _SWAPPED:
            yield node, _setter(node, field, _SWAPPED[type(value)]())
        for position, each in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(each, ast.AST):
                continue
            replacement = _replacement(each)
            if replacement is not None:
                holder, key = (value, position) if isinstance(value, list) else (node, field)
                yield (node if isinstance(each, ast.cmpop) else each), _setter(holder, key, replacement)
            yield from _changes_below(each)


def _replacement(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.cmpop() if type(node) in _SWAPPED:
            return _SWAPPED[type(node)]()
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value)):
            return ast.Constant(value + 1)
        case ast.UnaryOp(op=ast.Not()):
            return node.operand
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue() | ast.Break():
            return ast.Pass()
        case ast.Return(value=ast.expr() as given) if not isinstance(given, ast.Constant):
            return ast.Return(ast.Constant(None))
        case _:
            return None


def _setter(holder: object, key: str | int, replacement: ast.AST) -> Callable[[], str]:
    def change() -> str:
        if isinstance(holder, list) and isinstance(key, int):
            holder[key] = replacement
        else:
            setattr(holder, str(key), replacement)
        return (
            type(replacement).__name__ if not isinstance(replacement, ast.expr | ast.stmt) else ast.unparse(replacement)
        )

    return change
