"""The exact reports of faulty formulas, as the files in ``problems`` say.

``slips.txt``, ``checks.txt``, ``groups.txt`` and ``windows.txt`` hold formulas behind ``>``, each with its report below.
``documents.txt`` holds YAML behind ``>``.
``places.txt`` and ``limits.txt`` hold the reports of what is put together here: formulas inside of files,
characters that move a cursor, and texts that are too long to be written out. ``make golden`` rewrites the reports.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from dobonomodo.formula import check_formula
from dobonomodo.formula.parse import MAX_DEPTH, MAX_LENGTH, MAX_TOKENS
from dobonomodo.model import load_definitions
from dobonomodo.problems import PROBLEMS, OperationRef, Passage, Problem, Source
from dobonomodo.problems import formula as formula_problems
from dobonomodo.problems.formula import (
    AggregateReason,
    ExpressionSyntax,
    InvalidAggregate,
    InvalidWindow,
    SyntaxReason,
    WindowReason,
)
from dobonomodo.problems.render import render_concise, render_full, render_github
from dobonomodo.storage import load_datasource
from tests.golden.text_file import compare
from tests.unit.formula.orders import GROUPS, ROWS, WINDOWS, check

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FOLDER = Path(__file__).parent / "problems"
WRITTEN = {"slips": ROWS, "checks": ROWS, "groups": GROUPS, "windows": WINDOWS}
"""Files with formulas in them, and where those are computed."""


class Case(NamedTuple):
    title: str
    formula: str


def read(name: str) -> tuple[str, list[Case]]:
    head, *blocks = re.split(r"^=== ", (FOLDER / f"{name}.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    cases = []
    for block in blocks:
        title, *lines = block.splitlines()
        cases.append(Case(title, "\n".join(line[2:] for line in lines if line.startswith("> "))))
    return head, cases


@pytest.mark.parametrize("name", WRITTEN)
def test_formulas(name: str, update_golden: bool) -> None:
    head, cases = read(name)
    text = head
    for case in cases:
        written = "\n".join(f"> {line}" for line in case.formula.split("\n"))
        text += f"=== {case.title}\n{written}\n\n{render_full(check(case.formula, WRITTEN[name]).problems)}\n\n"
    compare(FOLDER / f"{name}.txt", text.rstrip("\n") + "\n", update=update_golden)


def test_documents(update_golden: bool) -> None:
    """Slips in YAML."""
    head, cases = read("documents")
    text = head
    for case in cases:
        written = "\n".join(f"> {line}" for line in case.formula.split("\n"))
        _, problems = load_definitions(
            [Source("projects/p.yaml", case.formula + "\n")], load_datasource=load_datasource
        )
        text += f"=== {case.title}\n{written}\n\n{render_full(problems)}\n\n"
    compare(FOLDER / "documents.txt", text.rstrip("\n") + "\n", update=update_golden)


def plain(text: str, value: str) -> Passage:
    """A value that stands in a text as it is."""
    at = text.index(value)
    return Passage(value, Source("projects/monthly.yaml", text), range(at, at + len(value) + 1))


def in_quotes(text: str, key: str) -> Passage:
    """The value behind a key, in double quotes with backslash escapes."""
    at = text.index(f"{key}: ") + len(key) + 3
    value, offsets = "", list[int]()
    while text[at] != '"':
        offsets.append(at)
        if text[at] == "\\":
            at += 1
            value += {"n": "\n", "t": "\t"}.get(text[at], text[at])
        else:
            value += text[at]
        at += 1
    return Passage(value, Source("projects/monthly.yaml", text), [*offsets, at])


def in_block(text: str, key: str) -> Passage:
    """The value behind a key, in indented lines below it."""
    at = text.index(f"{key}: |\n") + len(key) + 4
    indent = len(text[at:]) - len(text[at:].lstrip(" "))
    value, offsets = "", list[int]()
    while text.startswith(" " * indent, at):
        at += indent
        end = text.index("\n", at) + 1
        value += text[at:end]
        offsets += range(at, end)
        at = end
    return Passage(value, Source("projects/monthly.yaml", text), [*offsets, at])


PROJECT = """\
project:
  operations:
    - seq: 10
      expression: ROUND(amout * (1 - rate), 2)
"""
ESCAPED = r"""operations:
  - expression: "IF(status = \"open\",\n\tamout,\n\tCONCAT(\"a\", amount))"
"""
BLOCK = """\
operations:
  - expression: |
      IF(
        paid,
        amout,
        status + 1
      )
    name: net
"""

PLACES: Mapping[str, Passage] = {
    "in a file": plain(PROJECT, "ROUND(amout * (1 - rate), 2)"),
    "behind escapes, where characters of the value and of the file do not run side by side": in_quotes(
        ESCAPED, "expression"
    ),
    "in a block of lines": in_block(BLOCK, "expression"),
    "at the very end of a file": plain("selector: amount >", "amount >"),
    "in a file with Windows line ends": plain("a: 1\r\nselector: amout > 0\r\nb: 2\r\n", "amout > 0"),
    "behind wide characters": Passage.alone('"売上高 😀" & amout'),
    "behind combining characters": Passage.alone('"e\u0301e\u0301" & amout'),
    "on wide characters": Passage.alone("amount + 売上高"),
    "behind tabs": Passage.alone("amount\t+\tamout"),
    "on a tab": Passage.alone('status = "a\tb'),
    "near control characters": Passage.alone('"\x1b[31m\x07" & amout'),
    "on a control character": Passage.alone("amount \x1b + 1"),
    "near marks that turn the writing direction round": Passage.alone('"\u202eabc\u202c" & amout'),
    "on a blank that is none": Passage.alone("amount\u00a0+ 1"),
    "on half a character": Passage.alone('status = "\ud83d"'),
    "in the middle of a long line": Passage.alone(" + ".join(["amount"] * 30 + ["amout"] + ["amount"] * 30)),
    "at the start of a long line": Passage.alone(" + ".join(["amout"] + ["amount"] * 60)),
    "at the end of a long line": Passage.alone(" + ".join(["amount"] * 60 + ["amout"])),
    "as wide as a long line": Passage.alone(f'status = "{"x" * 200}'),
    "a long word that does not belong": Passage.alone(f'amount "{"x" * 200}"'),
    "over several lines": Passage.alone('status = CONCAT(\n  "a",\n  amount + "b",\n  amout)'),
    "empty": Passage.alone(""),
    "nothing but blanks and lines": Passage.alone(" \n\t "),
}

LIMITS: Mapping[str, str] = {
    "too many characters": f'"{"x" * MAX_LENGTH}"',
    "too many parts": "1" + "+1" * MAX_TOKENS,
    "parentheses that are never closed": "(" * 500,
    "parentheses too deep": "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1),
    "parentheses much too deep": "(" * 10_000 + "1" + ")" * 10_000,
    "IFs too deep": "IF(paid, 1, " * 140 + "2" + ")" * 140,
    "NOTs too deep": "NOT " * 500 + "paid",
    "minuses too deep": "- " * 500 + "amount",
    "a sum of too many terms": "1" + " + 1" * 1_500,
    "too many digits": "1" * 39,
    "an exponent that is too large": "1e999999999",
}


BUILT = {**PLACES, **{title: Passage.alone(text) for title, text in LIMITS.items()}}


@cache
def find_problems(title: str) -> tuple[Problem, ...]:
    return check_formula(BUILT[title], ROWS).problems


def reports(titles: Iterable[str]) -> str:
    blocks = (f"=== {title}\n\n{render_full(find_problems(title))}" for title in titles)
    return "\n\n".join(blocks) + "\n"


def test_places(update_golden: bool) -> None:
    compare(FOLDER / "places.txt", reports(PLACES), update=update_golden)


def test_limits(update_golden: bool) -> None:
    compare(FOLDER / "limits.txt", reports(LIMITS), update=update_golden)


def test_forms(update_golden: bool) -> None:
    """The same problems in every form there is."""
    faulty = 'IF(status = NULL,\n  amout * "50%, off",\n  {{activ}} AND VLOOKUP(status))'
    found = check_formula(Passage.alone(faulty, name="projects/monthly,v2.yaml"), ROWS).problems
    placed = tuple(replace_operation(problem) for problem in found)
    nowhere = (formula_problems.SelectorUndefined(name="activ", operation=OperationRef(30, "drop old")),)
    forms = {
        "full": render_full(placed + nowhere),
        "full, in colour": render_full(placed[:1], color=True).replace("\x1b", "ESC"),
        "concise": render_concise(placed + nowhere),
        "GitHub": render_github(placed + nowhere),
        "JSON": "\n".join(json.dumps(problem.to_dict(), indent=2) for problem in placed + nowhere),
    }
    text = "\n\n".join(f"=== {title}\n\n{form}" for title, form in forms.items()) + "\n"
    compare(FOLDER / "forms.txt", text, update=update_golden)


def replace_operation(problem: Problem) -> Problem:
    return replace(problem, operation=OperationRef(20, "net"))


def all_problems() -> list[Problem]:
    written = [
        each
        for name, scope in WRITTEN.items()
        for case in read(name)[1]
        for each in check(case.formula, scope).problems
    ]
    return written + [problem for title in BUILT for problem in find_problems(title)]


def test_every_kind_is_shown() -> None:
    shown = all_problems()
    kinds = {kind for kind in PROBLEMS if kind.__module__ == formula_problems.__name__}
    assert kinds <= {type(problem) for problem in shown}
    assert set(SyntaxReason) == {problem.reason for problem in shown if isinstance(problem, ExpressionSyntax)}
    assert set(WindowReason) == {problem.reason for problem in shown if isinstance(problem, InvalidWindow)}
    assert set(AggregateReason) == {problem.reason for problem in shown if isinstance(problem, InvalidAggregate)}


def test_every_case_is_faulty() -> None:
    for name, scope in WRITTEN.items():
        for case in read(name)[1]:
            assert check(case.formula, scope).problems, case.title
