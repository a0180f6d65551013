"""What all problems share: their order, and suggestions by similarity."""

from __future__ import annotations

import pytest

from dobonomodo.problems import Problem, Source, Span, in_order
from dobonomodo.problems.formula import NullComparison, SelectorUndefined, UnknownColumn, counted
from dobonomodo.problems.problem import LISTED_AT_MOST, did_you_mean, edit_distance, listed, nearest

SOURCE = Source("file", "amount + amout")


def at(start: int, end: int = 0, *, name: str = "x", source: Source = SOURCE) -> UnknownColumn:
    return UnknownColumn(span=Span(source, start, end or start + 1), name=name)


def test_in_order_of_places() -> None:
    nowhere = SelectorUndefined(name="x")
    late, early, longer, other = at(5), at(1), at(1, 9), at(0, source=Source("other", ""))
    assert in_order([nowhere, other, late, longer, early]) == (early, longer, late, other, nowhere)


def test_each_once() -> None:
    assert in_order([at(1), at(1), at(1, name="y")]) == (at(1), at(1, name="y"))


def test_problems_without_place_keep_their_order() -> None:
    problems = [SelectorUndefined(name="b"), SelectorUndefined(name="a")]
    assert list(in_order(problems)) == problems


def test_severity() -> None:
    assert Problem.severity == SelectorUndefined.severity == "error"
    assert NullComparison.severity == "warning"


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("", "", 0),
        ("a", "a", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("amount", "amout", 1),
        ("amount", "amounts", 1),
        ("amount", "anount", 1),
        ("amount", "aomunt", 1),
        ("amount", "total", 5),
        ("ab", "ba", 1),
        ("kitten", "sitting", 3),
    ],
)
def test_edit_distance(one: str, other: str, distance: int) -> None:
    assert edit_distance(one, other) == edit_distance(other, one) == distance


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("amout", "amount"),
        ("AMOUNT", "amount"),
        ("quantiy", "quantity"),
        ("statsu", "status"),
        ("order_dat", "order_date"),
        ("id", "id"),
        ("ix", "id"),
        ("xyz", None),
        ("rate", None),
        ("a", None),
        ("", None),
    ],
)
def test_nearest(name: str, expected: str | None) -> None:
    assert nearest(name, ("amount", "quantity", "status", "order_date", "id")) == expected


def test_the_first_of_equally_near_names() -> None:
    assert nearest("rate", ("race", "late", "rite")) == "race"


def test_did_you_mean() -> None:
    assert "`amount`" in (did_you_mean("amout", ["amount", "status"]) or "")
    assert listed(["amount", "status"]) in (did_you_mean("xyz", ["amount", "status"]) or "")
    assert did_you_mean("xyz", [], otherwise="nothing") == "nothing"
    assert did_you_mean("xyz", []) is None


def test_lists_are_bounded() -> None:
    names = [f"c{number}" for number in range(LISTED_AT_MOST + 3)]
    assert listed(names[:LISTED_AT_MOST]).count("`") == 2 * LISTED_AT_MOST
    assert listed(names).count("`") == 2 * LISTED_AT_MOST
    assert "3 more" in listed(names)


@pytest.mark.parametrize(("number", "words"), [(0, "no arguments"), (1, "1 argument"), (2, "2 arguments")])
def test_counted(number: int, words: str) -> None:
    assert counted(number, "argument") == words
