"""The digest of rows as text, and the comparison with digests that earlier versions recorded."""

from __future__ import annotations

import pytest

from dobonomodo.plan.digest import is_same_digest, show_digest

OLD, NEW = "abf9ec626fa8a022-1000", "abf9ec626fa8a022070b6c5d3f1e8a49-1000"


def test_sums_have_64_bits_each() -> None:
    assert show_digest([2**64 + 10, 2**64 - 1], 3) == f"{10:016x}{'f' * 16}-3"
    assert show_digest([0, 0], 0) == f"{0:032x}-0"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (NEW, NEW, True),
        (OLD, OLD, True),
        (OLD, NEW, True),
        (NEW, NEW.replace("8a49", "8a48"), False),
        (OLD, NEW.replace("abf9", "abf8"), False),
        (OLD, NEW.replace("-1000", "-1001"), False),
        (OLD, OLD.replace("abf9", "abf8"), False),
        ("a-1000", NEW, False),
        (None, NEW, False),
        (None, None, False),
    ],
)
def test_digests_of_earlier_versions_are_compared_by_the_first_sum(
    one: str | None, other: str | None, same: bool
) -> None:
    assert (is_same_digest(one, other), is_same_digest(other, one)) == (same, same)
