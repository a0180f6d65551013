"""Capital and small letters as Spark's text library (ICU) maps them; Python knows the same, up to the Unicode of its version."""

from __future__ import annotations

_NEWER_PAIRS = (
    (0x1C89, 0x1C8A, 1),
    (0xA7CB, 0x0264, 1),
    (0xA7CC, 0xA7CD, 1),
    (0xA7CE, 0xA7CF, 1),
    (0xA7D2, 0xA7D3, 1),
    (0xA7D4, 0xA7D5, 1),
    (0xA7DA, 0xA7DB, 1),
    (0xA7DC, 0x019B, 1),
    (0x10D50, 0x10D70, 22),
    (0x16EA0, 0x16EBB, 25),
)
"""Letters that Unicode 15 to 17 added, which a Python of 2022 lacks: first capital, first small letter, how many."""

_SMALL_BY_CAPITAL = {capital + at: small + at for capital, small, count in _NEWER_PAIRS for at in range(count)}
_CAPITAL_BY_SMALL = {small: capital for capital, small in _SMALL_BY_CAPITAL.items()}


def to_upper(text: str) -> str:
    """All letters as capitals."""
    return text.upper().translate(_CAPITAL_BY_SMALL)


def to_lower(text: str) -> str:
    """All letters as small letters; a sigma at the end of a word is its final form."""
    return text.lower().translate(_SMALL_BY_CAPITAL)


def to_title(text: str) -> str:
    """The first letter of each word as a capital, the others small; words are parted by blanks."""
    return " ".join(_capitalise(word) for word in text.split(" "))


def _capitalise(word: str) -> str:
    """The first letter is not made small before, as a few letters would not come back. It is one of those around a sigma."""
    first = word[:1]
    return first.title().translate(_CAPITAL_BY_SMALL) + to_lower(word)[len(first.lower()) :]
