"""A digest of rows that does not depend on their order: their number and the sum of their hashes."""

from __future__ import annotations

from collections.abc import Sequence

from dobonomodo.formula.sql import quote_name

ROWS = "rows"
HASHES = ("hash_a", "hash_b")


def digest_columns(columns: Sequence[str]) -> list[str]:
    """SQL aggregates over the rows. Spark's hash passes NULLs over, so each value says whether it is there."""
    values = ", ".join(f"{quote_name(name)}, {quote_name(name)} IS NULL" for name in columns)
    return [
        f"count(1) AS {ROWS}",
        *(
            f"sum(CAST(xxhash64({quote_salt(salt)}, {values}) AS DECIMAL(20,0))) AS {name}"
            for salt, name in enumerate(HASHES)
        ),
    ]


def quote_salt(number: int) -> str:
    """A number that makes the two hashes differ."""
    return f"{number}L"


def render_digest(rows: int, sums: Sequence[object]) -> str:
    """The digest as short text: the sums modulo 2**64, and the number of rows."""
    parts = "".join(f"{int(str(each or 0).split('.')[0]) % 2**64:016x}" for each in sums)
    return f"{parts}-{rows}"
