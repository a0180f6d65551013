"""A digest of rows that does not depend on their order: their number and the sum of their hashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dobonomodo.formula.sql import quote_name

Metrics = Mapping[str, Any]
"""What a job observed, by name, in the types that Spark gives."""

ROWS = "rows"
PARTS = {"hash_low": 22, "hash_middle": 21, "hash_high": 21}
"""The pieces of a hash, with their bits. Each is summed by itself, so that the sums of a trillion rows fit a BIGINT."""


def hash_rows(columns: Sequence[str]) -> str:
    """SQL for the hash of a row. Spark's hash passes NULLs over, so each value says whether it is there."""
    return f"xxhash64({', '.join(_with_null([quote_name(name) for name in columns]))})"


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


HALVES = {"low": "{} & 2147483647L", "high": "shiftright({}, 33) & 2147483647L"}
"""Two pieces of the hash of a value, of 31 bits each: their sums fit a BIGINT for four billion rows."""


def hash_values(columns: Mapping[str, str], key: Sequence[str]) -> dict[str, str]:
    """SQL for the hash of each value together with the key of its row; ``columns`` and the result have a name for each.

    The key is hashed by itself, so that Spark does it once for all columns.
    """
    of_key = f"xxhash64({', '.join(_with_null(key))})"
    return {name: f"xxhash64({', '.join((of_key, *_with_null([column])))})" for name, column in columns.items()}


def digest_values(hashes: Iterable[str], *, chosen: str) -> dict[str, str]:
    """SQL aggregates over columns of such hashes, two for each, which are NULL where there are too many rows."""
    return {
        f"{name}_{half}": f"try_sum(CASE WHEN {chosen} THEN {piece.format(quote_name(name))} END)"
        for name in hashes
        for half, piece in HALVES.items()
    }


def _with_null(values: Sequence[str]) -> list[str]:
    """SQL values, each with whether it is there."""
    return [part for value in values for part in (value, f"{value} IS NULL")]


def render_values(name: str, sums: Metrics) -> str | None:
    """The digest of the values of a column as short text; None where it is not known."""
    low, high = (sums[f"{name}_{half}"] for half in HALVES)
    if low is None or high is None:
        return "0" if not sums[ROWS] else None
    return f"{(int(high) << 31) + int(low):x}"


def render_digest(sums: Metrics) -> str:
    """The digest as short text: the sum of the hashes modulo 2**64, and the number of rows."""
    total = shift = 0
    for name, bits in PARTS.items():
        total += int(sums[name] or 0) << shift
        shift += bits
    return f"{total % 2**64:016x}-{sums[ROWS]}"
