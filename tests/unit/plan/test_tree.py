"""A tree out of pairs: who is above whom, and what is no tree."""

from __future__ import annotations

import pytest

from dobonomodo.plan import tree
from dobonomodo.plan.tree import Above, NotATree, find_ancestors
from dobonomodo.problems.run import HierarchyReason


def test_every_node_has_itself_and_all_totals_it_counts_for() -> None:
    found = find_ancestors([("a", "b"), ("b", "c"), ("d", None), (None, "e")])
    assert set(found) == {
        *(Above(each, each, 0) for each in "abcde"),
        Above("a", "b", 1),
        Above("a", "c", 2),
        Above("b", "b", 1),
        Above("b", "c", 2),
        Above("c", "c", 1),
    }


def test_a_pair_may_be_said_twice_and_a_root_too() -> None:
    found = find_ancestors([("a", "b"), ("a", None), ("a", "b"), ("b", None)])
    assert {(each.node, each.ancestor) for each in found} == {("a", "a"), ("a", "b"), ("b", "b")}


@pytest.mark.parametrize(
    ("pairs", "nodes"),
    [
        ([("a", "a")], ("a", "a")),
        ([("a", "b"), ("b", "a")], ("a", "b", "a")),
        ([("x", "a"), ("a", "b"), ("b", "c"), ("c", "a")], ("a", "b", "c", "a")),
    ],
)
def test_a_circle_is_named_without_the_way_to_it(pairs: list[tuple[str, str]], nodes: tuple[str, ...]) -> None:
    with pytest.raises(NotATree) as caught:
        find_ancestors(pairs)
    assert (caught.value.reason, caught.value.nodes) == (HierarchyReason.CYCLE, nodes)


def test_two_parents_are_named_with_their_child() -> None:
    with pytest.raises(NotATree) as caught:
        find_ancestors([("a", "z"), ("a", "b")])
    assert (caught.value.reason, caught.value.nodes) == (HierarchyReason.SECOND_PARENT, ("a", "b", "z"))


def test_pairs_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "PAIRS_AT_MOST", 5)
    assert len(find_ancestors([(1, 2), (2, None)])) == 4
    with pytest.raises(NotATree) as caught:
        find_ancestors([(1, 2), (2, 3), (3, None)])
    assert caught.value.reason is HierarchyReason.TOO_LARGE
