"""Row ids: UUIDv7 as text, made from the run and a stable key of the row, never from chance.

The first 48 bits are the run's clock. The rest is a position where a row has one, else a hash of its key.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

POSITION_BITS = 42
"""Bits for the position of a row in its file; what is left of 62 bits numbers the files."""


@dataclass(frozen=True, slots=True)
class IdSeed:
    """What row ids of a run start from: the same project version, period and clock give the same ids (C-84)."""

    text: str
    started_at: datetime

    @property
    def prefix(self) -> str:
        """The clock, as the first two groups of an id."""
        milliseconds = f"{int(self.started_at.timestamp() * 1000) & (1 << 48) - 1:012x}"
        return f"{milliseconds[:8]}-{milliseconds[8:]}"

    def number(self, what: str, bits: int) -> int:
        """A number that depends on the run and on ``what``."""
        digest = hashlib.sha256(f"{self.text}\0{self.prefix}\0{what}".encode()).digest()
        return int.from_bytes(digest[:8], "big") & (1 << bits) - 1


def id_by_position(seed: IdSeed, what: str, *, file: str, row: str) -> str:
    """SQL for the id of the row at a position; ``file`` and ``row`` are SQL numbers.

    Unique by construction: the position is only mixed with a constant.
    """
    noise = seed.number(what, 62)
    version = f"7{seed.number(f'{what}/version', 12):03x}"
    place = f"(shiftleft(CAST({file} AS BIGINT), {POSITION_BITS}) | CAST({row} AS BIGINT))"
    # The two highest bits must be 10: that is the smallest BIGINT, plus 62 bits.
    digits = f"lower(hex(({place} ^ {noise}L) - 9223372036854775807L - 1L))"
    return f"concat('{seed.prefix}-{version}-', substr({digits}, 1, 4), '-', substr({digits}, 5))"


def id_by_key(seed: IdSeed, what: str, keys: list[str]) -> str:
    """SQL for the id of the row with a key; ``keys`` are SQL expressions, NULL being a key like any other."""
    salt = hashlib.sha256(f"{seed.text}\0{seed.prefix}\0{what}".encode()).hexdigest()[:32]
    parts = ", ".join(f"coalesce(concat('=', {_length_marked(key)}), '-')" for key in keys)
    digest = f"md5(concat('{salt}', {parts}))"
    # One of 8, 9, a, b: the two highest bits of the fourth group are 10.
    variant = f"substr('89ab89ab89ab89ab', conv(substr({digest}, 16, 1), 16, 10) + 1, 1)"
    return (
        f"concat('{seed.prefix}-7', substr({digest}, 1, 3), '-', {variant}, substr({digest}, 4, 3), '-', "
        f"substr({digest}, 17, 12))"
    )


def _length_marked(key: str) -> str:
    """A key with its length in front, so that two keys never read like two others."""
    text = f"CAST({key} AS STRING)"
    return f"concat(char_length({text}), ':', {text})"
