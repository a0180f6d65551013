"""A digest of rows that does not depend on their order: their number and the sum of their hashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dobonomodo.formula.sql import quote_name

Metrics = Mapping[str, Any]
"""What a job observed, by name, in the types that Spark gives."""

ROWS = "rows"
PARTS = {"hash_low": 22, "hash_middle": 21, "hash_high": 21}
"""The pieces of a hash, with their bits. Each is summed by itself, so that the sums of a trillion rows fit a BIGINT."""


def hash_rows(columns: Sequence[str]) -> str:
    """SQL for the hash of a row. Spark's hash passes NULLs over, so each value says whether it is there."""
    return f"xxhash64({', '.join(f'{quote_name(name)}, {quote_name(name)} IS NULL' for name in columns)})"


def digest_columns(hashed: str) -> dict[str, str]:
    """SQL aggregates over a column of hashes; rows without one do not count.

    The mask removes the bits that an arithmetic shift copies from the sign. ``shiftright`` is known to more servers than
    ``shiftrightunsigned``.
    """
    sums = {}
    shift = 0
    for name, bits in PARTS.items():
        sums[name] = f"sum(shiftright({hashed}, {shift}) & {(1 << bits) - 1}L)"
        shift += bits
    return {ROWS: f"count({hashed})", **sums}


def render_digest(sums: Metrics) -> str:
    """The digest as short text: the sum of the hashes modulo 2**64, and the number of rows."""
    total = shift = 0
    for name, bits in PARTS.items():
        total += int(sums[name] or 0) << shift
        shift += bits
    return f"{total % 2**64:016x}-{sums[ROWS]}"
