"""Any parents that come before their children are a tree."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dobonomodo.plan.tree import find_ancestors


@settings(max_examples=50)
@given(st.lists(st.integers(0, 30), max_size=30))
def test_parents_that_come_before_their_children_are_a_tree(numbers: list[int]) -> None:
    pairs = [(at + 1, number % (at + 1)) for at, number in enumerate(numbers)]
    found = find_ancestors(pairs)
    above = dict(pairs)
    for each in found:
        here = each.node
        for _ in range(each.depth - 1 if each.node in above.values() else each.depth):
            here = above[here]
        assert here == each.ancestor
    roots = {each.ancestor for each in found if each.ancestor not in above}
    assert roots == ({0} if pairs else set())
