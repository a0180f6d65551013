"""Row ids: UUIDv7 as text, computed from the run and a stable key of the row; no part is random.

The first 48 bits are the run's clock. The rest is the place of the row, which is its position in its source, or a hash of its
key if it has none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from dobonomodo.plan.facts import RunFacts


@dataclass(frozen=True, slots=True)
class IdSeed:
    """The seed of a run's row ids: equal project version, period and clock result in equal ids (C-84)."""

    text: str
    started_at: datetime

    @property
    def prefix(self) -> str:
        """The clock, as the first two groups of an id."""
        milliseconds = f"{int(self.started_at.timestamp() * 1000) & (1 << 48) - 1:012x}"
        return f"{milliseconds[:8]}-{milliseconds[8:]}"

    def number(self, what: str, below: int) -> int:
        """A number that depends on the run and on ``what``."""
        digest = hashlib.sha256(f"{self.text}\0{self.prefix}\0{what}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % below


def seed_of(project_id: str, fingerprint: str, facts: RunFacts) -> IdSeed:
    """The seed of a run's row ids (C-84)."""
    text = hashlib.sha256(f"{project_id}\0{fingerprint}\0{facts.period}".encode()).hexdigest()
    return IdSeed(text, facts.started_at)


_FIRST_PLACE = 10_000_000_000
"""Is added to a place, so that all have the same number of digits."""


def id_by_place(seed: IdSeed, what: str, place: str) -> str:
    """SQL for the id of the row at a place, a BIGINT below 90 000 000 000 (the available digits). Unique by construction.

    The digits are decimal, which Spark writes many times faster than hexadecimal. The parts that differ between runs are text:
    Spark would inline numbers into generated code, and compile it again for each run.
    """
    return f"concat('{_before_place(seed, what)}', CAST({_FIRST_PLACE}L + {place} AS STRING))"


def write_id_by_place(seed: IdSeed, what: str, place: int) -> str:
    """The id of the row at a place, equal to what ``id_by_place`` computes in Spark."""
    return f"{_before_place(seed, what)}{_FIRST_PLACE + place}"


def find_place(seed: IdSeed, what: str, row_id: str) -> int | None:
    """The place that an id was computed from; None for other ids."""
    before = _before_place(seed, what)
    digits = row_id[len(before) :]
    if not row_id.startswith(before) or len(digits) != len(str(_FIRST_PLACE)) or not digits.isdecimal():
        return None
    return int(digits) - _FIRST_PLACE


@cache
def _before_place(seed: IdSeed, what: str) -> str:
    version = f"7{seed.number(f'{what}/version', 1 << 12):03x}"
    # The two highest bits of the fourth group must be 10.
    group = f"{0x8000 + seed.number(f'{what}/group', 1 << 14):04x}"
    last = f"{seed.number(what, 16):x}"
    return f"{seed.prefix}-{version}-{group}-{last}"


@cache
def _salt(seed: IdSeed, what: str) -> str:
    return hashlib.sha256(f"{seed.text}\0{seed.prefix}\0{what}".encode()).hexdigest()[:32]


def write_id_by_key(seed: IdSeed, what: str, keys: Sequence[str | None]) -> str:
    """The id of the row with a key, given as text, equal to what ``id_by_key`` computes in Spark."""
    marked = keys if len(keys) == 1 else [None if key is None else f"{len(key)}:{key}" for key in keys]
    parts = "".join("-" if key is None else f"={key}" for key in marked)
    digest = hashlib.md5(f"{_salt(seed, what)}{parts}".encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[ord(digest[15]) & 3]
    return f"{seed.prefix}-7{digest[:3]}-{variant}{digest[3:6]}-{digest[16:28]}"


def id_by_key(seed: IdSeed, what: str, keys: list[str]) -> str:
    """SQL for the id of the row with a key; ``keys`` are SQL expressions, NULL being a key like any other."""
    salt = _salt(seed, what)
    marked = [f"CAST({keys[0]} AS STRING)"] if len(keys) == 1 else [_length_marked(key) for key in keys]
    parts = ", ".join(f"coalesce(concat('=', {key}), '-')" for key in marked)
    digest = f"md5(concat('{salt}', {parts}))"
    # One of 8, 9, a, b: the two highest bits of the fourth group are 10.
    variant = f"substr('89ab', (ascii(substr({digest}, 16, 1)) & 3) + 1, 1)"
    return (
        f"concat('{seed.prefix}-7', substr({digest}, 1, 3), '-', {variant}, substr({digest}, 4, 3), '-', "
        f"substr({digest}, 17, 12))"
    )


def _length_marked(key: str) -> str:
    """A key prefixed with its length, so that different lists of keys never concatenate to the same text."""
    text = f"CAST({key} AS STRING)"
    return f"concat(char_length({text}), ':', {text})"
