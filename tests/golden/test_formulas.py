"""Formulas with their print, type and SQL, or their problems, as the files in ``formulas`` say.

A file begins with its subject and its scope. Each entry is a formula behind ``>``, then what comes of it.
``make golden`` rewrites what comes of the formulas, and leaves them and the comments (``#``) alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from dobonomodo.formula import Scope, print_formula, render_formula
from dobonomodo.problems.render import render_concise
from tests.golden.text_file import compare
from tests.unit.formula.orders import GROUPS, ROWS, WINDOWS, check, parsed
from tests.world import JANUARY

if TYPE_CHECKING:
    pass

FILES = sorted((Path(__file__).parent / "formulas").glob("*.golden"))
SCOPES = {"scope: rows": ROWS, "scope: groups": GROUPS, "scope: windows": WINDOWS}


class Entry(NamedTuple):
    comments: list[str]
    formula: str


class Golden(NamedTuple):
    head: list[str]
    scope: Scope
    entries: list[Entry]


def read(path: Path) -> Golden:
    head, *blocks = (block.splitlines() for block in path.read_text(encoding="utf-8").strip("\n").split("\n\n"))
    (scope,) = (SCOPES[line] for line in head if line in SCOPES)
    entries = [
        Entry(
            [line for line in block if line.startswith("#")],
            "\n".join(line[2:] for line in block if line.startswith(">")),
        )
        for block in blocks
    ]
    return Golden(head, scope, entries)


def render_entry(entry: Entry, scope: Scope) -> str:
    lines = [*entry.comments, *(f"> {line}" for line in entry.formula.split("\n"))]
    checked = check(entry.formula, scope)
    if checked.tree is not None:
        lines += field("print", print_formula(parsed(entry.formula)))
        lines += field("type", str(checked.type))
        lines += field("sql", render_formula(checked.tree, JANUARY))
    if checked.problems:
        lines += [f"  {line}" for line in render_concise(checked.problems).splitlines()]
    return "\n".join(lines)


def field(name: str, value: str) -> list[str]:
    first, *more = value.split("\n")
    return [f"  {name:5} {first}", *(f"        {line}" for line in more)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_formulas(path: Path, update_golden: bool) -> None:
    golden = read(path)
    blocks = ["\n".join(golden.head), *(render_entry(entry, golden.scope) for entry in golden.entries)]
    compare(path, "\n\n".join(blocks) + "\n", update=update_golden)


def test_enough_formulas_each_once() -> None:
    formulas = [(id(golden.scope), entry.formula) for golden in map(read, FILES) for entry in golden.entries]
    assert len(set(formulas)) == len(formulas) >= 180


def test_print_reads_the_same() -> None:
    for path in FILES:
        golden = read(path)
        for entry in golden.entries:
            if check(entry.formula, golden.scope).tree is not None:
                tree = parsed(entry.formula)
                printed = print_formula(tree)
                assert (parsed(printed), print_formula(parsed(printed))) == (tree, printed), entry.formula
