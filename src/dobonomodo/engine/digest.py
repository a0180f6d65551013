"""An order-independent digest of rows: their number and the sums of two hashes per row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dobonomodo.formula.sql import quote_name
from dobonomodo.plan.digest import show_digest

Metrics = Mapping[str, Any]
"""What a job observed, by name, in the types that Spark gives."""

ROWS = "rows"
HASH, OTHER_HASH = " hash", " other hash"
"""The hidden columns with the two hashes of a row."""
HASHES = {HASH: "hash", OTHER_HASH: "other_hash"}
"""What the sums over each of them are called."""
PARTS = {"low": 22, "middle": 21, "high": 21}
"""The pieces of a hash, with their bits. Each is summed by itself, so that the sums of a trillion rows fit a BIGINT."""
SEED, MISSING = 7046029288634856825, 1609587929392839161
"""What the other hash begins with, and what it has in place of a NULL. Recorded digests depend on both."""


def hash_rows(columns: Sequence[str]) -> dict[str, str]:
    """SQL for two independent hashes of a row, by hidden columns.

    Spark's hash skips NULLs, so the first hash includes an IS NULL flag for each value. Spark chains hashes: each value is
    hashed with the previous hash as its seed. The second hash starts with a constant, so all its seeds differ from those of the
    first. It replaces NULL by a constant, which costs half as much as a flag.
    """
    values = [quote_name(name) for name in columns]
    marked = [part for value in values for part in (value, f"CASE WHEN {value} IS NULL THEN {MISSING}L END")]
    return {
        HASH: f"xxhash64({', '.join(_with_null(values))})",
        OTHER_HASH: f"xxhash64({SEED}L, {', '.join(marked)})",
    }


def digest_columns() -> dict[str, str]:
    """SQL aggregates over the hash columns; rows without hashes are not counted.

    The mask removes the bits that an arithmetic shift copies from the sign. More servers support ``shiftright`` than
    ``shiftrightunsigned``.
    """
    sums = {
        f"{name}_{part}": f"sum(shiftright({quote_name(column)}, {shift}) & {(1 << bits) - 1}L)"
        for column, name in HASHES.items()
        for part, (shift, bits) in _find_places().items()
    }
    return {ROWS: f"count({quote_name(HASH)})", **sums}


def _find_places() -> dict[str, tuple[int, int]]:
    """The offset and width in bits of each part of a hash."""
    places, shift = {}, 0
    for part, bits in PARTS.items():
        places[part] = (shift, bits)
        shift += bits
    return places


HALVES = {"low": "{} & 2147483647L", "high": "shiftright({}, 33) & 2147483647L"}
"""Two pieces of the hash of a value, of 31 bits each: their sums fit a BIGINT for four billion rows."""


def hash_values(columns: Mapping[str, str], key: Sequence[str]) -> dict[str, str]:
    """SQL by name for the hash of each value together with the key of its row.

    The key is hashed separately, so that Spark computes it once for all columns.
    """
    of_key = f"xxhash64({', '.join(_with_null(key))})"
    return {name: f"xxhash64({', '.join((of_key, *_with_null([column])))})" for name, column in columns.items()}


def digest_values(hashes: Iterable[str], *, chosen: str) -> dict[str, str]:
    """SQL aggregates over these hash columns, two per column; NULL if there are too many rows."""
    return {
        f"{name}_{half}": f"try_sum(CASE WHEN {chosen} THEN {piece.format(quote_name(name))} END)"
        for name in hashes
        for half, piece in HALVES.items()
    }


def _with_null(values: Sequence[str]) -> list[str]:
    """SQL values, each followed by its IS NULL flag."""
    return [part for value in values for part in (value, f"{value} IS NULL")]


def render_values(name: str, sums: Metrics) -> str | None:
    """The digest of a column's values as short text; None if unknown."""
    low, high = (sums[f"{name}_{half}"] for half in HALVES)
    if low is None or high is None:
        return "0" if not sums[ROWS] else None
    return f"{(int(high) << 31) + int(low):x}"


def render_digest(sums: Metrics) -> str:
    """The digest as short text."""
    places = _find_places()
    totals = [
        sum(int(sums[f"{name}_{part}"] or 0) << shift for part, (shift, _) in places.items())
        for name in HASHES.values()
    ]
    return show_digest(totals, sums[ROWS])
