"""Decides whether the first line of a file has the names of its columns, by comparing it with the lines below.

A file does not tell names from values: years are names above amounts, and values above years. What the lines below do not
decide gets a note.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

NULL_TEXTS = ("NA", "N/A", "n/a", "NULL", "null", "-", "#N/A")

_NUMBER = re.compile("\\s*[+(€$£-]*\\s*[0-9][0-9.,' \u00a0\u202f\u2019]*[)%€$£-]*\\s*")
"""Also amounts with a currency, percentages and negative numbers in parentheses, which are no numbers of a definition."""
_DATE = re.compile(
    r"\s*(?:[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}(?:[ T][0-9:.]+Z?)?|[12][0-9]{3}-(?:0[1-9]|1[0-2]))\s*"
)
_YEAR = re.compile(r"\s*(?:19|20)[0-9]{2}\s*")
_COUNT = re.compile(r"\s*[0-9]{1,9}\s*")


class Role(Enum):
    """What the first line of a file is."""

    NAMES = auto()
    UNUSABLE_NAMES = auto()
    """Names that do not tell the columns apart."""
    RECORD = auto()


@dataclass(frozen=True, slots=True)
class FirstLine:
    """What the first line of a file is, with a note if that is not sure or not usual."""

    role: Role
    note: str | None = None


def judge_first_line(fields: Sequence[str], below: Sequence[Sequence[str]]) -> FirstLine:
    """Judge the first line by the values below each of its fields, which are without NULL."""
    cells = [_Cell.of(text, values) for text, values in zip(fields, below, strict=True)]
    words = [cell.text for cell in cells if cell.is_name]
    labels = [cell.text for cell in cells if cell.may_be_name]
    if any(cell.is_value for cell in cells) or not _are_labels(cells):
        return _record(f"{_show(words)} is unlike the values below" if words else None)
    if labels and not words:
        has_text, has_years = any(cell.kind == "text" for cell in cells), _are_years(cells)
        if not (has_text and has_years):
            return _record(f"{_show(labels)} may be names" if has_text or has_years else None)
    fault = explain_unusable(fields)
    if fault is None:
        return FirstLine(Role.NAMES, f"{_AS_NAMES}, {_show(labels)} too; {_IF_RECORD}" if labels else None)
    if not words:
        return _record(fault)
    return FirstLine(Role.UNUSABLE_NAMES, f"the first line is skipped, since {fault}; columns are read by their order")


_AS_NAMES = "the first line is read as the names of columns"
_IF_RECORD = "if it is a record, set `has_header: false`"


def _record(doubt: str | None) -> FirstLine:
    note = "the first line is read as a record; if it has the names of columns, skip it with `skip_lines`"
    return FirstLine(Role.RECORD, f"{note}: {doubt}" if doubt is not None else None)


def explain_unusable(names: Sequence[str]) -> str | None:
    """Why names do not tell columns apart; None if they do."""
    blank = next((number for number, name in enumerate(names, start=1) if not name.strip()), None)
    if blank is not None:
        return f"it has no name for column {blank}"
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            return f"it has the name `{name}` twice; names are compared without regard to case"
        seen.add(name.casefold())
    return None


def _show(texts: Sequence[str]) -> str:
    return ", ".join(f"`{text.strip()}`" for text in texts[:10])


@dataclass(frozen=True, slots=True)
class _Cell:
    """A field of the first line and the values below it."""

    text: str
    kind: str
    below: str | None
    """The kind of all values below; None if they differ, or if there are none."""
    is_above_years: bool
    """Whether it is a year, as all values below."""

    @classmethod
    def of(cls, text: str, values: Sequence[str]) -> _Cell:
        kinds = {_kind(value) for value in values if value not in NULL_TEXTS} - {"blank"}
        years = bool(values) and all(_YEAR.fullmatch(each) for each in (text, *values))
        return cls(text, _kind(text), kinds.pop() if len(kinds) == 1 else None, years)

    @property
    def is_name(self) -> bool:
        """Whether it cannot be a value of its column: a word above numbers, a date above amounts."""
        if self.below in (None, "text") or self.text in NULL_TEXTS:
            return False
        if self.kind == "text":
            return not any(map(str.isdigit, self.text))
        return self.kind == "date" and self.below == "number"

    @property
    def may_be_name(self) -> bool:
        """Whether it is a number or a date, and may be a name all the same."""
        return self.kind == "number" or (self.kind == "date" and self.below != "date")

    @property
    def is_value(self) -> bool:
        """Whether it is not a name."""
        known = self.below not in (None, "text")
        return (
            self.kind == "boolean"
            or (self.kind == "date" and self.below == "date")
            or self.is_above_years
            or (known and self.text in NULL_TEXTS)
        )


def _kind(text: str) -> str:
    if not text.strip():
        return "blank"
    if _DATE.fullmatch(text):
        return "date"
    if _NUMBER.fullmatch(text):
        return "number"
    return "boolean" if text.strip().casefold() in ("true", "false") else "text"


def _are_labels(cells: Sequence[_Cell]) -> bool:
    """Whether all numbers may be names: years, or numbers that count up."""
    numbers = [cell.text for cell in cells if cell.kind == "number"]
    counts = [int(text) for text in numbers if _COUNT.fullmatch(text)]
    counted = len(counts) == len(numbers) > 1 and all(after == before + 1 for before, after in pairwise(counts))
    return counted or _are_years(cells)


def _are_years(cells: Sequence[_Cell]) -> bool:
    return all(_YEAR.fullmatch(cell.text) for cell in cells if cell.kind == "number")
