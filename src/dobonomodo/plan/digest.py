"""The digest of rows as text: two sums of hashes, each modulo 2**64, and the number of rows.

Earlier versions recorded the first sum alone. It is the first half, so that rows can still be compared with what they recorded.
"""

from __future__ import annotations

from collections.abc import Sequence

_DIGITS = 16
"""The hexadecimal digits of a sum."""


def show_digest(sums: Sequence[int], rows: int) -> str:
    """The recorded form of a digest."""
    return f"{''.join(f'{each % 2**64:0{_DIGITS}x}' for each in sums)}-{rows}"


def is_same_digest(one: str | None, other: str | None) -> bool:
    """Whether two digests are of the same rows; one of them may have the first sum alone."""
    if one is None or other is None:
        return False
    return one == other or _first_sum(one) == other or one == _first_sum(other)


def _first_sum(digest: str) -> str:
    sums, _, rows = digest.partition("-")
    return f"{sums[:_DIGITS]}-{rows}"
